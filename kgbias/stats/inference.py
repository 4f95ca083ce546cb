"""Uncertainty for every part of kgbias: bootstrap intervals, rank correlation, and corrections for
families of tests.

Intervals are percentile intervals, except that the mean of a measure with bounds gets a bootstrap-t
interval: values that pile up at a bound are skewed, and percentile intervals of their mean are too
short (docs/methods/how-well.md). A sample that knows how it was drawn (`kgbias.stats.designs`) is
resampled as it was drawn; for any other, the observations are drawn with replacement (a triple seen
three times counts three times).
"""

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kgbias.stats.designs import (
    NORMAL_95,
    Design,
    Places,
    Resamples,
    StudentScale,
    percentile_interval,
    resample,
)
from kgbias.stats.estimate import Estimate as Estimate
from kgbias.stats.estimate import Interval

Values = NDArray[np.float64]

_MAX_LISTED_VALUES = 100_000  # observations of a sample that may be listed one by one
MAX_FLOAT_INTEGER = 1 << 53  # the most that a multinomial can draw and a float counts exactly


class ValueCounts(NamedTuple):
    """Distinct values in order, and how often each occurs (as floats), [n]."""

    values: Values
    counts: Values


@dataclass(frozen=True, slots=True)
class Sample:
    """Values and how often each occurs: the content of a list with repeats, in the memory of its
    distinct rows.

    Attributes:
        values: [k], in any order, repeats allowed.
        counts: [k], whole numbers from 1 to 2**53.
        design: how it was drawn; None if that is not known, and each observation is taken as an
            independent draw.
        places: [k], the place in the design where each value was drawn.
        bounds: the least and greatest value of a measure that is not of classes; None if it is, or
            has no bounds.
        signs: the least and greatest sign of the labels of a measure of classes; None for others.
    """

    values: Values
    counts: NDArray[np.int64]
    design: Design | None = None
    places: Places | None = None
    bounds: tuple[float, float] | None = None
    signs: tuple[float, float] | None = None

    @classmethod
    def from_values(cls, values: "Sample | Values") -> "Sample":
        """A sample as it is, or values that each occur once."""
        if isinstance(values, Sample):
            return values
        values = np.asarray(values, dtype=np.float64)
        return cls(values, np.ones(len(values), dtype=np.int64))

    @classmethod
    def join(cls, samples: Sequence["Sample"]) -> "Sample":
        """Several samples of one measure as one; their designs too, if all have one."""
        values = np.concatenate([s.values for s in samples])
        counts = np.concatenate([s.counts for s in samples])
        designs = [s.design for s in samples if s.design is not None]
        bounds, signs = samples[0].bounds, samples[0].signs
        if len(designs) < len(samples):
            return cls(values, counts, bounds=bounds, signs=signs)
        starts = np.cumsum([0, *(len(d.clusters) for d in designs)])
        places = [
            s.places + n for s, n in zip(samples, starts, strict=False) if s.places is not None
        ]
        return cls(values, counts, Design.join(designs), np.concatenate(places), bounds, signs)

    def without(self, part: "Sample") -> "Sample":
        """The sample without one of its parts. Taking out many parts in turn is much faster from a
        `collapse` sample."""
        whole = self.collapse()
        remaining = whole.counts.copy()
        # A part may list a value several times, which `-=` would take off only once.
        np.subtract.at(remaining, np.searchsorted(whole.values, part.values), part.counts)
        return Sample(
            whole.values[remaining > 0],
            remaining[remaining > 0],
            bounds=self.bounds,
            signs=self.signs,
        )

    def collapse(self) -> "Sample":
        """The same sample with each distinct value once, in order."""
        if (self.values[1:] > self.values[:-1]).all():
            return self
        values, places = np.unique(self.values, return_inverse=True)
        counts = np.zeros(len(values), dtype=np.int64)
        np.add.at(counts, places, self.counts)
        return Sample(values, counts, bounds=self.bounds, signs=self.signs)

    @property
    def n(self) -> int:
        """The number of observations."""
        # A sum in int64 could overflow: counts of an import may be as large as 2**53 each.
        float_count = float(self.counts.sum(dtype=np.float64))
        return int(float_count) if float_count < MAX_FLOAT_INTEGER else sum(map(int, self.counts))

    @property
    def range(self) -> tuple[float, float]:
        """The bounds of the measure or, if it has none, the least and greatest value: no mean or
        quantile lies outside."""
        return self.bounds or (float(self.values.min()), float(self.values.max()))

    @property
    def known_bounds(self) -> tuple[float, float] | None:
        """The bounds of a mean, from those of the measure; None if it has none."""
        return self.bounds or self.signs

    @property
    def labels(self) -> Values:
        """The signs of the labels that a sample of labels can have."""
        # Labels that nobody was given have their share of the prior too.
        lowest, highest = self.known_bounds or (min(0.0, float(self.values.min())), 1.0)
        return np.arange(lowest, highest + 1)

    @property
    def mean(self) -> float:
        """The mean of the observations; NaN without any."""
        if not len(self.values):
            return math.nan
        # Relative counts, whose products with values cannot overflow; and a mean of equal values
        # may round to just beside them.
        weights = self.counts / self.counts.max()
        average = float(self.values @ weights / weights.sum())
        return min(max(average, float(self.values.min())), float(self.values.max()))

    def expand(self) -> Values | None:
        """The observations one by one, [n]; None if there are more than 100,000 and most of them
        are repeats."""
        if self.n > max(_MAX_LISTED_VALUES, 2 * len(self.values)):
            return None
        return np.repeat(self.values, self.counts)

    def distinct_values(self) -> "ValueCounts":
        """The distinct values in order, and how often each occurs."""
        values, places = np.unique(self.values, return_inverse=True)
        counts = np.bincount(places, self.counts.astype(np.float64), len(values))
        return ValueCounts(values, counts.astype(np.float64))

    def outline(self) -> Values:
        """Values with the same distribution, for drawing: the observations or, if there are too
        many to list, a thousand that divide them evenly."""
        observations = self.expand()
        if observations is not None:
            return observations
        values, counts = self.distinct_values()
        ends = np.cumsum(counts) / counts.sum()
        # The last of the summed shares may round to just below 1, and the place then lies past the
        # end.
        places = np.searchsorted(ends, (np.arange(1000) + 0.5) / 1000)
        return np.asarray(values[np.minimum(places, len(values) - 1)], dtype=np.float64)


