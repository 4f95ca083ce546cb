"""Paired and stratified tests against listings and other people's code."""

import itertools
import math

import numpy as np
import pytest

from kgbias.compare.families import detectable_difference
from kgbias.compare.paired_tests import (
    ClusterSample,
    _critical_value,
    equivalence_p_value,
    permutation_detectable,
    permutation_p_value,
    rank_probabilities,
)
from kgbias.stats.estimate import Estimate
from tests.conftest import require_modules
from tests.simulation import Simulation

require_modules("scipy")


def side(values: list[float], strata: list[int] | None = None) -> ClusterSample:
    return ClusterSample(strata or list(range(len(values))), np.array(values), np.ones(len(values)))


def test_five_pairs_by_hand() -> None:
    """All five differences have one sign: 2 of the 32 ways reach their sum."""
    a, b = [1.0, 2, 3, 4, 5], [0.5, 1.0, 2.5, 3.0, 4.5]
    assert permutation_p_value(side(a), side(b)) == 2 / 32
    assert permutation_p_value(side(a), side(a)) == 1
    assert math.isnan(permutation_p_value(side(a), side(b, [7, 8, 9, 10, 11])))


def test_clusters_of_a_stratum_by_listing() -> None:
    """Two strata of three and four clusters of unlike size, two of the first side in each."""
    rng = np.random.default_rng(0)
    strata, first = [0, 0, 0, 1, 1, 1, 1], [True, True, False, True, True, False, False]
    counts = np.array([1.0, 3, 2, 1, 1, 2, 4])
    sums = rng.normal(0.3, 1, 7) * counts
    e = sums.copy()
    for h in (0, 1):
        own = np.array(strata) == h
        e[own] -= counts[own] * sums[own].sum() / counts[own].sum()
    observed = abs(e[first].sum())
    found = [
        abs(e[list(a)].sum() + e[[3 + n for n in b]].sum())
        for a in itertools.combinations(range(3), 2)
        for b in itertools.combinations(range(4), 2)
    ]
    exact = np.mean([f >= observed - 1e-12 for f in found])
    own = np.array(first)
    sides = [
        ClusterSample(
            [h for h, f in zip(strata, first, strict=True) if f == w],
            sums[own == w],
            counts[own == w],
        )
        for w in (True, False)
    ]
    assert permutation_p_value(sides[0], sides[1]) == pytest.approx(exact, abs=0.012)


def test_pairs_agree_with_scipy() -> None:
    from scipy.stats import permutation_test

    rng = np.random.default_rng(1)
    a, b = rng.normal(0.25, 1, 40), rng.normal(0, 1, 40)
    other = permutation_test(
        (a, b),
        lambda x, y, axis: (x - y).mean(axis=axis),
        permutation_type="samples",
        vectorized=True,
        n_resamples=20_000,
        rng=np.random.default_rng(0),
    )
    assert permutation_p_value(side(list(a)), side(list(b))) == pytest.approx(
        other.pvalue, abs=0.012
    )
    twelve = permutation_test(
        (a[:12], b[:12]),
        lambda x, y, axis: (x - y).mean(axis=axis),
        permutation_type="samples",
        vectorized=True,
        n_resamples=np.inf,
    )
    exact = permutation_p_value(side(list(a[:12])), side(list(b[:12])))
    assert exact == pytest.approx(twelve.pvalue)


def test_the_tails_of_the_permutation_distribution_by_listing() -> None:
    """Against all 252 ways of dealing 10 clusters, even or skewed, to two sides, and all signs of
    12 pairs; a stratum of one pair has but one size."""
    rng = np.random.default_rng(3)
    for e in (rng.normal(0, 1, 10), rng.exponential(1, 10)):
        e -= e.mean()
        listed = np.array([abs(e[list(own)].sum()) for own in itertools.combinations(range(10), 5)])
        found = _critical_value([(e, 5)], 0.1) * math.sqrt((listed**2).mean())
        assert (listed >= found).mean() == pytest.approx(0.1, abs=0.035)
    d = rng.normal(0, 1, 12)
    signs = np.array(list(itertools.product((1.0, -1.0), repeat=12)))
    found = _critical_value([(np.array([x, -x]) / 2, 1) for x in d], 0.05) * math.sqrt(
        (d**2).sum() / 4
    )
    assert (np.abs(signs @ d / 2) >= found).mean() == pytest.approx(0.05, abs=0.006)
    two = np.array([1.0, -1.0])
    assert _critical_value([(two, 1)], 0.05) == pytest.approx(1, abs=0.01)


def test_what_is_detectable_is_found_so_often() -> None:
    """Where the test is all but a t-test: its power by the noncentral t, over what is stated of 30
    samples."""
    from scipy.stats import nct, t

    rng, n, level = np.random.default_rng(4), 20, 0.02
    critical, powers = t.isf(level / 2, 2 * n - 2), []
    for seed in range(30):
        sides = [ClusterSample([0] * n, rng.normal(0, 1, n), np.ones(n)) for _ in range(2)]
        stated = permutation_detectable(sides[0], sides[1], level=level, seed=seed)
        away = stated * math.sqrt(n / 2)
        powers.append(nct.sf(critical, 2 * n - 2, away) + nct.cdf(-critical, 2 * n - 2, away))
    assert np.mean(powers) == pytest.approx(0.8, abs=0.03)
    again = permutation_detectable(sides[0], sides[1], level=level, seed=seed)
    assert again == stated < permutation_detectable(sides[0], sides[1], level=0.002, seed=seed)
    assert stated < permutation_detectable(sides[0], sides[1], level=level, power=0.95, seed=seed)


