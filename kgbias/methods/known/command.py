"""`kgbias known`: what a run says, or a model believes, held against stereotypes that people
recorded."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import click

import kgbias
from kgbias.cli import show
from kgbias.cli.command import Command
from kgbias.cli.options import (
    base_url_option,
    drop_unset,
    encoding_option,
    json_option,
    library_default,
    run_name_argument,
    selection_options,
    store_option,
)
from kgbias.cli.settings import drop_shared, keep_applicable, setting, shared_settings
from kgbias.cli.show import Output
from kgbias.errors import StoreError, UsageError
from kgbias.graph.stereotypes import MARK_MEANINGS
from kgbias.io.columns import Column
from kgbias.io.wording import pluralise
from kgbias.methods.known import match_stereotypes, recorded_agreement
from kgbias.methods.known.agreement import (
    AgreementFigure,
    RecordedAgreement,
    figure_rows,
)
from kgbias.methods.known.matching import (
    MIN_GROUPS,
    MarkedStatement,
    StereotypeComparison,
)
from kgbias.models.spec import parse_spec
from kgbias.stats.estimate import Estimate, nan_to_none

_MAX_SHOWN = 10


@click.command(
    cls=Command,
    examples=(
        "kgbias known smollm2 --table stereotypes.csv",
        "kgbias known smollm2 --table stereotypes.csv --model smollm2",
        "kgbias known hf:gpt2 --table stereotypes.csv",
    ),
)
@run_name_argument
@store_option
@click.option(
    "--table",
    default=library_default(match_stereotypes, "table"),
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
@setting(
    "kind-column",
    metavar="NAME",
    help="The column that says trait or thing (default: by a rule for English).",
)
@click.option(
    "--indicators", metavar="FILE", help="Your own names for groups (see docs/how-to/groups.md)."
)
@setting(
    "probes",
    type=click.IntRange(1),
    metavar="N",
    help="Maximum number of probes of the run's own statements; of a model alone, of the recorded "
    "ones (default: 45,000).",
)
@shared_settings("device")
@base_url_option
@selection_options
@json_option
def known(run_name: str | None, store_url: str, **options: Any) -> Output:
    """Hold what a run says against stereotypes that people recorded: each statement is known,
    related or new, and each recorded stereotype was said or not. With the spec of a model in place
    of a run, hold only what the model finds likely against them.

    Known means that the table records it about this group: neither that it is true nor that many
    people think so (docs/how-to/benchmark.md). The marks are kept with the run: report, explore,
    export and query show them from then on.
    """
    model = options["model"]
    if run_name and model is None and _names_model(run_name, store_url):
        return _show_model(run_name, options)
    options = (
        keep_applicable(options, [model], "scorer") if model else drop_shared(options, ["base-url"])
    )
    with kgbias.open(store_url, progress=True) as study:
        run = study.run(run_name)
        comparison = match_stereotypes(run, **drop_unset(**options))
    data = {"run": run.name, **_comparison_record(comparison)}
    return Output(data, lambda: _print_comparison(comparison))


def _print_comparison(comparison: StereotypeComparison) -> None:
    for line in _summary_lines(comparison):
        show.say(line)
    show.say()
    _print_agreement(comparison.agreement)
    for mark in MARK_MEANINGS:
        _print_marked(mark, [row for row in comparison.rows if row.mark == mark])
    _print_unrecorded(comparison)


_MODEL_OPTIONS = (
    "table",
    "group_column",
    "attribute_column",
    "offensiveness_column",
    "kind_column",
    "probes",
    "device",
    "base_url",
)


def _names_model(name: str, store_url: str) -> bool:
    """Whether this is the spec of a model, and names no run of the store, if there is one."""
    try:
        parse_spec(name)
    except UsageError:
        return False
    try:
        with kgbias.open(store_url, progress=False) as study:
            study.run(name)
    except StoreError:
        return True
    return False


def _show_model(spec: str, options: dict[str, Any]) -> Output:
    others = {name: value for name, value in options.items() if name not in _MODEL_OPTIONS}
    for name, value in drop_unset(**others).items():
        if value not in ((), False):
            raise UsageError(f"--{name.replace('_', '-')} applies to a run, and {spec!r} is none")
    chosen = {name: options[name] for name in _MODEL_OPTIONS if name in options}
    with kgbias.open(None, progress=True) as study:
        found = recorded_agreement(study, spec, **drop_unset(**chosen))
    return Output(_agreement_record(found), lambda: _print_model(found))


def _print_model(found: RecordedAgreement) -> None:
    show.say(
        f"{found.model}: {len(found.table.attributes)} attributes that {found.source} records, "
        f"{pluralise(len(found.table.groups), 'group')}; {found.unasked} attributes were not asked"
    )
    if found.unused_groups:
        listed = ", ".join(found.unused_groups[:5])
        more = f" and {len(found.unused_groups) - 5} more" if len(found.unused_groups) > 5 else ""
        show.say(f"not asked: {listed}{more}")
    show.say()
    _print_agreement(found.figures)
    for strongest in found.strongest:
        show.say(
            f"of the {strongest.entries} strongest lifts of {strongest.kind}s people recorded "
            f"{strongest.recorded}; by chance {strongest.chance:.0f} (95% below "
            f"{strongest.chance_high:.0f})"
        )


def _agreement_record(found: RecordedAgreement) -> dict[str, Any]:
    table = found.table
    return {
        "model": found.model,
        "table": found.source,
        "figures": figure_rows(found.figures),
        "strongest": [asdict(strongest) for strongest in found.strongest],
        "groups": {group.name: list(found.names[group.id]) for group in table.groups},
        "attributes": dict(zip(table.attributes, table.kinds, strict=True)),
        "not_used": list(found.unused_groups),
        "not_asked": found.unasked,
    }


def _print_agreement(figures: Sequence[AgreementFigure]) -> None:
    """A line for each figure, chance and floor beside it."""
    if not figures:
        return
    show.say("agreement with people: AUC of the lifts (.5 is chance)")
    has_categories = any(figure.category for figure in figures)
    show.print_table(
        (
            *(("",) if has_categories else ()),
            "",
            "",
            "",
            Column("auc", ".2f", interval=True),
            "over groups",
            "floor",
            Column("entries", "d"),
        ),
        (
            (
                *((figure.category,) if has_categories else ()),
                f"{figure.kind}s",
                figure.direction,
                f"by {figure.by}" if figure.by in ("attribute", "group") else figure.by,
                figure.auc,
                _format_ends(figure.low_over_groups, figure.high_over_groups),
                _format_ends(figure.floor, figure.floor_high, " below "),
                figure.entries,
            )
            for figure in figures
        ),
        indent=2,
    )
    show.say()


def _format_ends(low: float, high: float, between: str = " to ") -> str:
    return "" if low != low else f"{low:.2f}{between}{high:.2f}"


def _comparison_record(comparison: StereotypeComparison) -> dict[str, Any]:
    return {
        "table": comparison.source,
        "shares": {name: share.as_dict() for name, share in comparison.shares.items()},
        "groups": comparison.summarise_groups(),
        "groups_not_recorded": list(comparison.missing_groups),
        "model": comparison.model,
        "floor": dict(comparison.floor),
        "believed_not_recorded": [
            {"group": belief.group, "statement": belief.statement, "lift": belief.lift.as_dict()}
            for belief in comparison.unrecorded_beliefs
        ],
        "agreement": figure_rows(comparison.agreement),
        "precision": [asdict(precision) for precision in comparison.precision],
        "statements": [_statement_record(row) for row in comparison.rows],
        "recorded": [
            nan_to_none(
                {
                    **asdict(entry.entry),
                    "of": entry.group,
                    "statements": entry.statements,
                    "said_of_other_groups": entry.elsewhere,
                    "believed": entry.believed,
                    "lift": entry.lift.as_dict(),
                    "believed_of_other_groups": entry.believed_elsewhere,
                }
            )
            for entry in comparison.entries
        ],
    }


def _statement_record(row: MarkedStatement) -> dict[str, Any]:
    triple, stereotype = row.triple, row.entry
    record: dict[str, Any] = nan_to_none(
        {
            "id": triple.id,
            "group": triple.group,
            "predicate": triple.predicate,
            "object": triple.object,
            "arm": triple.arm,
            "said": triple.count,
            "mark": row.mark,
            "by": row.by,
            "similarity": row.similarity,
            "attribute": stereotype.attribute if stereotype else None,
            "offensiveness": stereotype.offensiveness if stereotype else None,
        }
    )
    return record


def _summary_lines(comparison: StereotypeComparison) -> list[str]:
    shares, groups = comparison.shares, len({entry.group for entry in comparison.entries})
    recorded = len(comparison.entries)
    times = sum(entry.statements > 0 for entry in comparison.entries)
    lines = [
        f"{comparison.source} records {recorded} stereotypes of {groups} of the run's groups; "
        f"{comparison.unused_count} of other groups were not used",
        f"the run says {times} of them of their group: {_format_share(shares['said'])}; of "
        f"another group "
        f"of the category instead: {_format_share(shares['elsewhere'])}; difference "
        f"{_format_share(shares['beyond'], '+')}"
        + (f" (with intervals from {MIN_GROUPS} groups on)" if groups < MIN_GROUPS else ""),
    ]
    entries_asked = [entry for entry in comparison.entries if entry.believed is not None]
    if entries_asked:
        believed, floor = sum(bool(entry.believed) for entry in entries_asked), comparison.floor
        lines.append(
            f"{comparison.model} was asked about {len(entries_asked)} and believes {believed} of "
            f"their group: "
            f"{_format_share(shares['believed'])}; of another group of the category instead: "
            f"{_format_share(shares['believed_elsewhere'])}; difference "
            f"{_format_share(shares['believed_beyond'], '+')}; of made-up names the same test "
            f"finds "
            f"{floor['found'] / max(floor['tested'], 1):.1%} of all statements that were asked"
        )
    lines += map(str, comparison.precision)
    if comparison.missing_groups:
        lines.append(f"not in the table, so not marked: {', '.join(comparison.missing_groups)}")
    return lines


def _format_share(estimate: Estimate, sign: str = "") -> str:
    if estimate.value != estimate.value:
        return "-"
    interval_text = f" ({estimate.format_interval(f'{sign}.1%')})" if estimate.is_shown else ""
    return f"{estimate.value:{sign}.1%}{interval_text}"


def _print_marked(mark: str, rows: Sequence[MarkedStatement]) -> None:
    if not rows:
        return
    distinct = {row.triple.id for row in rows}
    show.say(
        f"{mark}: {len(distinct)} statement{'s' * (len(distinct) != 1)} ({MARK_MEANINGS[mark]})"
    )
    has_several_arms = len({row.triple.arm for row in rows}) > 1
    order = sorted(rows, key=lambda r: (-r.triple.count, -_offensiveness(r), r.triple.sentence))
    show.print_table(
        ("", "", "", ""),
        (
            (
                f"said {row.triple.count:>3}",
                row.triple.sentence[:70] + (f" ({row.triple.arm})" if has_several_arms else ""),
                f"recorded: {row.entry.attribute}, by {row.by}" if row.entry else "",
                "" if _offensiveness(row) < -1 else f"offensiveness {_offensiveness(row):+.1f}",
            )
            for row in order[:_MAX_SHOWN]
        ),
        indent=2,
    )
    show.say()


def _print_unrecorded(comparison: StereotypeComparison) -> None:
    if not comparison.unrecorded_beliefs:
        return
    count = len(comparison.unrecorded_beliefs)
    show.say(
        f"believed, and the table records nothing similar about this group: {count} "
        f"statement{'s' * (count != 1)}"
    )
    show.print_table(
        ("", Column("", "+.2f")),
        (
            (f"{belief.group} {belief.statement}"[:70], f"lift {belief.lift.value:+.2f} bits")
            for belief in comparison.unrecorded_beliefs[:_MAX_SHOWN]
        ),
        indent=2,
    )
    show.say()


def _offensiveness(row: MarkedStatement) -> float:
    value = row.entry.offensiveness if row.entry else float("nan")
    return value if value == value else float("-inf")
