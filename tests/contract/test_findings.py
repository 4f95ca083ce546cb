"""What is found about a run (topics, attributions, probes, near-duplicates), in every store, and
copied between stores."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kgbias.explore.server import render_served_page
from kgbias.explore.similar import SimilarStatements
from kgbias.explore.store_watch import StoreWatch
from kgbias.graph.labels import Label
from kgbias.graph.profiles import Profile, ProfilePart
from kgbias.graph.push import push_run
from kgbias.graph.sofa import (
    ProbeSet,
    SofaCategory,
    SofaGroup,
    SofaResult,
    SofaStatement,
)
from kgbias.graph.stereotypes import (
    Stereotype,
    StereotypeCount,
    StereotypeMatch,
    StereotypeMatches,
    StereotypeTable,
)
from kgbias.graph.store import Store, StoredRun
from kgbias.graph.stores import open_store
from kgbias.graph.types import (
    BenchmarkItem,
    Generation,
    Group,
    ItemScore,
    Metric,
    NearDuplicate,
    ProbedEdge,
    ProbeRun,
    Run,
    Score,
    Topic,
    TopicAssignment,
    TopicModel,
    Triple,
    WordAttribution,
)
from kgbias.graph.vectors import StatementVectors
from kgbias.models.base import ModelInfo
from kgbias.stats.estimate import Estimate

GROUPS = (Group("Elves", "peoples"), Group("Orcs", "peoples"))
RUN = Run("middle", ModelInfo("crawled"), {"seed": 0}, GROUPS)
TRIPLES = (
    Triple("Elves", "love", "songs"),
    Triple("Orcs", "love", "song"),
    Triple("Orcs", "adore", "smoke"),
)
PROBED = ProbeRun(ModelInfo("probed", "r2"), (("dtype", "float32"),), {"tier": "tree"})
AGAIN = replace(PROBED, record={"tier": "padded"})


@pytest.fixture
def run(store: Store) -> Run:
    store.begin_run(RUN)
    store.record_round(
        RUN.id,
        "none",
        0,
        [
            Generation(RUN.id, f"{n}", t.group_id, "none", "object", 0, 0, "ok", triple=t)
            for n, t in enumerate(TRIPLES)
        ],
    )
    return RUN


def topic_models(numbers: tuple[int, int]) -> list[TopicModel]:
    words = ("song", "sing", "loud", "old", "sung")
    music = Topic("peoples", 0, words, numbers[0], coherence=0.5, stability=0.75, kept=0.25)
    air = Topic("peoples", 1, ("smoke",), numbers[1])
    about = [
        TopicAssignment(TRIPLES[0].id, music.id, 0.75),
        TopicAssignment(TRIPLES[1].id, None, 0.0),
        TopicAssignment(TRIPLES[2].id, air.id, 0.0, True),
    ]
    ordered = tuple(sorted(about, key=lambda a: a.triple_id))
    return [TopicModel("peoples", (music, air), ordered, {"seed": 1, "é": None})]


def test_topics_are_replaced_as_a_whole(store: Store, run: Run) -> None:
    assert store.topics(run.id) == []
    for _ in range(2):
        store.save_topics(run.id, topic_models((2, 1)))
    assert store.topics(run.id) == topic_models((2, 1))
    fewer = [TopicModel("peoples", (), (), {})]
    store.save_topics(run.id, fewer)
    assert store.topics(run.id) == fewer
    assert store.query("MATCH (:Triple)-[a:ABOUT]->(:Topic) RETURN count(a) AS n").rows == [(0,)]
    store.save_topics(run.id, topic_models((3, 4)))
    assert store.topics(run.id) == topic_models((3, 4))


def test_a_topic_keeps_the_name_that_a_person_gave_it(store: Store, run: Run) -> None:
    def names() -> list[str]:
        found = store.query("MATCH (t:Topic) RETURN t.name AS name ORDER BY name").rows
        assert sorted(t.name for t in store.topics(run.id)[0].topics) == [n for (n,) in found]
        return [name for (name,) in found]

    store.save_topics(run.id, topic_models((2, 1)))
    music = topic_models((2, 1))[0].topics[0]
    assert names() == ["smoke", "song sing loud old"]
    store.name_topic(music.id, "Making music")
    assert names() == ["Making music", "smoke"]
    store.save_topics(run.id, topic_models((3, 1)))  # the same words are found again
    assert names() == ["Making music", "smoke"]
    store.name_topic(music.id, "")
    assert store.topics(run.id) == topic_models((3, 1))
    assert names() == ["smoke", "song sing loud old"]


def vectors(*rows: tuple[float, ...]) -> StatementVectors:
    """One for each of what the triples say, by predicate and object."""
    said = sorted((t.predicate_id, t.object_id) for t in TRIPLES)
    return StatementVectors(said, np.array(rows, dtype=np.float32))


def same(found: StatementVectors, wanted: StatementVectors) -> bool:
    return list(found.statements) == list(wanted.statements) and np.array_equal(
        found.rows, wanted.rows.astype(np.float16)
    )


def test_vectors_of_statements(store: Store, run: Run, tmp_path: Path) -> None:
    assert store.encoders() == [] and store.vectors(run.id, "e 1").ids == []
    first, second = vectors((1, 0), (0, 1), (0.6, 0.8)), vectors((0, 1), (1 / 3, 0.9), (1, 0))
    for wanted in (first, second):  # those that exist are replaced
        store.save_vectors("e 1", wanted)
        assert same(store.vectors(run.id, "e 1"), wanted)
    store.save_vectors("e 2", vectors((1, 0, 0), (0, 1, 0), (0, 0, 1)))
    assert store.vectors(run.id, "e 2").rows.shape == (3, 3)
    assert store.encoders() == ["e 1", "e 2"]
    assert not store.find_faults()
    said = {t.statement_id for t in store.triples(run.id)}
    assert said == set(store.vectors(run.id, "e 1").ids)
    with open_store(str(tmp_path / "copy.db")) as copy:
        push_run(StoredRun(store, run), copy)
        assert copy.encoders() == store.encoders()
        assert same(copy.vectors(run.id, "e 1"), second)


def test_a_vector_goes_with_the_last_triple_that_says_it(store: Store, run: Run) -> None:
    """What another run says of another group keeps it; shared words alone do not."""
    other = replace(RUN, name="other", config={"seed": 1})
    store.begin_run(other)
    said = (Triple("Elves", "love", "song"), Triple("Elves", "adore", "songs"))
    store.record_round(
        other.id,
        "none",
        0,
        [
            Generation(other.id, f"{n}", t.group_id, "none", "object", 0, 0, "ok", triple=t)
            for n, t in enumerate(said)
        ],
    )
    store.save_vectors("e 1", vectors((1, 0), (0, 1), (0.6, 0.8)))
    store.delete(run.id, dry_run=True)
    assert len(store.vectors(run.id, "e 1").ids) == 3
    store.delete(run.id)
    kept = store.vectors(other.id, "e 1")
    assert list(kept.statements) == [(said[0].predicate_id, said[0].object_id)]
    assert not store.find_faults()
    store.begin_run(RUN)
    store.record_round(
        RUN.id,
        "none",
        0,
        [
            Generation(RUN.id, "0", t.group_id, "none", "object", 0, 0, "ok", triple=t)
            for t in TRIPLES[:1]
        ],
    )
    assert store.vectors(RUN.id, "e 1").ids == []  # "love songs" lost its vector
    store.delete(other.id)
    assert store.encoders() == []


def test_what_is_near_is_served_from_either_store(
    store: Store, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = {"songs": (1.0, 0.0), "song": (0.8, 0.6), "smoke": (0.0, 1.0)}
    said = {(t.predicate_id, t.object_id): place[t.object] for t in TRIPLES}
    rows = np.array(list(said.values()), dtype=np.float32)

    class Axes:
        name, version = "e", "1"

        def embed(self, texts: list[str]) -> Any:
            assert texts == ["tunes"]
            return np.array([[1.0, 0.0]])

    monkeypatch.setattr("kgbias.explore.similar.load_vectors", lambda _: Axes())
    placed = render_served_page([StoredRun(store, run)]).row_index
    object = {t.id: t.object for t in TRIPLES}

    def found(hits: list[dict[str, Any]]) -> list[tuple[str, float]]:
        return [(object[placed.triple_id(hit["row"])], hit["cosine"]) for hit in hits]

    assert (
        SimilarStatements(placed, 0).search_text("tunes")
        == SimilarStatements(placed, 0).search_statement(TRIPLES[0].id)
        == []
    )
    store.save_vectors("e 1", StatementVectors(list(said), rows))
    nearby = SimilarStatements(placed, 0)
    assert found(nearby.search_text("tunes")) == [("songs", 1.0), ("song", 0.8)]
    assert found(nearby.search_statement(TRIPLES[1].id)) == [("songs", 0.8)]
    assert nearby.search_statement("0" * 20) == []


def test_a_crawl_that_runs_is_followed_on_either_store(store: Store, run: Run) -> None:
    live = StoreWatch([StoredRun(store, run)])

    def look() -> bool:
        live._next_look = 0.0
        return live.has_changed()

    store.set_status(run.id, "running")
    assert not look() and "middle is running" in live.running_lines[0]
    store.add_labels(
        [Label(TRIPLES[0].id, "regard", "other", "ann", "person", "", "2026", False, "")]
    )
    assert not look(), "no label is shown"
    more = Generation(
        run.id,
        "more",
        TRIPLES[0].group_id,
        "none",
        "object",
        1,
        0,
        "ok",
        triple=Triple("Elves", "love", "smoke"),
    )
    store.record_round(run.id, "none", 1, [more])
    assert look()


def test_attributions_follow_the_current_metric(store: Store, run: Run) -> None:
    old, new = Metric("regard", "a", "1"), Metric("regard", "a", "2")
    for metric in (old, new):
        store.save_scores(run.id, metric, [Score(t.id, 0.5) for t in TRIPLES])
        store.save_attributions(
            [WordAttribution(TRIPLES[0].id, metric, ("Elves", "love"), (0.25, -0.5), 0.5)]
        )
    newer = WordAttribution(TRIPLES[0].id, new, ("Elves",), (1.0,), 0.75)
    store.save_attributions([newer])
    assert store.attributions(run.id) == [newer]


def edges(rank: int) -> list[ProbedEdge]:
    t = TRIPLES[2]
    made = [
        ProbedEdge(
            t.predicate_id,
            t.object_id,
            g.id,
            -6.5 - n,
            5,
            -5.0,
            4,
            -1.5,
            1,
            rank + n,
            *((("Elves", " l\u00f6ve"), (2.5, 0.0), 1.25, 0.5, -1.5) if n else ()),
        )
        for n, g in enumerate(GROUPS)
    ]
    return sorted(made, key=lambda e: (e.statement_id, e.group_id))


def test_probes(store: Store, run: Run) -> None:
    store.put(run.id, ProbeRun, [PROBED])
    for rank in (5, 1):
        store.put(run.id, ProbedEdge, edges(rank), asking=PROBED)
    assert store.find_all(run.id, ProbedEdge, asking=PROBED) == edges(1)
    assert store.find_all(run.id, ProbedEdge, asking=RUN) == []
    store.put(run.id, ProbeRun, [AGAIN])
    assert store.find_all(run.id, ProbeRun) == [AGAIN]
    text = (
        "MATCH (t:Triple)-[:STATES]->(s:Statement)-[p:PROBED {run: 'middle'}]->(g:SocialGroup) "
        "RETURN t.text AS said, s.text AS statement, g.name AS group, p.model AS model, "
        "p.rank AS rank ORDER BY rank"
    )
    assert store.query(text).rows == [
        ("Orcs adore smoke", "adore smoke", "Elves", "probed", 1),
        ("Orcs adore smoke", "adore smoke", "Orcs", "probed", 2),
    ]


def links() -> list[NearDuplicate]:
    return [
        NearDuplicate(("adore", "smoke"), ("love", "song"), 0.9, "m@1"),
        NearDuplicate(("love", "songs"), ("love", "song"), 0.97, "m@1"),
    ]


def test_a_table_takes_the_place_of_what_it_was(store: Store, run: Run) -> None:
    """Held against an edited table, a run has nothing of the old one; another table, and what
    another run was held against, stay."""
    tables = [StereotypeTable(name, "", sum) for name, sum in (("a", "1"), ("a", "2"), ("b", "1"))]
    entry = Stereotype("a", "Elves", "musical", offensiveness=1.5)
    later = replace(run, name="later", config={"seed": 9})
    store.begin_run(later)

    def held(table: StereotypeTable, statements: int = 1) -> StereotypeMatches:
        own = replace(entry, source=table.name)
        marks = (StereotypeMatch(TRIPLES[1].id, own.uid(table.id), "known", "words", 1.0),)
        return StereotypeMatches(
            table, {"unused": 0}, (StereotypeCount(own, "Elves", statements, 0.0),), marks
        )

    first, edited, other = map(held, tables)
    for of, each in ((run, first), (run, other), (later, first), (run, held(tables[0], 2))):
        store.save_stereotype_matches(of.id, each)
    assert store.stereotype_matches(run.id) == [held(tables[0], 2), other]
    for _ in range(2):  # again: nothing changes
        store.save_stereotype_matches(run.id, edited)
        assert store.stereotype_matches(run.id) == [edited, other]
        assert store.stereotype_matches(later.id) == [first]
    count = "MATCH (n:{}) RETURN count(n) AS n"
    assert store.query(count.format("Stereotype")).rows == [(3,)]
    store.save_stereotype_matches(later.id, edited)
    assert store.query(count.format("StereotypeTable")).rows == [(2,)]
    assert store.find_faults() == []


def test_near_duplicates_are_taken_back(store: Store, run: Run) -> None:
    for _ in range(2):
        store.save_near_duplicates(run.id, links())
    assert store.near_duplicates(run.id) == links()
    text = (
        "MATCH (n:Statement)-[x:NEAR {run: 'middle'}]->(h:Statement) "
        "RETURN n.text AS n, h.text AS h, x.similarity AS s ORDER BY n"
    )
    assert store.query(text).rows == [
        ("adore smoke", "love song", 0.9),
        ("love songs", "love song", 0.97),
    ]
    store.put(run.id, ProbedEdge, edges(1), asking=PROBED)
    store.save_near_duplicates(run.id, [])
    assert store.near_duplicates(run.id) == []
    rows = store.query("MATCH (s:Statement) RETURN s.text AS text").rows
    assert rows == [("adore smoke",)]  # which was asked about


def test_a_copy_has_all_that_was_found(store: Store, run: Run, tmp_path: Path) -> None:
    store.save_topics(run.id, topic_models((2, 1)))
    store.put(run.id, ProbeRun, [PROBED])
    store.put(run.id, ProbedEdge, edges(1), asking=PROBED)
    store.save_near_duplicates(run.id, links())
    table, entry = StereotypeTable("a", "CC0", "1"), Stereotype("a", "Elf", "musical")
    held = StereotypeMatches(table, {"unused": 1}, (StereotypeCount(entry, "Elves", 0, 0.5),), ())
    store.save_stereotype_matches(run.id, held)
    copy = open_store(str(tmp_path / "copy.db"))
    for _ in range(2):
        push_run(StoredRun(store, run), copy)
    assert copy.topics(run.id) == topic_models((2, 1))
    assert copy.find_all(run.id, ProbeRun) == [PROBED]
    assert copy.find_all(run.id, ProbedEdge, asking=PROBED) == edges(1)
    assert copy.near_duplicates(run.id) == links()
    assert copy.stereotype_matches(run.id) == [held]


def test_profiles_are_replaced_as_a_whole_and_copied(
    store: Store, run: Run, tmp_path: Path
) -> None:
    ids = [g.id for g in store.generations(run.id)]
    labels = {"group": "ELF F", "gender": "F"}
    parts = (
        ProfilePart("hobbies", ids[0], "", 4, 9),
        ProfilePart("hobbies", ids[1]),
        ProfilePart("odd", "of another run", "", 3, 9),
    )
    elf = Profile(run.id, "a/0", "Ána", GROUPS[0].id, labels, parts)
    orc = Profile(run.id, "b/0", "Bo", GROUPS[1].id, {}, (ProfilePart("traits", ids[2]),))
    assert store.profiles(run.id) == []
    for _ in range(2):
        store.save_profiles(run.id, [orc, elf])
    first, second = store.profiles(run.id)
    assert (first.name, first.labels, first.group_id) == ("Ána", labels, GROUPS[0].id)
    assert first.values_by_attribute() == {
        "hobbies": ("songs", "song")
    } and second.values_by_attribute() == {"traits": ("smoke",)}
    assert [(p.begins, p.ends) for p in first.parts] == [(4, 9), (None, None)]
    rows = store.query(
        "MATCH (n:GivenName)<-[:GIVEN]-(p:Profile)-[:IN]->(g:SocialGroup) "
        "MATCH (:Run {name: 'middle'})-[:WROTE]->(p)<-[e:PART_OF]-(:Generation) "
        "RETURN n.name AS name, g.name AS group, count(e) AS parts ORDER BY name"
    ).rows
    assert sorted(rows) == [("Bo", "Orcs", 1), ("Ána", "Elves", 2)]
    with open_store(str(tmp_path / "copy.db")) as copy:
        push_run(StoredRun.find(store, "middle"), copy)
        assert copy.profiles(run.id) == [first, second]
    store.save_profiles(run.id, [orc])
    assert [p.name for p in store.profiles(run.id)] == ["Bo"]


def test_items_of_benchmarks_are_kept_by_model(store: Store) -> None:
    model, how = ModelInfo("probed", "r2"), (("dtype", "float32"),)
    items = [BenchmarkItem(f"i{n}", "bbq", f"Age {n}", "Age") for n in range(3)]
    first = [ItemScore(i, (-1.5, -2.25, -4.0), 31, 0.25) for i in items]
    again = [ItemScore(items[2], (), 7, 0.5)]  # one that could not be scored
    for scores in (first, again, again):
        store.save_item_scores(model, how, scores)
    store.save_item_scores(model, (), first[:1])
    ids = [i.id for i in items]
    assert store.item_scores(model, how, [*ids, "none"]) == dict(
        zip(ids, [*first[:2], *again], strict=True)
    )
    assert store.item_scores(model, (), ids) == {"i0": first[0]}
    assert store.item_scores(ModelInfo("other"), how, ids) == {}
    assert store.item_settings(model) == [how, ()]
    text = (
        "MATCH (i:BenchmarkItem {category: 'Age'})-[r:READ_BY]->(m:Model) "
        "RETURN i.name AS item, m.name AS model, r.tokens AS tokens ORDER BY item, tokens"
    )
    assert store.query(text).rows == [
        ("Age 0", "probed", 31),
        ("Age 0", "probed", 31),
        ("Age 1", "probed", 31),
        ("Age 2", "probed", 7),
    ]


SETS = {"c": (("Orcs", "elves"), ("Are fair.", "are fair"))}


def sofa_result(probe_set: ProbeSet, score: float, model: str = "probed") -> SofaResult:
    """Two statements, of which the first puts one group first, and in the other two tie."""
    (part,) = probe_set.parts
    own = Estimate(score, score - 0.5, score + 0.5, 2)
    groups = [
        SofaGroup(g, Estimate(0.5, 0.0, 1.0, 2), Estimate(0.25, 0.0, 1.0, 2)) for g in part.groups
    ]
    figures = ((1.5, 1.125, -0.25, ("Orcs",)), (0.0, 0.0, 0.5, ("Orcs", "elves")))
    statements = [
        SofaStatement(s.id, s.text, *f) for s, f in zip(part.statements, figures, strict=True)
    ]
    category = SofaCategory("c", own, (-1.0, 0.5), tuple(groups), tuple(statements))
    return SofaResult(
        probe_set.id, ModelInfo(model), (("dtype", "x"),), "sofa", own, (category,), {"seed": 0}
    )


def test_sofa_is_kept_with_its_set(store: Store, run: Run, tmp_path: Path) -> None:
    """In the words of the probes: elsewhere the graph knows the elves as "Elves"."""
    store.save_probe_set(ProbeSet.from_texts("mine", SETS))
    (probe_set,) = store.probe_sets()
    assert (
        probe_set.id == ProbeSet.from_texts("other", SETS).id != ProbeSet.from_texts("mine", {}).id
    )
    (part,) = probe_set.parts
    assert set(part.groups) == set(SETS["c"][0])
    assert {s.text: (s.words, s.hate) for s in part.statements} == {
        "Are fair.": (2, None),
        "are fair": (2, None),
    }
    assert (probe_set.groups, probe_set.statements, probe_set.probes) == (2, 2, 4)
    for score in (1.0, 2.0):
        store.save_sofa_results(run.id, [sofa_result(probe_set, score)])
    store.save_sofa_results(None, [sofa_result(probe_set, 3.0, "another")])
    kept = sofa_result(probe_set, 2.0)
    assert store.sofa_results(run.id) == [kept] and len(store.sofa_results()) == 2
    described = replace(
        probe_set,
        record={"hate": "rule@1"},
        parts=(
            replace(
                part, statements=tuple(replace(s, hate=0.75, cluster=-1) for s in part.statements)
            ),
        ),
    )
    store.save_probe_set(described)
    assert store.probe_sets() == [described] and store.sofa_results(run.id) == [kept]
    for _ in range(2):
        with open_store(str(tmp_path / "copy.db")) as copy:
            push_run(StoredRun(store, run), copy)
            assert copy.sofa_results() == [kept] and copy.probe_sets() == [described]
