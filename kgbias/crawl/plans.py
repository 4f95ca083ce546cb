"""The places of a crawl: what each round asks, of which group, showing which triples."""

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

from kgbias.crawl.config import CrawlConfig
from kgbias.crawl.strategies import EXPANSIONS, Arm, Pool
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
    for group in pool.groups:
        for strategy in EXPANSIONS.values():
            for number in range(config.prompts_of(strategy.name)):
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
    """The name by which a prompt calls a group: one of its names, all equally likely."""
    if not group.variants:
        return group.name
    return Random(f"{config.seed}/{path}/name").choice((group.name, *group.variants))
