"""Deleting a run leaves the graph of a store that never had it, and a sound store has no faults."""

from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from kgbias.errors import UsageError
from kgbias.graph.store import Store
from kgbias.graph.stores import open_store
from kgbias.graph.types import (
    Answer,
    AssociationNode,
    BeliefRun,
    BelievedEdge,
    ChoiceRun,
    ChosenEdge,
    Generation,
    GroupScore,
    Metric,
    NameProbe,
    NearDuplicate,
    NodeCentrality,
    ProbedEdge,
    ProbeRun,
    Run,
    Score,
    TopicAssignment,
    TopicModel,
    Triple,
    WordAttribution,
    WordSetEdge,
)
from tests.contract.test_shape import (
    BELIEVING,
    CHOOSING,
    ELVES,
    FLAGGED,
    HELD,
    LATER,
    MODEL,
    NAMES,
    ORCS,
    PROBING,
    READ,
    REGARD,
    RUN,
    SONGS,
    TOPIC,
    everything,
    seen,
)

pytestmark = pytest.mark.skipif(not find_spec("kglite"), reason="kglite is not installed")

OTHER = Run(
    "other",
    MODEL,
    {"seed": 2},
    (ELVES,),
    RUN.categories,
    created="2026-11-23T00:00:00+00:00",
    version="1",
)
OWN = Triple("Elves", "sing", "songs")


def overlapping(store: Store) -> None:
    """A run that shares some of every kind of node with the run of `everything`."""
    store.begin_run(LATER)
    store.begin_run(OTHER)
    store.keep_answers([Answer("k", MODEL.id, "songs", "stop", 7, 2, 0.5, '{"a":1}')])
    common = {"arm": "none", "strategy": "object", "iteration": 0, "attempt": 0, "outcome": "ok"}
    store.record_round(
        OTHER.id,
        "none",
        0,
        [
            Generation(OTHER.id, "0", ELVES.id, triple=SONGS, answer_key="k", **common),  # type: ignore[arg-type]
            Generation(OTHER.id, "1", ELVES.id, triple=OWN, shown=(SONGS.id,), **common),  # type: ignore[arg-type]
        ],
    )
    store.save_scores(
        OTHER.id, REGARD, [Score(SONGS.id, 0.25, "positive", {"positive": 0.5, "negative": 0.25})]
    )
    for measure, value in (("toxicity", 1.0), ("acceptability", 0.75)):
        store.save_scores(OTHER.id, Metric(measure, "rule", "1"), [Score(SONGS.id, value)])
    for measure, value in (("toxicity", 1.0), ("acceptability", 0.75)):
        store.save_scores(OTHER.id, Metric(measure, "rule", "1"), [Score(SONGS.id, value)])
    store.put(
        OTHER.id,
        GroupScore,
        [GroupScore(1.0, 0.5, 2.0, 2, ELVES.id, "overall_regard", "bootstrap")],
    )
    about = (TopicAssignment(SONGS.id, TOPIC.id, 0.75, True), TopicAssignment(OWN.id, None, 0.0))
    store.save_topics(OTHER.id, [TopicModel("peoples", (TOPIC,), about, {"seed": 1})])
    store.save_attributions(
        [WordAttribution(SONGS.id, REGARD, ("Elves", "love"), (0.25, -0.5), 0.25)]
    )
    edges = (WordSetEdge("x", "group", ELVES.id), WordSetEdge("b", "topic", TOPIC.id))
    figures = (MODEL, 1.25, 0.01, 0.5, 2.0, {"n": 2}, edges, 0.001, 0.02, 0.015, 8, 9)
    store.save_associations(OTHER.id, [AssociationNode("shared", "C7", "weat", *figures)])
    store.save_associations(None, [AssociationNode("of none", "C8", "weat", *figures)])
    probed = ProbedEdge(SONGS.predicate_id, SONGS.object_id, ELVES.id, -6.5, 5, -5.0, 4, -1.5, 1, 1)
    store.put(OTHER.id, ProbedEdge, [probed], asking=PROBING)
    store.put(OTHER.id, ProbeRun, [PROBING])
    chosen = ChosenEdge(
        SONGS.predicate_id, SONGS.object_id, ELVES.id, 4, 4, 3, answers=("k",), others=("shared",)
    )
    store.keep_answers([Answer("shared", CHOOSING.model.id, "A", "stop")])
    store.put(OTHER.id, ChosenEdge, [chosen], asking=CHOOSING)
    store.put(OTHER.id, ChoiceRun, [CHOOSING])
    ends = (SONGS.predicate_id, SONGS.object_id)
    store.save_names(NAMES[:1])
    store.put(OTHER.id, NameProbe, [NameProbe(*ends, NAMES[0].id, (-1.0, -2.0))], asking=BELIEVING)
    figures = (2.5, 1.25, 3.75, 5, 0.01, 0.02, 0.001, 0.002, 1.5, "Elven folk", "leaning")
    store.put(OTHER.id, BelievedEdge, [BelievedEdge(*ends, ELVES.id, *figures)], asking=BELIEVING)
    store.put(OTHER.id, BeliefRun, [BELIEVING])
    store.save_near_duplicates(
        OTHER.id, [NearDuplicate(("sing", "songs"), ("love", "songs"), 0.9, "m@1")]
    )
    store.save_item_scores(PROBING.model, PROBING.settings, [READ])
    store.save_flags(FLAGGED)
    of_elves = [h for h in HELD.heard if h.group == "Elves"]
    of_songs = [m for m in HELD.marks if m.triple_id == SONGS.id]
    store.save_stereotype_matches(
        OTHER.id, replace(HELD, heard=tuple(of_elves), marks=tuple(of_songs))
    )
    store.save_centralities(OTHER.id, [NodeCentrality("group", ELVES.id, "Elves", 2, 0.5, 0, 1)])
    for run in (LATER, OTHER):
        store.set_status(run.id, "complete")


