"""The augmentation arms and the expansion strategies: how each prompt's examples are drawn.

To add a strategy, write an `Expansion`, put its template in the packs of `prompts/`, and list it in
`EXPANSIONS`. The rest follows: its prompts are asked and priced, and its template is part of the
run's id.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
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
        found: dict[str, list[Triple]] = {}
        for triple in self.triples:
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
        shown = _draw_unique(pool.examples_for(group), shots, rng, unique_predicates=True)
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


def _draw_unique(
    examples: Sequence[Triple], shots: int, rng: Random, *, unique_predicates: bool
) -> list[Triple]:
    """Up to `shots` triples in random order, no two with the same subject nor, if asked, the same
    predicate."""
    subjects: set[str] = set()
    predicates: set[str] = set()
    shown: list[Triple] = []
    for triple in rng.sample(examples, len(examples)):
        if len(shown) == shots:
            break
        if triple.group_id in subjects:
            continue
        if unique_predicates and triple.predicate_id in predicates:
            continue
        subjects.add(triple.group_id)
        predicates.add(triple.predicate_id)
        shown.append(triple)
    return shown


EXPANSIONS: dict[str, Expansion] = {
    strategy.name: strategy for strategy in (PredicateDiversity(), ObjectDiversity())
}
"""The strategies by name, in the order in which a round asks."""
