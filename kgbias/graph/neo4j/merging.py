"""Writing generations and triples whether or not the server has them: each node and edge is looked
for. Creating what it lacks is faster (`loading.py`)."""

from collections.abc import Sequence

from kgbias.graph.neo4j.loading import triple_rows
from kgbias.graph.neo4j.session import Row
from kgbias.graph.record import in_graph
from kgbias.graph.types import Generation, Triple, storable

# One statement for each kind of node, then the edges: MERGE on a node with a uniqueness constraint
# locks only that node, and edges are merged between bound nodes.
_NODES = """
UNWIND $rows AS row
MERGE (n:{label} {{uid: row.uid}}) ON CREATE SET n.{key} = row.text, n.name = row.text"""

_TRIPLES = """
UNWIND $rows AS row
MATCH (g:SocialGroup {uid: row.group_uid}), (p:Predicate {uid: row.predicate_uid}),
      (o:Object {uid: row.object_uid})
MERGE (t:Triple {uid: row.uid})
ON CREATE SET t.group_uid = row.group_uid, t.text = g.name + ' ' + p.text + ' ' + o.text,
    t.name = g.name + ' ' + p.text + ' ' + o.text
MERGE (t)-[:SUBJECT]->(g)
MERGE (t)-[:PREDICATE]->(p)
MERGE (t)-[:OBJECT]->(o)"""

_STATES = """
UNWIND $rows AS row
MATCH (s:Statement {uid: row.statement_uid})
MATCH (t:Triple {uid: row.uid})
MERGE (t)-[:STATES]->(s)"""

_GENERATIONS = """
MATCH (run:Run {uid: $run})
UNWIND $rows AS row
MERGE (n:Generation {uid: row.uid}) SET n = row.properties
MERGE (n)-[:IN]->(run)"""

YIELDED = """
UNWIND $rows AS row
MATCH (n:Generation {uid: row.uid}), (t:Triple {uid: row.triple})
MERGE (n)-[y:YIELDED]->(t)
SET y.count = n.count, y.predicate = row.predicate, y.object = row.object"""

SHOWN = """
UNWIND $rows AS row
MATCH (n:Generation {uid: row.uid}), (t:Triple {uid: row.triple})
MERGE (n)-[:SHOWN {position: row.position}]->(t)"""


def merged(run_id: str, batch: Sequence[Generation]) -> list[tuple[str, Row]]:
    """The writes of a batch, nodes before the edges that need them."""
    generations, yielded = [], []
    for g in batch:
        uid = g.id
        generations.append({"uid": uid, "properties": in_graph(g) | {"uid": uid}})
        if (t := g.triple) is not None:
            yielded.append(
                {
                    "uid": uid,
                    "triple": t.id,
                    "predicate": storable(t.predicate),
                    "object": storable(t.object),
                }
            )
    return [
        *merged_triples([g.triple for g in batch if g.triple is not None]),
        (_GENERATIONS, {"run": run_id, "rows": generations}),
        (YIELDED, {"rows": yielded}),
        (SHOWN, {"rows": shown_rows(batch)}),
    ]


def shown_rows(batch: Sequence[Generation]) -> list[Row]:
    return [
        {"uid": g.id, "triple": id, "position": n} for g in batch for n, id in enumerate(g.shown)
    ]


def merged_triples(triples: Sequence[Triple]) -> list[tuple[str, Row]]:
    texts, rows = triple_rows(triples)
    statements: list[tuple[str, Row]] = [
        (
            _NODES.format(label=label, key="name" if label == "SocialGroup" else "text"),
            {"rows": [{"uid": uid, "text": text} for uid, text in nodes.items()]},
        )
        for label, nodes in texts.items()
    ]
    parameters = {
        "rows": [
            {"uid": uid, "group_uid": group, "predicate_uid": predicate, "object_uid": object,
             "statement_uid": statement}
            for uid, group, predicate, object, statement in rows
        ]
    }  # fmt: skip
    return [*statements, (_TRIPLES, parameters), (_STATES, parameters)]
