"""A model that scores texts, held by the workers of an executor (`kgbias.parallel`). No weights are
loaded here."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from kgbias.errors import UsageError
from kgbias.io.progress import Progress
from kgbias.models.base import ModelInfo, Settings
from kgbias.models.score.base import Convention, Grid, Scores, Surprisals, TextScorer
from kgbias.models.spec import loads, on_server
from kgbias.parallel import Executor
from kgbias.parallel.local import count_torch_threads

P = TypeVar("P")
R = TypeVar("R")
Task = Callable[[TextScorer, P], R]
Block = tuple[Sequence[str], Sequence[str]]  # groups, and the statements after each


@dataclass(frozen=True, slots=True)
class Known:
    """A model's identity, how it was opened, and the remarks made meanwhile."""

    info: ModelInfo
    settings: Settings
    convention: Convention
    parameters: int | None
    notes: tuple[str, ...]


class SpreadScorer:
    """The model of a spec, opened by each worker: the properties of a `TextScorer`, and tasks for
    it. `opening` are the options of `kgbias.models.score.load.open_scorer`.

    Raises UsageError for a model on a server, and whatever `open_scorer` raises.
    """

    def __init__(
        self, executor: Executor, spec: str, opening: Mapping[str, Any], progress: Progress
    ) -> None:
        if not loads(spec):
            where = "on a server" if on_server(spec) else "read by vLLM"
            raise UsageError(
                f"`executor` applies to models that kgbias loads: {spec} is {where}, which reads "
                "many requests at a time as it is"
            )
        self._executor, self._spec, self._opening = executor, spec, dict(opening)
        executor.dismiss()  # the memory of one model is enough
        ((_, known),) = executor.run_pieces(_Describing(_nothing, spec, opening, ""), [None])
        self.info, self.settings = known.info, known.settings
        self.convention, self.parameters = known.convention, known.parameters
        for note in known.notes:
            progress.note(note)

    def ask(self, task: Task[P, R], pieces: Sequence[P]) -> Iterator[tuple[int, R]]:
        """The number of each piece and a pickled task's answer, in any order."""
        asked = Asked(task, self._spec, self._opening, self.info.opened(self.settings))
        with closing(self._executor.run_pieces(asked, pieces)) as found:
            yield from found


class Asked:
    """A task for the model of a spec (`kgbias.parallel.Work`)."""

    def __init__(
        self, task: Task[Any, Any], spec: str, opening: Mapping[str, Any], version: str
    ) -> None:
        self._task, self._spec, self._opening = task, spec, dict(opening)
        self.version, self.threads = version, count_torch_threads()
        self.device = str(self._opening.get("device", "auto"))

    def __getstate__(self) -> dict[str, Any]:
        """The form that reaches another process, which opens the model itself."""
        return {name: v for name, v in vars(self).items() if name not in ("_scorer", "_notes")}

    def open(self) -> str:
        from kgbias.models.score.load import open_scorer

        self._notes: list[str] = []
        self._scorer = open_scorer(self._spec, notify=self._notes.append, **self._opening)
        return self._scorer.info.opened(self._scorer.settings)

    def __call__(self, piece: Any) -> Any:
        return self._task(self._scorer, piece)


class _Describing(Asked):
    """Says what the model is; whatever is opened will do."""

    def open(self) -> str:
        super().open()
        return self.version

    def __call__(self, piece: Any) -> Known:
        s = self._scorer
        return Known(s.info, s.settings, s.convention, s.parameters, tuple(self._notes))


def _nothing(scorer: TextScorer, piece: Any) -> None:
    """Asks nothing."""


Scoring = TextScorer | SpreadScorer
"""A model that scores texts, opened here or in workers."""


class Held(Protocol):
    """A model that a program holds (`kgbias.in_memory`) and that can score texts."""

    def scorer(self) -> TextScorer: ...


def scoring(model: Scoring | Held) -> Scoring:
    """The model, to score texts. Raises UsageError for one that gives no log-probabilities."""
    made = getattr(model, "scorer", None)
    found: Any = model if made is None else made()
    if not hasattr(found, "info") or (hasattr(found, "complete") and not hasattr(found, "grid")):
        raise UsageError(
            f"a {type(model).__name__} gives no log-probabilities: hand over what "
            "kgbias.open_scorer, or kgbias.in_memory with a transformers model, gives"
        )
    scorer: Scoring = found
    return scorer


def answers(scorer: Scoring, task: Task[P, R], pieces: Sequence[P]) -> Iterator[tuple[int, R]]:
    """The number of each piece and a task's answer, as they are done: in order, unless workers
    share the pieces."""
    if isinstance(scorer, SpreadScorer):
        yield from scorer.ask(task, pieces)
    else:
        yield from ((number, task(scorer, piece)) for number, piece in enumerate(pieces))


def grids(
    scorer: Scoring, blocks: Sequence[Block], progress: Progress, *, surprisals: bool = True
) -> Iterator[tuple[int, Grid]]:
    """The number of each block with its grid (`TextScorer.grid`), as in `answers`. Without
    `surprisals` workers send back no tokens, which are most of what they would send."""
    if not isinstance(scorer, SpreadScorer):
        for number, (groups, statements) in enumerate(blocks):
            yield number, scorer.grid(groups, statements, progress)
        return
    task = _grid if surprisals else _scores
    for number, (whole, statement, group, bits) in scorer.ask(task, blocks):
        groups, statements = blocks[number]
        progress.advance(len(groups) * (len(statements) + 1))
        yield number, Grid(whole, statement, group, _places(bits))


def _grid(
    scorer: TextScorer, block: Block
) -> tuple[Scores, Scores, Scores, list[list[Surprisals]] | None]:
    """A grid that can be pickled: with its surprisals looked up, if available."""
    groups, statements = block
    grid = scorer.grid(groups, statements)
    bits = None
    if grid.surprisals:
        bits = [[grid.surprisals(g, s) for s in range(len(statements))] for g in range(len(groups))]
    return grid.whole, grid.statement, grid.group, bits


def _scores(scorer: TextScorer, block: Block) -> tuple[Scores, Scores, Scores, None]:
    """The same without them."""
    grid = scorer.grid(*block)
    return grid.whole, grid.statement, grid.group, None


def _places(bits: list[list[Surprisals]] | None) -> Callable[[int, int], Surprisals] | None:
    return None if bits is None else lambda g, s: bits[g][s]
