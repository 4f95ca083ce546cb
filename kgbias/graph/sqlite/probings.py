"""What models find probable: probes of statements, forced choices, probes by name with the beliefs
that follow, and SoFa on sets of probes.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from math import nan
from typing import Any

from kgbias.graph.sofa import (
    ProbePart,
    ProbeSet,
    ProbeStatement,
    SofaCategory,
    SofaGroup,
    SofaResult,
    SofaStatement,
)
from kgbias.graph.sqlite.database import Database, number
from kgbias.graph.types import (
    BELIEVED_PROPERTIES,
    CHOSEN_PROPERTIES,
    BelievedEdge,
    Believing,
    Choosing,
    ChosenEdge,
    GroupName,
    NameProbe,
    ProbedEdge,
    Probing,
    Triple,
    canonical_json,
    node_id,
    properties_of,
    statement_id,
    storable,
)
from kgbias.models.base import ModelInfo
from kgbias.stats.estimate import Estimate

_UNFINISHED = "{}"  # the record of a probing whose edges are still being written


_LISTS = len(CHOSEN_PROPERTIES) - 2  # the last two are lists


def _choice_row(edge: ChosenEdge) -> tuple[object, ...]:
    values = tuple(edge.properties.values())
    return (*values[:_LISTS], *map(canonical_json, values[_LISTS:]))


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


def _sofa_row(e: Estimate) -> tuple[Any, ...]:
    return e.value, e.low, e.high, e.n


def _estimate(value: float | None, low: float | None, high: float | None, n: int) -> Estimate:
    return Estimate(number(value), number(low), number(high), n)


class Probings(Database):
    """See `kgbias.graph.store.Store`."""

    def save_probes(self, run_id: str, probing: Probing, edges: Sequence[ProbedEdge]) -> None:
        with self._transaction():
            self._add_model(probing.model)
            self._db.execute(
                "INSERT OR IGNORE INTO probing VALUES (?, ?, ?, ?, ?)",
                (
                    run_id,
                    probing.id,
                    probing.model.id,
                    canonical_json(probing.settings),
                    _UNFINISHED,
                ),
            )
            self._db.executemany(
                "INSERT OR IGNORE INTO statement VALUES (?, ?, ?)",
                {(e.statement_id, e.predicate_id, e.object_id) for e in edges},
            )
            self._db.executemany(
                f"INSERT OR REPLACE INTO probed VALUES ({', '.join('?' * 16)})",
                [
                    (
                        run_id,
                        probing.id,
                        e.statement_id,
                        e.group_id,
                        e.log_likelihood,
                        e.tokens,
                        e.statement_log_likelihood,
                        e.statement_tokens,
                        e.group_log_likelihood,
                        e.group_tokens,
                        e.rank,
                        canonical_json(e.pieces),
                        canonical_json(e.bits),
                        e.lift,
                        e.similarity,
                        e.association,
                    )
                    for e in edges
                ],
            )

    def save_probing(self, run_id: str, probing: Probing) -> None:
        with self._transaction():
            self._add_model(probing.model)
            self._db.execute(
                "INSERT OR REPLACE INTO probing VALUES (?, ?, ?, ?, ?)",
                (
                    run_id,
                    probing.id,
                    probing.model.id,
                    canonical_json(probing.settings),
                    canonical_json(dict(probing.record)),
                ),
            )

    def probes(
        self, run_id: str, probing_id: str, statement_id: str | None = None
    ) -> list[ProbedEdge]:
        asking, columns = ("probing_id", probing_id), ("group_id", *properties_of(ProbedEdge))
        rows = self._of_statements("probed", columns, run_id, asking, statement_id)
        return [
            ProbedEdge(*(*row[:10], *(tuple(self._json(part)) for part in row[10:12]), *row[12:]))
            for row in rows
        ]

    def probings(self, run_id: str) -> list[Probing]:
        return self._askings(Probing, "probing", run_id, "record <> ?", _UNFINISHED)

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
            columns = ("run_id", "choosing_id", "statement_id", "group_id", *CHOSEN_PROPERTIES)
            self._db.executemany(
                f"INSERT INTO chosen ({', '.join(columns)}) VALUES "
                f"({', '.join('?' * len(columns))})",
                [(run_id, choosing.id, e.statement_id, e.group_id, *_choice_row(e)) for e in edges],
            )

    def choices(
        self, run_id: str, choosing_id: str, statement_id: str | None = None
    ) -> list[ChosenEdge]:
        asking = ("choosing_id", choosing_id)
        rows = self._of_statements(
            "chosen", ("group_id", *CHOSEN_PROPERTIES), run_id, asking, statement_id
        )
        return [
            ChosenEdge(*row[:-2], *(tuple(self._json(keys)) for keys in row[-2:])) for row in rows
        ]

    def choosings(self, run_id: str) -> list[Choosing]:
        return self._askings(Choosing, "choosing", run_id)

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
                f"INSERT INTO believed VALUES ({', '.join('?' * (4 + len(BELIEVED_PROPERTIES)))})",
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
            "believed", ("group_id", *BELIEVED_PROPERTIES), run_id, asking, statement_id
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

    def save_probe_set(self, probe_set: ProbeSet) -> None:
        id, parts = probe_set.id, probe_set.parts
        with self._transaction():
            self._db.execute(
                "INSERT OR REPLACE INTO probe_set VALUES (?, ?, ?)",
                (id, storable(probe_set.name), canonical_json(dict(probe_set.record))),
            )
            self._add_named_groups([group for part in parts for group in part.groups])
            self._db.executemany(
                "INSERT OR IGNORE INTO probe_set_group VALUES (?, ?, ?, ?)",
                [
                    (id, part.category, node_id("group", g), storable(g))
                    for part in parts
                    for g in part.groups
                ],
            )
            self._db.executemany(
                "INSERT OR REPLACE INTO probe_set_statement VALUES (?, ?, ?, ?, ?, ?, ?)",
                [
                    (id, part.category, s.id, storable(s.text), s.words, s.hate, s.cluster)
                    for part in parts
                    for s in part.statements
                ],
            )

    def probe_sets(self) -> list[ProbeSet]:
        rows = self._db.execute("SELECT id, name, record FROM probe_set ORDER BY name, id")
        return [
            ProbeSet(name, self._set_parts(id), self._json(record))
            for id, name, record in rows.fetchall()
        ]

    def _set_parts(self, set_id: str) -> tuple[ProbePart, ...]:
        groups: dict[str, list[str]] = defaultdict(list)
        for category, name in self._db.execute(
            "SELECT category, text FROM probe_set_group "
            "WHERE set_id = ? ORDER BY category, group_id, text",
            (set_id,),
        ):
            groups[category].append(name)
        statements: dict[str, list[ProbeStatement]] = defaultdict(list)
        for category, *row in self._db.execute(
            "SELECT category, statement_id, text, hate, cluster FROM probe_set_statement "
            "WHERE set_id = ? ORDER BY category, statement_id",
            (set_id,),
        ):
            statements[category].append(ProbeStatement(*row))
        return tuple(
            ProbePart(category, tuple(own), tuple(statements[category]))
            for category, own in groups.items()
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
        self._db.execute(
            "INSERT OR REPLACE INTO sofa VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                result.id,
                result.probe_set,
                result.model.id,
                canonical_json(result.settings),
                result.measure,
                *_sofa_row(result.score),
                canonical_json(dict(result.record)),
            ),
        )
        for table in ("sofa_category", "sofa_group", "sofa_statement"):
            self._db.execute(f"DELETE FROM {table} WHERE sofa_id = ?", (result.id,))
        for c in result.categories:
            self._db.execute(
                "INSERT INTO sofa_category VALUES (?, ?, ?, ?, ?, ?, ?)",
                (result.id, c.category, *_sofa_row(c.score), canonical_json(c.quantiles)),
            )
            self._db.executemany(
                "INSERT OR REPLACE INTO sofa_group VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                [
                    (result.id, c.category, node_id("group", g.group), *_sofa_row(g.first),
                     *_sofa_row(g.likeliest)[:3])
                    for g in c.groups
                ],
            )  # fmt: skip
            self._db.executemany(
                "INSERT INTO sofa_statement VALUES (?, ?, ?, ?, ?, ?, ?)",
                [
                    (result.id, c.category, s.id, s.dds, s.variance, s.mean,
                     canonical_json(s.first))
                    for s in c.statements
                ],
            )  # fmt: skip

    def sofa(self, run_id: str | None = None) -> list[SofaResult]:
        of_run = "WHERE sofa.id IN (SELECT sofa_id FROM run_sofa WHERE run_id = ?) "
        rows = self._db.execute(
            "SELECT sofa.id, set_id, name, revision, settings, measure, score, low, high, n, "
            "record FROM sofa JOIN model ON model.id = model_id "
            + (of_run if run_id is not None else "")
            + "ORDER BY name, sofa.id",
            () if run_id is None else (run_id,),
        ).fetchall()
        return [
            SofaResult(
                set_id,
                ModelInfo(name, revision),
                self._settings(settings),
                measure,
                _estimate(*score),
                self._sofa_categories(id, set_id),
                self._json(record),
            )
            for id, set_id, name, revision, settings, measure, *score, record in rows
        ]

    def _sofa_categories(self, sofa_id: str, set_id: str) -> tuple[SofaCategory, ...]:
        groups: dict[str, list[SofaGroup]] = defaultdict(list)
        for category, name, first, low, high, n, likely, least, most in self._db.execute(
            "SELECT category, text, first, low, high, n, likeliest, likeliest_low, likeliest_high "
            "FROM sofa_group JOIN probe_set_group USING (category, group_id) "
            "WHERE sofa_id = ? AND set_id = ? ORDER BY category, group_id",
            (sofa_id, set_id),
        ):
            groups[category].append(
                SofaGroup(name, _estimate(first, low, high, n), _estimate(likely, least, most, n))
            )
        statements: dict[str, list[SofaStatement]] = defaultdict(list)
        for category, id, text, dds, variance, mean, first in self._db.execute(
            "SELECT category, statement_id, text, dds, variance, mean, first FROM sofa_statement "
            "JOIN probe_set_statement USING (category, statement_id) "
            "WHERE sofa_id = ? AND set_id = ? ORDER BY category, statement_id",
            (sofa_id, set_id),
        ):
            statements[category].append(
                SofaStatement(
                    id,
                    text,
                    number(dds),
                    number(variance),
                    number(mean),
                    tuple(self._json(first)),
                )
            )
        rows = self._db.execute(
            "SELECT category, score, low, high, n, quantiles FROM sofa_category "
            "WHERE sofa_id = ? ORDER BY category",
            (sofa_id,),
        ).fetchall()
        return tuple(
            SofaCategory(
                category,
                _estimate(*score),
                tuple(self._json(quantiles)),
                tuple(groups[category]),
                tuple(statements[category]),
            )
            for category, *score, quantiles in rows
        )

    def _add_named_groups(self, names: Sequence[str]) -> None:
        self._db.executemany(
            'INSERT OR IGNORE INTO "group" VALUES (?, ?)',
            [(node_id("group", name), storable(name)) for name in names],
        )
