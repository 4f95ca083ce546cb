"""Paired and stratified tests against listings and other people's code."""

import itertools
import math

import numpy as np
import pytest

from kgbias.compare.families import detectable_difference
from kgbias.compare.paired import Drawn, equivalence_p, permutation_p, rank_probabilities
from kgbias.estimate import Estimate
from tests.conftest import needs

needs("scipy")


def side(values: list[float], strata: list[int] | None = None) -> Drawn:
    return Drawn(strata or list(range(len(values))), np.array(values), np.ones(len(values)))


def test_five_pairs_by_hand() -> None:
    """All five differences have one sign: 2 of the 32 ways reach their sum."""
    a, b = [1.0, 2, 3, 4, 5], [0.5, 1.0, 2.5, 3.0, 4.5]
    assert permutation_p(side(a), side(b)) == 2 / 32
    assert permutation_p(side(a), side(a)) == 1
    assert math.isnan(permutation_p(side(a), side(b, [7, 8, 9, 10, 11])))


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
    sides = [Drawn([h for h, f in zip(strata, first, strict=True) if f == w], sums[own == w],
                   counts[own == w]) for w in (True, False)]  # fmt: skip
    assert permutation_p(sides[0], sides[1]) == pytest.approx(exact, abs=0.012)


def test_pairs_agree_with_scipy() -> None:
    from scipy.stats import permutation_test

    rng = np.random.default_rng(1)
    a, b = rng.normal(0.25, 1, 40), rng.normal(0, 1, 40)
    other = permutation_test(
        (a, b), lambda x, y, axis: (x - y).mean(axis=axis), permutation_type="samples",
        vectorized=True, n_resamples=20_000, rng=np.random.default_rng(0),
    )  # fmt: skip
    assert permutation_p(side(list(a)), side(list(b))) == pytest.approx(other.pvalue, abs=0.012)
    twelve = permutation_test(
        (a[:12], b[:12]), lambda x, y, axis: (x - y).mean(axis=axis), permutation_type="samples",
        vectorized=True, n_resamples=np.inf,
    )  # fmt: skip
    exact = permutation_p(side(list(a[:12])), side(list(b[:12])))
    assert exact == pytest.approx(twelve.pvalue)


def test_equivalence_agrees_with_statsmodels() -> None:
    weightstats = pytest.importorskip("statsmodels.stats.weightstats")
    rng = np.random.default_rng(2)
    for shift in (0.0, 0.15, -0.4):
        a = rng.normal(0, 1, 30)
        b = a + rng.normal(shift, 0.5, 30)
        d = a - b
        theirs = weightstats.ttost_paired(a, b, -0.3, 0.3)[0]
        ours = equivalence_p(d.mean(), d.std(ddof=1) / math.sqrt(30), 0.3, 29)
        assert ours == pytest.approx(theirs)
    assert equivalence_p(0.1, 0, 0.3, 5) == 0 and equivalence_p(0.4, 0, 0.3, 5) == 1
    assert math.isnan(equivalence_p(math.nan, 0.1, 0.3, 5))


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


def test_false_positives_over_200_seeds_stay_at_the_level() -> None:
    """Two sides of one population whose clusters share half of their variance."""
    rng = np.random.default_rng(4)
    rejected = 0
    for seed in range(200):
        sums, counts = [], []
        for _ in range(2):
            sizes = rng.integers(1, 6, 24)
            sums.append(np.array([(rng.normal() + rng.normal(0, 1, n)).sum() for n in sizes]))
            counts.append(sizes.astype(float))
        strata = list(np.arange(24) // 8)
        p = permutation_p(
            Drawn(strata, sums[0], counts[0]), Drawn(strata, sums[1], counts[1]),
            permutations=399, seed=seed,
        )  # fmt: skip
        rejected += p <= 0.05
    assert rejected / 200 <= 0.05 + 2 * math.sqrt(0.05 * 0.95 / 200)
