"""How much of a run's variance lies between its groups, wordings and recrawls."""

import math
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence

import numpy as np

from kgbias.compare.families import tested
from kgbias.graph.cross_mentions import exclude_cross_mentions, explain_costly_measures
from kgbias.graph.draws import Draws
from kgbias.graph.selection import SelectedStatements, Selection, select_statements
from kgbias.graph.store import StoredRun
from kgbias.graph.types import Group, TripleView
from kgbias.stats.inference import Sample
from kgbias.stats.variance import VarianceComponents, CrossedVariances, measure_cells, estimate_crossed


def variance_table(
    runs: Sequence[StoredRun], selection: Selection | None = None
) -> list[VarianceComponents]:
    """The components of each measure in each category and arm, over crawls that repeat each other;
    categories of one group are left out. As in tests of groups, statements that name another group
    do not count, and scores do not depend on the group's name."""
    counted = [exclude_cross_mentions(run, select_statements(run, selection)) for run in runs]
    draws = [Draws.from_run(run, c) for run, c in zip(runs, counted, strict=True)]
    return variance_of(runs[0].groups, counted, draws, explain_costly_measures(runs[0].metrics()))


def variance_of(
    groups: Sequence[Group],
    counted: Sequence[SelectedStatements],
    draws: Sequence[Draws],
    dear: Collection[str] = (),
) -> list[VarianceComponents]:
    """The same for crawls already read: what counts in each, and how it was drawn. `dear` are
    measures by which groups are not compared."""
    found = []
    first = counted[0]
    for arm in first.arms:
        said: dict[tuple[str, int], list[TripleView]] = defaultdict(list)
        for crawl, c in enumerate(counted):
            for t in c.triples_of_arm(arm):
                said[t.group_id, crawl].append(t)
        for measure in (m for m in tested(first.triples_of_arm(arm)) if m not in dear):
            for category in dict.fromkeys(g.category for g in groups):
                samples = {
                    (place, crawl): draws[crawl].sample(said[group.id, crawl], measure)
                    for place, group in enumerate(groups)
                    if group.category == category
                    for crawl in range(len(counted))
                }
                samples = {key: s for key, s in samples.items() if len(s.values)}
                if len({group for group, _ in samples}) > 1:
                    found.append(_components(measure, category, first.arm_label(arm), samples))
    return found


def _components(
    measure: str, category: str, arm: str, samples: dict[tuple[int, int], Sample]
) -> VarianceComponents:
    wordings = {key: _wordings(s) for key, s in samples.items()}
    crawls = {key: np.full(len(s.values), key[1]) for key, s in samples.items()}
    n = sum(s.n for s in samples.values())
    return VarianceComponents(
        measure, category, arm, _crossed(samples, wordings), _crossed(samples, crawls),
        _within(samples, wordings), n,
    )  # fmt: skip


def _within(
    samples: Mapping[tuple[int, int], Sample], units: Mapping[tuple[int, int], np.ndarray]
) -> float:
    """The pooled variance within the cells of groups, crawls and wordings; NaN if each has one
    statement."""
    squares = freedom = 0.0
    for key, sample in samples.items():
        for unit in np.unique(units[key]):
            own = units[key] == unit
            values, counts = sample.values[own], sample.counts[own].astype(np.float64)
            n = float(counts.sum())
            squares += float(counts @ (values - float(counts @ values) / n) ** 2)
            freedom += n - 1
    return squares / freedom if freedom else math.nan


def _crossed(
    samples: Mapping[tuple[int, int], Sample], units: Mapping[tuple[int, int], np.ndarray]
) -> CrossedVariances:
    """The variances of groups by units, given the unit of each value of their samples. A group that
    lacks a unit, or has too few statements in one, is left out."""
    every, numbers = np.unique(np.concatenate(list(units.values())), return_inverse=True)
    ends = np.cumsum([len(own) for own in units.values()])[:-1]
    placed = dict(zip(units, np.split(numbers, ends), strict=True))
    of: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for key in samples:
        of[key[0]].append(key)
    rows = [
        measure_cells([samples[key] for key in own], [placed[key] for key in own], len(every))
        for own in of.values()
    ]
    return estimate_crossed([row for row in rows if row is not None])


def _wordings(sample: Sample) -> np.ndarray:
    """The wording of each value; all 0 if there is only one."""
    if sample.design is None or sample.places is None or "wordings" not in sample.design.levels:
        return np.zeros(len(sample.values), dtype=np.int64)
    return sample.design.levels["wordings"][sample.places]
