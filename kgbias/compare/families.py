"""Families of tests: between the groups of a run, and between its augmentation arms.

A family is all the tests that answer one question: one measure, in one category, between its groups
(or between its arms), by both methods. p-values are corrected over the family.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import comb
from statistics import NormalDist
from typing import Literal, TypeVar

from kgbias.compare.two_sample import TwoSample, two_sample
from kgbias.errors import UsageError
from kgbias.graph.draws import Draws
from kgbias.graph.types import Group, Run, TripleView
from kgbias.measures import known, measures_of
from kgbias.progress import Progress, Silent
from kgbias.statistics import Estimate, Sample, benjamini_hochberg, holm

T = TypeVar("T")
Against = Literal["rest", "pairs"]

CORRECTIONS: Mapping[str, Callable[[Sequence[float]], Sequence[float]]] = {
    "holm": lambda p: [float(x) for x in holm(p)],
    "bh": lambda p: [float(x) for x in benjamini_hochberg(p)],
}
Side = tuple[str, str, Sample, Sample]  # two names, and their values
REST = "the other groups"
MOST_PAIRS = 200_000  # of a category: ten minutes of tests
LEVEL, POWER = 0.05, 0.8
_MANY = 200  # tests of a family from which on they take long enough to be counted aloud


@dataclass(frozen=True, slots=True)
class GroupTest:
    """One comparison: the measure, the category, the two sides, and the corrected p-values.

    `ks_adjusted` and `u_adjusted` are corrected over the family of `family` tests; `arm` is the arm
    that both sides are of, "" where the sides are arms or runs.
    """

    measure: str
    category: str
    first: str
    second: str
    result: TwoSample
    ks_adjusted: float = float("nan")
    u_adjusted: float = float("nan")
    correction: str = "holm"
    family: int = 0
    arm: str = ""

    @property
    def detectable(self) -> float:
        """The smallest difference of means that would be found in 80% of cases at the corrected
        level, by the normal approximation; in units of the measure, NaN without an interval."""
        return detectable_difference(self.result.difference, self.family // 2)

    @property
    def differs(self) -> bool:
        """Whether either test finds a difference after correction."""
        return min(self.ks_adjusted, self.u_adjusted) <= LEVEL

    @property
    def verdict(self) -> str:
        """What the comparison says, in words."""
        form, subject = known(self.measure).form.lstrip("+"), self.measure
        d = self.result.difference
        if self.differs:
            way = "above" if d.value > 0 else "below"
            return f"{subject}: {self.first} {way} {self.second} by {by(d, form)}"
        if math.isnan(self.detectable):
            return f"{subject}: too few statements to tell {self.first} from {self.second}"
        return (
            f"{subject}: no difference found between {self.first} and {self.second}; one of "
            f"{self.detectable:{form}} would have been found in 80% of cases"
        )


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
    """Tests between the groups of each category: each group against all others of its category
    together ("rest"), or every pair. Two groups make one comparison either way. Groups without a
    scored triple are left out; a category with fewer than two gives no test. Triples of several
    arms are tested arm by arm, each a family of its own.

    `groups` are the names of those that the tests are about: one is held against the rest of its
    category, several against each other, whatever `against` says. `draws` says how the triples were
    drawn (None: independently)."""
    arms = list(dict.fromkeys(t.arm for t in triples))
    told, read = progress or Silent(), draws or Draws({})
    return [
        test
        for arm in arms
        for test in _group_tests(run, arm, [t for t in triples if t.arm == arm], against,
                                 correction, measures, groups, read, told)
    ]  # fmt: skip


def _group_tests(
    run: Run,
    arm: str,
    triples: Sequence[TripleView],
    against: Against,
    correction: str,
    measures: Sequence[str] | None,
    groups: Sequence[str] | None,
    draws: Draws,
    progress: Progress,
) -> list[GroupTest]:
    found = []
    own: dict[str, list[TripleView]] = defaultdict(list)
    for t in triples:
        own[t.group_id].append(t)
    categories: dict[str, list[Group]] = defaultdict(list)
    for g in run.groups:
        categories[g.category].append(g)
    for measure in measures if measures is not None else tested(triples):
        for category, members in categories.items():
            values = {g.name: draws.sample(own[g.id], measure) for g in members}
            values = {name: v for name, v in values.items() if len(v.values)}
            if groups is not None:
                sides = _chosen(values, [name for name in groups if name in values])
            elif against == "pairs":
                sides = _pairs(values, category)
            else:
                sides = _with_rest(values)
            family = [
                GroupTest(measure, category, a, b, two_sample(v, w), arm=arm)
                for a, b, v, w in counted_aloud(progress, measure, *sides)
            ]
            found += corrected(family, correction)
    return found


def _pairs(values: Mapping[str, Sample], category: str) -> tuple[int, Iterator[Side]]:
    """How many pairs of groups there are, and each in turn."""
    count = comb(len(values), 2)
    if count > MOST_PAIRS:
        raise UsageError(
            f"the {len(values)} groups of {category} make {count} pairs, more than {MOST_PAIRS}: "
            "test each with the rest"
        )
    return count, ((a, b, values[a], values[b]) for a, b in combinations(values, 2))


def _chosen(values: Mapping[str, Sample], groups: Sequence[str]) -> tuple[int, Iterator[Side]]:
    """The pairs of these groups, or one of them and the rest."""
    if len(groups) != 1:
        return _pairs({name: values[name] for name in groups}, "")
    count, sides = _with_rest(values)
    return min(1, count), (side for side in sides if side[0] == groups[0] or count == 1)


def _with_rest(values: Mapping[str, Sample]) -> tuple[int, Iterator[Side]]:
    """The same of each group and the others of its category together."""
    if len(values) <= 2:
        return _pairs(values, "")
    if any(v.design is None for v in values.values()):
        every = Sample.joined(list(values.values())).collapsed()
        return len(values), ((a, REST, v, every.without(v)) for a, v in values.items())
    return len(values), (
        (a, REST, v, Sample.joined([w for b, w in values.items() if b != a]))
        for a, v in values.items()
    )


def counted_aloud(progress: Progress, measure: str, count: int, work: Iterable[T]) -> Iterator[T]:
    """The `count` pieces of work of a family, with progress where they are many."""
    told = progress if count >= _MANY else Silent()
    told.stage(f"tests of {measure}", count)
    for piece in work:
        yield piece
        told.advance()


def tested(triples: Iterable[TripleView]) -> list[str]:
    """The measures of the triples that groups, arms and runs are tested on: all but acceptability,
    by which statements were left out before."""
    return [name for name in measures_of(triples) if name != "acceptability"]


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
    where there is one, else every pair of arms. Each triple has the count of its arm; those of one
    arm give no test."""
    found = []
    for measure in measures if measures is not None else tested(triples):
        by_category = arm_values(triples, measure, categories, draws)
        for category, arms in by_category.items():
            pairs = [(a, "none") for a in arms if a != "none"]
            if "none" not in arms:
                pairs = list(combinations(arms, 2))
            family = [
                GroupTest(measure, category, a, b, two_sample(arms[a], arms[b])) for a, b in pairs
            ]
            found += corrected(family, correction)
    return found