def test_clusters_and_scale_move_what_is_detectable() -> None:
    rng = np.random.default_rng(5)
    values = rng.normal(0, 1, (2, 24))
    alone = [ClusterSample([0] * 24, v, np.ones(24)) for v in values]
    repeated = [ClusterSample([0] * 24, 3 * v, np.full(24, 3.0)) for v in values]
    one, three = (permutation_detectable(a, b, level=0.05) for a, b in (alone, repeated))
    assert one == pytest.approx(
        three, rel=1e-6
    )  # three alike answers of a prompt say what one does
    wide = [ClusterSample([0] * 24, 10 * v + 5, np.ones(24)) for v in values]
    assert permutation_detectable(wide[0], wide[1], level=0.05) == pytest.approx(10 * one, rel=1e-6)


def test_what_no_test_can_find_is_not_known() -> None:
    five = side([1.0, 2, 3, 4, 5]), side([0.0, 1, 3, 2, 5])
    assert math.isnan(
        permutation_detectable(*five, level=0.05)
    )  # the lowest p of five pairs is 2 / 32
    assert math.isfinite(permutation_detectable(*five, level=0.0626))
    assert math.isnan(permutation_detectable(five[0], side([1.0], [9]), level=0.05))
    # Values that do not vary, in sums that rounding tells apart.
    for value in (1.0, 0.1):
        sums, sizes = np.array([value * 3, value + value + value] * 5), np.full(10, 3.0)
        same = ClusterSample([0] * 10, sums, sizes)
        assert math.isnan(permutation_detectable(same, same, level=0.05))
    many = [ClusterSample([0] * 30, np.arange(30.0), np.ones(30)) for _ in range(2)]
    assert math.isnan(permutation_detectable(many[0], many[1], level=1e-5))  # below one in 20,000


def test_equivalence_agrees_with_statsmodels() -> None:
    weightstats = pytest.importorskip("statsmodels.stats.weightstats")
    rng = np.random.default_rng(2)
    for shift in (0.0, 0.15, -0.4):
        a = rng.normal(0, 1, 30)
        b = a + rng.normal(shift, 0.5, 30)
        d = a - b
        theirs = weightstats.ttost_paired(a, b, -0.3, 0.3)[0]
        ours = equivalence_p_value(d.mean(), d.std(ddof=1) / math.sqrt(30), 0.3, 29)
        assert ours == pytest.approx(theirs)
    assert equivalence_p_value(0.1, 0, 0.3, 5) == 0 and equivalence_p_value(0.4, 0, 0.3, 5) == 1
    assert math.isnan(equivalence_p_value(math.nan, 0.1, 0.3, 5))


def test_the_detectable_difference_agrees_with_statsmodels() -> None:
    power = pytest.importorskip("statsmodels.stats.power")
    n, comparisons = 400, 6
    theirs = power.NormalIndPower(ddof=0).solve_power(
        nobs1=n, ratio=0, alpha=0.05 / comparisons, power=0.8, alternative="two-sided"
    )
    half = 1.959964 / math.sqrt(n)  # of the 95% interval of a mean of variance 1
    ours = detectable_difference(Estimate(0.1, 0.1 - half, 0.1 + half, n), comparisons)
    assert ours == pytest.approx(theirs, rel=1e-4)
    assert math.isnan(detectable_difference(Estimate.missing(1, 0.1), 2))


def test_ranks_and_their_probabilities() -> None:
    found = rank_probabilities(
        {
            "a": np.array([3.0, 3, 1, 2]),
            "b": np.array([2.0, 4, 2, 2]),
            "c": np.array([1.0, 1, 3, 0]),
        }
    )
    assert found["a"] == [1 / 4 + 1 / 8, 1 / 4 + 1 / 8, 1 / 4]
    assert found["b"] == [1 / 4 + 1 / 8, 1 / 4 + 1 / 4 + 1 / 8, 0]
    assert found["c"] == [1 / 4, 0, 3 / 4]
    assert sum(map(sum, found.values())) == 3


def test_false_positives_stay_at_the_level(simulation: Simulation) -> None:
    """Two sides of one population whose clusters share half of their variance."""
    rejected = []
    for seed, rng in enumerate(simulation.worlds(50)):
        sums, counts = [], []
        for _ in range(2):
            sizes = rng.integers(1, 6, 24)
            sums.append(np.array([(rng.normal() + rng.normal(0, 1, n)).sum() for n in sizes]))
            counts.append(sizes.astype(float))
        strata = list(np.arange(24) // 8)
        p = permutation_p_value(
            ClusterSample(strata, sums[0], counts[0]),
            ClusterSample(strata, sums[1], counts[1]),
            permutations=399,
            seed=seed,
        )
        rejected.append(p <= 0.05)
    simulation.check("rejected", sum(rejected), len(rejected), 0.0, 0.05)
