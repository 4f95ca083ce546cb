"""Families of tests: between the groups of a run, and between its augmentation arms.

A family is all the tests that answer one question: one measure, in one category of one arm. First
all groups together: do they differ at all (an omnibus test)? Then each against the rest of its
category, or every pair, with p-values corrected over these. Every test is of the difference of
means at one mix of prompts (`kgbias.stats.poststratification`), by permutation of whole prompts
(`kgbias.compare.permuted`).
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

from kgbias.compare.paired import Drawn, detectable
from kgbias.compare.permuted import deal, drawn
from kgbias.errors import UsageError, no_such
from kgbias.graph.draws import Draws
from kgbias.graph.types import Group, Run, TripleView
from kgbias.io import text
from kgbias.io.progress import Progress, SilentProgress
from kgbias.io.text import spoken_name
from kgbias.measures import known, measures_of
from kgbias.stats.inference import DEFAULT_DRAWS, Estimate, Sample, Values, benjamini_hochberg, holm
from kgbias.stats.ppi import NOT_TESTED, CorrectedDifference
from kgbias.stats.poststratification import CHOSEN_FORM, MIN_VALUES, StratifiedSample, StandardWeights, FormResamples, sum_arrays, weighted_means

T = TypeVar("T")
Against = Literal["rest", "pairs"]

CORRECTIONS: Mapping[str, Callable[[Sequence[float]], Sequence[float]]] = {
    "holm": lambda p: [float(x) for x in holm(p)],
    "bh": lambda p: [float(x) for x in benjamini_hochberg(p)],
}
ALONE = "by this test alone"
"""Added to the differences that a family of several tests would have found: they do not take into
account the test of all together, which has to find one too."""
RULE = (
    "a difference is shown if all together differ (p at most 0.05), its own adjusted p is at "
    "most 0.05, and its 95% interval leaves out 0"
)
"""When a difference is said to be shown (`GroupTest.differs`); one that labels correct is shown by
its own p and interval."""
REST = "the other groups"
MOST_PAIRS = 5_000  # of a category: some minutes of tests
LEVEL, POWER = 0.05, 0.8
_CORRECTED = ", corrected by labels"
SHRUNKEN = 4
"""The fewest groups of a category for which differences are also given shrunken."""
_MANY = 50  # tests of a family; with this many, progress is reported
_HELD = 25_000_000  # numbers of resamples in memory at once
_FEWEST_DRAWS = 400


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
            `difference`, corrected by labels, with a p-value of its own: `corrected`).
        shrunken: the difference shrunken towards 0 by what the whole family says about how much
            groups differ (`shrunken`); without a value in families of fewer than four.
        forms_compared: how many prompt forms the means cover.
        p_adjusted: `p`, corrected over the family.
        family: how many tests the family has.
        correction: "holm" or "bh".
        omnibus_p: of no difference between any sides of the family.
        arm: the arm of both sides, "" if the sides are arms.
        detectable: the smallest difference of means that this test alone would find in 80% of cases
            at the corrected level (`kgbias.compare.paired.detectable`; of very many statements by
            the normal approximation); in a family of several the omnibus test has to find one too,
            which takes more. In units of the measure, NaN if none would be found.
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
        shown = self.omnibus_p <= LEVEL and self.p_adjusted <= LEVEL
        return shown and leaves_out_none(self.difference)

    @property
    def despite(self) -> str:
        """Why a difference was not shown although both p-values are small: its interval, in words
        that follow the verdict in brackets, with the corrected p-value; "" otherwise."""
        small = self.omnibus_p <= LEVEL and self.p_adjusted <= LEVEL
        d = self.difference
        if self.differs or self.corrected.is_tested or not small or not d.has_interval:
            return ""
        where = "its interval contains 0" if d.low <= 0 <= d.high else "it is outside its interval"
        return f"adjusted {p_value(self.p_adjusted)}, but {where}"

    @property
    def corrected(self) -> CorrectedDifference:
        """The difference corrected by labels; without a value if too few were labelled."""
        found = self.forms.get("corrected")
        return found if isinstance(found, CorrectedDifference) else NOT_TESTED

    @property
    def told(self) -> bool:
        """Whether a difference was shown in what is told first: the corrected difference if it is
        tested, or else what the scorer says."""
        return self.corrected.is_significant if self.corrected.is_tested else self.differs

    @property
    def found(self) -> float:
        """`detectable`; of a corrected difference that is tested, by the normal approximation."""
        c = self.corrected
        return detectable_difference(c, self.family) if c.is_tested else self.detectable

    @property
    def subject(self) -> str:
        """What was compared, in words."""
        mixed = " at one mix of prompts" if self.forms_compared > 1 else ""
        return f"mean {spoken_name(self.measure)}{mixed}"

    @property
    def verdict(self) -> str:
        """The result of the comparison, in words."""
        form = known(self.measure).form.lstrip("+")
        if self.told or self.differs:
            return told(
                self.subject, self.first, self.second, self.difference, self.corrected, form
            )
        if math.isnan(self.p) or math.isnan(self.found):
            return f"{self.subject}: too few statements to tell {self.first} from {self.second}"
        if self.omnibus_p > LEVEL and not self.corrected.is_tested:
            return (
                f"{self.subject}: no difference was shown in {self.category} "
                f"({p_value(self.omnibus_p)} for all together), so none is named"
            )
        alone = f", {ALONE}" if self.family > 1 and not self.corrected.is_tested else ""
        how = _CORRECTED if self.corrected.is_tested else ""
        despite = f" ({self.despite})" if self.despite else ""
        return (
            f"{self.subject}{how}: no difference was shown between {self.first} and {self.second}"
            f"{despite}; one of {self.found:{form}} would have been found in 80% of cases{alone}"
        )


def told(
    subject: str, first: str, second: str, raw: Estimate, corrected: CorrectedDifference, form: str
) -> str:
    """A difference that was shown, in words; if labels correct it, as they do."""
    if corrected.is_tested and not corrected.is_significant:
        return (
            f"{subject}: {first} and {second} differ in what the scorer says; corrected by labels, "
            "no difference was shown"
        )
    shown, how = (corrected, _CORRECTED) if corrected.is_tested else (raw, "")
    way = "above" if shown.value > 0 else "below"
    return f"{subject}{how}: {first} {way} {second} by {by(shown, form)}"


def adjusted(differences: Sequence[CorrectedDifference], correction: str) -> list[CorrectedDifference]:
    """The corrected differences of a family, with p-values corrected over those that are tested."""
    p = iter(CORRECTIONS[correction]([d.p for d in differences if d.is_tested]))
    return [replace(d, p_adjusted=next(p)) if d.is_tested else d for d in differences]


def by_labels(
    tests: Sequence[GroupTest], difference: Callable[[str, str, str, str, str], CorrectedDifference]
) -> list[GroupTest]:
    """Tests of groups with the differences that labels correct: of an arm, measure, category and
    two sides. P-values are corrected over the same families as those of what the scorer says."""
    families: dict[tuple[str, str, str], list[int]] = defaultdict(list)
    for n, t in enumerate(tests):
        families[t.arm, t.measure, t.category].append(n)
    found = list(tests)
    for key, places in families.items():
        own = [tests[n] for n in places]
        corrected = [difference(*key, t.first, t.second) for t in own]
        for n, t, d in zip(places, own, adjusted(corrected, own[0].correction), strict=True):
            if not math.isnan(d.value):
                found[n] = replace(t, forms={**t.forms, "corrected": d})
    return found


@dataclass(frozen=True, slots=True)
class Omnibus:
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
    def p_told(self) -> float:
        """`p`; or, if labels correct all of its differences, the smallest adjusted p-value of
        these, which tests the same."""
        corrected = [t.corrected for t in self.tests]
        by_labels = bool(corrected) and all(d.is_tested for d in corrected)
        return min(d.p_adjusted for d in corrected) if by_labels else self.p

    @property
    def differs(self) -> bool:
        """Whether they were shown to differ at all."""
        return self.p <= LEVEL


def omnibus(
    run: Run,
    triples: Sequence[TripleView],
    *,
    against: Against = "rest",
    correction: str = "holm",
    measures: Sequence[str] | None = None,
    groups: Sequence[str] | None = None,
    draws: Draws | None = None,
    progress: Progress | None = None,
) -> list[Omnibus]:
    """Tests between the groups of each category: all together, then each group against all others
    of its category ("rest"), or every pair. Two groups make one comparison either way. Groups with
    fewer than five scored statements are left out; a category with fewer than two gives no test.
    Triples of several arms are tested arm by arm, each a family of its own.

    `groups` are the names of those to test: one is compared with the rest of its category, several
    with each other, whatever `against` says. `draws` says how the triples were drawn (None:
    independently)."""
    if correction not in CORRECTIONS:
        raise UsageError(no_such("correction", correction, ("holm", "bh")))
    told, read = progress or SilentProgress(), draws or Draws({})
    categories: dict[str, list[Group]] = defaultdict(list)
    for g in run.groups:
        categories[g.category].append(g)
    found = []
    for arm in dict.fromkeys(t.arm for t in triples):
        own: dict[str, list[TripleView]] = defaultdict(list)
        for t in triples:
            if t.arm == arm:
                own[t.group_id].append(t)
        every = [t for said in own.values() for t in said]
        for measure in measures if measures is not None else tested(every):
            for category, members in categories.items():
                sides = {g.name: read.stratified_sample(own[g.id], measure) for g in members}
                sides = {name: a for name, a in sides.items() if a.n >= MIN_VALUES}
                if groups is None:
                    pairs = _comparisons(list(sides), against, category)
                else:
                    pairs = _chosen([name for name in groups if name in sides], list(sides))
                    if pairs and pairs[0][1] != REST:
                        sides = {name: a for name, a in sides.items() if name in groups}
                if pairs:
                    found.append(compared(measure, category, sides, pairs, arm, correction, told))
    return found


def group_tests(
    run: Run,
    triples: Sequence[TripleView],
    *,
    against: Against = "rest",
    correction: str = "holm",
    measures: Sequence[str] | None = None,
    groups: Sequence[str] | None = None,
    draws: Draws | None = None,
    progress: Progress | None = None,
) -> list[GroupTest]:
    """The comparisons of two from `omnibus`, one after the other."""
    found = omnibus(
        run, triples, against=against, correction=correction, measures=measures, groups=groups,
        draws=draws, progress=progress,
    )  # fmt: skip
    return [test for family in found for test in family.tests]


def _comparisons(names: Sequence[str], against: Against, category: str) -> list[tuple[str, str]]:
    if len(names) < 2:
        return []
    if against == "rest" and len(names) > 2:
        return [(name, REST) for name in names]
    if (count := comb(len(names), 2)) > MOST_PAIRS:
        raise UsageError(
            f"the {len(names)} groups of {category} make {count} pairs, more than {MOST_PAIRS}: "
            "test each against the rest"
        )
    return list(combinations(names, 2))


def _chosen(groups: Sequence[str], names: Sequence[str]) -> list[tuple[str, str]]:
    """The pairs of these groups, or a single group and the rest."""
    if len(groups) != 1:
        return _comparisons(groups, "pairs", "a category")
    if len(names) == 2:
        return [(names[0], names[1])]
    return [(groups[0], REST)] if len(names) > 2 else []


def compared(
    measure: str,
    category: str,
    sides: Mapping[str, StratifiedSample],
    pairs: Sequence[tuple[str, str]],
    arm: str = "",
    correction: str = "holm",
    progress: Progress | None = None,
    *,
    detect: bool = True,
) -> Omnibus:
    """A family: named samples, and which are compared with which (`REST`: all others). A single
    requested comparison is its own omnibus test. `detect`: compute the difference that each test
    would find."""
    if any(a.forms is None for a in sides.values()):
        # What an import was asked is not known, so all of it is compared with all of the others.
        sides = {name: a.without_forms() for name, a in sides.items()}
    mix = StandardWeights.from_samples(list(sides.values()))
    dealt = deal(list(sides.values()), mix)
    forms = list(dict.fromkeys(f for a in sides.values() for f in a.sizes()))
    parts = _parts(sides, forms)
    total = _Part.total(list(parts.values()))
    order = {name: n for n, name in enumerate(sides)}
    figures = {
        "": _Figure.of(forms, mix.weights),
        "chosen": _Figure.of(forms, {CHOSEN_FORM: 1.0} if CHOSEN_FORM in forms else {}),
        "raw": _Figure.raw(forms),
    }
    dealers = drawn(sides, mix) if detect else None
    tests = []
    for a, b in counted_aloud(progress or SilentProgress(), measure, len(pairs), pairs):
        first, second = parts[a], total.without(parts[a]) if b == REST else parts[b]
        found = {name: figure.difference(first, second) for name, figure in figures.items()}
        difference = found.pop("")
        if b == REST:
            p = float(dealt.against_rest[order[a]])
        else:
            p = dealt.p if len(sides) == 2 else deal([sides[a], sides[b]], mix).p
        tests.append(
            GroupTest(
                measure, category, a, b,
                (figures[""].n(first), figures[""].n(second)),
                (figures[""].value(first), figures[""].value(second)),
                difference, p,
                {name: e for name, e in found.items() if e.has_interval},
                forms_compared=max(1, len(mix.weights)), arm=arm,
                detectable=_detectable(dealers, a, b, difference, len(pairs)),
            )
        )  # fmt: skip
    tests = corrected(tests, correction)
    p = tests[0].p if len(tests) == 1 else dealt.p
    tests = [replace(t, omnibus_p=p) for t in tests]
    if all(t.second == REST for t in tests):
        tests = [
            replace(t, shrunken=s)
            for t, s in zip(tests, shrunken([t.difference for t in tests]), strict=True)
        ]
    tests = [_within(t, known(measure).widest) for t in tests]
    return Omnibus(
        measure, category, arm, tuple(sides), sum(mix.restrict(s).n for s in sides.values()), p,
        mix.share, {str(f): w for f, w in mix.weights.items()}, tuple(tests),
    )  # fmt: skip


def _within(t: GroupTest, widest: float) -> GroupTest:
    """The test with its differences cut to what is possible. What a test would find, and how far
    differences shrink, follow from the intervals before they are cut."""
    return replace(
        t,
        difference=t.difference.clip(-widest, widest),
        forms={name: e.clip(-widest, widest) for name, e in t.forms.items()},
    )


def _detectable(
    sides: Mapping[str, Drawn] | None, a: str, b: str, difference: Estimate, tests: int
) -> float:
    """The difference between two of the sides (`REST`: one and all others) that a test among this
    many would find in 80% of cases; `sides` is None if the test uses the normal approximation."""
    if sides is None or not difference.has_interval:
        return detectable_difference(difference, tests)
    others = [s for name, s in sides.items() if (name != a if b == REST else name == b)]
    found = detectable(sides[a], Drawn.joined(others), level=LEVEL / tests, power=POWER)
    return found if math.isfinite(found) else math.nan


@dataclass(frozen=True, slots=True)
class _Part:
    """A sample as sums and sizes of its forms, [f], with resamples."""

    sums: Values
    sizes: Values
    drawn: FormResamples

    @classmethod
    def total(cls, parts: Sequence["_Part"]) -> "_Part":
        return cls(
            sum_arrays([p.sums for p in parts]),
            sum_arrays([p.sizes for p in parts]),
            FormResamples.pool([p.drawn for p in parts]),
        )

    def without(self, part: "_Part") -> "_Part":
        """The total minus one of its parts."""
        return _Part(self.sums - part.sums, self.sizes - part.sizes, self.drawn.without(part.drawn))


def _parts(sides: Mapping[str, StratifiedSample], forms: Sequence[Hashable]) -> dict[str, _Part]:
    """The samples with their resamples, fewer draws if there are very many samples."""
    levels = [
        len(np.unique(level))
        for a in sides.values()
        if a.sample.design is not None
        for level in a.sample.design.levels.values()
    ]
    numbers = 2 * len(forms) * len(sides) * (1 + max(levels, default=0))
    draws = min(DEFAULT_DRAWS, max(_FEWEST_DRAWS, _HELD // max(1, numbers)))
    return {
        name: _Part(*a.table(forms), FormResamples.from_sample(a, forms, draws=draws, seed=n))
        for n, (name, a) in enumerate(sides.items())
    }


@dataclass(frozen=True, slots=True)
class _Figure:
    """A mean over some forms of a sample: at given weights, or of all statements unweighted."""

    places: Sequence[int]
    weights: Values | None

    @classmethod
    def of(cls, forms: Sequence[Hashable], weights: Mapping[Hashable, float]) -> "_Figure":
        places = [place for place, form in enumerate(forms) if form in weights]
        return cls(places, np.array([weights[forms[place]] for place in places], dtype=np.float64))

    @classmethod
    def raw(cls, forms: Sequence[Hashable]) -> "_Figure":
        return cls(range(len(forms)), None)

    def __call__(self, sums: Values, sizes: Values) -> Values:
        own, below = sums[..., self.places], sizes[..., self.places]
        if self.weights is not None:
            return weighted_means(own, below, self.weights)
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(own.sum(axis=-1) / below.sum(axis=-1), dtype=np.float64)

    def n(self, part: _Part) -> int:
        return int(part.sizes[list(self.places)].sum())

    def value(self, part: _Part) -> float:
        return float(self(part.sums, part.sizes))

    def difference(self, first: _Part, second: _Part) -> Estimate:
        """The difference of two samples with its interval; without one if a sample has fewer than
        two of the statements."""
        n, value = (self.n(first), self.n(second)), self.value(first) - self.value(second)
        if min(n) < 2 or math.isnan(value):
            return Estimate.missing(sum(n), value)
        return Estimate(value, *first.drawn.difference_interval(second.drawn, self), sum(n))


def shrunken(differences: Sequence[Estimate]) -> list[Estimate]:
    """Differences shrunken towards 0, more strongly the less is known about each and the less they
    vary beyond chance as a whole: Morris's (1983) parametric empirical Bayes with the mean known to
    be 0, and his intervals, which allow for the spread being estimated. Without a value if fewer
    than four have an interval."""
    known_ones = [d for d in differences if d.has_interval and d.high > d.low]
    k = len(known_ones)
    if k < SHRUNKEN:
        return [Estimate.missing(d.n) for d in differences]
    z = NormalDist().inv_cdf(0.975)
    x = np.array([d.value for d in known_ones])
    v = np.array([((d.high - d.low) / (2 * z)) ** 2 for d in known_ones])
    spread = 0.0
    for _ in range(200):
        weights = 1 / (v + spread)
        found = max(0.0, float(weights @ (x**2 - v) / weights.sum()))
        if abs(found - spread) <= 1e-12 * max(1.0, found):
            break
        spread = found
    weights = 1 / (v + spread)
    middle = float(weights @ v / weights.sum())
    shares = (k - 2) / k * v / (v + spread)
    error = np.sqrt(
        v * (1 - shares) + 2 / (k - 2) * shares**2 * (middle + spread) / (v + spread) * x**2
    )
    values = iter(zip((1 - shares) * x, z * error, strict=True))
    results = []
    for d in differences:
        if d.has_interval and d.high > d.low:
            value, half = map(float, next(values))
            results.append(Estimate(value, value - half, value + half, d.n))
        else:
            results.append(Estimate.missing(d.n))
    return results


def counted_aloud(progress: Progress, measure: str, count: int, work: Iterable[T]) -> Iterator[T]:
    """The `count` pieces of work of a family, with progress if there are many."""
    told = progress if count >= _MANY else SilentProgress()
    told.stage(f"tests of {spoken_name(measure)}", count)
    for piece in work:
        yield piece
        told.advance()


def tested(triples: Iterable[TripleView]) -> list[str]:
    """The measures of the triples that groups, arms and runs are tested on: all but acceptability,
    which already decided which statements were left out."""
    return [name for name in measures_of(triples) if known(name).compares]


def arm_tests(
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
    read, found = draws or Draws({}), list[GroupTest]()
    for measure in measures if measures is not None else tested(triples):
        for category, arms in _by_arm(triples, measure, categories).items():
            sides = {arm: read.stratified_sample(said, measure, by_group=True) for arm, said in arms.items()}
            sides = {arm: a for arm, a in sides.items() if a.n >= MIN_VALUES}
            pairs = [(arm, "none") for arm in sides if arm != "none" and "none" in sides]
            if pairs := pairs or list(combinations(sides, 2)):
                found += compared(measure, category, sides, pairs, "", correction).tests
    return found


def _by_arm(
    triples: Sequence[TripleView], measure: str, categories: Mapping[str, str] | None
) -> dict[str, dict[str, list[TripleView]]]:
    """The triples that have a value of the measure, by category and arm."""
    own: dict[str, dict[str, list[TripleView]]] = defaultdict(lambda: defaultdict(list))
    for t in triples:
        if measure in t.scores:
            category = categories.get(t.group_id, "") if categories is not None else ""
            own[category][t.arm].append(t)
    return {category: dict(sorted(arms.items())) for category, arms in own.items()}


def arm_values(
    triples: Sequence[TripleView],
    measure: str,
    categories: Mapping[str, str] | None = None,
    draws: Draws | None = None,
) -> dict[str, dict[str, Sample]]:
    """For each category and arm, the measure's value for each triple that the arm yielded, and how
    often; `draws` says how they were drawn."""
    read = draws or Draws({})
    return {
        category: {arm: read.sample(said, measure) for arm, said in arms.items()}
        for category, arms in _by_arm(triples, measure, categories).items()
    }


def corrected(family: Sequence[GroupTest], correction: str = "holm") -> list[GroupTest]:
    """The tests with p-values corrected over all of them that have one."""
    defined = [n for n, t in enumerate(family) if not math.isnan(t.p)]
    adjusted = dict(
        zip(defined, CORRECTIONS[correction]([family[n].p for n in defined]), strict=True)
    )
    return [
        replace(t, p_adjusted=adjusted.get(n, math.nan), correction=correction, family=len(family))
        for n, t in enumerate(family)
    ]


def by(difference: Estimate, form: str) -> str:
    """The absolute size of a difference, with its interval turned the same way."""
    d = difference if difference.value >= 0 else difference.divide(-1)
    ends = sorted((d.low, d.high)) if d.has_interval else (math.nan, math.nan)
    return f"{d.value:{form}} ({ends[0]:{form}} to {ends[1]:{form}})"


def unnamed(tests: Sequence[GroupTest]) -> str:
    """What a family of several tests says about all its sides together if no two were shown to
    differ; "" if two were, or for a single test."""
    if len(tests) < 2 or any(t.differs or t.told for t in tests):
        return ""
    t = tests[0]
    if all(x.corrected.is_tested for x in tests):
        least = p_value(min(x.corrected.p_adjusted for x in tests))
        return (
            f"{t.subject}{_CORRECTED}: no difference was shown in {t.category} (the smallest of "
            f"{len(tests)} adjusted p-values: {least})"
        )
    if not only_together(tests):
        return t.verdict
    near = [
        f"{x.first if x.second == REST else f'{x.first} and {x.second}'}: {x.despite}"
        for x in tests
        if x.despite
    ]
    listed = f" ({'; '.join(near)})" if near else ""
    return (
        f"{t.subject}: there is a difference in {t.category} ({p_value(t.omnibus_p)} for all "
        f"together); between which of them was not shown{listed}"
    )


def only_together(tests: Sequence[GroupTest]) -> bool:
    """Whether the sides of a family of several tests were shown to differ, but no two of them."""
    if len(tests) < 2 or any(t.differs or t.told for t in tests):
        return False
    return tests[0].omnibus_p <= LEVEL and not all(t.corrected.is_tested for t in tests)


def p_value(p: float) -> str:
    """A p-value as written in a sentence."""
    shown = text.format_p_value(p)
    return f"p < {shown[1:]}" if shown.startswith("<") else f"p = {shown}"


def leaves_out_none(difference: Estimate) -> bool:
    """Whether the interval of a difference leaves out 0, on the side of the difference itself."""
    d = difference
    return d.has_interval and (d.low > 0 or d.high < 0) and (d.value > 0) == (d.low > 0)


def detectable_difference(
    difference: Estimate, comparisons: int, *, level: float = LEVEL, power: float = POWER
) -> float:
    """The smallest true difference that a two-sided test finds with this power if this many
    comparisons share the level (Bonferroni): (z_(1 - level / 2m) + z_power) times the standard
    error, which is taken from the 95% interval. NaN without an interval."""
    normal = NormalDist()
    error = (difference.high - difference.low) / (2 * normal.inv_cdf(0.975))
    return (normal.inv_cdf(1 - level / (2 * max(1, comparisons))) + normal.inv_cdf(power)) * error
