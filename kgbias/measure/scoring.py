"""Measuring a run: a score for every triple, and from these the figures of each group.

A triple counts as often as it was said. Which figures follow from a measure is said in
`kgbias.measures`.
"""

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from kgbias.graph.stored import StoredRun
from kgbias.graph.types import GroupScore, Metric, Run, Score, TripleView
from kgbias.measure.scorers import Scorer
from kgbias.measures import MEASURES, values_of
from kgbias.progress import Progress, Silent
from kgbias.statistics import DRAWS, STATISTICS, Sample, bootstrap

BATCH = 256
METHOD = f"percentile bootstrap over triples, {DRAWS} draws"


def measure(run: StoredRun, scorers: Sequence[Scorer], progress: Progress | None = None) -> None:
    """Score the run's triples by each scorer, skipping those that have a score by the same version,
    and write the figures of each group. May be interrupted and repeated; nothing is scored twice.
    """
    progress = progress or Silent()
    for scorer in scorers:
        _score_triples(run, scorer, progress)
    run.derive()
    run.save_group_scores(group_figures(run.record, run.triples()))


def _score_triples(run: StoredRun, scorer: Scorer, progress: Progress) -> None:
    metric = Metric(scorer.measure, scorer.name, scorer.version)
    triples = run.triples()
    done = run.scored(metric, [t.id for t in triples])
    todo = [t for t in triples if t.id not in done]
    progress.stage(scorer.measure, len(triples))
    progress.advance(len(done), cached=len(done))
    run.save_scores(metric, ())
    for start in range(0, len(todo), BATCH):
        batch = todo[start : start + BATCH]
        judgements = scorer.score([t.sentence for t in batch])
        run.save_scores(
            metric,
            [
                Score(t.id, j.value, j.label, dict(j.probabilities))
                for t, j in zip(batch, judgements, strict=True)
            ],
        )
        progress.advance(len(batch))


def group_figures(run: Run, triples: Sequence[TripleView]) -> list[GroupScore]:
    """The figures of each group that `kgbias.measures` names, with 95% intervals, for the measures
    that the group's triples have."""
    own: dict[str, list[TripleView]] = defaultdict(list)
    for triple in triples:
        own[triple.group_id].append(triple)
    found = []
    for group in run.groups:
        for measure in MEASURES.values():
            values = values_of(own[group.id], measure.name)
            if not len(values.values):
                continue
            for figure in measure.figures:
                if figure.statistic is not None:
                    kept = values if figure.counts is None else _equal(values, figure.counts)
                    e = bootstrap(kept, STATISTICS[figure.statistic])
                    found.append(GroupScore.of(group.id, figure.name, e, METHOD))
    return found


def _equal(sample: Sample, wanted: float) -> Sample:
    return Sample((sample.values == wanted).astype(np.float64), sample.counts)
