"""Options that several commands share, and how their values are read."""

import os
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import wraps
from inspect import signature
from pathlib import Path
from typing import Any, Protocol, TypeVar, cast

import click

from kgbias.cli import show
from kgbias.crawl.config import MAX_FAILED
from kgbias.errors import UsageError
from kgbias.graph.store import DEFAULT_STORE
from kgbias.graph.types import Run as Record
from kgbias.models.budget import Prices
from kgbias.models.local import LocalModel
from kgbias.models.server import ServerModel
from kgbias.models.spec import forms
from kgbias.parallel import LOCAL
from kgbias.study.run import Run

F = TypeVar("F", bound=Callable[..., Any])


class HasPrices(Protocol):
    """What something will cost."""

    @property
    def prices(self) -> Prices | None: ...
    @property
    def cost(self) -> float | None: ...
    @property
    def cost_at_most(self) -> float | None: ...


def default(function: Callable[..., Any], parameter: str) -> Any:
    """The default that a library function gives a parameter: no command has one of its own."""
    return signature(function).parameters[parameter].default


def output_option(function: Callable[..., Any], parameter: str, text: str) -> Callable[[F], F]:
    """-o for where a library function writes if it is told nothing: a folder where its parameter
    is called so, and otherwise a file."""
    kind = click.Path(
        file_okay=parameter != "folder", dir_okay=parameter == "folder", path_type=Path
    )
    return click.option(
        "-o",
        "--output",
        parameter,
        type=kind,
        default=default(function, parameter),
        show_default=True,
        help=text,
    )


WRITERS = forms(lambda kind: kind.completes)
"""How the specs of models that write text are written."""

SCORERS = forms(lambda kind: kind.scores)
"""How the specs of models that say how probable a text is are written."""


