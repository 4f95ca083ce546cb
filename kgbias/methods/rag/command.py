"""`kgbias faithfulness`: how far texts are supported by their sources."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, cast

import click

import kgbias
from kgbias.cli import show
from kgbias.cli.command import Command
from kgbias.cli.options import (
    base_url_option,
    drop_unset,
    json_option,
    library_default,
    model_settings,
    prompts_form_option,
    run_name_argument,
    store_option,
)
from kgbias.cli.settings import drop_shared, keep_applicable, setting, shared_settings
from kgbias.cli.show import Output
from kgbias.errors import UsageError
from kgbias.io.columns import Column
from kgbias.io.text import shorten
from kgbias.io.wording import pluralise
from kgbias.measure.scorer_agreement import format_kappa_interval
from kgbias.methods import rag
from kgbias.methods.rag.judge_reliability import JudgeReliability
from kgbias.methods.rag.judges import LOCAL_JUDGES
from kgbias.methods.rag.metrics import RagasMetric, read_answer_records
from kgbias.methods.rag.parser_check import ParserFaithfulness
from kgbias.methods.rag.preference import CHANCE_ACCURACY, JudgeAccuracy, read_wikieval
from kgbias.parameters import JudgeOptions

_REFERENCE_PAIRS = "world"
_RELEVANCE_METRIC = "answer_relevance"
_OFFLINE_NOTE = "not judged: this needs a judge that writes questions (--judge SPEC)"
_REASON_TEXTS = {
    "words": "words not in the answer",
    "negation": "negated differently",
    "cut": "cut before the meaning turns",
    "attributed": "the answer attributes it to others",
    "unfinished": "unfinished",
}


@click.command(cls=Command, examples=("kgbias faithfulness smollm2 --judge minilm --sample 200",))
@run_name_argument
@store_option
@click.option(
    "--judge",
    metavar="NAME-or-SPEC",
    help="The judge: rule or minilm (offline), or a model's spec (default: only the rule).",
)
@click.option(
    "--repeats",
    type=click.IntRange(min=1),
    default=library_default(rag.check_run, "repeats"),
    show_default=True,
    help="How many times to ask the judge the same.",
)
@click.option(
    "--sample",
    type=click.IntRange(min=1),
    help="For a run: judge this many statements, drawn at random (default: all).",
)
@click.option(
    "--text",
    "text",
    type=click.Path(path_type=Path),
    help="Instead, check this text against the run's statements.",
)
@click.option(
    "--records",
    type=click.Path(path_type=Path),
    help="Instead, judge answers: JSON lines with question, answer and context.",
)
@click.option(
    "--preference-pairs",
    metavar="FILE",
    help="Instead, pairwise accuracy on your copy of WikiEval; world: on fifty pairs of the "
    "reference world.",
)
@setting("prompts", metavar="FOLDER", help="The judge's prompts (default: those of RAGAS's paper).")
@prompts_form_option
@shared_settings(seed=library_default(rag.check_run, "seed"))
@base_url_option
@model_settings
@json_option
def faithfulness(
    run_name: str | None,
    store_url: str,
    judge: str | None,
    repeats: int,
    sample: int | None,
    text: Path | None,
    records: Path | None,
    preference_pairs: str | None,
    seed: int,
    **judging: Any,
) -> Output:
    """Check how far texts are supported by their sources.

    For a run: whether each triple still says what its raw answer said, by outcome. --text,
    --records and --preference-pairs judge other texts. The judge's own reliability is printed too:
    its agreement with itself and with labelled cases.
    """
    if sum(given is not None for given in (text, records, preference_pairs)) > 1:
        raise UsageError("choose one of --text, --records and --preference-pairs")
    if sample is not None and (text or records or preference_pairs):
        raise UsageError("--sample applies only to a run's statements")
    if run_name is not None and (records or preference_pairs):
        raise UsageError("--records and --preference-pairs do not use a run: leave the run out")
    if judge is None or judge in LOCAL_JUDGES:
        judging = drop_shared(judging, ["device", "dtype", "base-url"])
    else:
        judging = keep_applicable(judging, [judge], "completer")
    judge_options = cast(JudgeOptions, drop_unset(**judging))
    with kgbias.open(store_url, progress=True) as study:
        result: ParserFaithfulness | Sequence[RagasMetric] | Sequence[JudgeAccuracy]
        if text is not None:
            metric = rag.check_text(
                study.run(run_name),
                _read_text(text),
                judge or "rule",
                repeats=repeats,
                seed=seed,
                judging=judge_options,
            )
            result = [metric]
        elif records is not None:
            result = rag.judge_records(
                study,
                read_answer_records(records),
                judge or "rule",
                repeats=repeats,
                seed=seed,
                **judge_options,
            )
        elif preference_pairs is not None:
            rows = (
                None
                if preference_pairs == _REFERENCE_PAIRS
                else read_wikieval(Path(preference_pairs))
            )
            result = rag.judge_pairs(
                study, rows, judge or "rule", repeats=repeats, seed=seed, **judge_options
            )
        else:
            result = rag.check_run(
                study.run(run_name),
                judge,
                repeats=repeats,
                sample=sample,
                seed=seed,
                **judge_options,
            )
        trust = rag.check_judge(study, judge or "rule", repeats=repeats, seed=seed, **judge_options)

    def print_text() -> None:
        if isinstance(result, ParserFaithfulness):
            _print_run_faithfulness(result)
        elif preference_pairs is not None:
            _print_accuracies(cast(Sequence[JudgeAccuracy], result))
        else:
            _print_metrics(cast(Sequence[RagasMetric], result))
        _print_trust(trust)

    return Output(_result_record(result) | {"reliability": _trust_record(trust)}, print_text)


def _read_text(path: Path) -> str:
    from kgbias.io.reading import read_text

    return read_text(path)


def _result_record(
    result: ParserFaithfulness | Sequence[RagasMetric] | Sequence[JudgeAccuracy],
) -> dict[str, Any]:
    if isinstance(result, ParserFaithfulness):
        return {
            "run": result.run,
            "judge": result.judge,
            "outcomes": [
                asdict(outcome)
                | {"by_rule": outcome.by_rule.as_dict(), "by_judge": outcome.by_judge.as_dict()}
                for outcome in result.outcomes
            ],
            "without_answer": result.without_answer,
            "retest": result.retest.as_dict(),
            "agreement": result.agreement.as_dict(),
            "unfaithful": [
                {
                    "path": case.path,
                    "group": case.group,
                    "predicate": case.predicate,
                    "object": case.object,
                    "answer": case.answer,
                    "rule": case.rule.supported,
                    "reason": case.rule.reason,
                    "judged": list(case.judged),
                }
                for case in result.unfaithful
            ],
        }
    if isinstance(result[0], JudgeAccuracy):
        return {
            "chance": CHANCE_ACCURACY,
            "accuracies": [
                asdict(a) | {"accuracy": a.accuracy.as_dict()}
                for a in result
                if isinstance(a, JudgeAccuracy)
            ],
        }
    return {
        "metrics": [
            {
                "name": metric.name,
                "judge": metric.judge,
                "estimate": metric.estimate.as_dict(),
                "retest": metric.retest.as_dict(),
                "unread": metric.unread,
                "records": [
                    [
                        {"value": score.value, "parts": [list(part) for part in score.parts]}
                        for score in record_scores
                    ]
                    for record_scores in metric.scores
                ],
            }
            for metric in result
            if isinstance(metric, RagasMetric)
        ]
    }


def _trust_record(trust: JudgeReliability) -> dict[str, Any]:
    return {
        "judge": trust.judge,
        "accuracy": trust.accuracy.as_dict(),
        "kappa": trust.kappa.as_dict(),
        "retest": trust.retest.as_dict(),
        "by_kind": {kind: e.as_dict() for kind, e in trust.by_kind.items()},
        "unread": trust.unread,
    }


def _print_run_faithfulness(result: ParserFaithfulness) -> None:
    show.say(f"run {result.run}: does each triple say what its answer said?", "")
    judge = [f"by {result.judge}"] if result.judge else []
    rows: list[tuple[object, ...]] = []
    for outcome in result.outcomes:
        share_cells = (
            _format_share(outcome.by_rule),
            *([_format_share(outcome.by_judge)] if judge else []),
        )
        rows.append((outcome.outcome, outcome.generations, outcome.statements, *share_cells))
        rows += [
            ("", "", n, _REASON_TEXTS[reason], *("" for _ in judge))
            for reason, n in outcome.reasons.items()
        ]
    counts = (Column("answers", "d"), Column("statements", "d"))
    show.print_table(("outcome", *counts, "faithful by rule", *judge), rows)
    if result.without_answer:
        lacking = pluralise(result.without_answer, "imported statement")
        verb = "has" if result.without_answer == 1 else "have"
        show.say(f"{lacking} {verb} no raw answer")
    if result.agreement.n:
        show.say(f"rule and judge agree on {_format_share(result.agreement)} of the statements")
    for case in result.unfaithful[:10]:
        reason_text = _REASON_TEXTS.get(case.rule.reason, "the judge says no")
        show.say(
            "",
            f"  {reason_text}",
            f"    answer  {shorten(case.answer, 200)}",
            f"    triple  {case.group} | {case.predicate} | {case.object}",
        )
    if (remaining := len(result.unfaithful) - 10) > 0:
        show.say("", f"  and {remaining} more: --json has all")


def _print_accuracies(accuracies: Sequence[JudgeAccuracy]) -> None:
    rows = []
    for row in accuracies:
        notes = [f"{row.ties} ties"] if row.ties else []
        notes += [f"{row.unread} not read"] if row.unread else []
        rows.append((row.aspect, row.method, ", ".join([_format_share(row.accuracy), *notes])))
    show.print_table(("", "", ""), rows)
    if all(row.aspect != _RELEVANCE_METRIC for row in accuracies):
        show.say(f"{_RELEVANCE_METRIC}  {_OFFLINE_NOTE}")
    show.say(f"chance has {CHANCE_ACCURACY:.2f}; accuracy of pairwise preferences")


def _print_metrics(metrics: Sequence[RagasMetric]) -> None:
    for row in metrics:
        estimate = row.estimate
        unread = f"; {row.unread} verdicts could not be read" if row.unread else ""
        if not estimate.n:
            show.say(
                f"{row.name:<20}{_OFFLINE_NOTE if row.name == _RELEVANCE_METRIC else 'not judged'}"
            )
            continue
        show.say(
            f"{row.name:<20}{estimate.value:.3f} ({estimate.format_interval('.3f')}), n = "
            f"{estimate.n}{unread}"
        )
        if row.name == "faithfulness":
            judged_parts = [part for record_scores in row.scores for part in record_scores[0].parts]
            marks: dict[object, str] = {True: "yes", False: "no"}
            show.print_table(
                ("", ""),
                ((marks.get(verdict, "?"), shorten(part, 120)) for part, verdict in judged_parts),
                indent=4,
            )


def _print_trust(trust: JudgeReliability) -> None:
    show.say(
        "",
        f"judge {trust.judge}: right on {_format_share(trust.accuracy)} of labelled cases, "
        f"kappa {trust.kappa.value:.2f} ({format_kappa_interval(trust.kappa)})"
        + (f", agrees with itself on {_format_share(trust.retest)}" if trust.retest.n else "")
        + (f"; {trust.unread} verdicts could not be read" if trust.unread else ""),
    )
    kinds = ", ".join(f"{kind} {estimate.value:.0%}" for kind, estimate in trust.by_kind.items())
    show.say(f"    {kinds}")


def _format_share(estimate: Any) -> str:
    return (
        f"{estimate.value:.0%} ({estimate.format_interval('.0%')}), n = {estimate.n}"
        if estimate.n
        else "-"
    )
