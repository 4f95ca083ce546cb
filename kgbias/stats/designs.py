"""How a sample was drawn, and how to draw it again: clusters in strata, and a level above them.

Answers to one prompt share what the prompt says, so they are not independent draws but a cluster.
What a crawl's configuration fixes (an initial predicate, a strategy) is the same in every crawl: it
is a stratum, and clusters are resampled within it. Wordings, and crawls that repeat each other, are
a level above.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kgbias.stats.estimate import Interval

Values = NDArray[np.float64]
Places = NDArray[np.int64]

_MAX_CHUNK_WEIGHTS = 4_000_000  # weights in memory at once
SUBTRACTED_NOISE_SHARE = 0.6
"""Of the variance that sampling adds between units: what is taken off (`draw_mean_effects`)."""
NORMAL_95 = 1.959964  # the standard errors to either end of a normal 95% interval
_MIN_ERROR_SHARE = 1e-6  # the least share of the standard error that a resample may have


@dataclass(frozen=True, eq=False, slots=True)
class Design:
    """The places at which a sample was drawn; a place may have yielded nothing that counts.

    Attributes:
        clusters: [p], the cluster of each place, from 0.
        strata: [c], the stratum of each cluster, from 0.
        levels: the levels above, "recrawls" or "wordings", with the crawl or wording of each
            place, [p]; only those with several units.
    """

    clusters: Places
    strata: Places
    levels: Mapping[str, Places] = field(default_factory=dict)

    @property
    def covers(self) -> tuple[str, ...]:
        """The variances that an interval over this design covers: "statements", and its levels."""
        return ("statements", *self.levels)

    @property
    def independent(self) -> bool:
        """Whether every place is a cluster of its own."""
        return len(self.strata) == len(self.clusters)

    @classmethod
    def join(cls, designs: Sequence["Design"]) -> "Design":
        """Several designs as one, each in its own strata. A level that all have is kept; its units
        are the same in all of them."""
        clusters, strata, cluster_count, stratum_count = [], [], 0, 0
        for design in designs:
            clusters.append(design.clusters + cluster_count)
            strata.append(design.strata + stratum_count)
            cluster_count += len(design.strata)
            stratum_count += int(design.strata.max(initial=-1)) + 1
        levels = {
            name: np.concatenate([d.levels[name] for d in designs])
            for name in (designs[0].levels if designs else ())
            if all(name in d.levels for d in designs)
        }
        return cls(np.concatenate(clusters), np.concatenate(strata), levels)

    def weights(self, draws: int, rng: np.random.Generator, columns: int) -> Iterator[Values]:
        """How often each cluster is drawn, [some draws, c], until there are `draws`; `columns` is
        how many values each draw is turned into.

        From the n clusters of a stratum, n - 1 are drawn with replacement and count n / (n - 1)
        each, so that the variance of a total over draws is unbiased, however few there are (Rao and
        Wu 1988). Strata of one cluster are drawn together.
        """
        strata = self.resampling_strata()
        step = max(1, _MAX_CHUNK_WEIGHTS // max(1, columns, len(self.strata)))
        for start in range(0, draws, step):
            rows = min(step, draws - start)
            weights = np.ones((rows, len(self.strata)))
            for members in strata:
                n = len(members)
                picks = rng.integers(0, n, size=(rows, n - 1))
                # One bincount for all rows: those of row r go into bins r n to r n + n - 1.
                picks += np.arange(rows)[:, None] * n
                counts = np.bincount(picks.ravel(), minlength=rows * n).reshape(rows, n)
                weights[:, members] = counts * (n / (n - 1))
            yield weights

    def resampling_strata(self) -> list[Places]:
        """The clusters of each stratum of two or more; lone ones are put together, and one that is
        still alone joins the largest."""
        order = np.argsort(self.strata, kind="stable")
        ends = np.flatnonzero(np.diff(self.strata[order])) + 1
        members = np.split(order, ends)
        strata = [m for m in members if len(m) > 1]
        lone = [m for m in members if len(m) == 1]
        if len(lone) > 1 or (lone and not strata):
            # A stratum of one cluster shows no variance. Put together, as in surveys (collapsed
            # strata; Cochran 1977, section 5A.12), such strata show rather too much of it.
            strata.append(np.concatenate(lone))
        elif lone:
            largest = max(range(len(strata)), key=lambda n: len(strata[n]))
            strata[largest] = np.concatenate([strata[largest], lone[0]])
        # A single cluster in all has nothing to be exchanged with.
        return [m for m in strata if len(m) > 1]


@dataclass(frozen=True, slots=True)
class StudentScale:
    """A mean, its standard error, and the standard error of each of its resamples, [draws]."""

    value: float
    error: float
    errors: Values

    def studentise(self, drawn: Values) -> Values:
        """The mean minus each resample's deviation from it, in the resample's own standard errors:
        percentiles of these give the bootstrap-t interval (Efron 1982; Hall 1988). Values that are
        all the same have hardly any error, and put a resample far off."""
        if not self.error:
            return drawn
        deviations = (drawn - self.value) / np.maximum(self.errors, self.error * _MIN_ERROR_SHARE)
        return self.value - deviations * self.error


class UnitValue(NamedTuple):
    """The statistic of one unit of a level, such as one wording: its value, and the variance of
    that over the resamples of its places."""

    value: float
    noise: float


@dataclass(frozen=True, slots=True)
class Resamples:
    """A statistic over resamples of a design.

    Attributes:
        place_draws: [draws], over the places alone.
        units: for each level, the statistic of each of its units.
        scale: for a mean whose interval is a bootstrap-t; None: a percentile interval.
    """

    place_draws: Values
    units: Mapping[str, Mapping[int, UnitValue]]
    scale: StudentScale | None = None

    def subtract(self, other: "Resamples") -> "Resamples":
        """The difference of two statistics that were resampled separately; a level that both have
        becomes that of their difference, unit by unit. Its interval is a percentile interval: the
        skew of two means all but cancels."""
        differences: dict[str, dict[int, UnitValue]] = {}
        for name in self.units:
            if name not in other.units:
                continue
            own, theirs = self.units[name], other.units[name]
            differences[name] = {
                unit: UnitValue(
                    own[unit].value - theirs[unit].value, own[unit].noise + theirs[unit].noise
                )
                for unit in own.keys() & theirs.keys()
            }
        return Resamples(self.place_draws - other.place_draws, differences)

    def replicates(self, rng: np.random.Generator) -> Values:
        """The statistic over resamples of the places and of all levels, [draws]: each level adds
        the `draw_mean_effects` of its units."""
        return self._with_effects(self.place_draws, rng)

    def interval(self, level: float, rng: np.random.Generator) -> Interval:
        """The ends of its interval, over resamples of the places and of all levels."""
        drawn = self.place_draws if self.scale is None else self.scale.studentise(self.place_draws)
        return percentile_interval(self._with_effects(drawn, rng), level)

    def variance(self, rng: np.random.Generator) -> float:
        """The variance over resamples of the places, and of all levels: of these, whose plausible
        effects have heavy tails, that of the normal distribution with the same 95%."""
        low, high = np.quantile(
            self._with_effects(np.zeros_like(self.place_draws), rng), [0.025, 0.975]
        )
        return float(np.var(self.place_draws)) + float((high - low) / (2 * NORMAL_95)) ** 2

    def _with_effects(self, drawn: Values, rng: np.random.Generator) -> Values:
        for units in self.units.values():
            values, noise = np.array(list(units.values()), dtype=np.float64).reshape(-1, 2).T
            drawn = drawn + draw_mean_effects(values, noise, len(drawn), rng)
        return drawn


def percentile_interval(draws: Values, level: float) -> Interval:
    """The ends of a percentile interval; undefined draws (NaN) are left out, and if more than half
    are undefined there is no interval."""
    defined = draws[~np.isnan(draws)]
    if len(defined) < len(draws) / 2:
        return Interval(math.nan, math.nan)
    tail = (1 - level) / 2
    low, high = np.quantile(defined, [tail, 1 - tail])
    return Interval(float(low), float(high))


def resample(
    design: Design,
    places: Places,
    statistic: Callable[..., Values],
    errors: Callable[[Values], Values] | None = None,
    *,
    draws: int,
    rng: np.random.Generator,
) -> Resamples:
    """Resample a statistic of values that were drawn by a design.

    `places` has the place of each value, [k]. `statistic` maps weights [..., k] of the values to
    [...]; given also which values belong to a unit and its share of the places, it is that of these
    alone, on the scale of the whole. `errors` maps weights [draws, c] of the clusters to the
    statistic's standard errors, [draws].
    """
    clusters = design.clusters[places]
    units = [
        (name, unit, members, share)
        for name, of_place in design.levels.items()
        for unit, members, share in _split_units(of_place, places)
    ]
    # First the statistic of all values, then that of each unit alone, from the same weights.
    replicates: list[list[Values]] = [[] for _ in range(len(units) + 1)]
    error_draws: list[Values] = []
    for weights in design.weights(draws, rng, len(places)):
        value_weights = weights[:, clusters]
        replicates[0].append(statistic(value_weights))
        if errors is not None:
            error_draws.append(errors(weights))
        for part, (_, _, members, share) in zip(replicates[1:], units, strict=True):
            part.append(statistic(value_weights, members, share))
    levels: dict[str, dict[int, UnitValue]] = {name: {} for name in design.levels}
    ones = np.ones(len(places))
    for part, (name, unit, members, share) in zip(replicates[1:], units, strict=True):
        value = float(statistic(ones, members, share))
        levels[name][unit] = UnitValue(value, _defined_variance(np.concatenate(part)))
    scale = None
    if errors is not None:
        error = float(errors(np.ones((1, len(design.strata))))[0])
        scale = StudentScale(float(statistic(ones)), error, np.concatenate(error_draws))
    return Resamples(np.concatenate(replicates[0]), levels, scale)


def draw_mean_effects(
    values: Values, noise: Values, draws: int, rng: np.random.Generator
) -> Values:
    """Plausible means of the effects of a level's units, [draws], given each unit's value and the
    variance of its own sampling: Student's t, with one degree of freedom fewer than there are
    units, times the standard error of their mean.

    Three wordings resampled are never further apart than they are, and their intervals contain the
    mean of all wordings in only 80 to 88 of 100 samples where wordings matter. The variance of the
    effects is the one between units minus 0.6 of the noise: by chance a few units may lie so close
    together that taking off all of it leaves nothing, and intervals fall short
    (`benchmarks/crawl_coverage.py`).
    """
    defined = ~(np.isnan(values) | np.isnan(noise))
    values, n = values[defined], int(defined.sum())
    if n < 2:
        return np.zeros(draws)
    effect_variance = max(
        0.0, float(values.var(ddof=1)) - SUBTRACTED_NOISE_SHARE * float(noise[defined].mean())
    )
    return np.asarray(np.sqrt(effect_variance / n) * rng.standard_t(n - 1, draws))


def resample_effects(values: Values, noise: Values, draws: int, rng: np.random.Generator) -> Values:
    """Means of resampled effects of the units of a level, [draws], given each unit's value and the
    variance of its own sampling.

    The statistic of each unit differs from the others by its own effect and by the sampling of its
    places. The variance of the effects is the one between units minus the sampling variance, never
    below 0; the units' deviations, reflated to it, are drawn with replacement:
    the two-level bootstrap of Davison and Hinkley 1997, section 3.8, with the reflated residuals of
    Carpenter, Goldstein and Rasbash 2003 (resampling both levels as they are would count the
    sampling of the places twice).
    """
    defined = ~(np.isnan(values) | np.isnan(noise))
    values, n = values[defined], int(defined.sum())
    if n < 2:
        return np.zeros(draws)
    total_variance = float(values.var(ddof=1))
    effect_variance = max(0.0, total_variance - float(noise[defined].mean()))
    if not effect_variance:
        return np.zeros(draws)
    # n / (n - 1), as deviations from their own mean are too small by its inverse.
    reflated = (values - values.mean()) * np.sqrt(effect_variance / total_variance * n / (n - 1))
    return np.asarray(reflated[rng.integers(0, n, size=(draws, n))].mean(axis=1))


def _defined_variance(draws: Values) -> float:
    defined = draws[~np.isnan(draws)]
    return float(defined.var(ddof=1)) if len(defined) > 1 else np.nan


def _split_units(units: Places, places: Places) -> list[tuple[int, Places, float]]:
    """Each unit that has a value, its values, and its share of all places."""
    value_units = units[places]
    return [
        # Of all places, not of those with a value: a place that yields nothing is part of its unit.
        (int(u), np.flatnonzero(value_units == u), float((units == u).mean()))
        for u in np.unique(value_units)
    ]
