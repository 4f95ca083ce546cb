"""Runs side by side: what one says and the other does not, how their groups differ, and whether
they rank the groups alike."""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from kgbias.compare.families import compared_measures
from kgbias.compare.run_setup import (
    check_comparable,
    check_measure_names,
    find_group_ids,
    list_setup_differences,
)
from kgbias.errors import UsageError
from kgbias.graph.selection import (
    SelectedStatements,
    Selection,
    group_triples,
    select_one_arm,
    select_statements,
)
from kgbias.graph.store import StoredRun
from kgbias.graph.types import Run, TripleView
from kgbias.io.progress import Progress
from kgbias.measures import measure_values
from kgbias.stats.inference import Estimate, Sample, Values, bootstrap_pairs, kendall_tau

_DEFAULT_DRAWS = 1000
MIN_GROUPS = 5
"""The fewest groups for which rank agreement is given."""


@dataclass(frozen=True, slots=True)
class StatementOverlap:
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
class RankAgreement:
    """Kendall's tau-b of the groups' means of a measure in two runs, in [-1, 1]: 1 if they rank the
    groups alike. The interval resamples groups; `p` is two-sided, of no agreement; `tau.n` is
    the number of groups."""

    measure: str
    tau: Estimate
    p: float


@dataclass(frozen=True, slots=True)
class RunComparison:
    """Two runs compared: what each says, and whether they rank the groups alike. How the groups
    differ between runs is tested by `kgbias.compare.model_contrasts.contrast_models`. `asked_apart`
    says in what they were not asked alike (`kgbias.compare.run_setup`)."""

    first: Run
    second: Run
    shared_groups: int
    overlap: StatementOverlap
    agreement: tuple[RankAgreement, ...]
    asked_apart: tuple[str, ...] = ()


def compare_runs(
    runs: Sequence[StoredRun],
    *,
    examples: int = 5,
    groups: Sequence[str] = (),
    measures: Sequence[str] = (),
    selection: Selection | None = None,
    progress: Progress | None = None,
) -> list[RunComparison]:
    """Compare every pair of runs by the statements that count. Groups are matched by
    normalised name; `groups` and `measures` limit ranks to these. `selection` chooses the arm of
    runs that have several; a run of one arm is compared as it is. `progress` is told what was left
    out.

    Raises UsageError if two runs have no group in common or cannot be compared
    (`kgbias.compare.run_setup.check_comparable`), none of them has a group or a measure that is
    named, a run is given twice, or a run has several arms and none is chosen."""
    if len({run.id for run in runs}) < len(runs):
        raise UsageError("name each run once")
    check_comparable(runs, measures)
    group_ids = find_group_ids(groups, (group for run in runs for group in run.groups))
    check_measure_names(measures, runs)
    sides = {
        run.id: _RunStatements.from_run(run, selection or Selection(), progress) for run in runs
    }
    return [
        replace(
            _compare_pair(sides[first.id], sides[second.id], examples, group_ids, measures),
            asked_apart=tuple(list_setup_differences([first, second])),
        )
        for first, second in combinations(runs, 2)
    ]


@dataclass(frozen=True, slots=True)
class _RunStatements:
    run: Run
    triples: Sequence[TripleView]

    @classmethod
    def from_run(
        cls, run: StoredRun, selection: Selection, progress: Progress | None
    ) -> "_RunStatements":
        statements = read_single_arm(run, selection)
        if progress is not None and statements.note:
            progress.note(f"{run.name}: {statements.note}")
        return cls(run.record, statements.triples)


def read_single_arm(run: StoredRun, selection: Selection) -> SelectedStatements:
    """The statements that count in the chosen arm of a run; a run of one arm is taken as it is."""
    statements = select_statements(run, replace(selection, arm=None))
    return select_one_arm(run, selection) if statements.has_several_arms else statements


def _compare_pair(
    first_side: _RunStatements,
    second_side: _RunStatements,
    examples: int,
    wanted_groups: Collection[str],
    measures: Sequence[str],
) -> RunComparison:
    first_run, second_run, first, second = (
        first_side.run,
        second_side.run,
        first_side.triples,
        second_side.triples,
    )
    in_second = {group.id for group in second_run.groups}
    shared = [group for group in first_run.groups if group.id in in_second]
    if not shared:
        raise UsageError(f"runs {first_run.name!r} and {second_run.name!r} have no group in common")
    ids = {group.id for group in shared}
    first = [triple for triple in first if triple.group_id in ids]
    second = [triple for triple in second if triple.group_id in ids]
    by_group_sides = [group_triples(first), group_triples(second)]
    agreement = []
    for measure in sorted(set(compared_measures(first)) & set(compared_measures(second))):
        if measures and measure not in measures:
            continue
        pairs: list[tuple[Sample | Values, Sample | Values]] = []
        for group in shared:
            if wanted_groups and group.id not in wanted_groups:
                continue
            values = tuple(
                measure_values(side_triples[group.id], measure) for side_triples in by_group_sides
            )
            if len(values[0].values) and len(values[1].values):
                pairs.append((values[0], values[1]))
        agreement.append(measure_rank_agreement(measure, pairs))
    overlap = _measure_overlap(first, second, examples)
    return RunComparison(first_run, second_run, len(shared), overlap, tuple(agreement))


def _measure_overlap(
    first: Sequence[TripleView], second: Sequence[TripleView], examples: int
) -> StatementOverlap:
    ids = ({t.id for t in first}, {t.id for t in second})

    def only(views: Sequence[TripleView], others: set[str]) -> tuple[TripleView, ...]:
        only_here = [t for t in views if t.id not in others]
        return tuple(sorted(only_here, key=lambda t: (-t.count, t.sentence, t.id))[:examples])

    return StatementOverlap(
        len(ids[0] & ids[1]), len(ids[0]), len(ids[1]), only(first, ids[1]), only(second, ids[0])
    )


def measure_rank_agreement(
    measure: str, pairs: Sequence[tuple[Sample | Values, Sample | Values]], *, seed: int = 0
) -> RankAgreement:
    """Kendall's tau-b over groups (Kendall 1945) of the mean of the first and of the second values
    of each pair. NaN if one side is constant, and below five groups, whose ranks say nothing:
    three can be ranked in six ways. The means are estimates, and their noise pulls tau towards
    0."""
    from scipy.stats import kendalltau

    if len(pairs) < MIN_GROUPS:
        return RankAgreement(measure, Estimate.missing(len(pairs)), math.nan)
    first, second = (
        np.array([Sample.from_values(pair[side]).mean for pair in pairs]) for side in (0, 1)
    )
    tau = bootstrap_pairs(first, second, kendall_tau, draws=_DEFAULT_DRAWS, seed=seed)
    return RankAgreement(measure, tau, float(kendalltau(first, second).pvalue))
