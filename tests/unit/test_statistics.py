import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

from kgbias.compare.two_sample import mean_difference
from kgbias.measure.topics.shares import relative_entropies
from kgbias.stats.designs import Design
from kgbias.stats.estimate import Estimate
from kgbias.stats.inference import (
    Sample,
    _draw_counts,
    bootstrap,
    bootstrap_clusters,
    clustered_mean,
    clustered_proportion,
    mean,
    proportion,
    quantile,
    student_quantile,
    total,
)
from kgbias.stats.poststratification import StandardWeights, StratifiedSample
from kgbias.stats.units import UnitSums, ratio_of_sums
from tests.simulation import Simulation


def exact_interval(values: list[float], level: float = 0.95) -> tuple[float, float]:
    """The bootstrap distribution of the mean by listing all n^n resamples."""
    n = len(values)
    means = sorted(sum(draw) / n for draw in itertools.product(values, repeat=n))
    tail = (1 - level) / 2
    low, high = np.quantile(means, [tail, 1 - tail])
    return float(low), float(high)


def test_interval_agrees_with_listing_every_resample() -> None:
    values = [0.0, 1.0, 3.0, 7.0, 20.0]
    estimate = bootstrap(np.array(values), mean, draws=40_000)
    widening = 2.776 * math.sqrt(5 / 4) / 1.96  # Student's, of five values
    low, high = (6.2 + (end - 6.2) * widening for end in exact_interval(values))
    assert estimate.value == pytest.approx(6.2)
    # 40,000 draws place the quantiles within a step of the discrete distribution.
    assert estimate.low == pytest.approx(low, abs=0.4)
    assert estimate.high == pytest.approx(high, abs=0.9)


def test_coverage_of_the_interval(simulation: Simulation) -> None:
    """About 95% of the intervals hold the true mean (percentile intervals run a little narrow)."""
    held = []
    for rng in simulation.worlds(100):
        estimate = bootstrap(rng.normal(2, 1, size=50), mean, draws=400)
        held.append(estimate.low <= 2 <= estimate.high)
    simulation.check("held", sum(held), len(held), 0.92, 0.97)


def test_a_sum_of_signs_is_no_count_though_none_is_negative(simulation: Simulation) -> None:
    """Of ten statements, one in ten is negative and one positive: where none is negative, more
    might have been all the same."""
    signs = (-1.0, 1.0)
    held = []
    for rng in simulation.worlds(100):
        drawn = rng.choice([-1.0, 0.0, 1.0], 10, p=(0.1, 0.8, 0.1))
        sample = Sample(drawn, np.ones(10, dtype=np.int64), signs=signs)
        of_sum, of_mean = (bootstrap(sample, statistic, draws=400) for statistic in (total, mean))
        assert of_sum.value == drawn.sum() and of_sum.low == pytest.approx(10 * of_mean.low)
        held.append(of_sum.low <= 0 <= of_sum.high)
    simulation.check("held", sum(held), len(held), 0.93, 1.0)
    none = Sample(np.zeros(8), np.ones(8, dtype=np.int64), signs=signs)
    assert bootstrap(none, total).low < 0 < bootstrap(none, total).high
    assert bootstrap(replace(none, signs=None), total).low == 0  # of a count


def test_repeats_itself_and_chunks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.arange(100.0)
    first = bootstrap(values, quantile(0.5))
    assert bootstrap(values, quantile(0.5)) == first
    assert bootstrap(values, quantile(0.5), seed=1) != first
    monkeypatch.setattr("kgbias.stats.inference._MAX_CHUNK_VALUES", 100 * 7)
    chunked = bootstrap(values, quantile(0.5))
    assert (chunked.low, chunked.high) == pytest.approx((first.low, first.high), abs=3)


@pytest.mark.parametrize("times", [1, 2, 3])
def test_draws_one_by_one_are_those_of_a_multinomial(times: int) -> None:
    """Either way of drawing: of k values that occur 1 to 2 x times - 1 times, n are drawn."""
    counts = np.array([1.0, times, 2 * times - 1])
    n, draws = 3 * times, 100_000
    often = _draw_counts(np.random.default_rng(0), counts, n, draws)
    assert often.shape == (draws, 3) and (often.sum(axis=1) == n).all()
    shares = counts / n
    covariance = n * (np.diag(shares) - np.outer(shares, shares))
    assert np.abs(often.mean(axis=0) - n * shares).max() < 0.02
    assert np.abs(np.cov(often.T) - covariance).max() < 0.03


