"""Families of tests: between the groups of a run, and between its augmentation arms.

A family is all the tests that answer one question: one measure, in one category, between its groups
(or between its arms), by both methods. p-values are corrected over the family.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Literal

from kgbias.compare.two_sample import TwoSample, two_sample
from kgbias.errors import UsageError
from kgbias.graph.types import Run, TripleView
from kgbias.measures import measures_of, values_of
from kgbias.statistics import Sample, benjamini_hochberg, holm

Against = Literal["rest", "pairs"]

CORRECTIONS: Mapping[str, Callable[[Sequence[float]], Sequence[float]]] = {
    "holm": lambda p: [float(x) for x in holm(p)],
    "bh": lambda p: [float(x) for x in benjamini_hochberg(p)],
}
REST = "the other groups"


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
                                 correction, measures)
    ]  # fmt: skip


def _group_tests(
    run: Run,
    arm: str,
    triples: Sequence[TripleView],
    against: Against,
    correction: str,
    measures: Sequence[str] | None,
) -> list[GroupTest]:
    found = []
    own: dict[str, list[TripleView]] = defaultdict(list)
    for t in triples:
        own[t.group_id].append(t)
    for measure in measures if measures is not None else tested(triples):
        for category in dict.fromkeys(g.category for g in run.groups):
            members = [g for g in run.groups if g.category == category]
            values = {g.name: values_of(own[g.id], measure) for g in members}
            values = {name: v for name, v in values.items() if len(v.values)}
            if against == "pairs" or len(values) == 2:
                named = [(a, b, values[a], values[b]) for a, b in combinations(values, 2)]
            elif len(values) > 2:
                every = Sample.joined(list(values.values()))
                named = [(a, REST, v, every.without(v)) for a, v in values.items()]
            else:
                named = []
            family = [
                GroupTest(measure, category, a, b, two_sample(v, w), arm=arm)
                for a, b, v, w in named
            ]
            found += corrected(family, correction)
    return found


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
