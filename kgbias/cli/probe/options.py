"""Options that the parts of `kgbias probe` share."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import click

from kgbias.cli.flags import model_options, said
from kgbias.errors import UsageError
from kgbias.graph.store import DEFAULT_STORE
from kgbias.progress import working

F = TypeVar("F", bound=Callable[..., Any])

FILE = click.Path(dir_okay=False, path_type=Path)

_OPENING = ("spec", "begin", "device", "dtype", "base_url")


def scorer_options(f: F) -> F:
    """The model, and how it is asked."""
    f = click.option("--base-url", metavar="URL", help="The server of openai:ID.")(f)
    f = click.option(
        "--bos",
        "begin",
        type=click.Choice(["auto", "bos", "eos", "none"]),
        help="What stands before a text (default: auto).",
    )(f)
    f = model_options(f)
    return click.option(
        "--model",
        "spec",
        metavar="SPEC",
        help="smollm2, reference, reference-masked, hf:ID-or-PATH, hf:PATH:FILE.gguf or openai:ID.",
    )(f)


def ranking_options(f: F) -> F:
    """How groups are compared."""
    f = click.option(
        "--as-published",
        is_flag=True,
        help="As the code of the papers computed it, slips included.",
    )(f)
    f = seed_option(f)
    f = click.option("--ending", metavar="TEXT", help='Appended to each probe, for example ".".')(f)
    f = click.option(
        "--by",
        "measure",
        type=click.Choice(["conditional", "sofa", "whole"]),
        help="What ranks groups: the statement's perplexity after the group, SoFa's PPL*, or the "
        "perplexity of the whole probe (default: conditional; for a masked model whole).",
    )(f)
    return click.option(
        "--category", "categories", multiple=True, metavar="NAME", help="Only this category."
    )(f)


def seed_option(f: F) -> F:
    return click.option("--seed", type=int, help="Of the intervals (default: 0).")(f)


def store_option(f: F) -> F:
    return click.option(
        "--store",
        "store_url",
        default=DEFAULT_STORE,
        show_default=True,
        envvar="KGBIAS_STORE",
        metavar="PATH-or-URL",
        help="The graph store: a SQLite file, or neo4j://HOST:7687.",
    )(f)


@contextmanager
def opened_scorer(given: dict[str, Any]) -> Iterator[tuple[Any, Any]]:
    """The model that is named, as one that scores texts, with progress; its options are taken out
    of those given."""
    from kgbias.models.score.load import open_scorer

    opening = {name: given.pop(name) for name in _OPENING}
    if not opening["spec"]:
        raise UsageError("name the model to probe: --model SPEC")
    with working(True) as progress:
        yield open_scorer(**said(**opening), notify=progress.note), progress
