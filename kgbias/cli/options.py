"""Options that several commands share, and how their values are read."""

import os
import sys
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from functools import wraps
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast

import click

import kgbias
from kgbias.cli import show
from kgbias.cli.command import COMMA_LIST, SectionOption
from kgbias.cli.settings import keep_applicable, setting, shared_settings
from kgbias.cli.show import Output, print_output
from kgbias.crawl.config import MAX_FAILED_SHARE
from kgbias.errors import ModelError
from kgbias.graph.sqlite.connection import WRONG_VALUE_ERRORS
from kgbias.graph.store import DEFAULT_STORE
from kgbias.graph.types import Run as Record
from kgbias.io.reading import use_fallback_encoding
from kgbias.models.budget import Prices, Usage
from kgbias.models.spec import KINDS, list_forms
from kgbias.packs import DEFAULT
from kgbias.parallel import LOCAL_EXECUTOR
from kgbias.parameters import DeclaredParameter, declared_parameters
from kgbias.study.run import Run

if TYPE_CHECKING:
    from kgbias.graph.generation_run import GenerationSummary

FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])


class HasPrices(Protocol):
    """An estimate of a cost."""

    @property
    def prices(self) -> Prices | None: ...
    @property
    def cost(self) -> float | None: ...
    @property
    def cost_at_most(self) -> float | None: ...


def library_default(function: Callable[..., Any], parameter: str) -> Any:
    """The library function's default for a parameter: commands define none of their own."""
    return signature(function).parameters[parameter].default


def stack_options(*options: Callable[[FunctionT], FunctionT]) -> Callable[[FunctionT], FunctionT]:
    """Several options as one decorator; the help lists them in this order."""

    def decorate(function: FunctionT) -> FunctionT:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


def output_option(
    function: Callable[..., Any], parameter: str, text: str
) -> Callable[[FunctionT], FunctionT]:
    """-o, with the library function's own default: a folder if the parameter is called `folder`,
    else a file."""
    path_type = click.Path(
        file_okay=parameter != "folder", dir_okay=parameter == "folder", path_type=Path
    )
    return click.option(
        "-o",
        "--output",
        parameter,
        type=path_type,
        default=library_default(function, parameter),
        show_default=True,
        help=text,
    )


WRITER_SPECS = list_forms(lambda kind: kind.completes, KINDS.own_entries)
"""The forms of spec for our models that write text."""

SCORER_SPECS = list_forms(lambda kind: kind.scores, KINDS.own_entries)
"""The forms of spec for our models that give the probability of a text."""


def ask_password(context: click.Context, parameter: click.Parameter, url: str) -> str:
    """The store's URL, unchanged. Asks for a server's password if the environment lacks it; the
    password stays in this process."""
    if "://" not in url or not sys.stdin.isatty():
        return url
    from kgbias.graph.stores import STORES, find_store_scheme

    variable = STORES[find_store_scheme(url)].password_variable
    if variable and variable not in os.environ:
        os.environ[variable] = click.prompt(
            f"Password for {url}", hide_input=True, default="", show_default=False, err=True
        )
    return url


def store_option(function: FunctionT) -> FunctionT:
    return click.option(
        "--store",
        "store_url",
        default=DEFAULT_STORE,
        show_default=True,
        envvar="KGBIAS_STORE",
        metavar="PATH-or-URL",
        callback=ask_password,
        help="The graph store: a SQLite file, or neo4j://HOST:7687.",
    )(function)


def json_option(function: FunctionT) -> FunctionT:
    """--json, for a command that returns its `Output`: printed as JSON instead of for people."""

    @wraps(function)
    def print_result(*args: Any, as_json: bool, **options: Any) -> int:
        output = function(*args, **options)
        try:
            return print_output(output, as_json=as_json)
        except WRONG_VALUE_ERRORS:
            # The command has closed its store. What closes it again puts a wrong value down to it.
            with kgbias.open(options.get("store_url", DEFAULT_STORE)):
                raise

    return cast(FunctionT, json_flag(print_result))


