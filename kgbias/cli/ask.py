"""`kgbias ask`: ask the graph questions in plain words."""

from collections.abc import Sequence
from typing import Any, cast

import click

import kgbias
from kgbias.ask.answer import FormattedFigure, QuestionAnswer, format_figures
from kgbias.ask.retrieval import RetrievedGroup, RetrievedStatement
from kgbias.ask.text2cypher import CypherAnswer
from kgbias.cli import show
from kgbias.cli.command import Command
from kgbias.cli.options import (
    base_url_option,
    drop_unset,
    json_option,
    library_default,
    model_settings,
    prompts_form_option,
    selection_options,
    store_option,
)
from kgbias.cli.settings import drop_shared, keep_applicable, setting
from kgbias.cli.show import Output
from kgbias.errors import UsageError
from kgbias.io.text import CONTENT_WARNING, shorten
from kgbias.io.wording import pluralise
from kgbias.query import format_result
from kgbias.study.run import AskOptions

_RUN_METHOD = kgbias.Run.ask
_MAX_QUERY_SECONDS = 60.0  # a time limit for queries written by a model


@click.command(
    cls=Command,
    section="Ask and look",
    short_help="Ask a run a question in plain words; answers have sources.",
    examples=("kgbias ask 'What does the model say about women and work?'",),
)
@click.argument("question")
@store_option
@click.option("--run", "run_name", metavar="NAME", help="The run (default: the newest).")
@click.option("--model", metavar="SPEC", help="Have a model write the answer from statements.")
@click.option(
    "--cypher",
    is_flag=True,
    help="Instead, have the model write a read-only Cypher query, and run it.",
)
@click.option(
    "--top",
    type=click.IntRange(min=1),
    default=library_default(_RUN_METHOD, "top"),
    show_default=True,
    help="Maximum number of statements about each named group, or in all.",
)
@setting(
    "encoder",
    metavar="SPEC",
    default=library_default(_RUN_METHOD, "encoder"),
    help="The sentence encoder that finds statements in other words; none: only shared words.",
)
@setting("prompts", metavar="FOLDER", help="The model's prompts (default: ask).")
@prompts_form_option
@base_url_option
@model_settings
@selection_options
@json_option
def ask(
    question: str,
    store_url: str,
    run_name: str | None,
    model: str | None,
    cypher: bool,
    top: int,
    encoder: str,
    device: str | None,
    **options: Any,
) -> Output:
    """Ask a run a question, such as "What does the model say about women and work?".

    The answer is what the model said, never more: statements, with how often each was said and why
    it was found, and the groups' figures with 95% intervals. With --model, a model writes sentences
    from these statements; any sentence that cites none is marked. If the graph holds nothing about
    the question, the answer says so.
    """
    if not model:
        options = drop_shared(options, ["dtype", "base-url"])
    else:
        options = keep_applicable(options, [model], "completer")
    if cypher:
        options = drop_shared(options, ["min-acceptability", "exclude-echoes"])
    if cypher and model is None:
        raise UsageError("--cypher needs a model to write the query: name one with --model")
    names = ("form", "prompts", "base_url", "dtype")
    model_options = cast(AskOptions, drop_unset(**{name: options.pop(name) for name in names}))
    device_option = drop_unset(device=device)
    selection = drop_unset(**options)
    if cypher and selection:
        raise UsageError(f"`{min(selection)}` does not apply to --cypher: put it in the question")
    seconds = _MAX_QUERY_SECONDS if cypher else None
    answer: QuestionAnswer | CypherAnswer
    with kgbias.open(store_url, progress=True, query_timeout=seconds) as study:
        run = study.run(run_name)
        if run_name is None:
            show.say(f"of run {run.name}, the newest with statements", err=True)
        if cypher and model:
            answer = run.ask_in_cypher(question, model, asking=model_options, **device_option)
        else:
            answer = run.ask(
                question,
                model=model,
                top=top,
                encoder=encoder,
                asking=model_options,
                **device_option,
                **selection,
            )
    if isinstance(answer, CypherAnswer):
        cypher_answer = answer
        return Output(cypher_answer, lambda: _print_cypher_answer(cypher_answer))
    found = answer
    return Output(found, lambda: _print_answer(found, _figures_of_groups(found)))


