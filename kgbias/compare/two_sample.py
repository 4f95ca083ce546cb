"""Two samples: whether they differ, and by how much."""

import math
from dataclasses import dataclass

import numpy as np

from kgbias.stats.designs import percentile_interval
from kgbias.stats.inference import DEFAULT_DRAWS, Estimate, Sample, Values, resample_statistic, resample_means
from kgbias.stats.inference import mean as mean_of

_EXACT = 400  # n1 * n2; up to this, p-values are exact if the method allows
_THRESHOLDS = 100  # at which distribution functions are compared for their design effect


@dataclass(frozen=True, slots=True)
class TwoSample:
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


def two_sample(
    first: Values | Sample, second: Values | Sample, *, draws: int = DEFAULT_DRAWS, seed: int = 0
) -> TwoSample:
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
    n = (first.n, second.n)
    nan = math.nan
    if 0 in n:
        means = (first.mean, second.mean)
        return TwoSample(n, means, Estimate.missing(sum(n)), nan, nan, nan, nan, nan)
    ks, ks_p, u, u_p = _tests(first, second)
    if (effect := _design_effects(first, second)) is not None:
        ks, ks_p, u, u_p = _asymptotic_tests(first, second, *effect)
    return TwoSample(
        n,
        (first.mean, second.mean),
        mean_difference(first, second, draws=draws, seed=seed),
        ks,
        min(1.0, ks_p),
        u,
        u_p,
        2 * (u / n[0] / n[1]) - 1,
    )


def _tests(first: Sample, second: Sample) -> tuple[float, float, float, float]:
    """Kolmogorov-Smirnov's D and Mann-Whitney's U, each with its p-value."""
    from scipy.stats import ks_2samp, mannwhitneyu

    if first.n * second.n > _EXACT:
        return _asymptotic_tests(first, second)
    a, b = (np.repeat(s.values, s.counts) for s in (first, second))
    both = np.concatenate([a, b])
    tied = len(np.unique(both)) < len(both)
    ks = ks_2samp(a, b, method="exact")
    mw = mannwhitneyu(a, b, method="asymptotic" if tied else "exact")
    # All values equal: no evidence of a difference, though the normal approximation is undefined.
    u_p = 1.0 if np.isnan(mw.pvalue) else float(mw.pvalue)
    return float(ks.statistic), float(ks.pvalue), float(mw.statistic), u_p


def _design_effects(first: Sample, second: Sample) -> tuple[float, float] | None:
    """How much clusters raise the variance of the distance between two distribution functions (the
    mean over thresholds, each with its share of the values) and of U; None if the draws are
    independent, or this is not known."""
    sides = [s for s in (first, second) if s.design is not None and s.places is not None]
    if len(sides) < 2 or all(s.design is not None and s.design.independent for s in sides):
        return None
    values = np.concatenate([s.values for s in sides])
    counts = np.concatenate([s.counts for s in sides]).astype(np.float64)
    clusters, start = [], 0
    for s in sides:
        assert s.design is not None and s.places is not None
        clusters.append(s.design.clusters[s.places] + start)
        start += len(s.design.strata)
    _, cluster = np.unique(np.concatenate(clusters), return_inverse=True)
    distinct, place = np.unique(values, return_inverse=True)
    mass = np.bincount(place, counts)
    below = np.cumsum(mass) - mass / 2  # mid-ranks, less 1/2
    total = float(mass.sum())
    of_rank = np.bincount(cluster, counts * (below[place] - total / 2))
    alone = float(mass @ (below - total / 2) ** 2)
    thresholds = distinct
    if len(distinct) > _THRESHOLDS:
        at = np.searchsorted(np.cumsum(mass) / total, (np.arange(_THRESHOLDS) + 0.5) / _THRESHOLDS)
        thresholds = np.unique(distinct[np.minimum(at, len(distinct) - 1)])
    band = np.searchsorted(thresholds, values)  # values above the last threshold are in a band more
    size = len(thresholds) + 1
    held = np.bincount(cluster * size + band, counts, (int(cluster.max()) + 1) * size)
    at_most = np.cumsum(held.reshape(-1, size), axis=1)[:, :-1]
    share = at_most.sum(axis=0) / total
    sums = at_most - np.bincount(cluster, counts)[:, None] * share
    weight = np.diff(share, prepend=0.0)
    independent = float(weight @ (share * (1 - share))) * total
    together = float(weight @ (sums**2).sum(axis=0))
    return (
        max(1.0, together / independent) if independent > 0 else 1.0,
        max(1.0, float(of_rank @ of_rank) / alone) if alone > 0 else 1.0,
    )


def _asymptotic_tests(
    first: Sample, second: Sample, ks_effect: float = 1.0, u_effect: float = 1.0
) -> tuple[float, float, float, float]:
    """The same as scipy's asymptotic tests, from how often each distinct value occurs, so no count
    is too high. The effects raise the variances."""
    from scipy.special import ndtr
    from scipy.stats import kstwo

    values = np.unique(np.concatenate([first.values, second.values]))
    x, y = (
        np.bincount(np.searchsorted(values, s.values), s.counts.astype(float), len(values))
        for s in (first, second)
    )
    n, m = float(first.n), float(second.n)
    ks = float(np.abs(np.cumsum(x) / n - np.cumsum(y) / m).max())
    ks_p = float(kstwo.sf(ks, max(1, round(n * m / (n + m) / ks_effect))))
    ties = x + y
    u = float(x @ (np.cumsum(y) - y / 2))  # pairs in which the first is larger, ties half
    size = n + m
    spread = math.sqrt(n * m / 12) * math.sqrt(
        max(0.0, size + 1 - float((ties * (ties**2 - 1) / size / (size - 1)).sum()))
    )
    if not spread:
        return ks, ks_p, u, 1.0
    spread *= math.sqrt(u_effect)
    u_p = float(min(1.0, 2 * ndtr((0.5 - abs(u - n * m / 2)) / spread)))
    return ks, ks_p, u, u_p


def mean_difference(
    first: Values | Sample,
    second: Values | Sample,
    *,
    draws: int = DEFAULT_DRAWS,
    level: float = 0.95,
    seed: int = 0,
) -> Estimate:
    """Mean of the first minus mean of the second, with the percentile bootstrap interval of both
    resampled, by their designs if both have one. The interval is NaN if either has fewer than two
    values."""
    first, second = Sample.from_values(first), Sample.from_values(second)
    n = first.n + second.n
    value = first.mean - second.mean
    if min(first.n, second.n) < 2:
        return Estimate.missing(n, value)
    rng = np.random.Generator(np.random.PCG64(seed))
    if first.design is not None and second.design is not None:
        sides = [resample_statistic(s, mean_of, draws, rng) for s in (first, second)]
        replicates = sides[0].subtract(sides[1]).replicates(rng)
    else:
        replicates = resample_means(first, draws, rng) - resample_means(second, draws, rng)
    (low, high), (least, most) = first.range, second.range
    return Estimate(value, *percentile_interval(replicates, level), n).clip(low - most, high - least)
