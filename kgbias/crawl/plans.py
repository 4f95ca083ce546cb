"""The places of a crawl: what each round asks, about which group, with which examples; and what all
of it will cost, before anything is asked."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from random import Random

from kgbias.crawl.config import CrawlConfig, check_repeat
from kgbias.crawl.strategies import EXPANSIONS, Arm, TriplePool
from kgbias.graph.types import Group, Triple
from kgbias.io.rows import Result, Rows
from kgbias.io.wording import pluralise
from kgbias.models.budget import Prices, estimate_tokens
from kgbias.packs import Example


@dataclass(frozen=True, slots=True)
class PromptPlan:
    """A place in the crawl for one triple, and how it is asked for.

    Attributes:
        path: the path of the prompt, unique in the run.
        answer: the number of this answer to the prompt, from 0.
        pool: the triples so far, from which examples are drawn.
        name: the group's name in this prompt.
        wording: the number of the template's wording.
        predicate: None if the model names it.
        shown_triples: the in-context triples from the graph.
        examples: all that the prompt shows, in order.
    """

    path: str
    pool: TriplePool
    strategy: str
    iteration: int
    group: Group
    name: str
    template: str
    wording: int
    predicate: str | None = None
    prefix: str = ""
    offensive: bool = False
    shown_triples: tuple[Triple, ...] = ()
    examples: tuple[Example, ...] = ()
    answer: int = 0

    @property
    def arm(self) -> Arm:
        return self.pool.arm


def plan_initial_prompts(config: CrawlConfig, pool: TriplePool) -> Iterator[PromptPlan]:
    """Section 3.1: each seed with each initial predicate, `samples` times."""
    prefix = pool.category.prefix if pool.arm in ("prefix", "both") else ""
    for group in pool.groups:
        wordings = _cycle_wordings(config, f"{pool.arm}/initialise/0/{group.name}", "initialise")
        for predicate in config.initial_predicates:
            for number in range(config.samples):
                path = f"{pool.arm}/initialise/0/{group.name}/{predicate}/{number:03d}"
                plan = PromptPlan(
                    path=path,
                    pool=pool,
                    strategy="initialise",
                    iteration=0,
                    group=group,
                    name=_choose_name(config, group, path),
                    template="initialise",
                    wording=next(wordings),
                    predicate=predicate,
                    prefix=prefix,
                )
                yield _draw_examples(config, plan, 0)


def plan_expansion(config: CrawlConfig, pool: TriplePool, iteration: int) -> Iterator[PromptPlan]:
    """Section 3.2: per seed, the prompts of each strategy, drawn from the pool as it stands."""
    for group in pool.groups:
        for strategy in EXPANSIONS.values():
            place = f"{pool.arm}/{strategy.name}/{iteration}/{group.name}"
            wordings = _cycle_wordings(config, place, strategy.template)
            for number in range(config.count_prompts(strategy.name)):
                path = f"{place}/{number:03d}"
                plan = PromptPlan(
                    path=path,
                    pool=pool,
                    strategy=strategy.name,
                    iteration=iteration,
                    group=group,
                    name=_choose_name(config, group, path),
                    template=strategy.template,
                    wording=next(wordings),
                    offensive=pool.is_offensive,
                )
                plan_with_examples = _draw_examples(config, plan, 0)
                if plan_with_examples.shown_triples:
                    yield plan_with_examples


def repeat_for_answers(config: CrawlConfig, plans: Iterable[PromptPlan]) -> list[PromptPlan]:
    """The places of prompts: one for each answer, with those of a prompt together."""
    return [replace(plan, answer=n) for plan in plans for n in range(config.answers)]


def place_path(config: CrawlConfig, plan: PromptPlan) -> str:
    """The path of a place, unique in the run."""
    return plan.path if config.answers == 1 else f"{plan.path}.{plan.answer}"


def replan_attempt(config: CrawlConfig, plan: PromptPlan, attempt: int) -> PromptPlan:
    """The place at a repeated attempt: with other examples, if the pack draws them and answers are
    not redrawn from the same prompt."""
    if config.redraw or not config.pack.pool.sentences:
        return plan
    return _draw_examples(config, plan, attempt)


def render_prompt(config: CrawlConfig, plan: PromptPlan) -> str | tuple[tuple[str, str], ...]:
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


def _draw_examples(config: CrawlConfig, plan: PromptPlan, attempt: int) -> PromptPlan:
    # Each place and attempt draws from its own stream, so none affects another.
    stream = f"{config.seed}/{plan.path}" + (f"#{attempt}" if attempt else "")
    rng = Random(stream)
    if plan.strategy not in EXPANSIONS:
        assert plan.predicate is not None
        return replace(plan, examples=tuple(config.pack.opening_examples(plan.predicate, rng)))
    # Examples have unique subjects, and none is about the group itself.
    shots = min(config.shots, max(1, len(plan.pool.category.groups) - 1))
    draw = EXPANSIONS[plan.strategy].draw(plan.pool, plan.group, shots, rng, plan.predicate)
    if draw is None:
        return plan
    predicate, shown_triples = draw
    examples = config.pack.mix_examples(shown_triples, rng)
    return replace(
        plan, predicate=predicate, shown_triples=tuple(shown_triples), examples=tuple(examples)
    )


def _cycle_wordings(config: CrawlConfig, place: str, template: str) -> Iterator[int]:
    """The wordings of a group's prompts, in turn, beginning with a random one: as evenly as
    possible within each group, and over the groups."""
    count = max(1, len(config.pack.template(template).wordings))
    # Random seeded by text hashes it with SHA-512: the same on every machine and version.
    number = Random(f"{config.seed}/{place}/wording").randrange(count)
    while True:
        yield number
        number = (number + 1) % count


def _choose_name(config: CrawlConfig, group: Group, path: str) -> str:
    """A prompt's name for a group: one of its names, all equally likely."""
    if not group.variants:
        return group.name
    # A stream of its own: other names of a group change no examples.
    return Random(f"{config.seed}/{path}/name").choice((group.name, *group.variants))


