"""Tables that this method takes, in every form (tests/unit/test_tables_read.py)."""

from pathlib import Path

from kgbias.methods.known.tables import read_stereotypes
from tests.table_forms import HandedTable


def read_pairs(path: Path) -> list[tuple[str, str]]:
    return [(stereotype.group, stereotype.attribute) for stereotype in read_stereotypes(path)]


STEREOSET_READERS = (read_pairs,)
STEREOTYPE_READERS = (lambda path: read_stereotypes(Path(path)),)


def check(table: HandedTable) -> None:
    found = [(s.group, s.attribute, s.category) for s in read_stereotypes(table.write())]
    assert found == [(r["group"], r["attribute"], r["category"]) for r in table.rows]


TABLE_CHECKS = (check,)
