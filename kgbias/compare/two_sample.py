"""Two samples: do they differ, and by how much."""

import math
from dataclasses import dataclass

import numpy as np

from kgbias.errors import MissingExtra
from kgbias.statistics import DRAWS, Estimate, Sample, Values

_EXACT = 400  # n1 * n2; up to here p-values are exact where the method allows it
_NORMAL = 5000  # values; beyond, the mean of a resample is normal to many digits


@dataclass(frozen=True, slots=True)
class TwoSample:
    """Two samples compared. NaN throughout where either is empty.

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
    first: Values | Sample, second: Values | Sample, *, draws: int = DRAWS, seed: int = 0
) -> TwoSample:
    """Compare two samples by the two-sample Kolmogorov-Smirnov test (Smirnov 1939) and by
    Mann-Whitney's U (1947), both two-sided.

    The Kolmogorov-Smirnov p-value is exact up to 400 pairs, else the asymptotic one; on values with
    ties, such as the three classes of regard, it is conservative. Mann-Whitney's is exact up to 400
    pairs without ties, else the normal approximation, corrected for ties and continuity. Both
    assume that the values are drawn independently.
    """
    first, second = Sample.of(first), Sample.of(second)
    n = (first.n, second.n)
    nan = math.nan
    if 0 in n:
        means = (first.mean, second.mean)
        return TwoSample(n, means, Estimate.missing(sum(n)), nan, nan, nan, nan, nan)
    try:
        import scipy.stats  # noqa: F401
    except ModuleNotFoundError as error:
        raise MissingExtra("scipy", extra="stats") from error
    ks, ks_p, u, u_p = _tests(first, second)
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
    """Kolmogorov-Smirnov's D with its p-value, and Mann-Whitney's U with its."""
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


def _asymptotic_tests(first: Sample, second: Sample) -> tuple[float, float, float, float]:
    """The same as scipy's asymptotic ones, from how often each distinct value occurs: no count is
    too high for it."""
    from scipy.stats import kstwo, norm

    values = np.unique(np.concatenate([first.values, second.values]))
    x, y = (
        np.bincount(np.searchsorted(values, s.values), s.counts.astype(float), len(values))
        for s in (first, second)
    )
    n, m = float(first.n), float(second.n)
    ks = float(np.abs(np.cumsum(x) / n - np.cumsum(y) / m).max())
    ks_p = float(kstwo.sf(ks, round(n * m / (n + m))))
    ties = x + y
    u = float(x @ (np.cumsum(y) - y / 2))  # pairs in which the first is larger, ties half
    size = n + m
    spread = math.sqrt(n * m / 12) * math.sqrt(
        max(0.0, size + 1 - float((ties * (ties**2 - 1) / size / (size - 1)).sum()))
    )
    if not spread:
        return ks, ks_p, u, 1.0
    u_p = float(min(1.0, 2 * norm.sf((abs(u - n * m / 2) - 0.5) / spread)))
    return ks, ks_p, u, u_p


def mean_difference(
    first: Values | Sample,
    second: Values | Sample,
    *,
    draws: int = DRAWS,
    level: float = 0.95,
    seed: int = 0,
) -> Estimate:
    """Mean of the first minus mean of the second, with the percentile bootstrap interval of both
    resampled. The interval is NaN where either has fewer than two values."""
    first, second = Sample.of(first), Sample.of(second)
    n = first.n + second.n
    value = first.mean - second.mean
    if min(first.n, second.n) < 2:
        return Estimate.missing(n, value)
    rng = np.random.Generator(np.random.PCG64(seed))
    replicates = resampled_means(first, draws, rng) - resampled_means(second, draws, rng)
    tail = (1 - level) / 2
    low, high = np.quantile(replicates, [tail, 1 - tail])
    return Estimate(value, float(low), float(high), n)


def resampled_means(sample: Values | Sample, draws: int, rng: np.random.Generator) -> Values:
    """Means of resamples, [draws]. Drawing how often each distinct value occurs is equivalent to
    drawing the values, and much cheaper where they repeat; for more than 5,000 values that do not
    repeat, the means are drawn from the normal distribution that they then follow."""
    sample = Sample.of(sample)
    n = sample.n
    distinct, counts = sample.distinct()
    if n > _NORMAL and len(distinct) > min(n / 4, _NORMAL):
        mean = sample.mean
        spread = math.sqrt(float(counts @ (distinct - mean) ** 2) / n)
        return np.asarray(rng.normal(mean, spread / math.sqrt(n), size=draws))
    if len(distinct) <= n / 4:
        drawn = rng.multinomial(min(n, 1 << 53), counts / counts.sum(), size=draws)
        return np.asarray(drawn @ distinct / min(n, 1 << 53), dtype=np.float64)
    values = np.repeat(sample.values, sample.counts)
    step = max(1, 4_000_000 // n)
    parts = [
        values[rng.integers(0, n, size=(min(step, draws - start), n))].mean(axis=1)
        for start in range(0, draws, step)
    ]
    return np.concatenate(parts)
