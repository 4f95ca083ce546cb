"""Items of benchmarks as nodes, with READ_BY edges to models."""

from collections.abc import Sequence

from kgbias.graph.neo4j.session import Neo4jSession
from kgbias.graph.probed import ItemScore, item_score
from kgbias.graph.types import canonical_json, read_settings, storable
from kgbias.models.base import ModelInfo, Settings

_SAVE = """
MERGE (m:Model {uid: $model})
ON CREATE SET m.name = $name, m.revision = $revision
WITH m
UNWIND $rows AS row
MERGE (i:BenchmarkItem {uid: row.uid})
SET i.benchmark = row.benchmark, i.name = row.name, i.category = row.category
MERGE (i)-[e:READ_BY {asked: $asked}]->(m)
SET e.settings = $settings, e.scores = row.scores, e.tokens = row.tokens, e.seconds = row.seconds"""
_READ = """
UNWIND $ids AS id
MATCH (i:BenchmarkItem {uid: id})-[e:READ_BY {asked: $asked}]->(:Model)
RETURN i.uid AS id, i.benchmark AS benchmark, i.name AS name, i.category AS category,
       e.scores AS scores, e.tokens AS tokens, e.seconds AS seconds"""
_SETTINGS = """
MATCH (:BenchmarkItem)-[e:READ_BY]->(:Model {uid: $model})
RETURN DISTINCT e.settings AS settings ORDER BY settings"""


class ItemNodes(Neo4jSession):
    def save_item_scores(
        self, model: ModelInfo, settings: Settings, scores: Sequence[ItemScore]
    ) -> None:
        self.write_rows(
            _SAVE,
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
        rows = self.read(_READ, ids=list(ids), asked=model.asked(settings))
        return {row["id"]: item_score(row) for row in rows}

    def item_settings(self, model: ModelInfo) -> list[Settings]:
        return [read_settings(row["settings"]) for row in self.read(_SETTINGS, model=model.id)]
