"""From the user's parameters to the frozen configuration of a crawl.

A crawl does not know the scorers: one that asks again for statements that make little sense is
given a scorer by its caller.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Unpack

from kgbias.crawl.config import TRUNCATION_SETTINGS, CrawlConfig, CrawlParameters
from kgbias.crawl.seeds import (
    DynamicSeeds,
    Groups,
    SeedCategory,
    choose_dynamic_category,
    choose_seeds,
    is_in_memory,
    seeds_in_memory,
)
from kgbias.errors import UsageError
from kgbias.io.tables_in_memory import ACCEPTED_FORMS
from kgbias.packs import DEFAULT, PUBLISHED, Pack, load_pack
from kgbias.parameters import (
    BudgetOptions,
    ModelOptions,
    Names,
    as_choice,
    as_names,
    check_options,
    declared_parameters,
)


class CrawlOptions(CrawlParameters, total=False):
    """Whom a crawl asks about and in which words (see `configure`), and how it asks."""

    prompts: str | Path | None
    preset: str | None
    category: Names
    group: Groups
    seeds: Groups | Path | list[Path]
    intersect: Names
    dynamic: str | None
    plural: str | None
    seed_prompts: int
    seed_agree: int


class ModelCrawlOptions(CrawlOptions, ModelOptions, total=False):
    """Everything that decides a crawl of a model."""


class BudgetedCrawlOptions(ModelCrawlOptions, BudgetOptions, total=False):
    """The same, and what the call may spend."""


def configure(
    model: str,
    *,
    prompts: str | Path | None = None,
    preset: str | None = None,
    category: Names = (),
    group: Groups = (),
    seeds: Groups | Path | list[Path] = (),
    intersect: Names = (),
    dynamic: str | None = None,
    plural: str | None = None,
    seed_prompts: int = DynamicSeeds.prompts,
    seed_agree: int = DynamicSeeds.agree,
    **parameters: Unpack[CrawlParameters],
) -> CrawlConfig:
    """The configuration of a crawl of the model of this spec.

    Args:
        model: the spec; the reference model has its own seeds.
        prompts: the prompt pack, by its name or folder (default: `kgbias.packs.DEFAULT`).
            It can have defaults for how a crawl asks, that is, for parameters of `CrawlConfig`.
        preset: "salinas-2023" sets everything as in that paper: its prompts, no truncation (only
            the temperature), both augmentations, its filters.
        category: categories to crawl: "gender", "ethnicity", "nationality",
            "religion".
        group: groups to add to the category, "NAME" or "NAME | OTHER NAME"; or a frame, or a dict
            of names to other names, as for `seeds`.
        seeds: files of groups (`crawl.seeds.read_seeds`), or groups in memory: a pandas or polars
            frame, or a list of dicts, with the columns of such a table, or a dict of the names of
            groups to their other names.
        intersect: categories to combine, separated by commas, such as "gender,religion".
        dynamic: a class whose groups the model is asked for before the crawl; `plural` is its
            plural, needed if the class is not a known category. Of `seed_prompts` lists,
            `seed_agree` must name a group.
        parameters: those of `CrawlConfig`. None is the pack's default.

    Raises:
        UsageError: an unknown name, a number out of range, or parameters that exclude each other.
        DataError: a file of seeds cannot be read.
    """
    from kgbias.models.kinds import check_structured, form_for

    # mypy knows no way from a checked dict back to its `TypedDict`.
    checked_parameters: Any = check_options(parameters, CrawlOptions)
    parameters = checked_parameters
    parameters["form"] = form_for(model, parameters.get("form"))
    if parameters.get("structured") and model:
        check_structured(model)
    if dynamic is None and plural is not None:
        raise UsageError("`plural` needs `dynamic`: name the class whose groups are wanted")
    pack, config_parameters = _resolve_parameters(model, prompts, preset, parameters)
    files: list[str | SeedCategory] = []
    if not isinstance(seeds, Iterable | Path) and not is_in_memory(seeds):
        raise UsageError(f"`seeds` takes {ACCEPTED_FORMS}, and not {seeds!r}")
    seed_sources: Any = [seeds] if isinstance(seeds, str | Path) or is_in_memory(seeds) else seeds
    for seed_source in seed_sources:
        files += seeds_in_memory(seed_source) if is_in_memory(seed_source) else [str(seed_source)]
    if is_in_memory(group):  # groups of one's own, with their categories and other names
        files, group = [*files, *seeds_in_memory(group)], ()
    names: Any = group
    categories, groups = as_choice("category", category), as_choice("group", names)
    intersections = as_names(intersect)
    dynamic_seeds, chosen_seeds = None, []
    if dynamic is None or categories or files or intersections:
        # With `dynamic`, they join its class instead, below.
        added = groups if dynamic is None else ()
        chosen_seeds = choose_seeds(
            model,
            categories,
            added,
            seed_files=files,
            intersections=intersections,
            groups=pack.groups,
        )
    if dynamic is not None:
        dynamic_category = choose_dynamic_category(model, dynamic, plural, groups=pack.groups)
        for seed in chosen_seeds:
            # Chosen too, with its groups: what the model names joins them.
            if seed.category.name == dynamic_category.category.name:
                dynamic_category = seed
                break
        dynamic_seeds = DynamicSeeds(dynamic_category.with_groups(groups), seed_prompts, seed_agree)
    return CrawlConfig(
        seeds=tuple(chosen_seeds), pack=pack, dynamic=dynamic_seeds, **config_parameters
    )


def _resolve_parameters(
    model: str, prompts: str | Path | None, preset: str | None, parameters: CrawlParameters
) -> tuple[Pack, dict[str, Any]]:
    """The pack, and the parameters of `CrawlConfig` set by it or by the caller."""
    if preset is not None and prompts not in (None, preset):
        raise UsageError("`preset` sets the prompts: leave out `prompts`")
    pack = load_pack(preset or prompts or DEFAULT)
    if preset is not None and not pack.preset:
        raise UsageError(f"the prompts {preset!r} have no preset; {PUBLISHED} has one")
    declared = declared_parameters(CrawlConfig)
    parameters_given = {
        name: declared[name].read(value) if name in declared else value
        for name, value in parameters.items()
        if value is not None
    }
    defaults = {**pack.crawl, **(pack.preset if preset else {})}
    if model.startswith("reference"):
        from kgbias.reference.world import INITIAL_PREDICATES

        defaults["initial_predicates"] = INITIAL_PREDICATES  # those that its world knows
    # The pack's truncation is dropped as a whole: it was chosen for the pack's temperature.
    is_greedy = parameters_given.get("temperature") == 0
    if is_greedy or parameters_given.keys() & set(TRUNCATION_SETTINGS):
        defaults = {
            name: value for name, value in defaults.items() if name not in TRUNCATION_SETTINGS
        }
    if is_greedy:  # nothing is drawn, so nothing is drawn again
        defaults = {
            name: value for name, value in defaults.items() if name not in ("answers", "redraw")
        }
    return pack, {**defaults, **parameters_given}
