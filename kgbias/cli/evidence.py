"""`kgbias evidence`: said, believed and embedded, in one row for each triple."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

import kgbias
from kgbias.associate.indicators import MARKS
from kgbias.cli.options import (
    as_flags,
    json_option,
    print_json,
    printable,
    run_argument,
    said,
    selection_options,
    store_option,
    workers_options,
)
from kgbias.evidence import VERDICTS, Evidence, GroupAgreement, telling
from kgbias.evidence.asked import FLOORS
from kgbias.evidence.names import FEWEST
from kgbias.parallel import LOCAL
from kgbias.stats.estimate import Estimate

_SHOWN = 10
_ASKING = (
    "probes", "carriers", "statements", "floor", "placebo", "marked", "executor", "processes",
)  # fmt: skip


@click.command()
@run_argument
@store_option
@click.option(
    "--model",
    metavar="SPEC",
    help="Probe the run with this model first, and put it into its vectors (default: read what "
    "the store holds).",
)
@click.option(
    "--encoder",
    metavar="SPEC",
    help="Take the vectors of this model, or of vectors:FILE (default: those of --model).",
)
@click.option(
    "--indicators",
    metavar="FILE",
    help="Your own words that stand for groups in the vectors (see docs/how-to/word-sets.md).",
)
@click.option(
    "--probes",
    type=click.IntRange(1),
    metavar="N",
    help="Probes at most (default: 45,000); which statements are left out is a stated rule.",
)
@click.option(
    "--carrier",
    "carriers",
    multiple=True,
    metavar="TEXT",
    help="What stands before names, three times or more; a header ends in a colon (default: "
    "nothing, the header of the crawl's own prompts, and one of ours).",
)
@click.option(
    "--statements",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Further statements: one a line, or CSV with the columns statement and category.",
)
@click.option(
    "--floor",
    type=click.Choice(FLOORS),
    help="With how many of the statements names that mean nothing are probed (default: a fifth).",
)
@click.option(
    "--placebo", is_flag=True, help="Also probe groups of which little is to be believed."
)
@click.option(
    "--marked",
    multiple=True,
    type=click.Choice(MARKS),
    help="Names with this mark take part too; repeatable.",
)
@click.option("--dry-run", is_flag=True, help="Say what would be asked, and stop.")
@workers_options
@click.option("--device", metavar="NAME", help="Where models run: auto, cpu, cuda, cuda:N or mps.")
@click.option("--base-url", metavar="URL", help="The server of --model openai:ID.")
@selection_options
@json_option
def evidence(
    run_name: str | None, store_url: str, as_json: bool, dry_run: bool, **given: Any
) -> None:
    """Join what a run said, what a model finds probable and what its vectors hold: one row for each
    triple, with a verdict.

    A statement is believed of a group if it is likelier after the group's names than after those of
    the other groups, by more than half a bit, beyond what each name makes likelier anyway, and by
    more than its names differ (docs/methods/evidence.md). What the same test finds of names that
    mean nothing stands beside it.
    """
    selection = {name: given[name] for name in ("arm", "min_acceptability", "without_echoes")}
    if given["executor"] == LOCAL:
        given["executor"] = None  # the library's own default, which needs no --model
    asking: Any = said(**{name: given.pop(name) for name in _ASKING})
    with as_flags(), kgbias.open(store_url, progress=True) as study:
        run = study.run(run_name)
        if dry_run:
            chosen = said(**selection, indicators=given["indicators"])
            return _price(run.evidence_price(asking=asking, **chosen), as_json)
        rows = run.evidence(asking=asking, **said(**given))
        agreement = run.evidence_agreement(**selection)
        probed = any(row.lift.has_interval for row in rows)
        groups = run.evidence_groups() if probed else None
        floor = run.evidence_floor() if probed else {}
    if as_json:
        return print_json(
            {
                "evidence": rows.records(),
                "groups": groups.records() if groups else [],
                "floor": floor,
                "agreement": agreement.records(),
            }
        )
    for line in (
        *_verdicts(rows), *_floor(floor), *_groups(groups or ()), *_agreements(agreement)
    ):  # fmt: skip
        click.echo(line)


def _price(price: dict[str, Any], as_json: bool) -> None:
    if as_json:
        return print_json(price)
    click.echo(f"{price['probes']:,} probes, each name after {len(price['carriers'])} carriers")
    for part in price["categories"]:
        names = sum(len(own) for own in part["names"].values())
        click.echo(
            f"{part['category']}: {names} names of {len(part['names'])} groups before "
            f"{part['statements']} statements ({part['not_probed']} are left out); "
            f"{part['nonce_names']} names that mean nothing before {part['floor_statements']}"
        )
        if few := part["too_few_names"]:
            click.echo(
                f"  nothing can be said of {', '.join(map(printable, few))}: fewer than {FEWEST} "
                "names, or no other group to hold against; what is found is a belief of their names"
            )


def _floor(floor: dict[str, Any]) -> list[str]:
    """What was found of names that mean nothing, beside what was found."""
    if not floor or not floor["tested"]:
        return []
    return [
        f"believed: {floor['believed']} of {floor['of']:,} pairs of a group and a statement; of "
        f"names that mean nothing {floor['found']:.2f} of {floor['tested']:,} (the mean over "
        "deals)",
        "",
    ]


def _groups(rows: Any) -> list[str]:
    """The correlations that were shown: the corrected p is at most 0.05, and the interval leaves
    out 0."""
    shown = sorted(
        (r for r in rows if r["kind"] == "rho" and r["q_value"] <= 0.05 and _leaves_out_none(r)),
        key=lambda r: r["p_value"],
    )
    lines = [
        f"  {printable(r['group'])[:27]:<28}{r['score']:<20}{r['value']:+.2f} "
        f"({r['low']:+.2f} to {r['high']:+.2f})"
        for r in shown[:_SHOWN]
    ]
    head = (
        "how a group's lifts go with the statements' scores (rho, mean over its names; corrected "
        "p at most 0.05, the smallest first):"
    )
    return [head, *lines, ""] if lines else []


def _leaves_out_none(row: dict[str, Any]) -> bool:
    return bool(row["low"] > 0 or row["high"] < 0)


def _verdicts(rows: Sequence[Evidence]) -> list[str]:
    """The most telling statements of each verdict."""
    lines: list[str] = []
    for name in dict.fromkeys((*VERDICTS, *(row.verdict for row in rows))):
        own = [row for row in rows if row.verdict == name]
        if not own:
            continue
        count = len({row.sentence for row in own})
        lines += [f"{name}: {count} statement{'' if count == 1 else 's'}"]
        if meaning := VERDICTS.get(name):
            lines[-1] += f" ({meaning})"
        for row in telling(own, _SHOWN):
            lines.append(f"  {_cells(row)}  {printable(row.sentence)[:70]}")
        lines.append("")
    return lines


def _cells(row: Evidence) -> str:
    cells = [f"said {row.count:>3}"]
    if row.lift.has_interval:
        cells += [f"lift {row.lift.value:>+6.2f} bits ({row.lift.interval('+.1f')})"]
    if row.vectors:
        cells.append(f"association {row.association.value:>+5.2f}")
    if row.chooser:
        cells.append(f"chosen {row.chosen.value:.2f}")
    return "  ".join(cells)


def _agreements(rows: Sequence[GroupAgreement]) -> list[str]:
    """How far the three kinds agree, a line for each group."""
    if not rows:
        return []
    several = len({row.arm for row in rows}) > 1
    head = f"{'Kendall tau-b':<28}" + "".join(
        f"{name:>24}" for name in ("said-believed", "said-embedded", "believed-embedded")
    )
    lines = [head]
    for row in rows:
        name = f"{row.group} ({row.arm})" if several else row.group
        cells = (row.said_believed, row.said_embedded, row.believed_embedded)
        lines.append(f"{printable(name)[:27]:<28}" + "".join(f"{_tau(e):>24}" for e in cells))
    return lines


def _tau(e: Estimate) -> str:
    return "-" if e.value != e.value else f"{e.value:+z.2f} ({e.interval('+.2f')})"
