"""A run's triples as a networkx graph, and its structure: centrality, communities and objects that
bridge groups."""

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from operator import or_
from random import Random
from typing import TYPE_CHECKING, Any

from kgbias.graph.types import NodePlace, TripleView, node_id
from kgbias.io.progress import Progress, SilentProgress

if TYPE_CHECKING:
    import networkx
    import numpy as np
    from numpy.typing import NDArray


def to_networkx(
    triples: Iterable[TripleView], categories: Mapping[str, str] | None = None
) -> "networkx.MultiDiGraph[str]":
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


def by_name(graph: "networkx.MultiDiGraph[str]") -> "networkx.MultiDiGraph[str]":
    """The same graph with its nodes keyed by their names, which people can read, and by id in the
    attribute `id`. An object that is called as a group is, is keyed as "NAME (object)"."""
    import networkx as nx

    kinds, labels = graph.nodes(data="kind"), dict(graph.nodes(data="label"))
    groups = {labels[node] for node, kind in kinds if kind == "group"}
    names = {
        node: f"{labels[node]} (object)"
        if kind == "object" and labels[node] in groups
        else labels[node]
        for node, kind in kinds
    }
    nx.set_node_attributes(graph, {node: node for node in graph}, "id")
    if len(set(names.values())) < len(names):  # two forms of one name that differ elsewhere
        names = {node: f"{name} ({node})" for node, name in names.items()}
    return nx.relabel_nodes(graph, names)


_EXACT = 2_000  # nodes; beyond, betweenness is estimated from a sample of sources
_SOURCES = 500


def structure(
    triples: Sequence[TripleView], *, seed: int = 0, progress: Progress | None = None
) -> list[NodePlace]:
    """The place of every group and object, by kind and id.

    The graph is undirected: an edge joins a group and an object named for it, weighted by how
    often. `degree` is the sum of the weights at a node. `betweenness` is the share of shortest
    paths between other nodes that pass through it, in [0, 1] (Freeman 1977), unweighted; beyond
    2,000 nodes it is estimated from 500 sources. `community` is the number of its community by
    Louvain (Blondel et al. 2008); 0 is the largest. `groups` is, for an object, the number of
    groups that it was named for (with 2 or more, it bridges them); for a group, the number of
    groups that it shares an object with. The same triples and seed give the same places.
    """
    import networkx as nx

    graph = _weighted(nx, triples)
    if progress is None or len(graph) <= _EXACT:  # takes about a second
        progress = SilentProgress()
    betweenness = _betweenness(graph, seed, progress)
    progress.stage("communities", 1)
    found = nx.community.louvain_communities(graph, weight="weight", seed=seed)
    progress.advance()
    ordered = sorted(found, key=lambda members: (-len(members), min(members)))
    community = {node: number for number, members in enumerate(ordered) for node in members}
    groups = _groups_near(graph)
    places = [
        NodePlace(
            data["kind"],
            node,
            data["label"],
            int(graph.degree(node, weight="weight")),
            betweenness[node],
            community[node],
            groups[node],
        )
        for node, data in graph.nodes(data=True)
    ]
    return sorted(places, key=lambda place: (place.kind, place.node_id))


def _weighted(nx: Any, triples: Sequence[TripleView]) -> Any:
    """The triples as a simple graph, its nodes in the order of their ids."""
    multiple = to_networkx(triples)
    graph = nx.Graph()
    graph.add_nodes_from(sorted(multiple.nodes(data=True)))
    for start, end, data in sorted(multiple.edges(data=True), key=lambda edge: edge[:2]):
        weight = graph.get_edge_data(start, end, {"weight": 0})["weight"]
        graph.add_edge(start, end, weight=weight + data["count"])
    return graph


def _groups_near(graph: Any) -> dict[str, int]:
    """For each object, the number of its groups; for each group, the number of groups it shares an
    object with. Sets of groups are bits of whole numbers, so that joining them is one operation."""
    kinds = graph.nodes(data="kind")
    groups = [node for node, kind in kinds if kind == "group"]
    objects = [node for node, kind in kinds if kind == "object"]
    bit = {group: 1 << number for number, group in enumerate(groups)}
    named = {object: reduce(or_, (bit[g] for g in graph[object])) for object in objects}
    near = {object: len(graph[object]) for object in objects}
    for group in groups:
        met = reduce(or_, (named[object] for object in graph[group]))
        near[group] = met.bit_count() - 1
    return near


def _betweenness(graph: Any, seed: int, progress: Progress) -> dict[str, float]:
    """Betweenness as `networkx.betweenness_centrality` computes it (Brandes 2001), but a whole step
    of the search from a source at a time instead of a node."""
    import numpy as np

    nodes = list(graph)
    count = len(nodes)
    if count < 3:
        return dict.fromkeys(nodes, 0.0)
    place = {node: number for number, node in enumerate(nodes)}
    degrees = np.array([len(graph[node]) for node in nodes])
    ends = np.array([place[other] for node in nodes for other in graph[node]])
    begins = np.cumsum(degrees) - degrees  # where the neighbours of a node begin in `ends`
    sampled = count > _EXACT
    sources = Random(seed).sample(range(count), _SOURCES) if sampled else range(count)
    total = np.zeros(count)
    progress.stage("betweenness", len(sources))
    for source in sources:
        total += _through(source, degrees, begins, ends)
        progress.advance()
    pairs = np.full(count, float(len(sources) if sampled else count - 1))
    if sampled:
        pairs[list(sources)] -= 1  # a path that begins at a node does not pass through it
    shares = total / (pairs * (count - 2))
    return {node: float(share) for node, share in zip(nodes, shares, strict=True)}


def _through(
    source: int,
    degrees: "NDArray[np.int64]",
    begins: "NDArray[np.int64]",
    ends: "NDArray[np.int64]",
) -> "NDArray[np.float64]":
    """Brandes' dependency of a source on each node: the sum over all targets of the share of
    shortest paths to it that pass through the node."""
    import numpy as np

    count = len(degrees)
    paths = np.zeros(count)
    paths[source] = 1
    reached = np.array([source])
    steps = []
    while len(reached):
        lengths = degrees[reached]
        first = np.cumsum(lengths) - lengths
        near = np.repeat(reached, lengths)
        far = ends[np.repeat(begins[reached] - first, lengths) + np.arange(lengths.sum())]
        new = paths[far] == 0
        near, far = near[new], far[new]
        found = np.bincount(far, paths[near], count)
        reached = np.flatnonzero(found)
        paths += found
        steps.append((near, far))
    share = np.zeros(count)
    for near, far in reversed(steps):
        share += np.bincount(near, paths[near] / paths[far] * (1 + share[far]), count)
    share[source] = 0
    return share
