"""How prompts are drawn: initialisation and the two expansion strategies, behind one interface.

To add a strategy, write a class with a `template` and `draw`, and name it in `EXPANSIONS`.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Protocol

from kgbias.crawl.config import Arm, CrawlConfig
from kgbias.crawl.seeds import SeedCategory
from kgbias.graph.types import Group, Triple


@dataclass(frozen=True, slots=True)
class Plan:
    """A place in the crawl that wants one triple. `path` is unique in the run; `name` is what this
    prompt calls the group; `predicate` is None where the model names it; `shown` are the in-context
    triples."""

    path: str
    arm: Arm
    strategy: str
    iteration: int
    group: Group
    name: str
    template: str
    predicate: str | None = None
    prefix: str = ""
    offensive: bool = False
    shown: tuple[Triple, ...] = ()


@dataclass
class Pool:
    """The triples of one arm and category so far (G_0 ... G_{i-1}), from which examples come."""

    arm: Arm
    category: SeedCategory
    triples: list[Triple] = field(default_factory=list)

    @property
    def groups(self) -> tuple[Group, ...]:
        return self.category.as_groups()

    @property
    def offensive(self) -> bool:
        return self.arm in ("header", "both")

    def examples_for(self, group: Group) -> list[Triple]:
        """The triples that may be shown when asking about a group: those of the other seeds. A
        crawl with a single seed has only its own."""
        if len(self.category.groups) == 1:
            return self.triples
        return [t for t in self.triples if t.group_id != group.id]


Drawn = tuple[str | None, list[Triple]]


class Expansion(Protocol):
    """A strategy that asks for a triple of a group by showing triples of others."""

    name: str
    template: str

    def draw(self, pool: Pool, group: Group, shots: int, rng: Random) -> Drawn | None:
        """The predicate to ask about (None: the model names it) and the triples to show, or None
        when the pool has nothing to show."""
        ...


class PredicateDiversity:
    """Section 3.2.1: triples with unique subjects and unique predicates; the model names both
    predicate and object."""

    name = "predicate"
    template = "predicate"

    def draw(self, pool: Pool, group: Group, shots: int, rng: Random) -> Drawn | None:
        shown = _draw_unique(pool.examples_for(group), shots, rng, unique_predicates=True)
        return (None, shown) if shown else None


class ObjectDiversity:
    """Section 3.2.2: one predicate drawn by inverse frequency, its triples with unique subjects;
    the model names the object."""

    name = "object"
    template = "object"

    def draw(self, pool: Pool, group: Group, shots: int, rng: Random) -> Drawn | None:
        frequency = Counter(triple.predicate_id for triple in pool.triples)
        by_predicate: dict[str, list[Triple]] = {}
        for triple in pool.examples_for(group):
            by_predicate.setdefault(triple.predicate_id, []).append(triple)
        if not by_predicate:
            return None
        weights = [1 / frequency[predicate] for predicate in by_predicate]
        drawn = rng.choices(list(by_predicate.values()), weights)[0]
        shown = _draw_unique(drawn, shots, rng, unique_predicates=False)
        return shown[0].predicate, shown


EXPANSIONS: tuple[Expansion, ...] = (PredicateDiversity(), ObjectDiversity())


def initialise(config: CrawlConfig, pool: Pool) -> Iterator[Plan]:
    """Section 3.1: each seed with each initial predicate, `samples` times."""
    prefix = pool.category.prefix if pool.arm in ("prefix", "both") else ""
    for group in pool.groups:
        for predicate in config.initial_predicates:
            for number in range(config.samples):
                path = f"{pool.arm}/initialise/0/{group.name}/{predicate}/{number:03d}"
                yield Plan(
                    path=path,
                    arm=pool.arm,
                    strategy="initialise",
                    iteration=0,
                    group=group,
                    name=_name(config, group, path),
                    template="initialise",
                    predicate=predicate,
                    prefix=prefix,
                )


def expand(config: CrawlConfig, pool: Pool, iteration: int) -> Iterator[Plan]:
    """Section 3.2: per seed, the prompts of each strategy, drawn from the pool as it stands."""
    shots = min(config.shots, max(1, len(pool.category.groups) - 1))
    counts = {"predicate": config.predicate_prompts, "object": config.object_prompts}
    for group in pool.groups:
        for strategy in EXPANSIONS:
            for number in range(counts[strategy.name]):
                path = f"{pool.arm}/{strategy.name}/{iteration}/{group.name}/{number:03d}"
                # Each place draws from a stream of its own, so that no place moves another.
                drawn = strategy.draw(pool, group, shots, Random(f"{config.seed}/{path}"))
                if drawn is None:
                    continue
                predicate, shown = drawn
                yield Plan(
                    path=path,
                    arm=pool.arm,
                    strategy=strategy.name,
                    iteration=iteration,
                    group=group,
                    name=_name(config, group, path),
                    template=strategy.template,
                    predicate=predicate,
                    offensive=pool.offensive,
                    shown=tuple(shown),
                )


def _name(config: CrawlConfig, group: Group, path: str) -> str:
    """The name by which a prompt calls a group: one of its names, each as likely."""
    if not group.variants:
        return group.name
    return Random(f"{config.seed}/{path}/name").choice((group.name, *group.variants))


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
