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

import numpy as np
from numpy.typing import NDArray

from kgbias.stats.designs import Design, Places, Resampled, Scale, resample
from kgbias.stats.estimate import Estimate as Estimate

Values = NDArray[np.float64]

_LISTED = 100_000  # observations of a sample that may be listed one by one
MOST_DRAWN = 1 << 53  # the most that a multinomial can draw and a float counts exactly


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
    def of(cls, values: "Sample | Values") -> "Sample":
        """A sample as it is, or values that each occur once."""
        if isinstance(values, Sample):
            return values
        values = np.asarray(values, dtype=np.float64)
        return cls(values, np.ones(len(values), dtype=np.int64))

    @classmethod
    def joined(cls, samples: Sequence["Sample"]) -> "Sample":
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
        return cls(values, counts, Design.joined(designs), np.concatenate(places), bounds, signs)

    def without(self, part: "Sample") -> "Sample":
        """The sample without one of its parts. Taking out many parts in turn is much faster from a
        `collapsed` sample."""
        whole = self.collapsed()
        left = whole.counts.copy()
        np.subtract.at(left, np.searchsorted(whole.values, part.values), part.counts)
        return Sample(whole.values[left > 0], left[left > 0], bounds=self.bounds, signs=self.signs)

    def collapsed(self) -> "Sample":
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
        about = float(self.counts.sum(dtype=np.float64))
        return int(about) if about < MOST_DRAWN else sum(map(int, self.counts))

    @property
    def range(self) -> tuple[float, float]:
        """The bounds of the measure or, if it has none, the least and greatest value: no mean or
        quantile lies outside."""
        return self.bounds or (float(self.values.min()), float(self.values.max()))

    @property
    def mean(self) -> float:
        """The mean of the observations; NaN without any."""
        if not len(self.values):
            return math.nan
        weights = self.counts / self.counts.max()
        found = float(self.values @ weights / weights.sum())
        return min(max(found, float(self.values.min())), float(self.values.max()))

    def listed(self) -> Values | None:
        """The observations one by one, [n]; None if there are more than 100,000 and most of them
        are repeats."""
        if self.n > max(_LISTED, 2 * len(self.values)):
            return None
        return np.repeat(self.values, self.counts)

    def distinct(self) -> tuple[Values, Values]:
        """The distinct values in order, and how often each occurs (as floats)."""
        values, places = np.unique(self.values, return_inverse=True)
        counts = np.bincount(places, self.counts.astype(np.float64), len(values))
        return values, counts.astype(np.float64)

    def outline(self) -> Values:
        """Values with the same distribution, for drawing: the observations or, if there are too
        many to list, a thousand that divide them evenly."""
        listed = self.listed()
        if listed is not None:
            return listed
        values, counts = self.distinct()
        ends = np.cumsum(counts) / counts.sum()
        places = np.searchsorted(ends, (np.arange(1000) + 0.5) / 1000)
        return np.asarray(values[np.minimum(places, len(values) - 1)], dtype=np.float64)


def repeated(samples: Sequence[Sample]) -> Sample:
    """Several samples drawn in the same way, one in each recrawl, as one: like `Sample.joined`,
    with the recrawls as a level of the design."""
    whole = Sample.joined(samples)
    if whole.design is None:
        return whole
    sizes = [len(s.design.clusters) for s in samples if s.design is not None]
    crawls = np.repeat(np.arange(len(samples)), sizes)
    levels = {"recrawls": crawls, **whole.design.levels}
    return replace(whole, design=replace(whole.design, levels=levels))


DRAWS = 2000
_CHUNK = 4_000_000  # resampled values in memory at once
_FEW = 2  # mean repeats of a value up to which draws are made one by one
_NORMAL = 5000  # values; beyond this, the mean of a resample is normal to many digits
_DISTINCT = 200  # distinct values; up to this many, drawing by counts is fast enough
_SKEWED = 5_000  # observations; beyond this, a mean has no skew to speak of


