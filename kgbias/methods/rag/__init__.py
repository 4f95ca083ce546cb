"""How far a text is borne out by its sources: the metrics of RAGAS, judges and their reliability,
whether the parser of a crawl kept what answers said, and knowledge graphs of RAGAS in and out.

    from kgbias.methods import rag

    rag.check_run(run, "minilm")
    rag.judge_records(study, records, "openai:ID", base_url=...)
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Unpack

from kgbias.errors import UsageError
from kgbias.io.rows import Rows
from kgbias.parameters import JudgeOptions, SelectionOptions
from kgbias.study.calls import public_call

if TYPE_CHECKING:
    from kgbias.io.progress import Progress
    from kgbias.methods.rag.judge_reliability import JudgeReliability
    from kgbias.methods.rag.judges import Judge
    from kgbias.methods.rag.metrics import AnswerRecord, RagasMetric
    from kgbias.methods.rag.parser_check import ParserFaithfulness
    from kgbias.methods.rag.preference import JudgeAccuracy, WikiEvalRow
    from kgbias.models.base import Completer
    from kgbias.study.run import Run
    from kgbias.study.study import Study


@public_call
def check_run(
    run: "Run",
    judge: "str | Completer | None" = None,
    *,
    repeats: int = 1,
    sample: int | None = None,
    seed: int = 0,
    **judging: Unpack[JudgeOptions],
) -> "ParserFaithfulness":
    """Check whether the run's triples still say what the raw answers said: every generation by
    rule, and by a judge if one is named; by outcome, with 95% intervals.

    Args:
        run: the run.
        judge: "minilm" (offline), or a model's spec or an open model, asked with the prompts of
            RAGAS; None: only the rule.
        repeats: how many times to ask the judge about each statement.
        sample: the judge sees only this many statements, drawn at random.
        seed: the random seed of that draw and of the judge's answers.
        judging: how to ask a model; see `kgbias.parameters.JudgeOptions`.
    """
    from kgbias.methods.rag.judges import check_judge_options, open_judge
    from kgbias.methods.rag.parser_check import check_generations

    check_judge_options(repeats, judge, judging)
    if judge is None and (repeats > 1 or sample is not None):
        raise UsageError("`repeats` and `sample` need a judge: name one with `judge`")
    if sample is not None and sample < 1:
        raise UsageError("`sample` must be at least 1")
    with run.context.working() as progress:
        if judge is None:
            return check_generations(run.stored)
        with open_judge(judge, run.stored.store, progress, seed, judging) as opened:
            return check_generations(run.stored, opened, sample=sample, repeats=repeats, seed=seed)


@public_call
def check_text(
    run: "Run",
    text: str,
    judge: "str | Completer" = "rule",
    *,
    repeats: int = 1,
    top: int = 10,
    seed: int = 0,
    judging: JudgeOptions | None = None,
    **selection: Unpack[SelectionOptions],
) -> "RagasMetric":
    """The faithfulness of a text about the run, such as a paragraph of a paper: the share of
    its statements that follow from statements of the run.

    Each is checked against those that count (`Run.counted_statements`) and that `Run.ask` finds for
    it, at most `top` about each group.

    Args:
        run: the run.
        text: the text.
        judge: what judges, as for `check_run`; "rule" is offline, too.
        repeats: how many times to judge each statement.
        top: how many statements about each group to check it against.
        seed: the random seed of the judge's answers.
        judging: how to ask a model; see `kgbias.parameters.JudgeOptions`.
        selection: which statements count, as for `Run.counted_statements`.
    """
    from kgbias.ask import retrieve_statements
    from kgbias.graph.selection import Selection
    from kgbias.methods.rag.judges import check_judge_options, open_judge
    from kgbias.methods.rag.metrics import faithfulness_to_sources

    check_judge_options(repeats, judge, judging or {})
    criteria = Selection(**selection)
    counted = run.counted_statements(**selection)
    run.context.remark(counted.note)

    def sources(statement: str) -> str:
        retrieval = retrieve_statements(
            run.stored, counted, statement, index=None, top=top, selection=criteria
        )
        return " ".join(f.triple.sentence for f in retrieval.statements)

    with (
        run.context.working() as progress,
        open_judge(judge, run.stored.store, progress, seed, judging or {}) as opened,
    ):
        return faithfulness_to_sources(text, sources, opened, repeats)


@public_call
def judge_records(
    study: "Study",
    records: "Sequence[AnswerRecord]",
    judge: "str | Completer" = "rule",
    *,
    repeats: int = 1,
    seed: int = 0,
    **judging: Unpack[JudgeOptions],
) -> "Rows[RagasMetric]":
    """Faithfulness, answer relevance and context relevance (Es et al. 2023) of answers to
    questions with their contexts, with intervals over records and repeats. Answer relevance
    needs a judge that writes questions: with an offline judge its estimate is missing.

    Frame columns: name, judge, value, low, high, n, retest, retest_low, retest_high, unread.

    Args:
        study: the study, whose store keeps the answers of a model that judges.
        records: `kgbias.methods.rag.metrics.AnswerRecord`s; `read_answer_records` there reads a
            file.
        judge: "rule" or "minilm" (offline), a model's spec, or an open model.
        repeats: how many times to judge each record.
        seed: the random seed of the judge's answers.
        judging: how to ask a model; see `kgbias.parameters.JudgeOptions`.
    """
    from kgbias.methods.rag.judges import check_judge_options, make_lazy_embedder
    from kgbias.methods.rag.metrics import (
        METRIC_COLUMNS,
        answer_relevance,
        context_relevance,
        faithfulness,
    )

    check_judge_options(repeats, judge, judging)
    if not records:
        raise UsageError("there are no records to judge")
    with _judge_of_study(study, judge, seed, judging) as (opened, progress):
        metrics = (
            faithfulness(records, opened, repeats),
            answer_relevance(records, opened, make_lazy_embedder(progress), repeats),
            context_relevance(records, opened, repeats),
        )
    return Rows(metrics, METRIC_COLUMNS)


@public_call
def judge_pairs(
    study: "Study",
    rows: "Sequence[WikiEvalRow] | None" = None,
    judge: "str | Completer" = "rule",
    *,
    repeats: int = 1,
    seed: int = 0,
    **judging: Unpack[JudgeOptions],
) -> "Rows[JudgeAccuracy]":
    """How often a judge prefers the better of two answers or contexts (Table 1 of Es et al.
    2023); chance is 0.5.

    Frame columns: aspect, method, judge, accuracy, accuracy_low, accuracy_high, n, ties, unread.

    Args:
        study: the study, whose store keeps the answers of a model that judges.
        rows: WikiEval's (`kgbias.methods.rag.preference.read_wikieval`); None: fifty of the
            reference world.
        judge: as for `judge_records`, and so are the others.
        repeats: how many times to judge each row.
        seed: the random seed of the judge's answers.
        judging: how to ask a model; see `kgbias.parameters.JudgeOptions`.
    """
    from kgbias.methods.rag.judge_reliability import make_world_pairs
    from kgbias.methods.rag.judges import check_judge_options, make_lazy_embedder
    from kgbias.methods.rag.preference import ACCURACY_COLUMNS, pairwise_accuracy

    check_judge_options(repeats, judge, judging)
    pairs = make_world_pairs() if rows is None else rows
    with _judge_of_study(study, judge, seed, judging) as (opened, progress):
        embed = make_lazy_embedder(progress)
        accuracies = pairwise_accuracy(pairs, opened, embed, repeats=repeats, seed=seed)
    return Rows(accuracies, ACCURACY_COLUMNS)


@public_call
def check_judge(
    study: "Study",
    judge: "str | Completer" = "rule",
    *,
    repeats: int = 1,
    seed: int = 0,
    **judging: Unpack[JudgeOptions],
) -> "JudgeReliability":
    """How reliable a judge is: whether it agrees with itself and with the labelled cases that
    come with kgbias.

    Args:
        study: the study, whose store keeps the answers of a model that judges.
        judge: as for `judge_records`, and so are the others.
        repeats: how many times to judge each case.
        seed: the random seed of the judge's answers.
        judging: how to ask a model; see `kgbias.parameters.JudgeOptions`.
    """
    from kgbias.methods.rag.judge_reliability import measure_reliability
    from kgbias.methods.rag.judges import check_judge_options

    check_judge_options(repeats, judge, judging)
    with _judge_of_study(study, judge, seed, judging) as (opened, _):
        return measure_reliability(opened, repeats)


@contextmanager
def _judge_of_study(
    study: "Study", judge: "str | Completer", seed: int, judging: JudgeOptions
) -> "Iterator[tuple[Judge, Progress]]":
    from kgbias.methods.rag.judges import LOCAL_JUDGES, open_judge

    is_offline = isinstance(judge, str) and judge in LOCAL_JUDGES
    store = None if is_offline else study.context.writable()
    with (
        study.working() as progress,
        open_judge(judge, store, progress, seed, judging) as opened,
    ):
        yield opened, progress
