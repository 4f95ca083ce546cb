"""A run's triples as a networkx graph."""

from collections.abc import Iterable, Mapping
from typing import Any

from kgbias.graph.types import TripleView, node_id


def to_networkx(triples: Iterable[TripleView], categories: Mapping[str, str] | None = None) -> Any:
    """Triples as a `networkx.MultiDiGraph`: from groups to objects, an edge a triple, its key the
    triple's id.

    Nodes are keyed by their ids and have `kind` (group, object), `label` and, for a group whose
    category `categories` knows (by the group's id), `category`. Edges have `predicate`, `count`
    and the value of each measure that the run has (`kgbias.measures`): `regard` in [-1, 1],
    `toxicity` in [0, 1] ... For example `to_networkx(store.triples(run.id))`.
    """
    import networkx as nx

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
            t.group_id, object_id, key=t.id, predicate=t.predicate, count=t.count, **scores
        )
    return graph
