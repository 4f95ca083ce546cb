"""What raters say of statements, on every store."""

from dataclasses import replace
from pathlib import Path

from kgbias.graph.labels import RETRACTED_LABEL, Label, labels_in_effect
from kgbias.graph.push import push_run
from kgbias.graph.store import Store, StoredRun
from kgbias.graph.stores import open_store
from kgbias.graph.types import Run, Triple
from tests.contract.test_store import RUN, said

FOOD, RAIN = said("a", "Women", "love", "food"), said("b", "Men", "hate", "rain\x00 ü")
OTHER = Run("other", RUN.model, {**RUN.config, "seed": 7}, RUN.groups)
assert FOOD.triple is not None and RAIN.triple is not None
OF_FOOD, OF_RAIN = FOOD.triple.id, RAIN.triple.id


def label(triple: str, value: str, second: int, rater: str = "Ana \ud800", note: str = "") -> Label:
    at = f"2026-11-24T10:00:0{second}.000000+00:00"
    return Label(triple, "regard", value, rater, "person", "regard@1", at, True, "s1", note)


def begun(store: Store) -> Store:
    store.begin_run(RUN)
    store.record_round(RUN.id, "none", 0, [FOOD, RAIN])
    return store


def test_labels_are_kept_in_order_and_a_repeated_one_changes_nothing(store: Store) -> None:
    first, second = label(OF_FOOD, "positive", 1, "Ana"), label(OF_RAIN, "", 2, "Ana", "what?\x00")
    machine = replace(label(OF_FOOD, "neutral", 3, "Ana"), kind="model", masked=False, sample="")
    other = replace(label(OF_FOOD, "clean", 4, "Ben"), measure="toxicity")
    begun(store)
    for _ in range(2):
        store.add_labels([other, machine, second, first])
    assert store.labels() == [first, second, machine, other]
    assert store.labels("regard") == [first, second, machine]
    assert store.labels("identity attack") == []
    assert [store.label_count(m) for m in ("regard", "toxicity", "identity attack")] == [3, 1, 0]
    rows = store.query(
        "MATCH (r:Rater)-[e:LABELLED]->(t:Triple) "
        "RETURN r.name AS by, r.kind AS kind, e.label AS label, t.name AS text ORDER BY e.labelled"
    ).rows
    assert [row[:3] for row in rows] == [
        ("Ana", "person", "positive"),
        ("Ana", "person", ""),
        ("Ana", "model", "neutral"),
        ("Ben", "person", "clean"),
    ]
    assert store.find_faults() == []


def test_the_latest_of_a_rater_is_in_effect_and_none_is_lost(store: Store) -> None:
    first, better = label(OF_FOOD, "positive", 1), label(OF_FOOD, "neutral", 3)
    of_ben = label(OF_FOOD, "negative", 2, "Ben")
    begun(store).add_labels([better])
    store.add_labels([first, of_ben])  # an earlier one, from another store say
    found = store.labels()
    assert [x.label for x in found] == ["positive", "negative", "neutral"]
    assert [x.label for x in labels_in_effect(found)] == ["negative", "neutral"]
    store.add_labels([label(OF_FOOD, RETRACTED_LABEL, 4)])
    assert [x.label for x in labels_in_effect(store.labels())] == ["negative"]
    assert len(store.labels()) == 4


def test_what_cannot_be_kept_as_text_is_kept_once(store: Store) -> None:
    """A lone surrogate is not UTF-8: stores keep a replacement, under the same id."""
    odd = label(OF_FOOD, "positive", 1, note="\ud800")
    begun(store).add_labels([odd])
    store.add_labels(store.labels())
    (kept,) = store.labels()
    assert (kept.rater, kept.note, kept.uid) == ("Ana ?", "?", odd.uid)


def test_a_label_of_a_triple_that_is_not_there_is_left_out(store: Store) -> None:
    begun(store).add_labels([label(Triple("Orcs", "love", "smoke").id, "negative", 1, "Cem")])
    assert store.labels() == [] and store.find_faults() == []
    assert store.query("MATCH (r:Rater) RETURN r.name").rows == []


def test_labels_go_with_the_statements_that_they_are_of(store: Store) -> None:
    begun(store)
    store.begin_run(OTHER)
    store.record_round(OTHER.id, "none", 0, [replace(FOOD, run_id=OTHER.id)])
    ana, ben = label(OF_FOOD, "positive", 1), label(OF_RAIN, "negative", 2, "Ben")
    store.add_labels([ana, ben])
    planned = store.delete(RUN.id, dry_run=True)
    assert planned["Rater"] == 1 and len(store.labels()) == 2
    assert store.delete(RUN.id) == planned
    assert [x.uid for x in store.labels()] == [ana.uid]  # the other run said it too
    assert store.delete(OTHER.id)["Rater"] == 1
    assert store.query("MATCH (r:Rater) RETURN r.name").rows == []


def test_a_copy_has_the_labels_of_its_statements(store: Store, tmp_path: Path) -> None:
    begun(store).add_labels([label(OF_FOOD, "positive", 1, "Ana"), label(OF_RAIN, "", 2, "Ana")])
    with open_store(str(tmp_path / "target.db")) as target:
        for _ in range(2):
            push_run(StoredRun.find(store), target)
            assert target.labels() == store.labels()
        target.add_labels([label(OF_FOOD, "neutral", 3, "Cem")])
        push_run(StoredRun.find(target), store)
        assert store.labels() == target.labels() and len(store.labels()) == 3
