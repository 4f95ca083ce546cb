"""`kgbias attribute`: which words drive a score."""

from typing import TYPE_CHECKING, Any

import click

import kgbias
from kgbias.cli import show
from kgbias.cli.command import Command
from kgbias.cli.options import (
    device_setting,
    json_option,
    library_default,
    run_name_argument,
    store_option,
)
from kgbias.cli.settings import setting
from kgbias.cli.show import Output
from kgbias.errors import UsageError
from kgbias.io.columns import Column
from kgbias.io.rows import Rows
from kgbias.io.text import spoken_name
from kgbias.measures import MEASURES
from kgbias.methods import attribution

if TYPE_CHECKING:
    from kgbias.graph.types import WordAttribution
    from kgbias.methods.attribution.word_effects import Deletion, WordEffect

_OTHER_SELECTIONS = {"search": "--search", "everything": "--all"}


def _describe_defaults(name: str) -> str:
    def worded(value: Any) -> str:
        return str(value) if isinstance(value, int) else ", ".join(value)

    return (
        f"(default: {worded(library_default(attribution.attribute, name))}; --deletion: "
        f"{worded(library_default(attribution.measure_deletion, name))})"
    )


@click.command(cls=Command, examples=("kgbias attribute smollm2 --measure toxicity --top 20",))
@run_name_argument
@store_option
@click.option(
    "--measure",
    multiple=True,
    default=library_default(attribution.attribute, "measure"),
    show_default=True,
    help=f"Which scores (repeatable): {', '.join(MEASURES.own_entries)}.",
)
@click.option(
    "--method",
    multiple=True,
    help="How (repeatable): occlusion, for any scorer; integrated, by the gradients of "
    "offline and hf: scorers; cam, for offline scorers only. "
    f"{_describe_defaults('method')}",
)
@click.option(
    "--scorer", metavar="SCORER", help="The scorer, as for kgbias measure (default: offline)."
)
@click.option(
    "--top",
    type=click.IntRange(min=1),
    help=f"How many of each measure's most extreme statements. {_describe_defaults('top')}",
)
@click.option("--search", metavar="TEXT", help="Instead, the statements that contain this text.")
@click.option("--all", "everything", is_flag=True, help="Instead, every statement.")
@click.option(
    "--words",
    is_flag=True,
    help="Instead of statements, show the words that drive each group's scores most, over all that "
    "was attributed so far.",
)
@click.option(
    "--against",
    metavar="SCORER",
    help="With --words: by what this other scorer of the run calls the statements, not by group.",
)
@click.option(
    "--deletion",
    is_flag=True,
    help="Instead of statements, show how far the score falls when the most effective words are "
    "removed one by one, by each method and in random order.",
)
@setting(
    "removed",
    type=click.IntRange(min=1),
    help=f"With --deletion: remove up to this many words (default: "
    f"{library_default(attribution.measure_deletion, 'removed')}).",
)
@device_setting
@json_option
def attribute(
    run_name: str | None,
    store_url: str,
    words: bool,
    against: str | None,
    deletion: bool,
    **options: Any,
) -> Output:
    """Find which words drive the scores of statements: the effect of each word on its sentence's
    score, by leaving it out or by the scorer's gradients. The report shows them."""
    options_given = {
        name: value for name, value in options.items() if value not in (None, (), False)
    }
    _check_options(options_given, words, against, deletion)
    with kgbias.open(store_url, progress=True) as study:
        run = study.run(run_name)
        if deletion:
            curves = attribution.measure_deletion(run, **options_given)
            return Output(curves, lambda: _print_curves(curves))
        attributions = attribution.attribute(run, **options_given)
        if words:
            selection = {
                name: options_given[name] for name in ("measure", "method") if name in options_given
            }
            effects = attribution.rank_words(run, **selection, against=against)
            return Output(effects, lambda: _print_words(effects))
    return Output(attributions, lambda: _print_attributions(attributions))


def _print_attributions(attributions: "Rows[WordAttribution]") -> None:
    rows = []
    for found in attributions:
        effects = zip(found.tokens, found.effects, strict=True)
        rows.append(
            (
                spoken_name(found.metric.measure),
                found.method.partition("@")[0],
                found.score,
                "  ".join(f"{token[:40]} {effect:+z.2f}" for token, effect in effects),
            )
        )
    score = Column("score", "+.2f")
    show.print_table(("measure", "method", score, "effect of each word"), rows)


def _check_options(
    options: dict[str, Any], words: bool, against: str | None, deletion: bool
) -> None:
    if words and deletion:
        raise UsageError("choose one of --words and --deletion")
    if against and not words:
        raise UsageError("--against needs --words")
    if "removed" in options and not deletion:
        raise UsageError("removed needs --deletion")
    if deletion and (stray_options := _OTHER_SELECTIONS.keys() & options.keys()):
        flag = _OTHER_SELECTIONS[min(stray_options)]
        raise UsageError(f"{flag} does not apply to --deletion, which takes the --top statements")


def _print_words(rows: "Rows[WordEffect]") -> None:
    columns = ("measure", "method", "cell", "word", Column("effect", "+.2f"), "statements")
    show.print_table(
        columns,
        (
            (
                spoken_name(row.measure),
                row.method,
                row.cell,
                row.word[:40],
                row.effect,
                f"in {row.n} of {row.statements}",
            )
            for row in rows
        ),
    )


def _print_curves(rows: "Rows[Deletion]") -> None:
    columns = (
        Column("measure"),
        Column("method"),
        Column("removed", "d"),
        Column("drop", ".2f", interval=True),
        Column("statements", "d"),
    )
    show.print_table(
        columns,
        ((spoken_name(row.measure), row.method, row.removed, row.drop, row.drop.n) for row in rows),
    )
