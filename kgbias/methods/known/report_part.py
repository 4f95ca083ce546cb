"""What tables of recorded stereotypes have about a run (`kgbias known`), as exhibits."""

import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from kgbias.evidence.evidence_table import summarise_floor
from kgbias.graph.stereotypes import StereotypeMatches
from kgbias.io.columns import CellWithForm, Column
from kgbias.report.parts import ReportPart, SectionOfExhibits
from kgbias.report.run_data import RunData
from kgbias.report.tables import (
    COUNT_COLUMN,
    GROUP_COLUMN,
    LIFT_COLUMN,
    STATEMENT_COLUMN,
    Cell,
    Exhibit,
    Table,
)

if TYPE_CHECKING:
    from kgbias.report.multi_run_data import MultiRunData

_MAX_TABLE_ROWS = 25  # beliefs that nobody recorded
_SHARE_COLUMNS = (Column("Of the"), Column("share that is"))
_AVERAGE = "of another group, on average"
_SHARE_ROWS = (  # the share, what it is of, what it says, and its form
    ("said", "recorded stereotypes", "said of their group", ".1%"),
    ("elsewhere", "recorded stereotypes", f"said {_AVERAGE}", ".1%"),
    ("beyond", "recorded stereotypes", "difference of the two", "+.1%"),
    ("believed", "recorded stereotypes asked about", "believed of their group", ".1%"),
    ("believed_elsewhere", "recorded stereotypes asked about", f"believed {_AVERAGE}", ".1%"),
    ("believed_beyond", "recorded stereotypes asked about", "difference of the two", "+.1%"),
    ("known", "distinct statements", "recorded about their group", ".1%"),
    ("related", "distinct statements", "near something recorded about their group", ".1%"),
    ("new", "distinct statements", "near nothing recorded about their group", ".1%"),
)


def stereotype_exhibits(data: RunData, place: str) -> Iterator[Exhibit]:
    """For each table that the run was held against, what of it is said and believed, and the
    strongest beliefs to which it has nothing similar."""
    for number, matches in enumerate(data.stored.stereotype_matches(), 1):
        key = f"{place}-recorded" + (f"-{number}" if number > 1 else "")
        yield _share_exhibit(matches, key, data)
        if matches.record["unrecorded"]:
            yield _unrecorded_exhibit(matches, f"{key}-not")


def _share_exhibit(matches: StereotypeMatches, key: str, data: RunData) -> Exhibit:
    shares = matches.shares
    rows = []
    for name, base, statement, form in _SHARE_ROWS:
        share = shares[name]
        if not math.isnan(share.value):
            rows.append([base, statement, CellWithForm(share, form), share.n])
    source = matches.table.name
    return Exhibit(
        key,
        "",
        f"Recorded in {source}",
        "",
        None,
        Table(
            key,
            f"Stereotypes of {len({each.group for each in matches.heard})} of the run's groups "
            f"that the table named {source} records, and the run's statements about these groups.",
            (*_SHARE_COLUMNS, Column("share", ".1%", interval=True), COUNT_COLUMN),
            rows,
            _share_note(matches, data),
        ),
    )


class _RunMatches(NamedTuple):
    """A run, and how it was held against a table."""

    data: RunData
    matches: StereotypeMatches


def stereotype_comparison_exhibits(data: "MultiRunData", place: str) -> Iterator[Exhibit]:
    """For each table that at least two of the runs were held against, their shares side by side."""
    tables: dict[str, list[_RunMatches]] = {}
    for side in data.sides:
        for matches in side.run_data.stored.stereotype_matches():
            tables.setdefault(matches.table.id, []).append(_RunMatches(side.run_data, matches))
    shared = [same_table for same_table in tables.values() if len(same_table) > 1]
    for number, same_table in enumerate(shared, 1):
        yield _comparison_exhibit(
            same_table, f"{place}-recorded" + (f"-{number}" if number > 1 else "")
        )


def _comparison_exhibit(matches_by_run: list[_RunMatches], key: str) -> Exhibit:
    shares = [run.matches.shares for run in matches_by_run]
    rows = []
    for name, base, statement, form in _SHARE_ROWS:
        estimates = [each[name] for each in shares]
        if any(e.value == e.value for e in estimates):
            row: list[Cell] = [base, statement]
            for e in estimates:
                row += [CellWithForm(e, form), None if math.isnan(e.value) else e.n]
            rows.append(row)
    source = matches_by_run[0].matches.table.name
    run_columns = []
    for run in matches_by_run:
        name = run.data.run.name
        run_columns.append(Column(name, ".1%", interval=True, title=name))
        run_columns.append(Column(f"n of {name}", ".0f", title=f"n of {name}"))
    return Exhibit(
        key,
        "",
        f"Recorded in {source}",
        "",
        None,
        Table(
            key,
            f"Stereotypes of each run's groups that the table named {source} records, and the "
            "statements of each run about these groups.",
            (*_SHARE_COLUMNS, *run_columns),
            rows,
            _comparison_note(matches_by_run),
        ),
    )


