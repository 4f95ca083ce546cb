"""The places of nodes in a run's graph: PLACED edges from the run, and the same numbers on the
nodes, for pictures, by the newest run that placed them."""

from collections.abc import Sequence

from kgbias.graph.neo4j.session import Neo4jSession
from kgbias.graph.types import NodePlace

_LABELS = {"group": "SocialGroup", "object": "Object"}
_FORGET = """
MATCH (run:Run {uid: $run})-[p:PLACED]->(n)
DELETE p
WITH n, run WHERE n.placed_by = run.name
REMOVE n.degree, n.betweenness, n.community, n.groups, n.placed_by"""
_SAVE = """
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
_READ = """
MATCH (:Run {uid: $run})-[p:PLACED]->(n)
RETURN CASE WHEN n:SocialGroup THEN 'group' ELSE 'object' END AS kind, n.uid AS node_id,
       n.name AS label, p.degree AS degree, p.betweenness AS betweenness,
       p.community AS community, p.groups AS groups
ORDER BY kind, node_id"""


class PlaceEdges(Neo4jSession):
    def save_places(self, run_id: str, places: Sequence[NodePlace]) -> None:
        before = {(p.kind, p.node_id) for p in self.places(run_id)}
        self.write((_FORGET, {"run": run_id}))
        for kind, label in _LABELS.items():
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
            self.write_rows(_SAVE.format(label=label), rows, run=run_id)
            touched = before | {(p.kind, p.node_id) for p in places}
            self.write_rows(
                _SHOW.format(label=label), sorted(id for found, id in touched if found == kind)
            )

    def places(self, run_id: str) -> list[NodePlace]:
        return [NodePlace(**row) for row in self.read(_READ, run=run_id)]
