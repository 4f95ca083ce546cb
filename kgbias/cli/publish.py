"""`kgbias publish`: a run as a data set for others."""

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
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    default=default(kgbias.Run.publish, "folder"),
    show_default=True,
    help="The folder to write to, new or empty.",
)
@click.option(
    "--license",
    metavar="TEXT",
    default=default(kgbias.Run.publish, "license"),
    help="The licence of the model's outputs: an SPDX identifier, an address or words (default: "
    "said to be not stated).",
)
@click.option("--author", multiple=True, metavar="NAME", help="Who publishes it (repeatable).")
@click.option("--figures", is_flag=True, help="Also write the run's figures and tables.")
@selection_options
def publish(run_name: str | None, store_url: str, folder: Path, **options: Any) -> None:
    """Write a run's statements as a data set that others can load, cite and make again: Parquet and
    JSON lines, a dataset card with its data statement, Croissant metadata, figures of groups in the
    schema of Every Eval Ever, a citation, the configuration, and checksums."""
    with kgbias.open(store_url, progress=True) as study:
        files = study.run(run_name).publish(folder, **options)
    for path in files:
        click.echo(path)
