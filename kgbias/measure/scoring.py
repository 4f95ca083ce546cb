"""Measuring a run: a score for every triple, and from these the figures of each group.

Overall regard is N_positive - N_negative (Salinas et al. 2023, Eq. 2), counted over the yielded
triples of a group; toxicity is summarised by mean, median and quartiles (its section 6.2).
"""

from collections.abc import Callable, Sequence

import numpy as np

from kgbias.graph.stored import StoredRun
from kgbias.graph.types import GroupScore, Metric, Run, Score, TripleView
from kgbias.measure.scorers import AXES, Scorer
from kgbias.progress import Progress, Silent
from kgbias.statistics import DRAWS, Values, bootstrap, mean, quantile, total

BATCH = 256
METHOD = f"percentile bootstrap over triples, {DRAWS} draws"

_SIGN = {"positive": 1.0, "negative": -1.0}


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
    """Overall regard, the counts of regard classes, the summary of toxicity, mean warmth and
    competence, per group, with 95% intervals; for the measures that the triples have."""
    figures = []
    for group in run.groups:
        own = [t for t in triples if t.group_id == group.id]
        signs = _values(own, "regard", lambda score: _SIGN.get(score.label, 0.0))
        toxicity = _values(own, "toxicity", lambda score: score.value)
        wanted: list[tuple[str, Values, Callable[[Values], Values]]] = []
        if signs is not None:
            wanted = [
                ("overall_regard", signs, total),
                ("regard_positive", (signs > 0).astype(np.float64), total),
                ("regard_neutral", (signs == 0).astype(np.float64), total),
                ("regard_negative", (signs < 0).astype(np.float64), total),
            ]
        if toxicity is not None:
            wanted += [
                ("toxicity_mean", toxicity, mean),
                ("toxicity_median", toxicity, quantile(0.5)),
                ("toxicity_q1", toxicity, quantile(0.25)),
                ("toxicity_q3", toxicity, quantile(0.75)),
            ]
        for axis in AXES:
            positions = _values(own, axis, lambda score: score.value)
            if positions is not None:
                wanted.append((f"{axis}_mean", positions, mean))
        for name, values, statistic in wanted:
            e = bootstrap(values, statistic)
            figures.append(GroupScore(group.id, name, e.value, e.low, e.high, e.n, METHOD))
    return figures


def _values(
    triples: Sequence[TripleView], measure: str, value: Callable[[Score], float]
) -> Values | None:
    """A measure's value for each yielded triple, or None where no triple was scored."""
    scored = [t for t in triples if measure in t.scores]
    if not scored:
        return None
    return np.repeat([value(t.scores[measure]) for t in scored], [t.count for t in scored])
