"""Models compared over the same groups: by crawls, or by probes of the same statements.

Everything asked at once (every pair of models, every group, every measure) is one family.
"""

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import NamedTuple

import numpy as np

from kgbias.compare.families import (
    CORRECTIONS,
    SIGNIFICANCE_LEVEL,
    adjust_differences,
    compared_measures,
    describe_difference,
    detectable_difference,
    excludes_zero,
    run_family,
)
from kgbias.compare.paired_tests import (
    ClusterSample,
    equivalence_p_value,
    min_p_value,
    permutation_detectable,
    permutation_p_value,
    rank_probabilities,
)
from kgbias.compare.permutation import build_permutation_clusters
from kgbias.compare.run_setup import find_group_ids
from kgbias.errors import UsageError, no_such
from kgbias.graph.draws import Draws
from kgbias.graph.selection import SelectedStatements
from kgbias.graph.store import StoredRun
from kgbias.graph.types import Group, ProbedEdge, ProbeRun, TripleView
from kgbias.io.text import spoken_name
from kgbias.measures import get_measure
from kgbias.stats.designs import NORMAL_95
from kgbias.stats.inference import DEFAULT_DRAWS, Estimate, Sample, Values
from kgbias.stats.poststratification import StandardWeights, StratifiedSample
from kgbias.stats.ppi import NO_CORRECTED_DIFFERENCE, CorrectedDifference
from kgbias.stats.units import resample_interval

AFFINITY = "affinity"
NEGATIVE_AFFINITY = "affinity_to_negative"
DEFAULT_MARGIN_OF_RANGE = 0.05
"""The margin of equivalence, as a share of the measure's range."""
DEFAULT_MARGIN_DEVIATIONS = 0.2
"""The same for a measure without a range, in standard deviations (Cohen's small effect)."""
_MIN_VALUES = 3  # values of each side
_UNSEEN_CHANCE = 0.05  # that units of a kind were drawn none of, which could change a mean
_CHUNK_DRAWS = 4_000_000  # draws in memory at once


