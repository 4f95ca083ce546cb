"""The client of OpenAI-compatible servers, against a real HTTP server that misbehaves by plan."""

import asyncio
import json
import os
import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from functools import cache
from threading import Event
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kgbias.crawl.parse import read_answer
from kgbias.errors import ModelError, UsageError
from kgbias.language.words import REFUSAL_FILTERS
from kgbias.models import open_model
from kgbias.models.base import Completion, Request
from kgbias.models.http import MAX_WAIT_SECONDS, read_secrets, retry_after, sending_headers
from kgbias.models.openai_server import OpenAIModel
from kgbias.models.score.load import open_scorer
from kgbias.models.server import MAX_ATTEMPTS, MAX_TEXT_CHARACTERS
from kgbias.models.truncate import Truncation
from tests.conftest import require_modules
from tests.fault_server import Fault, FaultServer, Plan
from tests.texts import Texts
from tests.waiting import DEADLINE_SECONDS, wait_until

require_modules("openai")

CHAT = (("system", "Be brief."), ("user", "Men love"))


@pytest.fixture(autouse=True)
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Waits of milliseconds, and a key that must show up nowhere."""
    real = asyncio.sleep
    monkeypatch.setattr(asyncio, "sleep", lambda s: real(min(s, 0.005)))
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret")


def ask(
    server: FaultServer, requests: list[Request], notes: list[str] | None = None, **options: Any
) -> list[Completion]:
    model = open_model(
        "openai:m",
        base_url=server.url,
        notify=(notes if notes is not None else []).append,
        **{"concurrency": 8, "timeout": DEADLINE_SECONDS} | options,
    )
    found: dict[int, Completion] = {}
    for batch in model.complete(requests):
        for index, completion in batch:
            assert index not in found
            found[index] = completion
    assert sorted(found) == list(range(len(requests)))
    return [found[n] for n in range(len(requests))]


def some(count: int, **changes: Any) -> list[Request]:
    return [Request("Men love", seed=n, stop=("\n",), **changes) for n in range(count)]


def once(fault: Fault) -> Plan:
    """The fault at the first asking of each request, an answer at the second."""
    return lambda body, number: fault if number == 1 else " food."


def test_completions_and_chat() -> None:
    with FaultServer(lambda body, _: " food.\nand more") as server:
        (plain,) = ask(server, some(1))
        (chat,) = ask(server, [Request(CHAT, seed=1, stop=("\n",), max_tokens=5)])
        assert plain.text == chat.text == " food."
        assert (plain.prompt_tokens, plain.completion_tokens) == (7, 3)
        assert plain.details["stop_in_text"] and plain.details["served_model"] == "m"
        assert server.bodies[1]["messages"][0] == {"role": "system", "content": "Be brief."}
        assert server.bodies[1]["max_tokens"] == 5
        sent = {name.lower(): value for name, value in server.headers[0].items()}
        assert sent["authorization"] == "Bearer sk-very-secret"


@pytest.mark.parametrize(
    "fault",
    [
        ("status", (429, {})),
        ("status", (429, {"Retry_After": "0.01"})),
        ("status", (500, {})),
        ("status", (503, {"Retry_After": "nonsense"})),
        ("body", "<html><body>502 Bad Gateway</body></html>"),
        ("body", '{"choices": []}'),
        ("body", '{"choices": [{"text": 5}]}'),
        ("body", '{"choices": [{"te'),
        ("body", "[" * 100_000),
        ("cut", None),
    ],
    ids=str,
)
def test_passing_faults_are_asked_again(fault: Fault) -> None:
    with FaultServer(once(fault)) as server:
        found = ask(server, some(6))
        assert [c.text for c in found] == [" food."] * 6
        assert all(n == 2 for n in server.request_counts.values())


def test_a_request_that_hangs_is_asked_again() -> None:
    with FaultServer(once(("hang", DEADLINE_SECONDS))) as server:
        found = ask(server, some(6), timeout=1)
    assert [c.text for c in found] == [" food."] * 6
    assert all(n >= 2 for n in server.request_counts.values())


def test_what_does_not_pass_is_a_failure_of_that_request_only() -> None:
    def plan(body: dict[str, Any], _: int) -> Fault:
        return ("status", (500, {})) if body["seed"] == 2 else " food."

    with FaultServer(plan) as server:
        found = ask(server, some(4))
        assert [c.finish for c in found] == ["stop", "stop", "error", "stop"]
        assert "answered 500" in found[2].error
        assert server.request_counts[2] == MAX_ATTEMPTS


@pytest.mark.parametrize(
    ("code", "advice"),
    [(401, "set OPENAI_API_KEY"), (403, "may this key use"), (404, "is 'm' a model")],
)
def test_what_no_request_can_mend_stops_at_once(code: int, advice: str) -> None:
    with (
        FaultServer(lambda *_: ("status", (code, {}))) as server,
        pytest.raises(ModelError, match=advice) as stop,
    ):
        ask(server, some(200))
    assert sum(server.request_counts.values()) <= 8
    assert len(str(stop.value).splitlines()) == 1


def test_no_server() -> None:
    with FaultServer(lambda *_: "") as server:
        url = server.url
    model = open_model("openai:m", base_url=url)
    with pytest.raises(ModelError, match=r"cannot reach http://127\.0\.0\.1"):
        list(model.complete(some(3)))
    with pytest.raises(UsageError, match="base_url must look like"):
        open_model("openai:m", base_url="localhost:8000")


@pytest.mark.parametrize("concurrency", [1, 8])
def test_refused_parameters_are_left_out_from_then_on(concurrency: int) -> None:
    def plan(body: dict[str, Any], _: int) -> Fault:
        if "max_tokens" in body:
            return ("refuse", "use max_completion_tokens instead of max_tokens")
        if "temperature" in body:
            return ("refuse", "temperature does not support 0.8 with this model")
        return " food."

    notes: list[str] = []
    with FaultServer(plan) as server:
        requests = [Request(CHAT, seed=n) for n in range(20)]
        found = ask(server, requests, notes, concurrency=concurrency)
        assert [c.text for c in found] == [" food."] * 20
        assert found[-1].details["left_out"] == ["temperature"]
        assert sum(server.request_counts.values()) <= 20 + 2 * concurrency
    assert sum("does not take temperature" in note for note in notes) == 1


def test_truncation_is_sent_to_a_server_that_knows_it() -> None:
    notes: list[str] = []
    rule = Truncation(top_k=40, top_p=0.9, min_p=0.1)
    with FaultServer(lambda *_: " food.") as server:
        found = ask(server, [*some(1, truncation=rule), Request(CHAT, 1, truncation=rule)], notes)
        ask(server, some(1))
        *with_it, without = server.bodies
    assert all(rule.as_dict().items() <= body.items() for body in with_it)
    assert not rule.as_dict().keys() & without.keys() and "extra_body" not in with_it[0]
    assert not notes and not any("left_out" in c.details for c in found)


@pytest.mark.parametrize("known", [{"top_p"}, set()], ids=["top_p", "none"])
def test_truncation_that_a_server_refuses_is_left_out_and_said_once(known: set[str]) -> None:
    """A server that names all that it does not know, in any order, as `transformers serve` does;
    and one that does not take top_p beside a temperature."""
    rule = {"top_k": 40, "top_p": 0.9, "min_p": 0.1}

    def plan(body: dict[str, Any], _: int) -> Fault:
        if unknown := [name for name in ("min_p", "top_k") if name in body]:
            return ("detail", f"Unexpected fields in the request: {unknown}")
        if "top_p" in body.keys() - known:
            return ("refuse", "temperature and top_p cannot both be given")
        return " food."

    notes: list[str] = []
    with FaultServer(plan) as server:
        asked = some(20, truncation=Truncation(**rule))  # type: ignore[arg-type]
        found = ask(server, asked, notes)
        assert [c.text for c in found] == [" food."] * 20
        assert found[-1].details["left_out"] == sorted(rule.keys() - known)
        assert "temperature" in server.bodies[-1] and known <= server.bodies[-1].keys()
    assert sorted(note.split(" does not take ")[1].split(":")[0] for note in notes) == sorted(
        rule.keys() - known
    )


def test_a_busy_server_is_asked_less_and_the_wait_is_shown() -> None:
    notes: list[str] = []
    with FaultServer(once(("status", (429, {"Retry_After": "7"})))) as server:
        ask(server, some(30), notes)
    assert notes and "busy" in notes[0] and "7 s" in notes[0]
    assert len(notes) <= 5


def test_retry_after() -> None:
    read = retry_after
    assert read({"retry-after": "7"}) == 7
    assert read({}) == read({"retry-after": "soon"}) == read({"retry-after": "nan"}) == 0
    assert read({"retry-after": "86400"}) == 86_400 > MAX_WAIT_SECONDS
    in_an_hour = format_datetime(datetime.now(UTC) + timedelta(hours=1), usegmt=True)
    assert 3000 < read({"retry-after": in_an_hour}) <= 3600


def test_the_key_and_the_password_show_up_nowhere() -> None:
    notes: list[str] = []
    leak = ("refuse", "bad key sk-very-secret for http://user:pw@127.0.0.1")
    with FaultServer(lambda *_: leak) as server:
        url = server.url.replace("http://", "http://user:pw@")
        model = open_model("openai:m", base_url=url, notify=notes.append)
        ((item,),) = model.complete(some(1))
    said = repr(model.info) + repr(item) + repr(notes) + repr(model)
    assert "sk-very-secret" not in said and "user:pw" not in repr(model.info)


def test_an_answer_that_is_withheld_is_a_refusal() -> None:
    said = {"choices": [{"message": {"content": None}, "finish_reason": "content_filter"}]}
    refusal = {"choices": [{"message": {"refusal": "I cannot."}, "finish_reason": "stop"}]}
    error = {"error": {"code": "content_filter", "message": "The response was filtered"}}
    filtered = (400, {"content-type": "application/json"}, json.dumps(error).encode())
    for fault in (("said", said), ("said", refusal), ("raw", filtered)):
        with FaultServer(lambda *_, fault=fault: fault) as server:
            (found,) = ask(server, [Request(CHAT, seed=1)])
            assert found.finish == "refused" and len(server.bodies) == 1


def test_a_model_that_spends_its_limit_on_reasoning_is_given_more() -> None:
    thought = {"completion_tokens": 32, "completion_tokens_details": {"reasoning_tokens": 32}}
    cut = {"choices": [{"message": {"content": ""}, "finish_reason": "length"}], "usage": thought}

    def plan(body: dict[str, Any], _: int) -> Fault:
        return " food." if body["max_tokens"] > 2_000 else ("said", cut)

    notes: list[str] = []
    with FaultServer(plan) as server:
        found = ask(server, [Request(CHAT, seed=n) for n in range(9)], notes, concurrency=3)
    assert [c.text for c in found] == [" food."] * 9
    assert found[0].completion_tokens == 35 and found[-1].completion_tokens == 3
    assert len(notes) == 1 and "thinks before it answers" in notes[0]


@pytest.mark.parametrize(
    ("usage", "tokens", "thought_tokens"),
    [
        ({"prompt_tokens": 20, "completion_tokens": 151, "total_tokens": 553}, 533, 382),
        ({"prompt_tokens": 21, "completion_tokens": 0, "total_tokens": 81}, 60, 0),
        ({"prompt_tokens": 20, "completion_tokens": 151, "total_tokens": 171}, 151, 0),
        ({"prompt_tokens": 0, "completion_tokens": 3, "total_tokens": 90}, 3, 0),
    ],
)
def test_what_is_counted_in_the_total_alone_was_thought(
    usage: dict[str, int], tokens: int, thought_tokens: int
) -> None:
    choice = {"message": {"content": "Hello there."}, "finish_reason": "stop"}
    with FaultServer(lambda *_: ("said", {"choices": [choice], "usage": usage})) as server:
        (found,) = ask(server, [Request(CHAT, seed=1)])
    assert found.completion_tokens == tokens
    assert found.details.get("thought_tokens", 0) == thought_tokens


def test_a_megabyte_is_cut_and_said() -> None:
    with FaultServer(lambda *_: "x" * 2**20) as server:
        (found,) = ask(server, some(1))
    assert len(found.text) == MAX_TEXT_CHARACTERS
    assert found.details["truncated"] == 2**20


def test_closing_waits_for_no_answer_and_asks_no_more() -> None:
    closed = Event()

    def plan(body: dict[str, Any], _: int) -> Fault:
        if body["seed"] >= 2:
            closed.wait(DEADLINE_SECONDS)
        return " food."

    with FaultServer(plan) as server:
        model = open_model("openai:m", base_url=server.url, concurrency=4, timeout=DEADLINE_SECONDS)
        stream = model.complete(some(20))
        assert next(stream)
        stream.close()
        closed.set()
        assert len(server.bodies) <= 2 + 4


def test_no_more_is_asked_while_nobody_takes_answers() -> None:
    with FaultServer(lambda *_: " food.") as server:
        model = open_model("openai:m", base_url=server.url, concurrency=1, timeout=DEADLINE_SECONDS)
        stream = model.complete(some(40))
        taken = len(next(stream))
        wait_until(lambda: len(server.bodies) >= taken + 4)
        time.sleep(0.2)  # in which all would be asked
        assert len(server.bodies) <= taken + 4
        assert taken + sum(map(len, stream)) == 40


json_values = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False) | st.text(max_size=40),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=6,
)
choices = st.fixed_dictionaries(
    {}, optional={"text": json_values, "message": json_values, "finish_reason": json_values}
)
bodies = st.one_of(
    st.text(max_size=200),
    json_values.map(json.dumps),
    st.fixed_dictionaries(
        {"choices": st.lists(choices, max_size=2)},
        optional={"usage": json_values, "model": json_values},
    ).map(json.dumps),
    st.text(max_size=200).map(lambda t: json.dumps({"choices": [{"text": t}]})),
)


@cache
def _reading() -> OpenAIModel:
    """One for all bodies: a client takes longer to open than a body to read."""
    return OpenAIModel("m", "http://127.0.0.1/v1", 1, 1.0, lambda _: None)


# Thousands in CI, fewer while one works.
@settings(
    max_examples=3000 if os.environ.get("KGBIAS_CI") else 200,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
@given(bodies, st.sampled_from(["Men love", CHAT]), st.sampled_from([None, "love"]))
def test_any_body_ends_as_something(body: str, prompt: Any, predicate: str | None) -> None:
    model = _reading()
    data = body.encode("utf-8", "surrogatepass")
    completion = model._read_body(data, Request(prompt, seed=0, stop=("\n",)), 0.0)
    if completion.finish == "error":
        assert completion.error and "\n" not in completion.error
    else:
        reading = read_answer(
            completion.text, completion.finish, predicate=predicate, filters=tuple(REFUSAL_FILTERS)
        )
        assert reading.outcome in ("ok", "refused", "unparsable")
        assert completion.prompt_tokens >= 0


def test_a_redirect_to_a_port_that_is_none_is_one_answer_less(texts: Texts) -> None:
    """The client would raise OverflowError, in a group of exceptions."""
    away = ("raw", (307, {"location": "http://127.0.0.1:99999/v1"}, b""))
    with FaultServer(lambda body, number: " food." if body.get("seed") == 0 else away) as server:
        first, second = ask(server, some(2), concurrency=1)
        assert first.text == " food." and second.finish == "error"
        texts.check(second.error)
    with FaultServer(lambda *_: away) as server, pytest.raises(ModelError, match="no ports above"):
        ask(server, some(1))


@pytest.mark.parametrize("kind", ["openai", "anthropic", "google"])
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ALL_PROXY", "socks5://u:sesame-open@127.0.0.1:1"),
        ("ALL_PROXY", "gopher://127.0.0.1:1"),
        ("HTTP_PROXY", "http://[::1"),
        ("HTTP_PROXY", "http://127.0.0.1:99999"),
        ("SSL_CERT_FILE", "/nowhere/at/all.pem"),
    ],
)
def test_what_the_environment_says_of_clients_is_told(
    kind: str, name: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for proxy in ("ALL_PROXY", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"):
        monkeypatch.delenv(proxy, raising=False)
        monkeypatch.delenv(proxy.lower(), raising=False)
    monkeypatch.setenv(name, value)
    model = open_model(f"{kind}:m", base_url="http://127.0.0.1:1/v1", notify=lambda _: None)
    request = Request(CHAT, seed=1)
    with pytest.raises(ModelError) as told:
        list(model.complete([request]))
    assert "\n" not in str(told.value) and "sesame-open" not in str(told.value)
    if "cannot make a client" in str(told.value):
        assert name in str(told.value)
    if kind == "openai":
        with pytest.raises(ModelError):
            open_scorer("openai:m", base_url="http://127.0.0.1:1/v1").score(["a b"])


@pytest.mark.parametrize(
    ("text", "finish"),
    [
        ("are people who live in a place where the", "length"),
        ("are people who live in a place of their own.", "stop"),
        ("are kind", "stop"),
    ],
)
def test_an_answer_without_reason_or_count_that_stops_in_a_sentence_is_cut(
    text: str, finish: str
) -> None:
    body = json.dumps({"choices": [{"text": text, "finish_reason": None}]})
    with FaultServer(lambda *_: ("body", body)) as server:
        (found,) = ask(server, [Request("Men", seed=0, max_tokens=12)])
    assert found.finish == finish


def test_own_headers_go_to_their_server_alone_and_are_shown_to_nobody() -> None:
    with FaultServer(lambda *_: " food.") as own, FaultServer(lambda *_: " food.") as other:
        with sending_headers({"X-Tenant": "tenant-1234-secret"}, own.url):
            ask(own, some(1))
            ask(other, some(1))
        ask(own, some(1))
        sent = [{k.lower(): v for k, v in h.items()} for h in (*own.headers, *other.headers)]
    assert [h.get("x-tenant") for h in sent] == ["tenant-1234-secret", None, None]
    with sending_headers({"X-Tenant": "tenant-1234-secret"}, own.url):
        assert "1234" not in read_secrets(own.url).clean("not for tenant-1234-secret")
    with pytest.raises(UsageError), sending_headers({"X Tenant": "a"}, own.url):
        pass


def test_fewer_are_asked_at_once_when_answers_come_too_late() -> None:
    notes: list[str] = []
    with FaultServer(once(("hang", DEADLINE_SECONDS))) as server:
        ask(server, some(6), notes, timeout=1)
    assert any(note.startswith("answers take too long: ") for note in notes)


def test_an_openai_client_is_asked_at_its_own_address_with_its_own_key() -> None:
    import openai

    from kgbias.models.in_memory import in_memory

    with FaultServer(lambda *_: " food.") as server:
        client = openai.OpenAI(api_key="sk-of-the-client", base_url=server.url)
        model = in_memory(client, name="m")
        assert model.info.name == "openai:m"
        found = [c.text for batch in model.complete(some(2)) for _, c in batch]
        model.close()
        sent = {name.lower(): value for name, value in server.headers[0].items()}
    assert found == [" food."] * 2 and sent["authorization"] == "Bearer sk-of-the-client"