def _figures_of_groups(answer: QuestionAnswer) -> list[list[FormattedFigure]]:
    """The figures to print of each group; none where the question names no group."""
    names_groups = bool(answer.retrieval.question.groups)
    return [
        format_figures(group.figures) if names_groups else [] for group in answer.retrieval.groups
    ]


def _print_cypher_answer(answer: CypherAnswer) -> None:
    if answer.query:
        show.print_block(f"{answer.query}\n", err=True)
    if answer.error:
        raise UsageError(f"the model's query cannot be run: {answer.error}")
    show.print_block(format_result(answer.result, "table"))
    show.say("", f"Query written by {answer.model}: read it before its rows.", err=True)


def _print_answer(answer: QuestionAnswer, figures: Sequence[Sequence[FormattedFigure]]) -> None:
    """Print an answer; `figures` are those of each group."""
    retrieved = answer.retrieval
    if not answer.statements:
        show.say(answer.text)
        if answer.note:
            show.say(answer.note)
        if retrieved.nearest:
            show.say()
            for statement_found in retrieved.nearest:
                show.say(f"  {_describe_statement(statement_found)}")
            show.say("", CONTENT_WARNING, err=True)
        return
    if answer.model:
        for claim in answer.claims:
            show.say(f"{claim.text}{_citation_mark(claim.cites, claim.missing_numbers)}")
        if answer.note:
            show.say()
    if answer.note:
        show.say(answer.note, "")
    has_several_arms = len({group.arm for group in retrieved.groups}) > 1
    for group, group_figures in zip(retrieved.groups, figures, strict=True):
        group_name = f"{group.group} [{group.arm}]" if has_several_arms else group.group
        show.say(
            f"{group_name}: "
            + (
                _describe_matching(group)
                if retrieved.question.topic
                else pluralise(group.statements, "statement")
            )
        )
        for figure in group_figures:
            show.say(f"    {figure.title} {figure.value}, n = {figure.n}")
    show.say()
    for n, statement_found in enumerate(answer.statements, 1):
        show.say(f"[{n}] {_describe_statement(statement_found, arm=has_several_arms)}")
    if retrieved.neighbours:
        show.say("", "Of other groups, with the same object:")
    for neighbour in retrieved.neighbours:
        triple = neighbour.triple
        show.say(
            f"  as [{neighbour.statement_number}]: {shorten(triple.sentence, 100)}  said "
            f"{triple.count}"
        )
    show.say(
        "",
        f"{len(answer.statements)} of {retrieved.matching} statements of run {answer.run}, by "
        f"{retrieved.method}.",
        CONTENT_WARNING,
        err=True,
    )


def _describe_matching(group: RetrievedGroup) -> str:
    """How many of the statements about a group match the question."""
    if not group.statements:
        return "0 statements"
    estimate = group.matching
    count = round(estimate.value * group.statements)
    return (
        f"{count} of {group.statements} statements match ({estimate.value:.1%}, "
        f"{estimate.format_interval('.1%')})"
    )


def _describe_statement(statement_found: RetrievedStatement, *, arm: bool = False) -> str:
    """A statement with its figures, and why it was found."""
    triple = statement_found.triple
    score = f", regard {triple.scores['regard'].value:+z.2f}" if "regard" in triple.scores else ""
    return (
        f"{shorten(triple.sentence, 100)}{f' [{triple.arm}]' if arm else ''}  "
        f"said {triple.count} ({statement_found.share.value:.1%}, "
        f"{statement_found.share.format_interval('.1%')}){score}  "
        f"{statement_found.why}"
    )


def _citation_mark(cites: tuple[int, ...], wrong: tuple[int, ...]) -> str:
    """The mark after a claim whose sources are missing or wrong."""
    if wrong:
        numbers = ", ".join(map(str, wrong))
        return f"  (there is no statement {numbers})"
    return "" if cites else "  (without a source)"
