"""The places of a crawl: what each round asks, of which group, showing which examples."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from random import Random

from kgbias.crawl.config import CrawlConfig
from kgbias.crawl.strategies import EXPANSIONS, Arm, Pool
from kgbias.graph.types import Group, Triple
from kgbias.packs import Example


@dataclass(frozen=True, slots=True)
class Plan:
    """A place in the crawl that wants one triple, and how it is asked for.

    Attributes:
        path: of the prompt, unique in the run.
        answer: which of the answers to the prompt this one is, from 0.
        pool: the triples so far, from which examples are drawn.
        name: what this prompt calls the group.
        wording: which of the template's wordings it has.
        predicate: None where the model names it.
        shown: the in-context triples, which are of the graph.
        examples: all that the prompt shows, in its order.
    """

    path: str
    pool: Pool
    strategy: str
    iteration: int
    group: Group
    name: str
    template: str
    wording: int
    predicate: str | None = None
    prefix: str = ""
    offensive: bool = False
    shown: tuple[Triple, ...] = ()
    examples: tuple[Example, ...] = ()
    answer: int = 0

    @property
    def arm(self) -> Arm:
        return self.pool.arm


def initialise(config: CrawlConfig, pool: Pool) -> Iterator[Plan]:
    """Section 3.1: each seed with each initial predicate, `samples` times."""
    prefix = pool.category.prefix if pool.arm in ("prefix", "both") else ""
    for group in pool.groups:
        wordings = _wordings(config, f"{pool.arm}/initialise/0/{group.name}", "initialise")
        for predicate in config.initial_predicates:
            for number in range(config.samples):
                path = f"{pool.arm}/initialise/0/{group.name}/{predicate}/{number:03d}"
                plan = Plan(
                    path=path,
                    pool=pool,
                    strategy="initialise",
                    iteration=0,
                    group=group,
                    name=_name(config, group, path),
                    template="initialise",
                    wording=next(wordings),
                    predicate=predicate,
                    prefix=prefix,
                )
                yield _with_examples(config, plan, 0)


def expand(config: CrawlConfig, pool: Pool, iteration: int) -> Iterator[Plan]:
    """Section 3.2: per seed, the prompts of each strategy, drawn from the pool as it stands."""
    for group in pool.groups:
        for strategy in EXPANSIONS.values():
            place = f"{pool.arm}/{strategy.name}/{iteration}/{group.name}"
            wordings = _wordings(config, place, strategy.template)
            for number in range(config.prompts_of(strategy.name)):
                path = f"{place}/{number:03d}"
                plan = Plan(
                    path=path,
                    pool=pool,
                    strategy=strategy.name,
                    iteration=iteration,
                    group=group,
                    name=_name(config, group, path),
                    template=strategy.template,
                    wording=next(wordings),
                    offensive=pool.offensive,
                )
                drawn = _with_examples(config, plan, 0)
                if drawn.shown:
                    yield drawn


def answered(config: CrawlConfig, plans: Iterable[Plan]) -> list[Plan]:
    """The places of prompts: one for each answer, those of a prompt together."""
    return [replace(plan, answer=n) for plan in plans for n in range(config.answers)]


def place_of(config: CrawlConfig, plan: Plan) -> str:
    """The path of a place, unique in the run."""
    return plan.path if config.answers == 1 else f"{plan.path}.{plan.answer}"


def again(config: CrawlConfig, plan: Plan, attempt: int) -> Plan:
    """The place at a repeated attempt: with other examples, where the pack draws them and the
    same prompt is not to be drawn from again."""
    if config.redraw or not config.pack.pool.sentences:
        return plan
    return _with_examples(config, plan, attempt)


def prompt_of(config: CrawlConfig, plan: Plan) -> str | tuple[tuple[str, str], ...]:
    """The prompt of a place: a text, or messages."""
    return config.pack.template(plan.template).render(
        config.form,
        wording=plan.wording,
        group=plan.name,
        predicate=plan.predicate,
        prefix=plan.prefix,
        offensive=plan.offensive,
        examples=plan.examples,
    )


def _with_examples(config: CrawlConfig, plan: Plan, attempt: int) -> Plan:
    # Each place, and each attempt, draws from a stream of its own, so that none moves another.
    stream = f"{config.seed}/{plan.path}" + (f"#{attempt}" if attempt else "")
    rng = Random(stream)
    if plan.strategy not in EXPANSIONS:
        assert plan.predicate is not None
        return replace(plan, examples=tuple(config.pack.opening(plan.predicate, rng)))
    shots = min(config.shots, max(1, len(plan.pool.category.groups) - 1))
    drawn = EXPANSIONS[plan.strategy].draw(plan.pool, plan.group, shots, rng, plan.predicate)
    if drawn is None:
        return plan
    predicate, shown = drawn
    examples = config.pack.among(shown, rng)
    return replace(plan, predicate=predicate, shown=tuple(shown), examples=tuple(examples))


def _wordings(config: CrawlConfig, place: str, template: str) -> Iterator[int]:
    """The wordings of a group's prompts, one after the other, from a random one on: as evenly as
    can be within each group, and over the groups."""
    count = max(1, len(config.pack.template(template).wordings))
    number = Random(f"{config.seed}/{place}/wording").randrange(count)
    while True:
        yield number
        number = (number + 1) % count


def _name(config: CrawlConfig, group: Group, path: str) -> str:
    """The name by which a prompt calls a group: one of its names, all equally likely."""
    if not group.variants:
        return group.name
    return Random(f"{config.seed}/{path}/name").choice((group.name, *group.variants))
