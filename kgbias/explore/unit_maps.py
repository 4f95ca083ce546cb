"""The maps of the explorer: by group, predicate, topic and community, and where everything stands.

A unit is a group, a predicate, a topic or a community, drawn as a disc. Each object is a point in
the disc of the unit that it was said of most often. Units that share objects stand close together.
In a disc, what was said of this unit alone fills the core, with what was said most often in the
middle; what it shares with others stands at the rim, on their side. The same statements and seed
give the same map.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kgbias.explore.columns import ColumnBlock
from kgbias.explore.statements import StatementTable
from kgbias.io.progress import Progress

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

GOLDEN_ANGLE = np.pi * (3 - np.sqrt(5))
_OBJECTS_PER_CHUNK = 4096  # objects whose units are compared at once
_MAX_THREE_TIE_UNITS = 60  # units
_DISC_SPACING = 1.35  # how much room a disc has around it
# Together, more from above and below: screens are wider than high.
_CONTRACTION = np.array([0.992, 0.98])


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
    unit: Ints,
    object_index: Ints,
    weight: Ints,
    unit_count: int,
    object_count: int,
    *,
    seed: int = 0,
) -> Layout:
    """The map of statements that tie an object (`object_index`) to a unit, each with how often it
    was said (`weight`). A unit is tied to the three units most like it, or to one if there are many
    units."""
    keys, inverse = np.unique(unit * object_count + object_index, return_inverse=True)
    counts = np.bincount(inverse, weight).astype(np.float64)
    unit, object_index = keys // max(object_count, 1), keys % max(object_count, 1)
    likeness = _unit_likeness(unit, object_index, counts, unit_count, object_count)
    home = np.full(object_count, -1)
    order = np.lexsort((-unit, counts))  # of ties, the first unit
    home[object_index[order]] = unit[order]
    sizes = np.bincount(home[home >= 0], minlength=unit_count)
    radii = np.sqrt(np.maximum(sizes, 1)) + 1.0
    centres = _place_centres(likeness, radii, seed)
    object_totals = np.bincount(object_index, counts, minlength=object_count)
    points = _place_points(unit, object_index, counts, home, object_totals, centres, object_count)
    return Layout(
        centres,
        radii,
        points,
        home,
        _strongest_ties(likeness, 3 if unit_count <= _MAX_THREE_TIE_UNITS else 1),
    )


def _unit_likeness(
    unit: Ints, object_index: Ints, counts: Floats, unit_count: int, object_count: int
) -> Floats:
    """The cosine between the object counts of every two units; 0 on the diagonal."""
    lengths = np.sqrt(np.bincount(unit, counts**2, minlength=unit_count))
    shared = np.flatnonzero(np.bincount(object_index, minlength=object_count) > 1)
    place = np.full(object_count, -1)
    place[shared] = np.arange(len(shared))
    products = np.zeros((unit_count, unit_count))
    for chunk_start in range(0, len(shared), _OBJECTS_PER_CHUNK):
        in_chunk = (place[object_index] >= chunk_start) & (
            place[object_index] < chunk_start + _OBJECTS_PER_CHUNK
        )
        chunk_counts = np.zeros((unit_count, min(_OBJECTS_PER_CHUNK, len(shared) - chunk_start)))
        chunk_counts[unit[in_chunk], place[object_index[in_chunk]] - chunk_start] = counts[in_chunk]
        products += chunk_counts @ chunk_counts.T
    np.fill_diagonal(products, 0)
    norm = np.outer(lengths, lengths)
    return np.asarray(np.divide(products, norm, out=np.zeros_like(products), where=norm > 0))


def _place_centres(likeness: Floats, radii: Floats, seed: int) -> Floats:
    """Centres of the discs: a force-directed layout (Fruchterman and Reingold 1991), then pushed
    apart until no two discs touch, and drawn together again."""
    import networkx as nx

    count = len(radii)
    if count < 2:
        return np.zeros((count, 2))
    graph = nx.Graph()
    graph.add_nodes_from(range(count))
    graph.add_weighted_edges_from(
        (int(a), int(b), float(w)) for a, b, w in _strongest_ties(likeness, min(8, count - 1))
    )
    positions = nx.spring_layout(graph, seed=seed, iterations=120, method="force")
    centres = np.array([positions[n] for n in range(count)])
    centres -= centres.mean(axis=0)
    spread = np.sqrt(np.square(centres).sum(axis=1).mean())
    centres *= np.sqrt(np.square(radii * _DISC_SPACING).sum()) / max(float(spread), 1e-9)
    needed = (radii[:, None] + radii[None, :]) * _DISC_SPACING
    np.fill_diagonal(needed, 0)
    for step in range(400):
        if step < 300:  # together, then only apart
            centres *= _CONTRACTION
        offsets = centres[:, None, :] - centres[None, :, :]
        distances = np.sqrt(np.square(offsets).sum(axis=2)) + 1e-9
        overlap = np.maximum(needed - distances, 0)
        np.fill_diagonal(overlap, 0)
        if step >= 300 and not overlap.any():
            break
        centres += (offsets / distances[:, :, None] * overlap[:, :, None]).sum(axis=1) * 0.35
    return np.asarray(centres - centres.mean(axis=0))


def _place_points(
    unit: Ints,
    object_index: Ints,
    counts: Floats,
    home: Ints,
    object_totals: Any,
    centres: Floats,
    object_count: int,
) -> Floats:
    """The position of each object in the disc of its unit."""
    other_units = np.bincount(object_index, minlength=object_count) - 1
    pull = np.zeros((object_count, 2))
    is_elsewhere = home[object_index] != unit
    direction = centres[unit[is_elsewhere]] - centres[home[object_index[is_elsewhere]]]
    direction /= np.sqrt(np.square(direction).sum(axis=1, keepdims=True)) + 1e-9
    for axis in (0, 1):
        pull[:, axis] = np.bincount(
            object_index[is_elsewhere],
            direction[:, axis] * counts[is_elsewhere],
            minlength=object_count,
        )
    points = np.full((object_count, 2), np.nan)
    # Unit by unit; within one, what it alone has comes first and so into the middle, what others
    # have too to the rim.
    order = np.lexsort((np.arange(object_count), -object_totals, other_units > 0, home))
    order = order[home[order] >= 0]
    if not len(order):
        return points
    begins = np.flatnonzero(np.r_[True, np.diff(home[order]) != 0])
    for members in np.split(order, begins[1:]):
        number = np.arange(len(members))
        # A sunflower (Vogel 1979): each next place a golden angle further on and as dense as the
        # last.
        radius, angle = np.sqrt(number + 0.5), number * GOLDEN_ANGLE
        slots = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)
        unshared = int((other_units[members] == 0).sum())
        rim = members[unshared:]
        if len(rim):  # give each slot around the rim to an object that belongs on that side
            slot_angles = np.arctan2(slots[unshared:, 1], slots[unshared:, 0])
            wanted_angles = np.arctan2(pull[rim, 1], pull[rim, 0])
            members = np.r_[members[:unshared], rim[np.argsort(wanted_angles, kind="stable")]]
            slots = np.r_[
                slots[:unshared], slots[unshared:][np.argsort(slot_angles, kind="stable")]
            ]
        points[members] = centres[home[members[0]]] + slots
    return points


def _strongest_ties(likeness: Floats, max_ties: int) -> Floats:
    """The edges from each unit to those most like it, as rows of two units and their cosine."""
    ties: dict[tuple[int, int], Any] = {}
    for first in range(len(likeness)):
        for second in np.argsort(-likeness[first], kind="stable")[:max_ties]:
            if likeness[first, second] > 0:
                ties[min(first, int(second)), max(first, int(second))] = likeness[first, second]
    return np.array([(first, second, w) for (first, second), w in sorted(ties.items())]).reshape(
        -1, 3
    )


MAX_UNITS = 400  # units in a map: those said most often
_MAX_POSITION = 32_000  # positions are whole numbers up to this


@dataclass(frozen=True, slots=True)
class UnitMap:
    """A map by one kind of unit. `units` gives each unit's number in the dictionary of its kind; a
    community's or region's own number, with its name in `names`. `placing` says how the map by
    meaning was laid out: "umap" or "pca"."""

    unit_kind: str
    units: Ints
    layout: Layout
    names: tuple[str, ...] = ()
    placing: str = ""


def build_maps(
    table: StatementTable, *, seed: int, progress: Progress, search: bool = True
) -> list[UnitMap]:
    """The maps of the statements of all sources together. A map needs at least two units, but the
    one by group is always there. Communities that no run has stored are computed if `search`;
    otherwise they get no map."""
    group, predicate, object_index, topic = table.group, table.predicate, table.object, table.topic
    count = table.count
    progress.stage("maps", 4)
    _, object_communities, members = find_communities(
        table, group, object_index, count, seed, search=search
    )
    progress.advance()
    maps_built = []
    for unit_kind, unit in (
        ("group", group),
        ("community", object_communities[object_index] if len(object_index) else object_index),
        ("topic", topic),
        ("predicate", predicate),
    ):
        unit_rows, units, numbers = _select_units(unit, count, none=unit_kind == "topic")
        if len(units) >= 2 or unit_kind == "group":
            layout = lay_out(
                numbers[unit_rows],
                object_index[unit_rows],
                count[unit_rows],
                len(units),
                len(table.objects),
                seed=seed,
            )
            names = (
                tuple(_community_name(table, members[int(u)]) for u in units)
                if unit_kind == "community"
                else ()
            )
            maps_built.append(UnitMap(unit_kind, units, layout, names))
        if unit_kind != "group":
            progress.advance()
    return maps_built


class Communities(NamedTuple):
    """The community of each group and of each object, -1 for none; and the groups in each
    community."""

    of_groups: Ints
    of_objects: Ints
    members: list[list[int]]


def find_communities(
    table: StatementTable,
    group: Ints,
    object_index: Ints,
    count: Ints,
    seed: int,
    *,
    search: bool = True,
) -> Communities:
    """The community of each group and object, and the groups in each community, those with most
    statements first.

    Communities are those of `kgbias.graph.structure`: Louvain (Blondel et al. 2008) on groups and
    objects, with edges weighted by how often the two were tied. Those of a single run are taken
    from its store if it has them. An object of only one group is always in that group's community,
    so it is left out of the search and counts only as weight of the group.
    """
    import networkx as nx

    group_count, object_count = len(table.groups), len(table.objects)
    group_communities, object_communities = np.full(group_count, -1), np.full(object_count, -1)
    stored = table.runs[0].centralities() if len(table.runs) == 1 else []
    group_totals = np.bincount(group, count, minlength=group_count)
    for place in stored:
        if place.kind == "group" and (number := table.groups.find(place.node_id)) >= 0:
            group_communities[number] = place.community
        if place.kind == "object" and (number := table.objects.find(place.node_id)) >= 0:
            object_communities[number] = place.community
    if search and not stored:
        keys, inverse = np.unique(group * object_count + object_index, return_inverse=True)
        weight = np.bincount(inverse, count)
        degree = np.bincount(keys % max(object_count, 1), minlength=object_count)
        graph = nx.Graph()
        graph.add_nodes_from(("group", int(group_number)) for group_number in np.unique(group))
        for key, pair_weight in zip(keys.tolist(), weight.tolist(), strict=True):
            group_number, object_number = divmod(key, object_count)
            ends = (
                ("group", group_number),
                ("group", group_number)
                if degree[object_number] == 1
                else ("object", object_number),
            )
            # An object of one group has nothing to join: its weight stays as a loop at the group,
            # and the graph stays small.
            earlier_weight = graph.get_edge_data(*ends, {"weight": 0})["weight"]
            graph.add_edge(*ends, weight=earlier_weight + pair_weight)
        node_sets = nx.community.louvain_communities(graph, weight="weight", seed=seed)
        node_sets.sort(
            key=lambda node_set: (
                -sum(group_totals[n] for kind, n in node_set if kind == "group"),
                min(node_set),
            )
        )
        for number, node_set in enumerate(node_sets):
            for kind, node in node_set:
                communities = group_communities if kind == "group" else object_communities
                communities[node] = number
        is_unshared = (degree[object_index] == 1) & (object_communities[object_index] < 0)
        object_communities[object_index[is_unshared]] = group_communities[group[is_unshared]]
    total = max([-1, *group_communities.tolist(), *object_communities.tolist()]) + 1
    members = [
        sorted(
            np.flatnonzero(group_communities == n).tolist(),
            key=lambda group_number: (-group_totals[group_number], group_number),
        )
        for n in range(total)
    ]
    return Communities(group_communities, object_communities, members)


class _SelectedUnits(NamedTuple):
    """The rows that belong to the units of a map, these units, and each row's place among them, -1
    for none."""

    rows: Ints
    units: Ints
    numbers: Ints


def _select_units(unit: Ints, count: Ints, *, none: bool) -> _SelectedUnits:
    """The rows that belong to the units said most often, these units, and each row's place among
    them. With `none`, 0 means no unit; a negative number always does."""
    has_unit = unit >= (1 if none else 0)
    unit_totals = np.bincount(unit[has_unit], count[has_unit]) if has_unit.any() else np.zeros(0)
    units = np.sort(
        np.argsort(-unit_totals, kind="stable")[: min(MAX_UNITS, int((unit_totals > 0).sum()))]
    )
    place = np.full(max(len(unit_totals), 1), -1)
    place[units] = np.arange(len(units))
    numbers = np.where(has_unit, place[np.where(has_unit, unit, 0)], -1)
    return _SelectedUnits(np.flatnonzero(numbers >= 0), units, numbers)


def _community_name(table: StatementTable, groups: Sequence[int]) -> str:
    names = [table.groups.texts[g] for g in groups[:3]]
    more = f" and {len(groups) - 3} more" if len(groups) > 3 else ""
    return (", ".join(names) + more) if names else "no group"


def build_block(maps_built: Sequence[UnitMap]) -> ColumnBlock:
    """The maps in the page's format."""
    block = ColumnBlock()
    for unit_map in maps_built:
        layout = unit_map.layout
        reach = float(np.abs(layout.units).max(initial=0) + layout.radii.max(initial=1))
        reach = max(reach, float(np.abs(np.nan_to_num(layout.objects)).max(initial=0)))
        # As whole numbers of 16 bits, which take a quarter of the room.
        factor = _MAX_POSITION / reach
        block.add_numbers(f"{unit_map.unit_kind}.unit", unit_map.units)
        block.add_numbers(
            f"{unit_map.unit_kind}.centres", np.round(layout.units.ravel() * factor), "i16"
        )
        block.add_numbers(f"{unit_map.unit_kind}.radii", np.round(layout.radii * factor))
        block.add_numbers(f"{unit_map.unit_kind}.home", layout.home + 1)
        block.add_numbers(
            f"{unit_map.unit_kind}.points",
            np.nan_to_num(np.round(layout.objects.ravel() * factor)),
            "i16",
        )
        block.add_numbers(f"{unit_map.unit_kind}.step", [max(1, round(factor))])
        block.add_numbers(f"{unit_map.unit_kind}.ties", layout.ties[:, :2].ravel())
        block.add_numbers(f"{unit_map.unit_kind}.likeness", np.round(layout.ties[:, 2] * 1000))
        if unit_map.names:
            block.add_texts(f"{unit_map.unit_kind}.name", unit_map.names)
    return block
