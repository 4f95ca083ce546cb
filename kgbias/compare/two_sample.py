"""Two samples: whether they differ, and by how much."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from kgbias.stats.designs import percentile_interval
from kgbias.stats.inference import (
    DEFAULT_DRAWS,
    Estimate,
    Sample,
    Values,
    bootstrap,
    hybrid_interval,
    is_one_sided,
    resample_statistic,
)
from kgbias.stats.inference import mean as mean_of

_MAX_EXACT_PAIRS = 400  # n1 * n2; up to this, p-values are exact if the method allows
_MAX_THRESHOLDS = 100  # at which distribution functions are compared for their design effect


@dataclass(frozen=True, slots=True)
class TwoSampleTest:
    """Two samples compared. NaN throughout if either is empty.

    Attributes:
        n: the sizes of the first and the second sample.
        means: their means.
        difference: mean of the first minus mean of the second, with its bootstrap interval.
        ks: the Kolmogorov-Smirnov statistic D, the largest distance between the two empirical
            distribution functions, in [0, 1]; it is its own effect size.
        ks_p: its two-sided p-value.
        u: the Mann-Whitney U of the first sample: the number of pairs in which the first is larger,
            ties counted half; in [0, n1 n2].
        u_p: its two-sided p-value.
        delta: Cliff's delta, 2 U / (n1 n2) - 1 (the rank-biserial correlation), in [-1, 1]:
            P(first > second) - P(first < second). Above 0 the first tends to be larger.
    """

    n: tuple[int, int]
    means: tuple[float, float]
    difference: Estimate
    ks: float
    ks_p: float
    u: float
    u_p: float
    delta: float


def compare_samples(
    first: Values | Sample, second: Values | Sample, *, draws: int = DEFAULT_DRAWS, seed: int = 0
) -> TwoSampleTest:
    """Compare two samples by the two-sample Kolmogorov-Smirnov test (Smirnov 1939) and by
    Mann-Whitney's U (1947), both two-sided.

    The Kolmogorov-Smirnov p-value is exact up to 400 pairs and asymptotic beyond; on values with
    ties, such as the three classes of regard, it is conservative. Mann-Whitney's is exact up to 400
    pairs without ties, else the normal approximation, corrected for ties and continuity.

    Both treat values as independent draws. If both samples know which of their values are not
    (`Sample.design`), p-values are those of exchanging whole clusters between the samples: the
    variance of U is that over permutations of clusters (Rosner, Glynn and Lee 2003), and D is read
    at the sample size that has its variance, as in Rao and Scott's (1984) first-order correction of
    chi-squared. Neither variance is taken to be below that of independent draws.
    """
    first, second = Sample.from_values(first), Sample.from_values(second)
    sizes = (first.n, second.n)
    nan = math.nan
    if 0 in sizes:
        means = (first.mean, second.mean)
        return TwoSampleTest(sizes, means, Estimate.missing(sum(sizes)), nan, nan, nan, nan, nan)
    tests = _run_tests(first, second)
    if (effects := _design_effects(first, second)) is not None:
        tests = _asymptotic_tests(first, second, effects)
    return TwoSampleTest(
        sizes,
        (first.mean, second.mean),
        mean_difference(first, second, draws=draws, seed=seed),
        tests.ks_statistic,
        min(1.0, tests.ks_p_value),
        tests.u_statistic,
        tests.u_p_value,
        2 * (tests.u_statistic / sizes[0] / sizes[1]) - 1,
    )


class _RankTests(NamedTuple):
    """Kolmogorov-Smirnov's D and Mann-Whitney's U, each with its p-value."""

    ks_statistic: float
    ks_p_value: float
    u_statistic: float
    u_p_value: float


class _DesignEffects(NamedTuple):
    """How much clusters raise the variance of the distance between two distribution functions, and
    of U."""

    ks: float
    u: float


_NO_EFFECTS = _DesignEffects(1.0, 1.0)


def _run_tests(first: Sample, second: Sample) -> _RankTests:
    """The tests for independent draws: exact ones where there are few."""
    from scipy.stats import ks_2samp, mannwhitneyu

    if first.n * second.n > _MAX_EXACT_PAIRS:
        return _asymptotic_tests(first, second)
    first_values, second_values = (np.repeat(s.values, s.counts) for s in (first, second))
    all_values = np.concatenate([first_values, second_values])
    # The exact distribution of U is that of values without ties, also in scipy.
    has_ties = len(np.unique(all_values)) < len(all_values)
    ks_test = ks_2samp(first_values, second_values, method="exact")
    u_test = mannwhitneyu(first_values, second_values, method="asymptotic" if has_ties else "exact")
    # All values equal: no evidence of a difference, though the normal approximation is undefined.
    u_p = 1.0 if np.isnan(u_test.pvalue) else float(u_test.pvalue)
    return _RankTests(float(ks_test.statistic), float(ks_test.pvalue), float(u_test.statistic), u_p)


def _design_effects(first: Sample, second: Sample) -> _DesignEffects | None:
    """What clusters do; for D, the mean over thresholds, each with its share of the values. None if
    the draws are independent, or this is not known."""
    sides = [
        sample
        for sample in (first, second)
        if sample.design is not None and sample.places is not None
    ]
    if len(sides) < 2 or all(
        sample.design is not None and sample.design.independent for sample in sides
    ):
        return None
    values = np.concatenate([sample.values for sample in sides])
    counts = np.concatenate([sample.counts for sample in sides]).astype(np.float64)
    clusters, start = [], 0
    for sample in sides:
        assert sample.design is not None and sample.places is not None
        clusters.append(sample.design.clusters[sample.places] + start)
        start += len(sample.design.strata)
    _, cluster = np.unique(np.concatenate(clusters), return_inverse=True)
    distinct, place = np.unique(values, return_inverse=True)
    value_counts = np.bincount(place, counts)
    mid_ranks = np.cumsum(value_counts) - value_counts / 2  # mid-ranks, less 1/2
    total = float(value_counts.sum())
    cluster_ranks = np.bincount(cluster, counts * (mid_ranks[place] - total / 2))
    independent_u = float(value_counts @ (mid_ranks - total / 2) ** 2)
    thresholds = distinct
    # The distribution functions at a hundred quantiles: a table of every cluster at every value
    # would not fit into memory.
    if len(distinct) > _MAX_THRESHOLDS:
        cut_places = np.searchsorted(
            np.cumsum(value_counts) / total, (np.arange(_MAX_THRESHOLDS) + 0.5) / _MAX_THRESHOLDS
        )
        thresholds = np.unique(distinct[np.minimum(cut_places, len(distinct) - 1)])
    band = np.searchsorted(thresholds, values)  # values above the last threshold are in a band more
    size = len(thresholds) + 1
    cluster_bands = np.bincount(cluster * size + band, counts, (int(cluster.max()) + 1) * size)
    # The last band holds all values and has no variance.
    at_most = np.cumsum(cluster_bands.reshape(-1, size), axis=1)[:, :-1]
    share = at_most.sum(axis=0) / total
    sums = at_most - np.bincount(cluster, counts)[:, None] * share
    weight = np.diff(share, prepend=0.0)
    independent = float(weight @ (share * (1 - share))) * total
    clustered = float(weight @ (sums**2).sum(axis=0))
    clustered_u = float(cluster_ranks @ cluster_ranks)
    return _DesignEffects(
        max(1.0, clustered / independent) if independent > 0 else 1.0,
        max(1.0, clustered_u / independent_u) if independent_u > 0 else 1.0,
    )


def _asymptotic_tests(
    first: Sample, second: Sample, effects: _DesignEffects = _NO_EFFECTS
) -> _RankTests:
    """The same as scipy's asymptotic tests, from how often each distinct value occurs, so no count
    is too high. The effects raise the variances."""
    from scipy.special import ndtr
    from scipy.stats import kstwo

    values = np.unique(np.concatenate([first.values, second.values]))
    first_counts, second_counts = (
        np.bincount(np.searchsorted(values, s.values), s.counts.astype(float), len(values))
        for s in (first, second)
    )
    first_size, second_size = float(first.n), float(second.n)
    ks_statistic = float(
        np.abs(np.cumsum(first_counts) / first_size - np.cumsum(second_counts) / second_size).max()
    )
    effective_size = first_size * second_size / (first_size + second_size) / effects.ks
    ks_p = float(kstwo.sf(ks_statistic, max(1, round(effective_size))))
    ties = first_counts + second_counts
    # Pairs in which the first is larger, ties half.
    u_statistic = float(first_counts @ (np.cumsum(second_counts) - second_counts / 2))
    size = first_size + second_size
    spread = math.sqrt(first_size * second_size / 12) * math.sqrt(
        max(0.0, size + 1 - float((ties * (ties**2 - 1) / size / (size - 1)).sum()))
    )
    if not spread:
        return _RankTests(ks_statistic, ks_p, u_statistic, 1.0)
    spread *= math.sqrt(effects.u)
    u_p = float(
        # 0.5 is the correction for continuity.
        min(1.0, 2 * ndtr((0.5 - abs(u_statistic - first_size * second_size / 2)) / spread))
    )
    return _RankTests(ks_statistic, ks_p, u_statistic, u_p)


def mean_difference(
    first: Values | Sample,
    second: Values | Sample,
    *,
    draws: int = DEFAULT_DRAWS,
    level: float = 0.95,
    seed: int = 0,
) -> Estimate:
    """Mean of the first minus mean of the second. If both have a design, its interval is the
    percentile interval of both resampled by it. Otherwise, and where nearly all labels of a side
    are the same, it is made of the intervals of both means (`hybrid_interval`). NaN if either has
    fewer than two values."""
    first, second = Sample.from_values(first), Sample.from_values(second)
    size = first.n + second.n
    value = first.mean - second.mean
    if min(first.n, second.n) < 2:
        return Estimate.missing(size, value)
    are_designed = first.design is not None and second.design is not None
    if not are_designed or is_one_sided(first) or is_one_sided(second):
        own, other = (
            bootstrap(s, mean_of, draws=draws, level=level, seed=seed) for s in (first, second)
        )
        return Estimate(value, *hybrid_interval(own, other), size)
    rng = np.random.Generator(np.random.PCG64(seed))
    sides = [resample_statistic(s, mean_of, draws, rng) for s in (first, second)]
    replicates = sides[0].subtract(sides[1]).replicates(rng)
    (low, high), (second_min, second_max) = first.range, second.range
    return Estimate(value, *percentile_interval(replicates, level), size).clip(
        low - second_max, high - second_min
    )
