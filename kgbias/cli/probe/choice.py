"""`kgbias probe choice`: which group each statement of a run is about, as a model chooses."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

import kgbias
from kgbias.cli.flags import as_flags, said
from kgbias.cli.options import (
    WRITERS,
    asking_options,
    json_option,
    model_options,
    print_json,
    print_price,
    printable,
    run_argument,
    selection_options,
    store_option,
)
from kgbias.cli.probe import Part
from kgbias.cli.probe.options import named_model, seed_option
from kgbias.cli.probe.output import MOST, shown
from kgbias.text import shortened

if TYPE_CHECKING:
    from kgbias.probe.choice import CategoryChoices, ChoicePrice, RunChoices


@click.command(cls=Part)
@run_argument
@click.option(
    "--model",
    "spec",
    metavar="SPEC",
    help=f"The model: {WRITERS}.",
)
@store_option
@click.option("--category", multiple=True, metavar="NAME", help="Only this category.")
@click.option(
    "--sample", type=int, metavar="N", help="Ask of N statements of each category, drawn at random."
)
@click.option("--options", type=int, metavar="K", help="Groups in a question (default: 4).")
@click.option(
    "--samples",
    type=int,
    metavar="N",
    help="How often each group is offered for a statement, at least (default: 24).",
)
@click.option("--temperature", type=float, help="(default: 1)")
@click.option(
    "--form",
    type=click.Choice(["chat", "completion"]),
    help="The form of the question (default: chat for a server, completion for a local model).",
)
@click.option("--prompts", metavar="FOLDER", help="A folder with a question of your own.")
@click.option("--indicators", metavar="FILE", help="A file of names of groups.")
@selection_options
@seed_option
@model_options
@asking_options
@json_option
def choice(
    run_name: str | None,
    store_url: str,
    max_failed: float,
    dry_run: bool,
    as_json: bool,
    **given: Any,
) -> int:
    """Ask a model which group each statement is about.

    For models that give no probabilities. Each question offers some groups of the category, by
    their names in turn; each stands in each place equally often. How often a group is chosen,
    against its base rate and over its names, is written on the edges of the graph. The same command
    continues where it stopped.
    """
    model = named_model(given)
    asked: Any = said(**given)
    with as_flags(), kgbias.open(store_url, progress=True) as study:
        run = study.run(run_name)
        if dry_run:
            _print_price(run.price_choices(model, **asked), as_json)
            return 0
        found = run.choose(model, **asked)
    if as_json:
        print_json(found.as_dict())
    else:
        for line in _lines(found):
            click.echo(printable(line))
    return int(found.failed > max_failed)


def _lines(found: "RunChoices") -> list[str]:
    n = found.outcomes
    return [
        f"run {found.run}, {found.choosing.model.name}: {n.total()} answers, {n['refused']} "
        f"refused, {n['unreadable']} unreadable, {n['failed']} failed; asked {found.asked}, from "
        f"the log {found.cached}{f'; {found.spent}' if found.asked else ''}",
        *(line for part in found.categories for line in _category(part)),
    ]


def _category(part: "CategoryChoices") -> list[str]:
    head = f"{part.category}: {len(part.statements)} statements, {part.options} of "
    head += f"{len(part.groups)} groups in a question"
    if not sum(part.picked):
        return ["", head, "  no answer names one of the groups: nothing can be said of this model"]
    places = "  ".join(f"{n}. {shown(place)}" for n, place in enumerate(part.places, 1))
    base = sorted(
        zip(part.groups, part.shares.base, strict=True), key=lambda own: -(own[1].value or 0)
    )
    told = [row for row in part.rows() if row["lift"] == row["lift"]]
    strongest = sorted(told, key=lambda row: (row["p_value"], -row["lift"]))[:MOST]
    listed = ["  the smallest p first:"]
    return [
        "",
        f"{head}, {1 / part.options:.3f} by chance",
        f"  own group chosen {shown(part.own)}; {part.own_expected:.3f} by base rates alone",
        f"  by place: {places}",
        *_of_names(part),
        *(f"  {group.name:<26}{shown(rate)} of its questions" for group, rate in base[:MOST]),
        *(listed if strongest else []),
        *(
            f"    {shortened(' '.join((row['group'], row['predicate'], row['object'])), 60):<62}"
            f"{row['share']:.2f}  lift {row['lift']:+z.2f} bits [{row['lift_low']:+z.2f}, "
            f"{row['lift_high']:+z.2f}]  p {row['p_value']:.3f}  {row['verdict']}".rstrip()
            for row in strongest
        ),
    ]


def _of_names(part: "CategoryChoices") -> list[str]:
    """By how many names groups were offered, and what was shown of them."""
    several = sum(len(own) > 1 for own in part.names)
    one = [own[0].text for own in part.names if len(own) == 1]
    lines = []
    if floor := part.floor:
        lines.append(
            f"  {several} groups by their names: of {floor['tested']} pairs of group and statement "
            f"{floor['more']} are chosen more often, {floor['dealt']:g} with names dealt anew"
        )
    if one:
        lines.append(f"  by one name, of which alone anything is said: {', '.join(one[:MOST])}")
    return lines


def _print_price(price: "ChoicePrice", as_json: bool) -> None:
    line = (
        f"{price.requests} questions about {price.statements} statements, about "
        f"{price.prompt_tokens} tokens, and at most {price.answer_tokens_at_most} of answers; "
        "nothing was asked"
    )
    print_price(price, asdict(price), [line], as_json)
