"""The augmentation arms and the expansion strategies: how each prompt's examples are drawn.

To add a strategy, write an `Expansion`, put its template in the packs of `prompts/`, and list it in
`EXPANSIONS`. The rest follows: its prompts are asked and priced, and its template is part of the
run's id.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate
from random import Random
from typing import Literal, Protocol

from kgbias.crawl.seeds import SeedCategory
from kgbias.graph.types import Group, Triple, node_id

Arm = Literal["none", "prefix", "header", "both"]
ARMS: tuple[Arm, ...] = ("none", "prefix", "header", "both")


@dataclass
class Pool:
    """The triples of one arm and category so far (G_0 ... G_{i-1}), from which examples come. They
    only grow in number."""

    arm: Arm
    category: SeedCategory
    triples: list[Triple] = field(default_factory=list)
    _frequency: Counter[str] = field(default_factory=Counter, init=False, repr=False)
    _others: "_Others | None" = field(default=None, init=False, repr=False)
    _all: "_All | None" = field(default=None, init=False, repr=False)

    @property
    def groups(self) -> tuple[Group, ...]:
        return self.category.as_groups()

    @property
    def offensive(self) -> bool:
        return self.arm in ("header", "both")

    def examples_for(self, group: Group) -> list[Triple]:
        """The triples that may be shown when asking about a group: those of the other seeds. A
        crawl with a single seed has only its own."""
        return self._of(group).triples

    def by_predicate(self, group: Group) -> dict[str, list[Triple]]:
        """The same, by the id of their predicate."""
        return self._of(group).by_predicate

    def frequency(self) -> Counter[str]:
        """How many of all triples have each predicate, by its id."""
        if self._frequency.total() != len(self.triples):
            self._frequency = Counter(triple.predicate_id for triple in self.triples)
        return self._frequency

    @property
    def all(self) -> "_All":
        """All triples by predicate, cached until there are more."""
        if self._all is None or len(self._all.triples) != len(self.triples):
            self._all = _All(tuple(self.triples))
        return self._all

    def _of(self, group: Group) -> "_Others":
        """Cached for the next prompt, which usually asks about the same group."""
        own, alone = group.id, len(self.category.groups) == 1
        if self._others is None or (self._others.group, self._others.of) != (
            own, len(self.triples),
        ):  # fmt: skip
            triples = [t for t in self.triples if alone or t.group_id != own]
            self._others = _Others(own, len(self.triples), triples)
        return self._others


@dataclass
class _Others:
    """Among the first `of` triples of a pool, those that may be shown when asking about a group."""

    group: str
    of: int
    triples: list[Triple]

    @cached_property
    def by_predicate(self) -> dict[str, list[Triple]]:
        return _by_predicate(self.triples)


@dataclass
class _All:
    """The triples of a pool, by predicate, and the bounds by which a predicate is drawn with a
    weight of 1 / (how many triples have it)."""

    triples: tuple[Triple, ...]

    @cached_property
    def by_predicate(self) -> dict[str, list[Triple]]:
        return _by_predicate(self.triples)

    @cached_property
    def predicates(self) -> list[list[Triple]]:
        return list(self.by_predicate.values())

    @cached_property
    def bounds(self) -> list[float]:
        return list(accumulate(1 / len(own) for own in self.predicates))


def _by_predicate(triples: Sequence[Triple]) -> dict[str, list[Triple]]:
    found: dict[str, list[Triple]] = {}
    for triple in triples:
        found.setdefault(triple.predicate_id, []).append(triple)
    return found


Drawn = tuple[str | None, list[Triple]]


class Expansion(Protocol):
    """A strategy that asks for a triple of a group by showing triples of others.

    Attributes:
        name: unique among the strategies; part of the path of each of its generations.
        template: the name of its prompt template.
        prompts: how many prompts it asks about each group in a round, unless
            `CrawlConfig.strategy_prompts` says; 0 for a strategy used only on request.
    """

    name: str
    template: str
    prompts: int

    def draw(
        self, pool: Pool, group: Group, shots: int, rng: Random, asked: str | None = None
    ) -> Drawn | None:
        """The predicate to ask about (None: the model names it) and the triples to show, or None
        when the pool has nothing to show. `asked` is the predicate of an earlier draw, to ask about
        again with other triples."""
        ...


class PredicateDiversity:
    """Section 3.2.1: triples with unique subjects and unique predicates; the model names both
    predicate and object."""

    name = "predicate"
    template = "predicate"
    prompts = 10

    def draw(
        self, pool: Pool, group: Group, shots: int, rng: Random, asked: str | None = None
    ) -> Drawn | None:
        if len(pool.triples) > MAX_SHUFFLED:
            shown = _draw_by_trial(
                pool.triples, group, min(shots, len(pool.all.predicates)), rng,
                unique_predicates=True,
            )  # fmt: skip
        else:
            examples = pool.examples_for(group)
            shown = _draw_unique(examples, shots, rng, unique_predicates=True)
        return (None, shown) if shown else None


class ObjectDiversity:
    """Section 3.2.2: one predicate drawn by inverse frequency, its triples with unique subjects;
    the model names the object."""

    name = "object"
    template = "object"
    prompts = 10

    def draw(
        self, pool: Pool, group: Group, shots: int, rng: Random, asked: str | None = None
    ) -> Drawn | None:
        if len(pool.triples) > MAX_SHUFFLED:
            return _draw_object_by_trial(pool, group, shots, rng, asked)
        by_predicate, frequency = pool.by_predicate(group), pool.frequency()
        if asked is not None:
            wanted = node_id("predicate", asked)
            by_predicate = {wanted: by_predicate[wanted]} if wanted in by_predicate else {}
        if not by_predicate:
            return None
        weights = [1 / frequency[predicate] for predicate in by_predicate]
        drawn = rng.choices(list(by_predicate.values()), weights)[0]
        shown = _draw_unique(drawn, shots, rng, unique_predicates=False)
        return asked or shown[0].predicate, shown


MAX_SHUFFLED = 10_000
"""Triples of a pool that are gone through for each prompt. Of more, examples are drawn by trial:
the same draw, but its work does not grow with the pool, nor that of a round with the square of the
groups. Smaller pools stay as they are, so that crawls made before ask what they asked."""
MAX_TRIALS = 1_000  # useless draws in a row, after which what they sought is taken to be absent


def _draw_unique(
    examples: Sequence[Triple], shots: int, rng: Random, *, unique_predicates: bool
) -> list[Triple]:
    """Up to `shots` triples in random order, no two with the same subject nor, if asked, the same
    predicate."""
    shown = _Unique(unique_predicates)
    for triple in rng.sample(examples, len(examples)):
        if len(shown.triples) == shots:
            break
        shown.add(triple)
    return shown.triples


def _draw_by_trial(
    examples: Sequence[Triple], group: Group, shots: int, rng: Random, *, unique_predicates: bool
) -> list[Triple]:
    """The same, of the triples that are not about this group."""
    shown = _Unique(unique_predicates)
    in_vain = 0
    while len(shown.triples) < shots and in_vain < MAX_TRIALS:
        triple = rng.choice(examples)
        added = triple.group_id != group.id and shown.add(triple)
        in_vain = 0 if added else in_vain + 1
    return shown.triples


def _draw_object_by_trial(
    pool: Pool, group: Group, shots: int, rng: Random, asked: str | None
) -> Drawn | None:
    for _ in range(MAX_TRIALS):
        if asked is None:
            (examples,) = rng.choices(pool.all.predicates, cum_weights=pool.all.bounds)
        else:
            examples = pool.all.by_predicate.get(node_id("predicate", asked), [])
        if len(examples) > MAX_TRIALS:
            shown = _draw_by_trial(examples, group, shots, rng, unique_predicates=False)
        else:
            others = [triple for triple in examples if triple.group_id != group.id]
            shown = _draw_unique(others, shots, rng, unique_predicates=False)
        if shown:
            return asked or shown[0].predicate, shown
        if asked is not None:
            return None
    return None


class _Unique:
    """Triples of which no two have the same subject nor, if asked, the same predicate."""

    def __init__(self, unique_predicates: bool) -> None:
        self.triples: list[Triple] = []
        self._unique_predicates = unique_predicates
        self._seen: set[str] = set()

    def add(self, triple: Triple) -> bool:
        """Whether it was added."""
        own = {triple.group_id, *([triple.predicate_id] if self._unique_predicates else [])}
        if not self._seen.isdisjoint(own):
            return False
        self._seen |= own
        self.triples.append(triple)
        return True


EXPANSIONS: dict[str, Expansion] = {
    strategy.name: strategy for strategy in (PredicateDiversity(), ObjectDiversity())
}
"""The strategies by name, in the order in which a round asks."""
