"""Perplexity probes: statements with PROBED edges to groups, under a model."""

import json
from collections.abc import Mapping, Sequence

from kgbias.graph.believed import BelievedEdge, NameProbe
from kgbias.graph.neo4j.session import Neo4jSession
from kgbias.graph.probed import ChosenEdge
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
_READ = """
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


class ProbeNodes(Neo4jSession):
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
            _READ.format(which=which), run=run_id, probing=probing_id, statement=statement_id
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
