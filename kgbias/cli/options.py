"""Options that several commands share, and how their values are read."""

import os
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import click

from kgbias.cli import show
from kgbias.cli.command import Section
from kgbias.cli.settings import setting, settings
from kgbias.crawl.config import MAX_FAILED_SHARE
from kgbias.errors import ModelError
from kgbias.graph.store import DEFAULT_STORE
from kgbias.graph.types import Run as Record
from kgbias.io.reading import assume_encoding
from kgbias.models.budget import Prices, Usage
from kgbias.models.spec import KINDS, list_forms
from kgbias.parallel import LOCAL_EXECUTOR
from kgbias.study.run import Run

if TYPE_CHECKING:
    from kgbias.graph.generation_run import GenerationSummary

F = TypeVar("F", bound=Callable[..., Any])


class HasPrices(Protocol):
    """An estimate of a cost."""

    @property
    def prices(self) -> Prices | None: ...
    @property
    def cost(self) -> float | None: ...
    @property
    def cost_at_most(self) -> float | None: ...


def default(function: Callable[..., Any], parameter: str) -> Any:
    """The library function's default for a parameter: commands define none of their own."""
    return signature(function).parameters[parameter].default


def in_turn(*options: Callable[[F], F]) -> Callable[[F], F]:
    """Several options as one decorator; the help lists them in this order."""

    def decorate(f: F) -> F:
        for option in reversed(options):
            f = option(f)
        return f

    return decorate


def output_option(function: Callable[..., Any], parameter: str, text: str) -> Callable[[F], F]:
    """-o, with the library function's own default: a folder if the parameter is called `folder`,
    else a file."""
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


WRITERS = list_forms(lambda kind: kind.completes, KINDS.own_entries)
"""The forms of spec for our models that write text."""

SCORERS = list_forms(lambda kind: kind.scores, KINDS.own_entries)
"""The forms of spec for our models that give the probability of a text."""


def with_password(context: click.Context, parameter: click.Parameter, url: str) -> str:
    """The store's URL, unchanged. Asks for a server's password if the environment lacks it; the
    password stays in this process."""
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
    """Runs by name: the parameter `runs`, empty for the newest run."""
    return click.argument("runs", nargs=-1, metavar="[RUN]...")(f)


def run_argument(f: F) -> F:
    """A run by name: the parameter `run_name`, None for the newest run."""
    return click.argument("run_name", required=False, metavar="[RUN]")(f)


def selection_options(f: F) -> F:
    """The statements to count: --arm, and the settings min-acceptability and without-echoes."""
    arm = click.option(
        "--arm",
        metavar="NAME",
        help="Only statements of this augmentation arm (default: each arm separately).",
    )
    return arm(settings("min-acceptability", "without-echoes")(f))


def warn_unfinished(*runs: Run | Record) -> None:
    """Warn that the figures of an unfinished crawl are not final."""
    for run in runs:
        if run.status != "complete":
            show.say(
                f"run {run.name} is not complete ({run.status}): its figures will "
                "change once the crawl continues",
                err=True,
            )


def correction_setting(f: F) -> F:
    return settings(correction=default(Run.compare_groups, "correction"))(f)


def model_settings(f: F) -> F:
    """How the model is opened."""
    return settings("device", "dtype")(f)


def price_settings(f: F) -> F:
    """The user's prices of tokens."""
    return settings("price-in", "price-out", "prices")(f)


def base_url_option(f: F) -> F:
    """The server's address, and headers of one's own for it."""
    return in_turn(
        click.option("--base-url", metavar="URL", help="The server's address (servers only)."),
        click.option(
            "--header",
            "headers",
            multiple=True,
            metavar="NAME=VALUE",
            callback=with_headers,
            expose_value=False,
            help="A header to send to the server (repeatable). $VARIABLE as its value is read from "
            "the environment; it is stored nowhere.",
        ),
    )(f)


def encoding_option(f: F) -> F:
    """In which encoding the command's files are, if they are not UTF-8."""
    return click.option(
        "--encoding",
        metavar="NAME",
        callback=with_encoding,
        expose_value=False,
        is_eager=True,  # files are read as other options are
        help="The encoding of your files where they are not UTF-8: cp1252, mac_roman, gbk ...",
    )(f)