def test_few_values() -> None:
    none = bootstrap(np.array([]), mean)
    assert math.isnan(none.value) and none.n == 0
    one = bootstrap(np.array([0.5]), total)
    assert one.value == 0.5 and math.isnan(one.low) and one.n == 1
    same = bootstrap(np.array([1.0] * 9), total)
    assert (same.value, same.high) == (9.0, 9.0)
    assert same.low == pytest.approx(9 * proportion(9, 9).low)


def test_a_rare_count_and_none_have_the_interval_of_a_share() -> None:
    """Of 60 statements of 30 prompts, as of 60 independent ones unless a prompt's are alike."""
    design = Design(np.repeat(np.arange(30), 2), np.arange(30) % 3)

    def counted(places: list[int]) -> tuple[float, float]:
        values = np.zeros(60)
        values[places] = 1
        sample = Sample(values, np.ones(60, dtype=np.int64), design, np.arange(60))
        found = bootstrap(sample, total)
        assert found.value == len(places)
        return found.low, found.high

    assert counted(list(range(60))) == (pytest.approx(60 * proportion(30, 30).low), 60)
    assert counted([]) == (0, pytest.approx(60 * proportion(0, 30).high))
    apart, alike = counted([0, 12, 24, 36]), counted([0, 1, 24, 25])
    whole = proportion(4, 60)
    assert apart[0] == pytest.approx(60 * whole.low, rel=0.1)
    assert apart[1] == pytest.approx(60 * whole.high, rel=0.1)
    assert alike[0] < apart[0] and alike[1] > apart[1]


def test_shares_and_means_over_few_clusters() -> None:
    clusters, values = "aabbccdd", [1, 1, 1, 0, 0, 0, 0, 0]
    share = clustered_proportion(clusters, values)
    assert share.value == 0.375 and 0 < share.low < proportion(3, 8).low
    assert proportion(3, 8).high < share.high < 1
    assert 0.3 < clustered_proportion(clusters, [0] * 8).high < proportion(0, 4).high
    assert clustered_proportion("abcdefgh", values) == proportion(3, 8)  # one value each
    assert math.isnan(clustered_proportion("aabb", values[:4]).low)
    found = clustered_mean("abcd", [1.0, 2.0, 3.0, 4.0])  # Student's, by hand
    half = 3.1824 * math.sqrt(5 / 3 / 4)
    assert found.high == pytest.approx(2.5 + half, rel=0.002)
    assert found.low == pytest.approx(2.5 - half, rel=0.05)
    assert math.isnan(clustered_mean("abcd", [1.0] * 4).low)


def test_a_figure_over_few_units_is_widened_and_stays_in_its_bounds() -> None:
    values = np.array([60.0, 90.0, 99.0])
    columns = np.column_stack([np.ones(3), values])
    free, bound = (
        UnitSums(("a", "b", "c"), columns, ratio_of_sums, bounds=bounds).estimate()
        for bounds in ((-math.inf, math.inf), (0.0, 100.0))
    )
    assert free.high > 100 > bound.high and free.low < 60
    assert 0 < bound.low < 60


def test_alike_groups_of_few_statements_are_not_said_to_diverge() -> None:
    rng = np.random.default_rng(0)
    draws = [[rng.multinomial(5, [1 / 3] * 3).astype(float) for _ in range(6)] for _ in range(60)]
    found = [relative_entropies(counts, draws=200)[0].estimate for counts in draws]
    assert sum(e.low > 0 for e in found) <= 6  # of 60; once three in five of them
    unlike = [np.array([20.0, 0, 0]), *[np.array([0, 10.0, 10.0])] * 5]
    assert relative_entropies(unlike, draws=200)[0].estimate.low > 0


@pytest.mark.parametrize(("freedom", "value"), [(1, 12.7062), (2, 4.3027), (10, 2.2281)])
def test_students_quantile_is_that_of_tables(freedom: int, value: float) -> None:
    assert student_quantile(0.975, freedom) == pytest.approx(value, abs=5e-5)


