"""What asking may take: requests, tokens and money."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner

import kgbias
from kgbias.cli import cli
from kgbias.errors import DataError, Interrupted, UsageError
from kgbias.graph.answers import LoggedModel
from kgbias.graph.sqlite import SQLiteStore
from kgbias.graph.types import Answer
from kgbias.models.base import Request
from kgbias.models.budget import Budget, Prices, Usage, estimate_tokens, read_prices, split_budget
from tests.scripted_model import ScriptedModel
from tests.texts import Texts

PRICES = """
currency = "EUR"
[models."openai:big"]
in = 2.5
out = 10
[models.small]
in = 0.1
out = 0.4
"""


def test_money_by_hand(texts: Texts) -> None:
    prices = Prices(2.5, 10, "EUR")
    assert prices.cost_of(200_000, 30_000) == pytest.approx(0.5 + 0.3)
    spent = Usage(200_000, 30_000, prices)
    assert (spent.tokens, spent.cost) == (230_000, pytest.approx(0.8))
    texts.check(str(spent))
    assert [prices.format_cost(x) for x in (0, 0.00123, 0.42, 12.345)] == [
        "0.00 EUR",
        "0.0012 EUR",
        "0.42 EUR",
        "12.35 EUR",
    ]
    assert Usage(3, 4).cost is None
    texts.check(str(Usage(3, 4)))


def test_a_budget_stops_at_what_is_spent_first(texts: Texts) -> None:
    budget = Budget(max_requests=3, max_tokens=50, max_cost=0.001, usage=Usage(prices=Prices(5, 5)))
    assert budget.count_allowed(10) == 3
    budget.count_request(20, 20)
    budget.check()
    assert budget.count_allowed(10) == 2
    budget.max_cost = 0.0002
    with pytest.raises(Interrupted, match=r"the budget of 0\.0002"):
        budget.check()
    budget.count_request(20, 0)
    with texts.raises(Interrupted):
        budget.check()


def test_prices_of_a_file(tmp_path: Path, texts: Texts) -> None:
    (tmp_path / "p.toml").write_text(PRICES)
    assert read_prices(tmp_path / "p.toml", "openai:big") == Prices(2.5, 10.0, "EUR")
    assert read_prices(tmp_path / "p.toml", "openai:small") == Prices(0.1, 0.4, "EUR")
    with texts.raises(DataError):
        read_prices(tmp_path / "p.toml", "openai:other")
    for text, message in {
        "": "needs a table for each model",
        "[models.m]\nin = 1": "needs `in` and `out`",
        "[models.m]\nin = -1\nout = 1": "needs `in` and `out`",
        "[models.m]\nin = nan\nout = true": "needs `in` and `out`",
        "[models]\nm = 3": "needs `in` and `out`",
    }.items():
        (tmp_path / "bad.toml").write_text(text)
        with pytest.raises(DataError, match=message):
            read_prices(tmp_path / "bad.toml", "m")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_cost": 1.0}, "`max_cost` needs prices"),
        ({"price_in": 1.0}, "must be given together"),
        ({"price_in": -1.0, "price_out": 1.0}, "`price_in` must be a number, at least 0"),
        ({"price_in": 1.0, "price_out": 1.0, "prices": "x"}, "either `price_in`"),
        ({"max_cost": float("nan"), "price_in": 1.0, "price_out": 1.0}, "`max_cost` must be"),
    ],
)
def test_what_a_budget_cannot_be(options: dict[str, float], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        split_budget(options, "m")


def test_tokens_without_a_tokenizer() -> None:
    assert [estimate_tokens(t) for t in ("", "a", "abcd", "abcde")] == [0, 1, 1, 2]
    assert estimate_tokens((("system", "abcd"), ("user", "efgh"))) == 2


def talkative(request: Request) -> str:
    return f" thing{request.seed % 97} {request.seed % 89}"


SMALL = {
    "category": "gender",
    "samples": 1,
    "iterations": 1,
    "initial_predicates": ["are"],
    "predicate_prompts": 1,
    "object_prompts": 1,
}
DEAR = {"price_in": 1e5, "price_out": 1e5}  # 0.1 a token


def test_a_crawl_stops_at_its_money_and_goes_on(tmp_path: Path, texts: Texts) -> None:
    with kgbias.open(tmp_path / "k.db", progress=False) as study:
        model = ScriptedModel(talkative)
        with texts.raises(Interrupted):
            study.crawl(model, name="a", max_cost=0.1, **DEAR, **SMALL)  # type: ignore[arg-type]
        asked = len(model.requests)
        run = study.crawl(model, name="a", max_cost=1e6, **DEAR, **SMALL)  # type: ignore[arg-type]
        spent = run.crawl_result.usage
        assert run.crawl_result.cached_count == asked > 0
        assert spent.cost == pytest.approx(0.1 * spent.tokens) and spent.tokens > 0


def test_what_a_run_took_by_group(tmp_path: Path) -> None:
    with kgbias.open(tmp_path / "k.db", progress=False) as study:
        run = study.crawl(ScriptedModel(talkative), name="a", **SMALL)  # type: ignore[arg-type]
        rows = run.cost(price_in=100_000, price_out=1_000_000)
        plain = study.run("a").cost()
        names = [row.group for row in run.groups()]
    *groups, total = rows
    spent = run.crawl_result.usage
    assert total.group == "all" and [row.group for row in groups] == names
    assert (total.prompt_tokens, total.completion_tokens) == (
        spent.prompt_tokens,
        spent.completion_tokens,
    )
    assert sum(row.answers for row in groups) == total.answers == run.crawl_result.asked_count
    assert total.cost == pytest.approx(0.1 * total.prompt_tokens + total.completion_tokens)
    assert {row.cost for row in plain} == {None}
    argv = ["cost", "a", "--store", str(tmp_path / "k.db")]
    ran = CliRunner().invoke(cli, argv)
    assert ran.exit_code == 0 and "cost" not in ran.output and "\nall" in ran.output
    data = json.loads(CliRunner().invoke(cli, [*argv, "--json"]).output)
    assert data["cost"][-1]["prompt_tokens"] == total.prompt_tokens


def test_a_dry_run_says_the_money(tmp_path: Path) -> None:
    price = kgbias.price("smollm2", **SMALL, **DEAR)  # type: ignore[arg-type]
    by_hand = sum(
        0.1 * s.requests * s.prompt_tokens
        + 0.1 * s.answer_tokens_at_most * s.requests / s.requests_at_most
        for s in price.stages
    )
    assert price.cost == pytest.approx(by_hand)
    assert price.cost_at_most is not None and price.cost_at_most > by_hand
    assert all(10 < stage.prompt_tokens < 500 for stage in price.stages)
    assert kgbias.price("smollm2", **SMALL).cost is None  # type: ignore[arg-type]
    argv = ["crawl", "--model", "smollm2", "--category", "gender", "--dry-run"]
    (tmp_path / "p.toml").write_text(PRICES.replace("small", "smollm2"))
    ran = CliRunner().invoke(cli, [*argv, "--set", f"prices={tmp_path / 'p.toml'}"])
    assert "EUR (assuming four characters" in ran.output
    ran = CliRunner().invoke(cli, [*argv, "--set", "price-in=1", "--set", "price-out=2", "--json"])
    data = json.loads(ran.output)
    assert 0 < data["cost"] < data["cost_at_most"]


def test_answers_that_were_committed_as_ctrl_c_came_are_counted(tmp_path: Path) -> None:
    class StoppedStore(SQLiteStore):
        def keep_answers(self, answers: Sequence[Answer]) -> None:
            super().keep_answers(answers)
            raise KeyboardInterrupt

    requests = [Request(f"They {number}", number) for number in range(10)]
    with SQLiteStore(str(tmp_path / "s.db")) as store:
        store.__class__ = StoppedStore
        asker = LoggedModel(ScriptedModel(lambda _: "work hard", batch=4), store)
        with pytest.raises(KeyboardInterrupt):
            asker.ask(requests)
        assert asker.asked_count == 4
        assert asker.usage.completion_tokens == 8
