"""`kgbias profiles --model SPEC`: have a model write profiles for given names."""

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
    store_option,
)

if TYPE_CHECKING:
    from kgbias.profiles.write import ProfilesPrice

OUTCOMES = ("ok", "refused", "unparsable", "failed")


@click.command()
@click.option(
    "--model",
    required=True,
    metavar="SPEC",
    help=f"The model: {WRITERS}.",
)
@click.option(
    "--names",
    metavar="NAME-or-FILE",
    help="globalbias (400 names of 40 groups, the default), reference, or a CSV file with the "
    "columns name and group.",
)
@click.option(
    "--group", multiple=True, metavar="NAME", help='Only names of this group, such as "Arab women".'
)
@click.option("--limit", type=int, metavar="N", help="Only the first N names of each group.")
@click.option(
    "--attribute",
    multiple=True,
    metavar="NAME",
    help="Ask for this attribute only (repeatable; default: all of the prompts).",
)
@click.option(
    "--prompts", metavar="NAME-or-FOLDER", help="The pack of prompts (default: profiles)."
)
@click.option(
    "--form",
    type=click.Choice(["json", "attributes"]),
    help="A whole profile as JSON, or attribute by attribute as a form (default: json for a "
    "server, attributes for a local model).",
)
@click.option("--samples", type=int, help="Profiles of each name (default: 3).")
@click.option("--temperature", type=float, help="(default: 1)")
@click.option(
    "--min-p",
    type=float,
    metavar="SHARE",
    help="Draw from tokens at least this fraction as probable as the most probable one (default: "
    "the pack's, 0.1 for attributes one by one).",
)
@click.option("--max-attempts", type=int, help="Maximum attempts per answer (default: 5).")
@click.option("--structured", is_flag=True, help="Ask a server to keep to the JSON schema.")
@click.option("--seed", type=int, help="The random seed (default: 0).")
@store_option
@click.option("--run", "name", metavar="NAME", help="A name for the run.")
@model_options
@asking_options
@json_option
def run(
    model: str,
    store_url: str,
    name: str | None,
    max_failed: float,
    dry_run: bool,
    as_json: bool,
    **options: Any,
) -> int:
    """Have a model write profiles of characters with given names.

    The method is that of Siddique et al. 2024: three profiles of each of 400 names, at temperature
    1. Running the same command again continues where it stopped, and asks nothing that was answered
    before.
    """
    given = said(**options)
    with as_flags(), kgbias.open(store_url, progress=True) as study:
        if dry_run:
            _print_price(study.price_profiles(model, **given), as_json)
            return 0
        made = study.write_profiles(model, name=name, **given)
    if as_json:
        print_json(_as_data(made))
    else:
        _print(made)
    return int(made.written.failed > max_failed)


def _as_data(run: kgbias.Run) -> dict[str, Any]:
    result = run.written
    return {
        "run": run.name,
        "asked": result.asked,
        "cached": result.cached,
        "prompt_tokens": result.spent.prompt_tokens,
        "completion_tokens": result.spent.completion_tokens,
        "cost": result.spent.cost,
        "profiles": result.profiles.total(),
        "whole": result.whole.total(),
        **{name: result.total[name] for name in OUTCOMES},
        "groups": [
            {
                "group": group,
                "profiles": result.profiles[group],
                "whole": result.whole[group],
                **{name: counts[name] for name in OUTCOMES},
            }
            for group, counts in result.outcomes.items()
        ],
    }


def _print(run: kgbias.Run) -> None:
    result = run.written
    click.echo(
        f"run {printable(run.name)}: {result.profiles.total()} profiles, {result.whole.total()} of "
        f"them whole, from {result.total.total()} answers; asked {result.asked}, from the log "
        f"{result.cached}{f'; {result.spent}' if result.asked else ''}"
    )
    width = max(map(len, result.outcomes), default=0)
    click.echo(f"{'':<{width}}  profiles  whole  refused  unparsable  failed")
    for group, counts in result.outcomes.items():
        click.echo(
            f"{printable(group):<{width}}{result.profiles[group]:>10}{result.whole[group]:>7}"
            f"{counts['refused']:>9}{counts['unparsable']:>12}{counts['failed']:>8}"
        )


def _print_price(price: "ProfilesPrice", as_json: bool) -> None:
    how = "as JSON" if price.form == "json" else "attribute by attribute"
    line = (
        f"{price.samples} profiles of each of {price.names} names in {price.groups} groups, {how}: "
        f"{price.requests} requests, with repeated attempts at most {price.requests_at_most} and "
        f"{price.answer_tokens_at_most} answer tokens; nothing was asked"
    )
    print_price(price, asdict(price), [line], as_json)
