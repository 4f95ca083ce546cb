"""Measuring a run: a score for every triple, and from these the figures of each group.

A triple counts as often as it was said. Which figures follow from a measure is said in
`kgbias.measures`.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from itertools import islice

from kgbias.graph.stored import StoredRun
from kgbias.graph.types import Metric, Score, verbalise
from kgbias.measure.figures import update_figures
from kgbias.measure.language import require_language
from kgbias.measure.scorers import Judgement, Scorer
from kgbias.measure.scorers._together import Joined, joins, on_cpu
from kgbias.measure.workers import PIECE, judged, processes_for
from kgbias.progress import Progress, Silent

BATCH = 256
_LOOKED_UP = 10_000  # triples whose scores are asked for at a time


def measure(
    run: StoredRun,
    scorers: Sequence[Scorer],
    progress: Progress | None = None,
    *,
    processes: int | None = None,
) -> None:
    """Score the run's triples by each scorer, skipping those that have a score by the same version,
    and write the figures of each group. May be interrupted and repeated; nothing is scored twice.

    `processes` is how many processes read for the scorers that read together (None: one for each
    core, where there are statements enough); the scores are the same with any number.

    Raises UsageError, before anything is scored, where a scorer does not read the run's language.
    """
    score(run, scorers, progress, processes=processes)
    run.derive()
    update_figures(run)


def score(
    run: StoredRun,
    scorers: Sequence[Scorer],
    progress: Progress | None = None,
    *,
    processes: int | None = None,
) -> None:
    """As `measure`, without the figures."""
    require_language(run, scorers)
    if not scorers:
        return
    progress = progress or Silent()
    # In this order what groups said alike lies together, and is read together.
    said = sorted(run.said(), key=lambda t: (t[2], t[3], t[1]))
    texts = {id: verbalise(group, predicate, object) for id, group, predicate, object in said}
    joined = [scorer for scorer in scorers if joins(scorer)]
    if joined:
        _score_together(run, joined, texts, progress, processes)
    for scorer in scorers:
        if not joins(scorer):
            _score_alone(run, scorer, texts, progress)
    for scorer in scorers:  # of several of a measure the last one counts
        run.save_scores(_metric(scorer), ())


def _score_together(
    run: StoredRun,
    scorers: Sequence[Joined],
    texts: Mapping[str, str],
    progress: Progress,
    processes: int | None,
) -> None:
    """Score what any of the scorers has not scored yet, piece by piece, by all of these."""
    left = {scorer: _unscored(run, _metric(scorer), texts) for scorer in scorers}
    scorers = [scorer for scorer in scorers if left[scorer]]
    any_left = set().union(*left.values())
    ids = [id for id in texts if id in any_left]
    progress.stage(", ".join(s.measure for s in scorers) or "scores", len(texts))
    progress.advance(len(texts) - len(ids), cached=len(texts) - len(ids))
    pieces = [ids[start : start + PIECE] for start in range(0, len(ids), PIECE)]
    number = processes_for(len(ids), processes) if on_cpu(scorers) else 1
    said = [[texts[id] for id in piece] for piece in pieces]
    with closing(judged(scorers, said, number)) as found:
        for place, judgements in found:
            for scorer, own in zip(scorers, judgements, strict=True):
                run.save_scores(_metric(scorer), _scores(pieces[place], own))
            progress.advance(len(pieces[place]))


def _score_alone(
    run: StoredRun, scorer: Scorer, texts: Mapping[str, str], progress: Progress
) -> None:
    metric = _metric(scorer)
    size = getattr(scorer, "batch", BATCH)
    todo = _unscored(run, metric, texts)
    progress.stage(scorer.measure, len(texts))
    progress.advance(len(texts) - len(todo), cached=len(texts) - len(todo))
    unjudged = 0
    for start in range(0, len(todo), size):
        batch = todo[start : start + size]
        judgements = scorer.score([texts[id] for id in batch])
        run.save_scores(metric, _scores(batch, judgements))
        progress.advance(len(batch))
        unjudged += sum(j is None for j in judgements)
    if unjudged:
        progress.note(f"{scorer.name} gave no judgement of {unjudged} of {len(todo)} statements")


def _metric(scorer: Scorer) -> Metric:
    return Metric(scorer.measure, scorer.name, scorer.version)


def _unscored(run: StoredRun, metric: Metric, ids: Iterable[str]) -> list[str]:
    """The ids of those triples that have no score, in their order."""
    found: list[str] = []
    stream = iter(ids)
    while some := list(islice(stream, _LOOKED_UP)):
        done = run.scored(metric, some)
        found += [id for id in some if id not in done]
    return found


def _scores(ids: Sequence[str], judgements: Sequence[Judgement | None]) -> list[Score]:
    return [
        Score(id, j.value, j.label, dict(j.probabilities))
        for id, j in zip(ids, judgements, strict=True)
        if j
    ]
