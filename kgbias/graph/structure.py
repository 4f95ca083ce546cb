"""The structure of a run's graph: centrality, communities and objects that bridge groups."""

from collections.abc import Sequence
from typing import Any

from kgbias.graph.to_networkx import to_networkx
from kgbias.graph.types import NodePlace, TripleView

_EXACT = 2_000  # nodes; beyond, betweenness is estimated from a sample of sources
_SOURCES = 500


def structure(triples: Sequence[TripleView], *, seed: int = 0) -> list[NodePlace]:
    """The place of every group and object, by kind and id.

    On the undirected graph with an edge between a group and an object that was named for it,
    weighted by how often: `degree` is the sum of the weights at a node; `betweenness` the share of
    shortest paths between other nodes that pass through it, in [0, 1] (Freeman 1977, by
    `networkx.betweenness_centrality`, unweighted; beyond 2,000 nodes estimated from 500 sources);
    `community` the number of its community by Louvain (Blondel et al. 2008), 0 the largest;
    `groups` for an object the number of groups that it was named for (2 or more: it bridges them),
    for a group that of groups that it shares an object with. The same triples and seed give the
    same places.
    """
    import networkx as nx

    graph = _weighted(nx, triples)
    many = graph.number_of_nodes() > _EXACT
    betweenness = nx.betweenness_centrality(graph, k=_SOURCES if many else None, seed=seed)
    found = nx.community.louvain_communities(graph, weight="weight", seed=seed)
    ordered = sorted(found, key=lambda members: (-len(members), min(members)))
    community = {node: number for number, members in enumerate(ordered) for node in members}
    places = []
    for node, data in graph.nodes(data=True):
        near = set(graph[node])
        if data["kind"] == "group":
            near = {other for object in near for other in graph[object]} - {node}
        places.append(
            NodePlace(
                data["kind"],
                node,
                data["label"],
                int(graph.degree(node, weight="weight")),
                float(betweenness[node]),
                community[node],
                len(near),
            )
        )
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
