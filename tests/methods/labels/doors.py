"""Tables that this method takes, in every form (tests/unit/test_tables_read.py)."""

from kgbias.methods.labels import labelling
from tests.table_forms import HandedTable


def check(table: HandedTable) -> None:
    rows = list(labelling._filled_rows(table.fill(labelling.SHEET_FORMAT.columns)))
    assert [row["statement"] for _, row in rows] == table.attributes


TABLE_CHECKS = (check,)
