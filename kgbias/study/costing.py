"""What a crawl will take and could show, and what a run took: answers, tokens and money."""

import json
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from kgbias.crawl.config import CrawlConfig
from kgbias.crawl.configure import CrawlSpending, configure, priced
from kgbias.crawl.price import Price, price_of
from kgbias.graph.types import Answer
from kgbias.models.budget import Prices, budgeted
from kgbias.study.rows import Rows
from kgbias.study.view import RunView

if TYPE_CHECKING:
    from kgbias.compare.paired import Asked

TOTAL = "all"  # the last row


def price(model: str, *, repeat: int | None = None, **options: Unpack[CrawlSpending]) -> Price:
    """What `Study.crawl` would ask with these parameters, and what difference between groups that
    could show. Asks nothing, opens nothing."""
    prices, asking = priced(options, model)
    config = configure(model, **asking)
    found = price_of(config, 1 if repeat is None else repeat)
    return replace(found, prices=prices, shows={} if found.until else shows(config))


def shows(config: CrawlConfig) -> dict[str, float]:
    """For each category of two groups or more, the smallest difference in mean regard that a crawl
    would find (`kgbias.compare.paired`)."""
    from kgbias.compare.paired import planned

    sizes = {seed.category.name: len(seed.groups) for seed in config.seeds}
    asked = _asked(config)
    found: dict[int, float] = {n: planned(asked, n) for n in set(sizes.values()) if n > 1}
    return {name: found[n] for name, n in sizes.items() if n in found}


def _asked(config: CrawlConfig) -> "dict[Hashable, Asked]":
    """The prompts of a group in an arm, by what they supply."""
    from kgbias.compare.paired import Asked

    first, *others = config.steps
    asked: dict[Hashable, Asked] = {
        predicate: Asked(first.name, config.samples, config.answers)
        for predicate in config.initial_predicates
    }
    for step in others:
        if step.prompts:
            asked[step.name,] = Asked(step.name, step.prompts, config.answers)
    return asked


@dataclass(frozen=True, slots=True)
class GroupCost:
    """What the answers about a group took.

    Attributes:
        group: its name, or "all".
        answers: how many answers were read for it, each counted once; repeated attempts included.
        prompt_tokens, completion_tokens: their tokens, as the model or server counted them.
        cost: in money, at the given prices; None without prices.
        seconds: how long asking took, over all calls, of the last row: groups are asked together.
            None where it is not known.
    """

    group: str
    answers: int
    prompt_tokens: int
    completion_tokens: int
    cost: float | None
    seconds: float | None = None


class Costing(RunView):
    """What a run took; a part of `Run`."""

    def cost(
        self,
        *,
        price_in: float | None = None,
        price_out: float | None = None,
        prices: str | Path | None = None,
    ) -> Rows[GroupCost]:
        """What the answers of the run took, by group, and in all: tokens and, with what a million
        tokens of prompts (`price_in`) and of answers (`price_out`) cost, or a file of `prices`
        (`kgbias.models.budget.read_prices`), money; what was answered in a batch at the file's
        price of batches. An import took nothing.

        Raises UsageError or DataError for prices that cannot be."""
        given = {"price_in": price_in, "price_out": price_out, "prices": prices, "batch": True}
        at = budgeted(given, self.model.name)[0].spent.prices
        keys: dict[str, set[str]] = {group.name: set() for group in self.stored.record.groups}
        names = {group.id: group.name for group in self.stored.record.groups}
        for generation in self.stored.generations():
            if generation.answer_key and generation.group_id in names:
                keys[names[generation.group_id]].add(generation.answer_key)
        answers = self.stored.store.answers(sorted(set().union(*keys.values())))

        def row(name: str, own: Iterable[Answer]) -> GroupCost:
            took = list(own)
            read = sum(answer.prompt_tokens for answer in took)
            written = sum(answer.completion_tokens for answer in took)
            cost = None if at is None else sum(_cost(answer, at) for answer in took)
            return GroupCost(name, len(took), read, written, cost)

        rows = [
            row(name, (answers[k] for k in sorted(own) if k in answers))
            for name, own in keys.items()
        ]
        total = replace(row(TOTAL, answers.values()), seconds=self.summary.seconds)
        return Rows((*rows, total), columns=GroupCost.__slots__)


def _cost(answer: Answer, prices: Prices) -> float:
    """What an answer cost, at the prices of a batch or, where it came directly, at those."""
    batch = '"batch"' in answer.details and "batch" in json.loads(answer.details)
    at = prices if batch or prices.directly is None else prices.directly
    return at.of(answer.prompt_tokens, answer.completion_tokens)
