"""Means of samples that were asked differently, adjusted to one mix of prompts.

A prompt that supplies a predicate ("hate", "can't") supplies much of what is then said, and the
crawl decides which groups are asked with it and how often. So the values of a sample are separated
by what their prompt supplied (their form), and means are compared at the same mix of forms, pooled
over all samples compared: direct standardisation.
"""

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kgbias.stats.designs import Places, Resampled, effects, resample, tails
from kgbias.stats.inference import (
    DRAWS,
    Estimate,
    Sample,
    Values,
    mean,
    repeated,
    resampled,
    resampled_means,
)

CHOSEN = "chosen"
"""The form of prompts that leave the predicate to the model."""
FEWEST = 5
"""The fewest values for a sample to be compared with others."""
Keys = NDArray[np.object_]


@dataclass(frozen=True, eq=False, slots=True)
class Asked:
    """A sample and what its prompts supplied.

    Attributes:
        sample: the values.
        forms: [k], what the prompt of each value supplied; None if that is not known, and all
            values have one form.
        blocks: [k], for each value, the set of prompts among which its own could have gone to
            another sample, had the two not differed: finer than `forms`. None with `forms`.
    """

    sample: Sample
    forms: Keys | None = None
    blocks: Keys | None = None

    @classmethod
    def by_strata(cls, sample: Sample, names: Sequence[Hashable] | None) -> "Asked":
        """A sample whose forms are the strata of its design, by name (None: unknown)."""
        if sample.design is None or sample.places is None or names is None:
            return cls(sample)
        keys = np.empty(len(names), dtype=object)
        keys[:] = list(names)
        of_value = keys[sample.design.strata[sample.design.clusters[sample.places]]]
        return cls(sample, of_value, of_value)

    @classmethod
    def joined(cls, parts: Mapping[str, "Asked"]) -> "Asked":
        """Several samples as one, with forms and blocks kept apart by sample name."""
        sample = Sample.joined([a.sample for a in parts.values()])
        if any(a.forms is None or a.blocks is None for a in parts.values()):
            return cls(sample)
        forms, blocks = (
            np.concatenate([_named(name, getattr(a, which)) for name, a in parts.items()])
            for which in ("forms", "blocks")
        )
        return cls(sample, forms, blocks)

    @classmethod
    def pooled(cls, parts: Sequence["Asked"]) -> "Asked":
        """Several samples as one, with the same forms."""
        sample = Sample.joined([a.sample for a in parts])
        if any(a.forms is None for a in parts):
            return cls(sample)
        return cls(
            sample,
            np.concatenate([a.forms for a in parts if a.forms is not None]),
            np.concatenate([a.blocks for a in parts if a.blocks is not None]),
        )

    @classmethod
    def recrawled(cls, parts: Sequence["Asked"]) -> "Asked":
        """The same for crawls that repeat each other (`kgbias.stats.inference.repeated`)."""
        return replace(cls.pooled(parts), sample=repeated([a.sample for a in parts]))

    def formless(self) -> "Asked":
        """The same as if its prompts had supplied nothing; they stay what was drawn."""
        if self.forms is None:
            return self
        none = np.full(len(self.forms), "", dtype=object)
        return replace(self, forms=none, blocks=none)

    @property
    def n(self) -> int:
        return self.sample.n

    @property
    def given(self) -> int:
        """How many statements have a predicate that their prompt gave; 0 if that is not known."""
        gave = (n for form, n in self.sizes().items() if form and form != CHOSEN)
        return int(sum(gave))

    def sizes(self) -> dict[Hashable, float]:
        """How many observations each form has."""
        if self.forms is None:
            return {"": float(self.sample.counts.sum(dtype=np.float64))} if self.n else {}
        found: dict[Hashable, float] = {}
        for form, count in zip(self.forms, self.sample.counts.tolist(), strict=True):
            found[form] = found.get(form, 0.0) + count
        return found

    def table(self, forms: Sequence[Hashable]) -> tuple[Values, Values]:
        """The sum of the values of each of these forms, and their number, [f]."""
        values, counts = self.sample.values, self.sample.counts.astype(np.float64)
        if self.forms is None:
            return np.array([values @ counts]), np.array([counts.sum()])
        number = {form: n for n, form in enumerate(forms)}
        form = np.array([number[f] for f in self.forms], dtype=np.int64)
        sums, sizes = (np.bincount(form, x, len(forms)) for x in (counts * values, counts))
        return sums.astype(np.float64), sizes.astype(np.float64)

    def of(self, form: Hashable) -> Sample:
        """The values of one form; none if forms are not known."""
        if self.forms is None:
            return Sample.of(np.zeros(0))
        return self.among(self.forms == form).sample

    def among(self, kept: NDArray[np.bool_]) -> "Asked":
        """Some of the values, [k]."""
        s = self.sample
        sample = replace(
            s,
            values=s.values[kept],
            counts=s.counts[kept],
            places=None if s.places is None else s.places[kept],
        )
        forms, blocks = (None if a is None else a[kept] for a in (self.forms, self.blocks))
        return Asked(sample, forms, blocks)


