"""The maps of the explorer: by group, predicate, topic and community."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kgbias.explore.columns import Block
from kgbias.explore.layout import Ints, Layout, lay_out
from kgbias.explore.statements import Statements
from kgbias.progress import Progress

MOST = 400  # units of a map: those said most often
_SCALE = 32_000  # positions are whole numbers up to this


@dataclass(frozen=True, slots=True)
class Map:
    """A map by one kind of unit. `units` names each unit by its number in the dictionary of its
    kind; a community by itself, with its name in `names`."""

    by: str
    units: Ints
    layout: Layout
    names: tuple[str, ...] = ()


def maps(found: Statements, *, seed: int, progress: Progress, search: bool = True) -> list[Map]:
    """The maps of the statements, of all sources together; a map needs two units at least, but the
    one by group is always there. Communities that no run has stored are searched for if `search`;
    else there is no map of them."""
    group, predicate, thing, topic = found.group, found.predicate, found.object, found.topic
    count = found.count
    progress.stage("maps", 4)
    _, of_thing, members = communities(found, group, thing, count, seed, search=search)
    progress.advance()
    made = []
    for by, unit in (
        ("group", group),
        ("community", of_thing[thing] if len(thing) else thing),
        ("topic", topic),
        ("predicate", predicate),
    ):
        kept, units, numbers = _most(unit, count, none=by == "topic")
        if len(units) >= 2 or by == "group":
            layout = lay_out(
                numbers[kept], thing[kept], count[kept], len(units), len(found.objects), seed=seed
            )
            names = tuple(_name(found, members[int(u)]) for u in units) if by == "community" else ()
            made.append(Map(by, units, layout, names))
        if by != "group":
            progress.advance()
    return made


def communities(
    found: Statements, group: Ints, thing: Ints, count: Ints, seed: int, *, search: bool = True
) -> tuple[Ints, Ints, list[list[int]]]:
    """The community of each group and object, and the groups of each, those with most statements
    first.

    Communities are those of `kgbias.graph.structure`: Louvain (Blondel et al. 2008) on groups and
    objects, an edge as heavy as what ties them was said often. Where a single run has them stored,
    they are taken. An object of one group is always in the group's community, so that it is left
    out of the search and counts as a weight of the group alone.
    """
    import networkx as nx

    groups, things = len(found.groups), len(found.objects)
    of_group, of_thing = np.full(groups, -1), np.full(things, -1)
    stored = found.runs[0].places() if len(found.runs) == 1 else []
    said = np.bincount(group, count, minlength=groups)
    for place in stored:
        if place.kind == "group" and (number := found.groups.get(place.node_id)) >= 0:
            of_group[number] = place.community
        if place.kind == "object" and (number := found.objects.get(place.node_id)) >= 0:
            of_thing[number] = place.community
    if search and not stored:
        keys, inverse = np.unique(group * things + thing, return_inverse=True)
        weight = np.bincount(inverse, count)
        degree = np.bincount(keys % max(things, 1), minlength=things)
        graph = nx.Graph()
        graph.add_nodes_from(("group", int(g)) for g in np.unique(group))
        for key, heavy in zip(keys.tolist(), weight.tolist(), strict=True):
            g, o = divmod(key, things)
            ends = ("group", g), ("group", g) if degree[o] == 1 else ("object", o)
            before = graph.get_edge_data(*ends, {"weight": 0})["weight"]
            graph.add_edge(*ends, weight=before + heavy)
        parts = nx.community.louvain_communities(graph, weight="weight", seed=seed)
        parts.sort(
            key=lambda part: (-sum(said[n] for kind, n in part if kind == "group"), min(part))
        )
        for number, part in enumerate(parts):
            for kind, node in part:
                (of_group if kind == "group" else of_thing)[node] = number
        alone = (degree[thing] == 1) & (of_thing[thing] < 0)
        of_thing[thing[alone]] = of_group[group[alone]]
    total = max([-1, *of_group.tolist(), *of_thing.tolist()]) + 1
    members = [
        sorted(np.flatnonzero(of_group == n).tolist(), key=lambda g: (-said[g], g))
        for n in range(total)
    ]
    return of_group, of_thing, members


def _most(unit: Ints, count: Ints, *, none: bool) -> tuple[Ints, Ints, Ints]:
    """Which rows are of the units that were said most, these units, and each row's place among
    them. With `none`, 0 is no unit; a negative number never is."""
    known = unit >= (1 if none else 0)
    said = np.bincount(unit[known], count[known]) if known.any() else np.zeros(0)
    units = np.sort(np.argsort(-said, kind="stable")[: min(MOST, int((said > 0).sum()))])
    place = np.full(max(len(said), 1), -1)
    place[units] = np.arange(len(units))
    numbers = np.where(known, place[np.where(known, unit, 0)], -1)
    return np.flatnonzero(numbers >= 0), units, numbers


def _name(found: Statements, groups: Sequence[int]) -> str:
    names = [found.groups.texts[g] for g in groups[:3]]
    more = f" and {len(groups) - 3} more" if len(groups) > 3 else ""
    return (", ".join(names) + more) if names else "no group"


def block(found: Sequence[Map]) -> Block:
    """The maps as the page holds them."""
    block = Block()
    for m in found:
        part = m.layout
        reach = float(np.abs(part.units).max(initial=0) + part.radii.max(initial=1))
        factor = _SCALE / reach
        block.numbers(f"{m.by}.unit", m.units)
        block.numbers(f"{m.by}.centres", np.round(part.units.ravel() * factor), "i16")
        block.numbers(f"{m.by}.radii", np.round(part.radii * factor))
        block.numbers(f"{m.by}.home", part.home + 1)
        block.numbers(
            f"{m.by}.points", np.nan_to_num(np.round(part.objects.ravel() * factor)), "i16"
        )
        block.numbers(f"{m.by}.step", [max(1, round(factor))])
        block.numbers(f"{m.by}.ties", part.ties[:, :2].ravel())
        block.numbers(f"{m.by}.likeness", np.round(part.ties[:, 2] * 1000))
        if m.names:
            block.texts(f"{m.by}.name", m.names)
    return block
