"""Families of tests: between the groups of a run, and between its augmentation arms.

A family is all the tests that answer one question: one measure, in one category, between its groups
(or between its arms), by both methods. p-values are corrected over the family.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import comb
from typing import Literal, TypeVar

from kgbias.compare.two_sample import TwoSample, two_sample
from kgbias.errors import UsageError
from kgbias.graph.types import Group, Run, TripleView
from kgbias.measures import measures_of, values_of
from kgbias.progress import Progress, Silent
from kgbias.statistics import Sample, benjamini_hochberg, holm

T = TypeVar("T")
Against = Literal["rest", "pairs"]

CORRECTIONS: Mapping[str, Callable[[Sequence[float]], Sequence[float]]] = {
    "holm": lambda p: [float(x) for x in holm(p)],
    "bh": lambda p: [float(x) for x in benjamini_hochberg(p)],
}
Side = tuple[str, str, Sample, Sample]  # two names, and their values
REST = "the other groups"
MOST_PAIRS = 200_000  # of a category: ten minutes of tests
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


def group_tests(
    run: Run,
    triples: Sequence[TripleView],
    *,
    against: Against = "rest",
    correction: str = "holm",
    measures: Sequence[str] | None = None,
    progress: Progress | None = None,
) -> list[GroupTest]:
    """Tests between the groups of each category: each group against all others of its category
    together ("rest"), or every pair. Two groups make one comparison either way. Groups without a
    scored triple are left out; a category with fewer than two gives no test. Triples of several
    arms are tested arm by arm, each a family of its own."""
    arms = list(dict.fromkeys(t.arm for t in triples))
    return [
        test
        for arm in arms
        for test in _group_tests(run, arm, [t for t in triples if t.arm == arm], against,
                                 correction, measures, progress or Silent())
    ]  # fmt: skip


def _group_tests(
    run: Run,
    arm: str,
    triples: Sequence[TripleView],
    against: Against,
    correction: str,
    measures: Sequence[str] | None,
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
            values = {g.name: values_of(own[g.id], measure) for g in members}
            values = {name: v for name, v in values.items() if len(v.values)}
            sides = _pairs(values, category) if against == "pairs" else _with_rest(values)
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


def _with_rest(values: Mapping[str, Sample]) -> tuple[int, Iterator[Side]]:
    """The same of each group and the others of its category together."""
    if len(values) <= 2:
        return _pairs(values, "")
    every = Sample.joined(list(values.values())).collapsed()
    return len(values), ((a, REST, v, every.without(v)) for a, v in values.items())


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
) -> list[GroupTest]:
    """Tests between the augmentation arms of a run, in each category (Salinas et al. 2023, Table 5
    and Figure 5); `categories` maps group ids to categories. Every arm is compared with "none"
    where there is one, else every pair of arms. Each triple has the count of its arm; those of one
    arm give no test."""
    found = []
    for measure in measures if measures is not None else tested(triples):
        by_category = arm_values(triples, measure, categories)
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
) -> dict[str, dict[str, Sample]]:
    """For each category and arm, the measure's value for each triple that the arm yielded, and how
    often."""
    own: dict[str, dict[str, list[TripleView]]] = defaultdict(lambda: defaultdict(list))
    for t in triples:
        if measure in t.scores:
            category = categories.get(t.group_id, "") if categories is not None else ""
            own[category][t.arm].append(t)
    return {
        category: {arm: values_of(said, measure) for arm, said in sorted(arms.items())}
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
