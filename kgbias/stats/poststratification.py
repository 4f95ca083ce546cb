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
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kgbias.stats.designs import (
    Design,
    Places,
    Resamples,
    percentile_interval,
    resample,
    resample_effects,
)
from kgbias.stats.estimate import Interval
from kgbias.stats.inference import (
    DEFAULT_DRAWS,
    MIN_BOUNDED_VALUES,
    Estimate,
    Sample,
    Values,
    is_one_sided,
    jeffreys_label_mean_interval,
    join_recrawls,
    mean,
    resample_means,
    resample_statistic,
    student_widening,
)

MODEL_CHOSEN_FORM = "chosen"
"""The form of prompts that leave the predicate to the model."""
MIN_COMPARED_VALUES = 5
"""The fewest values for a sample to be compared with others."""
Keys = NDArray[np.object_]


class FormSums(NamedTuple):
    """The sum of the values of each form, and their number, [..., f]."""

    sums: Values
    sizes: Values


@dataclass(frozen=True, eq=False, slots=True)
class StratifiedSample:
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
    def by_strata(cls, sample: Sample, names: Sequence[Hashable] | None) -> "StratifiedSample":
        """A sample whose forms are the strata of its design, by name (None: unknown)."""
        if sample.design is None or sample.places is None or names is None:
            return cls(sample)
        # Filled in place: `np.array` would make a row of each name that is a tuple.
        keys = np.empty(len(names), dtype=object)
        keys[:] = list(names)
        of_value = keys[sample.design.strata[sample.design.clusters[sample.places]]]
        return cls(sample, of_value, of_value)

    @classmethod
    def join_named(cls, parts: Mapping[str, "StratifiedSample"]) -> "StratifiedSample":
        """Several samples as one, with forms and blocks kept apart by sample name."""
        sample = Sample.join([a.sample for a in parts.values()])
        if any(a.forms is None or a.blocks is None for a in parts.values()):
            return cls(sample)
        forms, blocks = (
            np.concatenate([_name_keys(name, getattr(a, field_name)) for name, a in parts.items()])
            for field_name in ("forms", "blocks")
        )
        return cls(sample, forms, blocks)

    @classmethod
    def pool(cls, parts: Sequence["StratifiedSample"]) -> "StratifiedSample":
        """Several samples as one, with the same forms."""
        sample = Sample.join([a.sample for a in parts])
        if any(a.forms is None for a in parts):
            return cls(sample)
        return cls(
            sample,
            np.concatenate([a.forms for a in parts if a.forms is not None]),
            np.concatenate([a.blocks for a in parts if a.blocks is not None]),
        )

    @classmethod
    def pool_recrawls(cls, parts: Sequence["StratifiedSample"]) -> "StratifiedSample":
        """The same for crawls that repeat each other (`kgbias.stats.inference.join_recrawls`)."""
        return replace(cls.pool(parts), sample=join_recrawls([a.sample for a in parts]))

    def without_forms(self) -> "StratifiedSample":
        """The same as if its prompts had supplied nothing; they stay what was drawn."""
        if self.forms is None:
            return self
        empty = np.full(len(self.forms), "", dtype=object)
        return replace(self, forms=empty, blocks=empty)

    @property
    def n(self) -> int:
        return self.sample.n

    @property
    def prompted_count(self) -> int:
        """How many statements have a predicate that their prompt gave; 0 if that is not known."""
        gave = (n for form, n in self.sizes().items() if form and form != MODEL_CHOSEN_FORM)
        return int(sum(gave))

    def sizes(self) -> dict[Hashable, float]:
        """How many observations each form has."""
        if self.forms is None:
            return {"": float(self.sample.counts.sum(dtype=np.float64))} if self.n else {}
        sizes: dict[Hashable, float] = {}
        for form, count in zip(self.forms, self.sample.counts.tolist(), strict=True):
            sizes[form] = sizes.get(form, 0.0) + count
        return sizes

    def table(self, forms: Sequence[Hashable]) -> "FormSums":
        """The sum of the values of each of these forms, and their number, [f]."""
        values, counts = self.sample.values, self.sample.counts.astype(np.float64)
        if self.forms is None:
            return FormSums(np.array([values @ counts]), np.array([counts.sum()]))
        numbers = {form: n for n, form in enumerate(forms)}
        form = np.array([numbers[f] for f in self.forms], dtype=np.int64)
        sums, sizes = (np.bincount(form, x, len(forms)) for x in (counts * values, counts))
        return FormSums(sums.astype(np.float64), sizes.astype(np.float64))

    def form_sample(self, form: Hashable) -> Sample:
        """The values of one form; none if forms are not known."""
        if self.forms is None:
            return Sample.from_values(np.zeros(0))
        return self.select(self.forms == form).sample

    def holding(self, label: float) -> "StratifiedSample":
        """The same with 1 for the values that are this label, and 0 for the others."""
        values = (self.sample.values == label).astype(np.float64)
        return replace(self, sample=replace(self.sample, values=values))

    def select(self, mask: NDArray[np.bool_]) -> "StratifiedSample":
        """Some of the values, [k]."""
        source = self.sample
        sample = replace(
            source,
            values=source.values[mask],
            counts=source.counts[mask],
            places=None if source.places is None else source.places[mask],
        )
        forms, blocks = (None if a is None else a[mask] for a in (self.forms, self.blocks))
        return StratifiedSample(sample, forms, blocks)


