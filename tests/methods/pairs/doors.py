"""Tables that this method takes, in every form (tests/unit/test_tables_read.py)."""

from kgbias.methods.pairs.config import read_requests, read_slot_people
from tests.table_forms import HandedTable


def check(table: HandedTable) -> None:
    people = read_slot_people(table.choose("name", "group", "category", slot="name"))
    assert {(p.name, p.category) for p in people} == {
        (r["name"], r["category"]) for r in table.rows
    }
    asked = read_requests(table.choose("group", request="a", text="Praise {name}."))
    assert [request.text for request in asked] == ["Praise {name}."]


TABLE_CHECKS = (check,)
HELD_TABLES = (
    (
        "pairs",
        read_slot_people,
        [
            {"slot": "name", "name": "Ann", "group": "Women", "category": "gender"},
            {"slot": "name", "name": "Bob", "group": "Men", "category": "gender"},
        ],
    ),
    ("requests", read_requests, [{"request": "advice", "text": "Advise {name}."}]),
)
