"""Topic shares, relative entropy and lemmas, against values worked out by hand."""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from kgbias.graph.sqlite import SQLiteStore
from kgbias.graph.types import (
    Generation,
    Group,
    Metric,
    Run,
    Score,
    Topic,
    TopicAssignment,
    TopicModel,
    Triple,
    WordAttribution,
)
from kgbias.measure.embedding import Vectors
from kgbias.measure.topics import model as model_module
from kgbias.measure.topics.model import (
    fit_topics,
    kept_pair_shares,
    mean_adjusted_rand,
    overall_kept_share,
    topic_coherences,
    topic_overlaps,
)
from kgbias.measure.topics.run import ENTROPY_MEASURE, PUBLISHED_ENTROPY, entropy_figures
from kgbias.measure.topics.settings import TopicSettings
from kgbias.measure.topics.shares import (
    describe_stability,
    explain_unfit,
    kl_divergence,
    relative_entropies,
    suggest_remedies,
    topic_shares,
)
from kgbias.models.base import ModelInfo
from kgbias.stats.designs import Design
from kgbias.stats.inference import Sample
from tests.conftest import require_modules
from tests.simulation import Simulation
from tests.texts import Texts

GROUPS = (Group("A", "x"), Group("B", "x"), Group("C", "x"), Group("Other", "y"))
RUN = Run("r", ModelInfo("m"), {}, GROUPS)
FOOD = Topic("x", 0, ("food", "eat"), 3)
WORK = Topic("x", 1, ("work", "job"), 2)


def test_divergence_by_hand() -> None:
    # p = (1/2, 1/2), q = (1/4, 3/4): 1/2 log2 2 + 1/2 log2 (2/3) = 1 - 1/2 log2 3.
    p, q = np.array([0.5, 0.5]), np.array([0.25, 0.75])
    assert kl_divergence(p, q) == pytest.approx(1 - 0.5 * math.log2(3))
    assert kl_divergence(np.array([1.0, 0.0]), np.array([0.5, 0.5])) == pytest.approx(1)
    assert kl_divergence(q, q) == 0


def test_entropy_in_its_forms() -> None:
    # Shares (1, 0) and (0, 1): the mean is (1/2, 1/2), so each is one bit away, log 2 nats.
    a, b = relative_entropies([np.array([50.0, 0]), np.array([0.0, 50])])
    assert a.plug_in == pytest.approx(1) and b.plug_in == pytest.approx(1)
    assert a.published == pytest.approx(-math.log(2))
    # Each resample of (1, 0) is (1, 0); but 50 of 50 do not show that all would be.
    assert a.estimate.value == pytest.approx(1)
    assert 0.7 < a.estimate.low < 1 <= a.estimate.high < 1.2
    assert a.estimate.n == 50


def test_unequal_groups_weigh_the_same() -> None:
    small, large = relative_entropies([np.array([10.0, 0]), np.array([500.0, 500.0])])
    # q = (3/4, 1/4): D(small) = log2 (4/3); D(large) = 1/2 log2 (2/3) + 1/2 log2 2.
    assert small.plug_in == pytest.approx(math.log2(4 / 3))
    assert large.plug_in == pytest.approx(0.5 * math.log2(2 / 3) + 0.5)


def test_statements_of_one_prompt_are_drawn_together() -> None:
    """Four answers to a prompt, all about one topic, say what one does."""
    rng = np.random.default_rng(1)
    own = [rng.choice(4, 20, p=np.roll([0.6, 0.2, 0.1, 0.1], n)) for n in range(3)]
    counts = [np.bincount(topics, minlength=4).astype(float) for topics in own]

    def drawn(each: int) -> list[Sample]:
        design = Design(np.repeat(np.arange(20), each), np.zeros(20, dtype=np.int64))
        ones = np.ones(20 * each, dtype=np.int64)
        return [Sample(np.repeat(t, each) * 1.0, ones, design, np.arange(20 * each)) for t in own]

    once = relative_entropies(counts, drawn(1), draws=4000)
    four = relative_entropies([4 * c for c in counts], drawn(4), draws=4000)
    taken = relative_entropies([4 * c for c in counts], draws=4000)
    for a, b, c in zip(once, four, taken, strict=True):
        assert (a.plug_in, a.estimate.low, a.estimate.high) == pytest.approx(
            (b.plug_in, b.estimate.low, b.estimate.high)
        )
        assert c.estimate.high - c.estimate.low < b.estimate.high - b.estimate.low
    mixed = relative_entropies(counts, [None, *drawn(1)[1:]])
    assert all(found.estimate.has_interval for found in mixed)