def _name_keys(name: str, keys: Keys) -> Keys:
    # Filled in place: `np.array` would make rows of the pairs.
    named = np.empty(len(keys), dtype=object)
    named[:] = [(name, key) for key in keys]
    return named


@dataclass(frozen=True, slots=True)
class StandardWeights:
    """How much each form counts in a standardised mean; the weights sum to 1.

    Attributes:
        weights: for each form that all samples have, its share of all their observations.
        share: the share of all observations that have such a form.
    """

    weights: Mapping[Hashable, float]
    share: float

    @classmethod
    def from_samples(cls, parts: Sequence[StratifiedSample]) -> "StandardWeights":
        """The pooled mix of some samples, over the forms that all of them have; empty if they have
        no form in common."""
        sizes = [a.sizes() for a in parts]
        shared = [f for f in (sizes[0] if sizes else ()) if all(f in own for own in sizes)]
        total = sum(sum(own.values()) for own in sizes)
        pooled = {f: sum(own[f] for own in sizes) for f in shared}
        shared_total = sum(pooled.values())
        return cls(
            {f: n / shared_total for f, n in pooled.items()},
            shared_total / total if total else math.nan,
        )

    def restrict(self, stratified: StratifiedSample) -> StratifiedSample:
        """The values of the forms that count."""
        if stratified.forms is None:
            return stratified
        return stratified.select(
            np.array([f in self.weights for f in stratified.forms], dtype=bool)
        )

    def mean(self, stratified: StratifiedSample) -> float:
        """The standardised mean: the weighted mean of the forms. The weight of forms that the
        sample lacks goes to the others; NaN if it has none."""
        if stratified.forms is None:
            return stratified.sample.mean
        restricted = self.restrict(stratified)
        return float(self._mean_function(restricted)(np.ones(len(restricted.sample.values))))

    def resample_mean(
        self, stratified: StratifiedSample, draws: int, rng: np.random.Generator
    ) -> Resamples:
        """The standardised mean over resamples; for a measure with bounds, also what its
        bootstrap-t interval needs."""
        restricted = self.restrict(stratified)
        sample = restricted.sample
        if restricted.forms is None or sample.design is None or sample.places is None:
            return resample_statistic(sample, mean, draws, rng)
        errors = None
        if sample.bounds is not None:
            clusters, cluster_count = (
                sample.design.clusters[sample.places],
                len(sample.design.strata),
            )
            sizes, sums = (
                np.bincount(clusters, w, cluster_count).astype(np.float64)
                for w in (sample.counts, sample.counts * sample.values)
            )
            form = np.zeros(cluster_count, dtype=np.int64)
            form[clusters] = self._form_codes(restricted)
            errors = partial(_standard_errors, sizes, sums, form, self._weights)
        return resample(
            sample.design,
            sample.places,
            self._mean_function(restricted),
            errors,
            draws=draws,
            rng=rng,
        )

    def estimate(
        self, stratified: StratifiedSample, *, draws: int = DEFAULT_DRAWS, seed: int = 0
    ) -> Estimate:
        """The standardised mean with its 95% interval: a percentile interval, Student's where
        prompts are few, or for a measure with bounds, a bootstrap-t within them, from 20 values
        on. Where nearly all labels are the same, it is that of Jeffreys' prior."""
        restricted = self.restrict(stratified)
        n, value = restricted.n, self.mean(stratified)
        design = restricted.sample.design
        if (n if design is None else len(design.strata)) < 2 or math.isnan(value):
            return Estimate.missing(n, value)
        rng = np.random.Generator(np.random.PCG64(seed))
        resamples = self.resample_mean(stratified, draws, rng)
        if is_one_sided(restricted.sample):
            low, high = self._label_interval(restricted, resamples, rng)
            return Estimate(value, min(low, value), max(high, value), n)
        if resamples.scale is not None and n < MIN_BOUNDED_VALUES:
            return Estimate.missing(n, value)
        if (restricted.sample.values == restricted.sample.values[0]).all():
            return Estimate(value, value, value, n)
        low, high = resamples.interval(0.95, rng)
        if resamples.scale is None:
            widening = student_widening(n - 1 if design is None else _design_freedom(design))
            low, high = value - (value - low) * widening, value + (high - value) * widening
        estimate, bounds = Estimate(value, low, high, n), restricted.sample.known_bounds
        return estimate if bounds is None else estimate.keep_within(*bounds)

    def _label_interval(
        self, restricted: StratifiedSample, resamples: Resamples, rng: np.random.Generator
    ) -> Interval:
        """The interval of a mean of labels of which nearly all are the same."""
        sample = restricted.sample
        labels = sample.labels
        shares = np.array([self.mean(restricted.holding(label)) for label in labels])
        clusters = restricted.n if sample.design is None else len(sample.design.strata)
        variance = None if sample.design is None else resamples.variance(rng)
        return jeffreys_label_mean_interval(
            labels, shares, restricted.n, clusters, variance, 0.95, rng
        )

    @property
    def _weights(self) -> Values:
        return np.array(list(self.weights.values()), dtype=np.float64)

    def _form_codes(self, stratified: StratifiedSample) -> Places:
        assert stratified.forms is not None
        numbers = {f: n for n, f in enumerate(self.weights)}
        return np.array([numbers[f] for f in stratified.forms], dtype=np.int64)

    def _mean_function(self, stratified: StratifiedSample) -> Any:
        """The standardised mean of values as a function of their weights, for `resample`."""
        values, counts = stratified.sample.values, stratified.sample.counts.astype(np.float64)
        form_counts = np.zeros((len(values), len(self.weights)))
        form_counts[np.arange(len(values)), self._form_codes(stratified)] = counts
        totals = form_counts * values[:, None]

        def evaluate(weights: Values, selected: Places | None = None, share: float = 1.0) -> Values:
            if selected is None:
                return weighted_means(weights @ totals, weights @ form_counts, self._weights)
            selected_weights = weights[..., selected]
            return weighted_means(
                selected_weights @ totals[selected],
                selected_weights @ form_counts[selected],
                self._weights,
            )

        return evaluate


