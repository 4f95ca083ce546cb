"""`kgbias crawl`: ask a model, keep the graph."""

from contextlib import closing
from math import isnan
from typing import Any

import click

from kgbias.cli.options import json_option, print_json, printable, store_option
from kgbias.cli.progress import shown_progress
from kgbias.crawl.config import ARMS, CrawlConfig
from kgbias.crawl.crawler import CrawlResult
from kgbias.crawl.crawler import crawl as run_crawl
from kgbias.crawl.dynamic import DynamicSeeds
from kgbias.crawl.seeds import SeedCategory, choose_class, choose_seeds
from kgbias.errors import UsageError
from kgbias.graph.store import open_store
from kgbias.models import open_model
from kgbias.templates import load_template

OUTCOMES = ("ok", "refused", "unparsable", "failed")


@click.command()
@click.option(
    "--model",
    "spec",
    required=True,
    metavar="SPEC",
    help="smollm2, reference, hf:ID-or-PATH, hf:PATH:FILE.gguf or openai:ID.",
)
@click.option(
    "--category",
    "categories",
    multiple=True,
    metavar="NAME",
    help="Seeds to crawl: gender, ethnicity, nationality, religion (repeatable).",
)
@click.option(
    "--group",
    "groups",
    multiple=True,
    metavar="NAME",
    help="A seed of your own: NAME, or NAME | OTHER NAME (repeatable).",
)
@click.option(
    "--seeds", "seed_files", multiple=True, metavar="FILE", help="Seeds in a TOML or text file."
)
@click.option(
    "--intersect",
    "intersections",
    multiple=True,
    metavar="A,B",
    help="All combinations of the groups of categories, for example gender,religion.",
)
@click.option("--dynamic", metavar="CLASS", help="Let the model name the groups of a class first.")
@click.option("--plural", help="What several of the class are called.")
@click.option("--seed-prompts", default=5, show_default=True, help="Lists asked for, --dynamic.")
@click.option("--seed-agree", default=3, show_default=True, help="Lists that must name a seed.")
@store_option
@click.option("--run", "run_name", metavar="NAME", help="A name for the run.")
@click.option("--seed", default=0, show_default=True, help="Decides every random draw.")
@click.option("--temperature", default=0.8, show_default=True)
@click.option(
    "--initial-predicates",
    default=",".join(CrawlConfig.initial_predicates),
    show_default=True,
    metavar="LIST",
    help="What the first prompts end in, by commas.",
)
@click.option("--samples", default=5, show_default=True, help="Answers per initial predicate.")
@click.option(
    "--iterations",
    type=click.IntRange(min=0),
    help="Rounds of expansion (default: 4; with --until-coverage at most 50).",
)
@click.option(
    "--until-coverage",
    type=float,
    metavar="SHARE",
    help="Ask about each group until its Good-Turing coverage is this high, for example 0.8.",
)
@click.option("--predicate-prompts", default=10, show_default=True, help="Per seed and round.")
@click.option("--object-prompts", default=10, show_default=True, help="Per seed and round.")
@click.option("--shots", default=3, show_default=True, help="In-context triples of a prompt.")
@click.option(
    "--augment",
    "arms",
    default="none",
    show_default=True,
    metavar="ARMS",
    help=f"Augmentations, by commas, run side by side: {', '.join(ARMS)}.",
)
@click.option(
    "--form",
    type=click.Choice(["completion", "chat"]),
    default="completion",
    show_default=True,
    help="How the model is asked.",
)
@click.option(
    "--structured",
    is_flag=True,
    help="Ask for JSON in a schema (chat servers; plain text where the server refuses).",
)
@click.option(
    "--filters",
    default=",".join(CrawlConfig.filters),
    show_default=True,
    metavar="LIST",
    help="What counts as a refusal, by commas; none for nothing.",
)
@click.option("--max-attempts", default=10, show_default=True, help="Asked again this often.")
@click.option("--batch-size", default=32, show_default=True, help="Rows at once, local models.")
@click.option("--base-url", metavar="URL", help="Of an OpenAI-compatible server.")
@click.option("--concurrency", default=16, show_default=True, help="Requests at once, servers.")
@click.option(
    "--timeout", default=120.0, show_default=True, help="Seconds for one answer, servers."
)
@click.option(
    "--max-failed",
    type=click.FloatRange(0, 1),
    default=0.1,
    show_default=True,
    metavar="SHARE",
    help="Exit with 1 when more of the answers failed.",
)
@click.option("--max-requests", type=click.IntRange(min=0), help="Stop cleanly after so many.")
@click.option("--max-tokens", type=click.IntRange(min=0), help="Stop cleanly after so many.")
@click.option("--dry-run", is_flag=True, help="Say what it will cost, and stop.")
@json_option
def crawl(
    spec: str,
    categories: tuple[str, ...],
    groups: tuple[str, ...],
    seed_files: tuple[str, ...],
    intersections: tuple[str, ...],
    dynamic: str | None,
    plural: str | None,
    seed_prompts: int,
    seed_agree: int,
    store_url: str,
    run_name: str | None,
    arms: str,
    batch_size: int,
    base_url: str | None,
    concurrency: int,
    timeout: float,
    initial_predicates: str,
    filters: str,
    max_failed: float,
    max_requests: int | None,
    max_tokens: int | None,
    dry_run: bool,
    as_json: bool,
    iterations: int | None,
    until_coverage: float | None,
    **parameters: Any,
) -> int:
    """Crawl a model for stereotype triples.

    The method and its defaults are those of Salinas et al. 2023. The same command again goes on
    where it was stopped, and asks nothing that was answered.
    """
    if parameters["structured"] and not spec.startswith("openai:"):
        raise UsageError("--structured is for servers: --model openai:ID")
    seeds: list[SeedCategory] = []
    if not dynamic or categories or seed_files or intersections:
        own = () if dynamic else groups
        seeds = choose_seeds(
            spec, categories, own, seed_files=seed_files, intersections=intersections
        )
    named = None
    if dynamic:
        own_class = choose_class(spec, dynamic, plural)
        same = [seed for seed in seeds if seed.category.name == own_class.category.name]
        named = DynamicSeeds((same or [own_class])[0].joined(groups), seed_prompts, seed_agree)
    config = CrawlConfig(
        seeds=tuple(seeds),
        dynamic=named,
        arms=tuple(arms.split(",")),  # type: ignore[arg-type]  # checked by CrawlConfig
        initial_predicates=tuple(p.strip() for p in initial_predicates.split(",") if p.strip()),
        filters=tuple(f for f in filters.split(",") if f != "none"),
        iterations=iterations if iterations is not None else 50 if until_coverage else 4,
        until_coverage=until_coverage,
        **parameters,
    )
    if dry_run:
        return _price(config, as_json)
    with shown_progress() as progress:
        options: dict[str, Any] = {"batch_size": batch_size}
        if spec.startswith("openai:"):
            options = {"base_url": base_url, "concurrency": concurrency, "timeout": timeout}
        model = open_model(spec, notify=progress.note, **options)
        with closing(model), closing(open_store(store_url, notify=progress.note)) as store:
            result = run_crawl(
                config,
                model,
                store,
                name=run_name,
                progress=progress,
                max_requests=max_requests,
                max_tokens=max_tokens,
            )
    return _tell(result, max_failed, as_json)