def with_password(context: click.Context, parameter: click.Parameter, url: str) -> str:
    """A store's URL. For a server whose password is not in the environment, it is asked for; it
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


def runs_argument(f: F) -> F:
    """Runs by name, as arguments, or one as --run: the parameter `runs`, empty for the newest."""

    @wraps(f)
    def with_names(*args: Any, run: str | None, runs: tuple[str, ...], **options: Any) -> Any:
        if run and runs and runs != (run,):
            raise UsageError("name the run once: as an argument or with --run")
        return f(*args, runs=runs or ((run,) if run else ()), **options)

    option = click.option("--run", metavar="NAME", help="The run (default: the newest).")
    return cast(F, click.argument("runs", nargs=-1, metavar="[RUN]...")(option(with_names)))


def run_argument(f: F) -> F:
    """A run by name, as an argument or as --run: the parameter `run_name`, None for the newest."""

    @wraps(f)
    def with_one_name(*args: Any, run: str | None, run_name: str | None, **options: Any) -> Any:
        if run and run_name and run != run_name:
            raise UsageError("name the run once: as an argument or with --run")
        return f(*args, run_name=run or run_name, **options)

    option = click.option(
        "--run", "run_name", metavar="NAME", help="The run (default: the newest)."
    )
    return cast(F, click.argument("run", required=False)(option(with_one_name)))


def leaving_options(f: F) -> F:
    """Which statements count, whatever their arm: --min-acceptability and --without-echoes."""
    for option in (
        click.option(
            "--without-echoes",
            is_flag=True,
            help="Leave out statements that repeat an example of their own prompt.",
        ),
        click.option(
            "--min-acceptability",
            type=click.FloatRange(0, 1),
            metavar="X",
            help="Only statements of at least this acceptability, 0 to 1 (default: 0.5 where it "
            "was measured; 0 keeps all).",
        ),
    ):
        f = option(f)
    return f


def selection_options(f: F) -> F:
    """Which statements count: --arm, --min-acceptability and --without-echoes."""
    arm = click.option(
        "--arm",
        metavar="NAME",
        help="Only what this augmentation arm said (default: each arm for itself).",
    )
    return arm(leaving_options(f))


def warn_unfinished(*runs: Run | Record) -> None:
    """Say of each crawl that is not complete that its figures are not the last."""
    for run in runs:
        if run.status != "complete":
            show.say(
                f"run {run.name} is not complete ({run.status}): its figures will "
                "change when the same crawl is run again",
                err=True,
            )


def correction_option(f: F) -> F:
    return click.option(
        "--correction",
        type=click.Choice(["holm", "bh"]),
        default=default(Run.tests, "correction"),
        show_default=True,
        help="How p-values are corrected over a family: Holm, or Benjamini-Hochberg.",
    )(f)


def model_options(f: F) -> F:
    """How the model of a spec is opened."""
    for option in (
        click.option(
            "--dtype",
            metavar="TYPE",
            help="Local models: float32 (default), bfloat16, float16; on a CUDA GPU 8bit or 4bit.",
        ),
        click.option(
            "--device",
            metavar="NAME",
            help="Local models: auto (a GPU where there is one), cpu, cuda, cuda:N or mps "
            "(default: auto).",
        ),
    ):
        f = option(f)
    return f


def price_options(f: F) -> F:
    """What tokens cost the user."""
    for option in (
        click.option(
            "--prices",
            type=click.Path(path_type=Path),
            metavar="FILE",
            help="A TOML file of such prices, by model.",
        ),
        click.option("--price-out", type=float, help="What a million tokens of answers cost you."),
        click.option("--price-in", type=float, help="What a million tokens of prompts cost you."),
    ):
        f = option(f)
    return f


def asking_options(f: F) -> F:
    """How a model is asked many times, and what that may take."""
    for option in reversed(
        (
            click.option(
                "--batch-size",
                type=int,
                help="Local models: prompts per batch (default: "
                f"{default(LocalModel.open, 'batch_size')}).",
            ),
            click.option(
                "--base-url",
                metavar="URL",
                help="Servers: the server's address.",
            ),
            click.option(
                "--concurrency",
                type=int,
                help="Servers: requests at a time (default: "
                f"{default(ServerModel.open, 'concurrency')}).",
            ),
            click.option(
                "--timeout",
                type=float,
                help="Servers: seconds to wait for an answer (default: "
                f"{default(ServerModel.open, 'timeout'):g}).",
            ),
            click.option(
                "--max-failed",
                type=click.FloatRange(0, 1),
                default=MAX_FAILED,
                show_default=True,
                metavar="SHARE",
                help="Exit with 1 if more than this share of requests failed.",
            ),
            click.option(
                "--max-requests", type=click.IntRange(min=0), help="Stop after this many requests."
            ),
            click.option(
                "--max-tokens", type=click.IntRange(min=0), help="Stop after this many tokens."
            ),
            click.option("--max-cost", type=float, help="Stop after so much money."),
            price_options,
            click.option(
                "--batch",
                is_flag=True,
                default=None,
                help="Leave the requests with the provider in batches, for less: hours or days "
                "(OpenAI, Anthropic).",
            ),
            click.option("--dry-run", is_flag=True, help="Show what it will cost, and stop."),
        )
    ):
        f = option(f)
    return f


def about_cost(price: "HasPrices") -> str:
    """In words, what something will cost; "" where no prices were given."""
    prices, cost, most = price.prices, price.cost, price.cost_at_most
    if prices is None or cost is None or most is None:
        return ""
    instead = ""
    if prices.directly is not None:
        directly = replace(price, prices=prices.directly)  # type: ignore[type-var]
        instead = f" instead of {prices.shown(directly.cost or 0)} without a batch"
    return (
        f"about {prices.shown(cost)}{instead}, at most {prices.shown(most)} (prompts at four "
        "characters a token, answers as long as they may be)"
    )


def print_price(
    price: "HasPrices", data: Mapping[str, Any], lines: Iterable[str], as_json: bool
) -> None:
    """Say what something will take, as JSON or in lines, and what it will cost."""
    if as_json:
        show.data({**data, "cost": price.cost, "cost_at_most": price.cost_at_most})
        return
    for line in lines:
        show.say(line)
    if cost := about_cost(price):
        show.say(cost)


def device_option(f: F) -> F:
    return click.option(
        "--device",
        metavar="NAME",
        default=default(Run.attribute, "device"),
        show_default=True,
        help="Where models run: auto, cpu, cuda, cuda:N or mps.",
    )(f)


def executor_option(f: F) -> F:
    """Where models read."""
    return click.option(
        "--executor",
        metavar="local|ray[://ADDRESS]",
        default=LOCAL,
        show_default=True,
        help="Where models read: here, on a Ray of its own, or on the cluster of that ADDRESS "
        "(auto, or HOST:PORT of its head) that this machine is part of.",
    )(f)


def workers_options(f: F) -> F:
    """Where models read, and in how many processes of this machine."""
    processes = click.option(
        "--processes",
        type=click.IntRange(min=1),
        help="Read in so many processes, which share the cores; each holds the model "
        "(default: in this one).",
    )
    return executor_option(processes(f))


def said(**values: Any) -> dict[str, Any]:
    """The options that were given: what is left out has its default in the library."""
    return {
        name: value
        for name, value in values.items()
        if value is not None and value is not False and value != ()
    }
