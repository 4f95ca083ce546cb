"""The adapters of Anthropic and Google: the real clients against real HTTP servers that speak as
these APIs do, and that misbehave by plan."""

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import kgbias
from kgbias.cli import cli
from kgbias.errors import Interrupted, ModelError, UsageError
from kgbias.models import open_model
from kgbias.models.anthropic_server import AnthropicModel
from kgbias.models.base import Completion, Request
from kgbias.models.google_server import GoogleModel
from kgbias.models.http import withhold_keys
from kgbias.models.server import ServerModel
from kgbias.models.truncate import Truncation
from tests.conftest import require_modules
from tests.fault_server import AnthropicServer, Fault, FaultServer, GoogleServer, Plan
from tests.texts import Texts
from tests.waiting import DEADLINE_SECONDS

require_modules("anthropic", "google.genai")

KEY = "sk-very-secret-key"
SCHEMA = json.dumps(
    {
        "type": "object",
        "properties": {"object": {"type": "string"}},
        "required": ["object"],
        "additionalProperties": False,
    }
)
PROVIDERS = {"anthropic": AnthropicServer, "google": GoogleServer}
both = pytest.mark.parametrize("kind", PROVIDERS)


@pytest.fixture(autouse=True)
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Waits of milliseconds, and a key that must show up nowhere."""
    real = asyncio.sleep
    monkeypatch.setattr(asyncio, "sleep", lambda s: real(min(s, 0.005)))
    monkeypatch.delenv("GOOGLE_API_KEY", raising=False)
    for name in ("ANTHROPIC_API_KEY", "GEMINI_API_KEY"):
        monkeypatch.setenv(name, KEY)


def some(count: int, **changes: Any) -> list[Request]:
    return [
        Request((("system", "Be brief."), ("user", f"Men love {n}")), n, stop=("\n",), **changes)
        for n in range(count)
    ]


def ask(
    kind: str,
    server: FaultServer,
    requests: list[Request],
    notes: list[str] | None = None,
    **options: Any,
) -> list[Completion]:
    model = open_model(
        f"{kind}:m",
        base_url=server.url,
        notify=(notes if notes is not None else []).append,
        **{"concurrency": 8, "timeout": DEADLINE_SECONDS} | options,
    )
    found: dict[int, Completion] = {}
    for batch in model.complete(requests):
        found |= dict(batch)
    model.close()
    return [found[n] for n in range(len(requests))]


def once(fault: Fault) -> Plan:
    return lambda body, number: fault if number == 1 else " food."


def test_what_anthropic_is_sent_and_what_is_read() -> None:
    notes: list[str] = []
    rule = Truncation(top_k=40, min_p=0.1)
    with AnthropicServer(lambda *_: " food.\nand more") as server:
        (found,) = ask("anthropic", server, some(1, truncation=rule, max_tokens=9), notes)
        (body,), (headers,) = server.bodies, server.headers
    assert body == {
        "model": "m",
        "max_tokens": 9,
        "temperature": 0.8,
        "top_k": 40,
        "system": "Be brief.",
        "messages": [{"role": "user", "content": "Men love 0"}],
        "thinking": {"type": "disabled"},
    }
    sent = {name.lower(): value for name, value in headers.items()}
    assert sent["anthropic-version"] == "2023-06-01"
    assert KEY in (sent.get("x-api-key"), sent.get("authorization", "").partition(" ")[2])
    assert (found.text, found.finish) == (" food.", "stop")
    assert (found.prompt_tokens, found.completion_tokens) == (7, 3)
    assert found.details["served_model"] == "claude-m-1" and found.details["stop_in_text"]
    assert found.details["finish_reason"] == "end_turn"
    assert found.details["left_out"] == ["min_p", "seed"]
    assert sorted(notes) == [
        f"{server.url} does not take {name}: asking without it" for name in ("min_p", "seed")
    ]


def test_what_google_is_sent_and_what_is_read(texts: Texts) -> None:
    notes: list[str] = []
    rule = Truncation(top_k=40, top_p=0.9, min_p=0.1)
    with GoogleServer(lambda *_: " food.\nand more") as server:
        (found,) = ask("google", server, some(1, truncation=rule, max_tokens=9), notes)
        (body,), (headers,) = server.bodies, server.headers
    assert body["contents"] == [{"role": "user", "parts": [{"text": "Men love 0"}]}]
    assert body["systemInstruction"]["parts"] == [{"text": "Be brief."}]
    config = body["generationConfig"]
    assert list(config.pop("thinkingConfig").values()) == [0]  # the API reads either spelling
    assert config == {
        "temperature": 0.8,
        "topK": 40,
        "topP": 0.9,
        "seed": 0,
        "maxOutputTokens": 9,
        "stopSequences": ["\n"],
    }
    assert {k.lower(): v for k, v in headers.items()}["x-goog-api-key"] == KEY
    assert (found.text, found.finish) == (" food.", "stop")
    assert (found.prompt_tokens, found.completion_tokens) == (7, 3)
    assert found.details["served_model"] == "gemini-m-001"
    texts.check("\n".join(notes))


@both
def test_a_schema_is_asked_for_in_the_words_of_the_provider(kind: str) -> None:
    with PROVIDERS[kind](lambda *_: '{"object": "food\\nand"}') as server:
        (found,) = ask(kind, server, some(1, schema=SCHEMA))
        (body,) = server.bodies
    schema = json.loads(SCHEMA)
    if kind == "anthropic":
        assert body["output_config"] == {"format": {"type": "json_schema", "schema": schema}}
    else:
        assert body["generationConfig"]["responseJsonSchema"] == schema
        assert body["generationConfig"]["responseMimeType"] == "application/json"
    assert found.details["response_format"] == "json_schema"
    assert json.loads(found.text) == {"object": "food\nand"}


FAULTS: list[Fault] = [
    ("status", (429, {"Retry_After": "0.01"})),
    ("status", (529, {})),
    ("status", (503, {})),
    ("status", (500, {})),
    ("body", "502 Bad Gateway"),
    ("body", '{"content": [{"type": "text"}], "candidates": []}'),
    ("body", "[" * 100_000),
    ("body", ""),
    ("raw", (500, {}, b"\xff\xfe")),
    ("raw", (500, {"content-type": "application/json"}, b"[" * 100_000)),
    ("cut", None),
]


@both
def test_passing_faults_are_asked_again(kind: str) -> None:
    """A fault of its own for each request, the first time that it is asked."""

    def plan(body: dict[str, Any], number: int) -> Fault:
        place = int(re.findall(r"Men love (\d+)", json.dumps(body))[0])
        return FAULTS[place] if number == 1 else " food."

    with PROVIDERS[kind](plan) as server:
        found = ask(kind, server, some(len(FAULTS)))
        assert [c.text for c in found] == [" food."] * len(FAULTS)
        assert set(server.request_counts.values()) == {2}


@both
def test_an_answer_that_takes_too_long_is_asked_for_again(kind: str) -> None:
    with PROVIDERS[kind](once(("hang", DEADLINE_SECONDS))) as server:
        (found,) = ask(kind, server, some(1), timeout=1)
        assert found.text == " food." and len(server.bodies) >= 2


@both
def test_a_key_that_is_refused_and_echoed(kind: str) -> None:
    leak = ("refuse", (401, f"invalid key {KEY} (x-api-key: {KEY[:14]}...)"))
    with PROVIDERS[kind](lambda *_: leak) as server, pytest.raises(ModelError) as stop:
        ask(kind, server, some(50))
    said = str(stop.value)
    assert "answered 401" in said and "set " in said and "_API_KEY" in said
    assert KEY[:12] not in said and len(said.splitlines()) == 1
    assert sum(server.request_counts.values()) <= 8


def test_google_calls_a_wrong_key_a_bad_request() -> None:
    error = {
        "code": 400,
        "message": "API key not valid.",
        "status": "INVALID_ARGUMENT",
        "details": [{"reason": "API_KEY_INVALID"}],
    }
    body = json.dumps({"error": error}).encode()
    plan: Plan = lambda *_: ("raw", (400, {"content-type": "application/json"}, body))  # noqa: E731
    with GoogleServer(plan) as server, pytest.raises(ModelError, match="GEMINI_API_KEY"):
        ask("google", server, some(50))
    assert sum(server.request_counts.values()) <= 8


def test_google_says_how_long_to_wait_in_the_body() -> None:
    notes: list[str] = []
    error = {
        "code": 429,
        "message": "quota",
        "status": "RESOURCE_EXHAUSTED",
        "details": [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34.5s"}],
    }
    body = json.dumps({"error": error}).encode()
    busy = ("raw", (429, {"content-type": "application/json"}, body))
    with GoogleServer(once(busy)) as server:
        ask("google", server, some(3), notes)
    assert any("busy" in note and "waiting 34 s" in note for note in notes)


@both
def test_a_refusal_is_an_answer_of_its_own_kind(kind: str) -> None:
    with PROVIDERS[kind](lambda *_: "") as server:
        plain = server.answer_body("I", "")
    if kind == "anthropic":
        why = {"type": "refusal", "category": "general_harms", "explanation": None}
        faults = [plain | {"stop_reason": "refusal", "content": [], "stop_details": why}]
    else:
        cut = [{"finishReason": "SAFETY", "index": 0}]
        faults = [plain | {"candidates": cut}, {"promptFeedback": {"blockReason": "OTHER"}}]
    for fault in faults:
        with PROVIDERS[kind](lambda *_, fault=fault: ("said", fault)) as server:
            (found,) = ask(kind, server, some(1))
        assert (found.text, found.finish) == ("", "refused")
        assert found.details["finish_reason"] in ("refusal", "SAFETY", "OTHER")


@both
def test_an_answer_that_ran_into_its_limit(kind: str) -> None:
    with PROVIDERS[kind](lambda *_: "") as server:
        plain = server.answer_body(" fo", "")
    plain["stop_reason"] = "max_tokens"
    if kind == "google":
        plain["candidates"][0]["finishReason"] = "MAX_TOKENS"
    with PROVIDERS[kind](lambda *_: ("said", plain)) as server:
        (found,) = ask(kind, server, some(1))
    assert (found.text, found.finish) == (" fo", "length")


@both
def test_a_model_that_always_thinks_gets_room_for_it(kind: str) -> None:
    """It refuses to be told not to think, and then spends a small limit on thinking alone."""
    with PROVIDERS[kind](lambda *_: "") as server:
        empty = server.answer_body("", "")
    if kind == "anthropic":
        thought = [{"type": "thinking", "thinking": "", "signature": "x"}]
        empty |= {"stop_reason": "max_tokens", "content": thought}
    else:
        empty["candidates"] = [{"finishReason": "MAX_TOKENS", "content": {"role": "model"}}]
        empty["usageMetadata"] |= {"thoughtsTokenCount": 9, "candidatesTokenCount": 0}

    def plan(body: dict[str, Any], _: int) -> Fault:
        config = body.get("generationConfig", {})
        if "thinking" in body:
            return ("refuse", "thinking.type: this model cannot disable thinking")
        if "thinkingConfig" in config:
            return ("refuse", "Budget 0 is invalid. This model only works in thinking mode.")
        limit = body.get("max_tokens") or config["maxOutputTokens"]
        return " food." if limit > 2_000 else ("said", empty)

    notes: list[str] = []
    with PROVIDERS[kind](plan) as server:
        found = ask(kind, server, some(12), notes, concurrency=4)
        asked = sum(server.request_counts.values())
    assert [c.text for c in found] == [" food."] * 12 and asked <= 12 + 2 * 4
    counts = [c.completion_tokens for c in found]
    assert max(counts) > min(counts) == 3  # thoughts are paid for
    assert sum("thinks before it answers" in note for note in notes) == 1
    assert sum("does not take thinking" in note for note in notes) == 1


def test_newer_models_of_anthropic_are_asked_without_a_temperature() -> None:
    def plan(body: dict[str, Any], _: int) -> Fault:
        if "temperature" in body:
            return ("refuse", "`temperature` is deprecated for this model.")
        return " food."

    notes: list[str] = []
    with AnthropicServer(plan) as server:
        found = ask("anthropic", server, some(5), notes)
    assert [c.text for c in found] == [" food."] * 5
    assert found[-1].details["left_out"] == ["min_p", "seed", "temperature"][1:]
    assert sum("temperature" in note for note in notes) == 1


@both
def test_what_cannot_be_asked_is_an_error_before_anything_is(kind: str, texts: Texts) -> None:
    with PROVIDERS[kind](lambda *_: " food.") as server:
        with pytest.raises(UsageError, match="answers messages"):
            ask(kind, server, [Request("Men love", 0)])
        with pytest.raises(UsageError, match="`temperature` of at most"):
            ask(kind, server, some(1, temperature=3))
        assert not server.bodies
    with pytest.raises(UsageError, match=r"no log-probabilities; .*openai:ID.* can"):
        kgbias.open_scorer(f"{kind}:m")
    with texts.raises(UsageError):
        open_model(f"{kind}:m", revision="x")
    with pytest.raises(UsageError, match="is on a server"):
        kgbias.models.open_encoder(f"{kind}:m")


@both
def test_nobody_answers_there(kind: str) -> None:
    with PROVIDERS[kind](lambda *_: "") as server:
        pass
    with pytest.raises(ModelError, match=r"cannot reach http://127\.0\.0\.1"):
        ask(kind, server, some(3))


def crawled(kind: str, url: str, **options: Any) -> kgbias.Run:
    with kgbias.open(None, progress=False) as study:
        return study.crawl(
            f"{kind}:m",
            group=["Tealanders"],
            samples=3,
            iterations=1,
            predicate_prompts=1,
            object_prompts=1,
            initial_predicates="love",
            filters=(),
            base_url=url,
            concurrency=2,
            **options,
        )


@both
def test_a_crawl_with_its_refusals_and_tokens(kind: str) -> None:
    with PROVIDERS[kind](lambda *_: "") as server:
        refusal = server.answer_body("", "")
    refusal["stop_reason"] = "refusal"
    if kind == "google":
        refusal["candidates"] = [{"finishReason": "PROHIBITED_CONTENT"}]

    given: list[int] = []

    def plan(body: dict[str, Any], number: int) -> Fault:
        given.append(number)
        return "Tealanders love tea." if len(given) % 3 else ("said", refusal)

    with PROVIDERS[kind](plan) as server:
        run = crawled(kind, server.url, max_attempts=2, price_in=1.0, price_out=10.0)
    outcomes = run.crawl_result.outcomes
    assert outcomes["refused"] == len(given) // 3 and outcomes["ok"] and not outcomes["failed"]
    spent = run.crawl_result.usage
    assert (spent.prompt_tokens, spent.completion_tokens) == (
        7 * run.crawl_result.asked_count,
        3 * run.crawl_result.asked_count,
    )
    assert spent.cost == pytest.approx(run.crawl_result.asked_count * 37 / 1e6)
    assert run.crawl_result.run.settings[-1] == ("base_url", server.url)


def test_a_budget_of_money_stops_it() -> None:
    with (
        AnthropicServer(lambda *_: "Tealanders love tea.") as server,
        pytest.raises(Interrupted, match="budget of"),
    ):
        crawled("anthropic", server.url, max_cost=0.0001, price_in=1.0, price_out=10.0)
    assert 3 <= len(server.bodies) <= 6


def test_the_command_line_asks_in_the_chat_form(tmp_path: Path) -> None:
    with AnthropicServer(lambda *_: "Tealanders love tea.") as server:
        arguments = [
            "crawl",
            "--model",
            "anthropic:m",
            "--group",
            "Tealanders",
            "--samples",
            "4",
            "--iterations",
            "0",
            "--set",
            "initial-predicates=love",
            "--set",
            "answers=1",
            "--base-url",
            server.url,
            "--store",
            str(tmp_path / "kgbias.db"),
        ]
        done = CliRunner().invoke(cli, [*arguments, "--json"])
        assert done.exit_code == 0 and json.loads(done.stdout)["asked"] == 4
        with pytest.raises(UsageError, match="--form must be chat"):
            cli.main([*arguments, "--form", "completion"], standalone_mode=False)


def test_what_each_kind_allows_is_what_its_classes_say() -> None:
    rows = {row.kind: row for row in kgbias.model_kinds()}
    able = AnthropicModel.abilities
    assert rows["anthropic"].structured == able.structured and rows["anthropic"].seed == able.seed
    assert rows["google"].keys == GoogleModel.api.keys and rows["google"].probe == "choice"
    assert [row.kind for row in rows.values() if row.crawl == "no"] == [
        "reference-masked",
        "minilm",
    ]
    assert [rows[k].logprobs for k in ("reference", "hf", "openai", "google", "minilm")] == [
        "yes",
        "depends",
        "depends",
        "no",
        "no",
    ]
    done = CliRunner().invoke(cli, ["models"])
    assert done.exit_code == 0 and "anthropic:ID" in done.stdout
    data = json.loads(CliRunner().invoke(cli, ["models", "--json"]).stdout)
    assert [row["kind"] for row in data] == list(rows)


bodies: list[Any] = [
    None,
    5,
    "x",
    [],
    {},
    {"content": None, "stop_reason": None},
    {"content": [5]},
    {"content": [{"type": "text", "text": 5}], "stop_reason": "end_turn"},
    {"content": [{"type": 5}], "stop_reason": "end_turn"},
    {"content": [{"type": "text", "text": "x"}], "stop_reason": {}, "usage": [], "model": 5},
    {"candidates": None},
    {"candidates": [None]},
    {"candidates": [{"finishReason": {}}]},
    {"candidates": [{"finishReason": "STOP", "content": {"parts": None}}]},
    {"candidates": [{"finishReason": "STOP", "content": {"parts": [{"text": 5}, "text"]}}]},
    {"candidates": [{"finishReason": "OTHER"}], "usageMetadata": {"promptTokenCount": "x"}},
    {"promptFeedback": {"blockReason": ["x"]}},
    {"promptFeedback": 5, "candidates": {}},
]


@pytest.mark.parametrize("model", [AnthropicModel, GoogleModel])
@pytest.mark.parametrize("body", bodies, ids=json.dumps)
def test_any_body_ends_as_something(model: type[Any], body: Any) -> None:
    opened: ServerModel = model("m", "http://127.0.0.1", 1, 1.0, lambda _: None)
    found = opened._read_body(json.dumps(body).encode(), some(1)[0], 0.0)
    assert found.finish in ("stop", "refused", "error")
    assert found.finish != "error" or (found.error and "\n" not in found.error)


@pytest.mark.parametrize("kind", ["openai", "anthropic", "google"])
def test_a_redirect_takes_no_key_elsewhere(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """httpx takes Authorization off a redirect to another host, and no other header."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_ORG_ID", "org-of-the-user")
    monkeypatch.setenv("ANTHROPIC_CUSTOM_HEADERS", "X-Team: a-team-of-the-user")
    kinds = {**PROVIDERS, "openai": FaultServer}
    with kinds[kind](lambda *_: " food.") as theirs:
        path = theirs.url.replace("127.0.0.1", "localhost")
        away = ("raw", (307, {"location": f"{path}/elsewhere"}, b""))
        with kinds[kind](lambda *_: away) as first:
            model = open_model(f"{kind}:m", base_url=first.url, notify=print)
            list(model.complete(some(1)))
            model.close()
        sent = " ".join(str(headers) for headers in theirs.headers)
        assert theirs.headers or kind == "google"  # whose client follows none
        assert KEY in str(first.headers) and KEY not in sent and "of-the-user" not in sent
    with kinds[kind](lambda *_: " food.") as plain, withhold_keys([plain.url]):
        model = open_model(f"{kind}:m", base_url=plain.url, notify=print)
        list(model.complete(some(1)))
        model.close()
        assert KEY not in str(plain.headers) and "of-the-user" not in str(plain.headers)
