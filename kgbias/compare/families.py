"""Families of tests: between the groups of a run, and between its augmentation arms.

A family is all the tests that answer one question: one measure, in one category of one arm. First
all groups together: do they differ at all (an omnibus test)? Then each against the rest of its
category, or every pair, with p-values corrected over these. Every test is of the difference of
means at one mix of prompts (`kgbias.stats.poststratification`), by permutation of whole prompts
(`kgbias.compare.permutation`).
"""

import math
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from math import comb
from statistics import NormalDist
from typing import Literal, TypeVar

import numpy as np

from kgbias.compare.paired_tests import ClusterSample, permutation_detectable
from kgbias.compare.permutation import build_permutation_clusters, permute_clusters
from kgbias.errors import UsageError, no_such
from kgbias.graph.draws import Draws
from kgbias.graph.types import Group, Run, TripleView
from kgbias.io import text
from kgbias.io.progress import Progress, SilentProgress
from kgbias.io.text import spoken_name
from kgbias.io.wording import pluralise
from kgbias.measures import get_measure, scored_measures
from kgbias.stats.inference import (
    DEFAULT_DRAWS,
    Estimate,
    Sample,
    Values,
    benjamini_hochberg,
    bootstrap,
    holm,
    hybrid_interval,
    is_one_sided,
    mean,
)
from kgbias.stats.poststratification import (
    MIN_COMPARED_VALUES,
    MODEL_CHOSEN_FORM,
    FormResamples,
    StandardWeights,
    StratifiedSample,
    sum_arrays,
    weighted_means,
)
from kgbias.stats.ppi import NO_CORRECTED_DIFFERENCE, CorrectedDifference

Item = TypeVar("Item")
Pairing = Literal["rest", "pairs"]

CORRECTIONS: Mapping[str, Callable[[Sequence[float]], Sequence[float]]] = {
    "holm": lambda p: [float(x) for x in holm(p)],
    "bh": lambda p: [float(x) for x in benjamini_hochberg(p)],
}
SINGLE_TEST_NOTE = "by this test alone"
"""Added to the differences that a family of several tests would have found: they do not take into
account the test of all together, which has to find one too."""
SIGNIFICANCE_RULE = (
    "a difference is shown if all together differ (p at most 0.05), its own adjusted p is at "
    "most 0.05, and its 95% interval leaves out 0"
)
"""When a difference is said to be shown (`GroupTest.differs`); one that labels correct is shown by
its own p and interval."""
REST = "the other groups"
MAX_PAIRS = 5_000  # of a category: some minutes of tests
SIGNIFICANCE_LEVEL, TARGET_POWER = 0.05, 0.8
_BY_LABELS_NOTE = ", corrected by labels"
MIN_SHRINK_GROUPS = 4
"""The fewest groups of a category for which differences are also given shrunken."""
_MIN_PROGRESS_TESTS = 50  # tests of a family; with this many, progress is reported
_MAX_RESAMPLE_NUMBERS = 25_000_000  # numbers of resamples in memory at once
_MIN_DRAWS = 400


