"""Figures that follow from sums over units: the terms, pairs or statements of a benchmark.

Models that read the same units are resampled together, so that a difference between two is over the
same units. A figure may be any function of the sums: a mean, a ratio, or the mean of means.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from kgbias.stats.designs import NORMAL_95, Places, percentile_interval
from kgbias.stats.estimate import Estimate
from kgbias.stats.inference import DEFAULT_DRAWS, Values, student_quantile

MAX_WIDENED_UNITS = 50
"""Units up to which an interval is widened; for more, it would be by less than 4%."""
_MAX_CHUNK_COUNTS = 4_000_000


@dataclass(frozen=True, slots=True)
class UnitSums:
    """The data that a figure is computed from.

    Attributes:
        names: the name of each unit, all distinct.
        columns: [units, k]: what is added up for each unit.
        statistic: the figure, from the sums of the columns: [..., k] to [...]; NaN if undefined.
        strata: which units are resampled among each other, one number for each; none: all.
        bounds: the least and greatest value that the figure can have.
    """

    names: tuple[str, ...]
    columns: Values
    statistic: Callable[[Values], Values]
    strata: tuple[int, ...] = ()
    bounds: tuple[float, float] = (-math.inf, math.inf)

    @property
    def value(self) -> float:
        return float(self.figure(self.columns.sum(axis=0)))

    def figure(self, sums: Values) -> Values:
        """The figure of these sums, [..., k]; division by 0 gives NaN."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(self.statistic(sums), dtype=np.float64)

    def replicates(self, draws: int = DEFAULT_DRAWS, seed: int = 0) -> Values:
        """The figure over resamples of the units, [draws]. Units with the same names and strata
        are drawn alike, whatever their columns."""
        rng = np.random.Generator(np.random.PCG64(seed))
        sums = np.zeros((draws, self.columns.shape[1]))
        for places in self._stratum_places():
            n, step = len(places), max(1, _MAX_CHUNK_COUNTS // len(places))
            for start in range(0, draws, step):
                size = min(step, draws - start)
                counts = rng.multinomial(n, np.full(n, 1 / n), size=size)
                sums[start : start + size] += counts @ self.columns[places]
        return self.figure(sums)

    def estimate(self, draws: int = DEFAULT_DRAWS, seed: int = 0) -> Estimate:
        """The figure with its percentile bootstrap interval over units; none if all resamples are
        the same: units that all agree do not tell how certain it is."""
        n = len(self.names)
        if n < 2:
            return Estimate.missing(n, self.value if n else math.nan)
        return resample_interval(self.value, self.replicates(draws, seed), n).clip(*self.bounds)

    def select(self, names: Sequence[str]) -> "UnitSums":
        """These units, in this order."""
        place = {name: n for n, name in enumerate(self.names)}
        places = [place[name] for name in names]
        strata = tuple(self.strata[n] for n in places) if self.strata else ()
        return UnitSums(tuple(names), self.columns[places], self.statistic, strata, self.bounds)

    def _stratum_places(self) -> Iterator[Places]:
        if not self.strata:
            yield np.arange(len(self.names))
            return
        numbers = np.array(self.strata)
        for number in np.unique(numbers):
            yield np.flatnonzero(numbers == number)


def restrict_to_shared(units: Sequence[UnitSums]) -> list[UnitSums]:
    """The same, over the units that all have, in the order of the first."""
    names = set.intersection(*(set(u.names) for u in units))
    order = [name for name in units[0].names if name in names]
    return [u.select(order) for u in units]


def resample_interval(value: float, resamples: Values, n: int) -> Estimate:
    """A figure with the percentile interval of its resamples; none if they do not vary.

    Resamples of few units vary too little, and their percentiles are those of a normal distribution
    where few units need Student's: both ends are moved out by t sqrt(n / (n - 1)) / z (Hesterberg
    2015, What Teachers Should Know About the Bootstrap, section 5.3).
    """
    defined = resamples[~np.isnan(resamples)]
    if not len(defined) or np.ptp(defined) <= 1e-12 * max(1.0, abs(value)):
        return Estimate.missing(n, value)
    low, high = percentile_interval(resamples, 0.95)
    if n <= MAX_WIDENED_UNITS:
        widening = student_quantile(0.975, n - 1) * math.sqrt(n / (n - 1)) / NORMAL_95
        low, high = value - (value - low) * widening, value + (high - value) * widening
    return Estimate(value, low, high, n)


def ratio_of_sums(sums: Values) -> Values:
    """The second column over the first: the mean of what is 1 for each unit in the first."""
    return np.asarray(sums[..., 1] / sums[..., 0])
