"""What people decide in review, on every store."""

from pathlib import Path

from kgbias.graph.decisions import Decision
from kgbias.graph.push import push_run
from kgbias.graph.store import Store, StoredRun
from kgbias.graph.stores import open_store
from kgbias.graph.types import Generation, Metric, Score, Triple
from tests.contract.test_store import GROUPS, RUN, said

OK = said("a", "Women", "love", "food")
REFUSED = Generation(RUN.id, "b", GROUPS[1].id, "none", "object", 0, 0, "refused", "a filter")
ROUND = [OK, REFUSED]
RESTORED = Triple("Men", "hate", "rain\x00 ü")


def at(second: int) -> str:
    return f"2026-11-22T10:00:0{second}.000000+00:00"


def restore(second: int, triple: Triple = RESTORED, by: str = "Ana") -> Decision:
    return Decision(REFUSED.id, "restore", by, at(second), triple)


def reject(second: int) -> Decision:
    return Decision(OK.id, "reject", "Ben", at(second), read=OK.triple)


def begun(store: Store) -> Store:
    store.begin_run(RUN)
    store.record_round(RUN.id, "none", 0, ROUND)
    return store


def statements(store: Store) -> list[tuple[str, str, str, int]]:
    return [(t.group, t.predicate, t.object, t.count) for t in store.triples(RUN.id)]


FOOD, RAIN = ("Women", "love", "food", 1), ("Men", "hate", "rain\x00 ü", 1)


def test_a_restored_answer_counts_and_a_rejected_one_does_not(store: Store) -> None:
    begun(store).add_decisions(RUN.id, [restore(1)])
    assert statements(store) == [FOOD, RAIN]
    store.add_decisions(RUN.id, [reject(2)])
    assert statements(store) == [RAIN]
    # How the crawl ended them stays.
    generations = list(store.generations(RUN.id))
    assert [(g.outcome, g.reason, g.triple) for g in generations] == [
        ("ok", "", None),
        ("refused", "a filter", RESTORED),
    ]
    assert store.decisions(RUN.id) == [restore(1), reject(2)]
    assert store.summaries()[0].refused == 1


def test_the_latest_decision_is_in_effect_and_all_are_kept(store: Store) -> None:
    other = Triple("Men", "hate", "snow")
    begun(store).add_decisions(RUN.id, [restore(3, other), reject(1)])
    store.add_decisions(RUN.id, [restore(2)])  # an earlier one, from another store say
    assert statements(store) == [("Men", "hate", "snow", 1)]
    undone = [
        Decision(OK.id, "undo", "Ana", at(4), read=OK.triple),
        Decision(REFUSED.id, "undo", "Ana", at(4)),
    ]
    for _ in range(2):
        store.add_decisions(RUN.id, undone)
    assert list(store.generations(RUN.id)) == ROUND
    assert len(store.decisions(RUN.id)) == 5


def test_a_round_that_is_recorded_again_keeps_the_decisions(store: Store) -> None:
    begun(store).add_decisions(RUN.id, [restore(1), reject(2)])
    before = list(store.generations(RUN.id))
    store.record_round(RUN.id, "none", 0, ROUND)
    assert list(store.generations(RUN.id)) == before
    store.record_round(RUN.id, "none", 0, [])  # a server failed, and answers later
    assert statements(store) == []
    store.record_round(RUN.id, "none", 0, ROUND)
    assert list(store.generations(RUN.id)) == before
    assert statements(store) == [RAIN]
    store.add_decisions(RUN.id, [Decision(OK.id, "undo", "Ana", at(3), read=OK.triple)])
    changed = said("a", "Women", "love", "rain")  # as a later reader reads it
    store.record_round(RUN.id, "none", 0, [changed, REFUSED])
    assert statements(store) == [("Women", "love", "rain", 1), RAIN]


def test_an_import_that_is_loaded_again_keeps_the_decisions(store: Store) -> None:
    store.begin_run(RUN)
    store.load_import(RUN.id, [said("a", "Women", "love", "food", count=3)])
    store.add_decisions(RUN.id, [reject(1)])
    store.load_import(RUN.id, [said("a", "Women", "love", "food", count=3)])
    assert statements(store) == []
    store.add_decisions(RUN.id, [Decision(OK.id, "undo", "Ben", at(2), read=OK.triple)])
    assert statements(store) == [("Women", "love", "food", 3)]


def test_stereotype_edges_follow_decisions(store: Store) -> None:
    begun(store)
    store.set_status(RUN.id, "complete")
    store.add_decisions(RUN.id, [restore(1), reject(2)])
    store.derive_edges(RUN.id)
    rows = store.query("MATCH (g)-[s:STEREOTYPE]->(o) RETURN g.name, s.predicate, o.text").rows
    assert rows == [RAIN[:3]]
    rows = store.query(
        "MATCH (:Run)-[:REVIEWED]->(d:Decision)-[:DECIDES]->(n:Generation) "
        "RETURN d.verdict AS verdict, d.reviewer AS by, n.outcome AS outcome ORDER BY verdict"
    ).rows
    assert rows == [("reject", "Ben", "ok"), ("restore", "Ana", "refused")]


def test_a_copy_has_the_decisions_and_meets_those_of_the_target(
    store: Store, tmp_path: Path
) -> None:
    begun(store).add_decisions(RUN.id, [restore(1), reject(2)])
    metric = Metric("regard", "rule", "1")
    store.save_scores(RUN.id, metric, [Score(RESTORED.id, 0.5)])
    run = StoredRun.find(store)
    with open_store(str(tmp_path / "target.db")) as target:
        for _ in range(2):
            push_run(run, target)
            assert target.decisions(RUN.id) == store.decisions(RUN.id)
            assert target.triples(RUN.id) == store.triples(RUN.id)
        undone = Decision(OK.id, "undo", "Cem", at(5), read=OK.triple)
        target.add_decisions(RUN.id, [undone])
        push_run(run, target)
        assert statements(target) == [FOOD, RAIN]
        store.add_decisions(RUN.id, [restore(6, Triple("Men", "hate", "snow"))])
        push_run(StoredRun.find(target), store)
        assert statements(store) == [FOOD, ("Men", "hate", "snow", 1)]