@dataclass(frozen=True, slots=True)
class GroupTest:
    """One comparison of two sides: groups, or arms.

    Attributes:
        measure: the measure.
        category: the category that both sides belong to.
        first: the first side's name.
        second: the second's, or `REST`.
        n: how many statements of each were compared: those of prompt forms that all sides have.
        means: their means at one mix of these forms.
        difference: the first mean minus the second, with its bootstrap interval.
        p: two-sided, of no difference, by permutation of whole prompts.
        forms: the same difference over other statements: "chosen" (whose predicate the model named;
            absent if the run does not say, or one side has fewer than two), "raw" (all of them,
            whatever their prompts supplied) and, if enough were labelled, "corrected" (those of
            `difference`, corrected by labels, with a p-value of its own:
            `label_corrected_difference`).
        shrunken: the difference shrunken towards 0 by what the whole family says about how much
            groups differ (`shrink_differences`); without a value in families of fewer than four.
        forms_compared: how many prompt forms the means cover.
        p_adjusted: `p`, corrected over the family.
        family: how many tests the family has.
        correction: "holm" or "bh".
        omnibus_p: of no difference between any sides of the family.
        arm: the arm of both sides, "" if the sides are arms.
        detectable: the smallest difference of means that this test alone would find in 80% of cases
            at the corrected level (`kgbias.compare.paired_tests.permutation_detectable`; of very
            many statements by the normal approximation); in a family of several the omnibus test
            has to find one too, which takes more. In units of the measure, NaN if none that is
            possible would be found.
    """

    measure: str
    category: str
    first: str
    second: str
    n: tuple[int, int]
    means: tuple[float, float]
    difference: Estimate
    p: float
    forms: Mapping[str, Estimate] = field(default_factory=dict)
    shrunken: Estimate = field(default_factory=Estimate.missing)
    forms_compared: int = 1
    p_adjusted: float = math.nan
    family: int = 0
    correction: str = "holm"
    omnibus_p: float = math.nan
    arm: str = ""
    detectable: float = math.nan

    @property
    def differs(self) -> bool:
        """Whether a difference was shown: the sides of the family differ at all, this difference is
        significant after correction, and its interval leaves out 0."""
        shown = self.omnibus_p <= SIGNIFICANCE_LEVEL and self.p_adjusted <= SIGNIFICANCE_LEVEL
        return shown and excludes_zero(self.difference)

    @property
    def near_miss_note(self) -> str:
        """Why a difference was not shown although both p-values are small: its interval, in words
        that follow the verdict in brackets, with the corrected p-value; "" otherwise."""
        is_significant = (
            self.omnibus_p <= SIGNIFICANCE_LEVEL and self.p_adjusted <= SIGNIFICANCE_LEVEL
        )
        difference = self.difference
        if (
            self.differs
            or self.label_corrected_difference.is_tested
            or not is_significant
            or not difference.has_interval
        ):
            return ""
        interval_words = (
            "its interval contains 0"
            if difference.low <= 0 <= difference.high
            else "it is outside its interval"
        )
        return f"adjusted {phrase_p_value(self.p_adjusted)}, but {interval_words}"

    @property
    def label_corrected_difference(self) -> CorrectedDifference:
        """The difference corrected by labels; without a value if too few were labelled."""
        label_correction = self.forms.get("corrected")
        return (
            label_correction
            if isinstance(label_correction, CorrectedDifference)
            else NO_CORRECTED_DIFFERENCE
        )

    @property
    def headline_differs(self) -> bool:
        """Whether a difference was shown in what is told first: the corrected difference if it is
        tested, or else what the scorer says."""
        return (
            self.label_corrected_difference.is_significant
            if self.label_corrected_difference.is_tested
            else self.differs
        )

    @property
    def headline_detectable(self) -> float:
        """`detectable`; of a corrected difference that is tested, by the normal approximation."""
        if not self.label_corrected_difference.is_tested:
            return self.detectable
        size = detectable_difference(self.label_corrected_difference, self.family)
        return get_measure(self.measure).possible_difference(size)

    @property
    def subject(self) -> str:
        """What was compared, in words."""
        mixed = " at one mix of prompts" if self.forms_compared > 1 else ""
        return f"mean {spoken_name(self.measure)}{mixed}"

    @property
    def verdict(self) -> str:
        """The result of the comparison, in words."""
        form = get_measure(self.measure).form.lstrip("+")
        if self.headline_differs or self.differs:
            return describe_difference(
                self.subject,
                self.first,
                self.second,
                self.difference,
                self.label_corrected_difference,
                form,
            )
        if math.isnan(self.p) or math.isnan(self.headline_detectable):
            return f"{self.subject}: too few statements to tell {self.first} from {self.second}"
        if self.omnibus_p > SIGNIFICANCE_LEVEL and not self.label_corrected_difference.is_tested:
            return (
                f"{self.subject}: no difference was shown in {self.category} "
                f"({phrase_p_value(self.omnibus_p)} for all together), so none is named"
            )
        test_note = (
            f", {SINGLE_TEST_NOTE}"
            if self.family > 1 and not self.label_corrected_difference.is_tested
            else ""
        )
        correction_note = _BY_LABELS_NOTE if self.label_corrected_difference.is_tested else ""
        despite = f" ({self.near_miss_note})" if self.near_miss_note else ""
        return (
            f"{self.subject}{correction_note}: no difference was shown between {self.first} and "
            f"{self.second}"
            f"{despite}; one of "
            f"{self.headline_detectable:{form}} would have been found in 80% of cases{test_note}"
        )


