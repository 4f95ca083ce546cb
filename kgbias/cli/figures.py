"""`kgbias figures`: the figures and tables of the paper, as files."""

from contextlib import closing
from pathlib import Path

import click

from kgbias.cli.options import chosen_run, run_argument, store_option
from kgbias.cli.progress import shown_progress
from kgbias.graph.store import open_store
from kgbias.graph.stored import StoredRun


@click.command()
@run_argument
@store_option
@click.option(
    "-o",
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("figures"),
    show_default=True,
    help="The folder to write to.",
)
@click.option(
    "--correction",
    type=click.Choice(["holm", "bh"]),
    default="holm",
    show_default=True,
    help="Of p-values over a family.",
)
def figures(
    run: str | None, run_name: str | None, store_url: str, output: Path, correction: str
) -> None:
    """Write a run's figures as SVG, PDF and PNG, one column wide, each with its numbers as a LaTeX
    table, after those of Salinas et al. 2023; manifest.json says which is which."""
    with closing(open_store(store_url, create=False)) as store:
        found = StoredRun.find(store, chosen_run(run, run_name))
        from kgbias.report.save import save_figures

        with shown_progress() as progress:
            files = save_figures(found, output, correction=correction, progress=progress)
    for path in files:
        click.echo(path)