@dataclass(frozen=True, slots=True)
class ModelContrast:
    """A group's mean of a measure in two models.

    Attributes:
        measure: the measure.
        group: the group.
        first: the first model's name (a run, or a model that probed).
        second: the second one's.
        n: how many values each has.
        means: their means; for crawls, at one mix of prompts (`kgbias.stats.poststratification`).
        difference: mean of the first minus mean of the second, with its bootstrap interval: paired
            if the models were probed with the same statements, or else each by its own design.
        p: of no difference, two-sided: for crawls, by permutation of whole prompts
            (`kgbias.compare.permutation`); for probes, of the models within each statement
            (`kgbias.compare.paired_tests`).
        equivalent_p: of a difference of `margin` or more, by two one-sided t-tests; NaN with too
            few units (`min_equivalent_units`).
        margin: in units of the measure.
        paired: what both share: "statements" (or other units of a benchmark), "prompts", or "" if
            nothing is known about the draws.
        p_adjusted: `p`, corrected over the family.
        equivalent_adjusted: `equivalent_p`, corrected over the family.
        family: how many contrasts the family has.
        correction: "holm" or "bh".
        detectable: the smallest true difference that would be found in 80% of cases at the
            corrected level: for crawls, by the test itself
            (`kgbias.compare.paired_tests.permutation_detectable`), or else by the normal
            approximation; in units of the measure, NaN if none that is possible would be (with few
            units no p is small enough).
        drawn: the prompts that were dealt, from which `detectable` is computed.
        statistic: which statistic of the measure is compared: "mean", or "" if it is itself a
            figure.
        corrected: the difference of means corrected by labels, if both have enough, with a p-value
            of its own if each is corrected by labels of this group.
    """

    measure: str
    group: str
    first: str
    second: str
    n: tuple[int, int]
    means: tuple[float, float]
    difference: Estimate
    p: float
    equivalent_p: float
    margin: float
    paired: str
    p_adjusted: float = math.nan
    equivalent_adjusted: float = math.nan
    family: int = 0
    correction: str = "holm"
    detectable: float = math.nan
    drawn: tuple[ClusterSample, ClusterSample] | None = field(
        default=None, repr=False, compare=False
    )
    statistic: str = "mean"
    corrected: CorrectedDifference = NO_CORRECTED_DIFFERENCE

    @property
    def differs(self) -> bool:
        """Whether a difference was shown: it is significant after correction, and its interval
        leaves out 0."""
        return self.p_adjusted <= SIGNIFICANCE_LEVEL and excludes_zero(self.difference)

    @property
    def headline_differs(self) -> bool:
        """Whether a difference was shown in what is told first: the corrected difference if it is
        tested, or else what the scorer says."""
        return self.corrected.is_significant if self.corrected.is_tested else self.differs

    @property
    def paired_by_unit(self) -> bool:
        """Whether both were asked the same units, which can be exchanged one by one."""
        return self.paired not in ("", "prompts")

    @property
    def is_equivalent(self) -> bool:
        """Whether they were shown to differ by less than the margin: the test says so after
        correction, and the whole interval lies within it."""
        difference = self.difference
        is_within = -self.margin < difference.low and difference.high < self.margin
        return self.equivalent_adjusted <= SIGNIFICANCE_LEVEL and is_within and not self.differs

    @property
    def verdict(self) -> str:
        """The result of the contrast, in words."""
        form = get_measure(self.measure).form.lstrip("+")
        subject = f"{self.statistic} {spoken_name(self.measure)} of {self.group}".strip()
        if self.headline_differs or self.differs:
            return describe_difference(
                subject, self.first, self.second, self.difference, self.corrected, form
            )
        if self.is_equivalent:
            return (
                f"{subject}: {self.first} and {self.second} are the same to within "
                f"{self.margin:{form}}"
            )
        units = self.paired or "statements"
        if not self.can_differ:
            return f"{subject}: too few {units} to tell {self.first} from {self.second}"
        too_few = math.isnan(self.equivalent_p)
        note = f" (too few {units} to show that they are the same)" if too_few else ""
        return (
            f"{subject}: no difference was shown between {self.first} and {self.second}; one of "
            f"{self.detectable:{form}} would have been found in 80% of cases{note}"
        )

    @property
    def can_differ(self) -> bool:
        """Whether a difference that is possible would have been found."""
        return not math.isnan(self.detectable) and not math.isnan(self.p)


@dataclass(frozen=True, slots=True)
class ModelRanking:
    """Models by a group's mean of a measure, highest first: `probabilities` holds, for each, the
    probability of each rank, over resamples."""

    measure: str
    group: str
    models: tuple[str, ...]
    means: tuple[float, ...]
    probabilities: tuple[tuple[float, ...], ...]


@dataclass(frozen=True, slots=True)
class ModelSamples:
    """A model with its samples, by measure and group id. `strata` name the strata of each sample's
    design; `stratified` are the samples of a crawl with what its prompts supplied (without it, the
    strata say that). For a probing each value is a stratum, and `paired_by_stratum` is true: values
    of the same stratum are resampled together, separately for each of the `parts` (one name per
    value)."""

    name: str
    groups: tuple[Group, ...]
    samples: Mapping[tuple[str, str], Sample]
    strata: Mapping[tuple[str, str], Sequence[Hashable]] = field(default_factory=dict)
    paired_by_stratum: bool = False
    parts: Mapping[tuple[str, str], Sequence[Hashable]] = field(default_factory=dict)
    stratified: Mapping[tuple[str, str], StratifiedSample] = field(default_factory=dict)

    def find_sample(self, key: tuple[str, str]) -> StratifiedSample:
        """A sample of a crawl, with what its prompts supplied."""
        sample = self.stratified.get(key)
        return sample or StratifiedSample.by_strata(self.samples[key], self.strata.get(key))


