"""`kgbias map`: the whole way from a model to the report in one command."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import kgbias
from kgbias.cli import show
from kgbias.cli.command import Command
from kgbias.cli.compare import print_refusals
from kgbias.cli.crawl import warn_of_singular_names
from kgbias.cli.evidence import print_verdicts
from kgbias.cli.measure import print_groups
from kgbias.cli.options import (
    ASKING_SECTION,
    CATEGORY_NAMES,
    base_url_option,
    describe_cost,
    drop_unset,
    dry_run_option,
    group_options,
    limits_options,
    model_name_option,
    model_option,
    parameter_options,
    store_option,
    take_options,
    workers_settings,
)
from kgbias.cli.settings import keep_applicable, shared_settings
from kgbias.crawl.config import CrawlConfig
from kgbias.evidence.probe_plan import ProbeSettings
from kgbias.graph.store import DEFAULT_STORE
from kgbias.io.text import format_duration
from kgbias.io.wording import pluralise
from kgbias.packs import DEFAULT
from kgbias.parallel import LOCAL_EXECUTOR
from kgbias.study.probing import BeliefOptions

if TYPE_CHECKING:
    from kgbias.study.pipeline import AuditPrice


@click.command(
    cls=Command,
    section="Main workflow",
    short_help="Crawl, measure, find beliefs, and write both pages.",
    examples=(
        "kgbias map --model smollm2 --category gender",
        "kgbias map --model smollm2 --groups trades.toml --minutes 10",
    ),
)
@model_option
@model_name_option
@group_options(CATEGORY_NAMES)
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
@click.option(
    "--prompts",
    metavar="NAME-or-FOLDER",
    help="The prompt pack, which has the language: sentences (default), spanish, arabic ...",
)
@parameter_options(CrawlConfig, names=["form"], section=ASKING_SECTION)
@parameter_options(ProbeSettings, names=["probes"])
@shared_settings("device")
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
    model_name: str | None,
    dry_run: bool,
    **options: Any,
) -> None:
    """Crawl a model, measure what it says, find what it believes, and write the report and the
    explorer. Run the same command again to continue where it stopped.

    The steps are commands too: crawl, measure, evidence, report and explore.
    """
    if options["executor"] == LOCAL_EXECUTOR:
        options["executor"] = None
    probe_options: Any = take_options(options, BeliefOptions)
    options_kept = keep_applicable(options, [model], "completer")
    with kgbias.open(store_url, progress=True) as study:
        if dry_run:
            price = study.map(model, asking=probe_options, dry_run=True, **options_kept)
            return _print_price(price, minutes, options["prompts"] or DEFAULT)
        result = study.map(
            model,
            name=name,
            folder=folder,
            minutes=minutes,
            model_name=model_name,
            asking=probe_options,
            **drop_unset(**options_kept),
        )
    _print_result(result, store_url)


def _print_result(result: Any, store_url: str) -> None:
    print_groups(result.groups, "relative_entropy_as_published")
    print_refusals(result.refusals)
    show.say()
    print_verdicts(result.evidence)
    if result.left_out:
        show.say(result.left_out)
    if result.alternatives:
        show.say(*result.alternatives)
    store = "" if store_url == DEFAULT_STORE else f" --store {store_url}"
    show.say(
        f"report: {result.report.resolve()}",
        f"explorer: {result.explorer.resolve()}",
        f"to look around: kgbias serve {result.run.name}{store}",
    )


def _print_price(price: "AuditPrice", minutes: int | None, prompts: str) -> None:
    answers, probes = price.answers, pluralise(price.probes, "probe", spec=",")
    next_text = "no probes, as models of this kind give no probabilities"
    if price.probes:
        next_text = f"then at most {probes}, for a model that gives probabilities"
    if price.choices:
        next_text += (
            f", or about {pluralise(price.choices, 'question', spec=',')}, for one that gives none"
        )
    bound_text = "at most " if minutes else ""
    group_text = pluralise(answers.groups, "group")
    show.say(
        f"{group_text}: {bound_text}"
        f"{pluralise(answers.requests, 'answer')}, with repeated attempts at most "
        f"{answers.requests_at_most}; {next_text}; nothing was asked"
    )
    known_times = [
        f"{thing_asked} take about {format_duration(seconds)}"
        for thing_asked, seconds in (("the answers", answers.seconds), (probes, price.seconds))
        if seconds is not None
    ]
    unknown = [
        thing_asked
        for thing_asked, missing in (
            ("answers", answers.seconds is None),
            ("probes", price.probes and price.seconds is None),
        )
        if missing
    ]
    bound = "--minutes N bounds all of it"
    if minutes:
        show.say(f"sizes are fixed by a trial, to end in about {pluralise(minutes, 'minute')}")
    elif known_times:
        show.say(
            f"{' and '.join(known_times)}, at the speed of what the store has of this model; the "
            f"{' and '.join([*unknown, 'pages'])} come on top; {bound}"
        )
    else:
        show.say(f"how long that takes depends on the model and the machine; {bound}")
    if cost := describe_cost(answers):
        show.say(f"answers: {cost}")
    if price.groups:
        show.say(f"groups: {', '.join(price.groups)}")
    if price.remark:
        show.say(price.remark)
    warn_of_singular_names(answers, prompts)