def with_encoding(
    context: click.Context, parameter: click.Parameter, name: str | None
) -> str | None:
    """Read files in this encoding until the command ends."""
    if name:
        context.with_resource(assume_encoding(name))
    return name


def with_headers(
    context: click.Context, parameter: click.Parameter, given: tuple[str, ...]
) -> tuple[str, ...]:
    """Send these headers to the command's server until the command ends."""
    headers = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals:
            raise click.BadParameter(f"{text!r} is not NAME=VALUE")
        if value.startswith("$"):
            variable = value[1:].strip("{}")
            if variable not in os.environ:
                raise click.BadParameter(f"there is no {variable} in the environment")
            value = os.environ[variable]
        headers[name.strip()] = value.strip()
    if headers:
        from kgbias.models.http import send_headers, server_url

        context.with_resource(send_headers(headers, server_url(context.params.get("base_url"))))
    return given


def model_option(f: F) -> F:
    """The model that writes."""
    return click.option(
        "--model",
        cls=Section,
        section=WHOM,
        required=True,
        metavar="SPEC",
        help=f"The model: {WRITERS}.",
    )(f)


def form_option(f: F) -> F:
    """In which form a model is asked."""
    return click.option(
        "--form",
        cls=Section,
        section=HOW,
        type=click.Choice(["completion", "chat"]),
        help="Whether the model completes a text or answers in a chat (default: found out by a "
        "trial for a server, completion for a local model).",
    )(f)


def prompts_form_option(f: F) -> F:
    """In which form a judge, or a model that answers a question, is asked."""
    return click.option(
        "--form",
        type=click.Choice(["completion", "chat"]),
        help="The form of the model's prompts (default: chat, if it takes messages).",
    )(f)


def as_option(f: F) -> F:
    """A person's own name for the model: the parameter `called`."""
    return click.option(
        "--as",
        "called",
        cls=Section,
        section=WHOM,
        metavar="NAME",
        help="Your own name for the model, shown instead of the spec (kgbias rename changes it).",
    )(f)


def whom_options(categories: str) -> Callable[[F], F]:
    """Whom to ask about: a category, groups by name, and groups from files (`seeds`)."""
    return in_turn(
        click.option(
            "--category",
            cls=Section,
            section=WHOM,
            multiple=True,
            metavar="NAME",
            help=f"A category of groups: {categories} (repeatable).",
        ),
        click.option(
            "--group",
            cls=Section,
            section=WHOM,
            multiple=True,
            metavar="NAME",
            help="Also this group: NAME, or NAME | OTHER NAME (repeatable).",
        ),
        click.option(
            "--groups",
            "--seeds",
            "seeds",
            cls=Section,
            section=WHOM,
            multiple=True,
            metavar="FILE",
            help="Also the groups in a file: text, a table, JSON or TOML; one file for crawl, "
            "stories and pairs (repeatable).",
        ),
        encoding_option,
    )


CATEGORIES = "gender, ethnicity, nationality or religion"


WHOM = "The model and the groups"
HOW = "How and how long to ask"
LIMITS = "Limits and cost"


def limits_options(f: F) -> F:
    """What a command may ask for and spend, and the user's prices."""
    return in_turn(
        click.option(
            "--max-requests",
            cls=Section,
            section=LIMITS,
            type=click.IntRange(min=0),
            help="Stop after this many requests.",
        ),
        click.option(
            "--max-tokens",
            cls=Section,
            section=LIMITS,
            type=click.IntRange(min=0),
            help="Stop after this many tokens.",
        ),
        click.option(
            "--max-cost",
            cls=Section,
            section=LIMITS,
            type=float,
            help="Stop after spending this much, at your prices.",
        ),
        price_settings,
    )(f)


def dry_run_option(f: F) -> F:
    return click.option(
        "--dry-run",
        cls=Section,
        section=LIMITS,
        is_flag=True,
        help="Show what would be asked and the cost, and stop.",
    )(f)


