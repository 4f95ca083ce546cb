"""Options that the parts of `kgbias probe` share."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import click

from kgbias.cli.flags import as_flags, said
from kgbias.cli.options import SCORERS, model_options
from kgbias.errors import UsageError
from kgbias.parallel import LOCAL, opened_executor
from kgbias.progress import working

F = TypeVar("F", bound=Callable[..., Any])

_NO_MODEL = "name the model to probe: --model SPEC"
FILE = click.Path(dir_okay=False, path_type=Path)


def scorer_options(f: F) -> F:
    """The model, and how it is asked."""
    return _model_option(_asking(f), "spec")


def several_scorers_options(f: F) -> F:
    """One model or several, and how they are asked."""
    return _model_option(_asking(f), "specs", multiple=True)


def _model_option(f: F, parameter: str, *, multiple: bool = False) -> F:
    more = " (repeatable: one after another)" if multiple else ""
    return click.option(
        "--model", parameter, metavar="SPEC", multiple=multiple, help=f"{SCORERS}{more}."
    )(f)


def _asking(f: F) -> F:
    f = click.option("--base-url", metavar="URL", help="The server of openai:ID.")(f)
    f = click.option(
        "--bos",
        "begin",
        type=click.Choice(["auto", "bos", "eos", "none"]),
        help="What stands before a text (default: auto).",
    )(f)
    f = click.option(
        "--instruction",
        metavar="TEXT",
        help="What the encoder of an encoder-decoder (T5, Flan) reads; the decoder is scored. "
        '"{group}" stands for the group or the name of a probe (default: "{group}").',
    )(f)
    return model_options(f)


def ranking_options(f: F) -> F:
    """How groups are compared."""
    f = click.option(
        "--as-published", is_flag=True, help="As the papers' code computed it, slips included."
    )(f)
    f = seed_option(f)
    f = click.option("--ending", metavar="TEXT", help='Appended to each probe, for example ".".')(f)
    f = click.option(
        "--by",
        type=click.Choice(["conditional", "sofa", "whole"]),
        help="What ranks groups: the statement's perplexity after the group, SoFa's PPL*, or the "
        "perplexity of the whole probe (default: conditional; for a masked model whole).",
    )(f)
    return click.option("--category", multiple=True, metavar="NAME", help="Only this category.")(f)


def seed_option(f: F) -> F:
    """The random seed."""
    return click.option("--seed", type=int, help="The random seed (default: 0).")(f)


def named_model(given: dict[str, Any]) -> str:
    """The spec of --model, taken out of the options that were given."""
    if not (spec := given.pop("spec")):
        raise UsageError(_NO_MODEL)
    return str(spec)


def named_models(given: dict[str, Any]) -> list[str]:
    """The specs of --model, each once, taken out of the options that were given."""
    if not (specs := given.pop("specs")):
        raise UsageError(_NO_MODEL)
    return list(dict.fromkeys(specs))


@contextmanager
def opened_scorer(given: dict[str, Any]) -> Iterator[tuple[Any, Any]]:
    """The named model as one that scores texts, here or in workers, with progress; its options are
    taken out of those that were given."""
    from kgbias.study.scorers import OPENING, spread_scorer

    spec = named_model(given)
    opening: Any = said(**{name: given.pop(name) for name in OPENING})
    where, processes = given.pop("executor", None) or LOCAL, given.pop("processes", None)
    with working(True) as progress, opened_executor(where, progress, processes) as workers:
        with as_flags():
            scorer = spread_scorer(spec, opening, progress, workers)
        yield scorer, progress