def json_flag(function: FunctionT) -> FunctionT:
    """--json alone, for a command that does something else with it."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON on stdout.")(function)


def runs_argument(function: FunctionT) -> FunctionT:
    """Runs by name: the parameter `runs`, empty for the newest run."""
    return click.argument("runs", nargs=-1, metavar="[RUN]...")(function)


def run_name_argument(function: FunctionT) -> FunctionT:
    """A run by name: the parameter `run_name`, None for the newest run."""
    return click.argument("run_name", required=False, metavar="[RUN]")(function)


def parallel_option(function: FunctionT) -> FunctionT:
    """What says the same in two languages."""
    return click.option(
        "--parallel",
        type=click.Path(exists=True, dir_okay=False),
        metavar="FILE",
        help="Two languages: a table with a column for each (de, en), whose rows say the same "
        "(default: statements are paired by what they mean).",
    )(function)


def selection_options(function: FunctionT) -> FunctionT:
    """The statements to count: --arm, and the settings min-acceptability and exclude-echoes."""
    arm = click.option(
        "--arm",
        metavar="NAME",
        help="Only statements of this augmentation arm (default: each arm separately).",
    )
    return arm(shared_settings("min-acceptability", "exclude-echoes")(function))


def warn_unfinished(*runs: Run | Record) -> None:
    """Warn that the figures of an unfinished crawl are not final."""
    for run in runs:
        if run.status != "complete":
            show.say(
                f"run {run.name} is not complete ({run.status}): its figures will "
                "change once the crawl continues",
                err=True,
            )


def correction_setting(function: FunctionT) -> FunctionT:
    return shared_settings(correction=library_default(Run.compare_groups, "correction"))(function)


def model_settings(function: FunctionT) -> FunctionT:
    """How the model is opened."""
    return shared_settings("device", "dtype")(function)


def price_settings(function: FunctionT) -> FunctionT:
    """The user's prices of tokens."""
    return shared_settings("price-in", "price-out", "prices")(function)


def base_url_option(function: FunctionT) -> FunctionT:
    """The server's address, and headers of one's own for it."""
    return stack_options(
        click.option("--base-url", metavar="URL", help="The server's address (servers only)."),
        click.option(
            "--header",
            "headers",
            multiple=True,
            metavar="NAME=VALUE",
            callback=set_headers,
            expose_value=False,
            help="A header to send to the server (repeatable). $VARIABLE as its value is read from "
            "the environment; it is stored nowhere.",
        ),
        click.option(
            "--show-url",
            is_flag=True,
            callback=set_shown_urls,
            expose_value=False,
            is_eager=True,
            help="Show and store the server's whole address, path and query too (default: their "
            "unusual parts as digests, since they may hold a token). No password, ever.",
        ),
    )(function)


def encoding_option(function: FunctionT) -> FunctionT:
    """In which encoding the command's files are, if they are not UTF-8."""
    return click.option(
        "--encoding",
        metavar="NAME",
        callback=set_encoding,
        expose_value=False,
        is_eager=True,  # files are read as other options are
        help="The encoding of your files where they are not UTF-8: cp1252, mac_roman, gbk ...",
    )(function)


def set_encoding(
    context: click.Context, parameter: click.Parameter, name: str | None
) -> str | None:
    """Read files in this encoding until the command ends."""
    if name:
        context.with_resource(use_fallback_encoding(name))
    return name


def set_headers(
    context: click.Context, parameter: click.Parameter, headers_given: tuple[str, ...]
) -> tuple[str, ...]:
    """Send these headers to the command's server until the command ends."""
    headers = {}
    for text in headers_given:
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
        from kgbias.models.http import sending_headers, server_url

        context.with_resource(sending_headers(headers, server_url(context.params.get("base_url"))))
    return headers_given


def set_shown_urls(context: click.Context, parameter: click.Parameter, is_asked: bool) -> bool:
    """Show and store whole addresses of servers until the command ends."""
    if is_asked:
        from kgbias.models.http import show_urls

        context.with_resource(show_urls())
    return is_asked


def model_option(function: FunctionT) -> FunctionT:
    """The model that writes."""
    return click.option(
        "--model",
        cls=SectionOption,
        section=MODEL_SECTION,
        required=True,
        metavar="SPEC",
        help=f"The model: {WRITER_SPECS}.",
    )(function)


def parameter_options(
    config_class: type,
    pack_settings: Mapping[str, Any] | None = None,
    *,
    names: Collection[str] = (),
    section: str = "Options",
) -> Callable[[FunctionT], FunctionT]:
    """The options and settings of the parameters that a configuration declares: of all, or of those
    of these `names`. `pack_settings` are those of the default prompts."""
    return stack_options(
        *(
            _parameter_option(parameter, pack_settings or {}, section)
            for name, parameter in declared_parameters(config_class).items()
            if not names or name in names
        )
    )


_CLICK_TYPES: Mapping[Any, Any] = {int: int, float: float, bool: bool}


def _parameter_option(
    parameter: DeclaredParameter, pack_settings: Mapping[str, Any], section: str
) -> Callable[[FunctionT], FunctionT]:
    about = parameter.about
    value_type = COMMA_LIST if parameter.is_list else _CLICK_TYPES.get(parameter.type, str)
    attributes: dict[str, Any] = {
        "type": click.Choice(about.choices) if about.choices else value_type,
        "metavar": about.metavar,
        "multiple": about.repeated,
        "default": None,  # the library's
        "help": f"{about.help} (default: {describe_default(parameter, pack_settings)}).",
    }
    if not about.typed:
        return setting(parameter.option_name, parameter.name, **attributes)
    flag = f"--{parameter.option_name}"
    if parameter.type is bool:
        flag += f"/--no-{parameter.option_name}"
    return click.option(flag, parameter.name, cls=SectionOption, section=section, **attributes)