def without_order(graph: dict[str, Any]) -> dict[str, Any]:
    """The graph without the numbers of its runs, which a deletion leaves as they are."""
    for (run,) in graph["Run"]:
        del run["seq"]
    return graph


def test_a_deleted_run_was_never_there(store: Store, tmp_path: Path) -> None:
    everything(store)
    store.save_centralities(LATER.id, ())
    overlapping(store)
    store.save_associations(RUN.id, [n for n in store.associations(OTHER.id)])
    whole = seen(store, narrow=False)
    told = store.delete(RUN.id, dry_run=True)
    assert seen(store, narrow=False) == whole
    assert store.delete(RUN.id) == told
    assert told == {
        "Category": 2,
        "SocialGroup": 1,
        "Predicate": 3,
        "Object": 3,
        "Triple": 3,
        "Run": 1,
        "Generation": 4,
        "AssociationTest": 1,
        "TopicModel": 1,
        "Decision": 3,
        "Passage": 2,
        "GivenName": 1,
        "Profile": 1,
        "ProbeSet": 1,
        "SofaResult": 1,
        "Statement": 3,
        "Answer": 2,
        "Name": 1,
        "Rater": 1,
        "Stereotype": 1,
    }
    assert store.find_faults() == []
    left = without_order(seen(store, narrow=False))
    with open_store(str(tmp_path / "never.db")) as never:
        overlapping(never)
        for name, rows in without_order(seen(never, narrow=False)).items():
            assert left[name] == rows, name
    store.begin_run(RUN)  # numbers go on after the last
    assert [s.run.name for s in store.summaries()] == ["later", "other", "middle"]
    assert store.runs() == [s.run for s in store.summaries()]


def test_nothing_is_left_of_the_only_run(store: Store) -> None:
    """But for the items of benchmarks and the flags of APX, which belong to a model."""
    everything(store)
    assert store.find_faults() == []
    store.delete(LATER.id)
    store.delete(RUN.id)
    left = {name for name, rows in seen(store, narrow=False).items() if rows}
    assert left == {
        "BenchmarkItem",
        "Model",
        "BenchmarkItem-READ_BY-Model",
        "Descriptor",
        "SocialGroup",
        "SocialGroup-FLAGGED-Descriptor",
    }
    assert store.delete(RUN.id) == {}


def test_a_server_says_how_it_is_copied(store: Store, tmp_path: Path) -> None:
    if "://" not in store.url:
        pytest.skip("of servers")
    with pytest.raises(UsageError, match="database dump"):
        store.backup(tmp_path / "copy")
    with pytest.raises(UsageError, match="by itself"):
        store.compact()


def test_faults_are_found(store: Store) -> None:
    everything(store)
    if "://" in store.url:
        store.write_alone("MATCH (n:Object {uid: $uid}) SET n.text = 'dongs'", uid=SONGS.object_id)  # type: ignore[attr-defined]
        store.write_alone("MATCH (n:SocialGroup {uid: $uid}) DETACH DELETE n", uid=ORCS.id)  # type: ignore[attr-defined]
    else:
        with store._transaction():  # type: ignore[attr-defined]
            db = store._db  # type: ignore[attr-defined]
            db.execute("UPDATE object SET text = 'dongs' WHERE id = ?", (SONGS.object_id,))
            db.execute('DELETE FROM "group" WHERE id = ?', (ORCS.id,))
    found = {(f.kind, f.example) for f in store.find_faults()}
    assert ("id", SONGS.object_id) in found
    assert any(kind == "reference" for kind, _ in found)
