"""A run's triples as a networkx graph, and its structure: centrality, communities and objects that
bridge groups."""

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from operator import or_
from random import Random
from typing import TYPE_CHECKING, Any

from kgbias.graph.types import NodeCentrality, TripleView, node_id
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
    has_several_arms = len({triple.arm for triple in triples}) > 1
    graph = nx.MultiDiGraph()
    for triple in triples:
        object_id = node_id("object", triple.object)
        category = (categories or {}).get(triple.group_id)
        graph.add_node(
            triple.group_id,
            kind="group",
            label=triple.group,
            **({"category": category} if category else {}),
        )
        graph.add_node(object_id, kind="object", label=triple.object)
        scores = {name: score.value for name, score in triple.scores.items()}
        graph.add_edge(
            triple.group_id,
            object_id,
            key=f"{triple.id} {triple.arm}" if has_several_arms else triple.id,
            predicate=triple.predicate,
            count=triple.count,
            arm=triple.arm,
            **scores,
        )
    return graph


def key_by_name(graph: "networkx.MultiDiGraph[str]") -> "networkx.MultiDiGraph[str]":
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


_MAX_EXACT_NODES = 2_000  # nodes; beyond, betweenness is estimated from a sample of sources
_SAMPLED_SOURCES = 500


def measure_structure(
    triples: Sequence[TripleView], *, seed: int = 0, progress: Progress | None = None
) -> list[NodeCentrality]:
    """The centrality of every group and object, by kind and id.

    The graph is undirected: an edge joins a group and an object named for it, weighted by how
    often. `degree` is the sum of the weights at a node. `betweenness` is the share of shortest
    paths between other nodes that pass through it, in [0, 1] (Freeman 1977), unweighted; beyond
    2,000 nodes it is estimated from 500 sources. `community` is the number of its community by
    Louvain (Blondel et al. 2008); 0 is the largest. `groups` is, for an object, the number of
    groups that it was named for (with 2 or more, it bridges them); for a group, the number of
    groups that it shares an object with. The same triples and seed give the same figures.
    """
    import networkx as nx

    graph = _weighted_graph(nx, triples)
    if progress is None or len(graph) <= _MAX_EXACT_NODES:  # takes about a second
        progress = SilentProgress()
    betweenness = _compute_betweenness(graph, seed, progress)
    progress.stage("communities", 1)
    # Louvain visits nodes in the order of the graph, which is that of the ids.
    communities = nx.community.louvain_communities(graph, weight="weight", seed=seed)
    progress.advance()
    by_size = sorted(communities, key=lambda members: (-len(members), min(members)))
    community = {node: number for number, members in enumerate(by_size) for node in members}
    groups = _count_near_groups(graph)
    centralities = [
        NodeCentrality(
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
    return sorted(centralities, key=lambda node: (node.kind, node.node_id))


def _weighted_graph(nx: Any, triples: Sequence[TripleView]) -> Any:
    """The triples as a simple graph, its nodes in the order of their ids."""
    multiple = to_networkx(triples)
    graph = nx.Graph()
    graph.add_nodes_from(sorted(multiple.nodes(data=True)))
    for start, end, data in sorted(multiple.edges(data=True), key=lambda edge: edge[:2]):
        weight = graph.get_edge_data(start, end, {"weight": 0})["weight"]
        graph.add_edge(start, end, weight=weight + data["count"])
    return graph


def _count_near_groups(graph: Any) -> dict[str, int]:
    """For each object, the number of its groups; for each group, the number of groups it shares an
    object with. Sets of groups are bits of whole numbers, so that joining them is one operation."""
    kinds = graph.nodes(data="kind")
    groups = [node for node, kind in kinds if kind == "group"]
    objects = [node for node, kind in kinds if kind == "object"]
    bit = {group: 1 << number for number, group in enumerate(groups)}
    groups_of_object = {object: reduce(or_, (bit[g] for g in graph[object])) for object in objects}
    near_counts = {object: len(graph[object]) for object in objects}
    for group in groups:
        near_groups = reduce(or_, (groups_of_object[object] for object in graph[group]))
        near_counts[group] = near_groups.bit_count() - 1
    return near_counts


def _compute_betweenness(graph: Any, seed: int, progress: Progress) -> dict[str, float]:
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
    is_sampled = count > _MAX_EXACT_NODES
    sources = Random(seed).sample(range(count), _SAMPLED_SOURCES) if is_sampled else range(count)
    total = np.zeros(count)
    progress.stage("betweenness", len(sources))
    for source in sources:
        total += _source_dependency(source, degrees, begins, ends)
        progress.advance()
    pairs = np.full(count, float(len(sources) if is_sampled else count - 1))
    if is_sampled:
        pairs[list(sources)] -= 1  # a path that begins at a node does not pass through it
    # Of the pairs of other nodes: each ordered pair is met once, from its first node.
    shares = total / (pairs * (count - 2))
    return {node: float(share) for node, share in zip(nodes, shares, strict=True)}


def _source_dependency(
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
    frontier = np.array([source])
    steps = []
    while len(frontier):
        lengths = degrees[frontier]
        first_edges = np.cumsum(lengths) - lengths
        origins = np.repeat(frontier, lengths)
        # All neighbours of all nodes of the step: the runs of `ends` that begin at `begins`, as
        # one.
        targets = ends[
            np.repeat(begins[frontier] - first_edges, lengths) + np.arange(lengths.sum())
        ]
        # Steps to a node that was reached before are on no shortest path.
        is_new = paths[targets] == 0
        origins, targets = origins[is_new], targets[is_new]
        path_counts = np.bincount(targets, paths[origins], count)
        frontier = np.flatnonzero(path_counts)
        paths += path_counts
        steps.append((origins, targets))
    share = np.zeros(count)
    # Brandes 2001, theorem 6: from the farthest nodes back to the source.
    for origins, targets in reversed(steps):
        share += np.bincount(origins, paths[origins] / paths[targets] * (1 + share[targets]), count)
    # A path's own ends do not count.
    share[source] = 0
    return share
