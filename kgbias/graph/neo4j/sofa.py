"""Sets of probes that ASK groups and statements, and SoFa of models ON them."""

import json
import math
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from kgbias.estimate import Estimate
from kgbias.graph.neo4j.session import Neo4jSession, Row, number
from kgbias.graph.sofa import (
    ProbePart,
    ProbeSet,
    ProbeStatement,
    SofaCategory,
    SofaGroup,
    SofaResult,
    SofaStatement,
)
from kgbias.graph.types import canonical_json, node_id, read_settings, storable
from kgbias.models.base import ModelInfo

_SET = "MERGE (p:ProbeSet {uid: $uid}) SET p += $properties"
_SET_GROUPS = """
MATCH (p:ProbeSet {uid: $set})
UNWIND $rows AS row
MERGE (c:Category {name: row.category})
MERGE (g:SocialGroup {uid: row.uid}) ON CREATE SET g.name = row.name
MERGE (p)-[:ASKS {category: row.category, text: row.name}]->(g)"""
_SET_STATEMENTS = """
MATCH (p:ProbeSet {uid: $set})
UNWIND $rows AS row
MERGE (s:Statement {uid: row.uid}) ON CREATE SET s.text = row.text, s.name = row.text
MERGE (p)-[a:ASKS {category: row.category}]->(s)
SET a.text = row.text, a.words = row.words, a.hate = row.hate, a.cluster = row.cluster"""
_READ_SETS = """
MATCH (p:ProbeSet) RETURN p.uid AS uid, p.name AS name, p.record AS record ORDER BY name, uid"""
_READ_SET_GROUPS = """
MATCH (:ProbeSet {uid: $set})-[a:ASKS]->(g:SocialGroup)
RETURN a.category AS category, a.text AS name ORDER BY category, g.uid, name"""
_READ_SET_STATEMENTS = """
MATCH (:ProbeSet {uid: $set})-[a:ASKS]->(s:Statement)
RETURN a.category AS category, s.uid AS id, a.text AS text, a.hate AS hate, a.cluster AS cluster
ORDER BY category, id"""

_RESULT = """
MATCH (p:ProbeSet {uid: $set})
MERGE (m:Model {uid: $model.uid})
ON CREATE SET m.name = $model.name, m.revision = $model.revision
MERGE (r:SofaResult {uid: $uid}) SET r += $properties
MERGE (r)-[:OF]->(m)
MERGE (r)-[:ON]->(p)
WITH r
OPTIONAL MATCH (r)-[old:SCORES|PUTS_FIRST|DISPARITY]->()
DELETE old"""
_OF_RUN = """
MATCH (run:Run {uid: $run}), (r:SofaResult {uid: $uid}) MERGE (run)-[:TESTED]->(r)"""
_SCORES = """
MATCH (r:SofaResult {uid: $uid})
UNWIND $rows AS row
MERGE (c:Category {name: row.category})
MERGE (r)-[e:SCORES]->(c)
SET e += row.edge"""
_FIRST = """
MATCH (r:SofaResult {uid: $uid})
UNWIND $rows AS row
MATCH (g:SocialGroup {uid: row.group})
MERGE (r)-[e:PUTS_FIRST {category: row.category}]->(g)
SET e += row.edge"""
_DISPARITY = """
MATCH (r:SofaResult {uid: $uid})
UNWIND $rows AS row
MATCH (s:Statement {uid: row.statement})
MERGE (r)-[e:DISPARITY {category: row.category}]->(s)
SET e += row.edge"""
_READ = """
MATCH (p:ProbeSet)<-[:ON]-(r:SofaResult)-[:OF]->(m:Model)
WHERE $run IS NULL OR EXISTS { (:Run {uid: $run})-[:TESTED]->(r) }
RETURN properties(r) AS r, p.uid AS set, m.name AS model, m.revision AS revision
ORDER BY model, r.uid"""
_READ_SCORES = """
MATCH (:SofaResult {uid: $uid})-[e:SCORES]->(c:Category)
RETURN c.name AS category, properties(e) AS e ORDER BY category"""
_READ_FIRST = """
MATCH (p:ProbeSet)<-[:ON]-(:SofaResult {uid: $uid})-[e:PUTS_FIRST]->(g:SocialGroup)
MATCH (p)-[a:ASKS {category: e.category}]->(g)
RETURN a.text AS group, properties(e) AS e ORDER BY e.category, g.uid"""
_READ_DISPARITY = """
MATCH (p:ProbeSet)<-[:ON]-(:SofaResult {uid: $uid})-[e:DISPARITY]->(s:Statement)
MATCH (p)-[a:ASKS {category: e.category}]->(s)
RETURN s.uid AS id, a.text AS text, properties(e) AS e ORDER BY e.category, id"""