def arm_values(
    triples: Sequence[TripleView],
    measure: str,
    categories: Mapping[str, str] | None = None,
    draws: Draws | None = None,
) -> dict[str, dict[str, Sample]]:
    """For each category and arm, the measure's value for each triple that the arm yielded, and how
    often; `draws` says how they were drawn."""
    read = draws or Draws({})
    own: dict[str, dict[str, list[TripleView]]] = defaultdict(lambda: defaultdict(list))
    for t in triples:
        if measure in t.scores:
            category = categories.get(t.group_id, "") if categories is not None else ""
            own[category][t.arm].append(t)
    return {
        category: {arm: read.sample(said, measure) for arm, said in sorted(arms.items())}
        for category, arms in own.items()
    }


def corrected(family: Sequence[GroupTest], correction: str = "holm") -> list[GroupTest]:
    """The tests with p-values corrected over all of them. The family has two tests for each
    comparison, Kolmogorov-Smirnov and Mann-Whitney."""
    if correction not in CORRECTIONS:
        raise UsageError(f"no correction {correction!r}: choose holm or bh")
    p = [t.result.ks_p for t in family] + [t.result.u_p for t in family]
    adjusted = CORRECTIONS[correction](p)
    half = len(family)
    return [
        replace(t, ks_adjusted=ks, u_adjusted=u, correction=correction, family=2 * half)
        for t, ks, u in zip(family, adjusted[:half], adjusted[half:], strict=True)
    ]


def by(difference: Estimate, form: str) -> str:
    """The size of a difference with its interval, in the direction that it has."""
    d = difference if difference.value >= 0 else difference.divided(-1)
    ends = sorted((d.low, d.high)) if d.has_interval else (math.nan, math.nan)
    return f"{d.value:{form}} ({ends[0]:{form}} to {ends[1]:{form}})"


def detectable_difference(
    difference: Estimate, comparisons: int, *, level: float = LEVEL, power: float = POWER
) -> float:
    """The smallest true difference that a two-sided test finds with this power, where the level is
    shared by so many comparisons (Bonferroni): (z_(1 - level / 2m) + z_power) times the standard
    error, which is read off the 95% interval. NaN without an interval."""
    normal = NormalDist()
    error = (difference.high - difference.low) / (2 * normal.inv_cdf(0.975))
    return (normal.inv_cdf(1 - level / (2 * max(1, comparisons))) + normal.inv_cdf(power)) * error