def read_crawl_samples(run: StoredRun, statements: SelectedStatements) -> ModelSamples:
    """A run's statements that count, in one arm."""
    draws = Draws.from_run(run, statements)
    by_group: dict[str, list[TripleView]] = {}
    for triple in statements.triples:
        by_group.setdefault(triple.group_id, []).append(triple)
    stratified = {
        (measure, id): draws.stratified_sample(triples, measure)
        for measure in compared_measures(statements.triples)
        for id, triples in by_group.items()
    }
    samples = {key: sample.sample for key, sample in stratified.items()}
    return ModelSamples(run.name, run.groups, samples, stratified=stratified)


def read_probe_samples(run: StoredRun, probe_run: ProbeRun) -> ModelSamples:
    """How probable a model finds a run's statements: how many bits likelier each is after the group
    than after the average group of the category ("affinity", above 0: likelier), over all
    statements, and over those of negative regard if regard was measured. Bits of a whole statement
    can be compared between models with different tokens."""
    category = {g.id: g.category for g in run.groups}
    bits: dict[tuple[str, str], dict[str, float]] = {}
    for edge in run.find_all(ProbedEdge, asking=probe_run):
        if edge.group_id in category:
            log_likelihood = (
                edge.statement_log_likelihood if edge.statement_tokens else edge.log_likelihood
            )
            group_bits = bits.setdefault((category[edge.group_id], edge.statement_id), {})
            group_bits[edge.group_id] = log_likelihood / math.log(2)
    negative = {
        t.statement_id
        for t in run.triples()
        if "regard" in t.scores and t.scores["regard"].label == "negative"
    }
    values: dict[tuple[str, str], dict[str, float]] = {}
    for (_, statement), by_group in bits.items():
        average = sum(by_group.values()) / len(by_group)
        for id, value in by_group.items():
            values.setdefault((AFFINITY, id), {})[statement] = value - average
            if statement in negative:
                values.setdefault((NEGATIVE_AFFINITY, id), {})[statement] = value - average
    samples = {
        key: Sample.from_values(np.array(list(group_bits.values())))
        for key, group_bits in values.items()
    }
    strata = {key: list(group_bits) for key, group_bits in values.items()}
    return ModelSamples(probe_run.model.title, run.groups, samples, strata, paired_by_stratum=True)


class ModelComparison(NamedTuple):
    """Every pair of models compared, and their ranks."""

    tests: list[ModelContrast]
    rankings: list[ModelRanking]


def contrast_models(
    subjects: Sequence[ModelSamples],
    *,
    groups: Sequence[str] = (),
    measures: Sequence[str] = (),
    margin: float | None = None,
    correction: str = "holm",
    seed: int = 0,
) -> ModelComparison:
    """Every pair of models in each group and measure that both have, and the models' ranks.

    Args:
        subjects: two or more, with distinct names.
        groups: only these, by name; none: all that any two have.
        measures: only these; none: all.
        margin: differences below it count as none, in units of the measure; None: 0.05 of the
            measure's range, or 0.2 standard deviations if it has none.
        correction: "holm" or "bh", over all contrasts.
        seed: the random seed of resamples and permutations.

    Raises UsageError for fewer than two models, or if they share nothing of what was asked.
    """
    if len(subjects) < 2:
        raise UsageError("name two or more models to compare")
    if margin is not None and not margin > 0:
        raise UsageError("`margin` must be above 0")
    if correction not in CORRECTIONS:
        raise UsageError(no_such("correction", correction, ("holm", "bh")))
    names = {g.id: g.name for s in subjects for g in s.groups}
    group_ids = find_group_ids(groups, (group for s in subjects for group in s.groups))
    keys = [
        key
        for key in dict.fromkeys(key for s in subjects for key in s.samples)
        if (not measures or key[0] in measures) and (not group_ids or key[1] in group_ids)
    ]
    tests, rankings = [], []
    for measure, id in keys:
        group_subjects = [s for s in subjects if _has_enough(s.samples.get((measure, id)))]
        for first, second in combinations(group_subjects, 2):
            tests.append(_contrast_pair(first, second, (measure, id), names[id], margin, seed))
        if len(group_subjects) > 1 and (
            group_subjects[0].paired_by_stratum
            or StandardWeights.from_samples(
                [s.find_sample((measure, id)) for s in group_subjects]
            ).weights
        ):
            rankings.append(_rank_models(group_subjects, (measure, id), names[id], seed))
    tests = [t for t in tests if min(t.n) >= _MIN_VALUES]
    if not tests:
        available = (
            ", ".join(sorted({m for s in subjects for m, _ in s.samples})) or "nothing measured"
        )
        raise UsageError(f"the models share no group with that measure; there is {available}")
    return ModelComparison(adjust_contrasts(tests, correction), rankings)


