"""The shape of a graph, worked out by hand."""

from random import Random

import networkx as nx
import pytest

from kgbias.graph import structure as module
from kgbias.graph.structure import measure_structure
from kgbias.graph.types import Triple, TripleView


def view(group: str, object: str, count: int = 1, predicate: str = "love") -> TripleView:
    t = Triple(group, predicate, object)
    return TripleView(t.id, t.group_id, group, predicate, object, count)


def test_a_path_of_five_nodes() -> None:
    """a - x - b - y - c: 6 pairs of others at each node."""
    triples = [
        view("A", "x", 2),
        view("B", "x"),
        view("B", "y"),
        view("C", "y"),
        view("C", "y", 1, "be"),
    ]
    found = {place.label: place for place in measure_structure(triples)}
    assert {name: place.degree for name, place in found.items()} == {
        "A": 2,
        "x": 3,
        "B": 2,
        "y": 3,
        "C": 2,
    }
    expected = {"A": 0, "x": 3 / 6, "B": 4 / 6, "y": 3 / 6, "C": 0}
    assert {name: place.betweenness for name, place in found.items()} == expected
    assert {name: place.groups for name, place in found.items()} == {
        "A": 1,
        "x": 2,
        "B": 2,
        "y": 2,
        "C": 1,
    }


def test_two_worlds_are_two_communities_whatever_the_order() -> None:
    small = [view("A", word) for word in ("x", "y")]
    large = [view(group, word) for group in ("B", "C") for word in ("u", "v", "w")]
    places = measure_structure([*small, *large])
    assert measure_structure([*large[::-1], *small]) == places
    assert {place.label: place.community for place in places} == {
        "B": 0,
        "C": 0,
        "u": 0,
        "v": 0,
        "w": 0,
        "A": 1,
        "x": 1,
        "y": 1,
    }
    assert measure_structure([]) == []


@pytest.mark.parametrize("sources", [None, 20])
def test_betweenness_is_that_of_networkx(
    sources: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a graph of several parts, by all sources and by some."""
    if sources:
        monkeypatch.setattr(module, "_MAX_EXACT_NODES", 10)
        monkeypatch.setattr(module, "_SAMPLED_SOURCES", sources)
    rng = Random(1)
    triples = [view(f"G{rng.randrange(25)}", f"o{rng.randrange(90)}") for _ in range(120)]
    triples += [view("Far", "away"), view("Far", "off")]
    graph = module._weighted_graph(nx, triples)
    expected = nx.betweenness_centrality(graph, k=sources, seed=3)
    found = {place.node_id: place.betweenness for place in measure_structure(triples, seed=3)}
    assert found == pytest.approx(expected, abs=1e-12) and max(found.values()) > 0.05


def test_groups_that_share_an_object_are_counted() -> None:
    rng = Random(2)
    triples = [view(f"G{rng.randrange(25)}", f"o{rng.randrange(90)}") for _ in range(120)]
    named = {}
    for t in triples:
        named.setdefault(t.object, set()).add(t.group)
    for place in measure_structure(triples):
        near = [groups for groups in named.values() if place.label in groups]
        expected = (
            len(named[place.label]) if place.kind == "object" else len(set().union(*near)) - 1
        )
        assert place.groups == expected
