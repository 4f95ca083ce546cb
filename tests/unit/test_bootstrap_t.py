"""Bootstrap-t intervals of the mean of a measure with bounds, against a list of all resamples, a
cluster-robust standard error, and draws whose mean is known."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from kgbias.measures import MEASURES
from kgbias.stats.designs import Design
from kgbias.stats.inference import (
    Sample,
    bootstrap,
    is_studentised,
    mean,
    quantile,
    resample_statistic,
    total,
)
from tests.simulation import Simulation

ONE = np.random.default_rng(0)


def sample(values: list[float], design: Design | None = None) -> Sample:
    n = len(values)
    places = None if design is None else np.arange(n)
    return Sample(np.array(values), np.ones(n, dtype=np.int64), design, places, (0.0, 1.0))


def test_it_is_the_interval_of_all_resamples_in_their_own_standard_errors() -> None:
    values = [0.01, 0.03, 0.02, 0.6, 0.11]
    listed = np.array(list(itertools.product(values, repeat=5)))
    errors = listed.std(axis=1, ddof=1) / 5**0.5
    own = np.std(values, ddof=1) / 5**0.5
    off = (listed.mean(axis=1) - np.mean(values)) / np.maximum(errors, 1e-6 * own)
    low, high = np.mean(values) - np.quantile(off, [0.95, 0.05]) * own
    resamples = resample_statistic(sample(values), mean, 200_000, ONE)
    assert resamples.interval(0.9, ONE) == pytest.approx((low, high), abs=0.005)
    repeated = replace(sample(values), counts=np.full(5, 4))
    said, twice = bootstrap(sample(values * 4), mean), bootstrap(repeated, mean)
    assert said.value == pytest.approx(np.mean(values)) and said.n == twice.n == 20
    assert (said.low, said.high) == pytest.approx((twice.low, twice.high))


def test_the_standard_error_is_the_cluster_robust_one() -> None:
    models = pytest.importorskip("statsmodels.regression.linear_model")
    rng = np.random.default_rng(1)
    clusters = np.sort(np.concatenate([np.arange(9), rng.integers(0, 9, 21)]))
    values = rng.beta(0.4, 2, 9)[clusters] / 2 + rng.beta(0.4, 2, 30) / 2
    design = Design(clusters, np.arange(9) // 4)
    found = resample_statistic(sample(values.tolist(), design), mean, 10, ONE).scale
    fitted = models.OLS(values, np.ones(30)).fit(cov_type="cluster", cov_kwds={"groups": clusters})
    assert found is not None and found.error == pytest.approx(fitted.bse[0])
    assert found.value == pytest.approx(values.mean())


@pytest.mark.parametrize("clustered", (False, True))
def test_skewed_means_are_held_as_often_as_promised(
    clustered: bool, simulation: Simulation
) -> None:
    """Of 20 values of Beta(0.15, 1.5), most near 0 and a few near 1, mean 1/11."""
    held = []
    design = Design(np.arange(40) // 2, np.arange(20) // 5) if clustered else None
    for rng in simulation.worlds(60):
        drawn = rng.beta(0.15, 1.5, 20).repeat(2 if clustered else 1)
        own = sample(drawn.tolist(), design)
        plain = replace(own, bounds=None)
        held.append(
            [
                e.low <= 1 / 11 <= e.high
                for e in (bootstrap(s, mean, draws=400) for s in (own, plain))
            ]
        )
    turned, percentile = np.sum(held, axis=0)
    simulation.check("held", turned, len(held), 0.92, 0.98)
    simulation.check("held by percentiles", percentile, len(held), 0.0, 0.89)


def test_too_little_is_known_to_say_much() -> None:
    # Twenty are not without rounding a twentieth each, and so small an error is no width.
    for alike in (0.2, 0.1):
        same = bootstrap(sample([alike] * 20), mean)
        assert not same.is_shown and (same.low, same.high) == pytest.approx((alike, alike))
    # Nineteen do not show how rare high values are.
    few = bootstrap(sample([0.1, 0.4] * 9 + [0.1]), mean)
    assert not few.has_interval and few.value == pytest.approx(4.6 / 19)
    assert bootstrap(sample([0.1, 0.4] * 10), mean).has_interval
    # A third of the resamples lack the one: the interval would hold all that is possible.
    assert not bootstrap(sample([0.0] * 19 + [0.9]), mean).has_interval


def test_nothing_else_is_held_within_bounds_or_measured_in_errors() -> None:
    own = sample([0.9, 0.8, 0.7, 0.95, 0.6])
    plain = replace(own, bounds=None)
    for statistic in (total, quantile(0.5)):
        assert not is_studentised(own, statistic)
        assert bootstrap(own, statistic) == bootstrap(plain, statistic)
    assert bootstrap(own, total).high > 1
    assert is_studentised(replace(own, counts=np.full(5, 1000)), mean)
    assert not is_studentised(replace(own, counts=np.full(5, 1001)), mean)
    bounded = {name for name, m in MEASURES.items() if m.bounds is not None}
    assert {"toxicity", "identity_attack", "acceptability"} <= bounded and "regard" not in bounded