def describe_difference(
    subject: str, first: str, second: str, raw: Estimate, corrected: CorrectedDifference, form: str
) -> str:
    """A difference that was shown, in words; if labels correct it, as they do."""
    if corrected.is_tested and not corrected.is_significant:
        return (
            f"{subject}: {first} and {second} differ in what the scorer says; corrected by labels, "
            "no difference was shown"
        )
    headline, correction_note = (corrected, _BY_LABELS_NOTE) if corrected.is_tested else (raw, "")
    direction = "above" if headline.value > 0 else "below"
    return (
        f"{subject}{correction_note}: {first} {direction} {second} by "
        f"{size_with_interval(headline, form)}"
    )


def adjust_differences(
    differences: Sequence[CorrectedDifference], correction: str
) -> list[CorrectedDifference]:
    """The corrected differences of a family, with p-values corrected over those that are tested."""
    p_values = iter(CORRECTIONS[correction]([d.p for d in differences if d.is_tested]))
    return [replace(d, p_adjusted=next(p_values)) if d.is_tested else d for d in differences]


def attach_label_differences(
    tests: Sequence[GroupTest], difference: Callable[[str, str, str, str, str], CorrectedDifference]
) -> list[GroupTest]:
    """Tests of groups with the differences that labels correct: of an arm, measure, category and
    two sides. P-values are corrected over the same families as those of what the scorer says."""
    families: dict[tuple[str, str, str], list[int]] = defaultdict(list)
    for index, test in enumerate(tests):
        families[test.arm, test.measure, test.category].append(index)
    corrected_tests = list(tests)
    for key, places in families.items():
        family = [tests[index] for index in places]
        corrected = [difference(*key, test.first, test.second) for test in family]
        for index, test, label_corrected_difference in zip(
            places, family, adjust_differences(corrected, family[0].correction), strict=True
        ):
            if not math.isnan(label_corrected_difference.value):
                corrected_tests[index] = replace(
                    test, forms={**test.forms, "corrected": label_corrected_difference}
                )
    return corrected_tests


@dataclass(frozen=True, slots=True)
class OmnibusTest:
    """Whether groups (or arms) of a category differ in a measure at all, and the tests that say
    which.

    Attributes:
        measure, category, arm: as of `GroupTest`.
        sides: the names of those compared.
        n: how many of their statements were compared.
        p: of no difference between any of them: by permutation of whole prompts, with the sum of
            squares of their means about the common one as the statistic, each weighted by its
            number of statements.
        share: the share of their statements that were compared, in [0, 1]: those of prompt forms
            that all of them have.
        weights: these forms, and how much each counts.
        tests: the comparisons of two; they name no group if `p` is above 0.05.
    """

    measure: str
    category: str
    arm: str
    sides: tuple[str, ...]
    n: int
    p: float
    share: float
    weights: Mapping[str, float]
    tests: tuple[GroupTest, ...]

    @property
    def headline_p_value(self) -> float:
        """`p`; or, if labels correct all of its differences, the smallest adjusted p-value of
        these, which tests the same."""
        corrected = [t.label_corrected_difference for t in self.tests]
        by_labels = bool(corrected) and all(d.is_tested for d in corrected)
        return min(d.p_adjusted for d in corrected) if by_labels else self.p

    @property
    def differs(self) -> bool:
        """Whether they were shown to differ at all."""
        return self.p <= SIGNIFICANCE_LEVEL


