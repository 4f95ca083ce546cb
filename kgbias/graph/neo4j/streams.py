"""A run in narrow rows, one at a time: in the memory of a row, however many there are."""

from collections.abc import Iterator

from kgbias.graph.neo4j.generations import GenerationNodes, generation
from kgbias.graph.said import Stated, Told, Valued
from kgbias.graph.types import Generation, TripleView

_STATED = """
MATCH (n:Generation)-[:IN]->(:Run {uid: $run})
MATCH (n)-[:YIELDED]->(t:Triple)
WITH DISTINCT t
MATCH (t)-[:SUBJECT]->(g:SocialGroup), (t)-[:PREDICATE]->(p:Predicate), (t)-[:OBJECT]->(o:Object)
RETURN t.uid AS triple_id, g.uid AS group_id, p.uid AS predicate_id, o.uid AS object_id,
       g.name AS group, p.text AS predicate, o.text AS object
ORDER BY triple_id"""

_TOLD = """
MATCH (n:Generation)-[:IN]->(:Run {uid: $run})
MATCH (n)-[y:YIELDED]->(t:Triple)
RETURN n.uid AS generation_id, t.uid AS triple_id, n.arm AS arm, n.strategy AS strategy,
       n.iteration AS iteration, y.count AS times
ORDER BY n.iteration, n.arm, n.path"""

_VALUED = """
MATCH (:Run {uid: $run})-[:MEASURED_BY]->(m:Metric)
MATCH (t:Triple)-[s:SCORED]->(m)
RETURN m.measure AS measure, t.uid AS triple_id, s.value AS value, s.label AS label
ORDER BY measure, triple_id"""

_ANSWERED = """
MATCH (:Triple {uid: $triple})<-[y:YIELDED]-(n:Generation {arm: $arm})-[:IN]->(:Run {uid: $run})
WITH n, y ORDER BY n.iteration, n.path SKIP $first LIMIT $most
OPTIONAL MATCH (g:SocialGroup {uid: n.group_uid})
OPTIONAL MATCH (n)-[s:SHOWN]->(t:Triple)
WITH n, g, y, s, t ORDER BY s.position
RETURN properties(n) AS n, g.name AS group, y.predicate AS predicate, y.object AS object,
       collect(t.uid) AS shown
ORDER BY n.iteration, n.path"""


_ARMS = """
MATCH (n:Generation)-[:IN]->(:Run {uid: $run})
WHERE EXISTS { (n)-[:YIELDED]->(:Triple) }
RETURN DISTINCT n.arm AS arm ORDER BY arm"""


class Streams(GenerationNodes):
    def arms(self, run_id: str) -> list[str]:
        return [row["arm"] for row in self.read(_ARMS, run=run_id)]

    def of_arm(self, run_id: str, arm: str) -> Iterator[TripleView]:
        return (t for t in self.triples(run_id, by_arm=True) if t.arm == arm)

    def stated(self, run_id: str) -> Iterator[Stated]:
        return (Stated(**row) for row in self.stream(_STATED, run=run_id))

    def told(self, run_id: str) -> Iterator[Told]:
        return (Told(**row) for row in self.stream(_TOLD, run=run_id))

    def valued(self, run_id: str) -> Iterator[Valued]:
        return (Valued(**row) for row in self.stream(_VALUED, run=run_id))

    def answered(
        self, run_id: str, triple_id: str, arm: str, *, first: int, most: int
    ) -> list[Generation]:
        rows = self.read(_ANSWERED, run=run_id, triple=triple_id, arm=arm, first=first, most=most)
        return [generation(run_id, row) for row in rows]
