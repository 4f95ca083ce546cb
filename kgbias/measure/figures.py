"""The figures of a run's groups, of the statements that count."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from kgbias.estimate import COVERS
from kgbias.graph.draws import Draws
from kgbias.graph.selection import SENSE, Counted, Selection, select
from kgbias.graph.stored import StoredRun
from kgbias.graph.types import GroupScore, Run, TripleView
from kgbias.measure.topics.run import ENTROPIES, entropies
from kgbias.measures import MEASURES
from kgbias.statistics import (
    DRAWS,
    STATISTICS,
    Estimate,
    Sample,
    bootstrap,
    mean,
    repeated,
    studentised,
)

_OF_STATEMENTS = [f.name for m in MEASURES.values() for f in m.figures if f.statistic is not None]
_COMPUTED = {*_OF_STATEMENTS, *ENTROPIES}
_OVER = {
    True: f"over prompts and rounds, within the crawl's design, {DRAWS} draws",
    False: f"over statements, taken for independent, {DRAWS} draws",
}


def update_figures(run: StoredRun) -> Counted:
    """Write the figures of each group in each arm, of the statements that count by default, in
    place of those that the run has. Returns these statements."""
    counted = select(run)
    found = [*_of_measures(run, counted), *entropies(run, counted)]
    run.save_group_scores(found, replacing=_COMPUTED)
    return counted


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
    found, draws = [], Draws.of(run, counted)
    for arm in counted.arms:
        own, every = counted.of(arm), [t for t in counted.every if t.arm == arm]
        found += group_figures(run.record, own, draws, every=every, arm=counted.label(arm))
    return found


def group_figures(
    run: Run,
    triples: Sequence[TripleView],
    draws: Draws | None = None,
    *,
    every: Sequence[TripleView] | None = None,
    arm: str = "",
) -> list[GroupScore]:
    """The figures of each group that `kgbias.measures` names, with 95% intervals, for the measures
    that the group's triples have. `draws` are how they were drawn (None: independently); `every`
    are the triples before any was left out for its acceptability, of which the figures of
    acceptability are; `arm` is what all are of."""
    every = triples if every is None else every
    said = [(draws or Draws({}), _by_group(triples), _by_group(every))]
    return _figures(run, said, arm)


def pooled_figures(
    runs: Sequence[StoredRun], selection: Selection | None = None
) -> list[GroupScore]:
    """The figures of each group over crawls that repeat each other: totals are means over the
    crawls, all else is of their statements together. The intervals cover recrawls too
    (`kgbias.designs.effects`)."""
    counted = [select(run, selection) for run in runs]
    draws = [Draws.of(run, c) for run, c in zip(runs, counted, strict=True)]
    found = []
    for arm in counted[0].arms:
        said = [
            (d, _by_group(c.of(arm)), _by_group([t for t in c.every if t.arm == arm]))
            for d, c in zip(draws, counted, strict=True)
        ]
        found += _figures(runs[0].record, said, counted[0].label(arm))
    return found


_Triples = Mapping[str, list[TripleView]]


def _figures(
    run: Run, crawls: Sequence[tuple[Draws, _Triples, _Triples]], arm: str
) -> list[GroupScore]:
    """The figures of each group, given for each crawl how its statements were drawn, those that
    count, and those before any was left out."""
    found = []
    for group in run.groups:
        for measure in MEASURES.values():
            samples = [
                draws.sample((whole if measure.name == "acceptability" else own)[group.id],
                             measure.name)
                for draws, own, whole in crawls
            ]  # fmt: skip
            sample = samples[0] if len(samples) == 1 else repeated(samples)
            if not len(sample.values):
                continue
            covers = ("statements",) if sample.design is None else sample.design.covers
            over = f"{_OVER[sample.design is not None]}; {COVERS} {', '.join(covers)}"
            for figure in measure.figures:
                if figure.statistic is not None:
                    kept = sample if figure.counts is None else _equal(sample, figure.counts)
                    e = bootstrap(kept, statistic := STATISTICS[figure.statistic])
                    how = "bootstrap-t" if studentised(kept, statistic) else "percentile bootstrap"
                    if statistic.adds:
                        e = e.divided(len(crawls))
                    found.append(GroupScore.of(group.id, figure.name, e, f"{how} {over}", arm))
    return found


def _by_group(triples: Sequence[TripleView]) -> dict[str, list[TripleView]]:
    found: dict[str, list[TripleView]] = defaultdict(list)
    for triple in triples:
        found[triple.group_id].append(triple)
    return found


def _equal(sample: Sample, wanted: float) -> Sample:
    return replace(sample, values=(sample.values == wanted).astype(np.float64))


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