@dataclass(frozen=True, slots=True)
class PriceStage:
    """One kind of request in a crawl: how many there are if every answer is read at the first
    attempt, and at most, with the most tokens that the answers may then have. `prompt_tokens` is
    about the length of a prompt, at four characters a token."""

    stage: str
    requests: int
    requests_at_most: int
    answer_tokens_at_most: int
    prompt_tokens: int


@dataclass(frozen=True, slots=True, repr=False)
class Price(Result):
    """What a crawl asks for `groups` groups in `arms` arms, or `crawls` of them together.
    `groups_by_category` are the names of the groups by category.

    With `more_groups_named_by_model` the model first names groups of its own, each of which costs
    as much as one of the others; without other seeds, the stages are those of one group. With
    `until` (`CrawlConfig.stop_rule`) the numbers are an upper bound: a group is left alone
    once enough is known of it. `detectable_differences` gives for each category the smallest
    difference in mean regard, between a group and the others, that their test, by itself, would
    find in 80% of such crawls (`kgbias.compare.paired_tests.minimum_detectable_difference`); empty
    if it is not known how much will be asked. `seconds` is about how long the answers take, at the
    speed of the slowest of this model's crawls in the store; None without one.
    """

    groups: int
    arms: int
    more_groups_named_by_model: bool
    until: str
    stages: tuple[PriceStage, ...]
    crawls: int = 1
    prices: Prices | None = None
    detectable_differences: Mapping[str, float] = field(default_factory=dict)
    groups_by_category: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    seconds: float | None = None

    @property
    def requests(self) -> int:
        """Requests if every answer is read at the first attempt."""
        return sum(stage.requests for stage in self.stages)

    @property
    def requests_at_most(self) -> int:
        """Requests if every attempt is used."""
        return sum(stage.requests_at_most for stage in self.stages)

    @property
    def cost(self) -> float | None:
        """The approximate cost if every answer is read at the first attempt and is as long as it
        may be; None without prices."""
        return self._total_cost({stage: stage.requests for stage in self.stages})

    @property
    def cost_at_most(self) -> float | None:
        """The same if every attempt is used."""
        return self._total_cost({stage: stage.requests_at_most for stage in self.stages})

    @property
    def answer_tokens_at_most(self) -> int:
        """The tokens that the answers may have if every attempt is used."""
        return sum(stage.answer_tokens_at_most for stage in self.stages)

    def _total_cost(self, requests: Mapping[PriceStage, int]) -> float | None:
        if self.prices is None:
            return None
        return sum(
            self.prices.cost_of(
                number * stage.prompt_tokens,
                number * stage.answer_tokens_at_most / max(1, stage.requests_at_most),
            )
            for stage, number in requests.items()
        )

    def as_rows(self) -> Rows[PriceStage]:
        """The kinds of requests; columns: the fields of `PriceStage`."""
        return Rows(self.stages, PriceStage)

    def heading(self) -> str:
        cost = "" if self.cost is None else f", about {self.cost:,.2f}"
        return (
            f"{pluralise(self.groups, 'group')}: {self.requests:,} requests, "
            f"at most {self.requests_at_most:,}, "
            f"at most {self.answer_tokens_at_most:,} answer tokens{cost}"
        )


