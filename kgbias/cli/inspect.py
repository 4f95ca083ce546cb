"""`kgbias structure`, `cost`, `explore` and `serve`: look around in a run."""

from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import kgbias
from kgbias.cli import show
from kgbias.cli.command import Command
from kgbias.cli.options import (
    json_option,
    library_default,
    output_option,
    price_settings,
    run_name_argument,
    selection_options,
    store_option,
)
from kgbias.cli.settings import shared_settings
from kgbias.cli.show import Output
from kgbias.io.columns import Column
from kgbias.io.text import format_duration
from kgbias.io.wording import pluralise

if TYPE_CHECKING:
    from kgbias.graph.types import NodeCentrality
    from kgbias.study.records import GroupCost

_MAX_SHOWN = 10
_CENTRALITY_COLUMNS = (
    Column("kind"),
    Column("betweenness", ".4f"),
    Column("degree", "d"),
    Column("community", "d"),
    Column("groups", "d"),
    Column("name", get=attrgetter("label")),
)


@click.command(
    cls=Command,
    section="Ask and look",
    short_help="Find central nodes, communities and bridging objects.",
    examples=("kgbias structure smollm2",),
)
@run_name_argument
@store_option
@shared_settings(seed=library_default(kgbias.Run.structure, "seed"))
@selection_options
@json_option
def structure(run_name: str | None, store_url: str, seed: int, **selection: Any) -> Output:
    """Find central groups and objects, communities, and the objects that bridge groups, and write
    them to the graph. In a run with several arms, --arm selects one."""
    with kgbias.open(store_url, progress=True) as study:
        centralities = study.run(run_name).structure(seed=seed, **selection)
    return Output(centralities, lambda: _print_centralities(centralities))


def _print_centralities(centralities: "kgbias.Rows[NodeCentrality]") -> None:
    communities = len({node.community for node in centralities})
    bridges = [node for node in centralities if node.kind == "object" and node.groups > 1]
    show.say(
        f"{pluralise(len(centralities), 'node')} in "
        f"{pluralise(communities, 'community', 'communities')}; "
        f"{len(bridges)} objects bridge groups"
    )
    rows = []
    for kind, chosen in (("group", centralities), ("object", bridges)):
        of_kind = [node for node in chosen if node.kind == kind]
        of_kind.sort(key=lambda node: (-node.betweenness, -node.degree, node.label))
        rows += of_kind[:_MAX_SHOWN]
    show.print_rows(kgbias.Rows(rows, _CENTRALITY_COLUMNS))


@click.command(
    cls=Command,
    section="Maintain",
    short_help="Show what a run cost, by group.",
    examples=("kgbias cost smollm2",),
)
@run_name_argument
@store_option
@price_settings
@json_option
def cost(
    run_name: str | None,
    store_url: str,
    price_in: float | None,
    price_out: float | None,
    prices: Path | None,
) -> Output:
    """Show the cost of a run's answers, by group: in tokens and, at your prices, in money.

    For an estimate before a crawl: `kgbias crawl --dry-run`.
    """
    with kgbias.open(store_url, progress=True) as study:
        cost_rows = study.run(run_name).cost(price_in=price_in, price_out=price_out, prices=prices)
    return Output({"cost": cost_rows}, lambda: _print_cost(cost_rows))


def _print_cost(cost_rows: "kgbias.Rows[GroupCost]") -> None:
    total = cost_rows[-1]
    names = ["group", "answers", "prompt_tokens", "completion_tokens"]
    show.print_rows(cost_rows, *names, *([] if total.cost is None else ["cost"]))
    if total.retries:
        paid_text = "" if total.retry_cost is None else f", {total.retry_cost:.4g} of the cost"
        show.say(
            f"{total.retries} of the answers ("
            f"{pluralise(total.retry_tokens, 'token')}{paid_text}) were asked for "
            "again because a prompt was refused"
        )
    if total.seconds is not None:
        show.say(f"asking took {format_duration(total.seconds)}")


@click.command(
    cls=Command,
    section="Main workflow",
    short_help="Write runs as a page to explore.",
    examples=("kgbias explore smollm2 -o explore.html",),
)
@click.argument("runs", nargs=-1, metavar="[RUN]...")
@store_option
@output_option(kgbias.Study.explore, "path", "The page to write.")
@selection_options
def explore(runs: tuple[str, ...], store_url: str, path: Path, **selection: Any) -> None:
    """Write the whole graph of one or more runs (default: the newest) as one page that works
    offline: maps, groups, differences, search, filters, and the prompt and answer behind every
    statement. It contains all statements; the settings min-acceptability and exclude-echoes only
    set its filters at the start."""
    with kgbias.open(store_url, progress=True) as study:
        page_path = study.explore(runs, path, **selection)
    show.say_where(page_path)


@click.command(
    cls=Command,
    section="Ask and look",
    short_help="Serve runs for a browser or a team to explore.",
    examples=("kgbias serve smollm2 --port 8080",),
)
@click.argument("runs", nargs=-1, metavar="[RUN]...")
@store_option
@click.option(
    "--host",
    default=library_default(kgbias.Study.serve, "host"),
    show_default=True,
    help="The address to listen on; any but this machine's own needs a token.",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=library_default(kgbias.Study.serve, "port"),
    show_default=True,
    help="The port; 0 for any free one.",
)
@click.option(
    "--label",
    multiple=True,
    metavar="MEASURE",
    help="Also serve /label, where raters label statements by this measure (repeatable). Writes.",
)
@click.option("--masked", is_flag=True, help="Hide the name of the group on that page.")
@selection_options
def serve(runs: tuple[str, ...], store_url: str, **options: Any) -> None:
    """Serve the page of `kgbias explore` until Ctrl-C: for graphs too large for a file, for teams,
    and for a crawl that is running: new statements of the runs (default: the newest) appear on the
    page. Without --label it only reads the store.

    If KGBIAS_SERVE_TOKEN is set (at least 16 characters), browsers must present it: open the
    address once with ?token=... at its end. Without it, only this machine is served."""
    with kgbias.open(store_url, progress=True) as study:
        study.serve(runs, listening=show.say, **options)
