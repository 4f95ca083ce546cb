"""Association tests, and their edges to groups, objects and topics."""

import math
from collections.abc import Sequence

from kgbias.errors import UsageError
from kgbias.graph.sqlite.database import Database
from kgbias.graph.types import AssociationEdge, AssociationNode, canonical_json
from kgbias.models.base import ModelInfo

_TABLES = {"group": '"group"', "object": "object", "topic": "topic"}


class AssociationTables(Database):
    def known_nodes(self, kind: str, ids: Sequence[str]) -> set[str]:
        if kind not in _TABLES:
            raise UsageError(f"no kind of node {kind!r}; the kinds are {', '.join(_TABLES)}")
        query = f"SELECT id FROM {_TABLES[kind]} WHERE id IN ({{}})"
        return {id for (id,) in self._select_in(query, list(ids))}

    def save_associations(self, run_id: str | None, nodes: Sequence[AssociationNode]) -> None:
        with self._transaction():
            for node in nodes:
                self._add_model(node.model)
                self._db.execute(
                    "INSERT OR REPLACE INTO association_test (id, name, method, model_id, "
                    "effect_size, p_value, low, high, record, p_published, p_holm, p_bh, n_x, n_y) "
                    "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                    (
                        node.id,
                        node.test,
                        node.method,
                        node.model.id,
                        node.effect_size,
                        node.p_value,
                        node.low,
                        node.high,
                        canonical_json(dict(node.record)),
                        node.p_published,
                        node.p_holm,
                        node.p_bh,
                        node.n_x,
                        node.n_y,
                    ),
                )
                self._db.execute("DELETE FROM association_edge WHERE test_id = ?", (node.id,))
                self._db.executemany(
                    "INSERT OR IGNORE INTO association_edge VALUES (?, ?, ?, ?)",
                    [(node.id, edge.side, edge.kind, edge.node_id) for edge in node.edges],
                )
                if run_id is not None:
                    self._db.execute(
                        "INSERT OR IGNORE INTO run_association VALUES (?, ?)", (run_id, node.id)
                    )

    def associations(self, run_id: str | None = None) -> list[AssociationNode]:
        of_run = "WHERE t.id IN (SELECT test_id FROM run_association WHERE run_id = ?) "
        rows = self._db.execute(
            "SELECT t.id, t.name, method, effect_size, p_value, low, high, record, model.name, "
            "revision, p_published, p_holm, p_bh, n_x, n_y "
            "FROM association_test t JOIN model ON model.id = model_id "
            + (of_run if run_id is not None else "")
            + "ORDER BY t.name, method, model.name, t.id",
            () if run_id is None else (run_id,),
        ).fetchall()
        return [
            AssociationNode(
                id=row[0],
                test=row[1],
                method=row[2],
                model=ModelInfo(row[8], row[9]),
                # SQLite keeps NaN as NULL.
                effect_size=_number(row[3]),
                p_value=_number(row[4]),
                low=_number(row[5]),
                high=_number(row[6]),
                record=self._json(row[7]),
                edges=self._edges(row[0]),
                p_published=_number(row[10]),
                p_holm=_number(row[11]),
                p_bh=_number(row[12]),
                n_x=row[13],
                n_y=row[14],
            )
            for row in rows
        ]

    def _edges(self, test_id: str) -> tuple[AssociationEdge, ...]:
        rows = self._db.execute(
            "SELECT side, kind, node_id FROM association_edge WHERE test_id = ? "
            "ORDER BY side, kind, node_id",
            (test_id,),
        )
        return tuple(AssociationEdge(*row) for row in rows)


def _number(value: float | None) -> float:
    return math.nan if value is None else value