def _named(name: str, keys: Keys) -> Keys:
    found = np.empty(len(keys), dtype=object)
    found[:] = [(name, key) for key in keys]
    return found


@dataclass(frozen=True, slots=True)
class Mix:
    """How much each form counts in a standardised mean; the weights sum to 1.

    Attributes:
        weights: for each form that all samples have, its share of all their observations.
        share: the share of all observations that have such a form.
    """

    weights: Mapping[Hashable, float]
    share: float

    @classmethod
    def of(cls, parts: Sequence[Asked]) -> "Mix":
        """The pooled mix of some samples, over the forms that all of them have; empty if they have
        no form in common."""
        sizes = [a.sizes() for a in parts]
        shared = [f for f in (sizes[0] if sizes else ()) if all(f in own for own in sizes)]
        total = sum(sum(own.values()) for own in sizes)
        found = {f: sum(own[f] for own in sizes) for f in shared}
        kept = sum(found.values())
        return cls({f: n / kept for f, n in found.items()}, kept / total if total else math.nan)

    def within(self, asked: Asked) -> Asked:
        """The values of the forms that count."""
        if asked.forms is None:
            return asked
        return asked.among(np.array([f in self.weights for f in asked.forms], dtype=bool))

    def mean(self, asked: Asked) -> float:
        """The standardised mean: the weighted mean of the forms. The weight of forms that the
        sample lacks goes to the others; NaN if it has none."""
        if asked.forms is None:
            return asked.sample.mean
        own = self.within(asked)
        return float(self._of(own)(np.ones(len(own.sample.values))))

    def resampled(self, asked: Asked, draws: int, rng: np.random.Generator) -> Resampled:
        """The standardised mean over resamples; for a measure with bounds, also what its
        bootstrap-t interval needs."""
        own = self.within(asked)
        s = own.sample
        if own.forms is None or s.design is None or s.places is None:
            return resampled(s, mean, draws, rng)
        errors = None
        if s.bounds is not None:
            clusters, c = s.design.clusters[s.places], len(s.design.strata)
            sizes, sums = (
                np.bincount(clusters, w, c).astype(np.float64)
                for w in (s.counts, s.counts * s.values)
            )
            form = np.zeros(c, dtype=np.int64)
            form[clusters] = self._codes(own)
            errors = partial(_standard_errors, sizes, sums, form, self._weights)
        return resample(s.design, s.places, self._of(own), errors, draws=draws, rng=rng)

    def estimate(self, asked: Asked, *, draws: int = DRAWS, seed: int = 0) -> Estimate:
        """The standardised mean with its 95% interval: a percentile interval or, for a measure with
        bounds, a bootstrap-t within them."""
        own = self.within(asked)
        n, value = own.n, self.mean(asked)
        design = own.sample.design
        if (n if design is None else len(design.strata)) < 2 or math.isnan(value):
            return Estimate.missing(n, value)
        rng = np.random.Generator(np.random.PCG64(seed))
        low, high = self.resampled(asked, draws, rng).interval(0.95, rng)
        if (bounds := own.sample.bounds) is not None:
            low, high = (min(max(end, bounds[0]), bounds[1]) for end in (low, high))
        return Estimate(value, low, high, n)

    @property
    def _weights(self) -> Values:
        return np.array(list(self.weights.values()), dtype=np.float64)

    def _codes(self, own: Asked) -> Places:
        assert own.forms is not None
        numbers = {f: n for n, f in enumerate(self.weights)}
        return np.array([numbers[f] for f in own.forms], dtype=np.int64)

    def _of(self, own: Asked) -> Any:
        """The standardised mean of values as a function of their weights, for `resample`."""
        values, counts = own.sample.values, own.sample.counts.astype(np.float64)
        apart = np.zeros((len(values), len(self.weights)))
        apart[np.arange(len(values)), self._codes(own)] = counts
        totals = apart * values[:, None]

        def of(weights: Values, some: Places | None = None, share: float = 1.0) -> Values:
            if some is None:
                return weighted(weights @ totals, weights @ apart, self._weights)
            part = weights[..., some]
            return weighted(part @ totals[some], part @ apart[some], self._weights)

        return of


def weighted(sums: Values, sizes: Values, weights: Values) -> Values:
    """Weighted means of forms, [..., f]: the weight of forms without a value goes to the others;
    NaN if none has one."""
    with np.errstate(invalid="ignore", divide="ignore"):
        means = np.where(sizes > 0, sums / sizes, 0.0)
        return np.asarray(means @ weights / ((sizes > 0) @ weights), dtype=np.float64)


