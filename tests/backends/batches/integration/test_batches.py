"""Crawls whose requests are left with a provider in batches: the real clients against real HTTP
servers that take batches as OpenAI's and Anthropic's APIs do."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

import kgbias
from kgbias.errors import Interrupted, ModelError
from kgbias.graph.sqlite import SQLiteStore
from kgbias.graph.types import Batch
from kgbias.methods import profiles
from kgbias.models import open_model
from kgbias.models.base import Request
from tests.batch_server import SERVERS, Body, Plan, RequestOutcome, answer
from tests.conftest import require_modules

pytestmark = pytest.mark.integration
require_modules("openai", "anthropic")
both = pytest.mark.parametrize("kind", SERVERS)


@pytest.fixture(autouse=True)
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    hurry(monkeypatch)


def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    real = asyncio.sleep
    monkeypatch.setattr(asyncio, "sleep", lambda s: real(min(s, 0.002)))
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.setenv(name, "sk-very-secret-key")


def crawled(kind: str, url: str, store: Path, **options: Any) -> kgbias.Run:
    asked: dict[str, Any] = dict(
        group=["Tealanders"],
        samples=4,
        iterations=1,
        predicate_prompts=2,
        object_prompts=2,
        initial_predicates="love",
        max_attempts=2,
        form="chat",
        min_p=0,
        batch=True,
        answers=1,
        redraw=False,
    )
    with kgbias.open(store, progress=False) as study:
        return study.crawl(f"{kind}:m", base_url=url, **asked | options)


def rows(store: Path) -> list[Any]:
    """The generations of the newest run, without what tells the time."""
    with SQLiteStore(str(store)) as opened:
        return list(opened.generations(opened.find_run().id))


def left(store: Path) -> int:
    with SQLiteStore(str(store)) as opened:
        return int(opened._db.execute("SELECT count(*) AS n FROM batch").fetchone()[0])


@both
def test_the_graph_is_the_one_without_batches(kind: str, tmp_path: Path) -> None:
    with SERVERS[kind]() as server:
        run = crawled(kind, server.url, tmp_path / "a.db")
        made, paid = len(server.batches), server.paid_counts.copy()
        assert made >= 2 and server.paid_counts.pop("directly") == 1
        assert set(server.paid_counts.values()) == {1}
        assert run.crawl_result.asked_count == paid.total()
        assert run.crawl_result.usage.tokens == 10 * paid.total()
        crawled(kind, server.url, tmp_path / "b.db", batch=False)
        assert len(server.batches) == made
    assert rows(tmp_path / "a.db") == rows(tmp_path / "b.db") and not left(tmp_path / "a.db")


@both
def test_what_was_not_answered_is_asked_again(kind: str, tmp_path: Path) -> None:
    """The first time that it is in a batch, a request expires, fails, or is dropped by a server
    that knows no temperature."""

    def plan(body: Body, number: int) -> RequestOutcome:
        place = sum(map(ord, json.dumps(body["messages"]))) % 3
        return answer(body) if number > 1 or place == 2 else (None, (500, "overloaded"))[place]

    with SERVERS[kind](plan) as server:
        run = crawled(kind, server.url, tmp_path / "a.db")
        assert run.crawl_result.outcomes["failed"] == 0
        server.paid_counts.pop("directly")
        assert set(server.paid_counts.values()) == {1}
    with SERVERS[kind]() as plain:
        crawled(kind, plain.url, tmp_path / "b.db")
    assert [g.triple for g in rows(tmp_path / "a.db")] == [
        g.triple for g in rows(tmp_path / "b.db")
    ]


def test_what_is_never_answered_is_a_failure_of_that_request(tmp_path: Path) -> None:
    plan: Plan = lambda body, _: None if "hate" in json.dumps(body) else answer(body)  # noqa: E731
    with SERVERS["anthropic"](plan) as server:
        run = crawled(
            "anthropic",
            server.url,
            tmp_path / "a.db",
            initial_predicates=["love", "hate"],
            iterations=0,
        )
        assert run.crawl_result.outcomes["failed"] >= 1 and run.crawl_result.outcomes["ok"]
        assert len(server.batches) >= 3 and not left(tmp_path / "a.db")


def test_what_the_server_refuses_is_learned_before_the_batch(tmp_path: Path) -> None:
    def plan(body: Body, number: int) -> RequestOutcome:
        return (400, "temperature is not supported") if "temperature" in body else answer(body)

    with SERVERS["openai"](plan) as server:
        crawled("openai", server.url, tmp_path / "a.db")
        assert sum("temperature" in body for body in server.bodies) == 1


@both
@pytest.mark.parametrize("made", [False, True], ids=["before", "after"])
def test_who_dies_while_a_batch_is_made_makes_no_second_one(
    kind: str, made: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the note that a batch is to be made and that of its id, before or after it was."""
    real, died = SQLiteStore.keep_batch, []

    def keep(self: SQLiteStore, batch: Batch) -> None:
        if bool(batch.id) is made and not died:
            died.append(batch)
            if not made:
                real(self, batch)
            raise SystemExit
        real(self, batch)

    with SERVERS[kind]() as server:
        monkeypatch.setattr(SQLiteStore, "keep_batch", keep)
        with pytest.raises(SystemExit):
            crawled(kind, server.url, tmp_path / "a.db")
        assert len(server.batches) == int(made) and left(tmp_path / "a.db") == 1
        run = crawled(kind, server.url, tmp_path / "a.db")
        paid = {key: n for key, n in server.paid_counts.items() if key != "directly"}
        assert set(paid.values()) == {1} and run.crawl_result.outcomes["ok"]
        keys = [tuple(batch["keys"]) for batch in server.batches.values()]
        assert len(set(keys)) == len(keys)
        crawled(kind, server.url, tmp_path / "b.db", batch=False)
    assert rows(tmp_path / "a.db") == rows(tmp_path / "b.db") and not left(tmp_path / "a.db")


