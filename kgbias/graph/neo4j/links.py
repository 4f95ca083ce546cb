"""Links between near-duplicate objects and predicates, as NEAR edges."""

from collections.abc import Sequence

from kgbias.graph.neo4j.session import Neo4jSession, Row
from kgbias.graph.types import NearDuplicate

_LABELS = {"object": "Object", "predicate": "Predicate"}
_FORGET = "MATCH (run:Run {uid: $run}) MATCH ()-[near:NEAR {run: run.name}]->() DELETE near"
_SAVE = """
MATCH (run:Run {{uid: $run}})
UNWIND $rows AS row
MATCH (n:{label} {{uid: row.uid}}), (head:{label} {{uid: row.head}})
CREATE (n)-[:NEAR {{run: run.name, similarity: row.similarity, method: row.method}}]->(head)"""
_READ = """
MATCH (run:Run {{uid: $run}})
MATCH (n:{label})-[near:NEAR {{run: run.name}}]->(head:{label})
RETURN '{kind}' AS kind, n.uid AS node_id, head.uid AS head_id, n.text AS text,
       head.text AS head_text, near.similarity AS similarity, near.method AS method
ORDER BY head_text, text, node_id"""


class LinkEdges(Neo4jSession):
    def save_near_duplicates(self, run_id: str, links: Sequence[NearDuplicate]) -> None:
        statements: list[tuple[str, Row]] = [(_FORGET, {"run": run_id})]
        for kind, label in _LABELS.items():
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
            statements.append((_SAVE.format(label=label), {"run": run_id, "rows": rows}))
        self.write(*statements)

    def near_duplicates(self, run_id: str) -> list[NearDuplicate]:
        return [
            NearDuplicate(**row)
            for kind, label in _LABELS.items()
            for row in self.read(_READ.format(label=label, kind=kind), run=run_id)
        ]
