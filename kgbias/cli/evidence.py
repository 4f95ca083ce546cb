"""`kgbias evidence`: said, believed and embedded, in one row for each triple."""

from collections.abc import Sequence
from typing import Any

import click

import kgbias
from kgbias.cli.flags import as_flags, said
from kgbias.cli.options import (
    default,
    json_option,
    print_json,
    printable,
    run_argument,
    selection_options,
    store_option,
)
from kgbias.estimate import Estimate
from kgbias.evidence import VERDICTS, Evidence, GroupAgreement, telling

_OF = kgbias.Run.evidence
_SHOWN = 10


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
    "--rank",
    type=click.IntRange(1),
    default=default(_OF, "rank"),
    show_default=True,
    help="The group's rank among all groups, for a statement to be believed of it, at most.",
)
@click.option(
    "--margin",
    type=click.FloatRange(0),
    default=default(_OF, "margin"),
    show_default=True,
    metavar="BITS",
    help="By how much it must be likelier of the group than of the others, at least.",
)
@click.option(
    "--level",
    type=click.FloatRange(0, 1, min_open=True),
    default=default(_OF, "level"),
    show_default=True,
    metavar="P",
    help="Its corrected p-value, at most.",
)
@click.option("--device", metavar="NAME", help="Where models run: auto, cpu, cuda, cuda:N or mps.")
@click.option("--base-url", metavar="URL", help="The server of --model openai:ID.")
@selection_options
@json_option
def evidence(run_name: str | None, store_url: str, as_json: bool, **given: Any) -> None:
    """Join what a run said, what a model finds probable and what its vectors hold: one row for each
    triple, with a verdict.

    A statement is believed of a group if it is likelier of this group than of the others: the group
    ranks first, the lift over its base rate is at least --margin bits, and its corrected p-value
    is at most --level.
    """
    selection = {name: given[name] for name in ("arm", "min_acceptability", "without_echoes")}
    with as_flags(), kgbias.open(store_url, progress=True) as study:
        run = study.run(run_name)
        rows, agreement = run.evidence(**said(**given)), run.evidence_agreement(**selection)
    if as_json:
        return print_json({"evidence": rows.records(), "agreement": agreement.records()})
    for line in (*_verdicts(rows), *_agreements(agreement)):
        click.echo(line)


def _verdicts(rows: Sequence[Evidence]) -> list[str]:
    """The most telling statements of each verdict."""
    lines: list[str] = []
    for name in dict.fromkeys((*VERDICTS, *(row.verdict for row in rows))):
        own = [row for row in rows if row.verdict == name]
        if not own:
            continue
        lines += [f"{name}: {len(own)} statement{'' if len(own) == 1 else 's'}"]
        if meaning := VERDICTS.get(name):
            lines[-1] += f" ({meaning})"
        for row in telling(own, _SHOWN):
            lines.append(f"  {_cells(row)}  {printable(row.sentence)[:70]}")
        lines.append("")
    return lines


def _cells(row: Evidence) -> str:
    cells = [f"said {row.count:>3}"]
    if row.rank is not None:
        cells += [f"rank {row.rank} of {row.of}", f"lift {row.lift.value:>+6.2f} bits"]
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
    return "-" if e.value != e.value else f"{e.value:+.2f} ({e.interval('+.2f')})"
