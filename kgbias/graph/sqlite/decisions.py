"""What people decided in review."""

from collections.abc import Sequence

from kgbias.graph.decisions import Decision, decision_of, decision_row
from kgbias.graph.sqlite.runs import RunTables

_COLUMNS = (
    "uid", "verdict", "reviewer", "decided", "generation_uid", "subject", "predicate", "object",
    "read_predicate", "read_object",
)  # fmt: skip


class DecisionTables(RunTables):
    def decisions(self, run_id: str) -> list[Decision]:
        rows = self._db.execute(
            f"SELECT {', '.join(_COLUMNS)} FROM decision WHERE run_id = ? ORDER BY decided, uid",
            (run_id,),
        )
        return [decision_of(dict(zip(_COLUMNS, row, strict=True))) for row in rows]

    def _insert_decisions(self, run_id: str, decisions: Sequence[Decision]) -> None:
        rows = [(run_id, *map(decision_row(d).get, _COLUMNS)) for d in decisions]
        marks = ", ".join("?" * (1 + len(_COLUMNS)))
        self._db.executemany(f"INSERT OR IGNORE INTO decision VALUES ({marks})", rows)
