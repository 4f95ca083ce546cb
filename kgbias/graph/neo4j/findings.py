"""What was found in the statements of runs: scores, topics, attributions, association tests, flags
of APX, scores of benchmarks, near-duplicates, and the places of nodes.
"""

import json
import math
from collections.abc import Collection, Sequence
from dataclasses import replace
from itertools import groupby

from kgbias.errors import UsageError
from kgbias.graph.neo4j.session import BATCH, Neo4jSession, Row, number
from kgbias.graph.types import (
    About,
    AssociationEdge,
    AssociationNode,
    Attribution,
    Flag,
    Flagged,
    GroupScore,
    ItemScore,
    Metric,
    NearDuplicate,
    NodePlace,
    Score,
    Topic,
    TopicModel,
    canonical_json,
    item_score,
    node_id,
    read_settings,
    storable,
    topic_model_id,
)
from kgbias.models.base import ModelInfo, Settings

_SCORES = """
MATCH (m:Metric {uid: $metric})
UNWIND $rows AS row
MATCH (t:Triple {uid: row.triple})
MERGE (t)-[s:SCORED]->(m)
SET s.value = row.value, s.label = row.label, s.names = row.names, s.parts = row.parts"""

_GROUP_SCORES = """
MATCH (run:Run {uid: $run})
UNWIND $rows AS row
MATCH (g:SocialGroup {uid: row.group})
MERGE (run)-[f:FIGURE {measure: row.measure, arm: row.arm}]->(g)
SET f.value = row.value, f.low = row.low, f.high = row.high, f.n = row.n, f.method = row.method"""


_FORGET_FIGURES = """
MATCH (:Run {uid: $run})-[f:FIGURE]->()
WHERE f.measure IN $replaced
DELETE f"""


_FORGET_TOPICS = (
    "MATCH (run:Run {uid: $run}) MATCH ()-[about:ABOUT {run: run.name}]->() DELETE about",
    "MATCH (:Run {uid: $run})-[:MODELLED_BY]->(m:TopicModel) DETACH DELETE m",
)
_MODEL = """
MATCH (run:Run {uid: $run})
MERGE (m:TopicModel {uid: $uid}) SET m.category = $category, m.settings = $settings
MERGE (run)-[:MODELLED_BY]->(m)"""
_TOPICS = """
MATCH (m:TopicModel {uid: $uid})
UNWIND $rows AS row
MERGE (topic:Topic {uid: row.uid})
SET topic.words = row.words, topic.category = row.category,
    topic.given = CASE row.given WHEN '' THEN coalesce(topic.given, '') ELSE row.given END
SET topic.name = CASE topic.given WHEN '' THEN row.plain ELSE topic.given END
MERGE (m)-[found:FOUND]->(topic)
SET found.number = row.number, found.size = row.size, found.coherence = row.coherence,
    found.stability = row.stability"""
_NAME_TOPIC = """
MATCH (topic:Topic {uid: $uid})
SET topic.given = $given,
    topic.name = CASE $given
        WHEN '' THEN reduce(name = '', word IN topic.words[..4] |
                            name + CASE name WHEN '' THEN '' ELSE ' ' END + word)
        ELSE $given END"""
_ABOUT = """
MATCH (run:Run {uid: $run})
UNWIND $rows AS row
MATCH (t:Triple {uid: row.triple}), (topic:Topic {uid: row.topic})
CREATE (t)-[:ABOUT {run: run.name, model: $uid, probability: row.probability,
                    assigned: row.assigned}]->(topic)"""
_OUTLIERS = """
MATCH (m:TopicModel {uid: $uid})
UNWIND $rows AS row
MATCH (t:Triple {uid: row.triple})
CREATE (t)-[:OUTLIER {probability: row.probability, assigned: row.assigned}]->(m)"""

_READ_MODELS = """
MATCH (:Run {uid: $run})-[:MODELLED_BY]->(m:TopicModel)
OPTIONAL MATCH (m)-[found:FOUND]->(topic:Topic)
WITH m, found, topic ORDER BY found.number
RETURN m.uid AS uid, m.category AS category, m.settings AS settings,
       collect({number: found.number, words: topic.words, size: found.size,
                coherence: found.coherence, stability: found.stability,
                given: coalesce(topic.given, '')}) AS topics
ORDER BY category"""
_READ_ABOUT = """
MATCH (t:Triple)-[about:ABOUT {run: $name}]->(topic:Topic)
RETURN about.model AS model, t.uid AS triple, topic.uid AS topic, about.probability AS probability,
       about.assigned AS assigned
UNION ALL
MATCH (:Run {name: $name})-[:MODELLED_BY]->(m:TopicModel)<-[about:OUTLIER]-(t:Triple)
RETURN m.uid AS model, t.uid AS triple, null AS topic, about.probability AS probability,
       about.assigned AS assigned"""

