"""What asking a model may take, and what it took: requests, tokens, and money at the user's own
prices."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from kgbias.errors import DataError, Interrupted, UsageError
from kgbias.io.reading import read_toml
from kgbias.io.wording import pluralise
from kgbias.parameters import BudgetOptions

PRICED_TOKENS = 1_000_000
CHARACTERS_PER_TOKEN = 4  # of English a token, where no tokenizer has counted


@dataclass(frozen=True, slots=True)
class Prices:
    """A model's prices: of a million prompt tokens (`read`) and a million answer tokens
    (`written`), in `currency`. kgbias knows no prices: the user gives them. Batch prices know the
    prices of asking `directly`, if the user gave them."""

    read: float
    written: float
    currency: str = ""
    directly: "Prices | None" = None

    def cost_of(self, prompt_tokens: float, answer_tokens: float) -> float:
        """The cost of these numbers of prompt and answer tokens."""
        return (prompt_tokens * self.read + answer_tokens * self.written) / PRICED_TOKENS

    def format_cost(self, cost: float) -> str:
        """An amount, such as "0.42 USD"; small ones with two significant digits."""
        return f"{format_amount(cost)} {self.currency}".rstrip()


def format_amount(cost: float) -> str:
    """Money as text: with two decimals, or with two significant digits below one."""
    return f"{cost:.2f}" if cost >= 1 or not cost else f"{cost:.2g}"


def estimate_tokens(prompt: str | Sequence[tuple[str, str]]) -> int:
    """The approximate number of tokens in a prompt (text or messages), without a tokenizer."""
    texts = [prompt] if isinstance(prompt, str) else [text for _, text in prompt]
    return -(-sum(map(len, texts)) // CHARACTERS_PER_TOKEN)


@dataclass(slots=True)
class Usage:
    """What was spent.

    Attributes:
        prompt_tokens, completion_tokens: the tokens of the prompts asked and of their answers.
        prices: the prices of tokens.
    """

    prompt_tokens: int = 0
    completion_tokens: int = 0
    prices: Prices | None = None

    @property
    def tokens(self) -> int:
        """The tokens of prompts and answers together."""
        return self.prompt_tokens + self.completion_tokens

    @property
    def cost(self) -> float | None:
        """The money spent, None without prices."""
        if self.prices is None:
            return None
        return self.prices.cost_of(self.prompt_tokens, self.completion_tokens)

    def __str__(self) -> str:
        tokens = (
            f"{pluralise(self.prompt_tokens, 'token')} of prompts and "
            f"{self.completion_tokens} of answers"
        )
        return (
            tokens
            if self.prices is None
            else f"{tokens}, {self.prices.format_cost(self.cost or 0)}"
        )


@dataclass(slots=True)
class Budget:
    """What a call may spend, and what it has spent so far.

    Attributes:
        max_requests: the maximum number of requests.
        max_tokens: about the maximum number of tokens, in prompts and answers: requests under way
            when they are spent are finished.
        max_cost: likewise for money; only with `prices`.
        batch: whether to send requests in batches, for less. A batch cannot be stopped, so only as
            many are sent as the budget covers however long the answers are.
        wait: whether to wait while another process asks for the same, instead of stopping.
        usage: the tokens so far, and their prices.
        requests: the requests so far.
    """

    max_requests: int | None = None
    max_tokens: int | None = None
    max_cost: float | None = None
    usage: Usage = field(default_factory=Usage)
    requests: int = 0
    batch: bool = False
    wait: bool = False

    def count_allowed(self, requests: int) -> int:
        """How many of this many further requests may be made."""
        if self.max_requests is None:
            return requests
        return min(requests, max(0, self.max_requests - self.requests))

    def count_affordable(self, sizes: Iterable[tuple[int, int]]) -> int:
        """How many of these requests, in order, stay within the tokens and the money however long
        their answers are; each is given as the tokens of its prompt and at most of its answer."""
        prompt_tokens, answer_tokens = self.usage.prompt_tokens, self.usage.completion_tokens
        affordable = 0
        for prompt, answer in sizes:
            prompt_tokens, answer_tokens = prompt_tokens + prompt, answer_tokens + answer
            max_usage = Usage(prompt_tokens, answer_tokens, self.usage.prices)
            if self.max_tokens is not None and max_usage.tokens > self.max_tokens:
                break
            if (
                self.max_cost is not None
                and max_usage.cost is not None
                and max_usage.cost > self.max_cost
            ):
                break
            affordable += 1
        return affordable

    def count_request(self, prompt_tokens: int, completion_tokens: int) -> None:
        """Count a request."""
        self.requests += 1
        self.usage.prompt_tokens += prompt_tokens
        self.usage.completion_tokens += completion_tokens

    def check(self) -> None:
        """Raise Interrupted if the tokens or the money are spent."""
        if self.max_tokens is not None and self.usage.tokens >= self.max_tokens:
            raise Interrupted(f"stopped at the budget of {pluralise(self.max_tokens, 'token')}")
        prices, cost = self.usage.prices, self.usage.cost
        if self.max_cost is not None and prices and cost is not None and cost >= self.max_cost:
            raise Interrupted(f"stopped at the budget of {prices.format_cost(self.max_cost)}")


def split_budget(options: Mapping[str, Any], model: str) -> tuple[Budget, dict[str, Any]]:
    """The budget of a call with these options (`BudgetOptions`), and the other options. `model` is
    the spec to look up in a file of prices. Raises UsageError for impossible numbers."""
    budget_options = {
        name: options[name] for name in BudgetOptions.__annotations__ if name in options
    }
    other_options = {name: value for name, value in options.items() if name not in budget_options}
    for name in ("max_cost", "price_in", "price_out"):
        value = budget_options.get(name)
        if value is not None and not (math.isfinite(value) and value >= 0):
            raise UsageError(f"`{name}` must be a number, at least 0")
    batch = bool(budget_options.get("batch"))
    prices = _choose_prices(budget_options, model, batch)
    if budget_options.get("max_cost") is not None and prices is None:
        raise UsageError("`max_cost` needs prices: `price_in` and `price_out`, or `prices`")
    requests, tokens, cost = map(budget_options.get, ("max_requests", "max_tokens", "max_cost"))
    wait = bool(budget_options.get("wait"))
    return Budget(
        requests, tokens, cost, Usage(prices=prices), batch=batch, wait=wait
    ), other_options


def _choose_prices(budget_options: Mapping[str, Any], model: str, batch: bool) -> Prices | None:
    prompt_price, answer_price, path = (
        budget_options.get(name) for name in ("price_in", "price_out", "prices")
    )
    if (prompt_price is None) != (answer_price is None):
        raise UsageError("`price_in` and `price_out` must be given together")
    if prompt_price is not None and path is not None:
        raise UsageError("give either `price_in` and `price_out`, or `prices`")
    if path is not None:
        return read_prices(Path(path), model, batch=batch)
    return (
        None if prompt_price is None or answer_price is None else Prices(prompt_price, answer_price)
    )


def read_prices(path: Path, model: str, *, batch: bool = False) -> Prices:
    """The prices of a model in the user's TOML file:

        currency = "USD" [models."openai:gpt-4o-mini"]   # the spec as you give it, or only the
        model's name in = 0.15                       # for a million tokens out = 0.60 batch_in =
        0.075                # if a `batch` costs less batch_out = 0.30

    Raises DataError if the file lacks them."""
    data = read_toml(path)
    models, currency = data.get("models"), data.get("currency", "")
    if not isinstance(models, dict) or not isinstance(currency, str):
        raise DataError(f'{path} needs a table for each model, [models."NAME"], and a currency')
    entry = models.get(model, models.get(model.partition(":")[2]))
    if entry is None:
        raise DataError(f"{path} has no prices of {model}; it has {', '.join(models) or 'none'}")
    table: dict[str, Any] = entry if isinstance(entry, dict) else {}
    unbatched = _read_price_pair(table, "in", "out", f"{path}: {model}", currency)
    if not batch or not table.keys() & {"batch_in", "batch_out"}:
        return unbatched
    batched = _read_price_pair(table, "batch_in", "batch_out", f"{path}: {model}", currency)
    return replace(batched, directly=unbatched)


def _read_price_pair(
    table: Mapping[str, Any], prompt_key: str, answer_key: str, place: str, currency: str
) -> Prices:
    numbers = table.get(prompt_key), table.get(answer_key)
    if not all(_is_price(number) for number in numbers):
        raise DataError(
            f"{place} needs `{prompt_key}` and `{answer_key}`, the price of a million tokens"
        )
    return Prices(float(numbers[0]), float(numbers[1]), currency)  # type: ignore[arg-type]


def _is_price(value: Any) -> bool:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return number and 0 <= value < math.inf