class SofaNodes(Neo4jSession):
    def save_probe_set(self, probe_set: ProbeSet) -> None:
        properties = {
            "name": storable(probe_set.name),
            "groups": probe_set.groups,
            "statements": probe_set.statements,
            "probes": probe_set.probes,
            "record": canonical_json(dict(probe_set.record)),
        }
        self.write((_SET, {"uid": probe_set.id, "properties": properties}))
        groups: list[Row | str] = [
            {"category": part.category, "uid": node_id("group", g), "name": storable(g)}
            for part in probe_set.parts
            for g in part.groups
        ]
        statements: list[Row | str] = [
            {
                "category": part.category, "uid": s.id, "text": storable(s.text),
                "words": s.words, "hate": s.hate, "cluster": s.cluster,
            }
            for part in probe_set.parts
            for s in part.statements
        ]  # fmt: skip
        self.write_rows(_SET_GROUPS, groups, set=probe_set.id)
        self.write_rows(_SET_STATEMENTS, statements, set=probe_set.id)

    def probe_sets(self) -> list[ProbeSet]:
        return [
            ProbeSet(row["name"], self._set_parts(row["uid"]), json.loads(row["record"]))
            for row in self.read(_READ_SETS)
        ]

    def _set_parts(self, set_id: str) -> tuple[ProbePart, ...]:
        groups: dict[str, list[str]] = defaultdict(list)
        for row in self.read(_READ_SET_GROUPS, set=set_id):
            groups[row["category"]].append(row["name"])
        statements: dict[str, list[ProbeStatement]] = defaultdict(list)
        for row in self.read(_READ_SET_STATEMENTS, set=set_id):
            statements[row["category"]].append(
                ProbeStatement(row["id"], row["text"], row["hate"], row["cluster"])
            )
        return tuple(
            ProbePart(category, tuple(own), tuple(statements[category]))
            for category, own in groups.items()
        )

    def save_sofa(self, run_id: str | None, results: Sequence[SofaResult]) -> None:
        for result in results:
            self._save_result(result)
            if run_id is not None:
                self.write((_OF_RUN, {"run": run_id, "uid": result.id}))

    def _save_result(self, result: SofaResult) -> None:
        model, uid = result.model, result.id
        properties = {
            "model": model.name,
            "settings": canonical_json(result.settings),
            "measure": result.measure,
            "record": canonical_json(dict(result.record)),
            **_properties(result.score, "score"),
        }
        given = {
            "set": result.probe_set,
            "uid": uid,
            "model": {"uid": model.id, "name": model.name, "revision": model.revision},
            "properties": properties,
        }
        self.write((_RESULT, given))
        for c in result.categories:
            edge = {**_properties(c.score, "score"), "quantiles": list(c.quantiles)}
            self.write_rows(_SCORES, [{"category": c.category, "edge": edge}], uid=uid)
            groups: list[Row | str] = [
                {
                    "category": c.category,
                    "group": node_id("group", g.group),
                    "edge": {
                        **_properties(g.first, "first"),
                        "likeliest": number(g.likeliest.value),
                        "likeliest_low": number(g.likeliest.low),
                        "likeliest_high": number(g.likeliest.high),
                    },
                }
                for g in c.groups
            ]
            statements: list[Row | str] = [
                {
                    "category": c.category,
                    "statement": s.id,
                    "edge": {
                        "dds": number(s.dds),
                        "variance": number(s.variance),
                        "mean": number(s.mean),
                        "first": list(s.first),
                    },
                }
                for s in c.statements
            ]
            self.write_rows(_FIRST, groups, uid=uid)
            self.write_rows(_DISPARITY, statements, uid=uid)

    def sofa(self, run_id: str | None = None) -> list[SofaResult]:
        return [
            SofaResult(
                row["set"],
                ModelInfo(row["model"], row["revision"]),
                read_settings(row["r"]["settings"]),
                row["r"]["measure"],
                _estimate(row["r"], "score"),
                self._sofa_categories(row["r"]["uid"]),
                json.loads(row["r"]["record"]),
            )
            for row in self.read(_READ, run=run_id)
        ]

    def _sofa_categories(self, uid: str) -> tuple[SofaCategory, ...]:
        groups: dict[str, list[SofaGroup]] = defaultdict(list)
        for row in self.read(_READ_FIRST, uid=uid):
            e = row["e"]
            groups[e["category"]].append(
                SofaGroup(
                    row["group"], _estimate(e, "first"), _estimate(e, "likeliest", "likeliest_")
                )
            )
        statements: dict[str, list[SofaStatement]] = defaultdict(list)
        for row in self.read(_READ_DISPARITY, uid=uid):
            e = row["e"]
            dds, variance, mean = (e.get(name, math.nan) for name in ("dds", "variance", "mean"))
            statements[e["category"]].append(
                SofaStatement(row["id"], row["text"], dds, variance, mean, tuple(e["first"]))
            )
        return tuple(
            SofaCategory(
                row["category"],
                _estimate(row["e"], "score"),
                tuple(row["e"]["quantiles"]),
                tuple(groups[row["category"]]),
                tuple(statements[row["category"]]),
            )
            for row in self.read(_READ_SCORES, uid=uid)
        )


def _properties(e: Estimate, name: str) -> dict[str, Any]:
    return {name: number(e.value), "low": number(e.low), "high": number(e.high), "n": e.n}


def _estimate(row: Row, name: str, before: str = "") -> Estimate:
    value, low, high = (row.get(key, math.nan) for key in (name, f"{before}low", f"{before}high"))
    return Estimate(value, low, high, row["n"])
