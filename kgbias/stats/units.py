"""Figures that follow from sums over units: the terms, pairs or statements of a benchmark.

Models that read the same units are resampled together, so that a difference between two is over the
same units. A figure may be any function of the sums: a mean, a ratio, or the mean of means.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from kgbias.stats.designs import Places, percentile_interval
from kgbias.stats.estimate import Estimate
from kgbias.stats.inference import (
    DEFAULT_DRAWS,
    Values,
    beta_binomial_interval,
    few_units_widening,
    share_interval,
)

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
        trials: for a share between the bounds, how many things each unit is a share of, [units].
    """

    names: tuple[str, ...]
    columns: Values
    statistic: Callable[[Values], Values]
    strata: tuple[int, ...] = ()
    bounds: tuple[float, float] = (-math.inf, math.inf)
    trials: Values | None = None

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
        """The figure with its interval over units: of a figure between bounds, that of a share (by
        its `trials`, or Wilson's at the effective sample size), as percentiles of few units end too
        near to a bound; of others, percentiles of the bootstrap. None if all resamples are the
        same: units that all agree do not tell how certain it is."""
        n, value = len(self.names), self.value if self.names else math.nan
        if n < 2 or math.isnan(value):
            return Estimate.missing(n, value)
        replicates = self.replicates(draws, seed)
        if not all(map(math.isfinite, self.bounds)) or self.strata or _is_constant(replicates):
            return resample_interval(value, replicates, n).keep_within(*self.bounds)
        lowest, highest = self.bounds
        width = highest - lowest
        if self.trials is not None:
            shares = (self.figure(self.columns) - lowest) / width
            successes = np.nan_to_num(np.rint(shares * self.trials))  # of a unit without trials: 0
            low, high = beta_binomial_interval(successes, self.trials)
        else:
            # Resamples of n units vary by (n - 1) / n of what they should.
            variance = float(np.nanvar(replicates)) / width**2 * n / (n - 1)
            low, high = share_interval((value - lowest) / width, variance, n, n - 1)
        low, high = lowest + width * low, lowest + width * high
        # The share's interval is not built around the figure, and must still hold it.
        return Estimate(value, min(low, value), max(high, value), n)

    def select(self, names: Sequence[str]) -> "UnitSums":
        """These units, in this order."""
        place = {name: n for n, name in enumerate(self.names)}
        places = [place[name] for name in names]
        strata = tuple(self.strata[n] for n in places) if self.strata else ()
        trials = None if self.trials is None else self.trials[places]
        return UnitSums(
            tuple(names), self.columns[places], self.statistic, strata, self.bounds, trials
        )

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
    Both ends are moved out where units are few (`few_units_widening`)."""
    if _is_constant(resamples):
        return Estimate.missing(n, value)
    low, high = percentile_interval(resamples, 0.95)
    widening = few_units_widening(n)
    low, high = value - (value - low) * widening, value + (high - value) * widening
    return Estimate(value, low, high, n)


def _is_constant(resamples: Values) -> bool:
    defined = resamples[~np.isnan(resamples)]
    if not len(defined):
        return True
    # The same figure summed in another order differs by rounding.
    return float(np.ptp(defined)) <= 1e-12 * max(1.0, float(np.abs(defined).max()))


def ratio_of_sums(sums: Values) -> Values:
    """The second column over the first: the mean of what is 1 for each unit in the first."""
    return np.asarray(sums[..., 1] / sums[..., 0])
