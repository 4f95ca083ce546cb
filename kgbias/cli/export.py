"""`kgbias export`: a run's triples for other tools."""

from contextlib import closing
from pathlib import Path

import click

from kgbias.cli.options import chosen_run, run_argument, store_option
from kgbias.export import FORMATS, write_export
from kgbias.graph.store import open_store


@click.command()
@run_argument
@store_option
@click.option(
    "--format",
    "format_name",
    type=click.Choice(sorted(FORMATS)),
    help="Default: by the file's extension, jsonl on stdout.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The file to write (default: stdout).",
)
@click.option("--merged", is_flag=True, help="Count near-duplicates as one (see kgbias merge).")
def export(
    run: str | None,
    run_name: str | None,
    store_url: str,
    format_name: str | None,
    output: Path | None,
    merged: bool,
) -> None:
    """Write a run's triples with counts and scores."""
    with closing(open_store(store_url, create=False)) as store:
        found = store.find_run(chosen_run(run, run_name))
        write_export(store, found, output, format_name, merged=merged)
