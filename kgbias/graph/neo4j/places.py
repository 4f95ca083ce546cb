"""The places of nodes in the shape of a run's graph: PLACED edges from the run, and properties of
the nodes for pictures, which are those of the run that was placed last."""

from collections.abc import Sequence

from kgbias.graph.neo4j.session import Neo4jSession
from kgbias.graph.types import NodePlace

_LABELS = {"group": "SocialGroup", "object": "Object"}
_SAVE = """
MATCH (run:Run {{uid: $run}})
UNWIND $rows AS row
MATCH (n:{label} {{uid: row.uid}})
SET n += row.place, n.placed_by = run.name
CREATE (run)-[placed:PLACED]->(n) SET placed = row.place"""
_READ = """
MATCH (:Run {uid: $run})-[p:PLACED]->(n)
RETURN CASE WHEN n:SocialGroup THEN 'group' ELSE 'object' END AS kind, n.uid AS node_id,
       coalesce(n.name, n.text) AS label, p.degree AS degree, p.betweenness AS betweenness,
       p.community AS community, p.groups AS groups
ORDER BY kind, node_id"""


class PlaceEdges(Neo4jSession):
    def save_places(self, run_id: str, places: Sequence[NodePlace]) -> None:
        self.write(("MATCH (:Run {uid: $run})-[p:PLACED]->() DELETE p", {"run": run_id}))
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

    def places(self, run_id: str) -> list[NodePlace]:
        return [NodePlace(**row) for row in self.read(_READ, run=run_id)]
