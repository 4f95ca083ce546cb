"""What tables of recorded stereotypes have about a run (`kgbias known`), as exhibits."""

from collections.abc import Iterator, Mapping
from typing import Any

from kgbias.evidence.joint import floor_of
from kgbias.graph.recorded import Held
from kgbias.report.run_data import RunData
from kgbias.report.tables import Exhibit, Table, cells

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


def _shares(held: Held, key: str, data: RunData) -> Exhibit:
    found = held.shares
    rows = [
        [of, what, *cells(e, form), str(e.n)]
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


def _note(held: Held, data: RunData) -> str:
    table, record = held.table, held.record
    license = f" ({table.license})" if table.license else ""
    parts = [
        f"Recorded means that {table.name}{license} has the same claim about the same group: the "
        "annotators of that table recorded it, which makes it neither true nor common.",
        "A model that says something of every group also says it of the one it is recorded of: "
        "only the difference tells whether it is tied to the group.",
        "On labelled pairs of two small models the rules missed more matches than they found "
        "wrongly: read the shares said and recorded as rough lower bounds. Intervals are over "
        "groups.",
    ]
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
    if (was := record["counted"]) != (now := data.counted.as_dict()):
        parts.append(
            f"These figures are of the {_kept(was):,} statements that counted when kgbias known "
            f"was run; this report counts {_kept(now):,}. Run it again to bring them up to date."
        )
    of_model = [floor_of(b.record) for b in data.believings if b.model.title == record["model"]]
    if of_model and not any(floor.items() <= own.items() for own in of_model):
        parts.append("The model was probed again since: what is believed here is from before.")
    return " ".join(parts)


def _kept(counted: Mapping[str, Any]) -> int:
    """How many statements counted, of `Counted.as_dict`."""
    return int(counted["statements"] - sum(counted["left_out"].values()))


def _unrecorded(held: Held, key: str) -> Exhibit:
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