def test_a_share_near_its_bound_over_few_units_has_room() -> None:
    """Of five terms of twelve items, four are all right: percentiles would end at 100."""
    columns = np.column_stack([np.full(5, 12.0), [1200.0, 1200.0, 1200.0, 1200.0, 600.0]])
    found = UnitSums(
        tuple("abcde"), columns, ratio_of_sums, bounds=(0, 100), trials=columns[:, 0]
    ).estimate()
    assert found.low < 75 and 90 < found.high < 100
    empty = np.vstack([columns, [0.0, 0.0]])  # a term without items says nothing
    same = UnitSums(tuple("abcdef"), empty, ratio_of_sums, bounds=(0, 100), trials=empty[:, 0])
    assert same.estimate().low == pytest.approx(found.low)


def test_a_mean_of_few_without_bounds_may_lie_beyond_what_was_seen() -> None:
    """Student's t_2 at 97.5% is 4.303: three values tell little."""
    found = bootstrap(np.array([1.0, 2.0, 3.0]), mean)
    widening = 4.303 * math.sqrt(3 / 2) / 1.96
    assert found.high == pytest.approx(2 + widening, rel=0.01) and found.high > 3
    assert bootstrap(Sample.from_values(np.array([1.0, 2, 3])), total).high <= 9


def test_an_interval_of_all_that_is_possible_is_none() -> None:
    """Two wordings that disagree tell nothing about others: toxicity from 0 to 1 says nothing."""
    places = np.arange(24)
    design = Design(places, np.zeros(24, np.int64), {"wordings": places % 2})
    apart = np.where(places % 2, 0.1, 0.9) + places / 1000

    def toxicity(values: np.ndarray) -> Sample:
        return Sample(values, np.ones(24, np.int64), design, places, bounds=(0.0, 1.0))

    assert not bootstrap(toxicity(apart), mean).has_interval
    by_form = StratifiedSample(toxicity(apart), forms=np.zeros(24, np.int64))
    assert not StandardWeights.from_samples([by_form]).estimate(by_form).has_interval
    near = bootstrap(toxicity(0.5 + (apart - 0.5) / 100), mean)
    assert 0 < near.low < near.high < 1
    assert Estimate(0.5, -2.0, 0.9, 3).keep_within(0, 1) == Estimate(0.5, 0, 0.9, 3)


def test_a_quantile_of_few_has_no_interval() -> None:
    values = np.arange(39.0)
    assert not bootstrap(values[:19], quantile(0.5)).has_interval
    assert bootstrap(values[:20], quantile(0.5)).has_interval
    assert bootstrap(values, quantile(0.25)).value == 9.5
    assert not bootstrap(values, quantile(0.25)).has_interval


def test_a_statistic_of_few_clusters_is_widened_within_its_bounds() -> None:
    values = np.array([0.0] + [1.0] * 7)

    def share(weights: np.ndarray) -> np.ndarray:
        own = values[: weights.shape[-1]]
        return np.asarray((weights @ own) / weights.sum(axis=-1))

    free = bootstrap_clusters("abcdefgh", share)
    assert free.high > 1 > free.value == 0.875
    held = bootstrap_clusters("abcdefgh", share, bounds=(0.0, 1.0))
    assert (held.low, held.high) == (free.low, 1.0)
    # Of four clusters it would be anything from 0 to 1.
    assert not bootstrap_clusters("abcd", share, bounds=(0.0, 1.0)).has_interval
    # Values that all agree do not tell how certain the figure is.
    assert not bootstrap_clusters("abcd", lambda weights: weights[:, 0] * 0 + 1).has_interval


def test_a_difference_of_labels_that_are_nearly_all_the_same() -> None:
    """Resamples of them are all the same; Newcombe's intervals (1998) are of both means."""
    signs = (-1.0, 1.0)
    all_positive = Sample(np.ones(1), np.array([40]), signs=signs)
    most = Sample(np.array([1.0, -1.0]), np.array([38, 2]), signs=signs)
    found = mean_difference(all_positive, most)
    own, other = bootstrap(all_positive, mean), bootstrap(most, mean)
    assert found.value == pytest.approx(0.1)
    below = math.hypot(1 - own.low, other.high - other.value)
    assert (found.low, found.high) == pytest.approx(
        (0.1 - below, 0.1 + math.hypot(own.high - 1, other.value - other.low))
    )
    assert found.low < 0 < found.high
    same = mean_difference(all_positive, all_positive)
    assert same.low < 0 == same.value < same.high
