"""What tables of recorded stereotypes have about a run (`kgbias known`), as exhibits."""

from collections.abc import Iterator

from kgbias.graph.recorded import Held
from kgbias.report.run_data import RunData
from kgbias.report.tables import Exhibit, Table, cells

_TABLED = 25  # beliefs that nobody recorded
_SHARES = (  # the share, what it is of, what it says, and its form
    ("said", "recorded stereotypes", "said of their group", ".1%"),
    ("elsewhere", "recorded stereotypes", "said of another group of the category", ".1%"),
    ("beyond", "recorded stereotypes", "difference of the two", "+.1%"),
    ("believed", "recorded stereotypes asked about", "believed of their group", ".1%"),
    ("believed_elsewhere", "recorded stereotypes asked about", "believed of another group", ".1%"),
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
        yield _shares(held, key)
        if held.record["unrecorded"]:
            yield _unrecorded(held, f"{key}-not")


def _shares(held: Held, key: str) -> Exhibit:
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
            ("Of the", "share that is", "share", "95% interval", "n"), rows, _note(held),
        ),
    )  # fmt: skip


def _note(held: Held) -> str:
    table, record = held.table, held.record
    license = f" ({table.license})" if table.license else ""
    parts = [
        f"Recorded means that {table.name}{license} has the same claim about the same group: the "
        "annotators of that table recorded it, which makes it neither true nor common.",
        "A model that says something of every group also says it of the one it is recorded of: "
        "only the difference tells whether it is tied to the group.",
        "The rules miss more matches than they find wrongly: read the shares said and recorded as "
        "lower bounds. Intervals are over groups.",
    ]
    if record["model"]:
        asked = sum(each.believed is not None for each in held.heard)
        some = ", and which is no random choice" if asked < len(held.heard) else ""
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
    return " ".join(parts)


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
            key, f"What {held.record['model']} believes of a group although {source} records "
            "nothing similar about that group.",
            ("Group", "statement", "lift", "95% interval", "names"), rows,
            "Lifts in bits, with intervals over the group's names; greatest first. Nobody recorded "
            f"these in this table; other people may hold them.{left}",
        ),
    )  # fmt: skip
