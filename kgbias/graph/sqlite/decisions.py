"""What people decided in review."""

from collections.abc import Sequence

from kgbias.graph.decisions import COLUMNS, Decision, decision_of, decision_row
from kgbias.graph.sqlite.runs import RunTables


class DecisionTables(RunTables):
    def decisions(self, run_id: str) -> list[Decision]:
        rows = self._db.execute(
            f"SELECT {', '.join(COLUMNS)} FROM decision WHERE run_id = ? ORDER BY decided, uid",
            (run_id,),
        )
        return [decision_of(dict(zip(COLUMNS, row, strict=True))) for row in rows]

    def _insert_decisions(self, run_id: str, decisions: Sequence[Decision]) -> None:
        rows = [(run_id, *map(decision_row(d).get, COLUMNS)) for d in decisions]
        marks = ", ".join("?" * (1 + len(COLUMNS)))
        self._db.executemany(f"INSERT OR IGNORE INTO decision VALUES ({marks})", rows)
