"""Topics with their ABOUT edges, and attributions, as nodes and edges."""

import json
from collections.abc import Sequence
from dataclasses import replace

from kgbias.graph.neo4j.session import BATCH, Neo4jSession, Row
from kgbias.graph.types import (
    About,
    Attribution,
    Metric,
    Topic,
    TopicModel,
    canonical_json,
    topic_model_id,
)

_FORGET = (
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
_NAME = """
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


class TopicNodes(Neo4jSession):
    def save_topics(self, run_id: str, models: Sequence[TopicModel]) -> None:
        statements: list[tuple[str, Row]] = [(query, {"run": run_id}) for query in _FORGET]
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
        self.write((_NAME, {"uid": topic_id, "given": given}))

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


def _about_row(about: About) -> Row:
    return {
        "triple": about.triple_id,
        "topic": about.topic_id,
        "probability": about.probability,
        "assigned": bool(about.assigned),
    }
