"""Runs that are asked for in rounds, each answer once or a few times: profiles, stories, pairs.

Every answer is in the log before it is read, and a round is written when it is complete: the same
call again asks only for what is missing.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from kgbias.errors import Interrupted
from kgbias.graph.answers import LoggedModel
from kgbias.graph.store import Store, Watch
from kgbias.graph.types import Answer, Outcome, Run
from kgbias.language.words import refusal
from kgbias.models.budget import Prices, Spent


@dataclass
class Written:
    """What a call did.

    Attributes:
        run: the run that was written.
        asked, cached: how many answers came from the model in this call, and from the answer log.
        spent: what the new answers cost: tokens, and money if prices were given.
        outcomes: how many answers ended "ok", "refused", "unparsable" or "failed", by group.
    """

    run: Run
    asked: int = 0
    cached: int = 0
    spent: Spent = field(default_factory=Spent)
    outcomes: dict[str, Counter[str]] = field(default_factory=dict)

    @property
    def total(self) -> Counter[str]:
        """The number of answers by outcome, over all groups."""
        return sum(self.outcomes.values(), Counter())

    @property
    def failed(self) -> float:
        """The share of requests that got no answer at all."""
        return self.total["failed"] / max(1, self.total.total())

    def in_rounds(
        self,
        store: Store,
        asker: LoggedModel,
        rounds: int,
        write: Callable[[int], int],
        others: Sequence[LoggedModel] = (),
    ) -> None:
        """Write the run round by round, and mark it complete. `write` asks for a round (`asker`,
        and `others` if several models are asked), records it, and returns how many of what the run
        is made of there are so far. Raises Interrupted on Ctrl-C or when the budget is spent."""
        watch, there, run = Watch(), 0, self.run
        askers = (asker, *others)
        try:
            for number in range(rounds):
                there = write(number)
                watch.note(store, run.id, sum(a.asked for a in askers))
        except (KeyboardInterrupt, Interrupted) as stop:
            store.set_status(run.id, "interrupted")
            came = sum(a.asked - a.failed for a in askers)
            raise Interrupted(
                f"{str(stop) or 'stopped'}: the {came} answers that came are kept, "
                f"{there} {run.kind} so far; running this again continues from there"
            ) from None
        finally:
            watch.note(store, run.id, sum(a.asked for a in askers))
            self.asked, self.cached = sum(a.asked for a in askers), sum(a.cached for a in askers)
            self.spent = Spent(
                sum(a.spent.prompt_tokens for a in askers),
                sum(a.spent.completion_tokens for a in askers),
                asker.spent.prices,
            )
        store.set_status(run.id, "complete")
        self.run = replace(run, status="complete")


def ended(answer: Answer) -> tuple[Outcome, str]:
    """How an answer in free text ended, and why: "failed", "refused" or "ok"."""
    if answer.finish == "error":
        return "failed", answer.details
    if answer.finish == "refused":
        return "refused", "withheld by the server"
    return ("refused", "refusal") if refusal(answer.text) else ("ok", "")


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedOnce:
    """What asking costs if each request is made once: the number of requests, the tokens that the
    answers may have, the approximate number of tokens in a prompt, at four characters per token;
    and the approximate cost, if prices were given."""

    form: str
    requests: int
    answer_tokens_at_most: int
    prompt_tokens: int
    prices: Prices | None = None

    @property
    def requests_at_most(self) -> int:
        """The number of requests: nothing is asked twice."""
        return self.requests

    @property
    def cost(self) -> float | None:
        """The approximate cost if every answer is as long as it may be; None without prices."""
        if self.prices is None:
            return None
        return self.prices.of(self.requests * self.prompt_tokens, self.answer_tokens_at_most)

    @property
    def cost_at_most(self) -> float | None:
        """The same: nothing is asked twice."""
        return self.cost
