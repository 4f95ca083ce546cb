"""`kgbias report`: one self-contained HTML page."""

from pathlib import Path

import click

import kgbias
from kgbias.cli.options import default, run_argument, store_option


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
def report(run_name: str | None, store_url: str, path: Path) -> None:
    """Write a run's report: figures, an interactive graph and every triple, in one page."""
    with kgbias.open(store_url, progress=True) as study:
        written = study.run(run_name).report(path)
    click.echo(written.resolve())
