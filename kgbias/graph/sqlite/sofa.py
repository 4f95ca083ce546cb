"""Sets of probes, and SoFa of models on them."""

import math
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from kgbias.estimate import Estimate
from kgbias.graph.sofa import (
    ProbePart,
    ProbeSet,
    ProbeStatement,
    SofaCategory,
    SofaGroup,
    SofaResult,
    SofaStatement,
)
from kgbias.graph.sqlite.database import Database
from kgbias.graph.types import canonical_json, node_id, storable
from kgbias.models.base import ModelInfo


class SofaTables(Database):
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
                *_row(result.score),
                canonical_json(dict(result.record)),
            ),
        )
        for table in ("sofa_category", "sofa_group", "sofa_statement"):
            self._db.execute(f"DELETE FROM {table} WHERE sofa_id = ?", (result.id,))
        for c in result.categories:
            self._db.execute(
                "INSERT INTO sofa_category VALUES (?, ?, ?, ?, ?, ?, ?)",
                (result.id, c.category, *_row(c.score), canonical_json(c.quantiles)),
            )
            self._db.executemany(
                "INSERT OR REPLACE INTO sofa_group VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                [
                    (result.id, c.category, node_id("group", g.group), *_row(g.first),
                     *_row(g.likeliest)[:3])
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
                    _number(dds),
                    _number(variance),
                    _number(mean),
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


def _row(e: Estimate) -> tuple[Any, ...]:
    return e.value, e.low, e.high, e.n


def _estimate(value: float | None, low: float | None, high: float | None, n: int) -> Estimate:
    return Estimate(_number(value), _number(low), _number(high), n)


def _number(value: float | None) -> float:
    return math.nan if value is None else value  # SQLite keeps NaN as NULL
