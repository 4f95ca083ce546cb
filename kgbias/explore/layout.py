"""Where everything stands on the map: each unit a disc, each object a point in the disc of the unit
that it was said of most.

A unit is a group, a predicate, a topic or a community. Units that share objects stand close. In a
disc, what was said of this unit alone fills the core, the most said in the middle; what it shares
with others stands at the rim, on the side where they are. The same statements and seed give the
same map.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

GOLDEN = np.pi * (3 - np.sqrt(5))
_CHUNK = 4096  # objects whose units are compared at once
_MANY = 60  # units
_GAP = 1.35  # how much room a disc has around it
_DRAWN = np.array([0.992, 0.98])  # together, more from above and below: screens are wider than high


@dataclass(frozen=True, slots=True)
class Layout:
    """A map. `units` is [units, 2] and `radii` [units]; `objects` is [objects, 2], NaN for one that
    is in no unit, and `home` its unit or -1. `ties` is [ties, 3]: two units and how alike they are,
    the cosine of their objects' counts in (0, 1]. The unit of length is the distance between two
    points of a disc."""

    units: Floats
    radii: Floats
    objects: Floats
    home: Ints
    ties: Floats


def lay_out(
    unit: Ints, thing: Ints, weight: Ints, units: int, things: int, *, seed: int = 0
) -> Layout:
    """The map of statements that tie an object (`thing`) to a unit, each with how often it was said
    (`weight`). A unit has a tie to the three units that are most like it, of many units to one."""
    keys, inverse = np.unique(unit * things + thing, return_inverse=True)
    counts = np.bincount(inverse, weight).astype(np.float64)
    unit, thing = keys // max(things, 1), keys % max(things, 1)
    likeness = _likeness(unit, thing, counts, units, things)
    home = np.full(things, -1)
    order = np.lexsort((-unit, counts))  # of equals, the first unit
    home[thing[order]] = unit[order]
    sizes = np.bincount(home[home >= 0], minlength=units)
    radii = np.sqrt(np.maximum(sizes, 1)) + 1.0
    centres = _centres(likeness, radii, seed)
    said = np.bincount(thing, counts, minlength=things)
    points = _points(unit, thing, counts, home, said, centres, things)
    return Layout(centres, radii, points, home, _ties(likeness, 3 if units <= _MANY else 1))


def _likeness(unit: Ints, thing: Ints, counts: Floats, units: int, things: int) -> Floats:
    """The cosine between the counts of objects of each two units; 0 on the diagonal."""
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
    """Where each object stands in the disc of its unit."""
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
        if len(rim):  # the slots of the rim, in turn around the disc, to those whose side it is
            turn = np.arctan2(slots[alone:, 1], slots[alone:, 0])
            wanted = np.arctan2(pull[rim, 1], pull[rim, 0])
            members = np.r_[members[:alone], rim[np.argsort(wanted, kind="stable")]]
            slots = np.r_[slots[:alone], slots[alone:][np.argsort(turn, kind="stable")]]
        points[members] = centres[home[members[0]]] + slots
    return points


def _ties(likeness: Floats, most: int) -> Floats:
    """The edges from each unit to those most like it, as rows of two units and their likeness."""
    found: dict[tuple[int, int], Any] = {}
    for a in range(len(likeness)):
        for b in np.argsort(-likeness[a], kind="stable")[:most]:
            if likeness[a, b] > 0:
                found[min(a, int(b)), max(a, int(b))] = likeness[a, b]
    return np.array([(a, b, w) for (a, b), w in sorted(found.items())]).reshape(-1, 3)