def _standard_errors(
    sizes: Values, sums: Values, form: Places, weights: Values, often: Values
) -> Values:
    """The standard errors of standardised means of clusters, [draws], given the size, sum and form
    of each, [c], and how often each was drawn, [draws, c]: of the linearised ratios (Taylor)."""
    forms = np.zeros((len(form), len(weights)))
    forms[np.arange(len(form)), form] = 1.0
    total, below = often @ (forms * sums[:, None]), often @ (forms * sizes[:, None])
    with np.errstate(invalid="ignore", divide="ignore"):
        means = np.where(below > 0, total / below, 0.0)
        share = np.where(below > 0, weights / below, 0.0)
        share = share / ((below > 0) @ weights)[:, None]
        apart = share[:, form] * (sums - means[:, form] * sizes)
    n = int((sizes > 0).sum())
    squares = (often * apart**2).sum(axis=-1)
    return np.asarray(np.sqrt(squares * (n / (n - 1) if n > 1 else 0.0)), dtype=np.float64)


@dataclass(frozen=True, slots=True)
class Redrawn:
    """A sample resampled as it was drawn: the sums and sizes of its forms, [draws, f]; for a level
    above (wordings, recrawls), by level and unit, those of the unit alone: as they are, [f], and
    resampled. Redrawn samples with forms in the same order can be added and subtracted."""

    sums: Values
    sizes: Values
    units: Mapping[tuple[str, int], tuple[Values, ...]]

    @classmethod
    def of(
        cls, asked: Asked, forms: Sequence[Hashable], *, draws: int = DRAWS, seed: int = 0
    ) -> "Redrawn":
        """`forms` are all those of the sample, and perhaps others."""
        s = asked.sample
        rng = np.random.Generator(np.random.PCG64(seed))
        if asked.forms is None or s.design is None or s.places is None:
            means = resampled_means(s, draws, rng)
            n = float(s.counts.sum(dtype=np.float64))
            return cls(means[:, None] * n, np.full((draws, 1), n), {})
        number = {form: n for n, form in enumerate(forms)}
        form = np.array([number[f] for f in asked.forms], dtype=np.int64)
        counts, f, c = s.counts.astype(np.float64), len(forms), len(s.design.strata)
        place = s.design.clusters[s.places] * f + form

        def table(kept: Values) -> Values:
            """The sums and sizes of each form in each cluster, [c, 2f]."""
            both = [np.bincount(place, kept * x, c * f).reshape(c, f) for x in (s.values, 1.0)]
            return np.concatenate(both, axis=1)

        tables, keys = [table(counts)], []
        for name, of_place in s.design.levels.items():
            own = of_place[s.places]
            for unit in np.unique(own).tolist():
                keys.append((name, unit))
                tables.append(table(counts * (own == unit)))
        every = np.concatenate(tables, axis=1)
        drawn = np.concatenate([w @ every for w in s.design.weights(draws, rng, every.shape[1])])
        parts = np.split(drawn, 2 * len(tables), axis=1)
        units = {
            key: (*np.split(tables[n].sum(axis=0), 2), parts[2 * n], parts[2 * n + 1])
            for n, key in enumerate(keys, 1)
        }
        return cls(parts[0], parts[1], units)

    @classmethod
    def total(cls, parts: Sequence["Redrawn"]) -> "Redrawn":
        """Several samples as one."""
        keys = dict.fromkeys(key for r in parts for key in r.units)
        return cls(
            sum_of([r.sums for r in parts]),
            sum_of([r.sizes for r in parts]),
            {
                key: tuple(
                    sum_of([r.units[key][n] for r in parts if key in r.units]) for n in range(4)
                )
                for key in keys
            },
        )

    def without(self, part: "Redrawn") -> "Redrawn":
        """The total minus one of its parts."""
        return Redrawn(
            self.sums - part.sums,
            self.sizes - part.sizes,
            {
                key: tuple(own - taken for own, taken in zip(found, part.units[key], strict=True))
                if key in part.units
                else found
                for key, found in self.units.items()
            },
        )

    def minus(
        self, other: "Redrawn", figure: Callable[[Values, Values], Values], *, seed: int = 0
    ) -> tuple[float, float]:
        """The ends of the 95% percentile interval of the difference of a figure of sums and sizes,
        [..., f], each level adding the effects of its units (`stats.designs.effects`)."""
        rng = np.random.Generator(np.random.PCG64(seed))
        drawn = figure(self.sums, self.sizes) - figure(other.sums, other.sizes)
        levels: dict[str, list[tuple[float, float]]] = {}
        for (level, unit), (sums, sizes, own_sums, own_sizes) in self.units.items():
            theirs = other.units.get((level, unit))
            if theirs is None:
                continue
            apart = figure(own_sums, own_sizes) - figure(theirs[2], theirs[3])
            known = apart[~np.isnan(apart)]
            noise = float(known.var(ddof=1)) if len(known) > 1 else math.nan
            value = float(figure(sums, sizes) - figure(theirs[0], theirs[1]))
            levels.setdefault(level, []).append((value, noise))
        for found in levels.values():
            values, noise_of = np.array(found, dtype=np.float64).T
            drawn = drawn + effects(values, noise_of, len(drawn), rng)
        return tails(drawn, 0.95)


def sum_of(arrays: Sequence[Values]) -> Values:
    """The sum of arrays of one shape."""
    return np.asarray(np.sum(arrays, axis=0), dtype=np.float64)
