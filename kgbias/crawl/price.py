"""What a crawl will ask, before it asks."""

from dataclasses import dataclass
from typing import Unpack

from kgbias.crawl.config import CrawlConfig
from kgbias.crawl.configure import CrawlCall, configure, parted
from kgbias.crawl.repeat import check_repeat
from kgbias.templates import Form, Template


@dataclass(frozen=True, slots=True)
class Stage:
    """One kind of request of a crawl: how many there are if every answer is read at the first
    attempt, and at most, with the tokens that the answers may then hold."""

    stage: str
    requests: int
    requests_at_most: int
    answer_tokens_at_most: int


@dataclass(frozen=True, slots=True)
class Price:
    """What a crawl asks for `groups` groups in `arms` arms, or `crawls` of them together.

    With `more_groups_named_by_model` the model names groups of its own first, each of which costs
    as much as one of the others; without other seeds, the stages are those of one group. With
    `until_coverage` the numbers are an upper bound: a group is left alone once it is covered.
    """

    groups: int
    arms: int
    more_groups_named_by_model: bool
    until_coverage: float | None
    stages: tuple[Stage, ...]
    crawls: int = 1

    @property
    def requests(self) -> int:
        """Requests if every answer is read at the first attempt."""
        return sum(stage.requests for stage in self.stages)

    @property
    def requests_at_most(self) -> int:
        """Requests if every attempt is used."""
        return sum(stage.requests_at_most for stage in self.stages)


def price(model: str, *, repeat: int | None = None, **options: Unpack[CrawlCall]) -> Price:
    """What `Study.crawl` would ask with these parameters. Asks nothing, opens nothing."""
    _, asking = parted(options)
    return price_of(configure(model, **asking), 1 if repeat is None else repeat)


def price_of(config: CrawlConfig, crawls: int = 1) -> Price:
    """What so many crawls of this configuration ask."""
    check_repeat(crawls)
    groups, arms = len(config.groups), len(config.arms)
    stages = [
        _stage(
            step.name,
            config.pack.template(step.template),
            crawls * arms * (groups or 1) * step.prompts,
            config.max_attempts,
            config.form,
        )
        for step in config.steps
    ]
    if config.dynamic:
        lists = crawls * config.dynamic.prompts
        named = _stage("seeds", config.pack.template("seeds"), lists, 1, config.form)
        stages.insert(0, named)
    return Price(
        groups, arms, config.dynamic is not None, config.until_coverage, tuple(stages), crawls
    )


def _stage(name: str, template: Template, requests: int, attempts: int, form: Form) -> Stage:
    most = requests * attempts
    return Stage(name, requests, most, most * template.limits(form)[0])
