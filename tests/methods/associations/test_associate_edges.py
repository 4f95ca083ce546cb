"""The edges that an association test gets in the graph."""

import pytest

from kgbias.evidence.indicators import shipped_indicators
from kgbias.graph.sqlite import SQLiteStore
from kgbias.graph.types import AssociationNode, Generation, Group, Run, Topic, TopicModel, Triple
from kgbias.methods.associations.family import build_records
from kgbias.methods.associations.graph import build_groups_test, save_results, topic_attribute_sets
from kgbias.methods.associations.permutation import PValue
from kgbias.methods.associations.result import Association, SetUsage
from kgbias.methods.associations.sets import AssociationTest, WordSet, find_tests, published_tests
from kgbias.models.base import ModelInfo
from kgbias.stats.estimate import Estimate

GROUPS = (Group("Elves", "peoples", ("Eldar",)), Group("Orcs", "peoples"))
RUN = Run("middle", ModelInfo("m"), {}, GROUPS)
KIND = Topic("peoples", 0, ("kind", "honest", "old"), 9)
RUDE = Topic("peoples", 1, ("rude", "old"), 8)
TARGETS = (WordSet("Elves", ("elf",)), WordSet("Orcs", ("orc",)))
AIR = Topic("peoples", 2, ("smoke", "air"), 3)


@pytest.fixture
def measured(store: SQLiteStore) -> SQLiteStore:
    store.begin_run(RUN)
    triple = Triple("Elves", "are", "kind")
    store.record_round(
        RUN.id,
        "none",
        0,
        [Generation(RUN.id, "0", GROUPS[0].id, "none", "object", 0, 0, "ok", triple=triple)],
    )
    store.save_topics(RUN.id, [TopicModel("peoples", (KIND, RUDE, AIR), (), {})])
    return store


def edges(store: SQLiteStore, test: AssociationTest) -> set[tuple[str, str]]:
    node = saved(store, RUN, test)
    return {(e.side, e.node_id) for e in node.edges if e.kind == "topic"}


def saved(store: SQLiteStore, run: Run, test: AssociationTest) -> AssociationNode:
    """The node that a CEAT result becomes, with a published p of 0 and a permutation p of 0.5."""
    published = PValue(0.0, "random-effects", "two", 0, -1)
    result = Association(
        test,
        "ceat",
        ModelInfo("v"),
        Estimate(1.0, 0.5, 1.5, 8),
        published,
        0.1,
        {role: SetUsage(words.words) for role, words in test.sets.items()},
        {},
        permutation_p_value=PValue(0.5, "exact", "two", 70, 35),
    )
    save_results(store, run, [result], build_records([result, result])[:1])
    (node,) = (n for n in store.associations(run.id) if n.id == result.id)
    return node


def test_topics_as_attributes_get_edges(measured: SQLiteStore) -> None:
    a, b = topic_attribute_sets(
        RUN, measured.topics(RUN.id), "kind", "rude"
    )  # without "old", which both have
    test = build_groups_test(*TARGETS, a, b)
    assert edges(measured, test) == {("a", KIND.id), ("b", RUDE.id)}
    assert measured.known_nodes("topic", [KIND.id, "none"]) == {KIND.id}


def test_the_words_of_one_topic_get_an_edge(measured: SQLiteStore) -> None:
    own = WordSet("own", ("kind",))
    test = build_groups_test(*TARGETS, own, WordSet("air", ("air", "smoke")))
    assert edges(measured, test) == {("b", AIR.id)}
    other = build_groups_test(*TARGETS, own, WordSet("some", ("smoke",)))
    assert edges(measured, other) == set()


def test_a_set_that_shares_three_words_with_a_topic_is_about_it(measured: SQLiteStore) -> None:
    work = Topic("peoples", 0, ("office", "salary", "career", "hours"), 9)
    home = Topic("peoples", 1, ("home", "family", "garden"), 5)
    measured.save_topics(RUN.id, [TopicModel("peoples", (work, home), (), {})])
    (test,) = find_tests(["C6"])
    assert edges(measured, test) == {("a", work.id)}


@pytest.fixture
def people(store: SQLiteStore) -> tuple[SQLiteStore, Run]:
    names = ("Men", "Women", "White people", "African Americans", "People with disabilities")
    run = Run("people", ModelInfo("m"), {}, tuple(Group(name, "people") for name in names))
    store.begin_run(run)
    return store, run


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("weat6", {"x": {"Men"}, "y": {"Women"}}),
        ("C6-term", {"x": {"Men"}, "y": {"Women"}}),
        ("Occ", {"x": {"Men"}, "y": {"Women"}}),
        ("C3", {"x": {"White people"}, "y": {"African Americans"}}),
        ("C3-term", {"x": {"White people"}, "y": {"African Americans"}}),
        ("I1", {"x": {"White people", "Men"}, "y": {"African Americans", "Women"}}),
        ("I2-term", {"x": {"White people", "Men"}, "y": {"African Americans", "Women"}}),
        ("Dis", {"x": {"People with disabilities"}, "y": {"People with disabilities"}}),
        ("weat7", {"a": {"Men"}, "b": {"Women"}}),
    ],
)
def test_published_tests_reach_their_groups(
    people: tuple[SQLiteStore, Run], name: str, expected: dict[str, set[str]]
) -> None:
    store, run = people
    names = {group.id: group.name for group in run.groups}
    found: dict[str, set[str]] = {}
    for edge in saved(store, run, find_tests([name])[0]).edges:
        assert edge.name == ("TARGET" if edge.side in "xy" else "ATTRIBUTE")
        found.setdefault(edge.side, set()).add(names[edge.node_id])
    assert found == expected


def test_every_concept_that_is_declared_is_one_of_a_published_test() -> None:
    concepts = {s.concept for test in published_tests().values() for s in test.sets.values()}
    assert {c for group in shipped_indicators().groups for c in group.concepts} <= concepts


def test_a_node_keeps_the_permutation_p_and_the_published_one_apart(
    people: tuple[SQLiteStore, Run],
) -> None:
    node = saved(*people, find_tests(["C6"])[0])
    assert (node.p_value, node.p_published, node.p_holm, node.p_bh) == (0.5, 0.0, 1.0, 0.5)
    assert (node.n_x, node.n_y) == (8, 8)
