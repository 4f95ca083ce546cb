"""The derived edges that make a picture readable: (group)-[:STEREOTYPE]->(object), one for each
triple of a run and arm, with its predicate, count and scores, and the same once more by its regard,
(group)-[:POSITIVE|NEUTRAL|NEGATIVE]->(object): Neo4j Browser colours edges by type alone. They
follow from the rest and can be rebuilt at any time."""

from collections.abc import Collection

from kgbias.graph.neo4j.session import Neo4jSession
from kgbias.graph.shape import DERIVED, TONES

_FORGET = f"""
MATCH ()-[s:STEREOTYPE|{"|".join(TONES).upper()} {{run: $name}}]->()
CALL {{ WITH s DELETE s }} IN TRANSACTIONS OF 10000 ROWS"""

_TONED = "WITH g, o, s, regard.label AS tone\n" + "\n".join(
    f"FOREACH (_ IN CASE WHEN tone = '{tone}' THEN [1] ELSE [] END | "
    f"CREATE (g)-[e:{tone.upper()}]->(o) SET e = properties(s))"
    for tone in TONES
)
_SCORE = "OPTIONAL MATCH (t)-[{measure}:SCORED]->(:Metric {{uid: ${measure}}})"
_DERIVE = """
MATCH (run:Run {{uid: $run}})<-[:IN]-(n:Generation)-[y:YIELDED]->(t:Triple)
WITH run, t, n.arm AS arm, sum(y.count) AS count
CALL {{
    WITH run, t, arm, count
    MATCH (t)-[:SUBJECT]->(g:SocialGroup)
    MATCH (t)-[:PREDICATE]->(p:Predicate)
    MATCH (t)-[:OBJECT]->(o:Object)
    {scores}
    CREATE (g)-[s:STEREOTYPE {{run: run.name, predicate: p.text, count: count, {values}
        triple: t.uid, arm: arm}}]->(o)
    {toned}
}} IN TRANSACTIONS OF 10000 ROWS"""


def _derive(measures: Collection[str]) -> str:
    """The query that makes the edges of a run that has metrics of these measures: what is not
    measured is not looked for at each triple."""
    return _DERIVE.format(
        scores="\n    ".join(_SCORE.format(measure=m) for m in measures),
        values="".join(f"{m}: {m}.value, " for m in measures),
        toned=_TONED if "regard" in measures else "",
    )


class StereotypeEdges(Neo4jSession):
    def derive(self, run_id: str) -> None:
        """See `kgbias.graph.store.Store.derive`."""
        rows = self.read(
            "MATCH (r:Run {uid: $run}) OPTIONAL MATCH (r)-[:MEASURED_BY]->(m:Metric) "
            "RETURN r.name AS name, m.measure AS measure, m.uid AS uid",
            run=run_id,
        )
        metric = {row["measure"]: row["uid"] for row in rows}
        for row in rows[:1]:
            self.write_alone(_FORGET, name=row["name"])
            uids = {m: metric[m] for m in DERIVED if m in metric}
            self.write_alone(_derive(uids), run=run_id, **uids)