def test_the_correction_takes_the_bias_away_and_intervals_hold(simulation: Simulation) -> None:
    planted = np.random.default_rng(0).dirichlet(np.ones(8), size=5)
    truth = kl_divergence(planted, planted.mean(axis=0))
    corrected, plug_in, held = [], [], []
    for seed, rng in enumerate(simulation.worlds(30)):
        counts = [rng.multinomial(100, p).astype(float) for p in planted]
        found = relative_entropies(counts, draws=300, seed=seed)
        corrected.append([f.estimate.value for f in found])
        plug_in.append([f.plug_in for f in found])
        held += [f.estimate.low <= t <= f.estimate.high for f, t in zip(found, truth, strict=True)]
    bias = np.mean(plug_in, axis=0) - truth
    assert np.mean(bias) > 0.02  # about (8 - 1) / (2 * 100 * ln 2) = 0.05, less what q takes
    assert abs(np.mean(corrected) - truth.mean()) < np.mean(bias) / 2
    simulation.check("held", sum(held), len(held), 0.92, 0.98)


def test_no_difference_gives_zero_inside_the_interval() -> None:
    rng = np.random.default_rng(1)
    counts = [rng.multinomial(100, [0.1] * 10).astype(float) for _ in range(4)]
    for found in relative_entropies(counts):
        assert found.estimate.low == 0 <= found.estimate.value <= found.estimate.high


def test_few_statements() -> None:
    one, none, many = relative_entropies([np.array([1.0, 0]), np.zeros(2), np.array([5.0, 5])])
    assert math.isnan(one.estimate.low) and one.estimate.n == 1
    assert math.isnan(none.estimate.value) and none.estimate.n == 0
    assert many.estimate.n == 10
    assert relative_entropies([]) == []


def told(store: SQLiteStore) -> tuple[Run, TopicModel]:
    said = [("A", "pie", 6), ("A", "job", 2), ("B", "tea", 1), ("B", "toil", 7), ("B", "??", 2)]
    store.begin_run(RUN)
    store.load_import(
        RUN.id,
        [
            Generation(
                RUN.id,
                str(n),
                Triple(g, "", "").group_id,
                "none",
                "import",
                0,
                0,
                "ok",
                triple=Triple(g, "like", o),
                count=count,
            )
            for n, (g, o, count) in enumerate(said)
        ],
    )
    of = {"pie": FOOD, "tea": FOOD, "job": WORK, "toil": WORK, "??": None}
    about = tuple(
        sorted(
            (
                TopicAssignment(
                    Triple(g, "like", o).id, t.id if (t := of[o]) else None, 0.5, o == "tea"
                )
                for g, o, _ in said
            ),
            key=lambda a: a.triple_id,
        )
    )
    return RUN, TopicModel("x", (FOOD, WORK), about, {"seed": 0})


def test_shares_count_what_was_said(store: SQLiteStore) -> None:
    run, model = told(store)
    a, b = topic_shares(run, store.triples(run.id), model)
    assert (a.group.name, a.counts.tolist(), a.outliers) == ("A", [6, 2], 0)
    assert (b.group.name, b.counts.tolist(), b.outliers) == ("B", [1, 7], 2)
    assert b.share_of_topic(1).value == pytest.approx(0.7) and b.share_of_topic(1).n == 10
    found = entropy_figures(run, store.triples(RUN.id), [model])
    figures = {(f.group_id, f.measure): f for f in found}
    # p = (3/4, 1/4) and (1/8, 7/8), q = (7/16, 9/16).
    d = 0.75 * math.log2(0.75 / (7 / 16)) + 0.25 * math.log2(0.25 / (9 / 16))
    published = figures[GROUPS[0].id, PUBLISHED_ENTROPY]
    assert published.value == pytest.approx(-d * math.log(2)) and published.n == 8
    assert "nats" in published.method and "bits" in figures[GROUPS[1].id, ENTROPY_MEASURE].method


def test_one_topic_or_one_group_has_no_entropy(store: SQLiteStore, texts: Texts) -> None:
    run, model = told(store)
    triples = store.triples(run.id)
    one = TopicModel("x", (FOOD,), tuple(a for a in model.about if a.topic_id == FOOD.id), {})
    for figure in entropy_figures(run, triples, [one]):
        assert math.isnan(figure.value)
        texts.check(figure.method)
    assert len(entropy_figures(run, triples, [one])) == 2 * 3
    alone = [t for t in triples if t.group == "A"]
    assert entropy_figures(run, alone, [model]) == []


