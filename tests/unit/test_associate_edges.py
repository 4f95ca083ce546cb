"""The edges that an association test gets in the graph."""

import pytest

from kgbias.associate.from_graph import groups_test, topic_sets
from kgbias.associate.permutation import PValue
from kgbias.associate.result import Association
from kgbias.associate.sets import AssociationTest, WordSet
from kgbias.associate.to_graph import save
from kgbias.estimate import Estimate
from kgbias.graph.sqlite import SQLiteStore
from kgbias.graph.types import Generation, Group, Run, Topic, TopicModel, Triple
from kgbias.models.base import ModelInfo

GROUPS = (Group("Elves", "peoples", ("Eldar",)), Group("Orcs", "peoples"))
RUN = Run("middle", ModelInfo("m"), {}, GROUPS)
KIND = Topic("peoples", 0, ("kind", "honest", "old"), 9)
RUDE = Topic("peoples", 1, ("rude", "old"), 8)
AIR = Topic("peoples", 2, ("smoke", "air"), 3)


@pytest.fixture
def measured(store: SQLiteStore) -> SQLiteStore:
    store.begin(RUN)
    triple = Triple("Elves", "are", "kind")
    store.record(RUN.id, "none", 0, [
        Generation(RUN.id, "0", GROUPS[0].id, "none", "object", 0, 0, "ok", triple=triple)
    ])  # fmt: skip
    store.save_topics(RUN.id, [TopicModel("peoples", (KIND, RUDE, AIR), (), {})])
    return store


def edges(store: SQLiteStore, test: AssociationTest) -> set[tuple[str, str]]:
    p = PValue(0.5, "exact", "one", 70, 35)
    result = Association(test, "weat", ModelInfo("v"), Estimate(1.0, 0.5, 1.5, 8), p, 0.1, {}, {})
    save(store, RUN, [result], [{}])
    (node,) = (n for n in store.associations(RUN.id) if n.id == result.id)
    return {(e.side, e.node_id) for e in node.edges if e.kind == "topic"}


def test_topics_as_attributes_get_edges(measured: SQLiteStore) -> None:
    a, b = topic_sets(
        RUN, measured.topics(RUN.id), "kind", "rude"
    )  # without "old", which both have
    test = groups_test(RUN, "Elves", "Orcs", a, b)
    assert edges(measured, test) == {("a", KIND.id), ("b", RUDE.id)}
    assert measured.known_nodes("topic", [KIND.id, "none"]) == {KIND.id}


def test_the_words_of_one_topic_get_an_edge(measured: SQLiteStore) -> None:
    own = WordSet("own", ("kind",))
    test = groups_test(RUN, "Elves", "Orcs", own, WordSet("air", ("air", "smoke")))
    assert edges(measured, test) == {("b", AIR.id)}
    other = groups_test(RUN, "Elves", "Orcs", own, WordSet("some", ("smoke",)))
    assert edges(measured, other) == set()
