"""`kgbias ask`: questions to the graph in plain words."""

from typing import Any

import click

import kgbias
from kgbias.ask.answer import Answer, shown_figures
from kgbias.cli.options import (
    default,
    device_option,
    json_option,
    print_json,
    printable,
    selection_options,
    store_option,
)
from kgbias.text import CONTENT_WARNING, shortened

_OF = kgbias.Run.ask


@click.command()
@click.argument("question")
@store_option
@click.option("--run", "run_name", metavar="NAME", help="The run (default: the newest).")
@click.option(
    "--extractive",
    is_flag=True,
    help="Answer with the statements themselves: the default without --model.",
)
@click.option(
    "--top",
    type=click.IntRange(min=1),
    default=default(_OF, "top"),
    show_default=True,
    help="At most so many statements about each group that is named, or in all.",
)
@click.option(
    "--encoder",
    metavar="SPEC",
    default=default(_OF, "encoder"),
    show_default=True,
    help="The sentence encoder that finds statements in other words; none: shared words alone.",
)
@device_option
@selection_options
@json_option
def ask(
    question: str, store_url: str, run_name: str | None, extractive: bool, as_json: bool,
    **options: Any,
) -> None:  # fmt: skip
    """Ask a run a question, such as "What does the model say about women and work?".

    The answer is what the model said, never more: statements with how often each was said, why it
    was found, and the figures of the groups with 95% intervals. Where the graph holds nothing about
    the question, the answer says so.
    """
    with kgbias.open(store_url, progress=True) as study:
        found = study.run(run_name).ask(question, **options)
    if as_json:
        return print_json(found.as_dict())
    _print(found)


def _print(a: Answer) -> None:
    r = a.retrieved
    if not a.statements:
        return click.echo(printable(a.text))
    for g in r.groups:
        of = f"{printable(g.group)} [{printable(g.arm)}]"
        click.echo(
            f"{of}: {g.statements} statements"
            + (f", {g.matching.value:.0%} match ({g.matching.interval('.0%')})"
               if r.question.topic else "")
        )  # fmt: skip
        for title, value in shown_figures(g.figures) if r.question.groups else ():
            click.echo(f"    {title} {value}")
    click.echo()
    several = len({f.triple.arm for f in a.statements}) > 1
    for n, f in enumerate(a.statements, 1):
        t = f.triple
        scores = "".join(
            f", {name} {t.scores[name].value:+.2f}" for name in ("regard",) if name in t.scores
        )
        arm = f" [{printable(t.arm)}]" if several else ""
        click.echo(
            f"[{n}] {shortened(printable(t.sentence), 100)}{arm}  said {t.count} "
            f"({f.share.value:.1%}, {f.share.interval('.1%')}){scores}  {printable(f.why)}"
        )
    for near in r.neighbours:
        t = near.triple
        click.echo(f"  beside [{near.of}]: {shortened(printable(t.sentence), 100)}  said {t.count}")
    shown = len(a.statements)
    click.echo(
        f"\n{shown} of {r.matching} statements of run {printable(a.run)}, by {r.method}.\n"
        f"{CONTENT_WARNING}",
        err=True,
    )