@both
def test_an_answer_that_got_lost_makes_no_second_batch(kind: str, tmp_path: Path) -> None:
    """The batch is made, and the connection breaks before we hear of it."""
    with SERVERS[kind]() as server:
        server.dropped_answers["/batches" if kind == "openai" else "/v1/messages/batches"] = 1
        crawled(kind, server.url, tmp_path / "a.db", iterations=0)
        server.paid_counts.pop("directly")
        assert set(server.paid_counts.values()) == {1}
        assert len({tuple(batch["keys"]) for batch in server.batches.values()}) == len(
            server.batches
        )


def test_a_stranger_s_batch_of_the_same_size_is_not_taken_for_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with SERVERS["anthropic"]() as server:
        crawled("anthropic", server.url, tmp_path / "other.db", group=["Cobalters"], iterations=0)
        strangers = len(server.batches)

        def keep(self: SQLiteStore, batch: Batch) -> None:
            real(self, batch)
            raise SystemExit

        real = SQLiteStore.keep_batch
        with monkeypatch.context() as patch, pytest.raises(SystemExit):
            patch.setattr(SQLiteStore, "keep_batch", keep)
            crawled("anthropic", server.url, tmp_path / "a.db", iterations=0)
        assert len(server.batches) == strangers
        crawled("anthropic", server.url, tmp_path / "a.db", iterations=0)
        assert len(server.batches) > strangers


@both
def test_a_batch_that_the_provider_lost_is_made_again(kind: str, tmp_path: Path) -> None:
    with SERVERS[kind]() as server:
        first = "/batches/batch_0" if kind == "openai" else "/v1/messages/batches/msgbatch_0"
        server.missing_paths.add(first)
        run = crawled(kind, server.url, tmp_path / "a.db", iterations=0)
        assert not run.crawl_result.outcomes["failed"] and len(server.batches) >= 2
        assert server.batches[first.rpartition("/")[2]]["keys"]