def _has_enough(sample: Sample | None) -> bool:
    return sample is not None and sample.n >= _MIN_VALUES


def _contrast_pair(
    first_model: ModelSamples,
    second_model: ModelSamples,
    key: tuple[str, str],
    group: str,
    margin: float | None,
    seed: int,
) -> ModelContrast:
    first, second = first_model.samples[key], second_model.samples[key]
    if margin is None:
        margin = _default_margin(key[0], first, second)
    if not (first_model.paired_by_stratum and second_model.paired_by_stratum):
        return _contrast_crawls(first_model, second_model, key, group, margin)
    (first_values, second_values), parts = _align_strata([first_model, second_model], key)
    first, second, differences = (
        Sample.from_values(first_values),
        Sample.from_values(second_values),
        first_values - second_values,
    )
    difference = _paired_difference(differences, parts, seed)
    sides = [
        ClusterSample(range(len(differences)), s.values, np.ones(len(differences)))
        for s in (first, second)
    ]
    p_value = permutation_p_value(sides[0], sides[1], seed=seed)
    equivalence = equivalence_p_value(
        difference.value, _standard_error(differences), margin, len(differences) - 1.0
    )
    if len(differences) < min_equivalent_units(_margin_share(key[0], margin)):
        equivalence = math.nan
    return ModelContrast(
        key[0],
        group,
        first_model.name,
        second_model.name,
        (first.n, second.n),
        (first.mean, second.mean),
        difference,
        p_value,
        equivalence,
        margin,
        "statements",
    )


def _contrast_crawls(
    first_model: ModelSamples,
    second_model: ModelSamples,
    key: tuple[str, str],
    group: str,
    margin: float,
) -> ModelContrast:
    """Two crawls' statements about a group, at one mix of the kinds of prompt that both have."""
    sides = {
        first_model.name: first_model.find_sample(key),
        second_model.name: second_model.find_sample(key),
    }
    (test,) = run_family(
        key[0], group, sides, [(first_model.name, second_model.name)], detect=False
    ).tests
    difference = test.difference
    # The standard error that a normal interval of this width would have.
    error = (difference.high - difference.low) / (2 * NORMAL_95)
    designs = [s.sample.design for s in sides.values()]
    freedom = float(
        sum(
            len(design.strata) - len(set(design.strata)) for design in designs if design is not None
        )
    )
    known_draws = None not in designs
    equivalence = equivalence_p_value(
        difference.value, error, margin, freedom if known_draws else math.inf
    )
    drawn = _list_permutation_units(sides)
    units = min(test.n) if drawn is None else min(len(side.sums) for side in drawn)
    if units < min_equivalent_units(_margin_share(key[0], margin)):
        equivalence = math.nan
    return ModelContrast(
        key[0],
        group,
        first_model.name,
        second_model.name,
        test.n,
        test.means,
        difference,
        test.p,
        equivalence,
        margin,
        "prompts" if known_draws else "",
        drawn=drawn,
    )