def run_omnibus_tests(
    run: Run,
    triples: Sequence[TripleView],
    *,
    pairing: Pairing = "rest",
    correction: str = "holm",
    measures: Sequence[str] | None = None,
    groups: Sequence[str] | None = None,
    draws: Draws | None = None,
    progress: Progress | None = None,
) -> list[OmnibusTest]:
    """Tests between the groups of each category: all together, then each group against all others
    of its category ("rest"), or every pair. Two groups make one comparison either way. Groups with
    fewer than five scored statements are left out; a category with fewer than two gives no test.
    Triples of several arms are tested arm by arm, each a family of its own.

    `groups` are the names of those to test: one is compared with the rest of its category, several
    with each other, whatever `pairing` says. `draws` says how the triples were drawn (None:
    independently)."""
    if correction not in CORRECTIONS:
        raise UsageError(no_such("correction", correction, ("holm", "bh")))
    reporter, sampling = progress or SilentProgress(), draws or Draws({})
    categories: dict[str, list[Group]] = defaultdict(list)
    for g in run.groups:
        categories[g.category].append(g)
    families = []
    for arm in dict.fromkeys(triple.arm for triple in triples):
        by_group: dict[str, list[TripleView]] = defaultdict(list)
        for triple in triples:
            if triple.arm == arm:
                by_group[triple.group_id].append(triple)
        arm_triples = [triple for group_triples in by_group.values() for triple in group_triples]
        for measure in measures if measures is not None else compared_measures(arm_triples):
            for category, members in categories.items():
                sides = {
                    g.name: sampling.stratified_sample(by_group[g.id], measure) for g in members
                }
                sides = {
                    name: sample
                    for name, sample in sides.items()
                    if sample.n >= MIN_COMPARED_VALUES
                }
                if groups is None:
                    pairs = _list_comparisons(list(sides), pairing, category)
                else:
                    pairs = _list_chosen_pairs(
                        [name for name in groups if name in sides], list(sides)
                    )
                    if pairs and pairs[0][1] != REST:
                        sides = {name: sample for name, sample in sides.items() if name in groups}
                if pairs:
                    families.append(
                        run_family(measure, category, sides, pairs, arm, correction, reporter)
                    )
    return families


def run_group_tests(
    run: Run,
    triples: Sequence[TripleView],
    *,
    pairing: Pairing = "rest",
    correction: str = "holm",
    measures: Sequence[str] | None = None,
    groups: Sequence[str] | None = None,
    draws: Draws | None = None,
    progress: Progress | None = None,
) -> list[GroupTest]:
    """The comparisons of two from `run_omnibus_tests`, one after the other."""
    families = run_omnibus_tests(
        run,
        triples,
        pairing=pairing,
        correction=correction,
        measures=measures,
        groups=groups,
        draws=draws,
        progress=progress,
    )
    return [test for family in families for test in family.tests]


def _list_comparisons(
    names: Sequence[str], pairing: Pairing, category: str
) -> list[tuple[str, str]]:
    if len(names) < 2:
        return []
    if pairing == "rest" and len(names) > 2:
        return [(name, REST) for name in names]
    if (count := comb(len(names), 2)) > MAX_PAIRS:
        raise UsageError(
            f"the {len(names)} groups of {category} make "
            f"{pluralise(count, 'pair')}, more than {MAX_PAIRS}: "
            "test each against the rest"
        )
    return list(combinations(names, 2))


def _list_chosen_pairs(groups: Sequence[str], names: Sequence[str]) -> list[tuple[str, str]]:
    """The pairs of these groups, or a single group and the rest."""
    if len(groups) != 1:
        return _list_comparisons(groups, "pairs", "a category")
    if len(names) == 2:
        return [(names[0], names[1])]
    return [(groups[0], REST)] if len(names) > 2 else []


