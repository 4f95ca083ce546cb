"""A model that scores texts, held by the workers of an executor (`kgbias.parallel`). No weights are
loaded here."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeVar

from kgbias.errors import UsageError
from kgbias.io.progress import Progress
from kgbias.io.text import type_with_article
from kgbias.models.base import ModelInfo, Settings
from kgbias.models.score.base import Convention, ProbeGrid, Scores, Surprisals, TextScorer
from kgbias.models.spec import is_on_server, loads_weights
from kgbias.parallel import Executor
from kgbias.parallel.local import count_torch_threads

P = TypeVar("P")
R = TypeVar("R")
Task = Callable[[TextScorer, P], R]
ProbeBlock = tuple[Sequence[str], Sequence[str]]  # groups, and the statements after each


@dataclass(frozen=True, slots=True)
class ScorerIdentity:
    """A model's identity, how it was opened, and the remarks made meanwhile."""

    info: ModelInfo
    settings: Settings
    convention: Convention
    parameters: int | None
    notes: tuple[str, ...]


class DistributedScorer:
    """The model of a spec, opened by each worker: the properties of a `TextScorer`, and tasks for
    it. `opening` are the options of `kgbias.models.score.load.open_scorer`.

    Raises UsageError for a model on a server, and whatever `open_scorer` raises.
    """

    def __init__(
        self, executor: Executor, spec: str, open_options: Mapping[str, Any], progress: Progress
    ) -> None:
        if not loads_weights(spec):
            place = "on a server" if is_on_server(spec) else "read by vLLM"
            raise UsageError(
                f"`executor` applies to models that kgbias loads: {spec} is {place}, which reads "
                "many requests at a time as it is"
            )
        self._executor, self._spec, self._opening = executor, spec, dict(open_options)
        executor.dismiss()  # the memory of one model is enough
        ((_, identity),) = executor.run_pieces(
            _DescribeTask(_do_nothing, spec, open_options, ""), [None]
        )
        self.info, self.settings = identity.info, identity.settings
        self.convention, self.parameters = identity.convention, identity.parameters
        for note in identity.notes:
            progress.note(note)

    def run_task(self, task: Task[P, R], pieces: Sequence[P]) -> Iterator[tuple[int, R]]:
        """The number of each piece and a pickled task's answer, in any order."""
        scorer_task = ScorerTask(
            task, self._spec, self._opening, self.info.opening_text(self.settings)
        )
        with closing(self._executor.run_pieces(scorer_task, pieces)) as results:
            yield from results


class ScorerTask:
    """A task for the model of a spec (`kgbias.parallel.Work`)."""

    def __init__(
        self, task: Task[Any, Any], spec: str, open_options: Mapping[str, Any], version: str
    ) -> None:
        self._task, self._spec, self._opening = task, spec, dict(open_options)
        self.version, self.threads = version, count_torch_threads()
        self.device = str(self._opening.get("device", "auto"))

    def __getstate__(self) -> dict[str, Any]:
        """The form that reaches another process, which opens the model itself."""
        return {name: v for name, v in vars(self).items() if name not in ("_scorer", "_notes")}

    def open(self) -> str:
        from kgbias.models.score.load import open_scorer

        self._notes: list[str] = []
        self._scorer = open_scorer(self._spec, notify=self._notes.append, **self._opening)
        return self._scorer.info.opening_text(self._scorer.settings)

    def __call__(self, piece: Any) -> Any:
        return self._task(self._scorer, piece)


class _DescribeTask(ScorerTask):
    """Says what the model is; whatever is opened will do."""

    def open(self) -> str:
        super().open()
        return self.version

    def __call__(self, piece: Any) -> ScorerIdentity:
        opened_scorer = self._scorer
        return ScorerIdentity(
            opened_scorer.info,
            opened_scorer.settings,
            opened_scorer.convention,
            opened_scorer.parameters,
            tuple(self._notes),
        )


def _do_nothing(scorer: TextScorer, piece: Any) -> None:
    """Asks nothing."""


AnyScorer = TextScorer | DistributedScorer
"""A model that scores texts, opened here or in workers."""


class ScorerSource(Protocol):
    """A model that a program holds (`kgbias.in_memory`) and that can score texts."""

    def scorer(self) -> TextScorer: ...


def resolve_scorer(model: AnyScorer | ScorerSource) -> AnyScorer:
    """The model, to score texts. Raises UsageError for one that gives no log-probabilities."""
    make_scorer = getattr(model, "scorer", None)
    resolved: Any = model if make_scorer is None else make_scorer()
    if not hasattr(resolved, "info") or (
        hasattr(resolved, "complete") and not hasattr(resolved, "grid")
    ):
        raise UsageError(
            f"{type_with_article(model)} gives no log-probabilities: hand over what "
            "kgbias.open_scorer, or kgbias.in_memory with a transformers model, gives"
        )
    scorer: AnyScorer = resolved
    return scorer


def iter_answers(
    scorer: AnyScorer, task: Task[P, R], pieces: Sequence[P]
) -> Iterator[tuple[int, R]]:
    """The number of each piece and a task's answer, as they are done: in order, unless workers
    share the pieces."""
    if isinstance(scorer, DistributedScorer):
        yield from scorer.run_task(task, pieces)
    else:
        yield from ((number, task(scorer, piece)) for number, piece in enumerate(pieces))


def iter_grids(
    scorer: AnyScorer, blocks: Sequence[ProbeBlock], progress: Progress, *, surprisals: bool = True
) -> Iterator[tuple[int, ProbeGrid]]:
    """The number of each block with its grid (`TextScorer.grid`), as in `iter_answers`. Without
    `surprisals` workers send back no tokens, which are most of what they would send."""
    if not isinstance(scorer, DistributedScorer):
        for number, (groups, statements) in enumerate(blocks):
            yield number, scorer.grid(groups, statements, progress)
        return
    task = _compute_grid if surprisals else _compute_grid_scores
    for number, (whole, statement, group, bits) in scorer.run_task(task, blocks):
        groups, statements = blocks[number]
        progress.advance(len(groups) * (len(statements) + 1))
        yield number, ProbeGrid(whole, statement, group, _look_up_surprisals(bits))


class _PickledGrid(NamedTuple):
    """A grid of scores as a process sends it back."""

    probes: Scores
    statement: Scores
    group: Scores
    surprisals: list[list[Surprisals]] | None


def _compute_grid(scorer: TextScorer, block: ProbeBlock) -> _PickledGrid:
    """A grid that can be pickled: with its surprisals looked up, if available."""
    groups, statements = block
    grid = scorer.grid(groups, statements)
    surprisal_rows = None
    if grid.surprisals:
        surprisal_rows = [
            [grid.surprisals(g, s) for s in range(len(statements))] for g in range(len(groups))
        ]
    return _PickledGrid(grid.probes, grid.statement, grid.group, surprisal_rows)


def _compute_grid_scores(scorer: TextScorer, block: ProbeBlock) -> _PickledGrid:
    """The same without them."""
    grid = scorer.grid(*block)
    return _PickledGrid(grid.probes, grid.statement, grid.group, None)


def _look_up_surprisals(
    surprisal_rows: list[list[Surprisals]] | None,
) -> Callable[[int, int], Surprisals] | None:
    return None if surprisal_rows is None else lambda g, s: surprisal_rows[g][s]