def _comparison_note(matches_by_run: list[_RunMatches]) -> str:
    sought_by_run = [
        {(each.group, each.entry.attribute) for each in run.matches.heard} for run in matches_by_run
    ]
    lines = [*_reading_notes(matches_by_run[0].matches)]
    if any(own != sought_by_run[0] for own in sought_by_run):
        lines.append(
            "The runs have different groups, so these are not shares of the same stereotypes."
        )
    models_asked = [
        f"{run.matches.record['model']} ({run.data.run.name})"
        for run in matches_by_run
        if run.matches.record["model"]
    ]
    if models_asked:
        lines.append(f"Believed: by {' and '.join(models_asked)}.")
    for run in matches_by_run:
        lines += [f"{run.data.run.name}: {line}" for line in _outdated_notes(run.matches, run.data)]
    lines.append("Whether two runs differ in these shares is not tested.")
    return " ".join(lines)


def _reading_notes(matches: StereotypeMatches) -> tuple[str, ...]:
    """How to read the shares of a table."""
    table = matches.table
    license = f" ({table.license})" if table.license else ""
    return (
        f"Recorded means that {table.name}{license} has the same claim about the same group: the "
        "annotators of that table recorded it, which makes it neither true nor common.",
        "A model that says something of every group also says it of the one it is recorded of: "
        "only the difference tells whether it is tied to the group.",
        "On labelled pairs of two small models the rules missed more matches than they found "
        "wrongly: read the shares said and recorded as rough lower bounds. Intervals are over "
        "groups.",
    )


def _share_note(matches: StereotypeMatches, data: RunData) -> str:
    record = matches.record
    lines = [*_reading_notes(matches)]
    if record["model"]:
        asked_count = sum(each.believed is not None for each in matches.heard)
        sample_note = "; these are not a random sample" if asked_count < len(matches.heard) else ""
        lines.append(
            f"Believed: by {record['model']}, which was asked about {asked_count} of the "
            f"{len(matches.heard)}{sample_note}."
        )
    if (floor := record["floor"]).get("tested"):
        lines.append(
            "Of made-up names, the same test finds "
            f"{floor['found'] / floor['tested']:.1%} of all statements that were asked about."
        )
    if missing_groups := record["without"]:
        first_groups = ", ".join(missing_groups[:5]) + (
            f" and {len(missing_groups) - 5} more" if len(missing_groups) > 5 else ""
        )
        lines.append(f"The table has nothing about {first_groups}.")
    lines += _outdated_notes(matches, data)
    return " ".join(lines)


def _outdated_notes(matches: StereotypeMatches, data: RunData) -> Iterator[str]:
    """What has changed since the run was held against the table."""
    record = matches.record
    if (stored_counts := record["counted"]) != (current_counts := data.counted.as_dict()):
        yield (
            f"These figures are of the {_count_statements(stored_counts):,} statements that "
            f"counted when kgbias known "
            f"was run; this report counts {_count_statements(current_counts):,}, by another "
            f"selection or in a later state "
            "of the run. To bring them up to date, run it again with the selection of this report."
        )
    of_model = [
        summarise_floor(b.record) for b in data.belief_runs if b.model.title == record["model"]
    ]
    if record["model"] and not any(record["floor"].items() <= floor.items() for floor in of_model):
        yield (
            "The model was probed again or renamed since, or the run is without its probes: what "
            "is believed here is from before."
        )


def _count_statements(counted: Mapping[str, Any]) -> int:
    """How many statements counted, of `SelectedStatements.as_dict`."""
    return int(counted["statements"] - sum(counted["left_out"].values()))


def _unrecorded_exhibit(matches: StereotypeMatches, key: str) -> Exhibit:
    rows = [
        [each.group, each.statement, each.lift, each.lift.n]
        for each in matches.strongest[:_MAX_TABLE_ROWS]
    ]
    count, source = matches.record["unrecorded"], matches.table.name
    more_note = f" {count - len(rows):,} more are not listed." if count > len(rows) else ""
    return Exhibit(
        key,
        "",
        f"Believed, and not recorded in {source}",
        "",
        None,
        Table(
            key,
            f"What {matches.record['model']} believes of a group although the table named "
            f"{source} records nothing similar about it.",
            (
                GROUP_COLUMN,
                STATEMENT_COLUMN,
                LIFT_COLUMN,
                Column("names", ".0f"),
            ),
            rows,
            "Lifts in bits, with intervals over the group's names; greatest first. Nobody recorded "
            f"these in this table; other people may hold them.{more_note}",
        ),
    )


REPORT_PART = ReportPart(
    of_run=stereotype_exhibits,
    sections=(
        SectionOfExhibits(
            "recorded",
            "Recorded by people",
            "How many of the stereotypes that people recorded about these groups the model says, "
            "and believes, and what it believes that they did not record. Recorded means by the "
            "annotators of that table: neither true nor common.",
            ("recorded",),
            after="probes",
        ),
    ),
    of_runs=stereotype_comparison_exhibits,
    sections_of_runs=(
        SectionOfExhibits(
            "recorded",
            "Recorded by people",
            "How many of the stereotypes that people recorded about these groups each run says, "
            "and each model believes. Recorded means by the annotators of that table: neither "
            "true nor common.",
            ("recorded",),
            after="topics",
        ),
    ),
)
