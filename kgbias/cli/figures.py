"""`kgbias figures`: the figures and tables of the paper, as files."""

from pathlib import Path
from typing import Any

import click

import kgbias
from kgbias.cli.options import (
    correction_option,
    default,
    runs_argument,
    selection_options,
    store_option,
)


@click.command()
@runs_argument
@store_option
@click.option(
    "-o",
    "--output",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    default=default(kgbias.Study.figures, "folder"),
    show_default=True,
    help="The folder to write to.",
)
@correction_option
@selection_options
def figures(
    runs: tuple[str, ...], store_url: str, folder: Path, correction: str, **selection: Any
) -> None:
    """Write a run's figures as SVG, PDF and PNG, one column wide, each with its numbers as a LaTeX
    table, after those of Salinas et al. 2023; manifest.json says which is which. Each arm has its
    own. Of two to six runs: small multiples, ranks, overlap and differences."""
    with kgbias.open(store_url, progress=True) as study:
        files = study.figures(runs, folder, correction=correction, **selection)
    for path in files:
        click.echo(path)
