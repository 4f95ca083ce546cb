"""Measuring a run: a score for every triple, and from these the figures of each group.

A triple counts as often as it was said. Which figures follow from a measure is said in
`kgbias.measures`.
"""

from collections.abc import Sequence

from kgbias.graph.stored import StoredRun
from kgbias.graph.types import Metric, Score
from kgbias.measure.figures import update_figures
from kgbias.measure.language import require_language
from kgbias.measure.scorers import Scorer
from kgbias.progress import Progress, Silent

BATCH = 256


def measure(run: StoredRun, scorers: Sequence[Scorer], progress: Progress | None = None) -> None:
    """Score the run's triples by each scorer, skipping those that have a score by the same version,
    and write the figures of each group. May be interrupted and repeated; nothing is scored twice.

    Raises UsageError, before anything is scored, where a scorer does not read the run's language.
    """
    score(run, scorers, progress)
    run.derive()
    update_figures(run)


def score(run: StoredRun, scorers: Sequence[Scorer], progress: Progress | None = None) -> None:
    """As `measure`, without the figures."""
    require_language(run, scorers)
    for scorer in scorers:
        _score_triples(run, scorer, progress or Silent())


def _score_triples(run: StoredRun, scorer: Scorer, progress: Progress) -> None:
    metric = Metric(scorer.measure, scorer.name, scorer.version)
    triples = run.triples()
    size = getattr(scorer, "batch", BATCH)
    done = run.scored(metric, [t.id for t in triples])
    todo = [t for t in triples if t.id not in done]
    progress.stage(scorer.measure, len(triples))
    progress.advance(len(done), cached=len(done))
    run.save_scores(metric, ())
    unjudged = 0
    for start in range(0, len(todo), size):
        batch = todo[start : start + size]
        judgements = scorer.score([t.sentence for t in batch])
        run.save_scores(
            metric,
            [
                Score(t.id, j.value, j.label, dict(j.probabilities))
                for t, j in zip(batch, judgements, strict=True)
                if j
            ],
        )
        progress.advance(len(batch))
        unjudged += sum(j is None for j in judgements)
    if unjudged:
        progress.note(f"{scorer.name} gave no judgement of {unjudged} of {len(todo)} statements")
