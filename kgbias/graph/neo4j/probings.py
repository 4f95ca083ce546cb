"""What models find probable: probes of statements, forced choices, probes by name with the beliefs
that follow, and SoFa on sets of probes.
"""

import json
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from math import nan
from typing import Any

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
    read_settings,
    storable,
)
from kgbias.models.base import ModelInfo
from kgbias.stats.estimate import Estimate

_MODEL = """
MERGE (m:Model {uid: $uid})
ON CREATE SET m.name = $name, m.revision = $revision"""
_STATEMENTS = """
UNWIND $rows AS row
MERGE (s:Statement {uid: row.uid})
SET s.predicate_uid = row.predicate, s.object_uid = row.object
WITH s, row
MATCH (p:Predicate {uid: row.predicate}), (o:Object {uid: row.object})
SET s.text = p.text + ' ' + o.text, s.name = p.text + ' ' + o.text
WITH s, p, o
MATCH (p)<-[:PREDICATE]-(t:Triple)-[:OBJECT]->(o)
MERGE (t)-[:STATES]->(s)"""
# MERGE, or `old.run = run.name`, would look through the index of all edges of the run for each row.
# Each pair of ends comes once.
_ASKED = """
MATCH (run:Run {{uid: $run}}), (m:Model {{uid: $model}})
UNWIND $rows AS row
MATCH (a:{start} {{uid: row.a}}), (b:{end} {{uid: row.b}})
OPTIONAL MATCH (a)-[old:{type}]->(b) 
WHERE old.{by} = $asked AND toString(old.run) = run.name
FOREACH (_ IN CASE WHEN old IS NULL THEN [] ELSE [1] END | SET old += row.edge)
FOREACH (_ IN CASE WHEN old IS NULL THEN [1] ELSE [] END |
    CREATE (a)-[e:{type}]->(b)
    SET e = row.edge, e.run = run.name, e.{by} = $asked, e.model = m.name)"""
_PROBING = """
MATCH (run:Run {uid: $run}), (m:Model {uid: $model})
MERGE (run)-[p:PROBED_WITH {uid: $probing}]->(m)
SET p.settings = $settings, p.record = $record"""
_READ_PROBES_OF = """
MATCH (run:Run {{uid: $run}})
MATCH (s:Statement)-[p:PROBED {{run: run.name, probing_uid: $probing}}]->(g:SocialGroup)
{which}
RETURN s.predicate_uid AS predicate_id, s.object_uid AS object_id, g.uid AS group_id,
       p.log_likelihood AS log_likelihood, p.tokens AS tokens,
       p.statement_log_likelihood AS statement_log_likelihood,
       p.statement_tokens AS statement_tokens, p.group_log_likelihood AS group_log_likelihood,
       p.group_tokens AS group_tokens, p.rank AS rank, p.pieces AS pieces, p.bits AS bits,
       p.lift AS lift, p.similarity AS similarity, p.association AS association
ORDER BY s.uid, group_id"""
_READ_PROBINGS = """
MATCH (:Run {uid: $run})-[p:PROBED_WITH]->(m:Model)
RETURN m.name AS name, m.revision AS revision, p.settings AS settings, p.record AS record
ORDER BY name, p.uid"""

_NUMBERS = (
    "log_likelihood", "tokens", "statement_log_likelihood", "statement_tokens",
    "group_log_likelihood", "group_tokens", "rank", "lift", "similarity", "association",
)  # fmt: skip
_ASKED_BY = {
    "PROBED": "probing_uid",
    "CHOSEN": "choosing_uid",
    "PROBED_BEFORE": "believing_uid",
    "BELIEVED": "believing_uid",
}


_FORGET_CHOICES = """
MATCH (run:Run {uid: $run})
OPTIONAL MATCH (run)-[p:PUT_TO {uid: $choosing}]->()
DELETE p
WITH DISTINCT run
MATCH ()-[e:CHOSEN {run: run.name, choosing_uid: $choosing}]->()
DELETE e"""
_CHOOSING = """
MATCH (run:Run {uid: $run}), (m:Model {uid: $model})
MERGE (run)-[p:PUT_TO {uid: $choosing}]->(m)
SET p.settings = $settings, p.record = $record"""
_READ_CHOICES = """
MATCH (run:Run {{uid: $run}})
MATCH (s:Statement)-[e:CHOSEN {{run: run.name, choosing_uid: $choosing}}]->(g:SocialGroup) {which}
RETURN s.predicate_uid AS predicate_id, s.object_uid AS object_id, g.uid AS group_id,
       properties(e) AS e
ORDER BY s.uid, group_id"""
_READ_CHOOSINGS = """
MATCH (:Run {uid: $run})-[p:PUT_TO]->(m:Model)
RETURN m.name AS name, m.revision AS revision, p.settings AS settings, p.record AS record
ORDER BY name, p.uid"""
_LISTS = ("answers", "others")