def weighted_means(sums: Values, sizes: Values, weights: Values) -> Values:
    """Weighted means of forms, [..., f]: the weight of forms without a value goes to the others;
    NaN if none has one."""
    with np.errstate(invalid="ignore", divide="ignore"):
        means = np.where(sizes > 0, sums / sizes, 0.0)
        return np.asarray(means @ weights / ((sizes > 0) @ weights), dtype=np.float64)


def _standard_errors(
    sizes: Values, sums: Values, form: Places, weights: Values, times_drawn: Values
) -> Values:
    """The standard errors of standardised means of clusters, [draws], given the size, sum and form
    of each, [c], and how often each was drawn, [draws, c]: of the linearised ratios (Taylor)."""
    forms = np.zeros((len(form), len(weights)))
    forms[np.arange(len(form)), form] = 1.0
    total, size_totals = (
        times_drawn @ (forms * sums[:, None]),
        times_drawn @ (forms * sizes[:, None]),
    )
    with np.errstate(invalid="ignore", divide="ignore"):
        means = np.where(size_totals > 0, total / size_totals, 0.0)
        share = np.where(size_totals > 0, weights / size_totals, 0.0)
        share = share / ((size_totals > 0) @ weights)[:, None]
        deviations = share[:, form] * (sums - means[:, form] * sizes)
    n = int((sizes > 0).sum())
    squares = (times_drawn * deviations**2).sum(axis=-1)
    return np.asarray(np.sqrt(squares * (n / (n - 1) if n > 1 else 0.0)), dtype=np.float64)


