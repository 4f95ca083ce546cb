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
class TriplePool:
    """The triples of one arm and category so far (G_0 ... G_{i-1}), from which examples come. They
    only grow in number."""

    arm: Arm
    category: SeedCategory
    triples: list[Triple] = field(default_factory=list)
    _frequency: Counter[str] = field(default_factory=Counter, init=False, repr=False)
    _other_triples: "_OtherTriples | None" = field(default=None, init=False, repr=False)
    _predicate_index: "_PredicateIndex | None" = field(default=None, init=False, repr=False)

    @property
    def groups(self) -> tuple[Group, ...]:
        return self.category.as_groups()

    @property
    def is_offensive(self) -> bool:
        return self.arm in ("header", "both")

    def examples_for(self, group: Group) -> list[Triple]:
        """The triples that may be shown when asking about a group: those of the other seeds. A
        crawl with a single seed has only its own."""
        return self._select_examples(group).triples

    def by_predicate(self, group: Group) -> dict[str, list[Triple]]:
        """The same, by the id of their predicate."""
        return self._select_examples(group).by_predicate

    def count_predicates(self) -> Counter[str]:
        """How many of all triples have each predicate, by its id."""
        if self._frequency.total() != len(self.triples):
            self._frequency = Counter(triple.predicate_id for triple in self.triples)
        return self._frequency

    @property
    def predicate_index(self) -> "_PredicateIndex":
        """All triples by predicate, cached until there are more."""
        if self._predicate_index is None or len(self._predicate_index.triples) != len(self.triples):
            self._predicate_index = _PredicateIndex(tuple(self.triples))
        return self._predicate_index

    def _select_examples(self, group: Group) -> "_OtherTriples":
        """Cached for the next prompt, which usually asks about the same group."""
        group_id, is_only_group = group.id, len(self.category.groups) == 1
        cached, pool_size = self._other_triples, len(self.triples)
        if cached is not None and cached.group == group_id and cached.pool_size == pool_size:
            return cached
        triples = [t for t in self.triples if is_only_group or t.group_id != group_id]
        self._other_triples = _OtherTriples(group_id, pool_size, triples)
        return self._other_triples


@dataclass
class _OtherTriples:
    """Among the first `pool_size` triples of a pool, those that may be shown when asking about a
    group."""

    group: str
    pool_size: int
    triples: list[Triple]

    @cached_property
    def by_predicate(self) -> dict[str, list[Triple]]:
        return _group_by_predicate(self.triples)


@dataclass
class _PredicateIndex:
    """The triples of a pool, by predicate, and the bounds by which a predicate is drawn with a
    weight of 1 / (how many triples have it)."""

    triples: tuple[Triple, ...]

    @cached_property
    def by_predicate(self) -> dict[str, list[Triple]]:
        return _group_by_predicate(self.triples)

    @cached_property
    def predicates(self) -> list[list[Triple]]:
        return list(self.by_predicate.values())

    @cached_property
    def cumulative_weights(self) -> list[float]:
        return list(accumulate(1 / len(same_predicate) for same_predicate in self.predicates))


def _group_by_predicate(triples: Sequence[Triple]) -> dict[str, list[Triple]]:
    by_predicate: dict[str, list[Triple]] = {}
    for triple in triples:
        by_predicate.setdefault(triple.predicate_id, []).append(triple)
    return by_predicate


ExampleDraw = tuple[str | None, list[Triple]]


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
        self,
        pool: TriplePool,
        group: Group,
        shots: int,
        rng: Random,
        asked_predicate: str | None = None,
    ) -> ExampleDraw | None:
        """The predicate to ask about (None: the model names it) and the triples to show, or None
        when the pool has nothing to show. `asked_predicate` is the predicate of an earlier draw, to
        ask about again with other triples."""
        ...


class PredicateDiversity:
    """Section 3.2.1: triples with unique subjects and unique predicates; the model names both
    predicate and object."""

    name = "predicate"
    template = "predicate"
    prompts = 10

    def draw(
        self,
        pool: TriplePool,
        group: Group,
        shots: int,
        rng: Random,
        asked_predicate: str | None = None,
    ) -> ExampleDraw | None:
        if len(pool.triples) > MAX_SHUFFLED_TRIPLES:
            examples_shown = _draw_by_trial(
                pool.triples,
                group,
                # Of fewer predicates than shots, the last would be looked for in vain.
                min(shots, len(pool.predicate_index.predicates)),
                rng,
                unique_predicates=True,
            )
        else:
            examples = pool.examples_for(group)
            examples_shown = _draw_unique(examples, shots, rng, unique_predicates=True)
        return (None, examples_shown) if examples_shown else None