_ATTRIBUTE = """
UNWIND $rows AS row
MATCH (t:Triple {uid: row.triple}), (m:Metric {uid: row.metric})
MERGE (t)-[a:ATTRIBUTED {method: row.method}]->(m)
SET a.tokens = row.tokens, a.effects = row.effects, a.score = row.score"""
_READ_ATTRIBUTIONS = """
MATCH (run:Run {uid: $run})-[:MEASURED_BY]->(m:Metric)<-[a:ATTRIBUTED]-(t:Triple)
WHERE EXISTS { MATCH (t)<-[:YIELDED]-(:Generation)-[:IN]->(run) }
RETURN t.uid AS triple, m.measure AS measure, m.scorer AS scorer, m.version AS version,
       m.verbaliser AS verbaliser, a.tokens AS tokens, a.effects AS effects, a.score AS score,
       a.method AS method
ORDER BY measure, triple, method"""


def _about_row(about: About) -> Row:
    return {
        "triple": about.triple_id,
        "topic": about.topic_id,
        "probability": about.probability,
        "assigned": bool(about.assigned),
    }


_NUMBERS = ("effect_size", "p_value", "p_published", "p_holm", "p_bh", "low", "high")
_LABELS = {"group": "SocialGroup", "object": "Object", "topic": "Topic"}
_LINKED = {"object": "Object", "predicate": "Predicate"}
_PLACED = {"group": "SocialGroup", "object": "Object"}

_TEST = """
MERGE (m:Model {uid: $model.uid})
ON CREATE SET m.name = $model.name, m.revision = $model.revision
MERGE (t:AssociationTest {uid: $uid}) SET t += $properties
MERGE (t)-[:OF]->(m)
WITH t
OPTIONAL MATCH (t)-[old:TARGET|ATTRIBUTE]->()
DELETE old"""

_EDGE = """
MATCH (t:AssociationTest {{uid: $uid}})
UNWIND $ends AS end
MATCH (n:{label} {{uid: end.uid}})
MERGE (t)-[:{kind} {{side: end.side}}]->(n)"""

_READ_TESTS = """
MATCH (t:AssociationTest)-[:OF]->(m:Model)
WHERE $run IS NULL OR EXISTS { (:Run {uid: $run})-[:TESTED]->(t) }
OPTIONAL MATCH (t)-[e:TARGET|ATTRIBUTE]->(n)
WITH t, m, collect(CASE WHEN e IS NULL THEN null ELSE
    {side: e.side, labels: labels(n), uid: n.uid} END) AS ends
RETURN properties(t) AS t, m.name AS model, m.revision AS revision, ends
ORDER BY t.name, t.method, model, t.uid"""


def _statements(run_id: str | None, node: AssociationNode) -> list[tuple[str, Row]]:
    model = node.model
    statements: list[tuple[str, Row]] = [
        (
            _TEST,
            {
                "uid": node.id,
                "model": {
                    "uid": model.id,
                    "name": model.name,
                    "revision": model.revision,
                },
                "properties": {
                    "name": node.test,
                    "method": node.method,
                    "model": model.name,
                    "record": canonical_json(dict(node.record)),
                    "effect_size": number(node.effect_size),
                    "p_value": number(node.p_value),
                    "p_published": number(node.p_published),
                    "p_holm": number(node.p_holm),
                    "p_bh": number(node.p_bh),
                    "n_x": node.n_x,
                    "n_y": node.n_y,
                    "low": number(node.low),
                    "high": number(node.high),
                },
            },
        )
    ]
    by_end: dict[tuple[str, str], list[dict[str, str]]] = {}
    for edge in node.edges:
        end = {"uid": edge.node_id, "side": edge.side}
        by_end.setdefault((edge.name, _LABELS[edge.kind]), []).append(end)
    for (kind, label), ends in by_end.items():
        statements.append((_EDGE.format(kind=kind, label=label), {"uid": node.id, "ends": ends}))
    if run_id is not None:
        statements.append(
            (
                "MATCH (r:Run {uid: $run}), (t:AssociationTest {uid: $uid}) "
                "MERGE (r)-[:TESTED]->(t)",
                {"run": run_id, "uid": node.id},
            )
        )
    return statements


