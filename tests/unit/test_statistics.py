import itertools
import math

import numpy as np
import pytest

from kgbias.stats.inference import _how_often, bootstrap, mean, quantile, total


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
    low, high = exact_interval(values)
    assert estimate.value == pytest.approx(6.2)
    # 40,000 draws place the quantiles within a step of the discrete distribution.
    assert estimate.low == pytest.approx(low, abs=0.3)
    assert estimate.high == pytest.approx(high, abs=0.6)


def test_coverage_of_the_interval() -> None:
    """About 95% of the intervals hold the true mean (percentile intervals run a little narrow)."""
    rng = np.random.default_rng(0)
    hits = 0
    for _ in range(400):
        estimate = bootstrap(rng.normal(2, 1, size=50), mean, draws=400)
        hits += estimate.low <= 2 <= estimate.high
    assert 0.91 <= hits / 400 <= 0.975


def test_repeats_itself_and_chunks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.arange(100.0)
    first = bootstrap(values, quantile(0.5))
    assert bootstrap(values, quantile(0.5)) == first
    assert bootstrap(values, quantile(0.5), seed=1) != first
    monkeypatch.setattr("kgbias.stats.inference._CHUNK", 100 * 7)
    chunked = bootstrap(values, quantile(0.5))
    assert (chunked.low, chunked.high) == pytest.approx((first.low, first.high), abs=3)


@pytest.mark.parametrize("times", [1, 2, 3])
def test_draws_one_by_one_are_those_of_a_multinomial(times: int) -> None:
    """Either way of drawing: of k values that occur 1 to 2 x times - 1 times, n are drawn."""
    counts = np.array([1.0, times, 2 * times - 1])
    n, draws = 3 * times, 100_000
    often = _how_often(np.random.default_rng(0), counts, n, draws)
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
    assert (same.value, same.low, same.high) == (9.0, 9.0, 9.0)