def run_family(
    measure: str,
    category: str,
    sides: Mapping[str, StratifiedSample],
    pairs: Sequence[tuple[str, str]],
    arm: str = "",
    correction: str = "holm",
    progress: Progress | None = None,
    *,
    detect: bool = True,
) -> OmnibusTest:
    """A family: named samples, and which are compared with which (`REST`: all others). A single
    requested comparison is its own omnibus test. `detect`: compute the difference that each test
    would find."""
    if any(sample.forms is None for sample in sides.values()):
        # What an import was asked is not known, so all of it is compared with all of the others.
        sides = {name: sample.without_forms() for name, sample in sides.items()}
    mix = StandardWeights.from_samples(list(sides.values()))
    permutation = permute_clusters(list(sides.values()), mix)
    forms = list(dict.fromkeys(f for sample in sides.values() for f in sample.sizes()))
    form_sums = _sum_forms(sides, forms)
    total = _ResampledFormSums.add_up(list(form_sums.values()))
    side_order = {name: n for n, name in enumerate(sides)}
    figures = {
        "": _MeanOverForms.weighted(forms, mix.weights),
        "chosen": _MeanOverForms.weighted(
            forms, {MODEL_CHOSEN_FORM: 1.0} if MODEL_CHOSEN_FORM in forms else {}
        ),
        "raw": _MeanOverForms.unweighted(forms),
    }
    means: dict[str, Callable[[StratifiedSample], Estimate]] = {
        "": mix.estimate,
        "chosen": StandardWeights({MODEL_CHOSEN_FORM: 1.0}, 1.0).estimate,
        "raw": lambda side: bootstrap(side.sample, mean),
    }
    units_by_side = build_permutation_clusters(sides, mix) if detect else None
    tests = []
    for first_name, second_name in track_tests(
        progress or SilentProgress(), measure, len(pairs), pairs
    ):
        first, second = (
            form_sums[first_name],
            total.subtract(form_sums[first_name])
            if second_name == REST
            else form_sums[second_name],
        )
        differences = {name: figure.difference(first, second) for name, figure in figures.items()}
        own = sides[first_name]
        others = (
            StratifiedSample.pool([side for name, side in sides.items() if name != first_name])
            if second_name == REST
            else sides[second_name]
        )
        if is_one_sided(own.sample) or is_one_sided(others.sample):
            # Few resamples have another label: the ends are those of both means.
            for name, mean_of in means.items():
                if differences[name].has_interval:
                    ends = hybrid_interval(mean_of(own), mean_of(others))
                    differences[name] = replace(differences[name], low=ends.low, high=ends.high)
        difference = differences.pop("")
        if second_name == REST:
            p_value = float(permutation.rest_p_values[side_order[first_name]])
        else:
            p_value = (
                permutation.p_value
                if len(sides) == 2
                else permute_clusters([sides[first_name], sides[second_name]], mix).p_value
            )
        tests.append(
            GroupTest(
                measure,
                category,
                first_name,
                second_name,
                (figures[""].count(first), figures[""].count(second)),
                (figures[""].value(first), figures[""].value(second)),
                difference,
                p_value,
                {name: e for name, e in differences.items() if e.has_interval},
                forms_compared=max(1, len(mix.weights)),
                arm=arm,
                detectable=get_measure(measure).possible_difference(
                    _find_detectable(units_by_side, first_name, second_name, difference, len(pairs))
                ),
            )
        )
    tests = adjust_tests(tests, correction)
    # A single comparison is all there is to test.
    p_value = tests[0].p if len(tests) == 1 else permutation.p_value
    tests = [replace(t, omnibus_p=p_value) for t in tests]
    if all(t.second == REST for t in tests):
        tests = [
            replace(t, shrunken=s)
            for t, s in zip(tests, shrink_differences([t.difference for t in tests]), strict=True)
        ]
    # Last, after the intervals have served as a measure of what is known.
    tests = [_clip_to_range(t, get_measure(measure).widest) for t in tests]
    return OmnibusTest(
        measure,
        category,
        arm,
        tuple(sides),
        sum(mix.restrict(s).n for s in sides.values()),
        p_value,
        mix.share,
        {str(f): w for f, w in mix.weights.items()},
        tuple(tests),
    )


def _clip_to_range(t: GroupTest, widest: float) -> GroupTest:
    """The test with its differences cut to what is possible. What a test would find, and how far
    differences shrink, follow from the intervals before they are cut."""
    return replace(
        t,
        difference=t.difference.clip(-widest, widest),
        forms={name: e.clip(-widest, widest) for name, e in t.forms.items()},
    )


def _find_detectable(
    sides: Mapping[str, ClusterSample] | None,
    first_name: str,
    second_name: str,
    difference: Estimate,
    tests: int,
) -> float:
    """The difference between two of the sides (`REST`: one and all others) that a test among this
    many would find in 80% of cases; `sides` is None if the test uses the normal approximation."""
    if sides is None or not difference.has_interval:
        return detectable_difference(difference, tests)
    others = [
        s
        for name, s in sides.items()
        if (name != first_name if second_name == REST else name == second_name)
    ]
    smallest = permutation_detectable(
        sides[first_name],
        ClusterSample.concatenate(others),
        level=SIGNIFICANCE_LEVEL / tests,
        power=TARGET_POWER,
    )
    return smallest if math.isfinite(smallest) else math.nan


