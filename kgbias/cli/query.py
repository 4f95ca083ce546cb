"""`kgbias query`: questions to the graph, in Cypher, on any store."""

import json
import sys
from contextlib import closing
from typing import Any

import click

from kgbias.cli.options import store_option
from kgbias.errors import UsageError
from kgbias.graph.store import open_store
from kgbias.query import FORMATS, load_query, query_names, write_result
from kgbias.text import shown


@click.command()
@click.argument("name", required=False)
@store_option
@click.option("--cypher", "text", metavar="TEXT", help="A query of your own, read-only.")
@click.option(
    "--param",
    "given",
    multiple=True,
    metavar="NAME=VALUE",
    help='What the query takes, for example group="Women" (repeatable).',
)
@click.option(
    "--format",
    "format_name",
    type=click.Choice(list(FORMATS)),
    default="table",
    show_default=True,
)
@click.option("--json", "as_json", is_flag=True, help="The same as --format json.")
@click.option("--list", "listing", is_flag=True, help="The library: what each query answers.")
def query(
    name: str | None,
    store_url: str,
    text: str | None,
    given: tuple[str, ...],
    format_name: str,
    as_json: bool,
    listing: bool,
) -> None:
    """Ask the graph: a query of the library by NAME, or your own Cypher.

    `kgbias query --list` shows the library. The same files run in Neo4j Browser.
    """
    if listing:
        return _list()
    if (name is None) == (text is None):
        raise UsageError(
            "name one query, or give one with --cypher; kgbias query --list shows them"
        )
    parameters = dict(_pair(item) for item in given)
    with closing(open_store(store_url, create=False)) as store:
        if text is not None:
            result = store.query(text, {key: _value(value) for key, value in parameters.items()})
        else:
            result = load_query(name or "").run(store, parameters)
    answer = write_result(result, "json" if as_json else format_name)
    # As it is, escapes and all, unless a person is looking.
    click.echo(shown(answer, sys.stdout), nl=False, color=True)


def _list() -> None:
    for name in query_names():
        found = load_query(name)
        click.echo(f"{name}\n    {found.help}")
        for p in found.parameters:
            default = "" if p.default is None else f" (default: {p.default})"
            click.echo(f"      --param {p.name}=...  {p.help}{default}")


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise UsageError(f"--param takes NAME=VALUE, not {text!r}")
    return name.lstrip("$"), value


def _value(text: str) -> Any:
    """A number, true, false, null or a list as JSON writes it; all else is text."""
    try:
        return json.loads(text)
    except ValueError:
        return text
