"""`kgbias known`: what a run says, held against stereotypes that people recorded."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import click

import kgbias
from kgbias.cli import show
from kgbias.cli.command import Command
from kgbias.cli.options import (
    base_url_option,
    default,
    encoding_option,
    json_option,
    run_argument,
    said,
    selection_options,
    store_option,
)
from kgbias.cli.settings import fitting, setting, settings, without_shared
from kgbias.evidence.stereotype_matching import MARK_MEANINGS, StereotypeComparison, MarkedStatement
from kgbias.stats.estimate import Estimate, nan_to_none

_OF = kgbias.Run.match_stereotypes
_SHOWN = 10


@click.command(
    cls=Command,
    examples=(
        "kgbias known smollm2 --table stereotypes.csv",
        "kgbias known smollm2 --table stereotypes.csv --model smollm2",
    ),
)
@run_argument
@store_option
@click.option(
    "--table",
    default=default(_OF, "table"),
    show_default=True,
    metavar="FILE",
    help="The recorded stereotypes: a table, StereoSet's JSON, or the shipped part of SeeGULL.",
)
@encoding_option
@click.option(
    "--model",
    metavar="SPEC",
    help="First ask this model what it believes, of the recorded stereotypes too (default: read "
    "what the store holds).",
)
@setting(
    "group-column", metavar="NAME", help="The column of the groups (default: group or identity)."
)
@setting(
    "attribute-column", metavar="NAME", help="The column of the attributes (default: attribute)."
)
@setting(
    "offensiveness-column",
    metavar="NAME",
    help="The column of how offensive they are (default: offensiveness, or that of SeeGULL).",
)
@click.option(
    "--indicators", metavar="FILE", help="Your own names for groups (see docs/how-to/word-sets.md)."
)
@setting(
    "probes",
    type=click.IntRange(1),
    metavar="N",
    help="Maximum number of probes of the run's own statements (default: 45,000).",
)
@settings("device")
@base_url_option
@selection_options
@json_option
def known(run_name: str | None, store_url: str, as_json: bool, **given: Any) -> None:
    """Hold what a run says against stereotypes that people recorded: each statement is known,
    related or new, and each recorded stereotype was said or not.

    Known means that the table records it about this group: neither that it is true nor that many
    people think so (docs/how-to/known.md). The marks are kept with the run: report, explore, export
    and query show them from then on.
    """
    model = given["model"]
    given = fitting(given, [model], "scorer") if model else without_shared(given, ["base-url"])
    with kgbias.open(store_url, progress=True) as study:
        run = study.run(run_name)
        found = run.match_stereotypes(**said(**given))
    if as_json:
        return show.data({"run": run.name, **_data(found)})
    for line in _lines(found):
        show.say(line)
    show.say()
    for mark in MARK_MEANINGS:
        _print(mark, [row for row in found.rows if row.mark == mark])
    _print_unrecorded(found)


def _data(found: StereotypeComparison) -> dict[str, Any]:
    return {
        "table": found.source,
        "shares": {name: share.as_dict() for name, share in found.shares.items()},
        "groups": found.summarise_groups(),
        "groups_not_recorded": list(found.missing_groups),
        "model": found.model,
        "floor": dict(found.floor),
        "believed_not_recorded": [
            {"group": each.group, "statement": each.statement, "lift": each.lift.as_dict()}
            for each in found.unrecorded_beliefs
        ],
        "statements": [_statement(row) for row in found.rows],
        "recorded": [
            nan_to_none({**asdict(each.entry), "of": each.group, "statements": each.statements,
                    "said_of_other_groups": each.elsewhere, "believed": each.believed,
                    "lift": each.lift.as_dict(),
                    "believed_of_other_groups": each.believed_elsewhere})
            for each in found.entries
        ],
    }  # fmt: skip


def _statement(row: MarkedStatement) -> dict[str, Any]:
    t, entry = row.triple, row.entry
    found: dict[str, Any] = nan_to_none(
        {
            "id": t.id, "group": t.group, "predicate": t.predicate, "object": t.object,
            "arm": t.arm, "said": t.count, "mark": row.mark, "by": row.by,
            "similarity": row.similarity, "attribute": entry.attribute if entry else None,
            "offensiveness": entry.offensiveness if entry else None,
        }
    )  # fmt: skip
    return found


def _lines(found: StereotypeComparison) -> list[str]:
    shares, groups = found.shares, len({entry.group for entry in found.entries})
    recorded = len(found.entries)
    times = sum(entry.statements > 0 for entry in found.entries)
    lines = [
        f"{found.source} records {recorded} stereotypes of {groups} of the run's groups; "
        f"{found.unused_count} of other groups were not used",
        f"the run says {times} of them of their group: {_share(shares['said'])}; of another group "
        f"of the category instead: {_share(shares['elsewhere'])}; difference "
        f"{_share(shares['beyond'], '+')}",
    ]
    asked = [entry for entry in found.entries if entry.believed is not None]
    if asked:
        believed, floor = sum(bool(entry.believed) for entry in asked), found.floor
        lines.append(
            f"{found.model} was asked about {len(asked)} and believes {believed} of their group: "
            f"{_share(shares['believed'])}; of another group of the category instead: "
            f"{_share(shares['believed_elsewhere'])}; difference "
            f"{_share(shares['believed_beyond'], '+')}; of made-up names the same test finds "
            f"{floor['found'] / max(floor['tested'], 1):.1%} of all statements that were asked"
        )
    if found.missing_groups:
        lines.append(f"not in the table, so not marked: {', '.join(found.missing_groups)}")
    return lines


def _share(e: Estimate, sign: str = "") -> str:
    if e.value != e.value:
        return "-"
    between = f" ({e.interval(f'{sign}.1%')})" if e.has_interval else ""
    return f"{e.value:{sign}.1%}{between}"


def _print(mark: str, rows: Sequence[MarkedStatement]) -> None:
    if not rows:
        return
    distinct = {row.triple.id for row in rows}
    show.say(f"{mark}: {len(distinct)} statement{'s' * (len(distinct) != 1)} ({MARK_MEANINGS[mark]})")
    several = len({row.triple.arm for row in rows}) > 1
    order = sorted(rows, key=lambda r: (-r.triple.count, -_rating(r), r.triple.sentence))
    show.table(
        ("", "", "", ""),
        (
            (
                f"said {row.triple.count:>3}",
                row.triple.sentence[:70] + (f" ({row.triple.arm})" if several else ""),
                f"recorded: {row.entry.attribute}, by {row.by}" if row.entry else "",
                "" if _rating(row) < -1 else f"offensiveness {_rating(row):+.1f}",
            )
            for row in order[:_SHOWN]
        ),
        indent=2,
    )
    show.say()


def _print_unrecorded(found: StereotypeComparison) -> None:
    if not found.unrecorded_beliefs:
        return
    count = len(found.unrecorded_beliefs)
    show.say(
        f"believed, and the table records nothing similar about this group: {count} "
        f"statement{'s' * (count != 1)}"
    )
    show.table(
        ("", ">"),
        (
            (f"{each.group} {each.statement}"[:70], f"lift {each.lift.value:+.2f} bits")
            for each in found.unrecorded_beliefs[:_SHOWN]
        ),
        indent=2,
    )
    show.say()


def _rating(row: MarkedStatement) -> float:
    value = row.entry.offensiveness if row.entry else float("nan")
    return value if value == value else float("-inf")