def join_recrawls(samples: Sequence[Sample]) -> Sample:
    """Several samples drawn in the same way, one in each recrawl, as one: like `Sample.join`,
    with the recrawls as a level of the design."""
    pooled = Sample.join(samples)
    if pooled.design is None:
        return pooled
    sizes = [len(s.design.clusters) for s in samples if s.design is not None]
    crawls = np.repeat(np.arange(len(samples)), sizes)
    levels = {"recrawls": crawls, **pooled.design.levels}
    return replace(pooled, design=replace(pooled.design, levels=levels))


DEFAULT_DRAWS = 2000
_MAX_CHUNK_VALUES = 4_000_000  # resampled values in memory at once
_MAX_AVERAGE_COUNT = 2  # mean repeats of a value up to which draws are made one by one
_MIN_NORMAL_VALUES = 5000  # values; beyond this, the mean of a resample is normal to many digits
_MAX_DISTINCT_VALUES = 200  # distinct values; up to this many, drawing by counts is fast enough
MIN_BOUNDED_VALUES = 20
"""The fewest observations for the interval of a mean of a measure with bounds: fewer do not show
how rare high values are."""
_MAX_SKEWED_VALUES = 5_000  # observations; beyond this, a mean has no skew to speak of


@dataclass(frozen=True, slots=True)
class Statistic:
    """A statistic of values [..., n], along the last axis; `from_counts` is the same for distinct
    values [k], in order, that occur `counts` [..., k] times."""

    from_values: Callable[[Values], Values]
    from_counts: Callable[[Values, Values], Values]
    is_sum: bool = False
    """Whether it grows with the number of values."""
    is_mean: bool = False
    """Whether it is the mean."""
    min_count: int = 0
    """The fewest observations for an interval."""

    def __call__(self, rows: Values) -> Values:
        return self.from_values(rows)


