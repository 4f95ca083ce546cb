"""Resampling as a sample was drawn, against what is worked out by hand or listed in full."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

from kgbias.designs import Design, effects
from kgbias.estimate import covered
from kgbias.graph.draws import Draws
from kgbias.graph.selection import Selection, select
from kgbias.graph.sqlite import SQLiteStore
from kgbias.graph.stored import StoredRun
from kgbias.graph.types import Generation, Group, Metric, Run, Score, Triple
from kgbias.measure.figures import figures_of, update_figures
from kgbias.models.base import ModelInfo
from kgbias.statistics import STATISTICS, Sample, bootstrap, mean, total

ints = lambda *x: np.array(x, dtype=np.int64)  # noqa: E731


def sample(values: list[float], design: Design) -> Sample:
    n = len(values)
    return Sample(np.array(values), np.ones(n, dtype=np.int64), design, np.arange(n))


def test_a_total_varies_as_much_as_its_clusters_do() -> None:
    """Two strata, of cluster totals 3, 5 and 1, 4, 10: the variance of the whole is the sum over
    strata of n / (n - 1) times the squared deviations, 2 (1 + 1) + 3/2 (16 + 1 + 25) = 67."""
    design = Design(ints(0, 0, 1, 2, 3, 4, 4), ints(0, 0, 1, 1, 1))
    values = [1.0, 2, 5, 1, 4, 7, 3]
    totals = np.array([3.0, 5, 1, 4, 10])
    first, second, by_hand = totals[:2], totals[2:], 67
    listed = []
    for a in itertools.product(range(2), repeat=1):
        for b in itertools.product(range(3), repeat=2):
            listed.append(2 * first[list(a)].sum() + 1.5 * second[list(b)].sum())
    assert np.var(listed) == pytest.approx(by_hand)
    drawn = np.concatenate(list(design.weights(40_000, np.random.default_rng(0), 7)))
    assert (drawn @ totals).var() == pytest.approx(by_hand, rel=0.03)
    found = bootstrap(sample(values, design), total, draws=40_000)
    assert (found.value, found.n) == (23.0, 7)
    assert found.low == pytest.approx(np.quantile(listed, 0.025), abs=2)


def test_chunks_and_seeds(monkeypatch: pytest.MonkeyPatch) -> None:
    design = Design(np.arange(30) // 2, np.arange(15) // 5)
    values = sample([float(n % 7) for n in range(30)], design)
    first = bootstrap(values, mean)
    assert bootstrap(values, mean) == first != bootstrap(values, mean, seed=1)
    monkeypatch.setattr("kgbias.designs._CHUNK", 30 * 7)
    chunked = bootstrap(values, mean)
    assert (chunked.low, chunked.high) == pytest.approx((first.low, first.high), abs=0.3)


def test_lone_clusters_are_drawn_together() -> None:
    alone = Design(ints(0, 1, 2, 3), ints(0, 1, 2, 2))
    (weights,) = alone.weights(500, np.random.default_rng(0), 4)
    assert set(weights[:, 0] + weights[:, 1]) == {2.0} and weights[:, 0].std() > 0
    one = Design(ints(0, 1, 1, 2), ints(0, 1, 1))
    (weights,) = one.weights(500, np.random.default_rng(0), 4)
    assert weights.sum(axis=1) == pytest.approx(3) and weights[:, 0].std() > 0
    single = bootstrap(sample([1.0, 2.0], Design(ints(0, 0), ints(0))), mean)
    assert single.value == 1.5 and math.isnan(single.low)


def test_an_empty_place_counts_for_totals() -> None:
    """Ten places of which five yield 1: the total varies as a binomial number, though every value
    is the same."""
    design = Design(np.arange(10), np.zeros(10, dtype=np.int64))
    values = Sample(np.ones(5), np.ones(5, dtype=np.int64), design, np.arange(5))
    found = bootstrap(values, total, draws=4000)
    assert found.value == 5 and 1.5 < found.low < 3 and 7 < found.high < 8.5
    assert bootstrap(values, mean) == replace(found, value=1.0, low=1.0, high=1.0)


def test_the_effects_of_units_by_hand() -> None:
    rng = np.random.default_rng(0)
    assert not effects(np.array([0.1, 0.2, 0.3]), np.full(3, 0.02), 100, rng).any()
    # Between units 1, within 0.25: 0.75 is theirs, a third of it the variance of their mean.
    drawn = effects(np.array([0.0, 1.0, 2.0]), np.full(3, 0.25), 60_000, rng)
    assert drawn.var() == pytest.approx(0.75 / 3, rel=0.03)
    assert not effects(np.array([1.0, math.nan]), np.full(2, 0.1), 10, rng).any()


@pytest.mark.parametrize("statistic", ["mean", "median"])
def test_intervals_hold_where_independent_ones_do_not(statistic: str) -> None:
    """Clusters of four that share half of their variance, in two strata, and six wordings."""
    rng = np.random.default_rng(0)
    clusters, strata = np.arange(240) // 4, np.arange(60) // 30
    wordings = np.arange(240) % 6
    hits = np.zeros(2)
    for trial in range(120):
        values = (
            rng.normal(0, 0.7, 60)[clusters]
            + rng.normal(0, 0.7, 240)
            + rng.normal(0, 0.4, 6)[wordings] * (trial % 2)
            + np.array([-1.0, 1.0])[strata][clusters]
        )
        levels = {"wordings": wordings} if trial % 2 else {}
        known = sample(list(values), Design(clusters, strata, levels))
        for n, s in enumerate((known, replace(known, design=None))):
            e = bootstrap(s, STATISTICS[statistic], draws=200)
            hits[n] += e.low <= 0 <= e.high
    assert 0.90 <= hits[0] / 120 <= 0.99
    assert hits[1] / 120 < 0.9


GROUPS = (Group("Women", "gender"), Group("Men", "gender"))


def crawled(store: SQLiteStore, kind: str = "crawl") -> StoredRun:
    """Two groups; four initial prompts of one predicate, then six that ask for two predicates (two
    texts each), then three in which the model names it; the last place stays empty."""
    run = Run("r", ModelInfo("m"), {"kind": kind}, GROUPS, kind=kind)
    store.begin(run)
    made = []
    for g in GROUPS:
        rows = [("initialise", 0, f"love/{n:03d}", "love", "P love") for n in range(4)]
        rows += [("object", 1, f"{n:03d}", "fear" if n < 3 else "eat", f"{n} ") for n in range(6)]
        rows += [("predicate", 1, f"{n:03d}", "hold", f"{n} ?") for n in range(3)]
        for n, (strategy, round, place, predicate, prompt) in enumerate(rows):
            wording = f"{strategy}@1.{n % 2 + 1}:completion"
            path = f"none/{strategy}/{round}/{g.name}/{place}"
            said = Triple(g.name, predicate, f"thing {n}") if n < 12 else None
            if n == 5:  # a first attempt that yielded nothing
                made.append(
                    Generation(run.id, f"{path}#0", g.id, "none", strategy, round, 0, "refused",
                               template=wording, prompt=prompt)
                )  # fmt: skip
            made.append(
                Generation(
                    run.id, f"{path}#{n == 5:d}", g.id, "none", strategy, round, int(n == 5),
                    "ok" if said else "refused", template=wording, prompt=prompt, triple=said,
                    shown=() if n != 7 else (Triple(g.name, "eat", "thing 7").id,),
                )
            )  # fmt: skip
    store.load(run.id, made)
    scores = [Score(t.id, float(t.object[6:]) / 12) for t in store.triples(run.id)]
    store.save_scores(run.id, Metric("toxicity", "x", "1"), scores)
    return StoredRun(store, run)


def test_the_design_of_a_crawl(store: SQLiteStore) -> None:
    run = crawled(store)
    counted = select(run)
    women = [t for t in counted.triples if t.group == "Women"]
    found = Draws.of(run, counted).sample(women, "toxicity")
    assert found.design is not None and found.places is not None and found.n == 12
    by_value = dict(zip(found.values * 12, found.design.clusters[found.places], strict=True))
    ordered = [cluster for _, cluster in sorted(by_value.items())]
    initial, fear, eat, free = ordered[:4], ordered[4:7], ordered[7:10], ordered[10:]
    assert len(set(initial)) == 4  # one prompt that every crawl asks: independent answers
    assert len(set(fear)) == len(set(eat)) == 1 and fear[0] != eat[0]
    assert len(set(free)) == 2
    assert len(found.design.clusters) == 13  # the empty place too
    strata = found.design.strata
    assert len(set(strata)) == 3
    assert strata[fear[0]] == strata[eat[0]] != strata[free[0]]
    assert found.design.covers == ("statements", "wordings")


def test_both_groups_together_are_strata_of_their_own(store: SQLiteStore) -> None:
    run = crawled(store)
    counted = select(run)
    both = Draws.of(run, counted).sample(counted.triples, "toxicity")
    assert both.design is not None and len(both.design.clusters) == 26
    assert len(set(both.design.strata)) == 6
    assert both.design.covers == ("statements", "wordings")
    assert both.mean == pytest.approx(sum(range(12)) / 144)


def test_figures_say_what_their_interval_covers(store: SQLiteStore) -> None:
    run = crawled(store)
    update_figures(run)
    mean_of = {s.group_id: s for s in run.group_scores() if s.measure == "toxicity_mean"}
    figure = mean_of[GROUPS[0].id]
    assert covered(figure.method) == ("statements", "wordings") and figure.has_interval
    assert "prompts and rounds" in figure.method


def test_echoes_leave_their_places_empty(store: SQLiteStore) -> None:
    run = crawled(store)
    counted = select(run, Selection(without_echoes=True))
    found = Draws.of(run, counted).sample(counted.triples, "toxicity")
    assert found.n == 22 and found.design is not None and len(found.design.clusters) == 26
    figures = figures_of(run, Selection(without_echoes=True))
    assert {s.n for s in figures if s.measure == "toxicity_mean"} == {11}


def test_an_import_falls_back_to_its_statements(store: SQLiteStore) -> None:
    run = crawled(store, "import")
    draws = Draws.of(run, select(run))
    assert not draws.known
    assert draws.sample(select(run).triples, "toxicity").design is None
    update_figures(run)
    methods = {s.method for s in run.group_scores()}
    assert {covered(m) for m in methods} == {("statements",)}
    assert all("taken for independent" in m for m in methods)
