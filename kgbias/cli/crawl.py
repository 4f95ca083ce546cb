"""`kgbias crawl`: ask a model and keep the graph; `models` and `plugins`: list what there is.

If all requests fail, or nothing can be read, the command ends with the server's words and exit code
2 or 1, and `kgbias runs` shows the commonest reason (tests/unit/test_thoughts.py,
test_openai_server.py).
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

import click

import kgbias
from kgbias.cli import show
from kgbias.cli.command import Command, SectionOption
from kgbias.cli.commands import COMMAND_PARTS, COMMANDS
from kgbias.cli.options import (
    ASKING_SECTION,
    CATEGORY_NAMES,
    MODEL_SECTION,
    asking_options,
    asking_record,
    build_price_output,
    describe_asking,
    group_options,
    json_option,
    model_name_option,
    model_option,
    model_settings,
    parameter_options,
    store_option,
)
from kgbias.cli.settings import keep_applicable, setting
from kgbias.cli.show import Output
from kgbias.crawl.config import CrawlConfig
from kgbias.crawl.crawler import CRAWL_OUTCOMES, REFUSAL_RETRY_TRIALS
from kgbias.crawl.seeds import DynamicSeeds, describe_singular
from kgbias.errors import ModelError
from kgbias.io.columns import Column
from kgbias.io.wording import pluralise
from kgbias.packs import DEFAULT, PUBLISHED, crawl_packs, load_pack
from kgbias.stats.estimate import nan_to_none

if TYPE_CHECKING:
    from kgbias.io.plugins import Plugin
    from kgbias.models.kinds import ModelKind

DEFAULT_PACK_CRAWL = load_pack(DEFAULT).crawl
_OUTCOME_HEADINGS = {"echo": "echoes"}

RUN_SECTION = "The run"


def _section_option(section: str, *names: str, **attributes: Any) -> Callable[[Any], Any]:
    return click.option(*names, cls=SectionOption, section=section, **attributes)


@click.command(
    cls=Command,
    section="Main workflow",
    short_help="Ask a model for stereotypes and keep them as a graph.",
    examples=(
        "kgbias crawl --model smollm2 --category gender",
        "kgbias crawl --model openai:my-model --category religion --dry-run",
    ),
)
@model_option
@model_name_option
@group_options(CATEGORY_NAMES)
@_section_option(
    MODEL_SECTION,
    "--intersect",
    multiple=True,
    metavar="A,B",
    help="Every combination of the groups of these categories, for example gender,religion.",
)
@_section_option(
    MODEL_SECTION,
    "--dynamic",
    metavar="CLASS",
    help="First let the model name the groups of a class.",
)
@_section_option(MODEL_SECTION, "--plural", help="The plural of the class's name.")
@setting(
    "seed-prompts",
    default=DynamicSeeds.prompts,
    help="With --dynamic: how many lists to ask for.",
)
@setting(
    "seed-agree",
    default=DynamicSeeds.agree,
    help="With --dynamic: how many lists must name a group.",
)
@_section_option(RUN_SECTION, "--run", "name", metavar="NAME", help="A name for the run.")
@_section_option(
    RUN_SECTION,
    "--repeat",
    type=click.IntRange(min=1),
    metavar="K",
    help="Crawl K times with different seeds: the runs NAME, NAME~2 ...",
)
@_section_option(
    ASKING_SECTION,
    "--prompts",
    metavar="NAME-or-FOLDER",
    help=f"The prompt pack: {', '.join(crawl_packs().own_entries)}, one added by a package, or a "
    f"folder "
    f"(default: {DEFAULT}).",
)
@_section_option(
    ASKING_SECTION,
    "--preset",
    metavar="NAME",
    help=f"Everything as in a paper: {PUBLISHED} (its prompts, filters and augmentations).",
)
@parameter_options(CrawlConfig, DEFAULT_PACK_CRAWL, section=ASKING_SECTION)
@model_settings
@store_option
@asking_options
@json_option
def crawl(
    model: str,
    store_url: str,
    name: str | None,
    repeat: int | None,
    model_name: str | None,
    max_failed: float,
    dry_run: bool,
    **options: Any,
) -> Output:
    """Crawl a model for stereotype triples.

    The method is that of Salinas et al. 2023; --preset salinas-2023 sets all of it, while the
    default prompts are sentences. Run the same command again to continue where it stopped: nothing
    is asked twice.
    """
    if options["filters"]:
        options["filters"] = tuple(name for name in options["filters"] if name != "none")
    options = keep_applicable(options, [model], "completer")
    if dry_run:
        return _build_price_output(
            kgbias.price(model, repeat=repeat, **options), options.get("prompts") or DEFAULT
        )
    with kgbias.open(store_url, progress=True) as study:
        runs = study.crawl(
            model,
            name=name,
            repeat=repeat or 1,
            model_name=model_name,
            **options,
        )
    records = [_crawl_record(run) for run in runs]
    data = records[0] if repeat is None else {"series": runs.name, "runs": records}

    def print_text() -> None:
        for run in runs:
            _print_crawl(run)

    def decide_code() -> int:
        for run in runs:
            if reason := run.crawl_result.empty_reason:
                raise ModelError(reason)
        return int(any(run.crawl_result.failure_share > max_failed for run in runs))

    return Output(data, print_text, decide_code)


def _crawl_record(run: kgbias.Run) -> dict[str, Any]:
    result = run.crawl_result
    return {
        "run": run.name,
        **asking_record(result),
        "well_formed": result.well_formed_share,
        "refused_asked_again": result.retry_count,
        "unfilled": result.unfilled_count,
        "iterations": result.iterations,
        **{name: result.outcomes[name] for name in CRAWL_OUTCOMES},
        "groups": [
            {
                "arm": group_progress.arm,
                "group": group_progress.group,
                "statements": group_progress.statements,
                "distinct": group_progress.distinct,
                "coverage": group_progress.coverage,
                "richness": group_progress.richness,
                **{name: group_progress.outcomes[name] for name in CRAWL_OUTCOMES[1:]},
            }
            for group_progress in result.groups
        ],
    }


def _print_crawl(run: kgbias.Run) -> None:
    result = run.crawl_result
    outcomes = result.outcomes
    show.say(
        f"run {run.name}: {pluralise(outcomes['ok'], 'statement')} from "
        f"{pluralise(outcomes.total(), 'answer')} "
        f"({result.well_formed_share:.0%} well-formed, {outcomes['refused']} refused, "
        f"{outcomes['unparsable']} unparsable, {pluralise(outcomes['echo'], 'echo', 'echoes')}, "
        f"{outcomes['nonsense']} nonsense, "
        f"{outcomes['failed']} failed); {describe_asking(result)}"
    )
    if result.retry_count:
        show.say(
            f"{result.retry_count} of the answers are to refused prompts that were asked again "
            f"(kgbias "
            f"cost {run.name} prices them)"
        )
    failed = [
        (count, reason)
        for (outcome, reason), count in result.reasons.items()
        if outcome == "failed"
    ]
    if failed and outcomes["ok"]:
        times, reason = max(failed)
        show.say(f"{times} of the {outcomes['failed']} failed requests: {reason}")
    arms = len({group_progress.arm for group_progress in result.groups}) > 1
    columns = (
        Column(""),
        Column("said", "d"),
        Column("distinct", "d"),
        Column("coverage", ".0%"),
        Column("at least", ".0f"),
        *(Column(_OUTCOME_HEADINGS.get(name, name), "d") for name in CRAWL_OUTCOMES[1:]),
    )
    show.print_table(
        columns,
        (
            (
                f"{group_progress.group} [{group_progress.arm}]" if arms else group_progress.group,
                group_progress.statements,
                group_progress.distinct,
                group_progress.coverage,
                group_progress.richness,
                *(group_progress.outcomes[name] for name in CRAWL_OUTCOMES[1:]),
            )
            for group_progress in result.groups
        ),
    )
    if unfilled := result.unfilled_count:
        places = "1 place is" if unfilled == 1 else f"{unfilled:,} places are"
        show.say(f"{places} still without a statement after their last attempt", err=True)


def _describe_detectable(differences: Mapping[str, float]) -> list[str]:
    """The differences that a crawl would find."""
    detectable_texts = [
        f"{difference:.2f} ({category})"
        for category, difference in differences.items()
        if math.isfinite(difference)
    ]
    if not detectable_texts:
        return []
    return [
        "in 80% of such crawls the test of a group against the others of its category, by itself, "
        f"finds a difference in mean regard from {', '.join(detectable_texts)} on (1: all "
        f"positive, -1: all "
        "negative), where statements vary as SmolLM2's do"
    ]


_MAX_GROUPS_NAMED = 20  # groups of a category that a dry run names


def _list_groups(groups_by_category: Mapping[str, Sequence[str]]) -> list[str]:
    """A line for each category: its name, and those of its groups."""
    return [
        f"{category}: {', '.join(names[:_MAX_GROUPS_NAMED])}"
        + (f" and {len(names) - _MAX_GROUPS_NAMED} more" if len(names) > _MAX_GROUPS_NAMED else "")
        for category, names in groups_by_category.items()
    ]


def warn_of_singular_names(price: kgbias.Price, prompts: str) -> None:
    """Warn of English names of groups that look like words for one person."""
    if load_pack(prompts).language != "en":
        return
    names: list[str] = []
    for category_names in price.groups_by_category.values():
        names += category_names
    warning = describe_singular(names)
    if warning:
        show.say(warning, err=True)


def _build_price_output(price: kgbias.Price, prompts: str) -> Output:
    model_names_groups = price.more_groups_named_by_model
    data = {
        "groups": price.groups,
        "whom": {category: list(names) for category, names in price.groups_by_category.items()},
        "arms": price.arms,
        "crawls": price.crawls,
        "more_groups_named_by_model": model_names_groups,
        "stages": [asdict(stage) for stage in price.stages],
        "shows": {
            category: nan_to_none(difference)
            for category, difference in price.detectable_differences.items()
        },
    }
    groups_text = "each group that the model names"
    if price.groups:
        named_text = " and those that the model names (each costs as much as one of them)"
        groups_text = (
            f"{pluralise(price.groups, 'group')}{named_text if model_names_groups else ''}"
        )
    bound = f", at most, until {price.until}" if price.until else ""
    times = f", {price.crawls} crawls" if price.crawls > 1 else ""
    lines = [
        f"{groups_text}, {price.arms} arm{'s' if price.arms > 1 else ''}{times}{bound}; nothing "
        f"was asked",
        *_list_groups(price.groups_by_category),
        *(
            f"{stage.stage:<12}{stage.requests:>8} requests of about "
            f"{pluralise(stage.prompt_tokens, 'token')}, "
            f"with repeated attempts at most {stage.requests_at_most} and "
            f"{stage.answer_tokens_at_most} answer tokens"
            for stage in price.stages
        ),
        f"refused prompts are asked again until {REFUSAL_RETRY_TRIALS} of them were refused again",
        *_describe_detectable(price.detectable_differences),
    ]
    output = build_price_output(price, data, lines)

    def warn_of_singulars() -> int:
        warn_of_singular_names(price, prompts)
        return 0

    return replace(output, code=warn_of_singulars)


_KIND_COLUMNS = ("crawl", "structured", "seed", "logprobs", "probe", "association", "batch")


@click.command(
    cls=Command,
    section="Maintain",
    short_help="List the kinds of models, and what each allows.",
    examples=("kgbias models",),
)
@json_option
def models() -> Output:
    """List the kinds of models by their specs, and what each allows.

    crawl: writes text, for crawls, profiles, judges and questions. structured: answers follow a
    JSON schema. seed: a random seed fixes the answer. logprobs: log-probabilities of texts, for
    benchmarks. probe: by log-probabilities, or only by forced choice. association: vectors and
    words, for association tests. batch: requests sent as batches, which cost less.
    """
    kinds = kgbias.model_kinds()
    return Output(kinds, lambda: _print_model_kinds(kinds))


def _print_model_kinds(kinds: "kgbias.Rows[ModelKind]") -> None:
    rows = []
    for kind in kinds:
        allowed = [getattr(kind, name) for name in _KIND_COLUMNS]
        extra = kind.extra if kind.installed else f"{kind.extra} (not installed)"
        extra = kind.package or extra
        rows += [(form, *allowed, extra, " or ".join(kind.keys)) for form in kind.specs]
    show.print_table(("spec", *_KIND_COLUMNS, "extra", "key"), rows)
    show.say(
        "depends: on the model or the server",
        "choice: by forced choice, kgbias probe choice",
    )
    missing = sorted({kind.extra for kind in kinds if not kind.installed})
    if missing:
        show.say(f"not installed: pip install 'kgbias[{','.join(missing)}]'")
    for plugin in kgbias.plugins():
        if plugin.adds == "model" and plugin.problem:
            show.say(plugin.problem, err=True)


@click.command(
    cls=Command,
    section="Maintain",
    short_help="List what installed packages add to kgbias.",
    examples=("kgbias plugins",),
)
@json_option
def plugins() -> Output:
    """List what installed packages add (measures, kinds of models, formats, prompt packs and
    commands) and what is wrong with any of it. Imports these packages."""
    plugins_found = [*kgbias.plugins(), *COMMANDS.list_plugins(), *COMMAND_PARTS.list_plugins()]
    return Output(plugins_found, lambda: _print_plugins(plugins_found))


def _print_plugins(plugins_found: "Sequence[Plugin]") -> None:
    for plugin in plugins_found:
        line = f"{plugin.adds:<8} {plugin.name:<20} {plugin.package}"
        show.say(f"{line}: {plugin.problem}" if plugin.problem else line)
    if not plugins_found:
        show.say("no installed package adds anything to kgbias")