def bootstrap(
    values: Values | Sample,
    statistic: Callable[[Values], Values] | Statistic,
    *,
    draws: int = DEFAULT_DRAWS,
    level: float = 0.95,
    seed: int = 0,
) -> Estimate:
    """The interval of a statistic, in the way that suits the sample: as a rule of the bootstrap
    (Efron 1979), a percentile interval or, for the mean of a sample with bounds, a bootstrap-t
    within them; for counts Wilson's, for labels of which nearly all are the same, Jeffreys'.

    `values` has shape [n]; `statistic` maps an array of shape [draws, n] to shape [draws], working
    along the last axis. The same values, draws and seed give the same interval.

    A `Sample` of very many observations is resampled by how often each distinct value is drawn,
    which has the same distribution and needs a `Statistic`; so does one with a design, whose
    clusters are resampled (`kgbias.stats.designs.draw_mean_effects`).

    A count (`total` of values that are all 0 or 1) gets Wilson's interval instead, for as many
    independent observations as have its variance over the resamples: percentiles of a few cases
    end at few cases, and those of none at 0. A sum of labels' signs is no count, though none be
    negative: it has the interval of their mean, times their number.
    """
    sample = Sample.from_values(values)
    if statistic is total and sample.signs is not None and is_one_sided(sample):
        of_mean = _jeffreys_label_mean(sample, mean, draws, level, seed)
        value, n = float(sample.counts @ sample.values), sample.n
        return Estimate(value, min(n * of_mean.low, value), max(n * of_mean.high, value), n)
    if statistic is total and len(sample.values) and set(sample.values) <= {0.0, 1.0}:
        return _wilson_count(sample, draws, level, seed)
    if isinstance(statistic, Statistic) and statistic.is_mean and is_one_sided(sample):
        return _jeffreys_label_mean(sample, statistic, draws, level, seed)
    if isinstance(statistic, Statistic):
        fewest = MIN_BOUNDED_VALUES if is_studentised(sample, statistic) else statistic.min_count
        if 0 < sample.n < fewest:
            values, counts = sample.distinct_values()
            return Estimate.missing(sample.n, float(statistic.from_counts(values, counts)))
    plain = sample.design is None and not is_studentised(sample, statistic)
    observations = sample.expand() if plain else None
    if observations is None:
        if not isinstance(statistic, Statistic):
            raise TypeError("a sample with a design, or of counts, needs a Statistic")
        return _bootstrap_sample(sample, statistic, draws, level, seed)
    values = observations
    n = len(values)
    if n == 0:
        return Estimate.missing()
    value = float(statistic(values[None, :])[0])
    if n == 1:
        return Estimate.missing(1, value)
    rng = np.random.Generator(np.random.PCG64(seed))
    step = max(1, _MAX_CHUNK_VALUES // n)
    replicates = [
        statistic(values[rng.integers(0, n, size=(min(step, draws - start), n))])
        for start in range(0, draws, step)
    ]
    tail = (1 - level) / 2
    low, high = np.quantile(np.concatenate(replicates), [tail, 1 - tail])
    widening = few_units_widening(n) if _is_mean(statistic) else 1.0
    ends = value - (value - float(low)) * widening, value + (float(high) - value) * widening
    return _clip_to_possible(sample, statistic, Estimate(value, *ends, n))


def _is_mean(statistic: Callable[..., Values] | Statistic) -> bool:
    return isinstance(statistic, Statistic) and statistic.is_mean


def student_widening(freedom: float) -> float:
    """By how much a normal distribution's interval must be moved out to be Student's; by nothing
    beyond `MAX_WIDENED_UNITS` degrees of freedom."""
    if freedom > MAX_WIDENED_UNITS:
        return 1.0
    return student_quantile(0.975, max(1.0, freedom)) / NORMAL_95


MAX_WIDENED_UNITS = 50
"""Units up to which an interval is widened; for more, it would be by less than 4%."""


def few_units_widening(units: int) -> float:
    """By how much percentiles of resamples of few units must be moved out: resamples vary too
    little, and their percentiles are those of a normal distribution where few units need Student's
    (Hesterberg 2015, What Teachers Should Know About the Bootstrap, section 5.3)."""
    if not 1 < units <= MAX_WIDENED_UNITS:
        return 1.0
    return student_quantile(0.975, units - 1) * math.sqrt(units / (units - 1)) / NORMAL_95


def _wilson_count(sample: Sample, draws: int, level: float, seed: int) -> Estimate:
    """The number of observations that are 1, with Wilson's interval at the effective sample size
    (Korn and Graubard 1998; Dean and Pagano 2015)."""
    count = float(sample.counts @ sample.values)
    design = sample.design
    if design is None or sample.places is None:
        found_share = proportion(count, sample.n, level)
        return Estimate(count, found_share.low * sample.n, found_share.high * sample.n, sample.n)
    # A place may yield nothing that counts, which varies too: the share is one of places.
    places = max(len(design.clusters), sample.n)
    clusters, strata = len(design.strata), len(design.resampling_strata())
    if clusters < 2:
        return Estimate.missing(sample.n, count)
    rng = np.random.Generator(np.random.PCG64(seed))
    variance = resample_statistic(sample, total, draws, rng).variance(rng) / places**2
    share = count / places
    variance = max(variance, share * (1 - share) / places)  # never less than of independent places
    low, high = share_interval(share, variance, clusters, max(1, clusters - strata), level)
    return Estimate(count, low * places, high * places, sample.n)


# Observations without the commonest label; from this many, resamples show how many there are.
_MIN_OTHER_LABELS = 20


def is_one_sided(sample: Sample) -> bool:
    """Whether nearly all observations have one label of -1, 0 and 1 (or of 0 and 1)."""
    if not len(sample.values) or not np.isin(sample.values, (-1.0, 0.0, 1.0)).all():
        return False
    counts = sample.collapse().counts
    return int(counts.sum() - counts.max()) < _MIN_OTHER_LABELS


def _jeffreys_label_mean(
    sample: Sample, statistic: Statistic, draws: int, level: float, seed: int
) -> Estimate:
    """The mean of labels' signs. Where most have the same label, a sample may show nothing of the
    others, so the interval holds 95% of the means of the shares of labels that Jeffreys' prior
    (1946), half an observation of each label, makes of as many independent observations as vary as
    much as the sample does by its design."""
    n, mean = sample.n, sample.mean
    clusters = n if sample.design is None else len(sample.design.strata)
    if clusters < 2:
        return Estimate.missing(n, mean)
    rng = np.random.Generator(np.random.PCG64(seed))
    labels = sample.labels
    shares = np.array([sample.counts[sample.values == label].sum() for label in labels]) / n
    variance = None
    if sample.design is not None:
        variance = resample_statistic(sample, statistic, draws, rng).variance(rng)
    low, high = jeffreys_label_mean_interval(labels, shares, n, clusters, variance, level, rng)
    if len(set(sample.values)) == 1 and labels[0] < mean < labels[-1]:
        # The prior's labels on both sides cancel, but what was not seen may be on one of them.
        unseen = wilson_interval(0.0, min(n, clusters), NormalDist().inv_cdf((1 + level) / 2)).high
        low, high = min(low, mean - unseen), max(high, mean + unseen)
    # Where all labels are the same, the prior draws both ends away from the mean.
    return Estimate(mean, min(low, mean), max(high, mean), n)


def hybrid_interval(first: Estimate, second: Estimate) -> Interval:
    """The ends of the interval of the difference of two independent figures from theirs: the square
    root of the sum of squares of how far each end is (Newcombe 1998, method 10; Zou and Donner
    2008)."""
    value = first.value - second.value
    below = math.hypot(first.value - first.low, second.high - second.value)
    above = math.hypot(first.high - first.value, second.value - second.low)
    return Interval(value - below, value + above)


def jeffreys_label_mean_interval(
    labels: Values,
    shares: Values,
    n: int,
    clusters: int,
    variance: float | None,
    level: float,
    rng: np.random.Generator,
) -> Interval:
    """The interval of the mean of labels from their shares among n observations of so many
    clusters, by Jeffreys' prior and the sample size that has the `variance` of the mean (None:
    the observations are independent)."""
    size = float(n)
    if variance is not None:
        label_variance = float(shares @ labels**2 - (shares @ labels) ** 2)
        if label_variance <= 0:
            # All have one label: nothing shows how alike a cluster is, so each counts as one.
            size = min(size, float(clusters))
        elif variance:
            size = min(size, label_variance / variance)
    drawn = rng.gamma(shares * size + _JEFFREYS_PRIOR, size=(_SHARE_DRAWS, len(labels)))
    return percentile_interval(drawn @ labels / drawn.sum(axis=1), level)


_JEFFREYS_PRIOR = 0.5
_SHARE_DRAWS = 5_000


def clustered_proportion(
    clusters: Sequence[Hashable], values: Sequence[float] | Values, level: float = 0.95
) -> Estimate:
    """The mean of values from 0 to 1, such as the share of those that are 1, over clusters that are
    each drawn with all their values. No interval for fewer than three clusters.

    For values of 0 and 1, the interval holds 95% of the shares that a prior makes of the clusters'
    counts, which are taken to be beta-binomial: any share and, as few clusters hardly tell how
    alike the values within them are, any intraclass correlation, with the density 2 (1 - rho). With
    one value in each cluster it is Wilson's; for other values, Wilson's at the effective sample
    size of the clusters.
    """
    places = {cluster: place for place, cluster in enumerate(dict.fromkeys(clusters))}
    observed, n = np.asarray(values, dtype=np.float64), len(values)
    if not n:
        return Estimate.missing()
    share, k = float(observed.mean()), len(places)
    if k < MIN_CLUSTERS:
        return Estimate.missing(n, share)
    cluster_places = [places[cluster] for cluster in clusters]
    if np.isin(observed, (0.0, 1.0)).all():
        if k == n:
            return proportion(share * n, n, level)
        successes = np.bincount(cluster_places, observed).astype(np.float64)
        sizes = np.bincount(cluster_places).astype(np.float64)
        low, high = beta_binomial_interval(successes, sizes, level)
        return Estimate(share, min(low, share), max(high, share), n)
    variance = _clustered_variance(cluster_places, observed)
    return Estimate(share, *share_interval(share, variance, k, k - 1, level), n)


_GRID_SHARES, _GRID_CORRELATIONS = 120, 10  # points of the prior


def beta_binomial_interval(successes: Values, sizes: Values, level: float = 0.95) -> Interval:
    """The central interval of the share p from the successes [k] among the `sizes` [k] of clusters.
    With s = (1 - rho) / rho, a cluster has the likelihood B(p s + x, (1 - p) s + n - x) /
    B(p s, (1 - p) s)."""
    from scipy.special import gammaln

    # In the middle of the grid's cells: at 0 and 1 the functions B are not defined.
    shares = (np.arange(_GRID_SHARES) + 0.5) / _GRID_SHARES
    levels = (np.arange(_GRID_CORRELATIONS) + 0.5) / _GRID_CORRELATIONS
    # The density 2 (1 - rho) has the distribution 1 - (1 - rho)^2, solved here for rho.
    correlations = 1 - np.sqrt(1 - levels)  # equally probable ones
    scales = (1 - correlations) / correlations
    log_likelihood = np.zeros((_GRID_SHARES, _GRID_CORRELATIONS))
    for parameter, counts, sign in (
        (shares[:, None] * scales, successes, 1),
        ((1 - shares)[:, None] * scales, sizes - successes, 1),
        (scales, sizes, -1),
    ):
        # By logarithms, as B underflows; each distinct count once, as there are few.
        start = gammaln(parameter)
        for count, times in zip(*np.unique(counts, return_counts=True), strict=True):
            log_likelihood += sign * times * (gammaln(parameter + count) - start)
    posterior = np.exp(log_likelihood - log_likelihood.max()).sum(axis=1)
    ends = np.concatenate([[0.0], np.cumsum(posterior) / posterior.sum()])
    edges = np.arange(_GRID_SHARES + 1) / _GRID_SHARES
    tail = (1 - level) / 2
    low, high = np.interp([tail, 1 - tail], ends, edges)
    return Interval(float(low), float(high))


def clustered_mean(
    clusters: Sequence[Hashable], values: Sequence[float], level: float = 0.95
) -> Estimate:
    """The mean of values with Student's interval over clusters, each drawn with all its values. No
    interval for fewer than three clusters, or if all values are the same."""
    places = {cluster: place for place, cluster in enumerate(dict.fromkeys(clusters))}
    observed, n, k = np.asarray(values, dtype=np.float64), len(values), len(places)
    if not n:
        return Estimate.missing()
    mean = float(observed.mean())
    variance = _clustered_variance([places[cluster] for cluster in clusters], observed)
    if k < MIN_CLUSTERS or not variance:
        return Estimate.missing(n, mean)
    half = student_quantile((1 + level) / 2, k - 1) * math.sqrt(variance)
    return Estimate(mean, mean - half, mean + half, n)


MIN_CLUSTERS = 3
"""The fewest clusters for an interval over them."""


def _clustered_variance(clusters: Sequence[int], values: Values) -> float:
    """The variance of a mean over clusters of several sizes: of the linearised ratio (Taylor)."""
    deviations = np.bincount(clusters, values - values.mean()) / len(values)
    k = len(deviations)
    return float(deviations @ deviations) * k / (k - 1) if k > 1 else 0.0


def share_interval(
    share: float, variance: float, clusters: int, freedom: float, level: float = 0.95
) -> Interval:
    """Wilson's interval of a share for as many independent cases as have its variance, which was
    estimated with so many degrees of freedom. A share that does not vary has that of its clusters,
    as if each were one thing that was or was not so."""
    normal = NormalDist().inv_cdf((1 + level) / 2)
    if not (0 < share < 1 and variance > 0):
        return wilson_interval(share, clusters, normal)
    size = share * (1 - share) / variance
    # A variance from few clusters is uncertain itself. Fewer cases allow for it, by as much as
    # Student's t is wider than the normal (Korn and Graubard 1998).
    size *= (normal / student_quantile((1 + level) / 2, freedom)) ** 2
    return wilson_interval(share, size, normal)


def wilson_interval(share: float, n: float, z: float) -> Interval:
    """Wilson's score interval of a share of n cases (Wilson 1927)."""
    middle = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    # Exactly 0 and 1 where they are so by the formula, which rounding would miss by 1e-18.
    low = middle - half if share > 0 else 0.0
    high = middle + half if share < 1 else 1.0
    return Interval(low, high)


def _clip_to_possible(
    sample: Sample, statistic: Callable[..., Values] | Statistic, estimate: Estimate
) -> Estimate:
    """A mean kept within the bounds of its measure, a quantile within the range of the sample, a
    sum within what as many places can add up to; the range of other statistics is not known."""
    if not isinstance(statistic, Statistic):
        return estimate
    lowest, highest = sample.range
    if statistic.is_mean:
        bounds = sample.known_bounds
        return estimate if bounds is None else estimate.keep_within(*bounds)
    if not statistic.is_sum:
        return estimate.clip(lowest, highest)
    places = max(sample.n, 0 if sample.design is None else len(sample.design.clusters))
    return estimate.clip(min(lowest, 0.0) * places, max(highest, 0.0) * places)


def is_studentised(sample: Sample, statistic: Callable[..., Values] | Statistic) -> bool:
    """Whether the interval of a statistic is a bootstrap-t."""
    averages = isinstance(statistic, Statistic) and statistic.is_mean
    return averages and sample.bounds is not None and sample.n <= _MAX_SKEWED_VALUES


def _bootstrap_sample(
    sample: Sample, statistic: Statistic, draws: int, level: float, seed: int
) -> Estimate:
    n = sample.n
    if not n:
        return Estimate.missing()
    values, counts = sample.distinct_values()
    value = float(statistic.from_counts(values, counts))
    if statistic.is_mean and len(values) == 1 and n > 1:
        # Exactly so, where rounding would give an interval with a width.
        return Estimate(value, value, value, n)
    if (n if sample.design is None else len(sample.design.strata)) < 2:
        return _clip_to_possible(sample, statistic, Estimate.missing(n, value))
    rng = np.random.Generator(np.random.PCG64(seed))
    low, high = resample_statistic(sample, statistic, draws, rng).interval(level, rng)
    if statistic.is_mean and not is_studentised(sample, statistic):
        widening = few_units_widening(n)
        if sample.design is not None:  # whose resamples vary as they should
            clusters, strata = len(sample.design.strata), len(sample.design.resampling_strata())
            # As many as the clusters, less one mean for each stratum, as usual in surveys.
            freedom = max(1, clusters - strata)
            widening = student_widening(freedom) if clusters <= MAX_WIDENED_UNITS else 1.0
        low, high = value - (value - low) * widening, value + (high - value) * widening
    return _clip_to_possible(sample, statistic, Estimate(value, low, high, n))


def resample_statistic(
    sample: Sample, statistic: Statistic, draws: int, rng: np.random.Generator
) -> Resamples:
    """A statistic over resamples of a sample; without a design, draws are taken as independent."""
    design, places, scaled = sample.design, sample.places, is_studentised(sample, statistic)
    # In order, because quantiles are read off cumulated weights.
    order = np.argsort(sample.values, kind="stable")
    values, counts = sample.values[order], sample.counts[order].astype(np.float64)
    if design is not None and places is not None:
        evaluate = _weighted_statistic(statistic, values, counts)
        errors = None
        if scaled:
            clusters, cluster_count = design.clusters[places[order]], len(design.strata)
            sizes, sums = (
                np.bincount(clusters, w, cluster_count).astype(np.float64)
                for w in (counts, counts * values)
            )
            errors = partial(_standard_errors, sizes, sums, cluster_count)
        return resample(design, places[order], evaluate, errors, draws=draws, rng=rng)
    values, counts = sample.distinct_values()
    n, step = sample.n, max(1, _MAX_CHUNK_VALUES // len(values))
    # numpy draws no more at once; weights are then scaled up to n.
    drawn_size = min(n, MAX_FLOAT_INTEGER)
    replicates, error_draws, unit_sizes = [], [], np.ones_like(values)
    for start in range(0, draws, step):
        size = min(step, draws - start)
        times_drawn = _draw_counts(rng, counts, drawn_size, size)
        weights = np.asarray(times_drawn * (n / drawn_size), dtype=np.float64)
        replicates.append(statistic.from_counts(values, weights))
        if scaled:
            error_draws.append(_standard_errors(unit_sizes, values, n, weights))
    scale = None
    if scaled:
        error = float(_standard_errors(unit_sizes, values, n, counts[None])[0])
        scale = StudentScale(sample.mean, error, np.concatenate(error_draws))
    return Resamples(np.concatenate(replicates), {}, scale)


def _draw_counts(rng: np.random.Generator, counts: Values, n: int, draws: int) -> Places:
    """How often each of the values that occur `counts` [k] times is among n drawn with replacement:
    [draws, k]."""
    if n > _MAX_AVERAGE_COUNT * len(counts):
        return rng.multinomial(n, counts / counts.sum(), size=draws)
    # The same distribution, in a third of the time.
    value_places = np.repeat(np.arange(len(counts)), counts.astype(np.int64))
    drawn_places = value_places[rng.integers(0, len(value_places), size=(draws, n))]
    drawn_places += np.arange(draws)[:, None] * len(counts)
    return np.bincount(drawn_places.ravel(), minlength=draws * len(counts)).reshape(draws, -1)


def _standard_errors(sizes: Values, sums: Values, n: int, weights: Values) -> Values:
    """The standard errors of means of n clusters, [draws], given the sizes and sums of distinct
    ones, [c], and how often each was drawn, [draws, c]: of the linearised ratio (Taylor).

    Strata are ignored: a bootstrap-t only uses these as its unit, in the same way for the sample
    and its resamples, and a stratum of two clusters would have no spread in most resamples.
    """
    totals = weights @ sizes
    with np.errstate(invalid="ignore", divide="ignore"):  # a draw of nothing has none
        deviations = (sums - (weights @ sums / totals)[:, None] * sizes) / totals[:, None]
    squares = (weights * deviations**2).sum(axis=-1)
    return np.asarray(np.sqrt(squares * (n / (n - 1) if n > 1 else 0.0)), dtype=np.float64)


def _weighted_statistic(
    statistic: Statistic, values: Values, counts: Values
) -> Callable[..., Values]:
    """The statistic of values in order as a function of their weights."""

    def evaluate(weights: Values, selected: Places | None = None, share: float = 1.0) -> Values:
        if selected is None:
            return statistic.from_counts(values, weights * counts)
        value = statistic.from_counts(values[selected], weights[..., selected] * counts[selected])
        return value / share if statistic.is_sum else value

    return evaluate


_MIN_QUANTILE_SIDE = 10  # observations on either side of a quantile for an interval


def quantile(q: float) -> Statistic:
    """The q-quantile over the last axis, linearly interpolated. No interval where fewer than ten
    observations are expected on either side of it: resamples repeat the few that are there."""

    def from_counts(values: Values, counts: Values) -> Values:
        ends = np.cumsum(counts, axis=-1)
        # Between neighbours, as numpy does by default (type 7 of Hyndman and Fan 1996).
        place = (ends[..., -1:] - 1) * q
        below, above = (
            values[np.minimum((ends <= edge).sum(axis=-1), len(values) - 1)]
            for edge in (np.floor(place), np.ceil(place))
        )
        return np.asarray(below + (above - below) * (place - np.floor(place))[..., 0])

    return Statistic(
        lambda rows: np.asarray(np.quantile(rows, q, axis=-1)),
        from_counts,
        min_count=math.ceil(_MIN_QUANTILE_SIDE / min(q, 1 - q)) if 0 < q < 1 else 0,
    )


total = Statistic(
    lambda rows: np.asarray(rows.sum(axis=-1), dtype=np.float64),
    lambda values, counts: np.asarray(counts @ values, dtype=np.float64),
    is_sum=True,
)
"""Sum over the last axis."""

mean = Statistic(
    lambda rows: np.asarray(rows.mean(axis=-1), dtype=np.float64),
    lambda values, counts: _ratio(counts @ values, counts.sum(axis=-1)),
    is_mean=True,
)
"""Mean over the last axis."""


def _ratio(above: Values, below: Values) -> Values:
    """The ratio; NaN if there is nothing below."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.asarray(above) / below, dtype=np.float64)


STATISTICS: Mapping[str, Statistic] = {
    "total": total,
    "mean": mean,
    "median": quantile(0.5),
    "q1": quantile(0.25),
    "q3": quantile(0.75),
}
"""How a figure summarises values, by the names that `kgbias.measures` uses."""


def proportion(successes: float, n: int, level: float = 0.95) -> Estimate:
    """A share with its Wilson score interval (Wilson 1927), which keeps its level near 0 and 1."""
    if n == 0:
        return Estimate.missing()
    z = NormalDist().inv_cdf((1 + level) / 2)
    share = successes / n
    return Estimate(share, *wilson_interval(share, n, z), n)


def exact_proportion(successes: int, n: int, level: float = 0.95) -> Estimate:
    """A share with the interval of Clopper and Pearson (1934), which holds at least as often as it
    says, however near the share is to 0 or 1."""
    from scipy.special import betaincinv

    tail, misses = (1 - level) / 2, n - successes
    low = float(betaincinv(successes, misses + 1, tail)) if successes else 0.0
    high = float(betaincinv(successes + 1, misses, 1 - tail)) if misses else 1.0
    return Estimate(successes / n, low, high, n)


def student_quantile(share: float, freedom: float) -> float:
    """The quantile of Student's t distribution with `freedom` > 0 degrees of freedom; of the normal
    one for infinitely many."""
    # Not from `scipy.stats`, which takes four times as long to import.
    from scipy.special import ndtri, stdtrit

    return float(ndtri(share) if math.isinf(freedom) else stdtrit(freedom, share))


def bootstrap_pairs(
    first: Values,
    second: Values,
    statistic: Callable[[Values, Values], float],
    *,
    draws: int = DEFAULT_DRAWS,
    level: float = 0.95,
    seed: int = 0,
) -> Estimate:
    """The percentile bootstrap interval of a statistic of pairs, for example a correlation over
    groups. Draws on which the statistic is undefined (NaN) are left out; if more than half are,
    there is no interval."""
    n = len(first)
    value = statistic(first, second)
    rng = np.random.Generator(np.random.PCG64(seed))
    replicates = []
    for _ in range(draws):
        places = rng.integers(0, n, size=n)
        replicates.append(statistic(first[places], second[places]))
    defined = np.array([r for r in replicates if not np.isnan(r)])
    if len(defined) < draws / 2:
        return Estimate.missing(n, value)
    tail = (1 - level) / 2
    low, high = np.quantile(defined, [tail, 1 - tail])
    return Estimate(value, float(low), float(high), n)


def bootstrap_clusters(
    clusters: Sequence[Hashable],
    statistic: Callable[[Values], Values],
    *,
    draws: int = DEFAULT_DRAWS,
    level: float = 0.95,
    seed: int = 0,
    bounds: tuple[float, float] = (-math.inf, math.inf),
) -> Estimate:
    """The percentile bootstrap interval of a statistic of things [n] that are drawn together with
    the others of their cluster (`clusters` [n]). Where clusters are few, its ends are moved out
    (`few_units_widening`), to Student's with the jackknife's variance (Tukey 1958) where those are
    further. `statistic` maps weights [draws, n], how often each thing was drawn, to [draws], within
    `bounds`. Draws on which it is undefined (NaN) are left out; there is no interval if more than
    half are, or for fewer than four clusters."""
    n = len(clusters)
    value = float(statistic(np.ones((1, n)))[0]) if n else math.nan
    place = {cluster: number for number, cluster in enumerate(dict.fromkeys(clusters))}
    if len(place) < 4 or math.isnan(value):
        return Estimate.missing(n, value)
    cluster_places = np.array([place[cluster] for cluster in clusters])
    rng = np.random.Generator(np.random.PCG64(seed))
    chances, step, batches = np.full(len(place), 1 / len(place)), max(1, _MAX_CHUNK_VALUES // n), []
    for start in range(0, draws, step):
        times_drawn = rng.multinomial(len(place), chances, size=min(step, draws - start))
        batches.append(statistic(times_drawn[:, cluster_places].astype(np.float64)))
    replicates = np.concatenate(batches)
    defined = replicates[~np.isnan(replicates)]
    if len(defined) < draws / 2:
        return Estimate.missing(n, value)
    tail = (1 - level) / 2
    low, high = (float(end) for end in np.quantile(defined, [tail, 1 - tail]))
    if low == high:
        return Estimate.missing(n, value)
    widening = few_units_widening(len(place))
    low, high = value - (value - low) * widening, value + (high - value) * widening
    if len(place) <= MAX_WIDENED_UNITS:
        half = _jackknife_half(cluster_places, statistic)
        low, high = min(low, value - half), max(high, value + half)
    return Estimate(value, low, high, n).keep_within(*bounds)


def _jackknife_half(cluster_places: Places, statistic: Callable[[Values], Values]) -> float:
    """Half the width of Student's 95% interval with the jackknife's variance over clusters; 0 where
    the statistic is undefined without one of them."""
    k = int(cluster_places.max()) + 1
    without = statistic((cluster_places != np.arange(k)[:, None]).astype(np.float64))
    if np.isnan(without).any():
        return 0.0
    return student_quantile(0.975, k - 1) * math.sqrt((k - 1) * float(without.var()))


def rank_correlation(first: Values, second: Values) -> float:
    """Spearman's rho: the correlation of ranks, ties given their mean rank; in [-1, 1], NaN if
    either side is constant."""
    a, b = ranks(first), ranks(second)
    a, b = a - a.mean(), b - b.mean()
    norm = float(np.sqrt((a @ a) * (b @ b)))
    # Ranks in the same order may give 1.0000000000000002.
    return min(max(float(a @ b) / norm, -1.0), 1.0) if norm else float("nan")


def kendall_tau(first: Sequence[float] | Values, second: Sequence[float] | Values) -> float:
    """Kendall's tau-b of two scorings of the same things, with ties (Kendall 1945): concordant
    minus discordant pairs over the geometric mean of the pairs that each does not tie, in [-1, 1];
    NaN if either is constant."""
    a, b = (np.sign(np.subtract.outer(x, x)) for x in (np.array(first), np.array(second)))
    norm = float(np.sqrt((a**2).sum() * (b**2).sum()))
    return float((a * b).sum()) / norm if norm else float("nan")


def ranks(values: Values) -> Values:
    """Ranks from 1, ties sharing their mean."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    return np.asarray((ends - (counts - 1) / 2)[inverse], dtype=np.float64)


def holm(p: Sequence[float]) -> Values:
    """Holm's (1979) step-down adjusted p-values, in the order given: rejecting those <= alpha
    keeps the chance of any false positive in the family at or below alpha, however the tests depend
    on each other. The i-th smallest of m becomes max over j <= i of min(1, (m - j + 1) p_(j))."""
    values = _check_p_values(p)
    order = np.argsort(values, kind="stable")
    steps = np.arange(len(values), 0, -1) * values[order]
    return _restore_order(np.maximum.accumulate(np.minimum(steps, 1.0)), order)


def benjamini_hochberg(p: Sequence[float]) -> Values:
    """Benjamini and Hochberg's (1995) step-up adjusted p-values, in the order given: among the
    tests <= q the expected share of false positives is at most q, for independent or positively
    dependent tests. The i-th smallest of m becomes min over j >= i of min(1, m p_(j) / j)."""
    values = _check_p_values(p)
    order = np.argsort(values, kind="stable")
    steps = values[order] * len(values) / np.arange(1, len(values) + 1)
    lowest = np.minimum.accumulate(steps[::-1])[::-1] if len(steps) else steps
    return _restore_order(np.minimum(lowest, 1.0), order)


def _check_p_values(p: Sequence[float]) -> Values:
    values = np.asarray(p, dtype=np.float64)
    if not ((values >= 0) & (values <= 1)).all():
        raise ValueError("p-values must lie in [0, 1]")
    return values


def _restore_order(sorted_values: Values, order: np.ndarray) -> Values:
    adjusted = np.empty_like(sorted_values)
    adjusted[order] = sorted_values
    return adjusted


def resample_means(sample: Values | Sample, draws: int, rng: np.random.Generator) -> Values:
    """Means of resamples, [draws]. Drawing how often each distinct value occurs is equivalent to
    drawing the values, and much cheaper if they repeat; for more than 5,000 values, more than 200
    of them distinct, the means are drawn from the normal distribution that they then follow."""
    sample = Sample.from_values(sample)
    n = sample.n
    distinct, counts = sample.distinct_values()
    if n > _MIN_NORMAL_VALUES and len(distinct) > _MAX_DISTINCT_VALUES:
        mean = sample.mean
        deviation = math.sqrt(float(counts @ (distinct - mean) ** 2) / n)
        return np.asarray(rng.normal(mean, deviation / math.sqrt(n), size=draws))
    if len(distinct) <= n / 4:
        drawn_counts = rng.multinomial(min(n, MAX_FLOAT_INTEGER), counts / counts.sum(), size=draws)
        return np.asarray(drawn_counts @ distinct / min(n, MAX_FLOAT_INTEGER), dtype=np.float64)
    values = np.repeat(sample.values, sample.counts)
    step = max(1, _MAX_CHUNK_VALUES // n)
    batches = [
        values[rng.integers(0, n, size=(min(step, draws - start), n))].mean(axis=1)
        for start in range(0, draws, step)
    ]
    return np.concatenate(batches)