@both
@pytest.mark.parametrize("how", ["refused", "404"])
def test_a_provider_that_is_away_for_a_while_loses_no_batch(
    kind: str, how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody listens, or a gateway knows no path, from when the batch is first looked at."""
    server = SERVERS[kind]()
    batches = "/batches" if kind == "openai" else "/v1/messages/batches"

    def leave(batch: Body) -> bool:
        if how == "refused":
            server.__exit__()
        else:
            server.missing_paths |= {batches, f"{batches}/{next(iter(server.batches))}"}
        return False

    monkeypatch.setattr(server, "has_ended", leave)
    stays = "stays with the provider, and the same command waits for it"
    with server, pytest.raises(ModelError, match=stays):
        crawled(kind, server.url, tmp_path / "a.db", iterations=0, samples=8)
    assert len(server.batches) == 1 and left(tmp_path / "a.db") == 1
    monkeypatch.undo()
    hurry(monkeypatch)
    server.is_down = True
    server.missing_paths.clear()
    with server:
        run = crawled(kind, server.url, tmp_path / "a.db", iterations=0, samples=8)
        assert run.crawl_result.outcomes["ok"] and not left(tmp_path / "a.db")
        assert server.paid_counts.pop("directly") == 1 and set(server.paid_counts.values()) == {1}
        crawled(kind, server.url, tmp_path / "b.db", batch=False, iterations=0, samples=8)
    assert rows(tmp_path / "a.db") == rows(tmp_path / "b.db")


@both
@pytest.mark.parametrize("size", [100, -40, -1_000_000])
def test_results_that_are_cut_off_are_read_again(kind: str, size: int, tmp_path: Path) -> None:
    with SERVERS[kind]() as server:
        where = ("/files/{}-output/content", "/v1/messages/batches/{}/results")[kind != "openai"]
        first = ("batch_0", "msgbatch_0")[kind != "openai"]
        server.cut_bytes[where.format(first)] = size
        crawled(kind, server.url, tmp_path / "a.db", iterations=0, samples=8)
        assert not server.cut_bytes
        server.paid_counts.pop("directly")
        assert set(server.paid_counts.values()) == {1}


@both
def test_results_that_are_not_there_yet_are_read_again(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with SERVERS[kind]() as server:
        route, misses = server.route, [1, 2]

        def miss(method: str, path: str, *rest: Any) -> Any:
            if path.endswith(("/content", "/results")) and misses:
                return 404, server.error_body(404, f"no such file {misses.pop()}")
            return route(method, path, *rest)

        monkeypatch.setattr(server, "route", miss)
        crawled(kind, server.url, tmp_path / "a.db", iterations=0)
        server.paid_counts.pop("directly")
        assert set(server.paid_counts.values()) == {1} and not misses


@pytest.mark.parametrize("first", [0, 1])
def test_of_an_error_and_an_answer_to_one_request_the_answer_counts(
    first: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def line(code: int, text: str) -> Body:
        body = {"choices": [{"text": text, "finish_reason": "stop"}]}
        return {"custom_id": "k", "response": {"status_code": code, "body": body}}

    lines = [line(500, ""), line(200, " tea"), line(200, " rain"), line(500, "")]
    model: Any = open_model("openai:m", base_url="http://127.0.0.1:9/v1")
    monkeypatch.setattr(model, "run_call", lambda _: lines[first:])
    found = model.batches().results("b", {"k": Request("People drink", seed=1)})
    assert found["k"].text == " tea"


@pytest.mark.parametrize("status", ["expired", "cancelled"])
def test_what_a_stopped_batch_had_answered_is_not_asked_again(status: str, tmp_path: Path) -> None:
    with SERVERS["openai"]() as server:
        server.early_status = status
        run = crawled("openai", server.url, tmp_path / "a.db", iterations=0, max_attempts=1)
        assert run.crawl_result.outcomes["failed"] == 0 and len(server.batches) == 3
        server.paid_counts.pop("directly")
        assert set(server.paid_counts.values()) == {1}


def test_a_batch_that_is_refused_as_a_whole(tmp_path: Path) -> None:
    with SERVERS["openai"]() as server:
        server.batch_error = "Enqueued token limit reached for m"
        with pytest.raises(ModelError, match="the provider refused batch batch_0: Enqueued token"):
            crawled("openai", server.url, tmp_path / "a.db")
        assert not left(tmp_path / "a.db")
        server.batch_error = ""
        assert crawled("openai", server.url, tmp_path / "a.db").crawl_result.outcomes["ok"]


HOSTILE = [
    b"",
    b"null",
    b"[[",
    b'{"id": 5}',
    b'{"id": "../../x?", "processing_status": 1}',
    b'{"id": "sk-very-secret-key", "data": 5}',
    b'{"id": "b1", "status": {}, "processing_status": [], "data": [5, {"id": "x"}]}',
    b'{"id": "b1", "status": "failed", "processing_status": "ended", "errors": {"data": ["x"]},'
    b' "data": [{"id": "b", "created_at": 1e99}], "output_file_id": {}, "request_counts": 7}',
    b'{"id": "b1", "status": "failed", "errors": {"data": [{"message": "sk-very-secret-key"}]}}',
]


@both
def test_whatever_is_said_of_batches_ends_in_a_line(kind: str, tmp_path: Path) -> None:
    for n, body in enumerate(HOSTILE):
        with SERVERS[kind]() as server:
            server.hostile_body = body
            try:
                run = crawled(kind, server.url, tmp_path / f"{n}.db", iterations=0, max_attempts=1)
                assert run.crawl_result.outcomes["failed"] == 3
            except ModelError as error:
                assert "very-secret" not in str(error) and "\n" not in str(error)
        assert b"very-secret" not in (tmp_path / f"{n}.db").read_bytes()


def test_a_server_without_batches_says_so(tmp_path: Path) -> None:
    with SERVERS["openai"]() as server:
        server.missing_paths.add("/files")
        with pytest.raises(ModelError, match="does this server take batches"):
            crawled("openai", server.url, tmp_path / "a.db")


def test_a_round_of_two_crawls_is_shared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch that another crawl asked for in part is read for both, and asked for once."""
    with SERVERS["openai"]() as server:
        server.is_paused = True
        monkeypatch.setattr(
            "kgbias.backends.batches.base.Batches.watch",
            lambda *_: (_ for _ in ()).throw(KeyboardInterrupt),
        )
        with pytest.raises(Interrupted):
            crawled("openai", server.url, tmp_path / "a.db", iterations=0, samples=6)
        monkeypatch.undo()
        hurry(monkeypatch)
        server.is_paused = False
        crawled("openai", server.url, tmp_path / "a.db", iterations=0, samples=3, max_attempts=1)
        assert len(server.batches) == 1 and left(tmp_path / "a.db") == 1
        crawled("openai", server.url, tmp_path / "a.db", iterations=0, samples=6, max_attempts=1)
        assert len(server.batches) == 1 and not left(tmp_path / "a.db")
        server.paid_counts.pop("directly")
        assert set(server.paid_counts.values()) == {1}


def test_a_budget_holds_although_a_batch_cannot_be_stopped(tmp_path: Path) -> None:
    with (
        SERVERS["openai"]() as server,
        pytest.raises(Interrupted, match="the rest of the budget covers"),
    ):
        crawled("openai", server.url, tmp_path / "a.db", max_tokens=300, samples=20)
    assert 1 < 10 * server.paid_counts.total() <= 300


def test_each_answer_costs_what_it_came_at(tmp_path: Path) -> None:
    (prices := tmp_path / "prices.toml").write_text(
        '[models."openai:m"]\nin = 10.0\nout = 10.0\nbatch_in = 1.0\nbatch_out = 1.0\n'
    )
    with SERVERS["openai"]() as server:
        run = crawled("openai", server.url, tmp_path / "a.db", iterations=0, max_attempts=1)
        assert run.crawl_result.asked_count == 4 and server.paid_counts["directly"] == 1
    with kgbias.open(tmp_path / "a.db") as study:
        rows = study.run().cost(prices=prices)
        assert rows[-1].cost == pytest.approx((1 * 10 * 10 + 3 * 10 * 1) / 1e6)


def test_profiles_are_left_with_a_provider_too() -> None:
    def plan(body: Body, _: int) -> RequestOutcome:
        return json.dumps({"name": "x", "hobbies": ["tea"]})

    with SERVERS["openai"](plan) as server, kgbias.open(None, progress=False) as study:
        run = profiles.write_profiles(
            study,
            "openai:m",
            base_url=server.url,
            limit=1,
            group="ARAB F",
            samples=3,
            max_attempts=1,
            batch=True,
        )
        assert (
            len(server.batches) == 2 and run.generation_summary.asked_count == 3
        )  # a batch for each sample
