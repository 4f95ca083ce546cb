"""Perplexity probes: statements with PROBED edges to groups, under a model."""

import json
from collections.abc import Sequence

from kgbias.graph.chosen import ChosenEdge
from kgbias.graph.neo4j.session import Neo4jSession
from kgbias.graph.types import ProbedEdge, Probing, canonical_json, read_settings
from kgbias.models.base import ModelInfo

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
_PROBED = """
MATCH (run:Run {uid: $run}), (m:Model {uid: $model})
UNWIND $rows AS row
MATCH (s:Statement {uid: row.statement}), (g:SocialGroup {uid: row.group})
MERGE (s)-[p:PROBED {run: run.name, probing_uid: $probing}]->(g)
SET p += row.edge, p.model = m.name"""
_PROBING = """
MATCH (run:Run {uid: $run}), (m:Model {uid: $model})
MERGE (run)-[p:PROBED_WITH {uid: $probing}]->(m)
SET p.settings = $settings, p.record = $record"""
_READ = """
MATCH (run:Run {{uid: $run}})
MATCH (s:Statement)-[p:PROBED {{run: run.name, probing_uid: $probing}}]->(g:SocialGroup)
{which}
RETURN s.predicate_uid AS predicate_id, s.object_uid AS object_id, g.uid AS group_id,
       p.log_likelihood AS log_likelihood, p.tokens AS tokens,
       p.statement_log_likelihood AS statement_log_likelihood,
       p.statement_tokens AS statement_tokens, p.group_log_likelihood AS group_log_likelihood,
       p.group_tokens AS group_tokens, p.rank AS rank, p.pieces AS pieces, p.bits AS bits,
       p.lift AS lift, p.p_value AS p_value, p.similarity AS similarity,
       p.association AS association
ORDER BY s.uid, group_id"""
_READ_PROBINGS = """
MATCH (:Run {uid: $run})-[p:PROBED_WITH]->(m:Model)
RETURN m.name AS name, m.revision AS revision, p.settings AS settings, p.record AS record
ORDER BY name, p.uid"""

_NUMBERS = (
    "log_likelihood", "tokens", "statement_log_likelihood", "statement_tokens",
    "group_log_likelihood", "group_tokens", "rank", "lift", "p_value", "similarity", "association",
)  # fmt: skip


class ProbeNodes(Neo4jSession):
    def save_probes(self, run_id: str, probing: Probing, edges: Sequence[ProbedEdge]) -> None:
        self._add_model(probing.model)
        self._add_statements(edges)
        self.write_rows(
            _PROBED,
            [
                {
                    "statement": e.statement_id,
                    "group": e.group_id,
                    "edge": {name: getattr(e, name) for name in _NUMBERS}
                    | {"pieces": list(e.pieces), "bits": list(e.bits)},
                }
                for e in edges
            ],
            run=run_id,
            model=probing.model.id,
            probing=probing.id,
        )

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
            _READ.format(which=which), run=run_id, probing=probing_id, statement=statement_id
        )
        lists = ("pieces", "bits")  # absent where an older kgbias probed
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

    def _add_statements(self, edges: Sequence[ProbedEdge] | Sequence[ChosenEdge]) -> None:
        statements = {e.statement_id: (e.predicate_id, e.object_id) for e in edges}
        self.write_rows(
            _STATEMENTS,
            [
                {"uid": uid, "predicate": predicate, "object": object}
                for uid, (predicate, object) in sorted(statements.items())
            ],
        )

    def _add_model(self, model: ModelInfo) -> None:
        self.write((_MODEL, {"uid": model.id, "name": model.name, "revision": model.revision}))
