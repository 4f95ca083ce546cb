"""Runs side by side: what one says and the other does not, how their groups differ, and whether
they rank the groups alike."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from kgbias.compare.asking import asked_apart, check_comparable
from kgbias.compare.families import tested
from kgbias.errors import UsageError
from kgbias.graph.selection import SelectedStatements, Selection, group_triples, select_one_arm, select_statements
from kgbias.graph.store import StoredRun
from kgbias.graph.types import Run, TripleView, node_id
from kgbias.io.progress import Progress
from kgbias.measures import values_of
from kgbias.stats.inference import Estimate, Sample, Values, bootstrap_pairs, kendall_tau

_DRAWS = 1000
FEWEST = 5
"""The fewest groups for which rank agreement is given."""


@dataclass(frozen=True, slots=True)
class Overlap:
    """The distinct statements of two runs about the groups that both have. `jaccard` is the share
    of all of them that both say, in [0, 1], NaN if there are none; `only_first` and `only_second`
    are the most frequent statements that only one of the runs has."""

    both: int
    first: int
    second: int
    only_first: tuple[TripleView, ...]
    only_second: tuple[TripleView, ...]

    @property
    def jaccard(self) -> float:
        union = self.first + self.second - self.both
        return self.both / union if union else math.nan


@dataclass(frozen=True, slots=True)
class Agreement:
    """Kendall's tau-b of the groups' means of a measure in two runs, in [-1, 1]: 1 if they rank the
    groups alike. The interval resamples groups; `p` is two-sided, of no agreement; `tau.n` is
    the number of groups."""

    measure: str
    tau: Estimate
    p: float


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two runs compared: what each says, and whether they rank the groups alike. How the groups
    differ between runs is tested by `kgbias.compare.models.contrasts`. `asked_apart` says in what
    they were not asked alike (`kgbias.compare.asking`)."""

    first: Run
    second: Run
    shared_groups: int
    overlap: Overlap
    agreement: tuple[Agreement, ...]
    asked_apart: tuple[str, ...] = ()


def compare_runs(
    runs: Sequence[StoredRun],
    *,
    examples: int = 5,
    groups: Sequence[str] = (),
    measures: Sequence[str] = (),
    selection: Selection | None = None,
    progress: Progress | None = None,
) -> list[Comparison]:
    """Compare every pair of runs by the statements that count. Groups are matched by
    normalised name; `groups` and `measures` limit ranks to these. `selection` chooses the arm of
    runs that have several; a run of one arm is compared as it is. `progress` is told what was left
    out.

    Raises UsageError if two runs have no group in common or cannot be compared
    (`kgbias.compare.asking.check_comparable`), a run is given twice, or a run has several arms and
    none is chosen."""
    if len({run.id for run in runs}) < len(runs):
        raise UsageError("name each run once")
    check_comparable(runs, measures)
    sides = {run.id: _Side.of(run, selection or Selection(), progress) for run in runs}
    return [
        replace(
            _compare(sides[a.id], sides[b.id], examples, groups, measures),
            asked_apart=tuple(asked_apart([a, b])),
        )
        for a, b in combinations(runs, 2)
    ]


@dataclass(frozen=True, slots=True)
class _Side:
    run: Run
    triples: Sequence[TripleView]

    @classmethod
    def of(cls, run: StoredRun, selection: Selection, progress: Progress | None) -> "_Side":
        counted = of_one(run, selection)
        if progress is not None and counted.note:
            progress.note(f"{run.name}: {counted.note}")
        return cls(run.record, counted.triples)


def of_one(run: StoredRun, selection: Selection) -> SelectedStatements:
    """The statements that count in the chosen arm of a run; a run of one arm is taken as it is."""
    counted = select_statements(run, replace(selection, arm=None))
    return select_one_arm(run, selection) if counted.has_several_arms else counted


def _compare(
    one: _Side,
    other: _Side,
    examples: int,
    groups: Sequence[str],
    measures: Sequence[str],
) -> Comparison:
    a, b, first, second = one.run, other.run, one.triples, other.triples
    asked = {node_id("group", name) for name in groups}
    in_second = {g.id for g in b.groups}
    shared = [g for g in a.groups if g.id in in_second]
    if not shared:
        raise UsageError(f"runs {a.name!r} and {b.name!r} have no group in common")
    ids = {g.id for g in shared}
    first = [t for t in first if t.group_id in ids]
    second = [t for t in second if t.group_id in ids]
    own = [group_triples(first), group_triples(second)]
    agreement = []
    for measure in sorted(set(tested(first)) & set(tested(second))):
        if measures and measure not in measures:
            continue
        pairs: list[tuple[Sample | Values, Sample | Values]] = []
        for g in shared:
            if asked and g.id not in asked:
                continue
            values = tuple(values_of(said[g.id], measure) for said in own)
            if len(values[0].values) and len(values[1].values):
                pairs.append((values[0], values[1]))
        agreement.append(rank_agreement(measure, pairs))
    overlap = _overlap(first, second, examples)
    return Comparison(a, b, len(shared), overlap, tuple(agreement))


def _overlap(first: Sequence[TripleView], second: Sequence[TripleView], examples: int) -> Overlap:
    ids = ({t.id for t in first}, {t.id for t in second})

    def only(views: Sequence[TripleView], others: set[str]) -> tuple[TripleView, ...]:
        alone = [t for t in views if t.id not in others]
        return tuple(sorted(alone, key=lambda t: (-t.count, t.sentence, t.id))[:examples])

    return Overlap(
        len(ids[0] & ids[1]), len(ids[0]), len(ids[1]), only(first, ids[1]), only(second, ids[0])
    )


def rank_agreement(
    measure: str, pairs: Sequence[tuple[Sample | Values, Sample | Values]], *, seed: int = 0
) -> Agreement:
    """Kendall's tau-b over groups (Kendall 1945) of the mean of the first and of the second values
    of each pair. NaN if one side is constant, and below five groups, whose ranks say nothing:
    three can be ranked in six ways. The means are estimates, and their noise pulls tau towards
    0."""
    from scipy.stats import kendalltau

    if len(pairs) < FEWEST:
        return Agreement(measure, Estimate.missing(len(pairs)), math.nan)
    first, second = (np.array([Sample.from_values(pair[side]).mean for pair in pairs]) for side in (0, 1))
    tau = bootstrap_pairs(first, second, kendall_tau, draws=_DRAWS, seed=seed)
    return Agreement(measure, tau, float(kendalltau(first, second).pvalue))
