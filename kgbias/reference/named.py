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
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kgbias.reference.world import Statement, Truth, load_truth

NAMES = Path(__file__).with_name("names.toml")
FORMS = {"{}s": "", "{} people": "", "people from {}": "ia", "{} folk": "ish"}

EACH = 2 * len(FORMS)  # names per group

Array = NDArray[np.float64]


@dataclass(frozen=True)
class PlantedName:
    """A name of a group; `crawled` marks the group's surface form, which has no tilt."""

    group: str
    text: str
    form: str
    root: str
    crawled: bool


class Names:
    """Names and tilts. Tables are [names, statements] and [groups, statements], over the statements
    that every group may say, in bits."""

    def __init__(self, truth: Truth, text: str) -> None:
        data = tomllib.loads(text)
        self.truth = truth
        self.hash = sha256(text.encode()).hexdigest()[:16]
        self.planted: Mapping[str, Any] = data["planted"]
        self.groups = list(truth.groups)
        self.names: list[PlantedName] = []
        for group, second in zip(self.groups, data["roots"], strict=True):
            first = group.removesuffix(" people")
            first = first.removesuffix("s") if first == group else first
            for root in (first, second):
                for form, ending in FORMS.items():
                    said = form.replace("{}", root + ending)
                    self.names.append(PlantedName(group, said, form, root, said == group))

    @cached_property
    def statements(self) -> list[Statement]:
        own = {s for group in self.truth.groups.values() for s in group.signature}
        return [s for s in self.truth.statements if s not in own]

    @cached_property
    def base(self) -> Array:
        """log2 P(statement | group), for the group as crawled."""
        rows = [self.truth.joint(g) for g in self.groups]
        return np.array([[math.log2(row[s]) for s in self.statements] for row in rows])

    @cached_property
    def lifts(self) -> Array:
        """The lifts of groups, without tilts: log2 P(statement | group) minus its mean over
        statements, minus the mean of the category's other groups, in bits."""
        based: Array = self.base - self.base.mean(axis=1, keepdims=True)
        found: Array = np.empty_like(based)
        for category in self.truth.categories:
            own = [self.groups.index(g) for g in category.groups]
            total = based[own].sum(axis=0)
            found[own] = based[own] - (total - based[own]) / (len(own) - 1)
        return found

    @cached_property
    def _drawn(self) -> tuple[list[tuple[int, int]], list[tuple[int, int]], Array]:
        """The associations of single names as (name, statement), those of roots as (first name,
        statement), and the tilts of habits [names, statements]."""
        planted, rng = self.planted, Random(self.planted["seed"])
        columns = range(len(self.statements))
        habits = np.zeros((len(self.names), len(columns)))
        for form in FORMS:
            alike = [n for n, name in enumerate(self.names) if name.form == form]
            for s in rng.sample(columns, planted["form_habits"]):
                habits[alike, s] += planted["form_bits"]
        for n, name in enumerate(self.names):
            count = planted["noisy_habits" if name.group in planted["noisy"] else "habits"]
            for s in rng.sample(columns, count):
                habits[n, s] += planted["habit_bits"] * rng.choice((-1, 1))
        habits[[name.crawled for name in self.names]] = 0.0
        open_ = [(int(g), int(s)) for g, s in zip(*np.nonzero(self._open), strict=True)]
        pairs = [(g, s) for g, s in open_ if self.groups[g] not in planted["noisy"]]
        rng.shuffle(pairs)
        singles, of_roots = [], []
        for g, s in pairs[: planted["singles"]]:
            own = range(g * EACH, (g + 1) * EACH)
            singles.append((rng.choice([n for n in own if not self.names[n].crawled]), s))
        for g, s in pairs[planted["singles"] :][: planted["of_roots"]]:
            of_roots.append((g * EACH + len(FORMS), s))  # the second root, never asked in a crawl
        return singles, of_roots, habits

    @cached_property
    def _open(self) -> NDArray[np.bool_]:
        return np.asarray((self.lifts > 0) & (self.lifts < self.planted["lift_below"]))

    @property
    def singles(self) -> list[tuple[int, int]]:
        """Associations of one name: (name, statement)."""
        return self._drawn[0]

    @property
    def of_roots(self) -> list[tuple[int, int]]:
        """Associations of one root: (the first of its names, which are consecutive; statement)."""
        return self._drawn[1]

    @cached_property
    def tilts(self) -> Array:
        """The tilts in bits, [names, statements]; 0 for names as crawled."""
        singles, of_roots, habits = self._drawn
        found = habits.copy()
        for n, s in singles:
            found[n, s] += self.planted["single_bits"]
        for n, s in of_roots:
            found[n : n + len(FORMS), s] += self.planted["root_bits"]
        return found

    def joint(self, place: int) -> dict[Statement, float]:
        """P(statement | name), summing to 1, including statements that only its group says."""
        base = self.truth.joint(self.names[place].group)
        tilts = dict(zip(self.statements, self.tilts[place], strict=True))
        weights = {s: p * 2.0 ** tilts.get(s, 0.0) for s, p in base.items()}
        total = sum(weights.values())
        return {s: w / total for s, w in weights.items()}

    @cached_property
    def bits(self) -> Array:
        """log2 P(statement | name), [names, statements]."""
        rows = [self.joint(n) for n in range(len(self.names))]
        return np.array([[math.log2(row[s]) for s in self.statements] for row in rows])


@cache
def load_names() -> Names:
    """The names of the shipped world."""
    return Names(load_truth(), NAMES.read_text("utf-8"))
