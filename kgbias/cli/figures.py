"""`kgbias figures`: the figures and tables of the paper, as files."""

from pathlib import Path
from typing import Any

import click

import kgbias
from kgbias.cli.options import (
    correction_option,
    default,
    run_argument,
    selection_options,
    store_option,
)


@click.command()
@run_argument
@store_option
@click.option(
    "-o",
    "--output",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    default=default(kgbias.Run.figures, "folder"),
    show_default=True,
    help="The folder to write to.",
)
@correction_option
@selection_options
def figures(
    run_name: str | None, store_url: str, folder: Path, correction: str, **selection: Any
) -> None:
    """Write a run's figures as SVG, PDF and PNG, one column wide, each with its numbers as a LaTeX
    table, after those of Salinas et al. 2023; manifest.json says which is which. Each arm has its
    own."""
    with kgbias.open(store_url, progress=True) as study:
        files = study.run(run_name).figures(folder, correction=correction, **selection)
    for path in files:
        click.echo(path)
