"""How much of a run's variance lies between its groups, wordings and recrawls."""

import math
from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from kgbias.compare.families import tested
from kgbias.graph.draws import Draws
from kgbias.graph.selection import Counted, Selection, select
from kgbias.graph.stored import StoredRun
from kgbias.graph.types import Group, TripleView
from kgbias.statistics import Sample
from kgbias.variance import Components, components, nested


def variance_table(
    runs: Sequence[StoredRun], selection: Selection | None = None
) -> list[Components]:
    """The components of each measure in each category and arm, over crawls that repeat each other;
    categories of one group are left out."""
    counted = [select(run, selection) for run in runs]
    draws = [Draws.of(run, c) for run, c in zip(runs, counted, strict=True)]
    return variance_of(runs[0].groups, counted, draws)


def variance_of(
    groups: Sequence[Group], counted: Sequence[Counted], draws: Sequence[Draws]
) -> list[Components]:
    """The same, of crawls that were read: what counts in each, and how it was drawn."""
    found = []
    first = counted[0]
    for arm in first.arms:
        said: dict[tuple[str, int], list[TripleView]] = defaultdict(list)
        for crawl, c in enumerate(counted):
            for t in c.of(arm):
                said[t.group_id, crawl].append(t)
        for measure in tested(first.of(arm)):
            for category in dict.fromkeys(g.category for g in groups):
                samples = {
                    (place, crawl): draws[crawl].sample(said[group.id, crawl], measure)
                    for place, group in enumerate(groups)
                    if group.category == category
                    for crawl in range(len(counted))
                }
                samples = {key: s for key, s in samples.items() if len(s.values)}
                if len({group for group, _ in samples}) > 1:
                    found.append(_components(measure, category, first.label(arm), samples))
    return found


def _components(
    measure: str, category: str, arm: str, samples: dict[tuple[int, int], Sample]
) -> Components:
    sizes = [len(s.values) for s in samples.values()]
    groups, crawls = (np.repeat([key[n] for key in samples], sizes) for n in (0, 1))
    wordings = np.concatenate([_wordings(s) for s in samples.values()])
    factors = {"groups": groups}
    if len(np.unique(wordings)) > 1:
        factors["wordings"] = nested(groups, wordings)
    if len(np.unique(crawls)) > 1:
        factors["recrawls"] = nested(groups, crawls)
    values = np.concatenate([s.values for s in samples.values()])
    counts = np.concatenate([s.counts for s in samples.values()])
    own = components(values, factors, counts=counts)
    n = sum(s.n for s in samples.values())
    return Components(
        measure, category, arm, own["groups"], own.get("wordings", math.nan),
        own.get("recrawls", math.nan), own["within"], n,
    )  # fmt: skip


def _wordings(sample: Sample) -> np.ndarray:
    """The wording of each value; all 0 where there is one."""
    if sample.design is None or sample.places is None or "wordings" not in sample.design.levels:
        return np.zeros(len(sample.values), dtype=np.int64)
    return sample.design.levels["wordings"][sample.places]
