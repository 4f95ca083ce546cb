"""The configuration of a crawl from the record that it left: the inverse of `CrawlConfig.as_dict`.

A record may be a stranger's, so nothing of it is taken on trust: what is made from it must say the
same again, and prompts that do not come with kgbias are only read where a person names them.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from kgbias.crawl.config import CrawlConfig, Width
from kgbias.crawl.dynamic import DynamicSeeds
from kgbias.crawl.seeds import SeedCategory
from kgbias.errors import DataError, UsageError
from kgbias.graph.types import Category
from kgbias.packs import PUBLISHED, Pack, load_pack, pack_names

_BESIDE = {"judge", "gauge"}  # stand in the record beside the configuration
_AS_THEY_ARE = (
    "seed", "temperature", "top_k", "top_p", "min_p", "samples", "answers", "iterations",
    "predicate_prompts", "object_prompts", "shots", "form", "structured", "max_attempts", "redraw",
    "until_coverage", "min_acceptability", "series",
)  # fmt: skip


def recorded(
    record: Mapping[str, Any],
    categories: Sequence[Category],
    prompts: str | Path | None = None,
) -> CrawlConfig:
    """The configuration that `record` is of, as it was before the model named any groups.

    `categories` are those of the run, in the order of its groups; `prompts` is the folder of a
    prompt pack that does not come with kgbias.

    Raises DataError where the record is none of a crawl, or says what this version of kgbias would
    ask otherwise; UsageError where its prompts are not here.
    """
    pack = _pack(record, prompts)
    try:
        config, whole = _made(record, categories, pack)
        said = whole.as_dict()
    except UsageError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise DataError(f"this is no configuration of a crawl: {error!r}") from error
    other = [
        name
        for name in sorted({*said, *record} - _BESIDE)
        if said.get(name, said) != record.get(name, record)
    ]
    if other:
        raise DataError(
            f"this version of kgbias would ask otherwise: {', '.join(other)} differ from the record"
        )
    return config


def _made(
    record: Mapping[str, Any], categories: Sequence[Category], pack: Pack
) -> tuple[CrawlConfig, CrawlConfig]:
    """The configuration before and after the model named groups."""
    seeds = [_seed(record, category) for category in categories]
    if {s.category.name for s in seeds} != set(record["seeds"]):
        raise ValueError("the categories are not those of the seeds")
    given = {name: record[name] for name in _AS_THEY_ARE if name in record}
    for name in ("initial_predicates", "arms", "filters"):
        given[name] = tuple(record[name])
    if "until_width" in record:
        given["until_width"] = Width.of(record["until_width"])
    whole = CrawlConfig(
        seeds=tuple(seeds),
        pack=pack,
        strategy_prompts=record.get("prompts", {}),
        dynamic=DynamicSeeds(seeds[0], *record["dynamic"]) if record["dynamic"] else None,
        **given,
    )
    if whole.dynamic is None:
        return whole, whole
    # The class that the model named groups of stands first (`CrawlConfig.with_groups_of`).
    named = DynamicSeeds(_own(seeds[0]), *record["dynamic"])
    before = CrawlConfig(
        seeds=tuple(seeds[1:]),
        pack=pack,
        strategy_prompts=record.get("prompts", {}),
        dynamic=named,
        **given,
    )
    return before, whole


def _seed(record: Mapping[str, Any], category: Category) -> SeedCategory:
    groups = tuple(record["seeds"][category.name])
    named = record["named_by_model"].get(category.name, {"lists": {}, "answers": ()})
    return SeedCategory(
        category,
        record["prefixes"][category.name],
        groups,
        {g: tuple(record["variants"][g]) for g in groups if g in record["variants"]},
        named_by_model=named["lists"],
        list_answers=tuple(named["answers"]),
    )


def _own(seed: SeedCategory) -> SeedCategory:
    """The category without the groups that only the model named."""
    kept = tuple(g for g in seed.groups if g not in seed.named_by_model or g in seed.variants)
    return SeedCategory(seed.category, seed.prefix, kept, seed.variants)


def _pack(record: Mapping[str, Any], prompts: str | Path | None) -> Pack:
    """The prompts of a record: those of kgbias, or those in a folder that a person named."""
    said = record.get("pack", {})
    name = str(said.get("name", PUBLISHED)) if isinstance(said, Mapping) else ""
    if prompts is None and name not in pack_names():
        raise UsageError(
            f"the prompts {name!r} do not come with kgbias: name their folder with `prompts`"
        )
    return load_pack(name if prompts is None else prompts)
