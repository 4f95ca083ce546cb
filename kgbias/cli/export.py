"""`kgbias export`: a run's triples for other tools."""

from contextlib import closing
from pathlib import Path

import click

from kgbias.cli.options import chosen_run, run_argument, store_option
from kgbias.export import FORMATS, Filters, write_export
from kgbias.graph.store import open_store
from kgbias.graph.stored import StoredRun


@click.command()
@run_argument
@store_option
@click.option(
    "--format",
    "format_name",
    type=click.Choice(list(FORMATS)),
    help="Default: by the file's extension, jsonl on stdout.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    help="The file to write; a folder for neo4j-admin (default: stdout).",
)
@click.option("--group", "groups", multiple=True, metavar="NAME", help="Only it (repeatable).")
@click.option("--predicate", metavar="TEXT", help="Only triples with this predicate.")
@click.option("--topic", metavar="TEXT", help="Only triples about a topic with this in its name.")
@click.option(
    "--min-count", type=click.IntRange(min=1), default=1, help="Only what was said so often."
)
@click.option("--limit", type=click.IntRange(min=1), help="Only so many, the most repeated.")
@click.option("--merged", is_flag=True, help="Count near-duplicates as one (see kgbias merge).")
def export(
    run: str | None,
    run_name: str | None,
    store_url: str,
    format_name: str | None,
    output: Path | None,
    groups: tuple[str, ...],
    predicate: str | None,
    topic: str | None,
    min_count: int,
    limit: int | None,
    merged: bool,
) -> None:
    """Write a run's triples with counts and scores, as tables, graphs or pictures."""
    filters = Filters(groups, predicate, topic, min_count, limit, merged)
    with closing(open_store(store_url, create=False)) as store:
        found = StoredRun.find(store, chosen_run(run, run_name))
        written = write_export(found, output, format_name, filters)
    if output is not None:
        click.echo(f"{written} triples to {output}", err=True)
