"""What models find probable: probes of statements, forced choices, probes by name with the beliefs
that follow, and SoFa on sets of probes.
"""

from collections.abc import Sequence
from typing import Any, TypeVar

from kgbias.graph.record import Record
from kgbias.graph.sofa import ProbePart, ProbeSet, SofaCategory, SofaResult
from kgbias.graph.sqlite.database import Database
from kgbias.graph.types import (
    BeliefRun,
    BelievedEdge,
    ChoiceRun,
    ChosenEdge,
    GroupName,
    NameProbe,
    ProbedEdge,
    ProbeRun,
    Triple,
    node_id,
    statement_id,
    storable,
)
from kgbias.models.base import ModelInfo

AnyProbeRun = TypeVar("AnyProbeRun", bound=ProbeRun)

_UNFINISHED_RECORD = "{}"  # the record of a probing whose edges are still being written

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


class SQLiteProbes(Database):
    """See `kgbias.graph.store.Store`."""

    def save_probes(self, run_id: str, probe_run: ProbeRun, edges: Sequence[ProbedEdge]) -> None:
        with self._transaction():
            self._write_probe_run(
                "probing", run_id, probe_run, "INSERT OR IGNORE", record=_UNFINISHED_RECORD
            )
            self._add_statements(edges)
            self._write_records("probed", edges, run_id=run_id, probing_id=probe_run.id)

    def save_probe_run(self, run_id: str, probe_run: ProbeRun) -> None:
        with self._transaction():
            self._write_probe_run("probing", run_id, probe_run)

    def probes(
        self, run_id: str, probe_run_id: str, statement_id: str | None = None
    ) -> list[ProbedEdge]:
        run_key = ("probing_id", probe_run_id)
        return self._read_edges(ProbedEdge, "probed", run_id, run_key, statement_id)

    def probe_runs(self, run_id: str) -> list[ProbeRun]:
        return self._read_probe_runs(
            ProbeRun, "probing", run_id, f"record <> '{_UNFINISHED_RECORD}'"
        )

    def save_choices(self, run_id: str, choice_run: ChoiceRun, edges: Sequence[ChosenEdge]) -> None:
        with self._transaction():
            self._write_probe_run("choosing", run_id, choice_run)
            for table in ("chosen", "choice_answer"):
                self._db.execute(
                    f"DELETE FROM {table} WHERE run_id = ? AND choosing_id = ?",
                    (run_id, choice_run.id),
                )
            self._db.executemany(
                "INSERT OR IGNORE INTO choice_answer VALUES (?, ?, ?)",
                ((run_id, choice_run.id, key) for e in edges for key in (*e.answers, *e.others)),
            )
            self._add_statements(edges)
            self._write_records("chosen", edges, "INSERT", run_id=run_id, choosing_id=choice_run.id)

    def choices(
        self, run_id: str, choice_run_id: str, statement_id: str | None = None
    ) -> list[ChosenEdge]:
        run_key = ("choosing_id", choice_run_id)
        return self._read_edges(ChosenEdge, "chosen", run_id, run_key, statement_id)

    def choice_runs(self, run_id: str) -> list[ChoiceRun]:
        return self._read_probe_runs(ChoiceRun, "choosing", run_id)

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

    def save_belief_run(self, run_id: str, belief_run: BeliefRun) -> None:
        with self._transaction():
            self._write_probe_run("believing", run_id, belief_run)

    def belief_runs(self, run_id: str) -> list[BeliefRun]:
        return self._read_probe_runs(BeliefRun, "believing", run_id, "record IS NOT NULL")

    def save_name_probes(
        self, run_id: str, belief_run: BeliefRun, probes: Sequence[NameProbe]
    ) -> None:
        with self._transaction():
            self._write_probe_run("believing", run_id, belief_run, "INSERT OR IGNORE", record=None)
            self._add_statements(probes)
            self._write_records("name_probe", probes, run_id=run_id, believing_id=belief_run.id)

    def name_probes(
        self, run_id: str, belief_run_id: str, statement_id: str | None = None
    ) -> list[NameProbe]:
        run_key = ("believing_id", belief_run_id)
        return self._read_edges(
            NameProbe, "name_probe", run_id, run_key, statement_id, other_end="name_id"
        )

    def save_beliefs(
        self, run_id: str, belief_run: BeliefRun, edges: Sequence[BelievedEdge]
    ) -> None:
        with self._transaction():
            self._write_probe_run("believing", run_id, belief_run, "INSERT OR IGNORE", record=None)
            self._db.execute(
                "DELETE FROM believed WHERE run_id = ? AND believing_id = ?",
                (run_id, belief_run.id),
            )
            self._add_statements(edges)
            self._write_records(
                "believed", edges, "INSERT", run_id=run_id, believing_id=belief_run.id
            )

    def beliefs(
        self, run_id: str, belief_run_id: str, statement_id: str | None = None
    ) -> list[BelievedEdge]:
        run_key = ("believing_id", belief_run_id)
        return self._read_edges(BelievedEdge, "believed", run_id, run_key, statement_id)

    def _write_probe_run(
        self,
        table: str,
        run_id: str,
        probe_run: ProbeRun,
        verb: str = "INSERT OR REPLACE",
        **given_values: Any,
    ) -> None:
        """Write how a model was asked about a run."""
        self._add_model(probe_run.model)
        self._write_records(
            table, [probe_run], verb, run_id=run_id, model_id=probe_run.model.id, **given_values
        )

    def _read_probe_runs(
        self, kind: type[AnyProbeRun], table: str, run_id: str, where: str = "TRUE"
    ) -> list[AnyProbeRun]:
        """The probings (choosings, believings) of a run: the rows of a table that pass."""
        return [
            self._record(
                kind, row | {"model": ModelInfo(row["name"], row["revision"], row["display_name"])}
            )
            for row in self._rows(
                f"SELECT name, revision, display_name, settings, record FROM {table} "
                f"JOIN model ON model.id = model_id WHERE run_id = ? AND {where} "
                f"ORDER BY name, {table}.id",
                (run_id,),
            )
        ]

    def _read_edges(
        self,
        kind: type[Record],
        table: str,
        run_id: str,
        run_key: tuple[str, str],
        statement_id: str | None,
        *,
        other_end: str = "group_id",
    ) -> list[Record]:
        """The edges of one asking of a run (the column of its id, and the id), of all statements or
        one, by statement and their other end."""
        column, id = run_key
        statement_condition = "" if statement_id is None else "AND statement_id = ? "
        return self._records(
            kind,
            f"SELECT predicate_id, object_id, {table}.* FROM {table} "
            "JOIN statement ON statement.id = statement_id "
            f"WHERE run_id = ? AND {column} = ? {statement_condition}ORDER BY statement_id, "
            f"{other_end}",
            (run_id, id, *([statement_id] if statement_condition else [])),
        )

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

    def probe_sets(self) -> list[ProbeSet]:
        rows = self._rows("SELECT id, name, record FROM probe_set ORDER BY name, id")
        return [
            self._record(ProbeSet, row | {"parts": self._read_parts(row["id"])}) for row in rows
        ]

    def _read_parts(self, set_id: str) -> tuple[ProbePart, ...]:
        return ProbePart.from_rows(
            self._rows(
                "SELECT category, text FROM probe_set_group "
                "WHERE set_id = ? ORDER BY category, group_id, text",
                (set_id,),
            ),
            self._rows(
                "SELECT probe_set_statement.*, statement_id AS id FROM probe_set_statement "
                "WHERE set_id = ? ORDER BY category, statement_id",
                (set_id,),
            ),
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

    def sofa_results(self, run_id: str | None = None) -> list[SofaResult]:
        of_run = "WHERE sofa.id IN (SELECT sofa_id FROM run_sofa WHERE run_id = ?) "
        rows = self._rows(
            "SELECT sofa.*, set_id AS probe_set, name AS spec, revision, display_name "
            "FROM sofa JOIN model ON model.id = model_id "
            + (of_run if run_id is not None else "")
            + "ORDER BY name, sofa.id",
            () if run_id is None else (run_id,),
        )
        return [
            self._record(
                SofaResult, row | {"categories": self._sofa_categories(row["id"], row["set_id"])}
            )
            for row in rows
        ]

    def _sofa_categories(self, sofa_id: str, set_id: str) -> tuple[SofaCategory, ...]:
        return SofaCategory.from_rows(
            self._rows(
                "SELECT * FROM sofa_category WHERE sofa_id = ? ORDER BY category", (sofa_id,)
            ),
            self._rows(
                'SELECT sofa_group.*, text AS "group" '
                "FROM sofa_group JOIN probe_set_group USING (category, group_id) "
                "WHERE sofa_id = ? AND set_id = ? ORDER BY category, group_id",
                (sofa_id, set_id),
            ),
            self._rows(
                "SELECT sofa_statement.*, statement_id AS id, text FROM sofa_statement "
                "JOIN probe_set_statement USING (category, statement_id) "
                "WHERE sofa_id = ? AND set_id = ? ORDER BY category, statement_id",
                (sofa_id, set_id),
            ),
            self._json,
        )
