"""The figures of a run's groups, of the statements that count."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from kgbias.graph.selection import SENSE, Counted, Selection, select
from kgbias.graph.stored import StoredRun
from kgbias.graph.types import GroupScore, Run, TripleView
from kgbias.measure.topics.run import ENTROPIES, entropies
from kgbias.measures import MEASURES, values_of
from kgbias.statistics import DRAWS, STATISTICS, Estimate, Sample, bootstrap, mean

_OF_STATEMENTS = [f.name for m in MEASURES.values() for f in m.figures if f.statistic is not None]
_COMPUTED = {*_OF_STATEMENTS, *ENTROPIES}
METHOD = f"percentile bootstrap over triples, {DRAWS} draws"


def update_figures(run: StoredRun) -> None:
    """Write the figures of each group in each arm, of the statements that count by default, in
    place of those that the run has."""
    counted = select(run)
    found = [*_of_measures(run, counted), *entropies(run, counted)]
    run.save_group_scores(found, replacing=_COMPUTED)


def figures_of(
    run: StoredRun, selection: Selection | None = None, counted: Counted | None = None
) -> list[GroupScore]:
    """The figures of each group in each arm, of the statements that count: as they are stored where
    that is the default, else computed. A run that was not measured has none.

    `counted` are the selection's statements, where they were read already.
    """
    selection = selection or Selection()
    counted = counted or select(run, selection)
    own: list[GroupScore] = []
    rest: list[GroupScore] = []
    for s in run.group_scores():
        (own if s.measure in _COMPUTED else rest).append(s)
    if replace(selection, arm=None) == Selection():
        labels = set(map(counted.label, counted.arms))
        if found := [s for s in own if s.arm in labels]:
            return [*found, *rest]
    return [*_of_measures(run, counted), *entropies(run, counted), *rest]


def _of_measures(run: StoredRun, counted: Counted) -> list[GroupScore]:
    found = []
    for arm in counted.arms:
        own, every = counted.of(arm), [t for t in counted.every if t.arm == arm]
        found += group_figures(run.record, own, every=every, arm=counted.label(arm))
    return found


def group_figures(
    run: Run,
    triples: Sequence[TripleView],
    *,
    every: Sequence[TripleView] | None = None,
    arm: str = "",
) -> list[GroupScore]:
    """The figures of each group that `kgbias.measures` names, with 95% intervals, for the measures
    that the group's triples have. `every` are the triples before any was left out for its
    acceptability, of which the figures of acceptability are; `arm` is what all are of."""
    own, whole = _by_group(triples), _by_group(triples if every is None else every)
    found = []
    for group in run.groups:
        for measure in MEASURES.values():
            said = whole if measure.name == "acceptability" else own
            values = values_of(said[group.id], measure.name)
            if not len(values.values):
                continue
            for figure in measure.figures:
                if figure.statistic is not None:
                    kept = values if figure.counts is None else _equal(values, figure.counts)
                    e = bootstrap(kept, STATISTICS[figure.statistic])
                    found.append(GroupScore.of(group.id, figure.name, e, METHOD, arm))
    return found


def _by_group(triples: Sequence[TripleView]) -> dict[str, list[TripleView]]:
    found: dict[str, list[TripleView]] = defaultdict(list)
    for triple in triples:
        found[triple.group_id].append(triple)
    return found


def _equal(sample: Sample, wanted: float) -> Sample:
    return Sample((sample.values == wanted).astype(np.float64), sample.counts)


def sense(triples: Sequence[TripleView]) -> Estimate:
    """The share of statements, each as often as it was said, with an acceptability of at least
    0.5, in [0, 1], with the percentile bootstrap interval over statements. Statements without a
    score are not in it; NaN and n = 0 where none has one."""
    scored = [(t.scores["acceptability"].value, t.count) for t in triples
              if "acceptability" in t.scores]  # fmt: skip
    if not scored:
        return Estimate.missing()
    values, counts = zip(*scored, strict=True)
    makes = (np.array(values) >= SENSE).astype(np.float64)
    return bootstrap(Sample(makes, np.array(counts, dtype=np.int64)), mean)
