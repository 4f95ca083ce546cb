"""How far texts are borne out by their sources."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from kgbias.errors import UsageError
from kgbias.graph.selection import Selecting, Selection
from kgbias.graph.store import Store
from kgbias.io.progress import Progress
from kgbias.models.base import Completer, Form
from kgbias.study.context import OfStudy, PathLike
from kgbias.study.view import RunView

if TYPE_CHECKING:
    from kgbias.faithfulness import (
        Accuracy,
        Judge,
        Metric,
        ParserFaithfulness,
        Record,
        Reliability,
        Row,
    )

PROMPTS = "ragas-2023"


class Judging(TypedDict, total=False):
    """How a judge that is a language model is asked: the `form` of its prompts ("chat" or
    "completion"), the folder of `prompts`, and how its spec is opened (see `kgbias.open_model`)."""

    form: Form
    prompts: PathLike
    temperature: float
    base_url: str | None
    concurrency: int | None
    timeout: float | None
    device: str | None
    dtype: str | None
    batch_size: int | None


class JudgingRuns(RunView):
    """How far texts are borne out by a run; a part of `Run`."""

    def faithfulness(
        self,
        judge: "str | Completer | None" = None,
        *,
        repeats: int = 1,
        sample: int | None = None,
        seed: int = 0,
        **judging: Unpack[Judging],
    ) -> "ParserFaithfulness":
        """Check whether the triples of the run still say what the raw answers said: every
        generation by rule, and by a judge where one is named; by outcome, with 95% intervals.

        Args:
            judge: "minilm" (offline), or a model's spec or an open model, which is asked with the
                prompts of RAGAS; None: the rule alone.
            repeats: how often the judge is asked about each statement.
            sample: put only so many statements, drawn at random, to the judge.
            seed: of that draw, and of the judge's answers.
            judging: how a model is asked; see `Judging`.
        """
        from kgbias.faithfulness import check_run

        _check(repeats, judge, judging)
        if judge is None and (repeats > 1 or sample is not None):
            raise UsageError("`repeats` and `sample` belong to a judge: name one with `judge`")
        if sample is not None and sample < 1:
            raise UsageError("`sample` must be at least 1")
        with self._context.working() as progress:
            if judge is None:
                return check_run(self.stored)
            with opened_judge(judge, self.stored.store, progress, seed, judging) as opened:
                return check_run(self.stored, opened, sample=sample, repeats=repeats, seed=seed)

    def borne_out(
        self,
        text: str,
        judge: "str | Completer" = "rule",
        *,
        repeats: int = 1,
        top: int = 10,
        seed: int = 0,
        judging: Judging | None = None,
        **selection: Unpack[Selecting],
    ) -> "Metric":
        """The faithfulness of a text about the run, such as a paragraph of a paper: of the
        statements that it makes, the share that follows from statements of the run.

        Each statement is held against those that count (`counted`) and that `ask` finds for it, at
        most `top` about each group.
        """
        from kgbias.ask import retrieve
        from kgbias.faithfulness.metrics import against

        _check(repeats, judge, judging or {})
        which = Selection(**selection)
        counted = self._said(which)

        def sources(statement: str) -> str:
            found = retrieve(self.stored, counted, statement, index=None, top=top, selection=which)
            return " ".join(f.triple.sentence for f in found.statements)

        with (
            self._context.working() as progress,
            opened_judge(judge, self.stored.store, progress, seed, judging or {}) as opened,
        ):
            return against(text, sources, opened, repeats)


class JudgingRecords(OfStudy):
    """How far answers are borne out by their contexts; a part of `Study`."""

    def ragas(
        self,
        records: "Sequence[Record]",
        judge: "str | Completer" = "rule",
        *,
        repeats: int = 1,
        seed: int = 0,
        **judging: Unpack[Judging],
    ) -> "list[Metric]":
        """Faithfulness, answer relevance and context relevance (Es et al. 2023) of answers to
        questions with their contexts, with intervals over records and repeats. Answer relevance
        takes a judge that writes questions: of an offline one its estimate is missing.

        Args:
            records: `kgbias.faithfulness.Record`s.
            judge: "rule" or "minilm" (offline), a model's spec, or an open model.
            repeats: how often each record is judged.
            seed: of the judge's answers.
            judging: how a model is asked; see `Judging`.
        """
        from kgbias.faithfulness import answer_relevance, context_relevance, faithfulness

        _check(repeats, judge, judging)
        if not records:
            raise UsageError("there is no record to judge")
        with self.working() as progress, self._judge(judge, progress, seed, judging) as opened:
            return [
                faithfulness(records, opened, repeats),
                answer_relevance(records, opened, _embedder(progress), repeats),
                context_relevance(records, opened, repeats),
            ]

    def pairwise(
        self,
        rows: "Sequence[Row] | None" = None,
        judge: "str | Completer" = "rule",
        *,
        repeats: int = 1,
        seed: int = 0,
        **judging: Unpack[Judging],
    ) -> "list[Accuracy]":
        """How often a judge prefers the better of two answers or contexts (Table 1 of Es et al.
        2023); chance has 0.5. `rows` are those of WikiEval (`kgbias.faithfulness.read_pairs`);
        None: fifty of the reference world. The rest is as in `ragas`."""
        from kgbias.faithfulness import pairwise, world_pairs

        _check(repeats, judge, judging)
        own = world_pairs() if rows is None else rows
        with self.working() as progress, self._judge(judge, progress, seed, judging) as opened:
            return pairwise(own, opened, _embedder(progress), repeats=repeats, seed=seed)

    def reliability(
        self,
        judge: "str | Completer" = "rule",
        *,
        repeats: int = 1,
        seed: int = 0,
        **judging: Unpack[Judging],
    ) -> "Reliability":
        """How reliable a judge is: whether it agrees with itself and with the labelled cases that
        come with kgbias. The parameters are those of `ragas`."""
        from kgbias.faithfulness import reliability

        _check(repeats, judge, judging)
        with self.working() as progress, self._judge(judge, progress, seed, judging) as opened:
            return reliability(opened, repeats)

    @contextmanager
    def _judge(
        self, judge: "str | Completer", progress: Progress, seed: int, judging: Judging
    ) -> "Iterator[Judge]":
        offline = isinstance(judge, str) and judge in ("rule", "minilm")
        store = None if offline else self._context.writable()
        with opened_judge(judge, store, progress, seed, judging) as opened:
            yield opened


@contextmanager
def opened_judge(
    judge: "str | Completer", store: Store | None, progress: Progress, seed: int, judging: Judging
) -> "Iterator[Judge]":
    """The judge of a name, a spec or an open model, whose answers go through the log of `store`."""
    from kgbias.faithfulness.judges import LOCAL, TEMPLATES, ModelJudge, local_judge
    from kgbias.graph.prompted import Prompted, load_prompts
    from kgbias.models import open_model

    if isinstance(judge, str) and judge in LOCAL:
        yield local_judge(judge, lambda: _embedder(progress))
        return
    assert store is not None
    asked: dict[str, Any] = dict(judging)
    prompts = load_prompts(asked.pop("prompts", PROMPTS), TEMPLATES)
    how = {name: asked.pop(name) for name in ("form", "temperature") if name in asked}
    with ExitStack() as opened:
        if isinstance(judge, str):
            judge = opened.enter_context(closing(open_model(judge, notify=progress.note, **asked)))
        yield ModelJudge(Prompted(judge, store, seed=seed, progress=progress, **how), prompts)


def _check(repeats: int, judge: object, judging: Judging) -> None:
    from kgbias.faithfulness import LOCAL

    if repeats < 1:
        raise UsageError("`repeats` must be at least 1")
    given = [name for name, value in judging.items() if value is not None]
    if given and (judge is None or judge in LOCAL):
        raise UsageError(f"`{given[0]}` belongs to a judge that is a language model")


def _embedder(progress: Progress) -> "Callable[[Sequence[str]], Any]":
    """The offline sentence embeddings, loaded when a text is embedded."""

    @cache
    def vectors() -> "Callable[[Sequence[str]], Any]":
        from kgbias.models.embed import SentenceVectors

        return SentenceVectors(notify=progress.note)

    return lambda texts: vectors()(texts)
