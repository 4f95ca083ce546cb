"""Values and how often and where each was drawn: what statistics are of."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from kgbias.stats.designs import Design, Places

Values = NDArray[np.float64]

_LISTED = 100_000  # observations of a sample that are listed one by one
MOST_DRAWN = 1 << 53  # observations that a multinomial can draw, and a float counts exactly


@dataclass(frozen=True, slots=True)
class Sample:
    """Values and how often each occurs: what a list with repeats would say, in the memory of its
    distinct rows.

    Attributes:
        values: [k], in any order, repeats allowed.
        counts: [k], whole numbers from 1 to 2**53.
        design: how it was drawn; None where that is not known, and each observation is taken for
            an independent draw.
        places: [k], at which place of the design each value was drawn.
        bounds: the least and the greatest value of a measure that is not of classes; None where it
            is, or has no bounds.
    """

    values: Values
    counts: NDArray[np.int64]
    design: Design | None = None
    places: Places | None = None
    bounds: tuple[float, float] | None = None

    @classmethod
    def of(cls, values: "Sample | Values") -> "Sample":
        """A sample as it is, or values that each occur once."""
        if isinstance(values, Sample):
            return values
        values = np.asarray(values, dtype=np.float64)
        return cls(values, np.ones(len(values), dtype=np.int64))

    @classmethod
    def joined(cls, samples: Sequence["Sample"]) -> "Sample":
        """All of several samples of one measure; their designs too, where all have one."""
        values = np.concatenate([s.values for s in samples])
        counts = np.concatenate([s.counts for s in samples])
        designs = [s.design for s in samples if s.design is not None]
        bounds = samples[0].bounds
        if len(designs) < len(samples):
            return cls(values, counts, bounds=bounds)
        starts = np.cumsum([0, *(len(d.clusters) for d in designs)])
        places = [
            s.places + n for s, n in zip(samples, starts, strict=False) if s.places is not None
        ]
        return cls(values, counts, Design.joined(designs), np.concatenate(places), bounds)

    def without(self, part: "Sample") -> "Sample":
        """What is left when a part of the sample is taken out of it. Taking out many parts in turn
        is much faster from a `collapsed` sample."""
        whole = self.collapsed()
        left = whole.counts.copy()
        np.subtract.at(left, np.searchsorted(whole.values, part.values), part.counts)
        return Sample(whole.values[left > 0], left[left > 0], bounds=self.bounds)

    def collapsed(self) -> "Sample":
        """The same sample with each distinct value once, in order."""
        if (self.values[1:] > self.values[:-1]).all():
            return self
        values, places = np.unique(self.values, return_inverse=True)
        counts = np.zeros(len(values), dtype=np.int64)
        np.add.at(counts, places, self.counts)
        return Sample(values, counts, bounds=self.bounds)

    @property
    def n(self) -> int:
        """The number of observations."""
        about = float(self.counts.sum(dtype=np.float64))
        return int(about) if about < MOST_DRAWN else sum(map(int, self.counts))

    @property
    def range(self) -> tuple[float, float]:
        """The bounds of the measure, or where it has none, the least and the greatest value: no
        mean and no quantile lies outside."""
        return self.bounds or (float(self.values.min()), float(self.values.max()))

    @property
    def mean(self) -> float:
        """The mean of the observations; NaN where there are none."""
        if not len(self.values):
            return math.nan
        weights = self.counts / self.counts.max()
        found = float(self.values @ weights / weights.sum())
        return min(max(found, float(self.values.min())), float(self.values.max()))

    def listed(self) -> Values | None:
        """The observations one by one, [n]; None where there are more than 100,000 and repeats
        make up most of them."""
        if self.n > max(_LISTED, 2 * len(self.values)):
            return None
        return np.repeat(self.values, self.counts)

    def distinct(self) -> tuple[Values, Values]:
        """The distinct values in order, and how often each occurs (as floats)."""
        values, places = np.unique(self.values, return_inverse=True)
        counts = np.bincount(places, self.counts.astype(np.float64), len(values))
        return values, counts.astype(np.float64)

    def outline(self) -> Values:
        """Values of the same distribution, to be drawn: the observations, or where they are too
        many to list, a thousand that divide them evenly."""
        listed = self.listed()
        if listed is not None:
            return listed
        values, counts = self.distinct()
        ends = np.cumsum(counts) / counts.sum()
        places = np.searchsorted(ends, (np.arange(1000) + 0.5) / 1000)
        return np.asarray(values[np.minimum(places, len(values) - 1)], dtype=np.float64)


def repeated(samples: Sequence[Sample]) -> Sample:
    """All of several samples that were drawn in the same way, one in each recrawl: as
    `Sample.joined`, with the recrawls as a level of its design."""
    whole = Sample.joined(samples)
    if whole.design is None:
        return whole
    sizes = [len(s.design.clusters) for s in samples if s.design is not None]
    crawls = np.repeat(np.arange(len(samples)), sizes)
    levels = {"recrawls": crawls, **whole.design.levels}
    return replace(whole, design=replace(whole.design, levels=levels))
