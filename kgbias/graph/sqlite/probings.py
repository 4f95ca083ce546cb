"""What models find probable: probes of statements, forced choices, probes by name with the beliefs
that follow, and SoFa on sets of probes.
"""

from collections.abc import Sequence
from typing import Any, TypeVar

from kgbias.graph.record import Record
from kgbias.graph.sofa import ProbePart, ProbeSet, SofaCategory, SofaResult
from kgbias.graph.sqlite.database import Database
from kgbias.graph.types import (
    BelievedEdge,
    Believing,
    Choosing,
    ChosenEdge,
    GroupName,
    NameProbe,
    ProbedEdge,
    Probing,
    Triple,
    node_id,
    statement_id,
    storable,
)
from kgbias.models.base import ModelInfo

Asking = TypeVar("Asking", bound=Probing)

_UNFINISHED = "{}"  # the record of a probing whose edges are still being written

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


class Probings(Database):
    """See `kgbias.graph.store.Store`."""

    def save_probes(self, run_id: str, probing: Probing, edges: Sequence[ProbedEdge]) -> None:
        with self._transaction():
            self._note("probing", run_id, probing, "INSERT OR IGNORE", record=_UNFINISHED)
            self._add_statements(edges)
            self._put("probed", edges, run_id=run_id, probing_id=probing.id)

    def save_probing(self, run_id: str, probing: Probing) -> None:
        with self._transaction():
            self._note("probing", run_id, probing)

    def probes(
        self, run_id: str, probing_id: str, statement_id: str | None = None
    ) -> list[ProbedEdge]:
        asking = ("probing_id", probing_id)
        return self._of_statements(ProbedEdge, "probed", run_id, asking, statement_id)

    def probings(self, run_id: str) -> list[Probing]:
        return self._askings(Probing, "probing", run_id, f"record <> '{_UNFINISHED}'")

    def save_choices(self, run_id: str, choosing: Choosing, edges: Sequence[ChosenEdge]) -> None:
        with self._transaction():
            self._note("choosing", run_id, choosing)
            for table in ("chosen", "choice_answer"):
                self._db.execute(
                    f"DELETE FROM {table} WHERE run_id = ? AND choosing_id = ?",
                    (run_id, choosing.id),
                )
            self._db.executemany(
                "INSERT OR IGNORE INTO choice_answer VALUES (?, ?, ?)",
                ((run_id, choosing.id, key) for e in edges for key in (*e.answers, *e.others)),
            )
            self._add_statements(edges)
            self._put("chosen", edges, "INSERT", run_id=run_id, choosing_id=choosing.id)

    def choices(
        self, run_id: str, choosing_id: str, statement_id: str | None = None
    ) -> list[ChosenEdge]:
        asking = ("choosing_id", choosing_id)
        return self._of_statements(ChosenEdge, "chosen", run_id, asking, statement_id)

    def choosings(self, run_id: str) -> list[Choosing]:
        return self._askings(Choosing, "choosing", run_id)

    def save_names(self, names: Sequence[GroupName]) -> None:
        renewed = "ON CONFLICT (id) DO UPDATE SET form = excluded.form, root = excluded.root"
        with self._transaction():
            self._put("name", names, "INSERT", renewed)
            self._put("name_of", [n for n in names if not n.nonce], name_id=lambda n: n.id)

    def names(self, run_id: str | None = None, believing_id: str | None = None) -> list[GroupName]:
        query = _NAMES if run_id is None else _PROBED_NAMES
        found = self._records(GroupName, query, {"run": run_id, "believing": believing_id})
        return sorted(found, key=lambda n: (n.text, n.group_id))

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
            self._note("believing", run_id, believing)

    def believings(self, run_id: str) -> list[Believing]:
        return self._askings(Believing, "believing", run_id, "record IS NOT NULL")

    def save_name_probes(
        self, run_id: str, believing: Believing, probes: Sequence[NameProbe]
    ) -> None:
        with self._transaction():
            self._note("believing", run_id, believing, "INSERT OR IGNORE", record=None)
            self._add_statements(probes)
            self._put("name_probe", probes, run_id=run_id, believing_id=believing.id)

    def name_probes(
        self, run_id: str, believing_id: str, statement_id: str | None = None
    ) -> list[NameProbe]:
        asking = ("believing_id", believing_id)
        return self._of_statements(
            NameProbe, "name_probe", run_id, asking, statement_id, end="name_id"
        )

    def save_beliefs(
        self, run_id: str, believing: Believing, edges: Sequence[BelievedEdge]
    ) -> None:
        with self._transaction():
            self._note("believing", run_id, believing, "INSERT OR IGNORE", record=None)
            self._db.execute(
                "DELETE FROM believed WHERE run_id = ? AND believing_id = ?",
                (run_id, believing.id),
            )
            self._add_statements(edges)
            self._put("believed", edges, "INSERT", run_id=run_id, believing_id=believing.id)

    def beliefs(
        self, run_id: str, believing_id: str, statement_id: str | None = None
    ) -> list[BelievedEdge]:
        asking = ("believing_id", believing_id)
        return self._of_statements(BelievedEdge, "believed", run_id, asking, statement_id)

    def _note(
        self, table: str, run_id: str, asked: Probing, how: str = "INSERT OR REPLACE", **given: Any
    ) -> None:
        """Write how a model was asked about a run."""
        self._add_model(asked.model)
        self._put(table, [asked], how, run_id=run_id, model_id=asked.model.id, **given)

    def _askings(
        self, kind: type[Asking], table: str, run_id: str, where: str = "TRUE"
    ) -> list[Asking]:
        """The probings (choosings, believings) of a run: the rows of a table that pass."""
        return [
            self._record(
                kind, row | {"model": ModelInfo(row["name"], row["revision"], row["own_name"])}
            )
            for row in self._rows(
                f"SELECT name, revision, own_name, settings, record FROM {table} "
                f"JOIN model ON model.id = model_id WHERE run_id = ? AND {where} "
                f"ORDER BY name, {table}.id",
                (run_id,),
            )
        ]

    def _of_statements(
        self,
        kind: type[Record],
        table: str,
        run_id: str,
        asking: tuple[str, str],
        statement_id: str | None,
        *,
        end: str = "group_id",
    ) -> list[Record]:
        """The edges of one asking of a run (the column of its id, and the id), of all statements or
        one, by statement and their other end."""
        column, id = asking
        one = "" if statement_id is None else "AND statement_id = ? "
        return self._records(
            kind,
            f"SELECT predicate_id, object_id, {table}.* FROM {table} "
            "JOIN statement ON statement.id = statement_id "
            f"WHERE run_id = ? AND {column} = ? {one}ORDER BY statement_id, {end}",
            (run_id, id, *([statement_id] if one else [])),
        )

    def save_probe_set(self, probe_set: ProbeSet) -> None:
        id = probe_set.id
        with self._transaction():
            self._put("probe_set", [probe_set])
            for part in probe_set.parts:
                of = {"set_id": id, "category": part.category}
                groups = [(node_id("group", g), storable(g)) for g in part.groups]
                self._db.executemany('INSERT OR IGNORE INTO "group" VALUES (?, ?)', groups)
                self._db.executemany(
                    "INSERT OR IGNORE INTO probe_set_group VALUES (?, ?, ?, ?)",
                    [(*of.values(), *group) for group in groups],
                )
                self._put("probe_set_statement", part.statements, statement_id=lambda s: s.id, **of)

    def probe_sets(self) -> list[ProbeSet]:
        rows = self._rows("SELECT id, name, record FROM probe_set ORDER BY name, id")
        return [self._record(ProbeSet, row | {"parts": self._parts(row["id"])}) for row in rows]

    def _parts(self, set_id: str) -> tuple[ProbePart, ...]:
        return ProbePart.all_of(
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

    def save_sofa(self, run_id: str | None, results: Sequence[SofaResult]) -> None:
        with self._transaction():
            for result in results:
                self._save_result(result)
                if run_id is not None:
                    self._db.execute(
                        "INSERT OR IGNORE INTO run_sofa VALUES (?, ?)", (run_id, result.id)
                    )

    def _save_result(self, result: SofaResult) -> None:
        self._add_model(result.model)
        self._put("sofa", [result], set_id=result.probe_set, model_id=result.model.id)
        for table in ("sofa_category", "sofa_group", "sofa_statement"):
            self._db.execute(f"DELETE FROM {table} WHERE sofa_id = ?", (result.id,))
        self._put("sofa_category", result.categories, "INSERT", sofa_id=result.id)
        for c in result.categories:
            of = {"sofa_id": result.id, "category": c.category}
            self._put("sofa_group", c.groups, group_id=lambda g: node_id("group", g.group), **of)
            self._put("sofa_statement", c.statements, "INSERT", statement_id=lambda s: s.id, **of)

    def sofa(self, run_id: str | None = None) -> list[SofaResult]:
        of_run = "WHERE sofa.id IN (SELECT sofa_id FROM run_sofa WHERE run_id = ?) "
        rows = self._rows(
            "SELECT sofa.*, set_id AS probe_set, name AS spec, revision, own_name "
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
        return SofaCategory.all_of(
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