def asking_options(f: F) -> F:
    """How a model is asked many times, and the limits."""
    return in_turn(
        base_url_option,
        limits_options,
        click.option(
            "--batch",
            cls=Section,
            section=LIMITS,
            is_flag=True,
            default=None,
            help="Send the requests as batches, cheaper but slow: hours or days "
            "(OpenAI, Anthropic).",
        ),
        click.option(
            "--wait",
            cls=Section,
            section=LIMITS,
            is_flag=True,
            default=None,
            help="If another process is at work on the same run, wait until it is done.",
        ),
        dry_run_option,
        settings("batch-size", "concurrency", "timeout", max_failed=MAX_FAILED_SHARE),
    )(f)


def people_options(columns: str, categories: str) -> Callable[[F], F]:
    """Whom stories and pairs are about: said as for a crawl, or a file of people."""
    return in_turn(
        whom_options(categories),
        click.option(
            "--people",
            cls=Section,
            section=WHOM,
            type=click.Path(dir_okay=False),
            metavar="FILE",
            help=f"Instead of the people of the prompts: a CSV file with the columns {columns}, "
            "group and category.",
        ),
    )


def rounds_options(
    samples: str, *, temperature: str = "the pack's, 1", min_p: str = "0.1; none for a server"
) -> Callable[[F], F]:
    """What `kgbias.graph.generation_run.GenerationConfig` takes, and how a model is asked: options of profiles,
    stories and pairs."""
    return in_turn(
        click.option("--samples", type=int, help=samples),
        click.option("--temperature", type=float, help=f"(default: {temperature})"),
        setting(
            "min-p",
            type=float,
            metavar="SHARE",
            help="Draw from tokens at least this fraction as probable as the most probable one "
            f"(default: the pack's, {min_p}).",
        ),
        click.option("--seed", type=int, help="The random seed (default: 0)."),
        store_option,
        click.option("--run", "name", metavar="NAME", help="A name for the run."),
        model_settings,
        asking_options,
        json_option,
    )


def about_cost(price: "HasPrices") -> str:
    """The cost in words; "" if no prices were given."""
    prices, cost, most = price.prices, price.cost, price.cost_at_most
    if prices is None or cost is None or most is None:
        return ""
    instead = ""
    if prices.directly is not None:
        directly = replace(price, prices=prices.directly)  # type: ignore[type-var]
        instead = f" instead of {prices.format_cost(directly.cost or 0)} without a batch"
    return (
        f"about {prices.format_cost(cost)}{instead}, at most {prices.format_cost(most)} (assuming four "
        "characters a token in prompts, and answers of full length)"
    )


def print_price(
    price: "HasPrices", data: Mapping[str, Any], lines: Iterable[str], as_json: bool
) -> None:
    """Print the estimate as JSON or as lines, with the cost."""
    if as_json:
        show.data({**data, "cost": price.cost, "cost_at_most": price.cost_at_most})
        return
    for line in lines:
        show.say(line)
    if cost := about_cost(price):
        show.say(cost)


def exit_code_of(result: "GenerationSummary", max_failed: float) -> int:
    """The exit code of a run of profiles, stories or pairs, after a line that says why requests
    failed. Raises ModelError if nothing came of it."""
    if why := result.empty_reason:
        raise ModelError(why)
    if why := result.failure_reason:
        show.say(why, err=True)
    return int(result.failure_share > max_failed)


class _Asked(Protocol):
    asked_count: int
    cached_count: int
    usage: Usage


def asked_for(result: _Asked) -> dict[str, Any]:
    """What a call asked a model for, as its JSON says it."""
    return {
        "asked": result.asked_count,
        "cached": result.cached_count,
        "prompt_tokens": result.usage.prompt_tokens,
        "completion_tokens": result.usage.completion_tokens,
        "cost": result.usage.cost,
    }


def device_setting(f: F) -> F:
    return settings(device=default(Run.attribute, "device"))(f)


def workers_settings(f: F) -> F:
    """Where models run, and in how many processes of this machine."""
    return settings("processes", executor=LOCAL_EXECUTOR)(f)


def said(**values: Any) -> dict[str, Any]:
    """The options that were given; for the rest, the library's defaults apply."""
    return {
        name: value
        for name, value in values.items()
        if value is not None and value is not False and value != ()
    }
