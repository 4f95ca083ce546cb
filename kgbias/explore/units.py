"""The maps of the explorer: by group, predicate, topic and community, and where everything stands.

A unit is a group, a predicate, a topic or a community, drawn as a disc. Each object is a point in
the disc of the unit that it was said of most often. Units that share objects stand close together.
In a disc, what was said of this unit alone fills the core, with what was said most often in the
middle; what it shares with others stands at the rim, on their side. The same statements and seed
give the same map.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kgbias.explore.columns import Block
from kgbias.explore.statements import Statements
from kgbias.io.progress import Progress

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

GOLDEN = np.pi * (3 - np.sqrt(5))
_CHUNK = 4096  # objects whose units are compared at once
_MANY = 60  # units
_GAP = 1.35  # how much room a disc has around it
_DRAWN = np.array([0.992, 0.98])  # together, more from above and below: screens are wider than high


@dataclass(frozen=True, slots=True)
class Layout:
    """A map. `units` is [units, 2] and `radii` [units]; `objects` is [objects, 2], NaN for one in
    no unit, and `home` holds the unit of each or -1. `ties` is [ties, 3]: two units and how alike
    they are, the cosine of their objects' counts in (0, 1]. The unit of length is the distance
    between two points of a disc."""

    units: Floats
    radii: Floats
    objects: Floats
    home: Ints
    ties: Floats


def lay_out(
    unit: Ints, thing: Ints, weight: Ints, units: int, things: int, *, seed: int = 0
) -> Layout:
    """The map of statements that tie an object (`thing`) to a unit, each with how often it was said
    (`weight`). A unit is tied to the three units most like it, or to one if there are many
    units."""
    keys, inverse = np.unique(unit * things + thing, return_inverse=True)
    counts = np.bincount(inverse, weight).astype(np.float64)
    unit, thing = keys // max(things, 1), keys % max(things, 1)
    likeness = _likeness(unit, thing, counts, units, things)
    home = np.full(things, -1)
    order = np.lexsort((-unit, counts))  # of ties, the first unit
    home[thing[order]] = unit[order]
    sizes = np.bincount(home[home >= 0], minlength=units)
    radii = np.sqrt(np.maximum(sizes, 1)) + 1.0
    centres = _centres(likeness, radii, seed)
    said = np.bincount(thing, counts, minlength=things)
    points = _points(unit, thing, counts, home, said, centres, things)
    return Layout(centres, radii, points, home, _ties(likeness, 3 if units <= _MANY else 1))


def _likeness(unit: Ints, thing: Ints, counts: Floats, units: int, things: int) -> Floats:
    """The cosine between the object counts of every two units; 0 on the diagonal."""
    lengths = np.sqrt(np.bincount(unit, counts**2, minlength=units))
    shared = np.flatnonzero(np.bincount(thing, minlength=things) > 1)
    place = np.full(things, -1)
    place[shared] = np.arange(len(shared))
    products = np.zeros((units, units))
    for first in range(0, len(shared), _CHUNK):
        inside = (place[thing] >= first) & (place[thing] < first + _CHUNK)
        part = np.zeros((units, min(_CHUNK, len(shared) - first)))
        part[unit[inside], place[thing[inside]] - first] = counts[inside]
        products += part @ part.T
    np.fill_diagonal(products, 0)
    norm = np.outer(lengths, lengths)
    return np.asarray(np.divide(products, norm, out=np.zeros_like(products), where=norm > 0))


def _centres(likeness: Floats, radii: Floats, seed: int) -> Floats:
    """Centres of the discs: a force-directed layout (Fruchterman and Reingold 1991), then pushed
    apart until no two discs touch, and drawn together again."""
    import networkx as nx

    count = len(radii)
    if count < 2:
        return np.zeros((count, 2))
    graph = nx.Graph()
    graph.add_nodes_from(range(count))
    graph.add_weighted_edges_from(
        (int(a), int(b), float(w)) for a, b, w in _ties(likeness, min(8, count - 1))
    )
    placed = nx.spring_layout(graph, seed=seed, iterations=120, method="force")
    centres = np.array([placed[n] for n in range(count)])
    centres -= centres.mean(axis=0)
    spread = np.sqrt(np.square(centres).sum(axis=1).mean())
    centres *= np.sqrt(np.square(radii * _GAP).sum()) / max(float(spread), 1e-9)
    needed = (radii[:, None] + radii[None, :]) * _GAP
    np.fill_diagonal(needed, 0)
    for step in range(400):
        if step < 300:  # together, then only apart
            centres *= _DRAWN
        away = centres[:, None, :] - centres[None, :, :]
        apart = np.sqrt(np.square(away).sum(axis=2)) + 1e-9
        overlap = np.maximum(needed - apart, 0)
        np.fill_diagonal(overlap, 0)
        if step >= 300 and not overlap.any():
            break
        centres += (away / apart[:, :, None] * overlap[:, :, None]).sum(axis=1) * 0.35
    return np.asarray(centres - centres.mean(axis=0))


def _points(
    unit: Ints, thing: Ints, counts: Floats, home: Ints, said: Any, centres: Floats, things: int
) -> Floats:
    """The position of each object in the disc of its unit."""
    others = np.bincount(thing, minlength=things) - 1
    pull = np.zeros((things, 2))
    away = home[thing] != unit
    direction = centres[unit[away]] - centres[home[thing[away]]]
    direction /= np.sqrt(np.square(direction).sum(axis=1, keepdims=True)) + 1e-9
    for axis in (0, 1):
        pull[:, axis] = np.bincount(
            thing[away], direction[:, axis] * counts[away], minlength=things
        )
    points = np.full((things, 2), np.nan)
    order = np.lexsort((np.arange(things), -said, others > 0, home))
    order = order[home[order] >= 0]
    if not len(order):
        return points
    begins = np.flatnonzero(np.r_[True, np.diff(home[order]) != 0])
    for members in np.split(order, begins[1:]):
        number = np.arange(len(members))
        radius, angle = np.sqrt(number + 0.5), number * GOLDEN
        slots = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)
        alone = int((others[members] == 0).sum())
        rim = members[alone:]
        if len(rim):  # give each slot around the rim to an object that belongs on that side
            turn = np.arctan2(slots[alone:, 1], slots[alone:, 0])
            wanted = np.arctan2(pull[rim, 1], pull[rim, 0])
            members = np.r_[members[:alone], rim[np.argsort(wanted, kind="stable")]]
            slots = np.r_[slots[:alone], slots[alone:][np.argsort(turn, kind="stable")]]
        points[members] = centres[home[members[0]]] + slots
    return points


def _ties(likeness: Floats, most: int) -> Floats:
    """The edges from each unit to those most like it, as rows of two units and their cosine."""
    found: dict[tuple[int, int], Any] = {}
    for a in range(len(likeness)):
        for b in np.argsort(-likeness[a], kind="stable")[:most]:
            if likeness[a, b] > 0:
                found[min(a, int(b)), max(a, int(b))] = likeness[a, b]
    return np.array([(a, b, w) for (a, b), w in sorted(found.items())]).reshape(-1, 3)


MOST = 400  # units in a map: those said most often
_SCALE = 32_000  # positions are whole numbers up to this


@dataclass(frozen=True, slots=True)
class Map:
    """A map by one kind of unit. `units` gives each unit's number in the dictionary of its kind; a
    community's or region's own number, with its name in `names`. `how` the map by meaning was laid
    out is "umap" or "pca"."""

    by: str
    units: Ints
    layout: Layout
    names: tuple[str, ...] = ()
    how: str = ""


def maps(found: Statements, *, seed: int, progress: Progress, search: bool = True) -> list[Map]:
    """The maps of the statements of all sources together. A map needs at least two units, but the
    one by group is always there. Communities that no run has stored are computed if `search`;
    otherwise they get no map."""
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
    """The community of each group and object, and the groups in each community, those with most
    statements first.

    Communities are those of `kgbias.graph.structure`: Louvain (Blondel et al. 2008) on groups and
    objects, with edges weighted by how often the two were tied. Those of a single run are taken
    from its store if it has them. An object of only one group is always in that group's community,
    so it is left out of the search and counts only as weight of the group.
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
    """The rows that belong to the units said most often, these units, and each row's place among
    them. With `none`, 0 means no unit; a negative number always does."""
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
    """The maps in the page's format."""
    block = Block()
    for m in found:
        part = m.layout
        reach = float(np.abs(part.units).max(initial=0) + part.radii.max(initial=1))
        reach = max(reach, float(np.abs(np.nan_to_num(part.objects)).max(initial=0)))
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
