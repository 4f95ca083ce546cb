"""`kgbias crawl`: ask a model, keep the graph."""

from contextlib import closing
from typing import Any

import click

from kgbias.cli.options import json_option, print_json, store_option
from kgbias.cli.progress import shown_progress
from kgbias.crawl.config import ARMS, CrawlConfig
from kgbias.crawl.crawler import CrawlResult
from kgbias.crawl.crawler import crawl as run_crawl
from kgbias.crawl.prompts import load_template
from kgbias.crawl.seeds import choose_seeds
from kgbias.graph.store import open_store
from kgbias.models import open_model

FAILED_SHARE = 0.1  # of the answers; beyond it the exit code says that the crawl is not whole


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
    "--group", "groups", multiple=True, metavar="NAME", help="A seed of your own (repeatable)."
)
@store_option
@click.option("--run", "run_name", metavar="NAME", help="A name for the run.")
@click.option("--seed", default=0, show_default=True, help="Decides every random draw.")
@click.option("--temperature", default=0.8, show_default=True)
@click.option("--samples", default=5, show_default=True, help="Answers per initial predicate.")
@click.option("--iterations", default=4, show_default=True, help="Rounds of expansion.")
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
@click.option("--max-attempts", default=10, show_default=True, help="Asked again this often.")
@click.option("--batch-size", default=32, show_default=True, help="Rows at once, local models.")
@click.option("--base-url", metavar="URL", help="Of an OpenAI-compatible server.")
@click.option("--concurrency", default=16, show_default=True, help="Requests at once, servers.")
@click.option("--max-requests", type=click.IntRange(min=0), help="Stop cleanly after so many.")
@click.option("--max-tokens", type=click.IntRange(min=0), help="Stop cleanly after so many.")
@click.option("--dry-run", is_flag=True, help="Say what it will cost, and stop.")
@json_option
def crawl(
    spec: str,
    categories: tuple[str, ...],
    groups: tuple[str, ...],
    store_url: str,
    run_name: str | None,
    arms: str,
    batch_size: int,
    base_url: str | None,
    concurrency: int,
    max_requests: int | None,
    max_tokens: int | None,
    dry_run: bool,
    as_json: bool,
    **parameters: Any,
) -> int:
    """Crawl a model for stereotype triples.

    The method and its defaults are those of Salinas et al. 2023. The same command again goes on
    where it was stopped, and asks nothing that was answered.
    """
    config = CrawlConfig(
        seeds=tuple(choose_seeds(spec, categories, groups)),
        arms=tuple(arms.split(",")),  # type: ignore[arg-type]  # checked by CrawlConfig
        **parameters,
    )
    if dry_run:
        return _price(config, as_json)
    with shown_progress() as progress:
        options: dict[str, Any] = {"batch_size": batch_size}
        if spec.startswith("openai:"):
            options = {"base_url": base_url, "concurrency": concurrency}
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
    return _tell(result, as_json)


def _tell(result: CrawlResult, as_json: bool) -> int:
    outcomes = {name: result.outcomes[name] for name in ("ok", "refused", "unparsable", "failed")}
    if as_json:
        print_json(
            {
                "run": result.run.name,
                "asked": result.asked,
                "cached": result.cached,
                "well_formed": result.well_formed,
                "unfilled": result.unfilled,
                **outcomes,
            }
        )
    else:
        click.echo(
            f"run {result.run.name}: {outcomes['ok']} statements from "
            f"{result.outcomes.total()} answers ({result.well_formed:.0%} well-formed, "
            f"{outcomes['refused']} refused, {outcomes['unparsable']} unparsable, "
            f"{outcomes['failed']} failed); asked {result.asked}, from the log {result.cached}"
        )
        if result.unfilled:
            click.echo(
                f"{result.unfilled} places have no statement after their last attempt", err=True
            )
    return int(outcomes["failed"] > FAILED_SHARE * result.outcomes.total())


def _price(config: CrawlConfig, as_json: bool) -> int:
    """What the crawl asks at least, and at most if every attempt were used."""
    seeds, arms = len(config.groups), len(config.arms)
    stages = {
        "initialise": len(config.initial_predicates) * config.samples,
        "predicate": config.iterations * config.predicate_prompts,
        "object": config.iterations * config.object_prompts,
    }
    rows = [
        {
            "stage": stage,
            "requests": arms * seeds * count,
            "requests_at_most": arms * seeds * count * config.max_attempts,
            "answer_tokens_at_most": arms
            * seeds
            * count
            * config.max_attempts
            * load_template(stage).max_tokens,
        }
        for stage, count in stages.items()
    ]
    if as_json:
        print_json({"groups": seeds, "arms": arms, "stages": rows})
        return 0
    click.echo(f"{seeds} groups, {arms} arm{'s' if arms > 1 else ''}; nothing was asked")
    for row in rows:
        click.echo(
            f"{row['stage']:<12}{row['requests']:>8} requests, with resamples at most "
            f"{row['requests_at_most']} and {row['answer_tokens_at_most']} answer tokens"
        )
    return 0
