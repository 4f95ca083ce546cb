"""`kgbias map`: the whole way from a model to the report in one command."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import kgbias
from kgbias.cli import show
from kgbias.cli.command import Command
from kgbias.cli.evidence import print_verdicts
from kgbias.cli.measure import print_groups
from kgbias.cli.options import (
    CATEGORIES,
    about_cost,
    as_option,
    base_url_option,
    dry_run_option,
    form_option,
    limits_options,
    model_option,
    said,
    store_option,
    whom_options,
    workers_settings,
)
from kgbias.cli.settings import fitting, setting, settings
from kgbias.graph.store import DEFAULT_STORE
from kgbias.io.text import format_duration
from kgbias.parallel import LOCAL_EXECUTOR

if TYPE_CHECKING:
    from kgbias.study.pipeline import AuditPrice

_ASKING = ("probes", "executor", "processes")


class MapCommand(Command):
    """`kgbias map MODEL ...` is `kgbias map --model MODEL ...`: the first that people try, since
    there is no map without a model."""

    def parse_args(self, context: click.Context, args: list[str]) -> list[str]:
        is_named = any(text.partition("=")[0] == "--model" for text in args)
        if args and not args[0].startswith("-") and not is_named:
            args = ["--model", *args]
        return super().parse_args(context, args)


@click.command(
    cls=MapCommand,
    examples=(
        "kgbias map --model smollm2 --category gender",
        "kgbias map --model smollm2 --groups trades.toml --minutes 10",
    ),
)
@model_option
@as_option
@whom_options(CATEGORIES)
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
@form_option
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
    if options["executor"] == LOCAL_EXECUTOR:
        options["executor"] = None
    asking: Any = said(**{name: options.pop(name) for name in _ASKING})
    given = fitting(options, [model], "completer")
    with kgbias.open(store_url, progress=True) as study:
        if dry_run:
            return _print_price(study.map_price(model, asking=asking, **given), minutes)
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
    if found.alternatives:
        show.say(*found.alternatives)
    store = "" if store_url == DEFAULT_STORE else f" --store {store_url}"
    show.say(
        f"report: {found.report.resolve()}",
        f"explorer: {found.explorer.resolve()}",
        f"to look around: kgbias serve {found.run.name}{store}",
    )


def _print_price(price: "AuditPrice", minutes: int | None) -> None:
    answers, probes = price.answers, f"{price.probes:,} probes"
    then = "no probes, as models of this kind give no probabilities"
    if price.probes:
        then = f"then at most {probes}, for a model that gives probabilities"
    if price.choices:
        then += f", or about {price.choices:,} questions, for one that gives none"
    much = "at most " if minutes else ""
    show.say(
        f"{answers.groups} groups: {much}{answers.requests} answers, with repeated attempts at "
        f"most {answers.requests_at_most}; {then}; nothing was asked"
    )
    known = [
        f"{what} take about {format_duration(seconds)}"
        for what, seconds in (("the answers", answers.seconds), (probes, price.seconds))
        if seconds is not None
    ]
    unknown = [
        what
        for what, missing in (
            ("answers", answers.seconds is None),
            ("probes", price.probes and price.seconds is None),
        )
        if missing
    ]
    bound = "--minutes N bounds all of it"
    if minutes:
        show.say(f"sizes are fixed by a trial, to end in about {minutes} minutes")
    elif known:
        show.say(
            f"{' and '.join(known)}, at the speed of what the store has of this model; the "
            f"{' and '.join([*unknown, 'pages'])} come on top; {bound}"
        )
    else:
        show.say(f"how long that takes depends on the model and the machine; {bound}")
    if cost := about_cost(answers):
        show.say(f"answers: {cost}")