class ObjectDiversity:
    """Section 3.2.2: one predicate drawn by inverse frequency, its triples with unique subjects;
    the model names the object."""

    name = "object"
    template = "object"
    prompts = 10

    def draw(
        self,
        pool: TriplePool,
        group: Group,
        shots: int,
        rng: Random,
        asked_predicate: str | None = None,
    ) -> ExampleDraw | None:
        if len(pool.triples) > MAX_SHUFFLED_TRIPLES:
            return _draw_object_by_trial(pool, group, shots, rng, asked_predicate)
        by_predicate, frequency = pool.by_predicate(group), pool.count_predicates()
        if asked_predicate is not None:
            predicate_id = node_id("predicate", asked_predicate)
            by_predicate = (
                {predicate_id: by_predicate[predicate_id]} if predicate_id in by_predicate else {}
            )
        if not by_predicate:
            return None
        # Salinas et al. 2023, section 3.2.2: frequent predicates would crowd out the rest.
        weights = [1 / frequency[predicate] for predicate in by_predicate]
        candidates = rng.choices(list(by_predicate.values()), weights)[0]
        examples_shown = _draw_unique(candidates, shots, rng, unique_predicates=False)
        return asked_predicate or examples_shown[0].predicate, examples_shown


MAX_SHUFFLED_TRIPLES = 10_000
"""Triples of a pool that are gone through for each prompt. Of more, examples are drawn by trial:
the same draw, but its work does not grow with the pool, nor that of a round with the square of the
groups. Smaller pools stay as they are, so that crawls made before ask what they asked."""
MAX_TRIALS = 1_000  # useless draws in a row, after which what they sought is taken to be absent


def _draw_unique(
    examples: Sequence[Triple], shots: int, rng: Random, *, unique_predicates: bool
) -> list[Triple]:
    """Up to `shots` triples in random order, no two with the same subject nor, if asked, the same
    predicate."""
    unique = _UniqueExamples(unique_predicates)
    # `sample` leaves the list as it is; `shuffle` would reorder the pool's cache.
    for triple in rng.sample(examples, len(examples)):
        if len(unique.triples) == shots:
            break
        unique.add(triple)
    return unique.triples


def _draw_by_trial(
    examples: Sequence[Triple], group: Group, shots: int, rng: Random, *, unique_predicates: bool
) -> list[Triple]:
    """The same, of the triples that are not about this group."""
    unique = _UniqueExamples(unique_predicates)
    failed_trials = 0
    while len(unique.triples) < shots and failed_trials < MAX_TRIALS:
        triple = rng.choice(examples)
        is_added = triple.group_id != group.id and unique.add(triple)
        failed_trials = 0 if is_added else failed_trials + 1
    return unique.triples


def _draw_object_by_trial(
    pool: TriplePool, group: Group, shots: int, rng: Random, asked_predicate: str | None
) -> ExampleDraw | None:
    for _ in range(MAX_TRIALS):
        if asked_predicate is None:
            (examples,) = rng.choices(
                pool.predicate_index.predicates, cum_weights=pool.predicate_index.cumulative_weights
            )
        else:
            examples = pool.predicate_index.by_predicate.get(
                node_id("predicate", asked_predicate), []
            )
        if len(examples) > MAX_TRIALS:
            examples_shown = _draw_by_trial(examples, group, shots, rng, unique_predicates=False)
        else:
            of_others = [triple for triple in examples if triple.group_id != group.id]
            examples_shown = _draw_unique(of_others, shots, rng, unique_predicates=False)
        if examples_shown:
            return asked_predicate or examples_shown[0].predicate, examples_shown
        if asked_predicate is not None:
            return None
    return None


class _UniqueExamples:
    """Triples of which no two have the same subject nor, if asked, the same predicate."""

    def __init__(self, unique_predicates: bool) -> None:
        self.triples: list[Triple] = []
        self._unique_predicates = unique_predicates
        self._seen_ids: set[str] = set()

    def add(self, triple: Triple) -> bool:
        """Whether it was added."""
        ids = {triple.group_id, *([triple.predicate_id] if self._unique_predicates else [])}
        if not self._seen_ids.isdisjoint(ids):
            return False
        self._seen_ids |= ids
        self.triples.append(triple)
        return True


EXPANSIONS: dict[str, Expansion] = {
    strategy.name: strategy for strategy in (PredicateDiversity(), ObjectDiversity())
}
"""The strategies by name, in the order in which a round asks."""
