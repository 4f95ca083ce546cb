"""What tables of recorded stereotypes have about a run (`kgbias known`), as exhibits."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from kgbias.evidence.evidence_table import summarise_floor
from kgbias.graph.stereotypes import StereotypeMatches
from kgbias.report.run_data import RunData
from kgbias.report.tables import Exhibit, Table, cells
from kgbias.stats.inference import Estimate

if TYPE_CHECKING:
    from kgbias.report.several_data import SeveralData

_TABLED = 25  # beliefs that nobody recorded
_AVERAGE = "of another group, on average"
_SHARES = (  # the share, what it is of, what it says, and its form
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


def recorded(data: RunData, place: str) -> Iterator[Exhibit]:
    """For each table that the run was held against, what of it is said and believed, and the
    strongest beliefs to which it has nothing similar."""
    for number, held in enumerate(data.recorded, 1):
        key = f"{place}-recorded" + (f"-{number}" if number > 1 else "")
        yield _shares(held, key, data)
        if held.record["unrecorded"]:
            yield _unrecorded(held, f"{key}-not")


def _shares(held: StereotypeMatches, key: str, data: RunData) -> Exhibit:
    found = held.shares
    rows = [
        [of, what, *_share(e, form)]
        for name, of, what, form in _SHARES
        if (e := found[name]).value == e.value
    ]
    source = held.table.name
    return Exhibit(
        key, "", f"Recorded in {source}", "", None,
        Table(
            key, f"Stereotypes of {len({each.group for each in held.heard})} of the run's groups "
            f"that the table named {source} records, and the run's statements about these groups.",
            ("Of the", "share that is", "share", "95% interval", "n"), rows, _note(held, data),
        ),
    )  # fmt: skip


def recorded_beside(data: "SeveralData", place: str) -> Iterator[Exhibit]:
    """For each table that at least two of the runs were held against, their shares side by side."""
    tables: dict[str, list[tuple[RunData, StereotypeMatches]]] = {}
    for side in data.sides:
        for held in side.whole.recorded:
            tables.setdefault(held.table.id, []).append((side.whole, held))
    shared = [found for found in tables.values() if len(found) > 1]
    for number, found in enumerate(shared, 1):
        yield _beside(found, f"{place}-recorded" + (f"-{number}" if number > 1 else ""))


def _beside(found: list[tuple[RunData, StereotypeMatches]], key: str) -> Exhibit:
    shares = [held.shares for _, held in found]
    rows = []
    for name, of, what, form in _SHARES:
        own = [each[name] for each in shares]
        if any(e.value == e.value for e in own):
            rows.append([of, what, *(cell for e in own for cell in _share(e, form))])
    source = found[0][1].table.name
    heads = [
        x
        for data, _ in found
        for x in (data.run.name, f"95% of {data.run.name}", f"n of {data.run.name}")
    ]
    return Exhibit(
        key, "", f"Recorded in {source}", "", None,
        Table(
            key, f"Stereotypes of each run's groups that the table named {source} records, and the "
            "statements of each run about these groups.",
            ("Of the", "share that is", *heads), rows, _note_beside(found),
        ),
    )  # fmt: skip


def _share(e: Estimate, form: str) -> list[str]:
    return [*cells(e, form), str(e.n)] if e.value == e.value else ["", "", ""]


def _note_beside(found: list[tuple[RunData, StereotypeMatches]]) -> str:
    sought = [{(each.group, each.entry.attribute) for each in held.heard} for _, held in found]
    parts = [*_about(found[0][1])]
    if any(own != sought[0] for own in sought):
        parts.append(
            "The runs have different groups, so these are not shares of the same stereotypes."
        )
    if asked := [
        f"{held.record['model']} ({data.run.name})" for data, held in found if held.record["model"]
    ]:
        parts.append(f"Believed: by {' and '.join(asked)}.")
    for data, held in found:
        parts += [f"{data.run.name}: {line}" for line in _outdated(held, data)]
    parts.append("Whether two runs differ in these shares is not tested.")
    return " ".join(parts)


def _about(held: StereotypeMatches) -> tuple[str, ...]:
    """How to read the shares of a table."""
    table = held.table
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


def _note(held: StereotypeMatches, data: RunData) -> str:
    record = held.record
    parts = [*_about(held)]
    if record["model"]:
        asked = sum(each.believed is not None for each in held.heard)
        some = "; these are not a random sample" if asked < len(held.heard) else ""
        parts.append(
            f"Believed: by {record['model']}, which was asked about {asked} of the "
            f"{len(held.heard)}{some}."
        )
    if (floor := record["floor"]).get("tested"):
        parts.append(
            "Of made-up names, the same test finds "
            f"{floor['found'] / floor['tested']:.1%} of all statements that were asked about."
        )
    if left := record["without"]:
        few = ", ".join(left[:5]) + (f" and {len(left) - 5} more" if len(left) > 5 else "")
        parts.append(f"The table has nothing about {few}.")
    parts += _outdated(held, data)
    return " ".join(parts)


def _outdated(held: StereotypeMatches, data: RunData) -> Iterator[str]:
    """What has changed since the run was held against the table."""
    record = held.record
    if (was := record["counted"]) != (now := data.counted.as_dict()):
        yield (
            f"These figures are of the {_kept(was):,} statements that counted when kgbias known "
            f"was run; this report counts {_kept(now):,}, by another selection or in a later state "
            "of the run. To bring them up to date, run it again with the selection of this report."
        )
    of_model = [summarise_floor(b.record) for b in data.believings if b.model.title == record["model"]]
    if record["model"] and not any(record["floor"].items() <= own.items() for own in of_model):
        yield (
            "The model was probed again or renamed since, or the run is without its probes: what "
            "is believed here is from before."
        )


def _kept(counted: Mapping[str, Any]) -> int:
    """How many statements counted, of `SelectedStatements.as_dict`."""
    return int(counted["statements"] - sum(counted["left_out"].values()))


def _unrecorded(held: StereotypeMatches, key: str) -> Exhibit:
    rows = [
        [each.group, each.statement, *cells(each.lift, "+.2f"), str(each.lift.n)]
        for each in held.strongest[:_TABLED]
    ]
    count, source = held.record["unrecorded"], held.table.name
    left = f" {count - len(rows):,} more are not listed." if count > len(rows) else ""
    return Exhibit(
        key, "", f"Believed, and not recorded in {source}", "", None,
        Table(
            key, f"What {held.record['model']} believes of a group although the table named "
            f"{source} records nothing similar about it.",
            ("Group", "statement", "lift", "95% interval", "names"), rows,
            "Lifts in bits, with intervals over the group's names; greatest first. Nobody recorded "
            f"these in this table; other people may hold them.{left}",
        ),
    )  # fmt: skip
