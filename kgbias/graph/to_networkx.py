"""A run's triples as a networkx graph."""

from collections.abc import Iterable, Mapping
from typing import Any

from kgbias.graph.types import TripleView, node_id


def to_networkx(triples: Iterable[TripleView], categories: Mapping[str, str] | None = None) -> Any:
    """Triples as a `networkx.MultiDiGraph`, such as `to_networkx(store.triples(run.id))`.

    Each triple is an edge from its group to its object, keyed by the triple's id; with triples of
    several arms, there is an edge for each arm, with the arm's name in its key. Nodes are keyed by
    id and have `kind` (group, object), `label` and, for a group in `categories` (by the group's
    id), `category`. Edges have `predicate`, `count`, `arm` ("" if all are counted together) and the
    value of each measure that the run has (`kgbias.measures`): `regard` in [-1, 1], `toxicity` in
    [0, 1] ...
    """
    import networkx as nx

    triples = list(triples)
    several = len({t.arm for t in triples}) > 1
    graph = nx.MultiDiGraph()
    for t in triples:
        object_id = node_id("object", t.object)
        category = (categories or {}).get(t.group_id)
        graph.add_node(
            t.group_id, kind="group", label=t.group, **({"category": category} if category else {})
        )
        graph.add_node(object_id, kind="object", label=t.object)
        scores = {name: score.value for name, score in t.scores.items()}
        graph.add_edge(
            t.group_id,
            object_id,
            key=f"{t.id} {t.arm}" if several else t.id,
            predicate=t.predicate,
            count=t.count,
            arm=t.arm,
            **scores,
        )
    return graph
