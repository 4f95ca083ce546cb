"""`kgbias export`: a run's triples for other tools."""

import sys
from pathlib import Path
from typing import Any

import click

import kgbias
from kgbias.cli.options import default, run_argument, selection_options, store_option
from kgbias.export import FORMATS


@click.command()
@run_argument
@store_option
@click.option(
    "--format",
    type=click.Choice(list(FORMATS)),
    help="Default: by the file's extension, jsonl on stdout.",
)
@click.option(
    "-o",
    "--output",
    "path",
    type=click.Path(path_type=Path),
    help="The file to write; a folder for neo4j-admin (default: stdout).",
)
@click.option("--group", multiple=True, metavar="NAME", help="Only this group (repeatable).")
@click.option("--predicate", metavar="TEXT", help="Only triples with this predicate.")
@click.option("--topic", metavar="TEXT", help="Only triples about a topic with this in its name.")
@click.option(
    "--min-count",
    type=click.IntRange(min=1),
    default=default(kgbias.Run.export, "min_count"),
    help="Only statements made at least this often.",
)
@click.option(
    "--limit", type=click.IntRange(min=1), help="At most this many, those made most often."
)
@click.option(
    "--per-group",
    type=click.IntRange(min=1),
    metavar="N",
    help="At most this many of each group (default for pictures: as many as can be read).",
)
@click.option("--merged", is_flag=True, help="Count near-duplicates as one (see kgbias merge).")
@selection_options
def export(run_name: str | None, store_url: str, path: Path | None, **options: Any) -> None:
    """Write a run's triples with counts and scores, as tables, graphs or pictures."""
    with kgbias.open(store_url, progress=True) as study:
        written = study.run(run_name).export(path or sys.stdout, **options)
    if path is not None:
        click.echo(f"{written} triples to {path}", err=True)
