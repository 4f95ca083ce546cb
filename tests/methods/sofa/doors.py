"""Tables that this method takes, in every form (tests/unit/test_tables_read.py)."""

from kgbias.methods.sofa.benchmark_scores import read_benchmarks
from kgbias.methods.sofa.build import read_sofa_stereotypes
from tests.table_forms import HandedTable

STATEMENT_READERS = (read_sofa_stereotypes,)


def check(table: HandedTable) -> None:
    built = read_sofa_stereotypes(table.choose("statement", "category"))
    assert built.rows == [(r["category"], r["statement"]) for r in table.rows]
    scored = read_benchmarks(table.fill(("model", "own"), model=table.groups, own="0.5"))
    assert scored == {"own": dict.fromkeys(table.groups, 0.5)}


TABLE_CHECKS = (check,)