def min_equivalent_units(margin_share: float) -> int:
    """How many independent units (prompts, or statements that both were probed with) each side must
    have before two means can be called the same to within a margin, which is given as a share of
    the measure's range. A few units that are all alike have no spread to test with, but that says
    little: a rare kind of unit, at the far end of the range, may have been missed. Of n units none
    is of a kind that makes up a share s of all with probability (1 - s)^n, and such a kind moves
    the mean by s of the range at most."""
    if margin_share >= 1:
        return _MIN_VALUES
    return max(_MIN_VALUES, math.ceil(math.log(_UNSEEN_CHANCE) / math.log1p(-margin_share)))


def _margin_share(measure: str, margin: float) -> float:
    """A margin as a share of the measure's range; the default one for a measure without a range."""
    bounds = get_measure(measure).range
    return DEFAULT_MARGIN_OF_RANGE if bounds is None else margin / (bounds[1] - bounds[0])


def _list_permutation_units(
    sides: Mapping[str, StratifiedSample],
) -> tuple[ClusterSample, ClusterSample] | None:
    units = build_permutation_clusters(sides, StandardWeights.from_samples(list(sides.values())))
    if units is None:
        return None
    first, second = units.values()
    return first, second


def _find_detectable(contrast: ModelContrast, family: int) -> float:
    """The difference that the test would find in 80% of cases, in a family of this size."""
    # So few pairs cannot give a p-value that survives the correction, whatever the difference.
    if contrast.paired_by_unit and min_p_value(contrast.n[0]) > SIGNIFICANCE_LEVEL / family:
        return math.nan
    if contrast.drawn is None or not contrast.difference.has_interval:
        return detectable_difference(contrast.difference, family)
    smallest = permutation_detectable(*contrast.drawn, level=SIGNIFICANCE_LEVEL / family)
    return smallest if math.isfinite(smallest) else math.nan


def _default_margin(measure: str, first: Sample, second: Sample) -> float:
    bounds = get_measure(measure).range
    if bounds is not None:
        return DEFAULT_MARGIN_OF_RANGE * (bounds[1] - bounds[0])
    values, counts = Sample.join(
        [Sample(s.values, s.counts) for s in (first, second)]
    ).distinct_values()
    deviations = values - counts @ values / counts.sum()
    return DEFAULT_MARGIN_DEVIATIONS * math.sqrt(float(counts @ deviations**2 / counts.sum()))


class _SharedStrata(NamedTuple):
    """The values of the strata that all subjects have, in one order, [subjects, n], and the part of
    each, as a number, [n]."""

    values: Values
    parts: Values


def _align_strata(subjects: Sequence[ModelSamples], key: tuple[str, str]) -> _SharedStrata:
    strata, part_names = subjects[0].strata[key], subjects[0].parts.get(key)
    shared = set.intersection(*(set(s.strata[key]) for s in subjects))
    order = [n for n, stratum in enumerate(strata) if stratum in shared]
    places = [{stratum: n for n, stratum in enumerate(s.strata[key])} for s in subjects]
    values = [
        s.samples[key].values[[place_of[strata[n]] for n in order]]
        for s, place_of in zip(subjects, places, strict=True)
    ]
    names = {part: n for n, part in enumerate(dict.fromkeys(part_names or ()))}
    parts = [names[part_names[n]] if part_names else 0 for n in order]
    return _SharedStrata(np.array(values), np.array(parts))


