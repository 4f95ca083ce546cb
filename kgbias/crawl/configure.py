"""From what a user names to the frozen configuration of a crawl."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypedDict, Unpack, cast

from kgbias.crawl.config import Arm, CrawlConfig
from kgbias.crawl.dynamic import DynamicSeeds
from kgbias.crawl.seeds import choose_class, choose_seeds
from kgbias.errors import UsageError
from kgbias.models.base import Form
from kgbias.names import Names, as_names


class CrawlParameters(TypedDict, total=False):
    """How a crawl asks; `CrawlConfig` says what each one means, and has the defaults."""

    seed: int
    temperature: float
    top_k: int | None
    top_p: float | None
    min_p: float | None
    initial_predicates: Names
    samples: int
    iterations: int | None
    predicate_prompts: int
    object_prompts: int
    shots: int
    arms: Arm | tuple[Arm, ...] | list[Arm]
    form: Form
    structured: bool
    filters: Names
    max_attempts: int
    until_coverage: float | None
    prompts: Mapping[str, int]


class CrawlOptions(CrawlParameters, total=False):
    """Whom a crawl asks about (`configure` says what each one means), and how it asks."""

    category: Names
    group: Names
    seeds: str | Path | list[str] | list[Path] | tuple[str, ...]
    intersect: Names
    dynamic: str | None
    plural: str | None
    seed_prompts: int
    seed_agree: int


class ModelOptions(TypedDict, total=False):
    """How the model of a spec is opened; None is the default of its kind."""

    device: str | None
    dtype: str | None
    batch_size: int | None
    base_url: str | None
    concurrency: int | None
    timeout: float | None


class CrawlCall(CrawlOptions, ModelOptions, total=False):
    """All that decides a crawl of the model of a spec."""


def parted(options: CrawlCall) -> tuple[dict[str, Any], CrawlOptions]:
    """The options that open the model, those that were given, and the options of the crawl."""
    names = ModelOptions.__annotations__
    opening = {k: v for k, v in options.items() if k in names and v is not None}
    return opening, cast(CrawlOptions, {k: v for k, v in options.items() if k not in names})


def configure(
    model: str,
    *,
    category: Names = (),
    group: Names = (),
    seeds: str | Path | list[str] | list[Path] | tuple[str, ...] = (),
    intersect: Names = (),
    dynamic: str | None = None,
    plural: str | None = None,
    seed_prompts: int = DynamicSeeds.prompts,
    seed_agree: int = DynamicSeeds.agree,
    **parameters: Unpack[CrawlParameters],
) -> CrawlConfig:
    """The configuration of a crawl of the model of this spec.

    Args:
        model: the spec; the reference model has seeds of its own.
        category: categories to crawl, such as "gender" (the default), "ethnicity", "nationality",
            "religion".
        group: groups to add to the category, "NAME" or "NAME | OTHER NAME".
        seeds: files of seeds, TOML or text.
        intersect: categories to combine, by commas, such as "gender,religion".
        dynamic: a class whose groups the model is asked for before the crawl; `plural` says what
            several of them are called where the class is not a known category. Of `seed_prompts`
            lists, `seed_agree` must name a group.
        parameters: those of `CrawlConfig`.

    Raises:
        UsageError: an unknown name, a number out of range, or parameters that exclude each other.
        DataError: a file of seeds that cannot be read.
    """
    if parameters.get("structured") and model and not model.startswith("openai:"):
        raise UsageError("`structured` is for servers: name the model as openai:ID")
    if dynamic is None and plural is not None:
        raise UsageError("`plural` belongs to `dynamic`: name the class whose groups are wanted")
    files = [str(path) for path in ([seeds] if isinstance(seeds, str | Path) else seeds)]
    categories, groups, crossed = as_names(category), as_names(group), as_names(intersect)
    named, chosen = None, []
    if dynamic is None or categories or files or crossed:
        own = groups if dynamic is None else ()
        chosen = choose_seeds(model, categories, own, seed_files=files, intersections=crossed)
    if dynamic is not None:
        asked_for = choose_class(model, dynamic, plural)
        same = [seed for seed in chosen if seed.category.name == asked_for.category.name]
        named = DynamicSeeds((same or [asked_for])[0].joined(groups), seed_prompts, seed_agree)
    given = dict(parameters)
    for name in ("initial_predicates", "arms", "filters"):
        if name in given:
            given[name] = as_names(given[name])  # type: ignore[arg-type]
    return CrawlConfig(seeds=tuple(chosen), dynamic=named, **given)  # type: ignore[arg-type]