@dataclass(frozen=True, slots=True)
class Statistic:
    """A statistic of values [..., n], along the last axis; `counted` is the same for distinct
    values [k], in order, that occur `counts` [..., k] times."""

    plain: Callable[[Values], Values]
    counted: Callable[[Values, Values], Values]
    adds: bool = False
    """Whether it grows with the number of values."""
    averages: bool = False
    """Whether it is the mean."""

    def __call__(self, rows: Values) -> Values:
        return self.plain(rows)


def bootstrap(
    values: Values | Sample,
    statistic: Callable[[Values], Values] | Statistic,
    *,
    draws: int = DRAWS,
    level: float = 0.95,
    seed: int = 0,
) -> Estimate:
    """The bootstrap interval of a statistic (Efron 1979): a percentile interval or, for the mean of
    a sample with bounds, a bootstrap-t within them.

    `values` has shape [n]; `statistic` maps an array of shape [draws, n] to shape [draws], working
    along the last axis. The same values, draws and seed give the same interval.

    A `Sample` of very many observations is resampled by how often each distinct value is drawn,
    which has the same distribution and needs a `Statistic`; so does one with a design, whose
    clusters are resampled (`kgbias.stats.designs.effects`).

    A count (`total` of values that are all 0 or 1) gets Wilson's interval instead, for as many
    independent observations as have its variance over the resamples: percentiles of a few cases
    end at few cases, and those of none at 0.
    """
    sample = Sample.of(values)
    if statistic is total and len(sample.values) and set(sample.values) <= {0.0, 1.0}:
        return _count(sample, draws, level, seed)
    if isinstance(statistic, Statistic) and statistic.averages and one_sided(sample):
        return _mean_of_labels(sample, statistic, draws, level, seed)
    plain = sample.design is None and not studentised(sample, statistic)
    listed = sample.listed() if plain else None
    if listed is None:
        if not isinstance(statistic, Statistic):
            raise TypeError("a sample with a design, or of counts, needs a Statistic")
        return _bootstrap_sample(sample, statistic, draws, level, seed)
    values = listed
    n = len(values)
    if n == 0:
        return Estimate.missing()
    value = float(statistic(values[None, :])[0])
    if n == 1:
        return Estimate.missing(1, value)
    rng = np.random.Generator(np.random.PCG64(seed))
    step = max(1, _CHUNK // n)
    replicates = [
        statistic(values[rng.integers(0, n, size=(min(step, draws - start), n))])
        for start in range(0, draws, step)
    ]
    tail = (1 - level) / 2
    low, high = np.quantile(np.concatenate(replicates), [tail, 1 - tail])
    return _possible(sample, statistic, Estimate(value, float(low), float(high), n))


def _count(sample: Sample, draws: int, level: float, seed: int) -> Estimate:
    """The number of observations that are 1, with Wilson's interval at the effective sample size
    (Korn and Graubard 1998; Dean and Pagano 2015)."""
    found = float(sample.counts @ sample.values)
    design = sample.design
    if design is None or sample.places is None:
        found_share = proportion(found, sample.n, level)
        return Estimate(found, found_share.low * sample.n, found_share.high * sample.n, sample.n)
    # A place may yield nothing that counts, which varies too: the share is one of places.
    places = max(len(design.clusters), sample.n)
    clusters, strata = len(design.strata), len(design.together())
    if clusters < 2:
        return Estimate.missing(sample.n, found)
    rng = np.random.Generator(np.random.PCG64(seed))
    variance = resampled(sample, total, draws, rng).variance(rng) / places**2
    share = found / places
    variance = max(variance, share * (1 - share) / places)  # never less than of independent places
    low, high = _share_interval(share, variance, clusters, max(1, clusters - strata), level)
    return Estimate(found, low * places, high * places, sample.n)


_FEW_OTHERS = 10  # observations without the commonest label; from more, resamples show how many


def one_sided(sample: Sample) -> bool:
    """Whether nearly all observations have one label of -1, 0 and 1 (or of 0 and 1)."""
    if not len(sample.values) or not np.isin(sample.values, (-1.0, 0.0, 1.0)).all():
        return False
    counts = sample.collapsed().counts
    return int(counts.sum() - counts.max()) < _FEW_OTHERS


def _mean_of_labels(
    sample: Sample, statistic: Statistic, draws: int, level: float, seed: int
) -> Estimate:
    """The mean of labels' signs. Where most have the same label, a sample may show nothing of the
    others, so the interval holds 95% of the means of the shares of labels that Jeffreys' prior
    (1946), half an observation of each label, makes of as many independent observations as vary as
    much as the sample does by its design."""
    n, mean = sample.n, sample.mean
    least, most = sample.signs or sample.bounds or (min(0.0, float(sample.values.min())), 1.0)
    clusters = n if sample.design is None else len(sample.design.strata)
    if clusters < 2:
        return Estimate.missing(n, mean)
    spread = float(np.average((sample.values - mean) ** 2, weights=sample.counts))
    rng = np.random.Generator(np.random.PCG64(seed))
    size = float(n)
    if sample.design is not None and spread:
        variance = resampled(sample, statistic, draws, rng).variance(rng)
        size = min(size, spread / variance) if variance else size
    elif sample.design is not None:
        size = min(size, float(clusters))
    labels = np.arange(least, most + 1)
    often = np.array([sample.counts[sample.values == label].sum() for label in labels])
    shares = rng.gamma(often * size / n + _JEFFREYS, size=(_DRAWN_SHARES, len(labels)))
    means = shares @ labels / shares.sum(axis=1)
    tail = (1 - level) / 2
    low, high = (float(end) for end in np.quantile(means, [tail, 1 - tail]))
    return Estimate(mean, min(low, mean), max(high, mean), n)


_JEFFREYS = 0.5
_DRAWN_SHARES = 5_000


def clustered_proportion(
    clusters: Sequence[Hashable], values: Sequence[float], level: float = 0.95
) -> Estimate:
    """The mean of values from 0 to 1, such as the share of those that are 1, with Wilson's interval
    at the effective sample size of its clusters, each drawn with all its values. No interval for
    fewer than three clusters.
    """
    places = {cluster: place for place, cluster in enumerate(dict.fromkeys(clusters))}
    own, n = np.asarray(values, dtype=np.float64), len(values)
    if not n:
        return Estimate.missing()
    share, k = float(own.mean()), len(places)
    if k < _FEWEST_CLUSTERS:
        return Estimate.missing(n, share)
    variance = _clustered_variance([places[cluster] for cluster in clusters], own)
    return Estimate(share, *_share_interval(share, variance, k, k - 1, level), n)


def clustered_mean(
    clusters: Sequence[Hashable], values: Sequence[float], level: float = 0.95
) -> Estimate:
    """The mean of values with Student's interval over clusters, each drawn with all its values. No
    interval for fewer than three clusters, or if all values are the same."""
    places = {cluster: place for place, cluster in enumerate(dict.fromkeys(clusters))}
    own, n, k = np.asarray(values, dtype=np.float64), len(values), len(places)
    if not n:
        return Estimate.missing()
    mean = float(own.mean())
    variance = _clustered_variance([places[cluster] for cluster in clusters], own)
    if k < _FEWEST_CLUSTERS or not variance:
        return Estimate.missing(n, mean)
    half = student_quantile((1 + level) / 2, k - 1) * math.sqrt(variance)
    return Estimate(mean, mean - half, mean + half, n)


_FEWEST_CLUSTERS = 3


def _clustered_variance(clusters: Sequence[int], values: Values) -> float:
    """The variance of a mean over clusters of several sizes: of the linearised ratio (Taylor)."""
    apart = np.bincount(clusters, values - values.mean()) / len(values)
    k = len(apart)
    return float(apart @ apart) * k / (k - 1) if k > 1 else 0.0


def _share_interval(
    share: float, variance: float, clusters: int, freedom: float, level: float
) -> tuple[float, float]:
    """Wilson's interval of a share for as many independent cases as have its variance, which was
    estimated with so many degrees of freedom. A share that does not vary has that of its clusters,
    as if each were one thing that was or was not so."""
    normal = NormalDist().inv_cdf((1 + level) / 2)
    if not (0 < share < 1 and variance > 0):
        return wilson(share, clusters, normal)
    size = share * (1 - share) / variance
    size *= (normal / student_quantile((1 + level) / 2, freedom)) ** 2
    return wilson(share, size, normal)


def wilson(share: float, n: float, z: float) -> tuple[float, float]:
    """Wilson's score interval of a share of n cases (Wilson 1927)."""
    middle = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    # Exactly 0 and 1 where they are so by the formula, which rounding would miss by 1e-18.
    low = middle - half if share > 0 else 0.0
    high = middle + half if share < 1 else 1.0
    return low, high


def _possible(
    sample: Sample, statistic: Callable[..., Values] | Statistic, found: Estimate
) -> Estimate:
    """A mean or a quantile kept within the range of the sample, a sum within what as many places
    can add up to; the range of other statistics is not known."""
    if not isinstance(statistic, Statistic):
        return found
    least, most = sample.range
    if not statistic.adds:
        return found.within(least, most)
    places = max(sample.n, 0 if sample.design is None else len(sample.design.clusters))
    return found.within(min(least, 0.0) * places, max(most, 0.0) * places)


def studentised(sample: Sample, statistic: Callable[..., Values] | Statistic) -> bool:
    """Whether the interval of a statistic is a bootstrap-t."""
    averages = isinstance(statistic, Statistic) and statistic.averages
    return averages and sample.bounds is not None and sample.n <= _SKEWED


def _bootstrap_sample(
    sample: Sample, statistic: Statistic, draws: int, level: float, seed: int
) -> Estimate:
    n = sample.n
    if not n:
        return Estimate.missing()
    values, counts = sample.distinct()
    value = float(statistic.counted(values, counts))
    if (n if sample.design is None else len(sample.design.strata)) < 2:
        return _possible(sample, statistic, Estimate.missing(n, value))
    rng = np.random.Generator(np.random.PCG64(seed))
    low, high = resampled(sample, statistic, draws, rng).interval(level, rng)
    return _possible(sample, statistic, Estimate(value, low, high, n))


def resampled(
    sample: Sample, statistic: Statistic, draws: int, rng: np.random.Generator
) -> Resampled:
    """A statistic over resamples of a sample; without a design, draws are taken as independent."""
    design, places, scaled = sample.design, sample.places, studentised(sample, statistic)
    order = np.argsort(sample.values, kind="stable")
    values, counts = sample.values[order], sample.counts[order].astype(np.float64)
    if design is not None and places is not None:
        of = _weighted(statistic, values, counts)
        errors = None
        if scaled:
            clusters, c = design.clusters[places[order]], len(design.strata)
            sizes, sums = (
                np.bincount(clusters, w, c).astype(np.float64) for w in (counts, counts * values)
            )
            errors = partial(_standard_errors, sizes, sums, c)
        return resample(design, places[order], of, errors, draws=draws, rng=rng)
    values, counts = sample.distinct()
    n, step = sample.n, max(1, _CHUNK // len(values))
    drawn = min(n, MOST_DRAWN)
    whole, spread, every = [], [], np.ones_like(values)
    for start in range(0, draws, step):
        size = min(step, draws - start)
        often = _how_often(rng, counts, drawn, size)
        weights = np.asarray(often * (n / drawn), dtype=np.float64)
        whole.append(statistic.counted(values, weights))
        if scaled:
            spread.append(_standard_errors(every, values, n, weights))
    scale = None
    if scaled:
        error = float(_standard_errors(every, values, n, counts[None])[0])
        scale = Scale(sample.mean, error, np.concatenate(spread))
    return Resampled(np.concatenate(whole), {}, scale)


def _how_often(rng: np.random.Generator, counts: Values, n: int, draws: int) -> Places:
    """How often each of the values that occur `counts` [k] times is among n drawn with replacement:
    [draws, k]."""
    if n > _FEW * len(counts):
        return rng.multinomial(n, counts / counts.sum(), size=draws)
    # The same distribution, in a third of the time.
    own = np.repeat(np.arange(len(counts)), counts.astype(np.int64))
    drawn = own[rng.integers(0, len(own), size=(draws, n))]
    drawn += np.arange(draws)[:, None] * len(counts)
    return np.bincount(drawn.ravel(), minlength=draws * len(counts)).reshape(draws, -1)


def _standard_errors(sizes: Values, sums: Values, n: int, weights: Values) -> Values:
    """The standard errors of means of n clusters, [draws], given the sizes and sums of distinct
    ones, [c], and how often each was drawn, [draws, c]: of the linearised ratio (Taylor).

    Strata are ignored: a bootstrap-t only uses these as its unit, in the same way for the sample
    and its resamples, and a stratum of two clusters would have no spread in most resamples.
    """
    below = weights @ sizes
    with np.errstate(invalid="ignore", divide="ignore"):  # a draw of nothing has none
        apart = (sums - (weights @ sums / below)[:, None] * sizes) / below[:, None]
    squares = (weights * apart**2).sum(axis=-1)
    return np.asarray(np.sqrt(squares * (n / (n - 1) if n > 1 else 0.0)), dtype=np.float64)


def _weighted(statistic: Statistic, values: Values, counts: Values) -> Callable[..., Values]:
    """The statistic of values in order as a function of their weights."""

    def of(weights: Values, own: Places | None = None, share: float = 1.0) -> Values:
        if own is None:
            return statistic.counted(values, weights * counts)
        found = statistic.counted(values[own], weights[..., own] * counts[own])
        return found / share if statistic.adds else found

    return of


def quantile(q: float) -> Statistic:
    """The q-quantile over the last axis, linearly interpolated."""

    def counted(values: Values, counts: Values) -> Values:
        ends = np.cumsum(counts, axis=-1)
        place = (ends[..., -1:] - 1) * q
        below, above = (
            values[np.minimum((ends <= edge).sum(axis=-1), len(values) - 1)]
            for edge in (np.floor(place), np.ceil(place))
        )
        return np.asarray(below + (above - below) * (place - np.floor(place))[..., 0])

    return Statistic(lambda rows: np.asarray(np.quantile(rows, q, axis=-1)), counted)


total = Statistic(
    lambda rows: np.asarray(rows.sum(axis=-1), dtype=np.float64),
    lambda values, counts: np.asarray(counts @ values, dtype=np.float64),
    adds=True,
)
"""Sum over the last axis."""

mean = Statistic(
    lambda rows: np.asarray(rows.mean(axis=-1), dtype=np.float64),
    lambda values, counts: _ratio(counts @ values, counts.sum(axis=-1)),
    averages=True,
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
    return Estimate(share, *wilson(share, n, z), n)


def student_quantile(share: float, freedom: float) -> float:
    """The quantile of Student's t distribution with `freedom` > 0 degrees of freedom; of the normal
    one for infinitely many."""
    from scipy.special import ndtri, stdtrit

    return float(ndtri(share) if math.isinf(freedom) else stdtrit(freedom, share))


def bootstrap_pairs(
    first: Values,
    second: Values,
    statistic: Callable[[Values, Values], float],
    *,
    draws: int = DRAWS,
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
    draws: int = DRAWS,
    level: float = 0.95,
    seed: int = 0,
) -> Estimate:
    """The percentile bootstrap interval of a statistic of things [n] that are drawn together with
    the others of their cluster (`clusters` [n]). `statistic` maps weights [draws, n], how often
    each thing was drawn, to [draws]. Draws on which it is undefined (NaN) are left out; there is no
    interval if more than half are, or for fewer than four clusters."""
    n = len(clusters)
    value = float(statistic(np.ones((1, n)))[0]) if n else math.nan
    place = {cluster: number for number, cluster in enumerate(dict.fromkeys(clusters))}
    if len(place) < 4 or math.isnan(value):
        return Estimate.missing(n, value)
    of = np.array([place[cluster] for cluster in clusters])
    rng = np.random.Generator(np.random.PCG64(seed))
    even, step, found = np.full(len(place), 1 / len(place)), max(1, _CHUNK // n), []
    for start in range(0, draws, step):
        often = rng.multinomial(len(place), even, size=min(step, draws - start))
        found.append(statistic(often[:, of].astype(np.float64)))
    replicates = np.concatenate(found)
    defined = replicates[~np.isnan(replicates)]
    if len(defined) < draws / 2:
        return Estimate.missing(n, value)
    tail = (1 - level) / 2
    low, high = np.quantile(defined, [tail, 1 - tail])
    return Estimate(value, float(low), float(high), n)


def rank_correlation(first: Values, second: Values) -> float:
    """Spearman's rho: the correlation of ranks, ties given their mean rank; in [-1, 1], NaN if
    either side is constant."""
    a, b = ranks(first), ranks(second)
    a, b = a - a.mean(), b - b.mean()
    norm = float(np.sqrt((a @ a) * (b @ b)))
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
    values = _checked(p)
    order = np.argsort(values, kind="stable")
    steps = np.arange(len(values), 0, -1) * values[order]
    return _placed(np.maximum.accumulate(np.minimum(steps, 1.0)), order)


def benjamini_hochberg(p: Sequence[float]) -> Values:
    """Benjamini and Hochberg's (1995) step-up adjusted p-values, in the order given: among the
    tests <= q the expected share of false positives is at most q, for independent or positively
    dependent tests. The i-th smallest of m becomes min over j >= i of min(1, m p_(j) / j)."""
    values = _checked(p)
    order = np.argsort(values, kind="stable")
    steps = values[order] * len(values) / np.arange(1, len(values) + 1)
    lowest = np.minimum.accumulate(steps[::-1])[::-1] if len(steps) else steps
    return _placed(np.minimum(lowest, 1.0), order)


def _checked(p: Sequence[float]) -> Values:
    values = np.asarray(p, dtype=np.float64)
    if not ((values >= 0) & (values <= 1)).all():
        raise ValueError("p-values must lie in [0, 1]")
    return values


def _placed(sorted_values: Values, order: np.ndarray) -> Values:
    adjusted = np.empty_like(sorted_values)
    adjusted[order] = sorted_values
    return adjusted


def resampled_means(sample: Values | Sample, draws: int, rng: np.random.Generator) -> Values:
    """Means of resamples, [draws]. Drawing how often each distinct value occurs is equivalent to
    drawing the values, and much cheaper if they repeat; for more than 5,000 values, more than 200
    of them distinct, the means are drawn from the normal distribution that they then follow."""
    sample = Sample.of(sample)
    n = sample.n
    distinct, counts = sample.distinct()
    if n > _NORMAL and len(distinct) > _DISTINCT:
        mean = sample.mean
        spread = math.sqrt(float(counts @ (distinct - mean) ** 2) / n)
        return np.asarray(rng.normal(mean, spread / math.sqrt(n), size=draws))
    if len(distinct) <= n / 4:
        drawn = rng.multinomial(min(n, MOST_DRAWN), counts / counts.sum(), size=draws)
        return np.asarray(drawn @ distinct / min(n, MOST_DRAWN), dtype=np.float64)
    values = np.repeat(sample.values, sample.counts)
    step = max(1, 4_000_000 // n)
    parts = [
        values[rng.integers(0, n, size=(min(step, draws - start), n))].mean(axis=1)
        for start in range(0, draws, step)
    ]
    return np.concatenate(parts)