@dataclass(frozen=True, slots=True)
class _ResampledFormSums:
    """A sample as sums and sizes of its forms, [f], with resamples."""

    sums: Values
    sizes: Values
    resamples: FormResamples

    @classmethod
    def add_up(cls, parts: Sequence["_ResampledFormSums"]) -> "_ResampledFormSums":
        return cls(
            sum_arrays([part.sums for part in parts]),
            sum_arrays([part.sizes for part in parts]),
            FormResamples.pool([part.resamples for part in parts]),
        )

    def subtract(self, part: "_ResampledFormSums") -> "_ResampledFormSums":
        """The total minus one of its parts."""
        return _ResampledFormSums(
            self.sums - part.sums, self.sizes - part.sizes, self.resamples.without(part.resamples)
        )


def _sum_forms(
    sides: Mapping[str, StratifiedSample], forms: Sequence[Hashable]
) -> dict[str, _ResampledFormSums]:
    """The samples with their resamples, fewer draws if there are very many samples."""
    levels = [
        len(np.unique(level))
        for sample in sides.values()
        if sample.sample.design is not None
        for level in sample.sample.design.levels.values()
    ]
    numbers = 2 * len(forms) * len(sides) * (1 + max(levels, default=0))
    draws = min(DEFAULT_DRAWS, max(_MIN_DRAWS, _MAX_RESAMPLE_NUMBERS // max(1, numbers)))
    # A seed each: sides are resampled independently.
    return {
        name: _ResampledFormSums(
            *sample.table(forms), FormResamples.from_sample(sample, forms, draws=draws, seed=n)
        )
        for n, (name, sample) in enumerate(sides.items())
    }


@dataclass(frozen=True, slots=True)
class _MeanOverForms:
    """A mean over some forms of a sample: at given weights, or of all statements unweighted."""

    places: Sequence[int]
    weights: Values | None

    @classmethod
    def weighted(
        cls, forms: Sequence[Hashable], weights: Mapping[Hashable, float]
    ) -> "_MeanOverForms":
        places = [place for place, form in enumerate(forms) if form in weights]
        return cls(places, np.array([weights[forms[place]] for place in places], dtype=np.float64))

    @classmethod
    def unweighted(cls, forms: Sequence[Hashable]) -> "_MeanOverForms":
        return cls(range(len(forms)), None)

    def __call__(self, sums: Values, sizes: Values) -> Values:
        form_sums, form_sizes = sums[..., self.places], sizes[..., self.places]
        if self.weights is not None:
            return weighted_means(form_sums, form_sizes, self.weights)
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(form_sums.sum(axis=-1) / form_sizes.sum(axis=-1), dtype=np.float64)

    def count(self, part: _ResampledFormSums) -> int:
        return int(part.sizes[list(self.places)].sum())

    def value(self, part: _ResampledFormSums) -> float:
        return float(self(part.sums, part.sizes))

    def difference(self, first: _ResampledFormSums, second: _ResampledFormSums) -> Estimate:
        """The difference of two samples with its interval; without one if a sample has fewer than
        two of the statements."""
        counts, value = (
            (self.count(first), self.count(second)),
            self.value(first) - self.value(second),
        )
        if min(counts) < 2 or math.isnan(value):
            return Estimate.missing(sum(counts), value)
        return Estimate(
            value, *first.resamples.difference_interval(second.resamples, self), sum(counts)
        )


def shrink_differences(differences: Sequence[Estimate]) -> list[Estimate]:
    """Differences shrunken towards 0, more strongly the less is known about each and the less they
    vary beyond chance as a whole: Morris's (1983) parametric empirical Bayes with the mean known to
    be 0, and his intervals, which allow for the spread being estimated. Without a value if fewer
    than four have an interval."""
    known_ones = [
        difference
        for difference in differences
        if difference.has_interval and difference.high > difference.low
    ]
    known_count = len(known_ones)
    if known_count < MIN_SHRINK_GROUPS:
        return [Estimate.missing(difference.n) for difference in differences]
    critical = NormalDist().inv_cdf(0.975)
    effects = np.array([difference.value for difference in known_ones])
    variances = np.array(
        [((difference.high - difference.low) / (2 * critical)) ** 2 for difference in known_ones]
    )
    spread = 0.0
    # The weights depend on the spread that they estimate, so the two are found in turn.
    for _ in range(200):
        weights = 1 / (variances + spread)
        next_spread = max(0.0, float(weights @ (effects**2 - variances) / weights.sum()))
        if abs(next_spread - spread) <= 1e-12 * max(1.0, next_spread):
            break
        spread = next_spread
    weights = 1 / (variances + spread)
    middle = float(weights @ variances / weights.sum())
    # Morris's (k - 2) / k: a spread estimated from k differences would shrink them too much.
    shares = (known_count - 2) / known_count * variances / (variances + spread)
    error = np.sqrt(
        variances * (1 - shares)
        + 2 / (known_count - 2) * shares**2 * (middle + spread) / (variances + spread) * effects**2
    )
    values = iter(zip((1 - shares) * effects, critical * error, strict=True))
    results = []
    for difference in differences:
        if difference.has_interval and difference.high > difference.low:
            value, half_width = map(float, next(values))
            results.append(Estimate(value, value - half_width, value + half_width, difference.n))
        else:
            results.append(Estimate.missing(difference.n))
    return results


def track_tests(
    progress: Progress, measure: str, count: int, work: Iterable[Item]
) -> Iterator[Item]:
    """The `count` pieces of work of a family, with progress if there are many."""
    reporter = progress if count >= _MIN_PROGRESS_TESTS else SilentProgress()
    reporter.stage(f"tests of {spoken_name(measure)}", count)
    for piece in work:
        yield piece
        reporter.advance()


def compared_measures(triples: Iterable[TripleView]) -> list[str]:
    """The measures of the triples that groups, arms and runs are tested on: all but acceptability,
    which already decided which statements were left out."""
    return [name for name in scored_measures(triples) if get_measure(name).compares]


def run_arm_tests(
    triples: Sequence[TripleView],
    *,
    correction: str = "holm",
    measures: Sequence[str] | None = None,
    categories: Mapping[str, str] | None = None,
    draws: Draws | None = None,
) -> list[GroupTest]:
    """Tests between the augmentation arms of a run, in each category (Salinas et al. 2023, Table 5
    and Figure 5); `categories` maps group ids to categories. Every arm is compared with "none"
    if there is such an arm, or else every pair of arms, at one mix of groups and prompts. Each
    triple has the count of its arm; a single arm gives no test."""
    if correction not in CORRECTIONS:
        raise UsageError(no_such("correction", correction, ("holm", "bh")))
    sampling, tests = draws or Draws({}), list[GroupTest]()
    for measure in measures if measures is not None else compared_measures(triples):
        for category, arms in _group_by_arm(triples, measure, categories).items():
            sides = {
                arm: sampling.stratified_sample(arm_triples, measure, by_group=True)
                for arm, arm_triples in arms.items()
            }
            sides = {
                arm: sample for arm, sample in sides.items() if sample.n >= MIN_COMPARED_VALUES
            }
            pairs = [(arm, "none") for arm in sides if arm != "none" and "none" in sides]
            if pairs := pairs or list(combinations(sides, 2)):
                tests += run_family(measure, category, sides, pairs, "", correction).tests
    return tests


def _group_by_arm(
    triples: Sequence[TripleView], measure: str, categories: Mapping[str, str] | None
) -> dict[str, dict[str, list[TripleView]]]:
    """The triples that have a value of the measure, by category and arm."""
    by_category: dict[str, dict[str, list[TripleView]]] = defaultdict(lambda: defaultdict(list))
    for triple in triples:
        if measure in triple.scores:
            category = categories.get(triple.group_id, "") if categories is not None else ""
            by_category[category][triple.arm].append(triple)
    return {category: dict(sorted(arms.items())) for category, arms in by_category.items()}


def arm_samples(
    triples: Sequence[TripleView],
    measure: str,
    categories: Mapping[str, str] | None = None,
    draws: Draws | None = None,
) -> dict[str, dict[str, Sample]]:
    """For each category and arm, the measure's value for each triple that the arm yielded, and how
    often; `draws` says how they were drawn."""
    sampling = draws or Draws({})
    return {
        category: {arm: sampling.sample(arm_triples, measure) for arm, arm_triples in arms.items()}
        for category, arms in _group_by_arm(triples, measure, categories).items()
    }


def adjust_tests(family: Sequence[GroupTest], correction: str = "holm") -> list[GroupTest]:
    """The tests with p-values corrected over all of them that have one."""
    defined = [index for index, test in enumerate(family) if not math.isnan(test.p)]
    adjusted = dict(
        zip(defined, CORRECTIONS[correction]([family[index].p for index in defined]), strict=True)
    )
    return [
        replace(
            test,
            p_adjusted=adjusted.get(index, math.nan),
            correction=correction,
            family=len(family),
        )
        for index, test in enumerate(family)
    ]


def size_with_interval(difference: Estimate, form: str) -> str:
    """The absolute size of a difference, with its interval turned the same way."""
    turned = difference if difference.value >= 0 else difference.divide(-1)
    ends = sorted((turned.low, turned.high)) if turned.has_interval else (math.nan, math.nan)
    return f"{turned.value:{form}} ({ends[0]:{form}} to {ends[1]:{form}})"


def describe_family_without_pairs(tests: Sequence[GroupTest]) -> str:
    """What a family of several tests says about all its sides together if no two were shown to
    differ; "" if two were, or for a single test."""
    if len(tests) < 2 or any(test.differs or test.headline_differs for test in tests):
        return ""
    first_test = tests[0]
    if all(test.label_corrected_difference.is_tested for test in tests):
        smallest = phrase_p_value(min(test.label_corrected_difference.p_adjusted for test in tests))
        return (
            f"{first_test.subject}{_BY_LABELS_NOTE}: no difference was shown in "
            f"{first_test.category} (the smallest of "
            f"{len(tests)} adjusted p-values: {smallest})"
        )
    if not differs_only_together(tests):
        return first_test.verdict
    near_misses = [
        f"{test.first if test.second == REST else f'{test.first} and {test.second}'}: "
        f"{test.near_miss_note}"
        for test in tests
        if test.near_miss_note
    ]
    near_note = f" ({'; '.join(near_misses)})" if near_misses else ""
    return (
        f"{first_test.subject}: there is a difference in {first_test.category} "
        f"({phrase_p_value(first_test.omnibus_p)} for all "
        f"together); between which of them was not shown{near_note}"
    )


def differs_only_together(tests: Sequence[GroupTest]) -> bool:
    """Whether the sides of a family of several tests were shown to differ, but no two of them."""
    if len(tests) < 2 or any(t.differs or t.headline_differs for t in tests):
        return False
    return tests[0].omnibus_p <= SIGNIFICANCE_LEVEL and not all(
        t.label_corrected_difference.is_tested for t in tests
    )


def phrase_p_value(value: float) -> str:
    """A p-value as written in a sentence."""
    text_value = text.format_p_value(value)
    return f"p < {text_value[1:]}" if text_value.startswith("<") else f"p = {text_value}"


def excludes_zero(difference: Estimate) -> bool:
    """Whether the interval of a difference leaves out 0, on the side of the difference itself."""
    d = difference
    # An interval of resamples may lie wholly beside its own value.
    return d.has_interval and (d.low > 0 or d.high < 0) and (d.value > 0) == (d.low > 0)


def detectable_difference(
    difference: Estimate,
    comparisons: int,
    *,
    level: float = SIGNIFICANCE_LEVEL,
    power: float = TARGET_POWER,
) -> float:
    """The smallest true difference that a two-sided test finds with this power if this many
    comparisons share the level (Bonferroni): (z_(1 - level / 2m) + z_power) times the standard
    error, which is taken from the 95% interval. NaN without an interval."""
    normal = NormalDist()
    error = (difference.high - difference.low) / (2 * normal.inv_cdf(0.975))
    return (normal.inv_cdf(1 - level / (2 * max(1, comparisons))) + normal.inv_cdf(power)) * error