_NAMES = """
UNWIND $rows AS row
MERGE (n:Name {uid: row.uid}) ON CREATE SET n.text = row.text, n.name = row.text
SET n.form = row.form, n.root = row.root
WITH n, row
OPTIONAL MATCH (g:SocialGroup {uid: row.group})
FOREACH (_ IN CASE WHEN g IS NULL THEN [] ELSE [g] END |
    MERGE (n)-[e:NAME_OF]->(g) SET e.mark = row.mark)
WITH DISTINCT n
OPTIONAL MATCH (n)-[e:NAME_OF]->()
WITH n, count(e) AS groups
SET n.nonce = groups = 0"""
_READ_NAMES = """
MATCH (n:Name)
OPTIONAL MATCH (n)-[e:NAME_OF]->(g)
RETURN n.text AS text, g.uid AS group, n.form AS form, n.root AS root, e.mark AS mark"""
_READ_PROBED_NAMES = """
MATCH (run:Run {uid: $run})
MATCH (n)-[e:PROBED_BEFORE {run: run.name}]->() WHERE e.believing_uid = $believing
WITH DISTINCT run, n
OPTIONAL MATCH (n)-[e:NAME_OF]->(g)
WITH run, n, e, g WHERE g IS NULL OR EXISTS { (run)-[:SEEDED]->(g) }
RETURN n.text AS text, g.uid AS group, n.form AS form, n.root AS root, e.mark AS mark"""
_WORDS = """
UNWIND $rows AS row
MERGE (n:{label} {{uid: row.uid}}) ON CREATE SET n.text = row.text, n.name = row.text"""
_READ_STATEMENTS = """
MATCH (run:Run {uid: $run})
MATCH ()-[e:PROBED_BEFORE {run: run.name}]->(s:Statement) WHERE e.believing_uid = $believing
WITH DISTINCT s
MATCH (p:Predicate {uid: s.predicate_uid}), (o:Object {uid: s.object_uid})
RETURN p.text AS predicate, o.text AS object"""
_READ_PROBES = """
MATCH (run:Run {{uid: $run}})
MATCH (n)-[e:PROBED_BEFORE {{run: run.name}}]->(s:Statement {which})
WHERE e.believing_uid = $believing
RETURN s.predicate_uid AS predicate_id, s.object_uid AS object_id, n.uid AS name_id, e.bits AS bits
ORDER BY s.uid, name_id"""
_FORGET_BELIEFS = """
MATCH (run:Run {uid: $run})
MATCH ()-[e:BELIEVED {run: run.name}]->() WHERE e.believing_uid = $believing
DELETE e"""
_READ_BELIEFS = """
MATCH (run:Run {{uid: $run}})
MATCH (s:Statement {which})-[e:BELIEVED {{run: run.name}}]->(g)
WHERE e.believing_uid = $believing
RETURN s.predicate_uid AS predicate_id, s.object_uid AS object_id, g.uid AS group_id,
       properties(e) AS e
ORDER BY s.uid, group_id"""
_BELIEVING = """
MATCH (run:Run {uid: $run}), (m:Model {uid: $model})
MERGE (run)-[b:BELIEVED_BY {uid: $believing}]->(m)
SET b.settings = $settings, b.record = $record"""
_READ_BELIEVINGS = """
MATCH (:Run {uid: $run})-[b:BELIEVED_BY]->(m:Model)
RETURN m.name AS name, m.revision AS revision, b.settings AS settings, b.record AS record
ORDER BY name, b.uid"""
_ONE = "{uid: $statement}"  # of all statements


