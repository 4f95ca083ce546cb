"""Tables that this method takes, in every form (tests/unit/test_tables_read.py)."""

from kgbias.methods.stories import stereotales
from kgbias.methods.stories.config import read_people
from tests.table_forms import HandedTable


def check(table: HandedTable) -> None:
    people = [(p.name, p.group, p.category) for p in read_people(table.write())]
    assert people == [(r["group"], r["group"], r["category"]) for r in table.rows]
    told = stereotales._read_rows(table.fill(stereotales.TABLE_FORMAT.columns))
    assert [row["story"] for row in told] == table.attributes


TABLE_CHECKS = (check,)
HELD_TABLES = (
    ("people", read_people, [{"name": "a baker", "group": "Bakers", "category": "trade"}]),
)
