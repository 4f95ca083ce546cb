"""What a model believes of groups: names with PROBED_BEFORE edges to statements, and BELIEVED edges
from statements to groups."""

from collections.abc import Iterator, Sequence
from math import nan
from typing import Any

from kgbias.graph.believed import PROPERTIES, BelievedEdge, Believing, GroupName, NameProbe
from kgbias.graph.sqlite.database import Database
from kgbias.graph.types import Triple, canonical_json, statement_id, storable

_NAMES = """
SELECT text, coalesce(group_id, ''), form, root, coalesce(mark, '')
FROM name LEFT JOIN name_of ON name_id = id"""
_PROBED_NAMES = f"""{_NAMES}
WHERE id IN (SELECT name_id FROM name_probe WHERE run_id = :run AND believing_id = :believing)
AND (group_id IS NULL OR group_id IN (SELECT group_id FROM run_group WHERE run_id = :run))"""

_STATEMENTS = """
SELECT predicate.text, object.text FROM statement
JOIN predicate ON predicate.id = predicate_id JOIN object ON object.id = object_id
WHERE statement.id IN (
    SELECT statement_id FROM name_probe WHERE run_id = ? AND believing_id = ?)"""


class BeliefTables(Database):
    def save_names(self, names: Sequence[GroupName]) -> None:
        with self._transaction():
            self._db.executemany(
                "INSERT INTO name VALUES (?, ?, ?, ?) "
                "ON CONFLICT (id) DO UPDATE SET form = excluded.form, root = excluded.root",
                [(n.id, storable(n.text), storable(n.form), storable(n.root)) for n in names],
            )
            self._db.executemany(
                "INSERT OR REPLACE INTO name_of VALUES (?, ?, ?)",
                [(n.id, n.group_id, n.mark) for n in names if not n.nonce],
            )

    def names(self, run_id: str | None = None, believing_id: str | None = None) -> list[GroupName]:
        if run_id is None:
            rows = self._db.execute(_NAMES)
        else:
            rows = self._db.execute(_PROBED_NAMES, {"run": run_id, "believing": believing_id})
        return sorted((GroupName(*row) for row in rows), key=lambda n: (n.text, n.group_id))

    def keep_statements(self, statements: Sequence[tuple[str, str]]) -> None:
        triples = [Triple("", *words) for words in statements]
        with self._transaction():
            self._db.executemany(
                "INSERT OR IGNORE INTO predicate VALUES (?, ?)",
                [(t.predicate_id, storable(t.predicate)) for t in triples],
            )
            self._db.executemany(
                "INSERT OR IGNORE INTO object VALUES (?, ?)",
                [(t.object_id, storable(t.object)) for t in triples],
            )
            self._db.executemany(
                "INSERT OR IGNORE INTO statement VALUES (?, ?, ?)",
                [
                    (statement_id(t.predicate_id, t.object_id), t.predicate_id, t.object_id)
                    for t in triples
                ],
            )

    def statements(self, run_id: str, believing_id: str) -> list[tuple[str, str]]:
        return sorted(self._db.execute(_STATEMENTS, (run_id, believing_id)))

    def save_believing(self, run_id: str, believing: Believing) -> None:
        with self._transaction():
            self._add_believing(run_id, believing)
            self._db.execute(
                "UPDATE believing SET record = ? WHERE run_id = ? AND id = ?",
                (canonical_json(dict(believing.record)), run_id, believing.id),
            )

    def believings(self, run_id: str) -> list[Believing]:
        return self._askings(Believing, "believing", run_id, "record IS NOT NULL")

    def save_name_probes(
        self, run_id: str, believing: Believing, probes: Sequence[NameProbe]
    ) -> None:
        with self._transaction():
            self._add_believing(run_id, believing)
            self._add_statements(probes)
            self._db.executemany(
                "INSERT OR REPLACE INTO name_probe VALUES (?, ?, ?, ?, ?, ?)",
                [
                    (run_id, believing.id, p.statement_id, p.name_id, canonical_json(p.bits),
                     p.mean)
                    for p in probes
                ],
            )  # fmt: skip

    def name_probes(
        self, run_id: str, believing_id: str, statement_id: str | None = None
    ) -> list[NameProbe]:
        asking = ("believing_id", believing_id)
        rows = self._of_statements("name_probe", ("name_id", "bits"), run_id, asking, statement_id)
        return [
            NameProbe(predicate, object, name, tuple(self._json(bits)))
            for predicate, object, name, bits in rows
        ]

    def save_beliefs(
        self, run_id: str, believing: Believing, edges: Sequence[BelievedEdge]
    ) -> None:
        with self._transaction():
            self._add_believing(run_id, believing)
            self._db.execute(
                "DELETE FROM believed WHERE run_id = ? AND believing_id = ?",
                (run_id, believing.id),
            )
            self._add_statements(edges)
            self._db.executemany(
                f"INSERT INTO believed VALUES ({', '.join('?' * (4 + len(PROPERTIES)))})",
                [
                    (run_id, believing.id, e.statement_id, e.group_id, *e.properties.values())
                    for e in edges
                ],
            )

    def beliefs(
        self, run_id: str, believing_id: str, statement_id: str | None = None
    ) -> list[BelievedEdge]:
        asking = ("believing_id", believing_id)
        rows = self._of_statements(
            "believed", ("group_id", *PROPERTIES), run_id, asking, statement_id
        )
        found: Iterator[list[Any]] = (
            [nan if value is None else value for value in row] for row in rows
        )
        return [BelievedEdge(*row) for row in found]

    def _add_believing(self, run_id: str, believing: Believing) -> None:
        """Of one that is there nothing changes."""
        self._add_model(believing.model)
        settings = canonical_json(believing.settings)
        self._db.execute(
            "INSERT OR IGNORE INTO believing VALUES (?, ?, ?, ?, NULL)",
            (run_id, believing.id, believing.model.id, settings),
        )

    def _add_statements(self, asked: Sequence[NameProbe] | Sequence[BelievedEdge]) -> None:
        self._db.executemany(
            "INSERT OR IGNORE INTO statement VALUES (?, ?, ?)",
            {(a.statement_id, a.predicate_id, a.object_id) for a in asked},
        )