def _properties(edge: BelievedEdge) -> dict[str, object]:
    """What the edge holds, without what is not a number."""
    return {
        name: number(value) if isinstance(value, float) else value
        for name, value in edge.properties.items()
    }


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
_READ_SOFA = """
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


def _sofa_properties(e: Estimate, name: str) -> dict[str, Any]:
    return {name: number(e.value), "low": number(e.low), "high": number(e.high), "n": e.n}


def _estimate(row: Row, name: str, before: str = "") -> Estimate:
    value, low, high = (row.get(key, math.nan) for key in (name, f"{before}low", f"{before}high"))
    return Estimate(value, low, high, row["n"])


class Probings(Neo4jSession):
    """See `kgbias.graph.store.Store`."""

    def save_probes(self, run_id: str, probing: Probing, edges: Sequence[ProbedEdge]) -> None:
        self._add_model(probing.model)
        self._add_statements(edges)
        rows = {
            (e.statement_id, e.group_id): {name: getattr(e, name) for name in _NUMBERS}
            | {"pieces": list(e.pieces), "bits": list(e.bits)}
            for e in edges
        }
        self._write_asked(run_id, probing, ("Statement", "PROBED", "SocialGroup"), rows)

    def save_probing(self, run_id: str, probing: Probing) -> None:
        self._add_model(probing.model)
        given = {
            "run": run_id,
            "model": probing.model.id,
            "probing": probing.id,
            "settings": canonical_json(probing.settings),
            "record": canonical_json(dict(probing.record)),
        }
        self.write((_PROBING, given))

    def probes(
        self, run_id: str, probing_id: str, statement_id: str | None = None
    ) -> list[ProbedEdge]:
        which = "" if statement_id is None else "WHERE s.uid = $statement"
        rows = self.read(
            _READ_PROBES_OF.format(which=which),
            run=run_id,
            probing=probing_id,
            statement=statement_id,
        )
        lists = ("pieces", "bits")  # absent where neo4j-admin imported empty ones
        return [ProbedEdge(**{**row, **{k: tuple(row[k] or ()) for k in lists}}) for row in rows]

    def probings(self, run_id: str) -> list[Probing]:
        return [
            Probing(
                ModelInfo(row["name"], row["revision"]),
                read_settings(row["settings"]),
                json.loads(row["record"]),
            )
            for row in self.read(_READ_PROBINGS, run=run_id)
        ]

    def _add_statements(
        self,
        edges: Sequence[ProbedEdge]
        | Sequence[ChosenEdge]
        | Sequence[NameProbe]
        | Sequence[BelievedEdge],
    ) -> None:
        statements = {e.statement_id: (e.predicate_id, e.object_id) for e in edges}
        self.write_rows(
            _STATEMENTS,
            [
                {"uid": uid, "predicate": predicate, "object": object}
                for uid, (predicate, object) in sorted(statements.items())
            ],
        )

    def _write_asked(
        self,
        run_id: str,
        asked: Probing,
        kind: tuple[str, str, str],
        edges: Mapping[tuple[str, str], Mapping[str, object]],
    ) -> None:
        """Write edges of a kind (start, type, end) that a model was asked for, by their ends. One
        that exists is replaced."""
        start, edge, end = kind
        query = _ASKED.format(start=start, type=edge, end=end, by=_ASKED_BY[edge])
        rows = [{"a": a, "b": b, "edge": properties} for (a, b), properties in edges.items()]
        self.write_rows(query, rows, run=run_id, model=asked.model.id, asked=asked.id)

    def _add_model(self, model: ModelInfo) -> None:
        self.write((_MODEL, {"uid": model.id, "name": model.name, "revision": model.revision}))

    def save_choices(self, run_id: str, choosing: Choosing, edges: Sequence[ChosenEdge]) -> None:
        given = {"run": run_id, "model": choosing.model.id, "choosing": choosing.id}
        self.write((_FORGET_CHOICES, given))
        self._add_model(choosing.model)
        self._add_statements(edges)
        rows = {
            (e.statement_id, e.group_id): e.properties
            | {name: list(getattr(e, name)) for name in _LISTS}
            for e in edges
        }
        self._write_asked(run_id, choosing, ("Statement", "CHOSEN", "SocialGroup"), rows)
        how = {
            "settings": canonical_json(choosing.settings),
            "record": canonical_json(dict(choosing.record)),
        }
        self.write((_CHOOSING, given | how))

    def choices(
        self, run_id: str, choosing_id: str, statement_id: str | None = None
    ) -> list[ChosenEdge]:
        found = []
        query = _READ_CHOICES.format(
            which="" if statement_id is None else "WHERE s.uid = $statement"
        )
        for row in self.read(query, run=run_id, choosing=choosing_id, statement=statement_id):
            edge = {name: row["e"].get(name) for name in CHOSEN_PROPERTIES}
            edge |= {name: tuple(edge[name] or ()) for name in _LISTS}
            edge["verdict"] = edge["verdict"] or ""  # absent where neo4j-admin imported none
            ends = (row["predicate_id"], row["object_id"], row["group_id"])
            found.append(ChosenEdge(*ends, **edge))
        return found

    def choosings(self, run_id: str) -> list[Choosing]:
        return [
            Choosing(
                ModelInfo(row["name"], row["revision"]),
                read_settings(row["settings"]),
                json.loads(row["record"]),
            )
            for row in self.read(_READ_CHOOSINGS, run=run_id)
        ]

    def save_names(self, names: Sequence[GroupName]) -> None:
        rows = [
            {"uid": n.id, "group": n.group_id or None, "mark": n.mark}
            | {name: storable(getattr(n, name)) for name in ("text", "form", "root")}
            for n in names
        ]
        self.write_rows(_NAMES, rows)

    def names(self, run_id: str | None = None, believing_id: str | None = None) -> list[GroupName]:
        if run_id is None:
            rows = self.read(_READ_NAMES)
        else:
            rows = self.read(_READ_PROBED_NAMES, run=run_id, believing=believing_id)
        found = (
            GroupName(row["text"], row["group"] or "", row["form"], row["root"], row["mark"] or "")
            for row in rows
        )
        return sorted(found, key=lambda n: (n.text, n.group_id))

    def keep_statements(self, statements: Sequence[tuple[str, str]]) -> None:
        triples = [Triple("", *words) for words in statements]
        self.write_rows(
            _WORDS.format(label="Predicate"),
            [{"uid": t.predicate_id, "text": storable(t.predicate)} for t in triples],
        )
        self.write_rows(
            _WORDS.format(label="Object"),
            [{"uid": t.object_id, "text": storable(t.object)} for t in triples],
        )
        self._add_statements([NameProbe(t.predicate_id, t.object_id, "", ()) for t in triples])

    def statements(self, run_id: str, believing_id: str) -> list[tuple[str, str]]:
        rows = self.read(_READ_STATEMENTS, run=run_id, believing=believing_id)
        return sorted((row["predicate"], row["object"]) for row in rows)

    def save_believing(self, run_id: str, believing: Believing) -> None:
        self._add_model(believing.model)
        given = {
            "run": run_id,
            "model": believing.model.id,
            "believing": believing.id,
            "settings": canonical_json(believing.settings),
            "record": canonical_json(dict(believing.record)),
        }
        self.write((_BELIEVING, given))

    def believings(self, run_id: str) -> list[Believing]:
        return [
            Believing(
                ModelInfo(row["name"], row["revision"]),
                read_settings(row["settings"]),
                json.loads(row["record"]),
            )
            for row in self.read(_READ_BELIEVINGS, run=run_id)
        ]

    def save_name_probes(
        self, run_id: str, believing: Believing, probes: Sequence[NameProbe]
    ) -> None:
        self._add_model(believing.model)
        self._add_statements(probes)
        rows = {
            (p.name_id, p.statement_id): {"bits": list(p.bits), "mean": number(p.mean)}
            for p in probes
        }
        self._write_asked(run_id, believing, ("Name", "PROBED_BEFORE", "Statement"), rows)

    def name_probes(
        self, run_id: str, believing_id: str, statement_id: str | None = None
    ) -> list[NameProbe]:
        query = _READ_PROBES.format(which="" if statement_id is None else _ONE)
        return [
            NameProbe(row["predicate_id"], row["object_id"], row["name_id"], tuple(row["bits"]))
            for row in self.read(query, run=run_id, believing=believing_id, statement=statement_id)
        ]

    def save_beliefs(
        self, run_id: str, believing: Believing, edges: Sequence[BelievedEdge]
    ) -> None:
        self.write((_FORGET_BELIEFS, {"run": run_id, "believing": believing.id}))
        self._add_model(believing.model)
        self._add_statements(edges)
        rows = {(e.statement_id, e.group_id): _properties(e) for e in edges}
        self._write_asked(run_id, believing, ("Statement", "BELIEVED", "SocialGroup"), rows)

    def beliefs(
        self, run_id: str, believing_id: str, statement_id: str | None = None
    ) -> list[BelievedEdge]:
        query = _READ_BELIEFS.format(which="" if statement_id is None else _ONE)
        return [
            BelievedEdge(
                row["predicate_id"],
                row["object_id"],
                row["group_id"],
                **{name: row["e"].get(name, nan) for name in BELIEVED_PROPERTIES},
            )
            for row in self.read(query, run=run_id, believing=believing_id, statement=statement_id)
        ]

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
            **_sofa_properties(result.score, "score"),
        }
        given = {
            "set": result.probe_set,
            "uid": uid,
            "model": {"uid": model.id, "name": model.name, "revision": model.revision},
            "properties": properties,
        }
        self.write((_RESULT, given))
        for c in result.categories:
            edge = {**_sofa_properties(c.score, "score"), "quantiles": list(c.quantiles)}
            self.write_rows(_SCORES, [{"category": c.category, "edge": edge}], uid=uid)
            groups: list[Row | str] = [
                {
                    "category": c.category,
                    "group": node_id("group", g.group),
                    "edge": {
                        **_sofa_properties(g.first, "first"),
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
            for row in self.read(_READ_SOFA, run=run_id)
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
