"""What a crawl will ask, before it asks."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from kgbias.crawl.config import CrawlConfig
from kgbias.crawl.plans import expand, initialise, prompt_of
from kgbias.crawl.repeat import check_repeat
from kgbias.crawl.strategies import Pool
from kgbias.graph.types import Triple
from kgbias.models.budget import Prices, about_tokens


@dataclass(frozen=True, slots=True)
class Stage:
    """One kind of request of a crawl: how many there are if every answer is read at the first
    attempt, and at most, with the tokens that the answers may then hold. `prompt_tokens` is about
    what a prompt has, at four characters a token."""

    stage: str
    requests: int
    requests_at_most: int
    answer_tokens_at_most: int
    prompt_tokens: int


@dataclass(frozen=True, slots=True)
class Price:
    """What a crawl asks for `groups` groups in `arms` arms, or `crawls` of them together.

    With `more_groups_named_by_model` the model names groups of its own first, each of which costs
    as much as one of the others; without other seeds, the stages are those of one group. With
    `until_coverage` or `until_width` the numbers are an upper bound: a group is left alone once
    enough is known of it. `shows` is for each category the smallest difference in mean regard,
    between a group and the others, that their test, by itself, would find in 80% of such crawls
    (`kgbias.compare.paired`); without any where it is not known how much will be asked.
    """

    groups: int
    arms: int
    more_groups_named_by_model: bool
    until: str
    stages: tuple[Stage, ...]
    crawls: int = 1
    prices: Prices | None = None
    shows: Mapping[str, float] = field(default_factory=dict)

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
        """About the money that it costs if every answer is read at the first attempt and as long as
        it may be; None without prices."""
        return self._cost({stage: stage.requests for stage in self.stages})

    @property
    def cost_at_most(self) -> float | None:
        """The same if every attempt is used."""
        return self._cost({stage: stage.requests_at_most for stage in self.stages})

    @property
    def answer_tokens_at_most(self) -> int:
        """The tokens that the answers may have if every attempt is used."""
        return sum(stage.answer_tokens_at_most for stage in self.stages)

    def _cost(self, requests: Mapping[Stage, int]) -> float | None:
        if self.prices is None:
            return None
        return sum(
            self.prices.of(
                number * stage.prompt_tokens,
                number * stage.answer_tokens_at_most / max(1, stage.requests_at_most),
            )
            for stage, number in requests.items()
        )


def price_of(config: CrawlConfig, crawls: int = 1) -> Price:
    """What so many crawls of this configuration ask."""
    check_repeat(crawls)
    groups, arms = len(config.groups), len(config.arms)
    sizes = _prompt_tokens(config)
    stages = []
    if config.dynamic:
        template = config.pack.template("seeds")
        prompt = template.render(config.form, plural=config.dynamic.category.category.plural)
        lists, limit = crawls * config.dynamic.prompts, template.limits(config.form)[0]
        stages.append(Stage("seeds", lists, lists, lists * limit, about_tokens(prompt)))
    for step in config.steps:
        requests = crawls * arms * (groups or 1) * step.prompts * config.answers
        most = requests * config.max_attempts
        limit = config.pack.template(step.template).limits(config.form)[0]
        stages.append(Stage(step.name, requests, most, most * limit, sizes.get(step.name, 0)))
    return Price(groups, arms, config.dynamic is not None, _until(config), tuple(stages), crawls)


def _until(config: CrawlConfig) -> str:
    """What a crawl may end by before its rounds are over: "coverage", "width" or ""."""
    if config.until_width is not None:
        return "width"
    return "" if config.until_coverage is None else "coverage"


def _prompt_tokens(config: CrawlConfig) -> dict[str, int]:
    """About how many tokens a prompt of each strategy has: the mean over the prompts of the
    initialisation and of a first round that follows on short answers."""
    seeds = config.seeds
    if config.dynamic and not seeds:
        seeds = (replace(config.dynamic.category, groups=("People",)),)
    found: dict[str, list[int]] = defaultdict(list)
    for pool in (Pool(arm, seed) for arm in config.arms for seed in seeds):
        first = list(initialise(config, pool))
        pool.triples += [Triple(p.group.name, p.predicate or "are", "good people") for p in first]
        for plan in (*first, *expand(config, pool, 1)):
            found[plan.strategy].append(about_tokens(prompt_of(config, plan)))
    return {strategy: round(sum(own) / len(own)) for strategy, own in found.items()}
