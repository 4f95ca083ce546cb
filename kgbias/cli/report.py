"""`kgbias report`: one self-contained HTML page."""

from contextlib import closing
from pathlib import Path

import click

from kgbias.cli.options import chosen_run, run_argument, store_option
from kgbias.graph.store import open_store
from kgbias.graph.stored import StoredRun


@click.command()
@run_argument
@store_option
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    default=Path("report.html"),
    show_default=True,
    help="The page to write.",
)
def report(run: str | None, run_name: str | None, store_url: str, output: Path) -> None:
    """Write a run's report: figures, an interactive graph and every triple, in one page."""
    with closing(open_store(store_url, create=False)) as store:
        found = StoredRun.find(store, chosen_run(run, run_name))
        from kgbias.report import write_report

        write_report(found, output)
    click.echo(output.resolve())
