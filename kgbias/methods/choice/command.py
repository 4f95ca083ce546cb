"""`kgbias probe choice`: which group a model takes a statement to be about."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

import kgbias
from kgbias.cli import show
from kgbias.cli.command import Command
from kgbias.cli.options import (
    WRITER_SPECS,
    asking_options,
    build_price_output,
    drop_unset,
    json_option,
    model_settings,
    parameter_options,
    run_name_argument,
    selection_options,
    store_option,
)
from kgbias.cli.probe import MAX_GROUPS_LISTED, format_estimate, pop_model
from kgbias.cli.settings import keep_applicable, setting, shared_settings
from kgbias.cli.show import Output
from kgbias.io.text import shorten
from kgbias.io.wording import pluralise
from kgbias.methods.choice import choose
from kgbias.methods.choice.config import ChoiceConfig

if TYPE_CHECKING:
    from kgbias.methods.choice.ask import ChoicePrice
    from kgbias.methods.choice.result import CategoryChoices, RunChoices


@click.command(
    cls=Command,
    short_help="Ask which group each statement is about (models without probabilities).",
    examples=("kgbias probe choice smollm2 --model openai:my-model --sample 50",),
)
@run_name_argument
@click.option(
    "--model",
    "spec",
    metavar="SPEC",
    help=f"The model: {WRITER_SPECS}.",
)
@store_option
@click.option("--category", multiple=True, metavar="NAME", help="Only this category.")
@click.option(
    "--sample", type=int, metavar="N", help="Ask about N random statements of each category."
)
@parameter_options(ChoiceConfig)
@setting("prompts", metavar="FOLDER", help="A folder with your own question.")
@click.option("--indicators", metavar="FILE", help="A file with names of groups.")
@selection_options
@shared_settings("seed")
@model_settings
@asking_options
@json_option
def choice(
    run_name: str | None,
    store_url: str,
    max_failed: float,
    dry_run: bool,
    **options: Any,
) -> Output:
    """Ask a model which group each statement is about.

    For models that give no probabilities. Each question offers some groups of the category, each by
    its names in turn and in each place equally often. How often a group is chosen, against its base
    rate and over its names, is written on the edges of the graph. Run the same command again to
    continue where it stopped.
    """
    model = pop_model(options)
    library_options: Any = drop_unset(**keep_applicable(options, [model], "completer"))
    with kgbias.open(store_url, progress=True) as study:
        run = study.run(run_name)
        if dry_run:
            return _build_price_output(choose(run, model, dry_run=True, **library_options))
        result = choose(run, model, **library_options)
    return Output(
        result, lambda: _print_choices(result), lambda: int(result.failed_share > max_failed)
    )


def _print_choices(result: "RunChoices") -> None:
    outcomes = result.outcomes
    show.say(
        f"run {result.run}, {result.choosing.model.title}: "
        f"{pluralise(outcomes.total(), 'answer')}, "
        f"{outcomes['refused']} "
        f"refused, {outcomes['unreadable']} unreadable, {outcomes['failed']} failed; asked "
        f"{result.asked_count}, from "
        f"the log {result.cached_count}{f'; {result.spent}' if result.asked_count else ''}"
    )
    for category_choices in result.categories:
        _print_category(category_choices)


def _print_category(choices: "CategoryChoices") -> None:
    heading = (
        f"{choices.category}: "
        f"{pluralise(len(choices.statements), 'statement')}, {choices.options} of "
    )
    heading += f"{pluralise(len(choices.groups), 'group')} in a question"
    if not sum(choices.option_counts):
        no_answer_note = "  no answer names one of the groups: nothing can be said about this model"
        return show.say("", heading, no_answer_note)
    places = "  ".join(
        f"{number}. {format_estimate(place)}" for number, place in enumerate(choices.places, 1)
    )
    show.say(
        "",
        f"{heading}, {1 / choices.options:.3f} by chance",
        f"  own group chosen {format_estimate(choices.own_share)}; "
        f"{choices.expected_own_share:.3f} by base rates alone",
        f"  by place: {places}",
        *_describe_names(choices),
    )
    base = sorted(
        zip(choices.groups, choices.shares.base, strict=True),
        key=lambda item: -(item[1].value or 0),
    )
    show.print_table(
        ("", ""),
        (
            (group.name, f"{format_estimate(rate)} of its questions")
            for group, rate in base[:MAX_GROUPS_LISTED]
        ),
        indent=2,
    )
    rows_with_lift = [row for row in choices.rows() if row["lift"] == row["lift"]]
    strongest = sorted(rows_with_lift, key=lambda row: (row["q_value"], -row["lift"]))[
        :MAX_GROUPS_LISTED
    ]
    if strongest:
        show.say("  the smallest q first:")
        show.print_table(("",) * 5, map(_choice_cells, strongest), indent=4)


def _choice_cells(row: Mapping[str, Any]) -> tuple[str, ...]:
    return (
        shorten(" ".join((row["group"], row["predicate"], row["object"])), 60),
        f"{row['share']:.2f}",
        f"lift {row['lift']:+z.2f} bits [{row['lift_low']:+z.2f}, {row['lift_high']:+z.2f}]",
        f"q {row['q_value']:.3f}",
        row["verdict"],
    )


def _describe_names(choices: "CategoryChoices") -> list[str]:
    """How many groups were offered by several names, and what was found of them."""
    multi_name_count = sum(len(group_names) > 1 for group_names in choices.names)
    single_names = [group_names[0].text for group_names in choices.names if len(group_names) == 1]
    lines = []
    if floor := choices.floor:
        lines.append(
            f"  {pluralise(multi_name_count, 'group')} by their names: of {floor['tested']} pairs "
            f"of group and "
            f"statement "
            f"{floor['more']} are chosen more often, {floor['dealt']:g} with names dealt anew"
        )
    if single_names:
        lines.append(
            f"  by one name only, so what is found is its own: "
            f"{', '.join(single_names[:MAX_GROUPS_LISTED])}"
        )
    return lines


def _build_price_output(price: "ChoicePrice") -> Output:
    line = (
        f"{pluralise(price.requests, 'question')} about "
        f"{pluralise(price.statements, 'statement')}, about "
        f"{pluralise(price.prompt_tokens, 'token')}, and at most {price.answer_tokens_at_most} "
        f"of answers; "
        "nothing was asked"
    )
    return build_price_output(price, asdict(price), [line])
