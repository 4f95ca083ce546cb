"""Forced choices: CHOSEN edges between statements and groups, by a model."""

from collections.abc import Sequence

from kgbias.graph.probed import PROPERTIES, Choosing, ChosenEdge
from kgbias.graph.sqlite.database import Database
from kgbias.graph.types import canonical_json

_LISTS = len(PROPERTIES) - 2  # the last two are lists


class ChoiceTables(Database):
    def save_choices(self, run_id: str, choosing: Choosing, edges: Sequence[ChosenEdge]) -> None:
        with self._transaction():
            self._add_model(choosing.model)
            self._db.execute(
                "INSERT OR REPLACE INTO choosing VALUES (?, ?, ?, ?, ?)",
                (
                    run_id,
                    choosing.id,
                    choosing.model.id,
                    canonical_json(choosing.settings),
                    canonical_json(dict(choosing.record)),
                ),
            )
            for table in ("chosen", "choice_answer"):
                self._db.execute(
                    f"DELETE FROM {table} WHERE run_id = ? AND choosing_id = ?",
                    (run_id, choosing.id),
                )
            self._db.executemany(
                "INSERT OR IGNORE INTO choice_answer VALUES (?, ?, ?)",
                ((run_id, choosing.id, key) for e in edges for key in (*e.answers, *e.others)),
            )
            self._db.executemany(
                "INSERT OR IGNORE INTO statement VALUES (?, ?, ?)",
                {(e.statement_id, e.predicate_id, e.object_id) for e in edges},
            )
            columns = ("run_id", "choosing_id", "statement_id", "group_id", *PROPERTIES)
            self._db.executemany(
                f"INSERT INTO chosen ({', '.join(columns)}) VALUES "
                f"({', '.join('?' * len(columns))})",
                [(run_id, choosing.id, e.statement_id, e.group_id, *_row(e)) for e in edges],
            )

    def choices(
        self, run_id: str, choosing_id: str, statement_id: str | None = None
    ) -> list[ChosenEdge]:
        asking = ("choosing_id", choosing_id)
        rows = self._of_statements(
            "chosen", ("group_id", *PROPERTIES), run_id, asking, statement_id
        )
        return [
            ChosenEdge(*row[:-2], *(tuple(self._json(keys)) for keys in row[-2:])) for row in rows
        ]

    def choosings(self, run_id: str) -> list[Choosing]:
        return self._askings(Choosing, "choosing", run_id)


def _row(edge: ChosenEdge) -> tuple[object, ...]:
    values = tuple(edge.properties.values())
    return (*values[:_LISTS], *map(canonical_json, values[_LISTS:]))
