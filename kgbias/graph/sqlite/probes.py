"""The names and statements that models are probed with, and SoFa on sets of probes."""

from collections.abc import Sequence

from kgbias.graph.sofa import ProbeSet, SofaResult
from kgbias.graph.sqlite.edges import SQLiteEdges
from kgbias.graph.types import (
    GroupName,
    Triple,
    node_id,
    statement_id,
    storable,
)

_NAMES = """
SELECT text, coalesce(group_id, '') AS group_id, form, root, mark
FROM name LEFT JOIN name_of ON name_id = id"""
_PROBED_NAMES = f"""{_NAMES}
WHERE id IN (SELECT name_id FROM name_probe WHERE run_id = :run AND believing_id = :believing)
AND (group_id IS NULL OR group_id IN (SELECT group_id FROM run_group WHERE run_id = :run))"""

_STATEMENTS = """
SELECT predicate.text, object.text FROM statement
JOIN predicate ON predicate.id = predicate_id JOIN object ON object.id = object_id
WHERE statement.id IN (
    SELECT statement_id FROM name_probe WHERE run_id = ? AND believing_id = ?)"""


class SQLiteProbes(SQLiteEdges):
    """See `kgbias.graph.store.Store`."""

    def save_names(self, names: Sequence[GroupName]) -> None:
        on_conflict = "ON CONFLICT (id) DO UPDATE SET form = excluded.form, root = excluded.root"
        with self._transaction():
            self._write_records("name", names, "INSERT", on_conflict)
            self._write_records(
                "name_of", [n for n in names if not n.nonce], name_id=lambda n: n.id
            )

    def names(self, run_id: str | None = None, belief_run_id: str | None = None) -> list[GroupName]:
        query = _NAMES if run_id is None else _PROBED_NAMES
        group_names = self._records(GroupName, query, {"run": run_id, "believing": belief_run_id})
        return sorted(group_names, key=lambda n: (n.text, n.group_id))

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

    def statements(self, run_id: str, belief_run_id: str) -> list[tuple[str, str]]:
        return sorted(self._db.execute(_STATEMENTS, (run_id, belief_run_id)))

    def save_probe_set(self, probe_set: ProbeSet) -> None:
        id = probe_set.id
        with self._transaction():
            self._write_records("probe_set", [probe_set])
            for part in probe_set.parts:
                set_and_category = {"set_id": id, "category": part.category}
                groups = [(node_id("group", g), storable(g)) for g in part.groups]
                self._db.executemany('INSERT OR IGNORE INTO "group" VALUES (?, ?)', groups)
                self._db.executemany(
                    "INSERT OR IGNORE INTO probe_set_group VALUES (?, ?, ?, ?)",
                    [(*set_and_category.values(), *group) for group in groups],
                )
                self._write_records(
                    "probe_set_statement",
                    part.statements,
                    statement_id=lambda s: s.id,
                    **set_and_category,
                )

    def save_sofa_results(self, run_id: str | None, results: Sequence[SofaResult]) -> None:
        with self._transaction():
            for result in results:
                self._save_sofa_result(result)
                if run_id is not None:
                    self._db.execute(
                        "INSERT OR IGNORE INTO run_sofa VALUES (?, ?)", (run_id, result.id)
                    )

    def _save_sofa_result(self, result: SofaResult) -> None:
        self._add_model(result.model)
        self._write_records("sofa", [result], set_id=result.probe_set, model_id=result.model.id)
        for table in ("sofa_category", "sofa_group", "sofa_statement"):
            self._db.execute(f"DELETE FROM {table} WHERE sofa_id = ?", (result.id,))
        self._write_records("sofa_category", result.categories, "INSERT", sofa_id=result.id)
        for c in result.categories:
            result_and_category = {"sofa_id": result.id, "category": c.category}
            self._write_records(
                "sofa_group",
                c.groups,
                group_id=lambda g: node_id("group", g.group),
                **result_and_category,
            )
            self._write_records(
                "sofa_statement",
                c.statements,
                "INSERT",
                statement_id=lambda s: s.id,
                **result_and_category,
            )
