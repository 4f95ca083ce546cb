"""Measuring a run: a score for every triple, and from these the figures of each group.

A triple counts as often as it was said. `kgbias.measures` says which figures follow from a
measure.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from itertools import islice

from kgbias.errors import DataError, UsageError
from kgbias.graph.selection import SelectedStatements
from kgbias.graph.store import StoredRun
from kgbias.graph.types import Metric, Score, verbalise
from kgbias.io.progress import Progress, SilentProgress
from kgbias.io.text import spoken_name
from kgbias.measure.figures import update_figures
from kgbias.measure.scorers import Judgement, Scorer, require_language
from kgbias.measure.scorers._together import Judging, Spread, joins, on_cpu, spreads
from kgbias.measure.swapped import score_with_every_name, swappable, tried, try_names
from kgbias.measures import known
from kgbias.parallel import Executor
from kgbias.parallel.local import LocalExecutor, count_cores, count_torch_threads

PIECE = 1024  # statements that are read together
BATCH = 256
_WORTH = 2048  # statements per process; with fewer, starting one takes longer than it saves
_LOOKED_UP = 10_000  # triples whose scores are fetched at a time


def measure(
    run: StoredRun,
    scorers: Sequence[Scorer],
    progress: Progress | None = None,
    *,
    processes: int | None = None,
    executor: Executor | None = None,
) -> SelectedStatements:
    """Score the run's triples by each scorer, skipping those that have a score by the same version,
    and write the figures of each group. May be interrupted and repeated; nothing is scored twice.
    Return the statements that the figures cover, those that count by default.

    `processes` is how many processes read for the scorers that read together (None: one per core
    if there are enough statements); `executor` (None: this machine) reads for these and for
    classifiers. The scores are the same with any.

    Raises UsageError, before anything is scored, if a scorer does not read the run's language or
    the `executor` has nothing to do.
    """
    score(run, scorers, progress, processes=processes, executor=executor)
    _without_names(run, scorers, progress or SilentProgress(), processes, executor)
    run.derive_edges()
    return update_figures(run)


def score(
    run: StoredRun,
    scorers: Sequence[Scorer],
    progress: Progress | None = None,
    *,
    processes: int | None = None,
    executor: Executor | None = None,
) -> None:
    """The same as `measure`, without the figures."""
    require_language(run, scorers)
    progress = progress or SilentProgress()
    if executor and not any(spreads(scorer) for scorer in scorers):
        raise UsageError(
            "`executor` has nothing to do here: it reads for the offline scorers, the axes in "
            "minilm and hf: classifiers"
        )
    if not scorers:
        return
    # In this order, what groups said in the same words lies together and is read together.
    said = sorted(run.distinct_triples(), key=lambda t: (t[2], t[3], t[1]))
    texts = {id: verbalise(group, predicate, object) for id, group, predicate, object in said}
    joined = [scorer for scorer in scorers if joins(scorer)]
    if joined:
        _spread(run, joined, texts, progress, executor, PIECE, processes=processes)
    for scorer in scorers:
        if joins(scorer):
            continue
        if spreads(scorer):
            _spread(run, [scorer], texts, progress, executor, BATCH)
        else:
            _score_alone(run, scorer, texts, progress)
    for scorer in scorers:  # of several for one measure, the last one counts
        run.save_scores(_metric(scorer), ())


def _spread(
    run: StoredRun,
    scorers: Sequence[Spread],
    texts: Mapping[str, str],
    progress: Progress,
    executor: Executor | None,
    size: int,
    *,
    processes: int | None = 1,
) -> None:
    """Score what any of the scorers has not scored yet, by all of them, in pieces of `size`."""
    left = {scorer: _unscored(run, _metric(scorer), texts) for scorer in scorers}
    scorers = [scorer for scorer in scorers if left[scorer]]
    any_left = set().union(*left.values())
    ids = [id for id in texts if id in any_left]
    progress.stage(", ".join(spoken_name(s.measure) for s in scorers) or "scores", len(texts))
    progress.advance(len(texts) - len(ids), cached=len(texts) - len(ids))
    if not ids:
        return
    pieces = [ids[start : start + size] for start in range(0, len(ids), size)]
    work = Judging(scorers, 1 if joins(scorers[0]) else count_torch_threads())
    with ExitStack() as held:
        if executor is None:
            number = processes_for(len(ids), processes) if on_cpu(scorers) else 1
            executor = held.enter_context(closing(LocalExecutor(number)))
        asked = [[texts[id] for id in piece] for piece in pieces]
        found = held.enter_context(closing(executor.run_pieces(work, asked)))
        for place, judgements in found:
            for scorer, own in zip(scorers, judgements, strict=True):
                run.save_scores(_metric(scorer), _scores(scorer, pieces[place], own))
            progress.advance(len(pieces[place]))


def processes_for(statements: int, wanted: int | None = None) -> int:
    """How many processes to use for this many statements: `wanted`, or one for each core that this
    process may use, as long as each has enough to do. With texts as short as statements, two
    threads of one process gain nothing over one."""
    pieces = -(-statements // PIECE)
    return max(1, min(wanted or min(count_cores(), statements // _WORTH), pieces))


def _score_alone(
    run: StoredRun, scorer: Scorer, texts: Mapping[str, str], progress: Progress
) -> None:
    metric = _metric(scorer)
    size = getattr(scorer, "batch", BATCH)
    todo = _unscored(run, metric, texts)
    progress.stage(spoken_name(scorer.measure), len(texts))
    progress.advance(len(texts) - len(todo), cached=len(texts) - len(todo))
    unjudged = 0
    for start in range(0, len(todo), size):
        batch = todo[start : start + size]
        judgements = scorer.score([texts[id] for id in batch])
        run.save_scores(metric, _scores(scorer, batch, judgements))
        progress.advance(len(batch))
        unjudged += sum(j is None for j in judgements)
    if unjudged:
        progress.note(f"{scorer.name} gave no judgement on {unjudged} of {len(todo)} statements")


def _without_names(
    run: StoredRun,
    scorers: Sequence[Scorer],
    progress: Progress,
    processes: int | None,
    executor: Executor | None,
) -> None:
    """Try each scorer on the names of the run's groups; one that reacts to them scores the
    statements with every name (`kgbias.measure.swapped`)."""

    def judge(
        scorer: Scorer, pieces: Sequence[Sequence[str]]
    ) -> Iterator[tuple[int, Sequence[Judgement | None]]]:
        if not spreads(scorer):
            yield from ((n, scorer.score(piece)) for n, piece in enumerate(pieces))
            return
        work = Judging([scorer], 1 if joins(scorer) else count_torch_threads())
        with ExitStack() as held:
            texts = sum(map(len, pieces))
            number = processes_for(texts, processes) if on_cpu([scorer]) and joins(scorer) else 1
            by = executor or held.enter_context(closing(LocalExecutor(number)))
            for place, (judged,) in held.enter_context(closing(by.run_pieces(work, pieces))):
                yield place, judged

    said = bool(run.distinct_triples())
    for scorer in scorers if said else ():
        metric = _metric(scorer)
        if not tried(scorer.measure) or not swappable(scorer.name):
            continue
        if try_names(run, scorer, metric):
            score_with_every_name(run, scorer, metric, judge, progress)
        run.save_scores(metric, ())  # which remains the current one


def _metric(scorer: Scorer) -> Metric:
    return Metric(scorer.measure, scorer.name, scorer.version)


def _unscored(run: StoredRun, metric: Metric, ids: Iterable[str]) -> list[str]:
    """The ids of the triples without a score, in order."""
    found: list[str] = []
    stream = iter(ids)
    while some := list(islice(stream, _LOOKED_UP)):
        done = run.store.scored_triples(metric, some)
        found += [id for id in some if id not in done]
    return found


def _scores(
    scorer: Scorer, ids: Sequence[str], judgements: Sequence[Judgement | None]
) -> list[Score]:
    """A scorer's scores of these triples. Raises DataError for a value outside its measure's range,
    which another package's scorer might give."""
    low, high = known(scorer.measure).range or (-math.inf, math.inf)
    for j in judgements:
        if j and not low <= j.value <= high:
            raise DataError(
                f"{scorer.name} gives {scorer.measure} the value {j.value:g}, which must be a "
                f"number from {low:g} to {high:g}"
            )
    return [
        Score(id, j.value, j.label, dict(j.probabilities))
        for id, j in zip(ids, judgements, strict=True)
        if j
    ]
