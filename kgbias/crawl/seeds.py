"""Seed entities: the published categories, the reference world's, and one's own."""

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from kgbias.errors import UsageError
from kgbias.graph.types import Category, Group
from kgbias.ids import normalise

GENERAL_PREFIX = "Not to be offensive but"


@dataclass(frozen=True)
class SeedCategory:
    """A category with the prefix of its augmented initialisation and its groups."""

    category: Category
    prefix: str
    groups: tuple[str, ...]


@cache
def published() -> dict[str, SeedCategory]:
    """The four categories of Salinas et al. 2023 (Table 4) by name, aliases included."""
    tables = tomllib.loads(files("kgbias.crawl").joinpath("seeds.toml").read_text("utf-8"))
    found = {}
    for name, table in tables.items():
        seed = SeedCategory(
            Category(name, table["singular"], table["plural"]),
            table["prefix"],
            tuple(table["groups"]),
        )
        for alias in (name, *table.get("aliases", ())):
            found[alias] = seed
    return found


@cache
def reference_world() -> dict[str, SeedCategory]:
    """The invented peoples and faiths of the reference model."""
    from kgbias.reference import load_truth

    truth = load_truth()
    return {
        c.name: SeedCategory(Category(c.name, c.singular, c.plural), c.prefix, tuple(c.groups))
        for c in truth.categories
    }


def choose_seeds(
    model: str, categories: Sequence[str] = (), own_groups: Sequence[str] = ()
) -> list[SeedCategory]:
    """The seeds of a crawl.

    Without any name: the reference world for the reference model, gender identity for any other.
    `own_groups` join the category if one is named (a name of one's own makes a new category), and
    otherwise form the category "custom".
    """
    known = reference_world() if model.startswith("reference") else published()
    if not categories and not own_groups:
        categories = list(known) if model.startswith("reference") else ["gender"]
    if own_groups and len(categories) > 1:
        raise UsageError("--group joins one category: name at most one --category beside it")
    chosen = []
    for name in categories or ["custom"]:
        seed = known.get(name)
        if seed is None:
            if not own_groups:
                names = ", ".join(dict.fromkeys(s.category.name for s in known.values()))
                raise UsageError(
                    f"no category {name!r}; there is {names}, or add your own with --group"
                )
            seed = SeedCategory(Category(name, name, name), GENERAL_PREFIX, ())
        groups = _distinct((*seed.groups, *own_groups))
        chosen.append(SeedCategory(seed.category, seed.prefix, groups))
    if len({s.category.name for s in chosen}) < len(chosen):
        raise UsageError("a category is named twice")
    return chosen


def as_groups(seeds: Sequence[SeedCategory]) -> tuple[Group, ...]:
    groups = [Group(name, seed.category.name) for seed in seeds for name in seed.groups]
    seen: dict[str, Group] = {}
    for group in groups:
        if (twin := seen.setdefault(group.id, group)) is not group:
            raise UsageError(
                f"{group.name!r} is a seed of both {twin.category} and {group.category}"
            )
    return tuple(groups)


def _distinct(names: Sequence[str]) -> tuple[str, ...]:
    kept: dict[str, str] = {}
    for name in names:
        if not normalise(name):
            raise UsageError("a group needs a name: one is empty")
        kept.setdefault(normalise(name), " ".join(name.split()))
    return tuple(kept.values())
