"""Association tests as nodes, with TARGET and ATTRIBUTE edges to groups, objects and topics."""

import json
import math
from collections.abc import Sequence

from kgbias.errors import UsageError
from kgbias.graph.neo4j.session import Neo4jSession, Row, number
from kgbias.graph.types import AssociationEdge, AssociationNode, canonical_json
from kgbias.models.base import ModelInfo

_NUMBERS = ("effect_size", "p_value", "p_published", "p_holm", "p_bh", "low", "high")
_LABELS = {"group": "SocialGroup", "object": "Object", "topic": "Topic"}

_TEST = """
MERGE (m:Model {uid: $model.uid})
ON CREATE SET m.name = $model.name, m.revision = $model.revision
MERGE (t:AssociationTest {uid: $uid}) SET t += $properties
MERGE (t)-[:OF]->(m)
WITH t
OPTIONAL MATCH (t)-[old:TARGET|ATTRIBUTE]->()
DELETE old"""

_EDGE = """
MATCH (t:AssociationTest {{uid: $uid}})
UNWIND $ends AS end
MATCH (n:{label} {{uid: end.uid}})
MERGE (t)-[:{kind} {{side: end.side}}]->(n)"""

_READ = """
MATCH (t:AssociationTest)-[:OF]->(m:Model)
WHERE $run IS NULL OR EXISTS { (:Run {uid: $run})-[:TESTED]->(t) }
OPTIONAL MATCH (t)-[e:TARGET|ATTRIBUTE]->(n)
WITH t, m, collect(CASE WHEN e IS NULL THEN null ELSE
    {side: e.side, labels: labels(n), uid: n.uid} END) AS ends
RETURN properties(t) AS t, m.name AS model, m.revision AS revision, ends
ORDER BY t.name, t.method, model, t.uid"""


class AssociationNodes(Neo4jSession):
    def known_nodes(self, kind: str, ids: Sequence[str]) -> set[str]:
        if kind not in _LABELS:
            raise UsageError(f"no kind of node {kind!r}; the kinds are {', '.join(_LABELS)}")
        rows = self.read(
            f"MATCH (n:{_LABELS[kind]}) WHERE n.uid IN $ids RETURN n.uid AS uid", ids=list(ids)
        )
        return {row["uid"] for row in rows}

    def save_associations(self, run_id: str | None, nodes: Sequence[AssociationNode]) -> None:
        self.write(*(statement for node in nodes for statement in _statements(run_id, node)))

    def associations(self, run_id: str | None = None) -> list[AssociationNode]:
        return [_node(row) for row in self.read(_READ, run=run_id)]


def _statements(run_id: str | None, node: AssociationNode) -> list[tuple[str, Row]]:
    model = node.model
    statements: list[tuple[str, Row]] = [
        (
            _TEST,
            {
                "uid": node.id,
                "model": {
                    "uid": model.id,
                    "name": model.name,
                    "revision": model.revision,
                },
                "properties": {
                    "name": node.test,
                    "method": node.method,
                    "model": model.name,
                    "record": canonical_json(dict(node.record)),
                    "effect_size": number(node.effect_size),
                    "p_value": number(node.p_value),
                    "p_published": number(node.p_published),
                    "p_holm": number(node.p_holm),
                    "p_bh": number(node.p_bh),
                    "n_x": node.n_x,
                    "n_y": node.n_y,
                    "low": number(node.low),
                    "high": number(node.high),
                },
            },
        )
    ]
    by_end: dict[tuple[str, str], list[dict[str, str]]] = {}
    for edge in node.edges:
        end = {"uid": edge.node_id, "side": edge.side}
        by_end.setdefault((edge.name, _LABELS[edge.kind]), []).append(end)
    for (kind, label), ends in by_end.items():
        statements.append((_EDGE.format(kind=kind, label=label), {"uid": node.id, "ends": ends}))
    if run_id is not None:
        statements.append(
            (
                "MATCH (r:Run {uid: $run}), (t:AssociationTest {uid: $uid}) "
                "MERGE (r)-[:TESTED]->(t)",
                {"run": run_id, "uid": node.id},
            )
        )
    return statements


def _node(row: Row) -> AssociationNode:
    t = row["t"]
    kinds = {label: kind for kind, label in _LABELS.items()}
    edges = [
        AssociationEdge(end["side"], kinds[end["labels"][0]], end["uid"]) for end in row["ends"]
    ]
    numbers = {key: t.get(key, math.nan) for key in _NUMBERS}
    return AssociationNode(
        id=t["uid"],
        test=t["name"],
        method=t["method"],
        model=ModelInfo(row["model"], row["revision"]),
        record=json.loads(t["record"]),
        edges=tuple(sorted(edges, key=lambda e: (e.side, e.kind, e.node_id))),
        n_x=t["n_x"],
        n_y=t["n_y"],
        **numbers,
    )
