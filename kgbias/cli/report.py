"""`kgbias report`: one self-contained HTML page."""

from pathlib import Path
from typing import Any

import click

import kgbias
from kgbias.cli.options import default, runs_argument, selection_options, store_option


@click.command()
@runs_argument
@store_option
@click.option(
    "-o",
    "--output",
    "path",
    type=click.Path(dir_okay=False, path_type=Path),
    default=default(kgbias.Study.report, "path"),
    show_default=True,
    help="The page to write.",
)
@click.option(
    "--explorer",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Also write the explorer of the runs to this file; the report links to its views.",
)
@selection_options
def report(
    runs: tuple[str, ...], store_url: str, path: Path, explorer: Path | None, **selection: Any
) -> None:
    """Write the report of a run (default: the newest): what was found, figures, an interactive
    graph and every triple, in one page; several arms stand side by side. Of two to six runs: small
    multiples, ranks, overlap and differences."""
    with kgbias.open(store_url, progress=True) as study:
        written = study.report(runs, path, explorer=explorer, **selection)
    for page in (written, explorer):
        if page is not None:
            click.echo(page.resolve())
