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
    default,
    json_option,
    model_settings,
    prompts_form_option,
    run_argument,
    said,
    store_option,
)
from kgbias.cli.settings import fitting, setting, settings, without_shared
from kgbias.errors import UsageError
from kgbias.faithfulness import LOCAL_JUDGES, JudgeAccuracy, RagasMetric, ParserFaithfulness, JudgeReliability
from kgbias.faithfulness.metrics import read_records
from kgbias.faithfulness.preference import CHANCE_ACCURACY, read_wikieval
from kgbias.io.text import shorten
from kgbias.study.opening import JudgeOptions

_OF = kgbias.Run.faithfulness
_WORLD = "world"
_RELEVANCE = "answer_relevance"
_OFFLINE = "not judged: this needs a judge that writes questions (--judge SPEC)"
_REASONS = {
    "words": "words not in the answer",
    "negation": "negated differently",
    "cut": "cut before the meaning turns",
    "attributed": "the answer attributes it to others",
    "unfinished": "unfinished",
}


@click.command(cls=Command, examples=("kgbias faithfulness smollm2 --judge minilm --sample 200",))
@run_argument
@store_option
@click.option(
    "--judge",
    metavar="NAME-or-SPEC",
    help="The judge: rule or minilm (offline), or a model's spec (default: only the rule).",
)
@click.option(
    "--repeats",
    type=click.IntRange(min=1),
    default=default(_OF, "repeats"),
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
    "--pairs",
    metavar="FILE",
    help="Instead, pairwise accuracy on your copy of WikiEval; world: on fifty pairs of the "
    "reference world.",
)
@setting("prompts", metavar="FOLDER", help="The judge's prompts (default: ragas-2023).")
@prompts_form_option
@settings(seed=default(_OF, "seed"))
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
    pairs: str | None,
    seed: int,
    as_json: bool,
    **judging: Any,
) -> None:
    """Check how far texts are supported by their sources.

    For a run: whether each triple still says what its raw answer said, by outcome. --text,
    --records and --pairs judge other texts. The judge's own reliability is printed too: its
    agreement with itself and with labelled cases.
    """
    if sum(given is not None for given in (text, records, pairs)) > 1:
        raise UsageError("choose one of --text, --records and --pairs")
    if sample is not None and (text or records or pairs):
        raise UsageError("--sample applies only to a run's statements")
    if run_name is not None and (records or pairs):
        raise UsageError("--records and --pairs do not use a run: leave the run out")
    if judge is None or judge in LOCAL_JUDGES:
        judging = without_shared(judging, ["device", "dtype", "base-url"])
    else:
        judging = fitting(judging, [judge], "completer")
    how = cast(JudgeOptions, said(**judging))
    with kgbias.open(store_url, progress=True) as study:
        found: ParserFaithfulness | list[RagasMetric] | list[JudgeAccuracy]
        if text is not None:
            run = study.run(run_name)
            own = run.check_text(
                _read(text), judge or "rule", repeats=repeats, seed=seed, judging=how
            )
            found = [own]
        elif records is not None:
            found = study.ragas(
                read_records(records), judge or "rule", repeats=repeats, seed=seed, **how
            )
        elif pairs is not None:
            rows = None if pairs == _WORLD else read_wikieval(Path(pairs))
            found = study.pairwise(rows, judge or "rule", repeats=repeats, seed=seed, **how)
        else:
            found = study.run(run_name).faithfulness(
                judge, repeats=repeats, sample=sample, seed=seed, **how
            )
        trust = study.reliability(judge or "rule", repeats=repeats, seed=seed, **how)
    if as_json:
        return show.data(_record(found) | {"reliability": _trust_record(trust)})
    if isinstance(found, ParserFaithfulness):
        _print_run(found)
    elif pairs is not None:
        _print_accuracies(cast(list[JudgeAccuracy], found))
    else:
        _print_metrics(cast(list[RagasMetric], found))
    _print_trust(trust)


def _read(path: Path) -> str:
    from kgbias.io.reading import read_text

    return read_text(path)