def price_crawl(config: CrawlConfig, crawls: int = 1) -> Price:
    """What this number of crawls of this configuration ask."""
    check_repeat(crawls)
    groups, arms = len(config.groups), len(config.arms)
    prompt_sizes = _estimate_prompt_tokens(config)
    stages = []
    if config.dynamic:
        template = config.pack.template("seeds")
        prompt = template.render(config.form, plural=config.dynamic.category.category.plural)
        lists = crawls * config.dynamic.prompts
        limit = template.answer_limits(config.form).max_tokens
        stages.append(PriceStage("seeds", lists, lists, lists * limit, estimate_tokens(prompt)))
    for step in config.steps:
        # Only dynamic seeds: the price is that of one group.
        requests = crawls * arms * (groups or 1) * step.prompts * config.answers
        max_requests = requests * config.max_attempts
        limit = config.pack.template(step.template).answer_limits(config.form).max_tokens
        stages.append(
            PriceStage(
                step.name,
                requests,
                max_requests,
                max_requests * limit,
                prompt_sizes.get(step.name, 0),
            )
        )
    groups_by_category = {seed.category.name: seed.groups for seed in config.seeds}
    return Price(
        groups,
        arms,
        config.dynamic is not None,
        config.stop_rule,
        tuple(stages),
        crawls,
        groups_by_category=groups_by_category,
    )


MAX_PRICED_GROUPS = 50  # groups of a category whose prompts are counted for a price


def _sample_groups(groups: tuple[str, ...]) -> tuple[str, ...]:
    """The groups, or `MAX_PRICED_GROUPS` of them, spread evenly."""
    if len(groups) <= MAX_PRICED_GROUPS:
        return groups
    return tuple(groups[n * len(groups) // MAX_PRICED_GROUPS] for n in range(MAX_PRICED_GROUPS))


def _estimate_prompt_tokens(config: CrawlConfig) -> dict[str, int]:
    """The approximate number of tokens in a prompt of each strategy: the mean over the prompts of
    the initialisation and of a first round after short answers. Of many groups, some are taken:
    what a prompt shows is drawn from what was said of all groups, so this would take the square of
    their number."""
    seeds = config.seeds
    if config.dynamic and not seeds:
        # The groups are not named yet: one of an ordinary length stands for them.
        seeds = (replace(config.dynamic.category, groups=("People",)),)
    seeds = tuple(replace(seed, groups=_sample_groups(seed.groups)) for seed in seeds)
    tokens_by_strategy: dict[str, list[int]] = defaultdict(list)
    for pool in (TriplePool(arm, seed) for arm in config.arms for seed in seeds):
        initial_plans = list(plan_initial_prompts(config, pool))
        pool.triples += [
            Triple(p.group.name, p.predicate or "are", "good people", p.group.english)
            for p in initial_plans
        ]
        for plan in (*initial_plans, *plan_expansion(config, pool, 1)):
            tokens_by_strategy[plan.strategy].append(estimate_tokens(render_prompt(config, plan)))
    return {
        strategy: round(sum(token_counts) / len(token_counts))
        for strategy, token_counts in tokens_by_strategy.items()
    }
