"""Tables that this method takes, in every form (tests/unit/test_tables_read.py)."""

from kgbias.methods.rag import preference
from tests.table_forms import HandedTable


def check(table: HandedTable) -> None:
    pairs = preference.read_wikieval(
        table.fill(preference.PAIR_TABLE.columns, question=table.groups)
    )
    found = [(pair.question, pair.context_v2) for pair in pairs]
    assert found == list(zip(table.groups, table.attributes, strict=True))


TABLE_CHECKS = (check,)