def _record(found: ParserFaithfulness | Sequence[RagasMetric] | Sequence[JudgeAccuracy]) -> dict[str, Any]:
    if isinstance(found, ParserFaithfulness):
        return {
            "run": found.run,
            "judge": found.judge,
            "outcomes": [
                asdict(o) | {"by_rule": o.by_rule.as_dict(), "by_judge": o.by_judge.as_dict()}
                for o in found.outcomes
            ],
            "without_answer": found.without_answer,
            "retest": found.retest.as_dict(),
            "agreement": found.agreement.as_dict(),
            "unfaithful": [
                {
                    "path": c.path,
                    "group": c.group,
                    "predicate": c.predicate,
                    "object": c.object,
                    "answer": c.answer,
                    "rule": c.rule.supported,
                    "reason": c.rule.reason,
                    "judged": list(c.judged),
                }
                for c in found.unfaithful
            ],
        }
    if isinstance(found[0], JudgeAccuracy):
        return {
            "chance": CHANCE_ACCURACY,
            "accuracies": [asdict(a) | {"accuracy": a.accuracy.as_dict()}
                           for a in found if isinstance(a, JudgeAccuracy)],
        }  # fmt: skip
    return {
        "metrics": [
            {
                "name": m.name,
                "judge": m.judge,
                "estimate": m.estimate.as_dict(),
                "retest": m.retest.as_dict(),
                "unread": m.unread,
                "records": [
                    [{"value": s.value, "parts": [list(part) for part in s.parts]} for s in own]
                    for own in m.records
                ],
            }
            for m in found
            if isinstance(m, RagasMetric)
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


def _print_run(found: ParserFaithfulness) -> None:
    show.say(f"run {found.run}: does each triple say what its answer said?", "")
    judge = [f"by {found.judge}"] if found.judge else []
    rows: list[tuple[object, ...]] = []
    for o in found.outcomes:
        by = (_share(o.by_rule), *([_share(o.by_judge)] if judge else []))
        rows.append((o.outcome, o.generations, o.statements, *by))
        rows += [
            ("", "", n, _REASONS[reason], *("" for _ in judge)) for reason, n in o.reasons.items()
        ]
    show.table(("outcome", ">answers", ">statements", "faithful by rule", *judge), rows)
    if found.without_answer:
        show.say(f"{found.without_answer} statements have no raw answer, since they were imported")
    if found.agreement.n:
        show.say(f"rule and judge agree on {_share(found.agreement)} of the statements")
    for c in found.unfaithful[:10]:
        why = _REASONS.get(c.rule.reason, "the judge says no")
        show.say(
            "",
            f"  {why}",
            f"    answer  {shorten(c.answer, 200)}",
            f"    triple  {c.group} | {c.predicate} | {c.object}",
        )
    if (more := len(found.unfaithful) - 10) > 0:
        show.say("", f"  and {more} more: --json has all")


def _print_accuracies(found: Sequence[JudgeAccuracy]) -> None:
    rows = []
    for row in found:
        notes = [f"{row.ties} ties"] if row.ties else []
        notes += [f"{row.unread} not read"] if row.unread else []
        rows.append((row.aspect, row.method, ", ".join([_share(row.accuracy), *notes])))
    show.table(("", "", ""), rows)
    if all(row.aspect != _RELEVANCE for row in found):
        show.say(f"{_RELEVANCE}  {_OFFLINE}")
    show.say(f"chance has {CHANCE_ACCURACY:.2f}; accuracy of pairwise preferences")


def _print_metrics(found: Sequence[RagasMetric]) -> None:
    for row in found:
        e = row.estimate
        unread = f"; {row.unread} verdicts could not be read" if row.unread else ""
        if not e.n:
            show.say(f"{row.name:<20}{_OFFLINE if row.name == _RELEVANCE else 'not judged'}")
            continue
        show.say(f"{row.name:<20}{e.value:.3f} ({e.interval('.3f')}), n = {e.n}{unread}")
        if row.name == "faithfulness":
            parts = [part for own in row.records for part in own[0].parts]
            marks: dict[object, str] = {True: "yes", False: "no"}
            show.table(
                ("", ""),
                ((marks.get(verdict, "?"), shorten(part, 120)) for part, verdict in parts),
                indent=4,
            )


def _print_trust(trust: JudgeReliability) -> None:
    show.say(
        "",
        f"judge {trust.judge}: right on {_share(trust.accuracy)} of labelled cases, "
        f"kappa {trust.kappa.value:.2f} ({trust.kappa.interval('.2f')})"
        + (f", agrees with itself on {_share(trust.retest)}" if trust.retest.n else "")
        + (f"; {trust.unread} verdicts could not be read" if trust.unread else ""),
    )
    kinds = ", ".join(f"{kind} {e.value:.0%}" for kind, e in trust.by_kind.items())
    show.say(f"    {kinds}")


def _share(e: Any) -> str:
    return f"{e.value:.0%} ({e.interval('.0%')}), n = {e.n}" if e.n else "-"
