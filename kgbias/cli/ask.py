"""`kgbias ask`: ask the graph questions in plain words."""

from typing import Any, cast

import click

import kgbias
from kgbias.ask.answer import QuestionAnswer, format_figures
from kgbias.ask.retrieval import RetrievedStatement, RetrievedGroup
from kgbias.ask.text2cypher import CypherAnswer
from kgbias.cli import show
from kgbias.cli.command import Command
from kgbias.cli.options import (
    base_url_option,
    default,
    json_option,
    model_settings,
    prompts_form_option,
    said,
    selection_options,
    store_option,
)
from kgbias.cli.settings import fitting, setting, without_shared
from kgbias.errors import UsageError
from kgbias.io.text import CONTENT_WARNING, shorten
from kgbias.query import write_result
from kgbias.study.run import AskOptions

_OF = kgbias.Run.ask
_SECONDS = 60.0  # a time limit for queries written by a model


@click.command(
    cls=Command, examples=("kgbias ask 'What does the model say about women and work?'",)
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
    default=default(_OF, "top"),
    show_default=True,
    help="Maximum number of statements about each named group, or in all.",
)
@setting(
    "encoder",
    metavar="SPEC",
    default=default(_OF, "encoder"),
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
    as_json: bool,
    **options: Any,
) -> None:
    """Ask a run a question, such as "What does the model say about women and work?".

    The answer is what the model said, never more: statements, with how often each was said and why
    it was found, and the groups' figures with 95% intervals. With --model, a model writes sentences
    from these statements; any sentence that cites none is marked. If the graph holds nothing about
    the question, the answer says so.
    """
    if not model:
        options = without_shared(options, ["dtype", "base-url"])
    else:
        options = fitting(options, [model], "completer")
    if cypher:
        options = without_shared(options, ["min-acceptability", "without-echoes"])
    if cypher and model is None:
        raise UsageError("--cypher needs a model to write the query: name one with --model")
    names = ("form", "prompts", "base_url", "dtype")
    asked = cast(AskOptions, said(**{name: options.pop(name) for name in names}))
    where = said(device=device)
    selection = said(**options)
    if cypher and selection:
        raise UsageError(f"`{min(selection)}` does not apply to --cypher: put it in the question")
    seconds = _SECONDS if cypher else None
    found: QuestionAnswer | CypherAnswer
    with kgbias.open(store_url, progress=True, query_timeout=seconds) as study:
        run = study.run(run_name)
        if cypher and model:
            found = run.ask_in_cypher(question, model, asking=asked, **where)
        else:
            found = run.ask(
                question, model=model, top=top, encoder=encoder, asking=asked, **where, **selection
            )
        # While the store is open, so that a wrong value in it is put down to it.
        if as_json:
            show.data(found.as_dict())
        elif isinstance(found, CypherAnswer):
            _print_query(found)
        else:
            _print(found)


def _print_query(a: CypherAnswer) -> None:
    if a.query:
        show.block(f"{a.query}\n", err=True)
    if a.error:
        raise UsageError(f"the model's query cannot be run: {a.error}")
    show.block(write_result(a.result, "table"))
    show.say("", f"Query written by {a.model}: read it before its rows.", err=True)


def _print(a: QuestionAnswer) -> None:
    r = a.retrieval
    if not a.statements:
        show.say(a.text)
        if a.note:
            show.say(a.note)
        if r.nearest:
            show.say()
            for f in r.nearest:
                show.say(f"  {_statement(f)}")
            show.say("", CONTENT_WARNING, err=True)
        return
    if a.model:
        for claim in a.claims:
            show.say(f"{claim.text}{_mark(claim.cites, claim.missing_numbers)}")
        if a.note:
            show.say()
    if a.note:
        show.say(a.note, "")
    several = len({g.arm for g in r.groups}) > 1
    for g in r.groups:
        of = f"{g.group} [{g.arm}]" if several else g.group
        show.say(f"{of}: {_matching(g) if r.question.topic else f'{g.statements} statements'}")
        for title, value, n in format_figures(g.figures) if r.question.groups else ():
            show.say(f"    {title} {value}, n = {n}")
    show.say()
    for n, f in enumerate(a.statements, 1):
        show.say(f"[{n}] {_statement(f, arm=several)}")
    if r.neighbours:
        show.say("", "Of other groups, with the same object:")
    for near in r.neighbours:
        t = near.triple
        show.say(f"  as [{near.statement_number}]: {shorten(t.sentence, 100)}  said {t.count}")
    show.say(
        "",
        f"{len(a.statements)} of {r.matching} statements of run {a.run}, by {r.method}.",
        CONTENT_WARNING,
        err=True,
    )


def _matching(g: RetrievedGroup) -> str:
    """How many of the statements about a group match the question."""
    if not g.statements:
        return "0 statements"
    e = g.matching
    count = round(e.value * g.statements)
    return f"{count} of {g.statements} statements match ({e.value:.1%}, {e.interval('.1%')})"


def _statement(f: RetrievedStatement, *, arm: bool = False) -> str:
    """A statement with its figures, and why it was found."""
    t = f.triple
    score = f", regard {t.scores['regard'].value:+z.2f}" if "regard" in t.scores else ""
    return (
        f"{shorten(t.sentence, 100)}{f' [{t.arm}]' if arm else ''}  "
        f"said {t.count} ({f.share.value:.1%}, {f.share.interval('.1%')}){score}  "
        f"{f.why}"
    )


def _mark(cites: tuple[int, ...], wrong: tuple[int, ...]) -> str:
    """The mark after a claim whose sources are missing or wrong."""
    if wrong:
        numbers = ", ".join(map(str, wrong))
        return f"  (there is no statement {numbers})"
    return "" if cites else "  (without a source)"
