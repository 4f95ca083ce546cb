"""Measuring a run: a score for every triple, and from these the figures of each group.

A triple counts as often as it was said. `kgbias.measures` says which figures follow from a
measure.

Every score knows its scorer (`kgbias.graph.types.Metric`): scores are keyed by metric and triple.
So scoring again is free, and a new scorer never overwrites an old one. A run has one current metric
for each measure.
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
from kgbias.measure.counterfactual import (
    can_swap_names,
    is_tried_on_names,
    score_with_every_name,
    try_names,
)
from kgbias.measure.figures import update_run_figures
from kgbias.measure.scorers import Judgement, Scorer, require_language
from kgbias.measure.scorers._axes import AxisScorer
from kgbias.measure.scorers._joint_scoring import (
    DistributableScorer,
    ScoringTask,
    all_on_cpu,
    is_distributable,
    reads_jointly,
)
from kgbias.measure.scorers._scores_file import FileScorer
from kgbias.measures import get_measure
from kgbias.parallel import Executor
from kgbias.parallel.local import LocalExecutor, count_cores, count_torch_threads

PIECE_STATEMENTS = 1024  # statements that are read together
BATCH_STATEMENTS = 256
_MIN_PROCESS_STATEMENTS = (
    2048  # statements per process; with fewer, starting one takes longer than it saves
)
_LOOKUP_TRIPLES = 10_000  # triples whose scores are fetched at a time


def measure_run(
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
    score_triples(run, scorers, progress, processes=processes, executor=executor)
    _score_without_names(run, scorers, progress or SilentProgress(), processes, executor)
    run.derive_edges()
    return update_run_figures(run)


def score_triples(
    run: StoredRun,
    scorers: Sequence[Scorer],
    progress: Progress | None = None,
    *,
    processes: int | None = None,
    executor: Executor | None = None,
) -> None:
    """The same as `measure_run`, without the figures."""
    require_language(run, scorers)
    progress = progress or SilentProgress()
    if executor and not any(is_distributable(scorer) for scorer in scorers):
        raise UsageError(
            "`executor` has nothing to do here: it reads for the offline scorers, the axes in "
            "minilm and hf: classifiers"
        )
    if not scorers:
        return
    # In this order, what groups said in the same words lies together and is read together.
    sorted_triples = sorted(run.distinct_triples(), key=lambda t: (t[2], t[3], t[1]))
    texts = {
        id: verbalise(group, predicate, object) for id, group, predicate, object in sorted_triples
    }
    for scorer in scorers:
        if isinstance(scorer, FileScorer):  # before the others have read for minutes
            scorer.need_scores(list(texts.values()))
        elif isinstance(scorer, AxisScorer) and not reads_jointly(scorer):
            scorer.open()
    joint_scorers = [scorer for scorer in scorers if reads_jointly(scorer)]
    if joint_scorers:
        _score_distributed(
            run, joint_scorers, texts, progress, executor, PIECE_STATEMENTS, processes=processes
        )
    for scorer in scorers:
        if reads_jointly(scorer):
            continue
        if is_distributable(scorer):
            _score_distributed(run, [scorer], texts, progress, executor, BATCH_STATEMENTS)
        else:
            _score_alone(run, scorer, texts, progress)
    for scorer in scorers:  # of several for one measure, the last one counts
        run.save_scores(_metric_of(scorer), ())


def _score_distributed(
    run: StoredRun,
    scorers: Sequence[DistributableScorer],
    texts: Mapping[str, str],
    progress: Progress,
    executor: Executor | None,
    size: int,
    *,
    processes: int | None = 1,
) -> None:
    """Score what any of the scorers has not scored yet, by all of them, in pieces of `size`."""
    unscored_ids = {scorer: _find_unscored(run, _metric_of(scorer), texts) for scorer in scorers}
    scorers = [scorer for scorer in scorers if unscored_ids[scorer]]
    any_left = set().union(*unscored_ids.values())
    ids = [id for id in texts if id in any_left]
    progress.stage(", ".join(spoken_name(s.measure) for s in scorers) or "scores", len(texts))
    progress.advance(len(texts) - len(ids), cached=len(texts) - len(ids))
    if not ids:
        return
    pieces = [ids[start : start + size] for start in range(0, len(ids), size)]
    # MiniLM on texts as short as statements gains nothing from a second thread.
    work = ScoringTask(scorers, 1 if reads_jointly(scorers[0]) else count_torch_threads())
    with ExitStack() as resources:
        if executor is None:
            process_count = choose_processes(len(ids), processes) if all_on_cpu(scorers) else 1
            local = LocalExecutor(process_count, progress.note)
            executor = resources.enter_context(closing(local))
        texts_by_piece = [[texts[id] for id in piece] for piece in pieces]
        # Closed even if saving fails: the processes end with the generator.
        results = resources.enter_context(closing(executor.run_pieces(work, texts_by_piece)))
        for place, judgements in results:
            for scorer, scorer_judgements in zip(scorers, judgements, strict=True):
                run.save_scores(
                    _metric_of(scorer), _make_scores(scorer, pieces[place], scorer_judgements)
                )
            progress.advance(len(pieces[place]))


def choose_processes(statements: int, requested: int | None = None) -> int:
    """How many processes to use for this many statements: `requested`, or one for each core that
    this process may use, as long as each has enough to do. With texts as short as statements, two
    threads of one process gain nothing over one."""
    pieces = -(-statements // PIECE_STATEMENTS)
    return max(
        1, min(requested or min(count_cores(), statements // _MIN_PROCESS_STATEMENTS), pieces)
    )


def _score_alone(
    run: StoredRun, scorer: Scorer, texts: Mapping[str, str], progress: Progress
) -> None:
    metric = _metric_of(scorer)
    # Each batch is saved before the next is asked for: what a paid judge said is not lost.
    size = getattr(scorer, "batch_size", BATCH_STATEMENTS)
    todo = _find_unscored(run, metric, texts)
    progress.stage(spoken_name(scorer.measure), len(texts))
    progress.advance(len(texts) - len(todo), cached=len(texts) - len(todo))
    unjudged = 0
    for start in range(0, len(todo), size):
        batch = todo[start : start + size]
        judgements = scorer.score([texts[id] for id in batch])
        run.save_scores(metric, _make_scores(scorer, batch, judgements))
        progress.advance(len(batch))
        unjudged += sum(j is None for j in judgements)
    if unjudged:
        progress.note(f"{scorer.name} gave no judgement on {unjudged} of {len(todo)} statements")


def _score_without_names(
    run: StoredRun,
    scorers: Sequence[Scorer],
    progress: Progress,
    processes: int | None,
    executor: Executor | None,
) -> None:
    """Try each scorer on the names of the run's groups; one that reacts to them scores the
    statements with every name (`kgbias.measure.counterfactual`)."""

    def judge(
        scorer: Scorer, pieces: Sequence[Sequence[str]]
    ) -> Iterator[tuple[int, Sequence[Judgement | None]]]:
        if not is_distributable(scorer):
            yield from ((n, scorer.score(piece)) for n, piece in enumerate(pieces))
            return
        work = ScoringTask([scorer], 1 if reads_jointly(scorer) else count_torch_threads())
        with ExitStack() as resources:
            texts = sum(map(len, pieces))
            process_count = (
                choose_processes(texts, processes)
                if all_on_cpu([scorer]) and reads_jointly(scorer)
                else 1
            )
            worker_executor = executor or resources.enter_context(
                closing(LocalExecutor(process_count))
            )
            for place, (piece_judgements,) in resources.enter_context(
                closing(worker_executor.run_pieces(work, pieces))
            ):
                yield place, piece_judgements

    # An empty run would try every scorer on names, and open it, for nothing.
    has_statements = bool(run.distinct_triples())
    for scorer in scorers if has_statements else ():
        metric = _metric_of(scorer)
        if not is_tried_on_names(scorer.measure) or not can_swap_names(scorer.name):
            continue
        if try_names(run, scorer, metric):
            score_with_every_name(run, scorer, metric, judge, progress)
        run.save_scores(metric, ())  # which remains the current one


def _metric_of(scorer: Scorer) -> Metric:
    return Metric(scorer.measure, scorer.name, scorer.version)


def _find_unscored(run: StoredRun, metric: Metric, ids: Iterable[str]) -> list[str]:
    """The ids of the triples without a score, in order."""
    unscored: list[str] = []
    stream = iter(ids)
    while chunk := list(islice(stream, _LOOKUP_TRIPLES)):
        scored_ids = run.store.scored_triples(metric, chunk)
        unscored += [id for id in chunk if id not in scored_ids]
    return unscored


def _make_scores(
    scorer: Scorer, ids: Sequence[str], judgements: Sequence[Judgement | None]
) -> list[Score]:
    """A scorer's scores of these triples. Raises DataError for a value outside its measure's range,
    which another package's scorer might give."""
    # NaN fails this comparison too.
    low, high = get_measure(scorer.measure).range or (-math.inf, math.inf)
    for judgement in judgements:
        if judgement and not low <= judgement.value <= high:
            raise DataError(
                f"{scorer.name} gives {scorer.measure} the value {judgement.value:g}, which must "
                f"be a number from {low:g} to {high:g}"
            )
    return [
        Score(id, judgement.value, judgement.label, dict(judgement.probabilities))
        for id, judgement in zip(ids, judgements, strict=True)
        if judgement
    ]