def _node(row: Row) -> AssociationNode:
    t = row["t"]
    kinds = {label: kind for kind, label in _LABELS.items()}
    edges = [
        AssociationEdge(end["side"], kinds[end["labels"][0]], end["uid"]) for end in row["ends"]
    ]
    numbers = {key: t.get(key, math.nan) for key in _NUMBERS}
    return AssociationNode(
        id=t["uid"],
        test=t["name"],
        method=t["method"],
        model=ModelInfo(row["model"], row["revision"]),
        record=json.loads(t["record"]),
        edges=tuple(sorted(edges, key=lambda e: (e.side, e.kind, e.node_id))),
        n_x=t["n_x"],
        n_y=t["n_y"],
        **numbers,
    )


_FORGET_FLAGS = """
MATCH (:SocialGroup)-[e:FLAGGED {apx_uid: $apx}]->(:Descriptor)
DELETE e"""
_SAVE_FLAGS = """
UNWIND $rows AS row
MERGE (g:SocialGroup {uid: row.group.uid}) ON CREATE SET g.name = row.group.name
MERGE (d:Descriptor {uid: row.descriptor.uid}) ON CREATE SET d = row.descriptor
MERGE (g)-[e:FLAGGED {apx_uid: $apx}]->(d)
SET e += $common, e += row.edge"""
_READ_FLAGS = """
MATCH (g:SocialGroup)-[e:FLAGGED]->(d:Descriptor)
RETURN properties(e) AS e, g.name AS group, d.text AS descriptor, d.axis AS axis
ORDER BY e.model, e.apx_uid, group, e.z, descriptor"""


_SAVE_ITEMS = """
MERGE (m:Model {uid: $model})
ON CREATE SET m.name = $name, m.revision = $revision
WITH m
UNWIND $rows AS row
MERGE (i:BenchmarkItem {uid: row.uid})
SET i.benchmark = row.benchmark, i.name = row.name, i.category = row.category
MERGE (i)-[e:READ_BY {asked: $asked}]->(m)
SET e.settings = $settings, e.scores = row.scores, e.tokens = row.tokens, e.seconds = row.seconds"""
_READ_ITEMS = """
UNWIND $ids AS id
MATCH (i:BenchmarkItem {uid: id})-[e:READ_BY {asked: $asked}]->(:Model)
RETURN i.uid AS id, i.benchmark AS benchmark, i.name AS name, i.category AS category,
       e.scores AS scores, e.tokens AS tokens, e.seconds AS seconds"""
_SETTINGS = """
MATCH (:BenchmarkItem)-[e:READ_BY]->(:Model {uid: $model})
RETURN DISTINCT e.settings AS settings ORDER BY settings"""


_FORGET_LINKS = "MATCH (run:Run {uid: $run}) MATCH ()-[near:NEAR {run: run.name}]->() DELETE near"
_SAVE_LINKS = """
MATCH (run:Run {{uid: $run}})
UNWIND $rows AS row
MATCH (n:{label} {{uid: row.uid}}), (head:{label} {{uid: row.head}})
CREATE (n)-[:NEAR {{run: run.name, similarity: row.similarity, method: row.method}}]->(head)"""
_READ_LINKS = """
MATCH (run:Run {{uid: $run}})
MATCH (n:{label})-[near:NEAR {{run: run.name}}]->(head:{label})
RETURN '{kind}' AS kind, n.uid AS node_id, head.uid AS head_id, n.text AS text,
       head.text AS head_text, near.similarity AS similarity, near.method AS method
ORDER BY head_text, text, node_id"""


_FORGET_PLACES = """
MATCH (run:Run {uid: $run})-[p:PLACED]->(n)
DELETE p
WITH n, run WHERE n.placed_by = run.name
REMOVE n.degree, n.betweenness, n.community, n.groups, n.placed_by"""
_SAVE_PLACES = """
MATCH (run:Run {{uid: $run}})
UNWIND $rows AS row
MATCH (n:{label} {{uid: row.uid}})
CREATE (run)-[placed:PLACED]->(n) SET placed = row.place"""
_SHOW = """
UNWIND $rows AS uid
MATCH (n:{label} {{uid: uid}})<-[placed:PLACED]-(run:Run)
WITH n, placed, run ORDER BY run.seq DESC
WITH n, collect({{place: properties(placed), run: run.name}})[0] AS newest
SET n += newest.place, n.placed_by = newest.run"""
_READ_PLACES = """
MATCH (:Run {uid: $run})-[p:PLACED]->(n)
RETURN CASE WHEN n:SocialGroup THEN 'group' ELSE 'object' END AS kind, n.uid AS node_id,
       n.name AS label, p.degree AS degree, p.betweenness AS betweenness,
       p.community AS community, p.groups AS groups
ORDER BY kind, node_id"""