def describe_default(parameter: DeclaredParameter, pack_settings: Mapping[str, Any]) -> str:
    """What holds where a parameter is not given, in words."""
    if parameter.name in pack_settings:
        return f"the pack's, {_describe_value(pack_settings[parameter.name])} for {DEFAULT}"
    return parameter.about.unset or _describe_value(parameter.default)


def _describe_value(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return f"{value:,.9g}"
    return ",".join(value) if isinstance(value, tuple) else str(value)


def prompts_form_option(function: FunctionT) -> FunctionT:
    """In which form a judge, or a model that answers a question, is asked."""
    return click.option(
        "--form",
        type=click.Choice(["completion", "chat"]),
        help="The form of the model's prompts (default: chat, if it takes messages).",
    )(function)


def model_name_option(function: FunctionT) -> FunctionT:
    """A person's own name for the model: the parameter `model_name`."""
    return click.option(
        "--model-name",
        "model_name",
        cls=SectionOption,
        section=MODEL_SECTION,
        metavar="NAME",
        help="Your own name for the model, shown instead of the spec (kgbias rename-model changes "
        "it).",
    )(function)


def group_options(categories: str) -> Callable[[FunctionT], FunctionT]:
    """Whom to ask about: a category, groups by name, and groups from files (`seeds`)."""
    return stack_options(
        click.option(
            "--category",
            cls=SectionOption,
            section=MODEL_SECTION,
            multiple=True,
            metavar="NAME",
            help=f"A category of groups: {categories} (repeatable).",
        ),
        click.option(
            "--group",
            cls=SectionOption,
            section=MODEL_SECTION,
            multiple=True,
            metavar="NAME",
            help="Also this group: NAME, or NAME | OTHER NAME (repeatable).",
        ),
        click.option(
            "--groups",
            "--seeds",
            "seeds",
            cls=SectionOption,
            section=MODEL_SECTION,
            multiple=True,
            metavar="FILE",
            help="Also the groups in a file: text, a table, JSON or TOML; one file for crawl, "
            "stories and pairs (repeatable).",
        ),
        encoding_option,
    )


CATEGORY_NAMES = "gender, ethnicity, nationality or religion"


MODEL_SECTION = "The model and the groups"
ASKING_SECTION = "How and how long to ask"
LIMITS_SECTION = "Limits and cost"


def limits_options(function: FunctionT) -> FunctionT:
    """What a command may ask for and spend, and the user's prices."""
    return stack_options(
        click.option(
            "--max-requests",
            cls=SectionOption,
            section=LIMITS_SECTION,
            type=click.IntRange(min=0),
            help="Stop after this many requests.",
        ),
        click.option(
            "--max-tokens",
            cls=SectionOption,
            section=LIMITS_SECTION,
            type=click.IntRange(min=0),
            help="Stop after this many tokens.",
        ),
        click.option(
            "--max-cost",
            cls=SectionOption,
            section=LIMITS_SECTION,
            type=float,
            help="Stop after spending this much, at your prices.",
        ),
        price_settings,
    )(function)


def dry_run_option(function: FunctionT) -> FunctionT:
    return click.option(
        "--dry-run",
        cls=SectionOption,
        section=LIMITS_SECTION,
        is_flag=True,
        help="Show what would be asked and the cost, and stop.",
    )(function)


def asking_options(function: FunctionT) -> FunctionT:
    """How a model is asked many times, and the limits."""
    return stack_options(
        base_url_option,
        limits_options,
        click.option(
            "--batch",
            cls=SectionOption,
            section=LIMITS_SECTION,
            is_flag=True,
            default=None,
            help="Send the requests as batches, cheaper but slow: hours or days "
            "(OpenAI, Anthropic).",
        ),
        click.option(
            "--wait",
            cls=SectionOption,
            section=LIMITS_SECTION,
            is_flag=True,
            default=None,
            help="If another process is at work on the same run, wait until it is done.",
        ),
        dry_run_option,
        shared_settings("batch-size", "concurrency", "timeout", max_failed=MAX_FAILED_SHARE),
    )(function)


def people_options(columns: str, categories: str) -> Callable[[FunctionT], FunctionT]:
    """Whom stories and pairs are about: said as for a crawl, or a file of people."""
    return stack_options(
        group_options(categories),
        click.option(
            "--people",
            cls=SectionOption,
            section=MODEL_SECTION,
            type=click.Path(dir_okay=False),
            metavar="FILE",
            help=f"Instead of the people of the prompts: a CSV file with the columns {columns}, "
            "group and category.",
        ),
    )


def rounds_options(config_class: type) -> Callable[[FunctionT], FunctionT]:
    """What the configuration of profiles, stories or pairs declares, and how a model is asked."""
    return stack_options(
        parameter_options(config_class),
        store_option,
        click.option("--run", "name", metavar="NAME", help="A name for the run."),
        model_settings,
        asking_options,
        json_option,
    )


def describe_cost(price: "HasPrices") -> str:
    """The cost in words; "" if no prices were given."""
    prices, cost, max_cost = price.prices, price.cost, price.cost_at_most
    if prices is None or cost is None or max_cost is None:
        return ""
    without_batch = ""
    if prices.directly is not None:
        directly = replace(price, prices=prices.directly)  # type: ignore[type-var]
        without_batch = f" instead of {prices.format_cost(directly.cost or 0)} without a batch"
    return (
        f"about {prices.format_cost(cost)}{without_batch}, at most {prices.format_cost(max_cost)} "
        f"(assuming four "
        "characters a token in prompts, and answers of full length)"
    )


def build_price_output(price: "HasPrices", data: Mapping[str, Any], lines: Iterable[str]) -> Output:
    """The estimate: these data and lines, and the cost."""

    def print_lines() -> None:
        show.say(*lines)
        if cost := describe_cost(price):
            show.say(cost)

    costs = {"cost": price.cost, "cost_at_most": price.cost_at_most}
    return Output({**data, **costs}, print_lines)


def decide_exit_code(result: "GenerationSummary", max_failed: float) -> int:
    """The exit code of a run of profiles, stories or pairs, after a line that says why requests
    failed. Raises ModelError if nothing came of it."""
    if reason := result.empty_reason:
        raise ModelError(reason)
    if reason := result.failure_reason:
        show.say(reason, err=True)
    return int(result.failure_share > max_failed)


def write_or_price(
    write: Callable[..., Any],
    build_price_output: Callable[[Any], Output],
    print_run: Callable[[Run], None],
    *,
    model: str,
    store_url: str,
    name: str | None,
    max_failed: float,
    dry_run: bool,
    **options: Any,
) -> Output:
    """What the command of profiles, stories or pairs does: `write` a run of the model, or show what
    it would ask."""
    options = drop_unset(**keep_applicable(options, [model], "completer"))
    with kgbias.open(store_url, progress=True) as study:
        if dry_run:
            return build_price_output(write(study, model, dry_run=True, **options))
        run = write(study, model, name=name, **options)
    return Output(
        _run_record(run),
        lambda: print_run(run),
        lambda: decide_exit_code(run.generation_summary, max_failed),
    )


def _run_record(run: Run) -> dict[str, Any]:
    """What such a command did, in JSON."""
    from kgbias.graph.generation_run import OUTCOMES

    result = run.generation_summary
    groups = [
        {"group": group, **result.other_counts(group), **{name: counts[name] for name in OUTCOMES}}
        for group, counts in result.outcomes.items()
    ]
    totals = {name: result.outcome_totals[name] for name in OUTCOMES}
    record = {"run": run.name, **asking_record(result), **result.other_counts(), **totals}
    return {**record, "groups": groups}


class _AskingCounts(Protocol):
    asked_count: int
    cached_count: int
    usage: Usage


def asking_record(result: _AskingCounts) -> dict[str, Any]:
    """What a call asked a model for, as its JSON says it."""
    return {
        "asked": result.asked_count,
        "cached": result.cached_count,
        "prompt_tokens": result.usage.prompt_tokens,
        "completion_tokens": result.usage.completion_tokens,
        "cost": result.usage.cost,
    }


def describe_asking(result: _AskingCounts) -> str:
    """The same in words."""
    spent = f"; {result.usage}" if result.asked_count else ""
    return f"asked {result.asked_count}, from the log {result.cached_count}{spent}"


def device_setting(function: FunctionT) -> FunctionT:
    return shared_settings(device="auto")(function)


def workers_settings(function: FunctionT) -> FunctionT:
    """Where models run, and in how many processes of this machine."""
    return shared_settings("processes", executor=LOCAL_EXECUTOR)(function)


def drop_unset(**values: Any) -> dict[str, Any]:
    """The options that were given; for the rest, the library's defaults apply."""
    return {
        name: value
        for name, value in values.items()
        # click gives False for a flag, and () for a repeatable option, that was not typed.
        if value is not None and value is not False and value != ()
    }


def take_options(options: dict[str, Any], option_type: type) -> Any:
    """Those of the options that a typed dict has and that were given, taken out of the others."""
    names = [name for name in option_type.__annotations__ if name in options]
    return drop_unset(**{name: options.pop(name) for name in names})
