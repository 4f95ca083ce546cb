"""The passages that a run was read from: Passage nodes, HOLDS edges from the run, and RELATED edges
among them."""

import json

from kgbias.graph.keeping import Corpus, Passage, Relation, as_json, passage_uid
from kgbias.graph.neo4j.session import Neo4jSession

_FORGET = "MATCH (:Run {uid: $run})-[:HOLDS]->(p:Passage) DETACH DELETE p"
_SAVE = """
MATCH (run:Run {uid: $run})
UNWIND $rows AS row
MERGE (p:Passage {uid: row.uid}) SET p = row.node
MERGE (run)-[holds:HOLDS]->(p) SET holds.position = row.position"""
_RELATE = """
MATCH (run:Run {uid: $run})
UNWIND $rows AS row
MATCH (a:Passage {uid: row.source}), (b:Passage {uid: row.target})
MERGE (a)-[e:RELATED {run: run.name, position: row.position}]->(b)
SET e.name = row.name, e.kind = row.kind, e.bidirectional = row.bidirectional,
    e.properties = row.properties"""
_PASSAGES = """
MATCH (:Run {uid: $run})-[holds:HOLDS]->(p:Passage)
RETURN p.name AS id, p.kind AS kind, p.text AS text, p.properties AS properties
ORDER BY holds.position"""
_RELATIONS = """
MATCH (run:Run {uid: $run})-[:HOLDS]->(a:Passage)-[e:RELATED {run: run.name}]->(b:Passage)
RETURN e.name AS id, e.kind AS kind, a.name AS source, b.name AS target,
       e.bidirectional AS bidirectional, e.properties AS properties
ORDER BY e.position"""


class PassageNodes(Neo4jSession):
    def save_corpus(self, run_id: str, corpus: Corpus) -> None:
        self.write((_FORGET, {"run": run_id}))
        rows = [
            {
                "uid": p.uid(run_id),
                "position": n,
                "node": {
                    "uid": p.uid(run_id),
                    "name": p.id,
                    "kind": p.kind,
                    "text": p.text,
                    "properties": as_json(p.properties),
                },
            }
            for n, p in enumerate(corpus.passages)
        ]
        self.write_rows(_SAVE, rows, run=run_id)
        relations = [
            {
                "name": r.id,
                "position": n,
                "kind": r.kind,
                "source": passage_uid(run_id, r.source),
                "target": passage_uid(run_id, r.target),
                "bidirectional": r.bidirectional,
                "properties": as_json(r.properties),
            }
            for n, r in enumerate(corpus.relations)
        ]
        self.write_rows(_RELATE, relations, run=run_id)

    def corpus(self, run_id: str) -> Corpus:
        passages = [
            Passage(row["id"], row["kind"], row["text"], json.loads(row["properties"]))
            for row in self.read(_PASSAGES, run=run_id)
        ]
        relations = [
            Relation(**{**row, "properties": json.loads(row["properties"])})
            for row in self.read(_RELATIONS, run=run_id)
        ]
        return Corpus(tuple(passages), tuple(relations))