class Findings(Neo4jSession):
    """See `kgbias.graph.store.Store`."""

    def save_scores(self, run_id: str, metric: Metric, scores: Sequence[Score]) -> None:
        rows = [
            {
                "triple": s.triple_id,
                "value": s.value,
                "label": s.label,
                "names": sorted(s.details),
                "parts": [float(s.details[name]) for name in sorted(s.details)],
            }
            for s in scores
        ]
        self.write(
            (
                """
                MATCH (run:Run {uid: $run})
                MERGE (m:Metric {uid: $metric}) SET m += $properties
                WITH run, m
                OPTIONAL MATCH (run)-[old:MEASURED_BY {measure: $properties.measure}]->(other)
                WHERE other <> m
                DELETE old
                MERGE (run)-[:MEASURED_BY {measure: $properties.measure}]->(m)""",
                {
                    "run": run_id,
                    "metric": metric.id,
                    "properties": {
                        "measure": metric.measure,
                        "scorer": metric.scorer,
                        "version": metric.version,
                        "verbaliser": metric.verbaliser,
                    },
                },
            ),
            (_SCORES, {"rows": rows[:BATCH], "metric": metric.id}),
        )
        self.write_rows(_SCORES, rows[BATCH:], metric=metric.id)

    def scored(self, metric: Metric, triple_ids: Sequence[str]) -> set[str]:
        rows = self.read(
            # From the triples: the metric may have millions of others.
            "UNWIND $uids AS uid MATCH (t:Triple {uid: uid}) "
            "WHERE EXISTS { (t)-[:SCORED]->(:Metric {uid: $metric}) } RETURN uid",
            metric=metric.id,
            uids=list(triple_ids),
        )
        return {row["uid"] for row in rows}

    def scores(self, metric: Metric, triple_ids: Sequence[str]) -> dict[str, Score]:
        rows = self.read(
            "UNWIND $uids AS uid MATCH (t:Triple {uid: uid})-[s:SCORED]->(:Metric {uid: $metric}) "
            "RETURN uid, s.value AS value, s.label AS label, s.names AS names, s.parts AS parts",
            metric=metric.id,
            uids=list(triple_ids),
        )
        return {
            r["uid"]: Score(
                r["uid"], r["value"], r["label"], dict(zip(r["names"], r["parts"], strict=True))
            )
            for r in rows
        }

    def scorers(self, run_id: str) -> list[Metric]:
        rows = self.read(
            "MATCH (m:Metric) WHERE EXISTS { (m)<-[:SCORED]-(:Triple)<-[:YIELDED]-(:Generation)"
            "-[:IN]->(:Run {uid: $run}) } RETURN m.measure AS measure, m.scorer AS scorer, "
            "m.version AS version, m.verbaliser AS verbaliser ORDER BY m.uid",
            run=run_id,
        )
        return [Metric(**row) for row in rows]

    def metrics(self, run_id: str) -> dict[str, Metric]:
        rows = self.read(
            "MATCH (:Run {uid: $run})-[:MEASURED_BY]->(m:Metric) "
            "RETURN m.measure AS measure, m.scorer AS scorer, m.version AS version, "
            "m.verbaliser AS verbaliser ORDER BY m.measure",
            run=run_id,
        )
        return {row["measure"]: Metric(**row) for row in rows}

    def save_group_scores(
        self, run_id: str, scores: Sequence[GroupScore], *, replacing: Collection[str] = ()
    ) -> None:
        rows = [
            {
                "group": s.group_id,
                "measure": s.measure,
                "arm": s.arm,
                "value": number(s.value),
                "low": number(s.low),
                "high": number(s.high),
                "n": s.n,
                "method": s.method,
            }
            for s in scores
        ]
        self.write(
            (
                _FORGET_FIGURES,
                {
                    "run": run_id,
                    "replaced": sorted(replacing),
                },
            ),
            (_GROUP_SCORES, {"run": run_id, "rows": rows}),
        )

    def group_scores(self, run_id: str) -> list[GroupScore]:
        rows = self.read(
            "MATCH (:Run {uid: $run})-[f:FIGURE]->(g:SocialGroup) "
            "RETURN g.uid AS group_id, f.measure AS measure, f.value AS value, f.low AS low, "
            "f.high AS high, f.n AS n, f.method AS method, coalesce(f.arm, '') AS arm "
            "ORDER BY measure, group_id, arm",
            run=run_id,
        )
        return [
            GroupScore(**{k: math.nan if v is None else v for k, v in row.items()})  # type: ignore[arg-type]
            for row in rows
        ]

    def save_topics(self, run_id: str, models: Sequence[TopicModel]) -> None:
        statements: list[tuple[str, Row]] = [(query, {"run": run_id}) for query in _FORGET_TOPICS]
        for model in models:
            uid = topic_model_id(run_id, model.category)
            settings = canonical_json(dict(model.settings))
            given = {"run": run_id, "uid": uid}
            statements.append((_MODEL, {**given, "category": model.category, "settings": settings}))
            topics = [
                {
                    "uid": t.id,
                    "plain": replace(t, given="").name,
                    "given": t.given,
                    "words": list(t.words),
                    "category": t.category,
                    "number": t.number,
                    "size": t.size,
                    "coherence": t.coherence,
                    "stability": t.stability,
                }
                for t in model.topics
            ]
            statements.append((_TOPICS, {**given, "rows": topics}))
            for query, found in (
                (_ABOUT, [a for a in model.about if a.topic_id is not None]),
                (_OUTLIERS, [a for a in model.about if a.topic_id is None]),
            ):
                for start in range(0, len(found), BATCH):
                    rows = [_about_row(a) for a in found[start : start + BATCH]]
                    statements.append((query, {**given, "rows": rows}))
        self.write(*statements)

    def topics(self, run_id: str) -> list[TopicModel]:
        names = self.read("MATCH (r:Run {uid: $run}) RETURN r.name AS name", run=run_id)
        if not names:
            return []
        about: dict[str, list[About]] = {}
        for row in self.read(_READ_ABOUT, name=names[0]["name"]):
            edge = About(row["triple"], row["topic"], row["probability"], row["assigned"])
            about.setdefault(row["model"], []).append(edge)
        return [
            TopicModel(
                row["category"],
                tuple(
                    Topic(row["category"], **{**t, "words": tuple(t["words"])})
                    for t in row["topics"]
                    if t["number"] is not None
                ),
                tuple(sorted(about.get(row["uid"], ()), key=lambda a: a.triple_id)),
                json.loads(row["settings"]),
            )
            for row in self.read(_READ_MODELS, run=run_id)
        ]

    def name_topic(self, topic_id: str, given: str) -> None:
        self.write((_NAME_TOPIC, {"uid": topic_id, "given": given}))

    def save_attributions(self, attributions: Sequence[Attribution]) -> None:
        self.write_rows(
            _ATTRIBUTE,
            [
                {
                    "triple": a.triple_id,
                    "metric": a.metric.id,
                    "method": a.method,
                    "tokens": list(a.tokens),
                    "effects": list(a.effects),
                    "score": a.score,
                }
                for a in attributions
            ],
        )

    def attributions(self, run_id: str) -> list[Attribution]:
        return [
            Attribution(
                row["triple"],
                Metric(row["measure"], row["scorer"], row["version"], row["verbaliser"]),
                tuple(row["tokens"]),
                tuple(row["effects"]),
                row["score"],
                row["method"],
            )
            for row in self.read(_READ_ATTRIBUTIONS, run=run_id)
        ]

    def known_nodes(self, kind: str, ids: Sequence[str]) -> set[str]:
        if kind not in _LABELS:
            raise UsageError(f"no kind of node {kind!r}; the kinds are {', '.join(_LABELS)}")
        rows = self.read(
            f"MATCH (n:{_LABELS[kind]}) WHERE n.uid IN $ids RETURN n.uid AS uid", ids=list(ids)
        )
        return {row["uid"] for row in rows}

    def save_associations(self, run_id: str | None, nodes: Sequence[AssociationNode]) -> None:
        self.write(*(statement for node in nodes for statement in _statements(run_id, node)))

    def associations(self, run_id: str | None = None) -> list[AssociationNode]:
        return [_node(row) for row in self.read(_READ_TESTS, run=run_id)]

    def save_flags(self, flagged: Flagged) -> None:
        self.write((_FORGET_FLAGS, {"apx": flagged.id}))
        rows = [
            {
                "group": {"uid": node_id("group", f.group), "name": storable(f.group)},
                "descriptor": {
                    "uid": node_id("descriptor", f.descriptor),
                    "text": storable(f.descriptor),
                    "name": storable(f.descriptor),
                    "axis": storable(f.axis),
                },
                "edge": {"bias_score": f.bias_score, "z": f.z},
            }
            for f in flagged.flags
        ]
        common = {
            "model": storable(flagged.model),
            "revision": flagged.revision,
            "settings": canonical_json(flagged.settings),
            "level": flagged.level,
            "groups": flagged.groups,
        }
        self.write_rows(_SAVE_FLAGS, rows, apx=flagged.id, common=common)

    def flags(self) -> list[Flagged]:
        found = []
        rows = self.read(_READ_FLAGS)
        for id, same in groupby(rows, lambda row: row["e"]["apx_uid"]):
            own = list(same)
            e = own[0]["e"]
            flags = tuple(
                Flag(r["group"], r["descriptor"], r["axis"], r["e"]["bias_score"], r["e"]["z"])
                for r in own
            )
            settings = read_settings(e["settings"])
            found.append(
                Flagged(id, e["model"], e["revision"], settings, e["level"], e["groups"], flags)
            )
        return found

    def save_item_scores(
        self, model: ModelInfo, settings: Settings, scores: Sequence[ItemScore]
    ) -> None:
        self.write_rows(
            _SAVE_ITEMS,
            [
                {
                    "uid": s.item.id,
                    "benchmark": s.item.benchmark,
                    "name": storable(s.item.name),
                    "category": storable(s.item.category),
                    "scores": list(s.scores),
                    "tokens": s.tokens,
                    "seconds": s.seconds,
                }
                for s in scores
            ],
            model=model.id,
            name=model.name,
            revision=model.revision,
            asked=model.asked(settings),
            settings=canonical_json(settings),
        )

    def item_scores(
        self, model: ModelInfo, settings: Settings, ids: Sequence[str]
    ) -> dict[str, ItemScore]:
        rows = self.read(_READ_ITEMS, ids=list(ids), asked=model.asked(settings))
        return {row["id"]: item_score(row) for row in rows}

    def item_settings(self, model: ModelInfo) -> list[Settings]:
        return [read_settings(row["settings"]) for row in self.read(_SETTINGS, model=model.id)]

    def save_near_duplicates(self, run_id: str, links: Sequence[NearDuplicate]) -> None:
        statements: list[tuple[str, Row]] = [(_FORGET_LINKS, {"run": run_id})]
        for kind, label in _LINKED.items():
            rows = [
                {
                    "uid": x.node_id,
                    "head": x.head_id,
                    "similarity": x.similarity,
                    "method": x.method,
                }
                for x in links
                if x.kind == kind
            ]
            statements.append((_SAVE_LINKS.format(label=label), {"run": run_id, "rows": rows}))
        self.write(*statements)

    def near_duplicates(self, run_id: str) -> list[NearDuplicate]:
        return [
            NearDuplicate(**row)
            for kind, label in _LINKED.items()
            for row in self.read(_READ_LINKS.format(label=label, kind=kind), run=run_id)
        ]

    def save_places(self, run_id: str, places: Sequence[NodePlace]) -> None:
        before = {(p.kind, p.node_id) for p in self.places(run_id)}
        self.write((_FORGET_PLACES, {"run": run_id}))
        for kind, label in _PLACED.items():
            rows = [
                {
                    "uid": p.node_id,
                    "place": {
                        "degree": p.degree,
                        "betweenness": p.betweenness,
                        "community": p.community,
                        "groups": p.groups,
                    },
                }
                for p in places
                if p.kind == kind
            ]
            self.write_rows(_SAVE_PLACES.format(label=label), rows, run=run_id)
            touched = before | {(p.kind, p.node_id) for p in places}
            self.write_rows(
                _SHOW.format(label=label), sorted(id for found, id in touched if found == kind)
            )

    def places(self, run_id: str) -> list[NodePlace]:
        return [NodePlace(**row) for row in self.read(_READ_PLACES, run=run_id)]
