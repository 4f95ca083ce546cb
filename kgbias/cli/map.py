"""`kgbias map`: the whole way from a model to the report in one command."""

from pathlib import Path
from typing import Any

import click

import kgbias
from kgbias.cli import show
from kgbias.cli.command import Command
from kgbias.cli.evidence import print_verdicts
from kgbias.cli.measure import print_groups
from kgbias.cli.options import (
    WRITERS,
    about_cost,
    as_option,
    base_url_option,
    dry_run_option,
    limits_options,
    said,
    store_option,
    whom_options,
    workers_settings,
)
from kgbias.cli.settings import fitting, setting, settings
from kgbias.evidence.asked import PROBES
from kgbias.graph.store import DEFAULT_STORE
from kgbias.io.text import duration
from kgbias.parallel import LOCAL

_ASKING = ("probes", "executor", "processes")


@click.command(
    cls=Command,
    examples=(
        "kgbias map smollm2 --category gender",
        "kgbias map smollm2 --groups trades.toml --minutes 10",
    ),
    epilog=f"A model is {WRITERS}.",
)
@click.argument("model", metavar="MODEL")
@as_option
@whom_options
@click.option("--run", "name", metavar="NAME", help="A name for the run.")
@click.option(
    "--minutes",
    type=click.IntRange(min=1),
    metavar="N",
    help="About how long all of it may take; a short trial fixes the sizes (default: full size).",
)
@click.option(
    "-o",
    "--output",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    default=".",
    show_default=True,
    help="The folder for report.html and explorer.html.",
)
@setting(
    "probes",
    type=click.IntRange(1),
    metavar="N",
    help="Maximum number of probes (default: 45,000; with --minutes as many as fit).",
)
@settings("device")
@workers_settings
@base_url_option
@limits_options
@dry_run_option
@store_option
def map(
    model: str,
    store_url: str,
    name: str | None,
    folder: Path,
    minutes: int | None,
    called: str | None,
    dry_run: bool,
    **options: Any,
) -> None:
    """Crawl a model, measure what it says, find what it believes, and write the report and the
    explorer. Run the same command again to continue where it stopped.

    The steps are commands too: crawl, measure, evidence, report and explore.
    """
    if options["executor"] == LOCAL:
        options["executor"] = None
    asking: Any = said(**{name: options.pop(name) for name in _ASKING})
    given = fitting(options, [model], "completer")
    with kgbias.open(store_url, progress=True) as study:
        if dry_run:
            price = study.price(model, **given)
            return _print_price(price, asking.get("probes", PROBES), minutes)
        found = study.map(
            model,
            name=name,
            folder=folder,
            minutes=minutes,
            called=called,
            asking=asking,
            **said(**given),
        )
    _print(found, store_url)


def _print(found: Any, store_url: str) -> None:
    print_groups(found.groups, "relative_entropy_as_published")
    show.say()
    print_verdicts(found.evidence)
    if found.left_out:
        show.say(found.left_out)
    store = "" if store_url == DEFAULT_STORE else f" --store {store_url}"
    show.say(
        f"report: {found.report.resolve()}",
        f"explorer: {found.explorer.resolve()}",
        f"to look around: kgbias serve {found.run.name}{store}",
    )


def _print_price(price: kgbias.Price, probes: int, minutes: int | None) -> None:
    much = "at most " if minutes else ""
    bound = "--minutes N bounds all of it"
    if minutes:
        long = f"sizes are fixed by a trial, to end in about {minutes} minutes"
    elif price.seconds is None:
        long = f"how long that takes depends on the model and the machine; {bound}"
    else:
        long = (
            f"answers take about {duration(price.seconds)}, at the speed of this model's crawls in "
            f"the store; probes and pages come on top; {bound}"
        )
    show.say(
        f"{price.groups} groups: {much}{price.requests} answers, with repeated attempts at most "
        f"{price.requests_at_most}; then at most {probes:,} probes, for a model that gives "
        "probabilities; nothing was asked",
        long,
    )
    if cost := about_cost(price):
        show.say(f"answers: {cost}")
