"""How much of a run's variance lies between its groups, wordings and recrawls."""

import math
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence

import numpy as np

from kgbias.compare.families import compared_measures
from kgbias.graph.cross_mentions import exclude_cross_mentions, explain_costly_measures
from kgbias.graph.draws import Draws
from kgbias.graph.selection import SelectedStatements, Selection, select_statements
from kgbias.graph.store import StoredRun
from kgbias.graph.types import Group, TripleView
from kgbias.stats.inference import Sample
from kgbias.stats.variance import (
    CrossedVariances,
    VarianceComponents,
    estimate_crossed_variances,
    estimate_group_cells,
)


def variance_table(
    runs: Sequence[StoredRun], selection: Selection | None = None
) -> list[VarianceComponents]:
    """The components of each measure in each category and arm, over crawls that repeat each other;
    categories of one group are left out. As in tests of groups, statements that name another group
    do not count, and scores do not depend on the group's name."""
    statements = [exclude_cross_mentions(run, select_statements(run, selection)) for run in runs]
    draws = [
        Draws.from_run(run, counted_run) for run, counted_run in zip(runs, statements, strict=True)
    ]
    return compute_variances(
        runs[0].groups, statements, draws, explain_costly_measures(runs[0].metrics())
    )


def compute_variances(
    groups: Sequence[Group],
    statements: Sequence[SelectedStatements],
    draws: Sequence[Draws],
    excluded_measures: Collection[str] = (),
) -> list[VarianceComponents]:
    """The same for crawls already read: what counts in each, and how it was drawn.
    `excluded_measures` are measures by which groups are not compared."""
    components = []
    first = statements[0]
    for arm in first.arms:
        by_group_and_crawl: dict[tuple[str, int], list[TripleView]] = defaultdict(list)
        for crawl, crawl_statements in enumerate(statements):
            for triple in crawl_statements.triples_of_arm(arm):
                by_group_and_crawl[triple.group_id, crawl].append(triple)
        for measure in (
            m for m in compared_measures(first.triples_of_arm(arm)) if m not in excluded_measures
        ):
            for category in dict.fromkeys(g.category for g in groups):
                samples = {
                    (place, crawl): draws[crawl].sample(
                        by_group_and_crawl[group.id, crawl], measure
                    )
                    for place, group in enumerate(groups)
                    if group.category == category
                    for crawl in range(len(statements))
                }
                samples = {key: sample for key, sample in samples.items() if len(sample.values)}
                if len({group_place for group_place, _ in samples}) > 1:
                    components.append(
                        _build_components(measure, category, first.arm_label(arm), samples)
                    )
    return components


def _build_components(
    measure: str, category: str, arm: str, samples: dict[tuple[int, int], Sample]
) -> VarianceComponents:
    wordings = {key: _wording_numbers(s) for key, s in samples.items()}
    crawls = {key: np.full(len(s.values), key[1]) for key, s in samples.items()}
    size = sum(s.n for s in samples.values())
    return VarianceComponents(
        measure,
        category,
        arm,
        _cross_units(samples, wordings),
        _cross_units(samples, crawls),
        _pooled_variance(samples, wordings),
        size,
    )


def _pooled_variance(
    samples: Mapping[tuple[int, int], Sample], units: Mapping[tuple[int, int], np.ndarray]
) -> float:
    """The pooled variance within the cells of groups, crawls and wordings; NaN if each has one
    statement."""
    squares = freedom = 0.0
    for key, sample in samples.items():
        for unit in np.unique(units[key]):
            in_unit = units[key] == unit
            values, counts = sample.values[in_unit], sample.counts[in_unit].astype(np.float64)
            cell_size = float(counts.sum())
            squares += float(counts @ (values - float(counts @ values) / cell_size) ** 2)
            freedom += cell_size - 1
    return squares / freedom if freedom else math.nan


def _cross_units(
    samples: Mapping[tuple[int, int], Sample], units: Mapping[tuple[int, int], np.ndarray]
) -> CrossedVariances:
    """The variances of groups by units, given the unit of each value of their samples. A group that
    lacks a unit, or has too few statements in one, is left out."""
    distinct_units, numbers = np.unique(np.concatenate(list(units.values())), return_inverse=True)
    ends = np.cumsum([len(value_units) for value_units in units.values()])[:-1]
    numbers_by_key = dict(zip(units, np.split(numbers, ends), strict=True))
    keys_by_group: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for key in samples:
        keys_by_group[key[0]].append(key)
    rows = [
        estimate_group_cells(
            [samples[key] for key in group_keys],
            [numbers_by_key[key] for key in group_keys],
            len(distinct_units),
        )
        for group_keys in keys_by_group.values()
    ]
    return estimate_crossed_variances([row for row in rows if row is not None])


def _wording_numbers(sample: Sample) -> np.ndarray:
    """The wording of each value; all 0 if there is only one."""
    if sample.design is None or sample.places is None or "wordings" not in sample.design.levels:
        return np.zeros(len(sample.values), dtype=np.int64)
    return sample.design.levels["wordings"][sample.places]
