"""Options that several commands share, and how they open what is named."""

import json
import os
import sys
from collections.abc import Callable
from typing import Any, TypeVar

import click

from kgbias.errors import UsageError
from kgbias.graph.store import DEFAULT_STORE
from kgbias.text import printable as printable

F = TypeVar("F", bound=Callable[..., Any])


def with_password(context: click.Context, parameter: click.Parameter, url: str) -> str:
    """A store's URL; for a server whose password is not in the environment, one is asked for. It
    stays in this process."""
    server = url.startswith(("neo4j", "bolt")) and "://" in url
    if server and "NEO4J_PASSWORD" not in os.environ and sys.stdin.isatty():
        os.environ["NEO4J_PASSWORD"] = click.prompt(
            f"Password for {url}", hide_input=True, default="", show_default=False, err=True
        )
    return url


def store_option(f: F) -> F:
    return click.option(
        "--store",
        "store_url",
        default=DEFAULT_STORE,
        show_default=True,
        envvar="KGBIAS_STORE",
        metavar="PATH-or-URL",
        callback=with_password,
        help="The graph store: a SQLite file, or neo4j://HOST:7687.",
    )(f)


def json_option(f: F) -> F:
    return click.option("--json", "as_json", is_flag=True, help="Print JSON on stdout.")(f)


def run_argument(f: F) -> F:
    """A run by name, as an argument or as --run; the newest where none is named."""
    f = click.option("--run", "run_name", metavar="NAME", help="The run (default: the newest).")(f)
    return click.argument("run", required=False)(f)


def chosen_run(argument: str | None, option: str | None) -> str | None:
    if argument and option and argument != option:
        raise UsageError("name the run once: as an argument or with --run")
    return argument or option


def print_json(value: Any) -> None:
    click.echo(json.dumps(value, ensure_ascii=False, indent=2, default=str))
