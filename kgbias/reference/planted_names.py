"""The names of the reference world's groups, and what is planted on them.

A group has eight names: two roots in four forms. A name tilts what its group says: P(statement |
name) is P(statement | group) times 2 to the power of the bits planted on the root, the name and its
form, scaled to sum to 1. The form that the crawl asks about, the group's surface form, has no tilt.
Everything is drawn by a seed from `names.toml`. No tilt is planted on a group: what is believed
about it is what the world says about it, under all its names.
"""

import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kgbias.reference.world import Statement, Truth, load_truth

NAMES_FILE = Path(__file__).with_name("names.toml")
# Each form of a name, with the ending that a root takes in it.
NAME_FORMS = {"{}s": "", "{} people": "", "people from {}": "ia", "{} folk": "ish"}
NAMES_PER_GROUP = 2 * len(NAME_FORMS)  # of each of its two roots, one in each form

Array = NDArray[np.float64]


@dataclass(frozen=True)
class PlantedName:
    """A name of a group; `is_surface_form` marks the group's surface form, which has no tilt."""

    group: str
    text: str
    form: str
    root: str
    is_surface_form: bool


class _PlantedAssociations(NamedTuple):
    """What is planted for single names, for roots, and for habits."""

    names: list[tuple[int, int]]
    roots: list[tuple[int, int]]
    habits: Array


class PlantedNames:
    """Names and tilts. Tables are [names, statements] and [groups, statements], over the statements
    that every group may say, in bits."""

    def __init__(self, truth: Truth, text: str) -> None:
        data = tomllib.loads(text)
        self.truth = truth
        self.hash = sha256(text.encode()).hexdigest()[:16]
        self.planted: Mapping[str, Any] = data["planted"]
        self.groups = list(truth.groups)
        self.names: list[PlantedName] = []
        for group, second_root in zip(self.groups, data["roots"], strict=True):
            first_root = group.removesuffix(" people")
            first_root = first_root.removesuffix("s") if first_root == group else first_root
            for root in (first_root, second_root):
                for form, ending in NAME_FORMS.items():
                    name_text = form.replace("{}", root + ending)
                    self.names.append(PlantedName(group, name_text, form, root, name_text == group))

    @cached_property
    def statements(self) -> list[Statement]:
        signatures = {s for group in self.truth.groups.values() for s in group.signature}
        return [s for s in self.truth.statements if s not in signatures]

    @cached_property
    def group_bits(self) -> Array:
        """log2 P(statement | group), for the group as crawled."""
        rows = [self.truth.joint_distribution(g) for g in self.groups]
        return np.array([[math.log2(row[s]) for s in self.statements] for row in rows])

    @cached_property
    def lifts(self) -> Array:
        """The lifts of groups, without tilts: log2 P(statement | group) minus its mean over
        statements, minus the mean of the category's other groups, in bits."""
        centred: Array = self.group_bits - self.group_bits.mean(axis=1, keepdims=True)
        group_lifts: Array = np.empty_like(centred)
        for category in self.truth.categories:
            category_places = [self.groups.index(g) for g in category.groups]
            total = centred[category_places].sum(axis=0)
            group_lifts[category_places] = centred[category_places] - (
                total - centred[category_places]
            ) / (len(category_places) - 1)
        return group_lifts

    @cached_property
    def _associations(self) -> _PlantedAssociations:
        """The associations of single names as (name, statement), those of roots as (first name,
        statement), and the tilts of habits [names, statements]."""
        planted, rng = self.planted, Random(self.planted["seed"])
        columns = range(len(self.statements))
        habits = np.zeros((len(self.names), len(columns)))
        for form in NAME_FORMS:
            same_form = [n for n, name in enumerate(self.names) if name.form == form]
            for s in rng.sample(columns, planted["form_habits"]):
                habits[same_form, s] += planted["form_bits"]
        for n, name in enumerate(self.names):
            count = planted["noisy_habits" if name.group in planted["noisy"] else "habits"]
            for s in rng.sample(columns, count):
                habits[n, s] += planted["habit_bits"] * rng.choice((-1, 1))
        habits[[name.is_surface_form for name in self.names]] = 0.0
        open_places = [(int(g), int(s)) for g, s in zip(*np.nonzero(self._open_cells), strict=True)]
        pairs = [(g, s) for g, s in open_places if self.groups[g] not in planted["noisy"]]
        rng.shuffle(pairs)
        name_associations, root_associations = [], []
        for g, s in pairs[: planted["singles"]]:
            group_names = range(g * NAMES_PER_GROUP, (g + 1) * NAMES_PER_GROUP)
            name_associations.append(
                (rng.choice([n for n in group_names if not self.names[n].is_surface_form]), s)
            )
        for g, s in pairs[planted["singles"] :][: planted["of_roots"]]:
            second_root = g * NAMES_PER_GROUP + len(NAME_FORMS)  # never asked in a crawl
            root_associations.append((second_root, s))
        return _PlantedAssociations(name_associations, root_associations, habits)

    @cached_property
    def _open_cells(self) -> NDArray[np.bool_]:
        """Where an association may be planted: where the group's own lift is small, and above 0."""
        return np.asarray((self.lifts > 0) & (self.lifts < self.planted["lift_below"]))

    @property
    def name_associations(self) -> list[tuple[int, int]]:
        """Associations of one name: (name, statement)."""
        return self._associations.names

    @property
    def root_associations(self) -> list[tuple[int, int]]:
        """Associations of one root: (the first of its names, which are consecutive; statement)."""
        return self._associations.roots

    @cached_property
    def tilts(self) -> Array:
        """The tilts in bits, [names, statements]; 0 for names as crawled."""
        name_associations, root_associations, habits = self._associations
        tilts = habits.copy()
        for n, s in name_associations:
            tilts[n, s] += self.planted["single_bits"]
        for n, s in root_associations:
            tilts[n : n + len(NAME_FORMS), s] += self.planted["root_bits"]
        return tilts

    def joint_distribution(self, place: int) -> dict[Statement, float]:
        """P(statement | name), summing to 1, including statements that only its group says."""
        base = self.truth.joint_distribution(self.names[place].group)
        tilts = dict(zip(self.statements, self.tilts[place], strict=True))
        weights = {s: p * 2.0 ** tilts.get(s, 0.0) for s, p in base.items()}
        total = sum(weights.values())
        return {s: w / total for s, w in weights.items()}

    @cached_property
    def name_bits(self) -> Array:
        """log2 P(statement | name), [names, statements]."""
        rows = [self.joint_distribution(n) for n in range(len(self.names))]
        return np.array([[math.log2(row[s]) for s in self.statements] for row in rows])


@cache
def load_names() -> PlantedNames:
    """The names of the shipped world."""
    return PlantedNames(load_truth(), NAMES_FILE.read_text("utf-8"))