class UnitForms(NamedTuple):
    """The sums and sizes of the forms of one unit alone, such as one wording: as they are, [f], and
    resampled, [draws, f]."""

    sums: Values
    sizes: Values
    drawn_sums: Values
    drawn_sizes: Values

    @classmethod
    def add(cls, units: Sequence["UnitForms"]) -> "UnitForms":
        return cls(
            sum_arrays([unit.sums for unit in units]),
            sum_arrays([unit.sizes for unit in units]),
            sum_arrays([unit.drawn_sums for unit in units]),
            sum_arrays([unit.drawn_sizes for unit in units]),
        )

    def subtract(self, part: "UnitForms") -> "UnitForms":
        return UnitForms(
            self.sums - part.sums,
            self.sizes - part.sizes,
            self.drawn_sums - part.drawn_sums,
            self.drawn_sizes - part.drawn_sizes,
        )


@dataclass(frozen=True, slots=True)
class FormResamples:
    """A sample resampled as it was drawn: the sums and sizes of its forms, [draws, f]; for a level
    above (wordings, recrawls), by level and unit, those of the unit alone. Redrawn samples with
    forms in the same order can be added and subtracted. `freedom`: the degrees of freedom of their
    variance."""

    sums: Values
    sizes: Values
    units: Mapping[tuple[str, int], UnitForms]
    freedom: float

    @classmethod
    def from_sample(
        cls,
        stratified: StratifiedSample,
        forms: Sequence[Hashable],
        *,
        draws: int = DEFAULT_DRAWS,
        seed: int = 0,
    ) -> "FormResamples":
        """`forms` are all those of the sample, and perhaps others."""
        sample = stratified.sample
        rng = np.random.Generator(np.random.PCG64(seed))
        if stratified.forms is None or sample.design is None or sample.places is None:
            # Of one form, whose number does not vary: only the means are drawn.
            means = resample_means(sample, draws, rng)
            size = float(sample.counts.sum(dtype=np.float64))
            return cls(means[:, None] * size, np.full((draws, 1), size), {}, size - 1)
        numbers = {form: number for number, form in enumerate(forms)}
        form = np.array([numbers[f] for f in stratified.forms], dtype=np.int64)
        counts, f, cluster_count = (
            sample.counts.astype(np.float64),
            len(forms),
            len(sample.design.strata),
        )
        place = sample.design.clusters[sample.places] * f + form

        def table(weights: Values) -> Values:
            """The sums and sizes of each form in each cluster, [c, 2f]."""
            both = [
                np.bincount(place, weights * x, cluster_count * f).reshape(cluster_count, f)
                for x in (sample.values, 1.0)
            ]
            return np.concatenate(both, axis=1)

        # First all values, then those of each unit: side by side, one product resamples them all.
        tables, keys = [table(counts)], []
        for name, of_place in sample.design.levels.items():
            value_units = of_place[sample.places]
            for unit in np.unique(value_units).tolist():
                keys.append((name, unit))
                tables.append(table(counts * (value_units == unit)))
        all_tables = np.concatenate(tables, axis=1)
        drawn_sums = np.concatenate(
            [w @ all_tables for w in sample.design.weights(draws, rng, all_tables.shape[1])]
        )
        columns = np.split(drawn_sums, 2 * len(tables), axis=1)
        units = {}
        for number, key in enumerate(keys, 1):
            sums, sizes = np.split(tables[number].sum(axis=0), 2)
            units[key] = UnitForms(sums, sizes, columns[2 * number], columns[2 * number + 1])
        return cls(columns[0], columns[1], units, _design_freedom(sample.design))

    @classmethod
    def pool(cls, parts: Sequence["FormResamples"]) -> "FormResamples":
        """Several samples as one."""
        keys = dict.fromkeys(key for r in parts for key in r.units)
        return cls(
            sum_arrays([r.sums for r in parts]),
            sum_arrays([r.sizes for r in parts]),
            {key: UnitForms.add([r.units[key] for r in parts if key in r.units]) for key in keys},
            sum(r.freedom for r in parts),
        )

    def without(self, part: "FormResamples") -> "FormResamples":
        """The total minus one of its parts."""
        return FormResamples(
            self.sums - part.sums,
            self.sizes - part.sizes,
            {
                key: unit.subtract(part.units[key]) if key in part.units else unit
                for key, unit in self.units.items()
            },
            self.freedom - part.freedom,
        )

    def difference_interval(
        self, other: "FormResamples", figure: Callable[[Values, Values], Values], *, seed: int = 0
    ) -> Interval:
        """The ends of the 95% percentile interval of the difference of a figure of sums and sizes,
        [..., f], each level adding the effects of its units (`stats.designs.resample_effects`).
        They are moved out where prompts are few, to Student's with Satterthwaite's (1946) degrees
        of freedom."""
        rng = np.random.Generator(np.random.PCG64(seed))
        own_draws, other_draws = figure(self.sums, self.sizes), figure(other.sums, other.sizes)
        difference_draws = own_draws - other_draws
        variances = np.array([np.nanvar(own_draws), np.nanvar(other_draws)])
        middle = float(np.nanmean(difference_draws))
        levels: dict[str, list[tuple[float, float]]] = {}
        for key, own_unit in self.units.items():
            other_unit = other.units.get(key)
            if other_unit is None:
                continue
            level, _ = key
            differences = figure(own_unit.drawn_sums, own_unit.drawn_sizes) - figure(
                other_unit.drawn_sums, other_unit.drawn_sizes
            )
            defined = differences[~np.isnan(differences)]
            noise = float(defined.var(ddof=1)) if len(defined) > 1 else math.nan
            value = float(
                figure(own_unit.sums, own_unit.sizes) - figure(other_unit.sums, other_unit.sizes)
            )
            levels.setdefault(level, []).append((value, noise))
        for unit_values in levels.values():
            values, noise_of = np.array(unit_values, dtype=np.float64).T
            difference_draws = difference_draws + resample_effects(
                values, noise_of, len(difference_draws), rng
            )
        low, high = percentile_interval(difference_draws, 0.95)
        degrees = np.maximum(1.0, [self.freedom, other.freedom])
        squares = float((variances**2 / degrees).sum())
        widening = student_widening(variances.sum() ** 2 / squares) if squares else 1.0
        return Interval(middle - (middle - low) * widening, middle + (high - middle) * widening)


def _design_freedom(design: Design) -> float:
    """The degrees of freedom of a variance over clusters within strata."""
    return max(1.0, float(len(design.strata) - len(design.resampling_strata())))


def sum_arrays(arrays: Sequence[Values]) -> Values:
    """The sum of arrays of one shape."""
    return np.asarray(np.sum(arrays, axis=0), dtype=np.float64)