def test_topics_and_attributions_come_back_as_they_were(store: SQLiteStore) -> None:
    run, model = told(store)
    store.save_topics(run.id, [model])
    store.save_topics(run.id, [model])
    assert store.topics(run.id) == [model]
    store.save_topics(run.id, [])
    assert store.topics(run.id) == []
    metric = Metric("regard", "rule", "1")
    triple = store.triples(run.id)[0]
    store.save_scores(run.id, metric, [Score(triple.id, 0.5)])
    attribution = WordAttribution(triple.id, metric, ("A", "like", "pie."), (0.0, 0.1, -0.2), 0.5)
    store.save_attributions([attribution])
    store.save_attributions([attribution])
    assert store.attributions(run.id) == [attribution]


def test_too_few_documents_have_no_topics() -> None:
    class Never:
        name = version = "never"

        def embed(self, texts: object) -> object:
            raise AssertionError("nothing to embed")

    fit = fit_topics(["a", "", "b"], Never(), TopicSettings())  # type: ignore[arg-type]
    assert fit.topics == () and fit.labels == (-1, -1, -1)
    assert fit.settings["empty"] == 1 and fit.settings["outliers"] == 2


def test_cluster_size_is_a_fortieth() -> None:
    assert TopicSettings().min_topic_statements(2000) == 50
    assert TopicSettings().min_topic_statements(40) == 5
    assert TopicSettings(min_topic_size=7).min_topic_statements(2000) == 7


def test_coherence_by_hand() -> None:
    # Of 8 documents "a" and "b" stand in 4 each, together in 2: independent, NPMI 0. "c" and "d"
    # only stand together, in one: log(8) / log(8) = 1. "a" and "e" never do: -1. "a" and "f" stand
    # together in 2 of 8, "f" in 2: log(2 * 8 / (4 * 2)) / log 4 = 1/2.
    documents = ["a b f", "a b f", "a", "a", "b", "b", "c d", "e"]
    assert topic_coherences(
        [("a", "b"), ("c", "d"), ("a", "e"), ("a", "f"), ("a",)], documents
    ) == [pytest.approx(0), pytest.approx(1), -1, pytest.approx(0.5), None]
    # Three pairs: 0, -1 (a e), -1 (b e).
    assert topic_coherences([("a", "b", "e")], documents) == [pytest.approx(-2 / 3)]
    assert topic_coherences([("x", "y")], ["x y"]) == [1]


def test_stability_by_hand() -> None:
    require_modules("sklearn")
    first, same, other = (np.array(x) for x in ([0, 0, 1, 1], [1, 1, 0, 0], [0, 1, 0, 1]))
    assert mean_adjusted_rand([first, same, first]) == 1  # whatever their numbers
    # All four pairs of the crossed clustering are split: index 0, expected 2 * 2 / 6, at most 2.
    assert mean_adjusted_rand([first, other]) == pytest.approx((0 - 2 / 3) / (2 - 2 / 3))
    # Topic 0 is {0, 1}, found again as it is; topic 1 is {2, 3}, of which {3} is left: 1/2.
    assert topic_overlaps(np.array([0, 0, 1, 1]), [np.array([2, 2, -1, 0])]) == [1, 0.5]
    # A topic whose documents are all outliers elsewhere is not there: (1 + 0) / 2.
    assert topic_overlaps(np.array([0, -1]), [np.array([0, 0]), np.array([-1, -1])]) == [0.25]


def test_kept_by_hand() -> None:
    # Topic 0 is {0, 1, 2}: without 2, its pair is together; without 0, its pair is apart. Topic 1
    # is {3, 4}: once together, once with an outlier. By chance: 2 and 1 of 6 pairs each.
    labels = np.array([0, 0, 0, 1, 1])
    others = [np.array([5, 5, -2, 7, 7]), np.array([-2, 0, 1, 0, -1])]
    assert kept_pair_shares(labels, others) == [1 / 2, 1 / 2]
    assert overall_kept_share(labels, others) == (2 / 4, 3 / 12)
    assert kept_pair_shares(np.array([0, -1]), [np.array([0, 0])]) == [None]


