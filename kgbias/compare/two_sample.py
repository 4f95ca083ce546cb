"""Two samples: do they differ, and by how much."""

import math
from dataclasses import dataclass

import numpy as np

from kgbias.errors import MissingExtra
from kgbias.statistics import DRAWS, Estimate, Values

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


def two_sample(first: Values, second: Values, *, draws: int = DRAWS, seed: int = 0) -> TwoSample:
    """Compare two samples by the two-sample Kolmogorov-Smirnov test (Smirnov 1939) and by
    Mann-Whitney's U (1947), both two-sided.

    The Kolmogorov-Smirnov p-value is exact up to 400 pairs, else the asymptotic one; on values with
    ties, such as the three classes of regard, it is conservative. Mann-Whitney's is exact up to 400
    pairs without ties, else the normal approximation, corrected for ties and continuity. Both
    assume that the values are drawn independently.
    """
    n = (len(first), len(second))
    nan = math.nan
    if 0 in n:
        means = (_mean(first), _mean(second))
        return TwoSample(n, means, Estimate.missing(sum(n)), nan, nan, nan, nan, nan)
    try:
        from scipy.stats import ks_2samp, mannwhitneyu
    except ModuleNotFoundError as error:
        raise MissingExtra("scipy", extra="stats") from error
    small = n[0] * n[1] <= _EXACT
    both = np.concatenate([first, second])
    tied = len(np.unique(both)) < len(both)
    ks = ks_2samp(first, second, method="exact" if small else "asymp")
    mw = mannwhitneyu(first, second, method="exact" if small and not tied else "asymptotic")
    # All values equal: no evidence of a difference, though the normal approximation is undefined.
    u_p = 1.0 if np.isnan(mw.pvalue) else float(mw.pvalue)
    u = float(mw.statistic)
    return TwoSample(
        n,
        (_mean(first), _mean(second)),
        mean_difference(first, second, draws=draws, seed=seed),
        float(ks.statistic),
        float(min(1.0, ks.pvalue)),
        u,
        u_p,
        2 * u / (n[0] * n[1]) - 1,
    )


def mean_difference(
    first: Values, second: Values, *, draws: int = DRAWS, level: float = 0.95, seed: int = 0
) -> Estimate:
    """Mean of the first minus mean of the second, with the percentile bootstrap interval of both
    resampled. The interval is NaN where either has fewer than two values."""
    n = len(first) + len(second)
    value = _mean(first) - _mean(second)
    if min(len(first), len(second)) < 2:
        return Estimate.missing(n, value)
    rng = np.random.Generator(np.random.PCG64(seed))
    replicates = resampled_means(first, draws, rng) - resampled_means(second, draws, rng)
    tail = (1 - level) / 2
    low, high = np.quantile(replicates, [tail, 1 - tail])
    return Estimate(value, float(low), float(high), n)


def resampled_means(values: Values, draws: int, rng: np.random.Generator) -> Values:
    """Means of resamples, [draws]. Drawing how often each distinct value occurs is equivalent to
    drawing the values, and much cheaper where they repeat; for more than 5,000 values that do not
    repeat, the means are drawn from the normal distribution that they then follow."""
    n = len(values)
    distinct, counts = np.unique(values, return_counts=True)
    if len(distinct) <= n / 4:
        drawn = rng.multinomial(n, counts / n, size=draws)
        return np.asarray(drawn @ distinct / n, dtype=np.float64)
    if n > _NORMAL:
        return np.asarray(rng.normal(values.mean(), values.std() / np.sqrt(n), size=draws))
    step = max(1, 4_000_000 // n)
    parts = [
        values[rng.integers(0, n, size=(min(step, draws - start), n))].mean(axis=1)
        for start in range(0, draws, step)
    ]
    return np.concatenate(parts)


def _mean(values: Values) -> float:
    return float(values.mean()) if len(values) else math.nan
