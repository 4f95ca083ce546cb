"""Structured output: read by the one parser, refused by some servers, ignored by others."""

import json
from dataclasses import replace
from typing import Any

import pytest

from kgbias.crawl.config import CrawlConfig
from kgbias.crawl.crawler import crawl
from kgbias.crawl.parse import answer_schema, flatten_schema_answer
from kgbias.crawl.seeds import choose_seeds
from kgbias.errors import UsageError
from kgbias.graph.sqlite import SQLiteStore
from kgbias.models import open_model
from tests.conftest import require_modules
from tests.fault_server import Fault, FaultServer
from tests.hostile import HOSTILE_TEXTS

require_modules("openai")

CONFIG = CrawlConfig(
    seeds=tuple(choose_seeds("any", ["gender"])),
    samples=1,
    iterations=1,
    predicate_prompts=1,
    object_prompts=1,
    form="chat",
    structured=True,
)


@pytest.mark.parametrize(
    ("answer", "predicate", "text"),
    [
        ('{"object": "tea"}', False, " tea"),
        ('```json\n{"object": "green\\n tea"}\n```', False, " green tea"),
        ('{"predicate": "drink", "object": "tea"}', True, " drink\nA: tea"),
        ("tea.", False, "tea."),
        ('{"object": "te', False, None),
        ('{"object": 5}', False, None),
        ('{"object": "tea", "more": "x"}', False, None),
        ('{"object": "tea"}', True, None),
        ("{" * 100_000, False, None),
    ],
)
def test_as_text(answer: str, predicate: bool, text: str | None) -> None:
    assert flatten_schema_answer(answer, names_predicate=predicate) == text


@pytest.mark.parametrize("text", HOSTILE_TEXTS)
def test_hostile_text_in_a_schema(text: str) -> None:
    for said in (text, json.dumps({"object": text}), json.dumps({"object": text})[:-3]):
        assert isinstance(flatten_schema_answer(said, names_predicate=False), str | None)


def test_the_schema_is_flat() -> None:
    found = json.loads(answer_schema(names_predicate=True))
    assert found["additionalProperties"] is False and found["required"] == ["predicate", "object"]


def honours(body: dict[str, Any], _: int) -> Fault:
    properties = body["response_format"]["json_schema"]["schema"]["properties"]
    assert "stop" not in body
    return json.dumps({name: f"{name}s" for name in properties}, indent=2)


def plain(body: dict[str, Any]) -> Fault:
    asks_both = body["messages"][-1]["content"].endswith("#")
    return "fear\nA: rain\n" if asks_both else "rain\n"


def refuses(body: dict[str, Any], _: int) -> Fault:
    if "response_format" in body:
        return "refuse", "this server speaks no JSON schemas"
    assert body["stop"]
    return plain(body)


def ignores(body: dict[str, Any], _: int) -> Fault:
    return plain(body)


@pytest.mark.parametrize(
    ("server", "template", "left_out", "sent"),
    [
        (honours, "chat+json", None, "json_schema"),
        (refuses, "chat", ["response_format"], None),
        (ignores, "chat", None, "json_schema"),
    ],
)
def test_servers(
    store: SQLiteStore, server: Any, template: str, left_out: Any, sent: str | None
) -> None:
    notes: list[str] = []
    with FaultServer(server) as faults:
        model = open_model("openai:m", base_url=faults.url, concurrency=8, notify=notes.append)
        result = crawl(CONFIG, model, store)
        model.close()
    assert result.outcomes == {"ok": 3 * (4 + 1 + 1)}
    generations = list(store.generations(result.run.id))
    assert {g.template.partition(":")[2] for g in generations} == {template}
    answers = store.answers([g.answer_key for g in generations])
    details = [json.loads(a.details) for a in answers.values()]
    assert all(d.get("left_out") == left_out for d in details)
    assert all(d.get("response_format") == sent for d in details)
    assert any("response_format" in n for n in notes) == bool(left_out)


def test_what_breaks_the_schema_cannot_be_read(store: SQLiteStore) -> None:
    with FaultServer(lambda *_: '{"object": 5}') as faults:
        model = open_model("openai:m", base_url=faults.url, concurrency=8)
        result = crawl(CONFIG, model, store)
        model.close()
    found = {(g.outcome, g.reason) for g in store.generations(result.run.id)}
    assert found == {("unparsable", "not the schema")}


def test_it_needs_the_chat_form() -> None:
    with pytest.raises(UsageError, match="`form` must be chat"):
        replace(CONFIG, form="completion")