def test_topics_that_hold_up_are_named(texts: Texts) -> None:
    first, second = (
        replace(t, stability=s, kept=k) for t, s, k in ((FOOD, 0.9, 0.6), (WORK, 0.9, 0.5))
    )
    model = TopicModel("x", (first, second), (), {"kept": 0.55, "kept_by_chance": 0.1})
    texts.check(describe_stability(model))
    texts.check_lines(describe_stability(replace(model, topics=(second, second))), "topics hold")
    assert describe_stability(TopicModel("x", (FOOD,), (), {})) == ""  # not measured


def model_of(share: float, rand: float | None, **settings: object) -> TopicModel:
    found = {"adjusted_rand": rand, "largest_share": share, "min_cluster_size": 15, **settings}
    return TopicModel("x", (FOOD, WORK), (), found)


@pytest.mark.parametrize(
    ("model", "reason", "tries"),
    [
        (model_of(0.5, 0.5), "", ""),
        (model_of(0.5, None), "", ""),  # not measured
        (model_of(0.4, 0.49), "Rand index 0.49, below 0.5", "a larger crawl"),
        (model_of(0.51, 0.9), "one topic holds 51%", "`min_topic_size` below 15"),
        (model_of(0.9, 0.9, outlier_rule="assign"), "holds 90%", "try `outliers` keep, "),
        (model_of(0.9, 0.9, cluster_selection="eom"), "holds 90%", "try `topic_clusters` leaf, "),
        (TopicModel("x", (), (), {"distinct": 12}), "no topics were found", "crawl more"),
        (TopicModel("x", (FOOD,), (), {"min_cluster_size": 9}), "a single topic", "below 9"),
    ],
)
def test_topics_that_carry_no_comparison_say_why_and_what_to_try(
    model: TopicModel, reason: str, tries: str
) -> None:
    assert (explain_unfit(model) == "") == (reason == "") and reason in explain_unfit(model)
    assert tries in suggest_remedies(model)


def test_relative_entropy_is_withheld_but_in_its_published_form_if_that_was_asked_for(
    store: SQLiteStore,
    texts: Texts,
) -> None:
    run, model = told(store)
    triples = store.triples(run.id)
    unstable = replace(model, settings={"adjusted_rand": 0.2})
    for figure in entropy_figures(run, triples, [unstable]):
        assert math.isnan(figure.value) and figure.n == 8
        texts.check(figure.method)
    published = replace(model, settings={"adjusted_rand": 0.2, "entropy": "as_published"})
    values = {(f.measure, math.isnan(f.value)) for f in entropy_figures(run, triples, [published])}
    assert values == {
        (ENTROPY_MEASURE, True),
        ("relative_entropy_plug_in", True),
        (PUBLISHED_ENTROPY, False),
    }


def test_fitting_sizes_and_outliers(monkeypatch: pytest.MonkeyPatch) -> None:
    documents = [*(f"eat pie{n}" for n in range(12)), *(f"work job{n}" for n in range(8)), "odd"]

    class Places:
        name = version = "places"

        def embed(self, texts: Sequence[str]) -> Vectors:
            return np.array([[n, len(text)] for n, text in enumerate(texts)], dtype=np.float64)

    def clusters(rows: Vectors, size: int, seed: int, settings: TopicSettings) -> object:
        labels = np.array([5] * 12 + [-1] + [2] * 8)  # the documents are sorted: "odd" is 13th
        assert size == (7 if len(rows) == 21 else 6)
        labels = labels[rows[:, 0].astype(int)]
        return labels, np.where(labels >= 0, 0.93, 0)

    monkeypatch.setattr(model_module, "cluster_rows", clusters)
    monkeypatch.setattr(
        model_module, "_topic_words", lambda *_: (("eat", "pie1"), ("work", "job1"))
    )
    done = []
    settings = TopicSettings()
    fit = fit_topics(documents, Places(), settings, statements=300, advance=lambda: done.append(1))
    assert fit.kept_shares == (1, 1) and fit.settings["kept"] == 1
    # Of 21 documents 94 of 210 pairs are together; of four fifths of them, about as many.
    assert 0.4 < fit.settings["kept_by_chance"] < 0.6
    assert len(done) == 10 and fit.settings["adjusted_rand"] == 1
    assert fit.labels == (0,) * 12 + (1,) * 8 + (-1,)
    assert fit.topics[0][0] == "eat" and fit.topics[1][0] == "work"
    assert fit.stabilities == (1, 1) and fit.settings["outliers"] == 1
    assert fit.settings["min_cluster_size_rule"] == "statements / 40, at least 5"
