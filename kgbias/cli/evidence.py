"""`kgbias evidence` and `replicate`: what was said, believed and embedded, in one row per triple,
and whether the beliefs are found again."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

import kgbias
from kgbias.associate.indicators import NAME_MARKS
from kgbias.cli import show
from kgbias.cli.command import Command
from kgbias.cli.options import (
    base_url_option,
    json_option,
    run_argument,
    said,
    selection_options,
    store_option,
    workers_settings,
)
from kgbias.cli.settings import fitting, setting, settings, without_shared
from kgbias.evidence import VERDICTS, ReplicationRate, Evidence, GroupAgreement, Replication, select_top_rows
from kgbias.evidence.probe_plan import FLOOR_CHOICES, EvidencePrice
from kgbias.evidence.evidence_table import NOT_PROBED, ORDERS, count_sentences
from kgbias.evidence.names import MIN_NAMES
from kgbias.graph.types import node_id
from kgbias.io.text import spoken_name
from kgbias.parallel import LOCAL_EXECUTOR
from kgbias.probe.result import Statement
from kgbias.stats.estimate import Estimate

_SHOWN = 10
_NO_VERDICT = f"or said of a group with fewer than {MIN_NAMES} names, of which nothing can be said"
_ASKING = (
    "probes", "carriers", "statements", "floor", "placebo", "marked", "executor", "processes",
)  # fmt: skip


@click.command(cls=Command, examples=("kgbias evidence smollm2 --model smollm2",))
@run_argument
@store_option
@click.option(
    "--model",
    metavar="SPEC",
    help="First probe the run with this model, and embed the run with it (default: read what "
    "the store holds).",
)
@click.option(
    "--encoder",
    metavar="SPEC",
    help="Use the vectors of this model, or of vectors:FILE (default: those of --model).",
)
@click.option(
    "--indicators",
    metavar="FILE",
    help="Your own words for groups in the vectors (see docs/how-to/word-sets.md).",
)
@setting(
    "probes",
    type=click.IntRange(1),
    metavar="N",
    help="Maximum number of probes (default: 45,000); a documented rule leaves statements out.",
)
@setting(
    "carrier",
    "carriers",
    multiple=True,
    metavar="TEXT",
    help="The text before names; give three or more; a header ends in a colon (default: nothing, "
    "the header of the crawl's own prompts, and one of ours).",
)
@click.option(
    "--statements",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="More statements: one per line, or CSV with the columns statement and category.",
)
@setting(
    "floor",
    type=click.Choice(FLOOR_CHOICES),
    help="How many of the statements to probe with made-up names (default: a fifth).",
)
@setting(
    "placebo", type=bool, default=False, help="Also probe groups about which little is believed."
)
@setting(
    "marked",
    multiple=True,
    type=click.Choice(NAME_MARKS),
    help="Include names with this mark (repeatable).",
)
@click.option("--dry-run", is_flag=True, help="Show what would be asked, and stop.")
@workers_settings
@settings("device")
@base_url_option
@selection_options
@json_option
def evidence(
    run_name: str | None, store_url: str, as_json: bool, dry_run: bool, **given: Any
) -> None:
    """Join what a run said, what a model finds probable and what its vectors hold: one row for each
    triple, with a verdict.

    A statement is believed of a group if it is likelier after the group's names than after those of
    the other groups, by more than half a bit, beyond what each name makes likelier anyway, and by
    more than the names differ among themselves (docs/methods/evidence.md). Beside it is what the
    same test finds with made-up names.
    """
    selection = {name: given[name] for name in ("arm", "min_acceptability", "without_echoes")}
    if given["executor"] == LOCAL_EXECUTOR:
        given["executor"] = None  # the library's default, which needs no --model
    if given["model"]:
        given = fitting(given, [given["model"]], "scorer")
    else:
        unused = ["executor", "processes", "base-url"]
        given = without_shared(given, unused if given["encoder"] else [*unused, "device"])
    asking: Any = said(**{name: given.pop(name) for name in _ASKING})
    with kgbias.open(store_url, progress=True) as study:
        run = study.run(run_name)
        if dry_run:
            chosen = said(**selection, indicators=given["indicators"])
            return _price(run.evidence_price(asking=asking, **chosen), as_json)
        rows = run.evidence(asking=asking, **said(**given))
        # Of several models that were asked about the run, the one that the rows are of.
        model = next((row.model for row in rows if row.model), None)
        agreement = run.evidence_agreement(model, **selection)
        probed = any(row.lift.has_interval for row in rows)
        groups = run.evidence_groups(model) if probed else None
        floor = run.evidence_floor(model) if probed else {}
    if as_json:
        return show.data(
            {
                "evidence": rows.records(),
                "groups": groups.records() if groups else [],
                "floor": floor,
                "agreement": agreement.records(),
            }
        )
    if probed:
        show.say(f"beliefs of {model}")
    print_verdicts(rows)
    _print_floor(floor)
    _print_groups(groups or ())
    _print_agreements(agreement)


def _price(price: EvidencePrice, as_json: bool) -> None:
    if as_json:
        return show.data(price)
    show.say(
        f"{price['probes']:,} probes, each name after {len(price['carriers'])} carriers: "
        f"{price['texts']:,} texts to score, names by themselves included; "
        f"{price['texts_of_groups']:,} more for the groups' own names before every statement; and "
        f"{price['embedded']:,} statements to embed if the model has vectors; less where the store "
        "holds some"
    )
    for part in price["categories"]:
        names = sum(len(own) for own in part["names"].values())
        show.say(
            f"{part['category']}: {names} names of {len(part['names'])} groups before "
            f"{part['statements']} statements ({part['not_probed']} left out); "
            f"{part['nonce_names']} made-up names before {part['floor_statements']}"
        )
        if few := part["too_few_names"]:
            show.say(
                f"  nothing can be said about {', '.join(few)}: fewer than {MIN_NAMES} "
                "names, or no other group to compare; what is found is a belief about their names"
            )


def _print_floor(floor: dict[str, Any]) -> None:
    """Print how much is believed of groups, beside how much of made-up names."""
    if floor and floor["tested"]:
        show.say(
            f"believed: {floor['believed']} of {floor['of']:,} pairs of a group and a statement; "
            f"of made-up names {floor['found']:.2f} of {floor['tested']:,} (the mean "
            "over deals)",
            "",
        )


def _print_groups(rows: Any) -> None:
    """Print the correlations that were shown: corrected p at most 0.05, and an interval that
    excludes 0."""
    shown = sorted(
        (r for r in rows if r["kind"] == "rho" and r["q_value"] <= 0.05 and _leaves_out_none(r)),
        key=lambda r: r["p_value"],
    )
    if not shown:
        return
    show.say(
        "how a group's lifts go with the statements' scores (rho, mean over its names; corrected "
        "p at most 0.05, the smallest first):"
    )
    show.table(
        ("", "", ">", ""),
        (
            (
                r["group"],
                spoken_name(r["score"]),
                f"{r['value']:+.2f}",
                f"({r['low']:+.2f} to {r['high']:+.2f})",
            )
            for r in shown[:_SHOWN]
        ),
        indent=2,
    )
    show.say()


def _leaves_out_none(row: dict[str, Any]) -> bool:
    return bool(row["low"] > 0 or row["high"] < 0)


def print_verdicts(rows: Sequence[Evidence]) -> None:
    """Print the most telling statements of each verdict; of those without one, only such as were
    probed, for a group with too few names, or that stories make too."""
    for name in dict.fromkeys((*VERDICTS, *(row.verdict for row in rows))):
        own = [row for row in rows if row.verdict == name]
        if not own:
            continue
        unsaid = _NO_VERDICT if any(row.lift.n for row in own) else ""
        meaning = f" ({text})" if name and (text := VERDICTS.get(name, unsaid)) else ""
        count = count_sentences(own)
        head = f"{name}: {count:,} statement{'' if count == 1 else 's'}{meaning}"
        if name == NOT_PROBED:
            own = [row for row in own if row.lift.has_interval or row.told.has_interval]
        if name in ORDERS and count_sentences(own) > _SHOWN:
            head += f"; {ORDERS[name]}"
        show.say(head)
        cells = [_cells(row) for row in select_top_rows(own, _SHOWN)]
        columns = [n for n, column in enumerate(zip(*cells, strict=True)) if any(column)]
        if cells:
            show.table([""] * len(columns), ([row[n] for n in columns] for row in cells), indent=2)
        show.say()


def _cells(row: Evidence) -> tuple[str, ...]:
    """What was said, believed, embedded, chosen and told in stories, each "" if unknown, and the
    sentence."""
    lift = f"lift {row.lift.value:>+6.2f} bits ({row.lift.interval('+.1f')})"
    return (
        f"said {row.times:>3}",
        lift if row.lift.has_interval else "",
        f"association {row.association.value:>+5.2f}" if row.vectors else "",
        f"chosen {row.chosen.value:.2f}" if row.chosen.value == row.chosen.value else "",
        f"stories {row.told.value:.2f}" if row.told.has_interval else "",
        row.sentence[:70],
    )


def _print_agreements(rows: Sequence[GroupAgreement]) -> None:
    """Print how far the three kinds agree, a line for each group."""
    if not rows:
        return
    several = len({row.arm for row in rows}) > 1
    show.table(
        ("Kendall tau-b", ">said-believed", ">said-embedded", ">believed-embedded"),
        (
            (
                f"{row.group} ({row.arm})" if several else row.group,
                *map(_tau, (row.said_believed, row.said_embedded, row.believed_embedded)),
            )
            for row in rows
        ),
    )


def _tau(e: Estimate) -> str:
    return "-" if e.value != e.value else f"{e.value:+z.2f} ({e.interval('+.2f')})"


_WAYS = {
    "names": "believed with half of each group's names, tried with the other half",
    "roots": "believed with the names of one root, tried with those of another",
    "carriers": "tried with other carriers",
    "crawl": "tried in the other run, where it probed the statement",
}


@click.command(cls=Command, examples=("kgbias replicate smollm2 --model smollm2",))
@run_argument
@store_option
@click.option(
    "--model",
    metavar="SPEC",
    help="Ask the model again with other carriers (default: ask nothing).",
)
@setting(
    "carrier",
    "carriers",
    multiple=True,
    metavar="TEXT",
    help="The text before names; give three or more (default: three that were not used).",
)
@click.option("--other", metavar="RUN", help="Look up the findings in another run of the store.")
@settings("device")
@base_url_option
@workers_settings
@json_option
def replicate(run_name: str | None, store_url: str, as_json: bool, **given: Any) -> None:
    """Test again what a model was found to believe: with held-out names, with other carriers, or in
    another crawl."""
    if given["executor"] == LOCAL_EXECUTOR:
        given["executor"] = None
    model = given["model"]
    given = fitting(given, [model], "scorer") if model else without_shared(given)
    with kgbias.open(store_url, progress=True) as study:
        run = study.run(run_name)
        found = run.replicate(**said(**given))
        sentences = {
            (node_id("group", row.group), Statement(row.predicate, row.object).id): row.sentence
            for row in run.evidence()
        }
    if as_json:
        return show.data(_replication(found))
    show.say(f"beliefs of {found.belief_run.model.title}, tried again")
    for way in found.rates:
        for line in _ways(way, sentences):
            show.say(line)


def _replication(found: Replication) -> dict[str, Any]:
    return {
        "model": found.belief_run.model.title,
        "ways": [
            {
                "by": way.by, "tried": way.tried, "same_sign": way.same_sign.as_dict(),
                "found_again": way.found_again.as_dict(), "missed": [list(p) for p in way.missed],
            }
            for way in found.rates
        ],
        "findings": [
            {"group": group, "statement": statement, "found_again": share}
            for (group, statement), share in found.shares_by_finding.items()
        ],
    }  # fmt: skip


def _ways(way: ReplicationRate, sentences: Mapping[tuple[str, str], str]) -> Iterator[str]:
    if not way.tried:
        yield f"{_WAYS[way.by]}: nothing to try"
        return
    same, found = (
        f"{e.value:.1%}" + (f" ({e.interval('.1%')})" if e.has_interval else "")
        for e in (way.same_sign, way.found_again)
    )
    yield f"{_WAYS[way.by]}: of {way.tried} the same sign {same}, p < .05 there {found}"
    if way.missed:
        head = (
            "found again in less than half of the halves"
            if way.by == "names"
            else ("not found again")
        )
        yield f"  {head}: {len(way.missed)} findings of the run"
        for place in way.missed[:_SHOWN]:
            yield f"    {sentences.get(place, ' '.join(place))[:90]}"
