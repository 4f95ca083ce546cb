"""`kgbias query`: Cypher queries of the graph, on any store."""

import json
from pathlib import Path
from typing import Any

import click

import kgbias
from kgbias.cli import show
from kgbias.cli.command import NAME_VALUE, Command
from kgbias.cli.options import run_name_argument, store_option
from kgbias.cli.settings import shared_settings
from kgbias.errors import UsageError
from kgbias.graph.cypher import QueryResult
from kgbias.query import FORMATS, format_result, load_query, write_favourites


@click.command(
    cls=Command,
    section="Ask and look",
    short_help="Query the graph in Cypher.",
    examples=("kgbias query --list", "kgbias query most_negative smollm2 --param limit=10"),
)
@click.argument("name", required=False)
@run_name_argument
@store_option
@click.option("--cypher", "text", metavar="TEXT", help="Your own query, read-only.")
@click.option(
    "--param",
    "given",
    type=NAME_VALUE,
    multiple=True,
    metavar="NAME=VALUE",
    help='A parameter of the query, for example group="Women" (repeatable).',
)
@click.option(
    "--format",
    "format_name",
    type=click.Choice(list(FORMATS)),
    default="table",
    show_default=True,
    help="How to print the rows.",
)
@click.option(
    "--timeout",
    type=click.FloatRange(0, 7 * 24 * 3600, min_open=True),
    default=600.0,
    show_default=True,
    metavar="SECONDS",
    help="Stop a query that takes longer.",
)
@shared_settings("min-acceptability")
@click.option("--json", "as_json", is_flag=True, help="The same as --format json.")
@click.option("--list", "listing", is_flag=True, help="List the queries, with what each answers.")
@click.option(
    "--favourites",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write the library as a .zip of saved queries for Neo4j Browser.",
)
def query(
    name: str | None,
    run_name: str | None,
    store_url: str,
    text: str | None,
    given: tuple[tuple[str, str], ...],
    format_name: str,
    timeout: float,
    as_json: bool,
    listing: bool,
    favourites: Path | None,
    min_acceptability: float | None,
) -> None:
    """Ask the graph: a query of the library by NAME (about RUN, if it has one), or your own Cypher.

    `kgbias query --list` shows the library. The same files run in Neo4j Browser. Each row belongs
    to one arm, and covers only statements that make sense, if the run was measured for it.
    """
    if listing:
        return _print_library()
    if favourites is not None:
        write_favourites(favourites)
        return show.say_where(favourites)
    if (name is None) == (text is None):
        raise UsageError(
            "name one query, or write one with --cypher; kgbias query --list shows the library"
        )
    with kgbias.open(store_url, progress=True, query_timeout=timeout) as study:
        if text is not None:
            values = {key: _parse_value(value) for key, value in given}
            rows = study.cypher(text, **values)
        else:
            values = _setting_parameter(name or "", min_acceptability) | dict(given)
            if run_name is not None:
                values["run"] = run_name
            if "run" in _query_parameters(name or "") and "run" not in values:
                values["run"] = study.run().name
                show.say(f"of run {values['run']}, the newest with statements", err=True)
            rows = study.query(name or "", **values)
        result = QueryResult(rows.columns, [tuple(row.values()) for row in rows])
        text_out = format_result(result, "json" if as_json else format_name)
        show.print_block(text_out)  # before the store is closed, which may wait for a view


def _query_parameters(name: str) -> set[str]:
    """The parameters of a query of the library."""
    return {p.name for p in load_query(name).parameters}


def _setting_parameter(name: str, min_acceptability: float | None) -> dict[str, Any]:
    """The setting as a query parameter, if the query has it."""
    parameters = _query_parameters(name)
    values_given = {"min_acceptability": min_acceptability}
    return {
        key: value for key, value in values_given.items() if key in parameters and value is not None
    }


def _print_library() -> None:
    for library_query in kgbias.queries():
        show.say(library_query.name, f"    {library_query.help}")
        for parameter in library_query.parameters:
            default = "" if parameter.default is None else f" (default: {parameter.default})"
            show.say(f"      --param {parameter.name}=...  {parameter.help}{default}")


def _parse_value(text: str) -> Any:
    """A number, true, false, null or a list, if it is JSON; else text."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
