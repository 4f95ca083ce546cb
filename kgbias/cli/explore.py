"""`kgbias explore`: one or several runs as a page to look around in."""

from pathlib import Path
from typing import Any

import click

import kgbias
from kgbias.cli.options import default, selection_options, store_option


@click.command()
@click.argument("runs", nargs=-1, metavar="[RUN]...")
@store_option
@click.option(
    "-o",
    "--output",
    "path",
    type=click.Path(dir_okay=False, path_type=Path),
    default=default(kgbias.Study.explore, "path"),
    show_default=True,
    help="The page to write.",
)
@selection_options
def explore(runs: tuple[str, ...], store_url: str, path: Path, **selection: Any) -> None:
    """Write the whole graph of one or several runs (default: the newest) as one page that works
    offline: maps, groups, differences, search, filters, and the prompt and answer behind every
    statement. All statements are in it; --min-acceptability and --without-echoes are where its
    filters stand at first."""
    with kgbias.open(store_url, progress=True) as study:
        written = study.explore(runs, path, **selection)
    click.echo(written.resolve())
