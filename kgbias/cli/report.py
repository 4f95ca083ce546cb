"""`kgbias report`: one self-contained HTML page."""

from pathlib import Path
from typing import Any

import click

import kgbias
from kgbias.cli.options import default, run_argument, selection_options, store_option


@click.command()
@run_argument
@store_option
@click.option(
    "-o",
    "--output",
    "path",
    type=click.Path(dir_okay=False, path_type=Path),
    default=default(kgbias.Run.report, "path"),
    show_default=True,
    help="The page to write.",
)
@selection_options
def report(run_name: str | None, store_url: str, path: Path, **selection: Any) -> None:
    """Write a run's report: figures, an interactive graph and every triple, in one page. Several
    arms stand side by side."""
    with kgbias.open(store_url, progress=True) as study:
        written = study.run(run_name).report(path, **selection)
    click.echo(written.resolve())