def _resample_means(values: Values, parts: Values, rng: np.random.Generator) -> Values:
    """The means of values [k, n] over resamples of the n, drawn within each of the parts,
    [k, draws]."""
    means = np.zeros((len(values), DEFAULT_DRAWS))
    for part in np.unique(parts):
        part_values = values[:, parts == part]
        part_size = part_values.shape[1]
        step = max(1, _CHUNK_DRAWS // part_size)
        resampled = [
            part_values
            @ rng.multinomial(
                part_size, np.full(part_size, 1 / part_size), size=min(step, DEFAULT_DRAWS - start)
            ).T
            for start in range(0, DEFAULT_DRAWS, step)
        ]
        means += np.concatenate(resampled, axis=1)
    return np.asarray(means / max(1, values.shape[1]), dtype=np.float64)


def _paired_difference(differences: Values, parts: Values, seed: int) -> Estimate:
    if len(differences) < 2:
        return Estimate.missing(
            len(differences), float(differences.mean()) if len(differences) else math.nan
        )
    rng = np.random.Generator(np.random.PCG64(seed))
    (resampled,) = _resample_means(differences[None], parts, rng)
    return resample_interval(float(differences.mean()), resampled, len(differences))


def _standard_error(differences: Values) -> float:
    return (
        float(differences.std(ddof=1)) / math.sqrt(len(differences))
        if len(differences) > 1
        else math.nan
    )


def _rank_models(
    subjects: Sequence[ModelSamples], key: tuple[str, str], group: str, seed: int
) -> ModelRanking:
    rng = np.random.Generator(np.random.PCG64(seed))
    if all(subject.paired_by_stratum for subject in subjects):
        values, parts = _align_strata(subjects, key)
        has_values = values.shape[1] > 0
        resampled = _resample_means(values, parts, rng)
        means = {
            subject.name: float(v.mean()) if has_values else math.nan
            for subject, v in zip(subjects, values, strict=True)
        }
        replicates = {subject.name: v for subject, v in zip(subjects, resampled, strict=True)}
    else:
        mix = StandardWeights.from_samples([subject.find_sample(key) for subject in subjects])
        means = {subject.name: mix.mean(subject.find_sample(key)) for subject in subjects}
        resampled_means = [
            mix.resample_mean(subject.find_sample(key), DEFAULT_DRAWS, rng).replicates(rng)
            for subject in subjects
        ]
        # A resample may lack every form that counts.
        defined = ~np.isnan(resampled_means).any(axis=0)
        replicates = {
            subject.name: r[defined] for subject, r in zip(subjects, resampled_means, strict=True)
        }
    probabilities = rank_probabilities(replicates)
    order_of = sorted(means, key=lambda name: -means[name])
    return ModelRanking(
        key[0],
        group,
        tuple(order_of),
        tuple(means[name] for name in order_of),
        tuple(tuple(probabilities[name]) for name in order_of),
    )


def attach_label_contrasts(
    tests: Sequence[ModelContrast], difference: Callable[[str, str, str, str], CorrectedDifference]
) -> list[ModelContrast]:
    """The contrasts with the differences that labels correct: of a measure, a group and two models.
    P-values are corrected over the same family as those of what the scorer says."""
    if not tests:
        return []
    differences = [
        difference(contrast.measure, contrast.group, contrast.first, contrast.second)
        for contrast in tests
    ]
    pairs = zip(tests, adjust_differences(differences, tests[0].correction), strict=True)
    return [
        replace(contrast, corrected=corrected_difference)
        for contrast, corrected_difference in pairs
    ]


def adjust_contrasts(tests: Sequence[ModelContrast], correction: str) -> list[ModelContrast]:
    """The tests with p-values corrected over all of them, and what each would then find."""

    def over_all(p: Sequence[float]) -> list[float]:
        defined = [n for n, x in enumerate(p) if not math.isnan(x)]
        adjusted_values = [math.nan] * len(p)
        for n, x in zip(defined, CORRECTIONS[correction]([p[n] for n in defined]), strict=True):
            adjusted_values[n] = x
        return adjusted_values

    p_adjusted, equivalence_adjusted = (
        over_all([test.p for test in tests]),
        over_all([test.equivalent_p for test in tests]),
    )
    return [
        replace(
            test,
            p_adjusted=value,
            equivalent_adjusted=y,
            family=len(tests),
            correction=correction,
            detectable=get_measure(test.measure).possible_difference(
                _find_detectable(test, len(tests))
            ),
        )
        for test, value, y in zip(tests, p_adjusted, equivalence_adjusted, strict=True)
    ]