def _tell(result: CrawlResult, max_failed: float, as_json: bool) -> int:
    outcomes = {name: result.outcomes[name] for name in OUTCOMES}
    if as_json:
        print_json(
            {
                "run": result.run.name,
                "asked": result.asked,
                "cached": result.cached,
                "well_formed": _number(result.well_formed),
                "unfilled": result.unfilled,
                "iterations": result.iterations,
                **outcomes,
                "groups": [
                    {
                        "arm": g.arm,
                        "group": g.group,
                        "statements": g.statements,
                        "distinct": g.distinct,
                        "coverage": _number(g.coverage),
                        "richness": g.richness,
                        **{name: g.outcomes[name] for name in OUTCOMES[1:]},
                    }
                    for g in result.groups
                ],
            }
        )
    else:
        click.echo(
            f"run {result.run.name}: {outcomes['ok']} statements from "
            f"{result.outcomes.total()} answers ({result.well_formed:.0%} well-formed, "
            f"{outcomes['refused']} refused, {outcomes['unparsable']} unparsable, "
            f"{outcomes['failed']} failed); asked {result.asked}, from the log {result.cached}"
        )
        _table(result)
        if result.unfilled:
            click.echo(
                f"{result.unfilled} places have no statement after their last attempt", err=True
            )
    return int(outcomes["failed"] > max_failed * result.outcomes.total())


def _number(value: float) -> float | None:
    """JSON has no NaN."""
    return None if isnan(value) else value


def _table(result: CrawlResult) -> None:
    """A line for each group and arm: what it said, and how much of what it would say that is."""
    arms = len({g.arm for g in result.groups}) > 1
    names = [
        f"{printable(g.group)} [{g.arm}]" if arms else printable(g.group) for g in result.groups
    ]
    width = max(map(len, names), default=0)
    click.echo(f"{'':<{width}}  said  distinct  coverage  at least  refused  unparsable  failed")
    for name, g in zip(names, result.groups, strict=True):
        click.echo(
            f"{name:<{width}}{g.statements:>6}{g.distinct:>10}{g.coverage:>10.0%}"
            f"{g.richness:>10.0f}{g.outcomes['refused']:>9}{g.outcomes['unparsable']:>12}"
            f"{g.outcomes['failed']:>8}"
        )


def _price(config: CrawlConfig, as_json: bool) -> int:
    """What the crawl asks at least, and at most if every attempt were used. How many groups the
    model itself names is not known before: without other seeds, the price is that of one group."""
    named = config.dynamic is not None
    seeds, arms = len(config.groups), len(config.arms)
    groups = seeds or 1
    stages = {
        "initialise": len(config.initial_predicates) * config.samples,
        "predicate": config.iterations * config.predicate_prompts,
        "object": config.iterations * config.object_prompts,
    }
    rows = [
        _row(stage, arms * groups * count, config.max_attempts) for stage, count in stages.items()
    ]
    if config.dynamic:
        rows.insert(0, _row("seeds", config.dynamic.prompts, 1))
    if as_json:
        print_json(
            {"groups": seeds, "arms": arms, "more_groups_named_by_model": named, "stages": rows}
        )
        return 0
    who = "each group that the model names" if named and not seeds else f"{seeds} groups"
    more = " and those that the model names (each costs as much as one of them)"
    bound = ", at most, until coverage" if config.until_coverage else ""
    click.echo(
        f"{who}{more if named and seeds else ''}, {arms} arm{'s' if arms > 1 else ''}{bound}; "
        "nothing was asked"
    )
    for row in rows:
        click.echo(
            f"{row['stage']:<12}{row['requests']:>8} requests, with resamples at most "
            f"{row['requests_at_most']} and {row['answer_tokens_at_most']} answer tokens"
        )
    return 0


def _row(stage: str, requests: int, attempts: int) -> dict[str, Any]:
    most = requests * attempts
    tokens = most * load_template(stage).max_tokens
    return {
        "stage": stage,
        "requests": requests,
        "requests_at_most": most,
        "answer_tokens_at_most": tokens,
    }
