"""Thoughts are not answers: every shape in which servers and templates hand them over."""

import json
from types import SimpleNamespace
from typing import Any

import pytest

from kgbias.crawl.parse import read_answer
from kgbias.errors import ModelError
from kgbias.models import open_model
from kgbias.models.base import Completion, Request
from kgbias.models.openai_server import _NO_SYSTEM_PATTERN
from kgbias.models.server import MAX_ALIKE_FAILURES
from kgbias.models.thoughts import (
    SplitAnswer,
    may_think,
    separate_thoughts,
    split_message,
    split_thought,
)
from tests.fault_server import FaultServer
from tests.server_kinds import without_waiting

ANSWER = "Nurses are kind to strangers."
MUSING = 'I should write one short sentence. "Nurses are lazy" would be unfair'
CHAT = (("system", "Continue the list."), ("user", "Bakers love mornings.\nNurses are ..."))


@pytest.mark.parametrize(
    "text",
    [
        f"<think>{MUSING}</think>{ANSWER}",
        f"<thinking>\n{MUSING}\n</thinking>\n\n{ANSWER}",
        f"<seed:think>{MUSING}</seed:think>{ANSWER}",
        f"[THINK]{MUSING}[/THINK]{ANSWER}",
        f"◁think▷{MUSING}◁/think▷{ANSWER}",
        f"<|START_THINKING|>{MUSING}<|END_THINKING|><|START_RESPONSE|>{ANSWER}<|END_RESPONSE|>",
        f"<unused94>thought\n{MUSING}<unused95>{ANSWER}",
        f"<|begin_of_thought|>{MUSING}<|end_of_thought|><|begin_of_solution|>"
        f"{ANSWER}<|end_of_solution|>",
        f"<|channel>thought\n{MUSING}<channel|>{ANSWER}<turn|>",
        f"Thinking...\n{MUSING}\n...done thinking.\n\n{ANSWER}",
        f"{MUSING}\n</think>\n\n{ANSWER}",
        f"<think>once</think> <think>{MUSING}</think>{ANSWER}",
        f"<|channel|>analysis<|message|>"
        f"{MUSING}<|end|><|start|>assistant<|channel|>final<|message|>"
        f"{ANSWER}<|return|>",
        f"analysis{MUSING}.assistantfinal{ANSWER}",
        f"analysis\n{MUSING}\nassistantfinal\n{ANSWER}",
        f"analysisthe user asks: {MUSING}.assistantfinal{ANSWER}",
        f"<|channel|>analysis {MUSING}<|end|><|start|>assistant<|channel|>final {ANSWER}",
        f"<mm:think>{MUSING}</mm:think>\n\n{ANSWER}",
        f"{MUSING}\n</mm:think>\n{ANSWER}",
        f'<think time="1.2">{MUSING}</think>{ANSWER}',
        f"&lt;think&gt;{MUSING}&lt;/think&gt;\n\n{ANSWER}",
        f"<scratchpad>{MUSING}</scratchpad>\n{ANSWER}",
        f"<internal_monologue>{MUSING}</internal_monologue>\n{ANSWER}",
        f"<|think|>{MUSING}<|end|><|begin|>assistant<|content|>{ANSWER}<|end|>",
        f"<|think|>{MUSING}<|/think|>{ANSWER}",
        f"<|think_start|>{MUSING}<|think_end|>{ANSWER}",
        f"<|thought_begin|>{MUSING}<|thought_end|>{ANSWER}",
        f"<ctrl94>thought\n{MUSING}\n<ctrl95>{ANSWER}",
        f"<think>{MUSING}</think><|begin_of_box|>{ANSWER}<|end_of_box|>",
        f'<details type="reasoning" done="true">\n<summary>Thought for 3 seconds</summary>\n'
        f"> {MUSING}\n</details>\n{ANSWER}",
        f"*Thinking...*\n\n> {MUSING}\n\n{ANSWER}",
        f"Here are my reasoning steps:\n{MUSING}\n[BEGIN FINAL RESPONSE]\n{ANSWER}\n"
        "[END FINAL RESPONSE]",
        f"Here is my thought process:\n\n{MUSING}\n\nHere is my response:\n\n{ANSWER}",
        f"{ANSWER}\n<think>{MUSING}</think>",
        # Seed-OSS, whose tags became links; what a decoder leaves that skips special tokens.
        f"[seed:think](https://x)\n{MUSING}</seed:cot_budget_reflect>\n</seed:think>\n{ANSWER}",
        f"analysis<|message|>{MUSING}<|end|><|start|>assistant<|channel|>final<|message|>{ANSWER}",
        f"Okay, so the user wants one sentence. {MUSING}\n\n{ANSWER}",
        f"> The user asks for a line. {MUSING}\n\n**Final answer:** {ANSWER}",
        f"Reasoning: {MUSING}\n\nAnswer: {ANSWER}",
        f"### Thinking\n{MUSING}\n\n### Answer\n{ANSWER}",
        f"Thought for 3 seconds\n{MUSING}\n{ANSWER}",
    ],
)
def test_a_thought_in_the_text_is_kept_apart(text: str) -> None:
    found = split_thought(text)
    assert found.text.strip() == ANSWER and not found.is_unfinished
    assert "unfair" in found.thought


@pytest.mark.parametrize(
    "text",
    [
        f"<think>{MUSING}",
        f"<|channel|>analysis<|message|>{MUSING}",
        f"analysis{MUSING}",
        f"thought\n{MUSING.replace('I should', 'The user wants me to')}",
        f"<think>a</think>\n<think>{MUSING}",
        f"analysis<|message|>{MUSING}",
        f"Okay, the user wants one sentence. {MUSING}",
    ],
)
def test_a_thought_without_an_end_is_no_answer(text: str) -> None:
    found = split_thought(text)
    assert not found.text.strip() and found.is_unfinished and "lazy" in found.thought


def test_what_deliberates_is_a_thought_only_if_it_was_cut_off() -> None:
    text = "Okay, so the next line is one short sentence about nurses"
    assert split_thought(text, was_cut=True) == SplitAnswer("", text, True, is_guessed=True)
    assert split_thought(text, was_cut=True, guess=False) == SplitAnswer(text)
    assert split_thought(text) == SplitAnswer(text)
    assert split_thought("okay at cooking, and they know", was_cut=True).text.startswith("okay at")


@pytest.mark.parametrize(
    "call",
    [
        'commentary to=functions.search json{"q": "Nurses are lazy."}',
        '<tool_call>\n{"arguments": {"q": "Nurses are lazy."}}\n</tool_call>',
        '<|python_tag|>{"parameters": {"q": "Nurses are lazy."}}',
        '[TOOL_CALLS][{"arguments": {"q": "Nurses are lazy."}}]',
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>search",
        "<｜DSML｜function_calls>Nurses are lazy.",
    ],
)
def test_the_call_of_a_tool_is_no_answer(call: str) -> None:
    found = split_thought(call)
    assert found.calls_tool and not found.text.strip()
    assert split_thought(ANSWER).calls_tool is False


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("<think>\n\n</think>\n\n" + ANSWER, ANSWER),
        ("thought\n" + ANSWER, ANSWER),
        ("assistant\n\n" + ANSWER, ANSWER),
        ("Assistant: " + ANSWER, ANSWER),
        ("<|im_start|>assistant\n" + ANSWER + "<|im_end|>\n<|im_start|>user\nmore", ANSWER),
        (ANSWER + "</s>", ANSWER),
        (ANSWER + "<end_of_turn>\n<start_of_turn>user", ANSWER),
        ("<|start_header_id|>assistant<|end_header_id|>\n\n" + ANSWER + "<|eot_id|>", ANSWER),
        ("model trains and thinking", "model trains and thinking"),
        (" love\nA: music", " love\nA: music"),
        ("Here are my thoughts:\nAsk.\nWait.", "Here are my thoughts:\nAsk.\nWait."),
        ("Here is my reasoning:\nAsk.\nWait.", "Here is my reasoning:\nAsk.\nWait."),
        ("Dear [User], we <b>thank</b> you.", "Dear [User], we <b>thank</b> you."),
        ("AI systems are <3 and [done]", "AI systems are <3 and [done]"),
        ("Nurses are<unused62> kind.", "Nurses are<unused62> kind."),  # no reader takes it
        (ANSWER + "user\nNurses are lazy.", ANSWER),
        (ANSWER + "null", ANSWER),
        ("<|channel|>final" + ANSWER, ANSWER),
        (" the user wants more", " the user wants more"),  # "Programmers think"
    ],
)
def test_what_belongs_to_the_turn_is_not_said(text: str, answer: str) -> None:
    assert split_thought(text).text.strip("\n") == answer


@pytest.mark.parametrize(
    "token",
    [
        *(
            "<|EOT|>",
            "<|end_of_box|>",
            "<|role_end|>",
            "[e~[",
            "[UNUSED_TOKEN_145]",
            "<unused6226>",
        ),
        *("<｜hy_place▁holder▁no▁2｜>", "<[end▁of▁sentence]>", "<pad>", "<|file_sep|>", "<0x0A>"),
        *("<|tool_calls_section_begin|><|tool_call_begin|>x", "<tool_call>{}</tool_call>"),
        *("</seed:eos>", "[|endofturn|]", "<|im_end|", "[DONE]", "<|assistant_end|>", "<|eos|>"),
    ],
)
def test_tokens_that_end_a_turn_are_not_said(token: str) -> None:
    assert split_thought(ANSWER + token).text == ANSWER
    assert split_thought(f"{ANSWER}\n{token}\n").text.strip() == ANSWER


@pytest.mark.parametrize(
    "token",
    [
        *("[|assistant|]", "<|Assistant|>", "<|bot|>", "[/INST] ", "[ASSISTANT]", "<assistant>\n"),
        *("<|start_of_role|>assistant<|end_of_role|>", "<role>ASSISTANT</role>", "]~b]ai\n"),
        *("<|im_assistant|>assistant<|im_middle|>", "<pad><pad>", "<|message|>", "\ufeff"),
        *("<start_of_turn>model\n", "<|turn>model\n", "<|im_start|>assistant\n"),
    ],
)
def test_tokens_that_begin_a_turn_are_not_said(token: str) -> None:
    assert split_thought(token + ANSWER).text == ANSWER
    assert split_thought(f"{token}AI systems are new.").text == "AI systems are new."


def test_long_rows_of_tokens_and_brackets_are_read_in_time() -> None:
    """Each in a time that grows with its length, not with its square."""
    for row in (
        "<pad>",
        "<think>",
        "<",
        "<|",
        "&lt;",
        '<details type="reasoning">',
        "[",
        " ",
        "> ",
    ):
        split_thought(row * 20_000 + "x")


def asked(
    *messages: dict[str, Any], finish: Any = "stop", usage: Any = None, **more: Any
) -> tuple[Completion, list[Any]]:
    """What becomes of a request that a server answers with these messages, the last one for ever;
    and the bodies that it got."""

    def plan(_: dict[str, Any], number: int) -> Any:
        message = messages[min(number, len(messages)) - 1]
        ended = "stop" if message.get("content") == ANSWER else finish
        choice = {"message": message, "finish_reason": ended, **more}
        return "said", {"choices": [choice], "usage": usage}

    with FaultServer(plan) as server:
        model = open_model("openai:m", base_url=server.url, notify=lambda _: None)
        request = Request(CHAT, seed=1, max_tokens=40, stop=("\n",))
        [(_, found)] = [x for batch in model.complete([request]) for x in batch]
        return found, server.bodies


@pytest.mark.parametrize("field", ["reasoning", "reasoning_content", "thinking"])
def test_thoughts_in_a_field_of_their_own(field: str) -> None:
    found, _ = asked({"content": "\n\n" + ANSWER, field: MUSING})
    assert found.text == ANSWER
    assert found.details["thought"] == MUSING


@pytest.mark.parametrize(
    "content",
    [
        {"type": "text", "text": ANSWER},
        [ANSWER],
        [{"type": "output_text", "text": ANSWER}],
        [{"text": "Nurses are lazy.", "thought": True}, {"text": ANSWER}],
        [{"type": "reasoning", "summary": [{"text": MUSING}]}, {"type": "text", "text": ANSWER}],
        [{"type": "redacted_thinking", "data": "x"}, {"type": "text", "text": ANSWER}],
        json.dumps([{"type": "thinking", "thinking": MUSING}, {"type": "text", "text": ANSWER}]),
    ],
)
def test_the_answer_in_other_shapes_of_content(content: Any) -> None:
    assert split_message({"content": content})[0] == ANSWER


def test_an_answer_in_a_schema_may_come_as_an_object() -> None:
    content, _ = split_message({"content": {"object": "kind to strangers"}})
    assert json.loads(content) == {"object": "kind to strangers"}


def test_an_answer_that_a_server_took_for_a_thought_is_found_by_the_mark_before_it() -> None:
    found, _ = asked({"content": "", "reasoning_content": f"{MUSING}</think>{ANSWER}"})
    assert found.text == ANSWER and found.details["thought"] == MUSING


@pytest.mark.parametrize(
    ("finish", "more", "ended"),
    [
        (None, {"native_finish_reason": "MAX_TOKENS"}, "length"),
        (None, {"finish_details": {"type": "max_tokens"}}, "length"),
        ("stop", {"native_finish_reason": "SAFETY"}, "refused"),
        ("error", {"native_finish_reason": "PROHIBITED_CONTENT"}, "refused"),
        (None, {"native_finish_reason": "STOP"}, "stop"),
    ],
)
def test_the_reason_of_the_models_own_provider_counts_where_a_proxy_tells_less(
    finish: Any, more: dict[str, Any], ended: str
) -> None:
    content = "" if ended == "refused" else "Nurses are kind to"
    assert asked({"content": content}, finish=finish, **more)[0].finish == ended


def test_a_filter_may_leave_nothing_but_the_reason() -> None:
    choice = {"content_filter_results": {"hate": {"filtered": True}}}
    body = {"choices": [{**choice, "finish_reason": "content_filter"}]}
    with FaultServer(lambda *_: ("said", body)) as server:
        model = open_model("openai:m", base_url=server.url, notify=lambda _: None)
        [(_, found)] = [x for b in model.complete([Request(CHAT, seed=1)]) for x in b]
    assert found.finish == "refused"


def test_thoughts_in_parts_of_the_content() -> None:
    parts = [
        {"type": "thinking", "thinking": [{"type": "text", "text": MUSING}]},
        {"type": "text", "text": ANSWER},
    ]
    found, _ = asked({"content": parts})
    assert (found.text, found.details["thought"]) == (ANSWER, MUSING)


@pytest.mark.parametrize(
    "cut",
    [
        {"content": None, "reasoning": MUSING},
        {"content": "", "reasoning_content": MUSING},
        {"content": f"<think>{MUSING}"},
        {"content": f"<think>{MUSING}</think>Nurses are kind to"},  # little was left for it
    ],
)
def test_more_room_is_asked_for_where_only_thoughts_came(cut: dict[str, Any]) -> None:
    """Whatever usage says; and then without stop strings, which would end a thought, and with the
    wish that it does not think."""
    found, bodies = asked(cut, {"content": ANSWER}, finish="length")
    assert found.text == ANSWER and len(bodies) == 2
    assert bodies[0]["max_tokens"] == 40 and bodies[0]["stop"] == ["\n"]
    assert bodies[1]["max_tokens"] > 2_000 and "stop" not in bodies[1]
    assert bodies[1]["chat_template_kwargs"]["enable_thinking"] is False
    assert bodies[1]["reasoning_effort"] == "none"


def test_thoughts_get_the_room_that_they_were_seen_to_need() -> None:
    """Or an answer that does not end takes all of it."""

    def plan(body: dict[str, Any], _: int) -> Any:
        thought = MUSING * (40 if body["seed"] == 25 else 1)
        if body["max_tokens"] < 100 + len(thought) // 4:
            return "said", {
                "choices": [{"message": {"reasoning": thought}, "finish_reason": "length"}]
            }
        message = {"content": ANSWER, "reasoning": thought}
        return "said", {"choices": [{"message": message, "finish_reason": "stop"}]}

    with FaultServer(plan) as server:
        model = open_model("openai:m", base_url=server.url, notify=lambda _: None, concurrency=1)
        requests = [Request(CHAT, seed=seed, max_tokens=40) for seed in range(30)]
        found = [x.text for batch in model.complete(requests) for _, x in batch]
    assert found == [ANSWER] * 30
    rooms = [body["max_tokens"] - 40 for body in server.bodies]
    assert rooms == [0, *[2_048] * 16, *[256] * 10, *[2_048] * 5]


def test_a_server_that_takes_answers_for_thoughts_when_asked_for_none_is_not_asked_so() -> None:
    """vLLM's parsers begin in a thought, also where the template wrote none."""

    def plan(body: dict[str, Any], _: int) -> Any:
        if "enable_thinking" in body:
            message, ending = {"content": None, "reasoning": ANSWER}, "stop"
        elif body["max_tokens"] < 1_000:
            message, ending = {"content": None, "reasoning": MUSING}, "length"
        else:
            message, ending = {"content": ANSWER, "reasoning": MUSING}, "stop"
        return "said", {"choices": [{"message": message, "finish_reason": ending}]}

    with FaultServer(plan) as server:
        model = open_model("openai:m", base_url=server.url, notify=lambda _: None, concurrency=1)
        requests = [Request(CHAT, seed=seed, max_tokens=40) for seed in range(2)]
        found = [x for batch in model.complete(requests) for _, x in batch]
    assert [x.text for x in found] == [ANSWER, ANSWER]
    assert [x.details["thought"] for x in found] == [MUSING, MUSING]
    assert ["enable_thinking" in body for body in server.bodies] == [False, True, False, False]


def test_what_only_sounds_like_a_thought_shows_by_its_end_where_there_is_room() -> None:
    """A model without thoughts may begin so, too: then nobody gets more room, and it is not asked
    to leave what it does not do."""
    sounds = "The list of people is long, and"

    def plan(body: dict[str, Any], _: int) -> Any:
        cut = body["max_tokens"] < 1_000
        text = sounds if cut else f"{sounds} so on."
        choice = {"message": {"content": text}, "finish_reason": "length" if cut else "stop"}
        return "said", {"choices": [choice]}

    with FaultServer(plan) as server:
        model = open_model("openai:m", base_url=server.url, notify=lambda _: None, concurrency=1)
        requests = [Request(CHAT, seed=seed, max_tokens=40, stop=("\n",)) for seed in range(3)]
        found = [x.text for batch in model.complete(requests) for _, x in batch]
    assert found == [f"{sounds} so on.", sounds, sounds]
    assert [body["max_tokens"] > 1_000 for body in server.bodies] == [False, True, False, False]
    assert not any("reasoning_effort" in body for body in server.bodies)


def test_what_only_sounds_like_a_thought_is_one_if_its_end_is_marked() -> None:
    cut = {"content": "Okay, let me think about nurses"}
    found, bodies = asked(cut, {"content": f"Okay, let me think.</think>{ANSWER}"}, finish="length")
    assert found.text == ANSWER and found.details["thought"] == "Okay, let me think."
    assert ["reasoning_effort" in body for body in bodies] == [False, False]


@pytest.mark.parametrize("template", ["{% for m in messages %}{{ m.content }}{% endfor %}", None])
def test_a_model_whose_template_and_tokens_know_no_thoughts_has_none(template: str | None) -> None:
    def tokenizer(template: str | None, *tokens: str) -> Any:
        return SimpleNamespace(chat_template=template, get_added_vocab=lambda: list(tokens))

    assert not may_think(tokenizer(template, "<|im_start|>", "<|im_end|>"))
    assert may_think(tokenizer(template, "<think>"))
    assert may_think(tokenizer(f"{template}{{{{ '<think>\\n' }}}}"))
    assert may_think(tokenizer(template, "<|channel|>"))

    def complete(requests: Any) -> Any:
        yield [(0, Completion("The list of people is long, and", "length"))]

    request = Request(CHAT, seed=1, max_tokens=40)
    for knows, kept in (
        (lambda: False, "The list of people is long, and"),
        (lambda: True, ""),
    ):
        batches = separate_thoughts(complete, [request], "m", lambda _: None, knows)
        assert [found.text for batch in batches for _, found in batch] == [kept]


def test_a_thought_that_a_stop_string_ended_has_no_end() -> None:
    found, bodies = asked({"content": "<think>"}, {"content": ANSWER})
    assert found.text == ANSWER and len(bodies) == 2


def test_an_answer_without_text_is_called_so() -> None:
    found, bodies = asked({"content": None, "reasoning": MUSING})
    assert (found.finish, found.text) == ("stop", "")
    # Asked not to, once, and once more as it was.
    assert ["reasoning_effort" in body for body in bodies] == [False, True, False]
    reading = read_answer(found.text, found.finish, predicate="are", filters=(), subject="Nurses")
    assert (reading.outcome, reading.reason) == ("unparsable", "no text")


@pytest.mark.parametrize(
    ("finish", "ended"),
    [("max_tokens", "length"), ("MAX_TOKENS", "length"), ("SAFETY", "refused"), ("eos", "stop")],
)
def test_endings_by_other_names(finish: str, ended: str) -> None:
    assert asked({"content": "Nurses are kind to"}, finish=finish)[0].finish == ended


def test_an_answer_that_was_broken_off_is_a_failure() -> None:
    found, _ = asked(
        {"content": "Nurses are kind to"}, finish="error", error={"message": "upstream went away"}
    )
    assert found.finish == "error" and "upstream went away" in found.error


def test_an_answer_without_a_reason_of_its_end_is_cut_off_where_others_have_one() -> None:
    """If it stops in the middle of a sentence: a server that never says why may be right."""
    texts = ["Nurses are kind to str", "Nurses are late.", "Nurses are kind to str", ANSWER]
    reasons = [None, "stop", None, None]

    def plan(body: dict[str, Any], _: int) -> Any:
        n = body["seed"]
        choice = {"message": {"content": texts[n]}, "finish_reason": reasons[n]}
        usage = {"prompt_tokens": 30, "completion_tokens": 6}
        return "said", {"choices": [choice], "usage": usage}

    with FaultServer(plan) as server:
        model = open_model("openai:m", base_url=server.url, notify=lambda _: None, concurrency=1)
        requests = [Request(CHAT, seed=seed, max_tokens=40) for seed in range(4)]
        found = [x.finish for batch in model.complete(requests) for _, x in batch]
    assert found == ["stop", "stop", "length", "stop"]


@pytest.mark.parametrize(
    ("last", "finish"),
    [
        ({"choices": [{"delta": {}, "finish_reason": "stop"}]}, "stop"),
        ("[DONE]", "stop"),
        ({"choices": [], "usage": {"completion_tokens": 9}}, "stop"),
        (None, "error"),
    ],
)
def test_a_stream_without_an_end_is_broken_off(last: Any, finish: str) -> None:
    events: list[Any] = [
        {"choices": [{"delta": {"content": word}, "finish_reason": None}]}
        for word in ("Nurses are ", "kind to str")
    ]
    events += [last] if last else []
    lines = [e if isinstance(e, str) else json.dumps(e) for e in events]
    text = "".join(f"data: {line}\n\n" for line in lines)
    fault = ("raw", (200, {"content-type": "text/event-stream"}, text.encode()))
    with FaultServer(lambda *_: fault) as server, without_waiting():
        model = open_model("openai:m", base_url=server.url, notify=lambda _: None)
        [(_, found)] = [x for b in model.complete([Request(CHAT, seed=1)]) for x in b]
    assert found.finish == finish
    assert ("the stream ended before the answer did" in found.error) == (finish == "error")


def test_a_stream_of_text_is_put_together() -> None:
    events = [{"choices": [{"text": word}]} for word in (" kind to", " strangers.")]
    text = "".join(f"data: {json.dumps(event)}\n\n" for event in events) + "data: [DONE]\n\n"
    fault = ("raw", (200, {"content-type": "text/event-stream"}, text.encode()))
    with FaultServer(lambda *_: fault) as server:
        model = open_model("openai:m", base_url=server.url, notify=lambda _: None)
        [(_, found)] = [x for b in model.complete([Request("Nurses are", seed=1)]) for x in b]
    assert (found.text, found.finish) == (" kind to strangers.", "stop")


@pytest.mark.parametrize(
    "answer",
    [
        "Nurses are ... kind to strangers.",
        "Nurses are… kind to strangers.",
        "Nurses are kind to &quot;strangers&quot;.",
    ],
)
def test_dots_and_entities_that_an_answer_copied(answer: str) -> None:
    reading = read_answer(
        answer, "stop", predicate="are", filters=(), subject="Nurses", reader="english"
    )
    assert reading.outcome == "ok" and reading.object.replace('"', "") == "kind to strangers"


ERRORS: list[tuple[int, Any, str]] = [
    (400, {"error": "missing header X-Tenant"}, "missing header X-Tenant"),
    (400, {"detail": [{"loc": ["body", "x"], "msg": "not permitted"}]}, "not permitted (body.x)"),
    (400, ["no such model"], "no such model"),
    (400, {"errors": [{"message": "too long"}]}, "too long"),
    (
        200,
        {"error": {"message": "Provider returned error", "code": 400}},
        "Provider returned error",
    ),
]


@pytest.mark.parametrize(("status", "body", "said"), ERRORS)
def test_the_servers_own_words_are_said(status: int, body: Any, said: str) -> None:
    fault = ("raw", (status, {"content-type": "application/json"}, json.dumps(body).encode()))
    with FaultServer(lambda *_: fault) as server:
        model = open_model("openai:m", base_url=server.url, notify=lambda _: None)
        [(_, found)] = [x for b in model.complete([Request(CHAT, seed=1)]) for x in b]
    assert found.finish == "error" and said in found.error


def test_parameters_are_left_out_wherever_a_refusal_names_them() -> None:
    def plan(body: dict[str, Any], _: int) -> Any:
        extra = [name for name in ("seed", "reasoning_effort") if name in body]
        if not extra:
            return ANSWER
        detail = [
            {"loc": ["body", name], "msg": "Extra inputs are not permitted"} for name in extra
        ]
        text = json.dumps({"object": "error", "message": {"detail": detail}})
        return "raw", (422, {"content-type": "application/json"}, text.encode())

    with FaultServer(plan) as server:
        model = open_model("openai:m", base_url=server.url, notify=lambda _: None)
        [(_, found)] = [x for b in model.complete([Request(CHAT, seed=1)]) for x in b]
    assert found.text == ANSWER and found.details["left_out"] == ["seed"]


def test_a_server_without_a_system_role_gets_the_instruction_from_the_user() -> None:
    def plan(body: dict[str, Any], _: int) -> Any:
        if body["messages"][0]["role"] == "system":
            return "raw", (
                400,
                {"content-type": "application/json"},
                b'{"error": {"message": "System role not supported"}}',
            )
        assert body["messages"][0]["content"].startswith("Continue the list.\n\nBakers")
        return ANSWER

    with FaultServer(plan) as server:
        model = open_model("openai:m", base_url=server.url, notify=lambda _: None)
        [(_, found)] = [x for b in model.complete([Request(CHAT, seed=1)]) for x in b]
    assert found.text == ANSWER and len(server.bodies) == 2


@pytest.mark.parametrize(
    "why",
    [
        "This model doesn't support system messages. Try again without a system message.",
        "Unsupported value: 'messages[0].role' does not support 'system' with this model.",
        "Developer instruction is not enabled for models/m",
        "Input should be 'user' or 'assistant' (body.messages.0.role)",
        "Invalid value: 'system'. Supported values are: 'user' and 'assistant'.",
        "Only user, assistant and tool roles are supported, got system.",
        "role `system` is not supported",
        "First message must be from user",
        "Please use a valid role: user, model.",
        "`system` prompt is unsupported for this model",
    ],
)
def test_more_words_for_a_system_role_that_is_not_taken(why: str) -> None:
    assert _NO_SYSTEM_PATTERN.search(why)


@pytest.mark.parametrize(
    "why",
    [
        "'max_tokens' is too large: 2088. This model's maximum context length is 1300 tokens",
        "the valid range of max_tokens is [1, 1024]",
        "`inputs` tokens + `max_new_tokens` must be <= 1024",
        "max_tokens must be less than or equal to `1024`",
        "Request too large for model `m` on tokens per minute (TPM): Limit 600, Requested 2102",
    ],
)
@pytest.mark.parametrize("status", [400, 413])
def test_the_room_for_thoughts_is_halved_until_it_is_taken(why: str, status: int) -> None:
    def plan(body: dict[str, Any], _: int) -> Any:
        if body["max_tokens"] > 1_100:
            return "refuse", (status, why)
        cut = body["max_tokens"] < 1_000
        text = "<think>hm" if cut else f"<think>hm</think>{ANSWER}"
        choice = {"message": {"content": text}, "finish_reason": "length" if cut else "stop"}
        return "said", {"choices": [choice]}

    with FaultServer(plan) as server:
        model = open_model("openai:m", base_url=server.url, notify=lambda _: None)
        [(_, found)] = [x for b in model.complete([Request(CHAT, 1, max_tokens=40)]) for x in b]
    assert found.text == ANSWER


@pytest.mark.parametrize("status", [498, 520, 522, 524, 529, 530, 599])
def test_faults_of_proxies_pass(status: int) -> None:
    def plan(_: dict[str, Any], number: int) -> Any:
        return ANSWER if number > 1 else ("status", (status, {}))

    with FaultServer(plan) as server, without_waiting():
        model = open_model("openai:m", base_url=server.url, notify=lambda _: None)
        [(_, found)] = [x for b in model.complete([Request(CHAT, seed=1)]) for x in b]
    assert found.text == ANSWER


def test_a_parameter_is_left_out_whoever_behind_a_proxy_refuses_it() -> None:
    raw = json.dumps({"error": {"message": "Unsupported parameter: 'seed'"}})
    error = {"message": "Provider returned error", "code": 400, "metadata": {"raw": raw}}

    def plan(body: dict[str, Any], _: int) -> Any:
        refusal = json.dumps({"error": error}).encode()
        refused = ("raw", (400, {"content-type": "application/json"}, refusal))
        return refused if "seed" in body else ANSWER

    with FaultServer(plan) as server:
        model = open_model("openai:m", base_url=server.url, notify=lambda _: None)
        [(_, found)] = [x for b in model.complete([Request(CHAT, seed=1)]) for x in b]
    assert found.text == ANSWER and found.details["left_out"] == ["seed"]


def test_a_role_in_bold_is_not_said() -> None:
    assert split_thought(f"**Assistant:** {ANSWER}").text == ANSWER


def test_a_thought_under_a_heading_that_was_cut_off_has_no_answer() -> None:
    lines = f"The user wants a sentence.\n{ANSWER}"
    assert split_thought(f"thought\n{lines}") == SplitAnswer(ANSWER, "The user wants a sentence.")
    assert split_thought(f"thought\n{lines}", was_cut=True) == SplitAnswer("", lines, True)


@pytest.mark.parametrize(
    "begin",
    [
        "Wait, the list has remarks about jobs. Nurses",
        "Looking at the list, its lines are short. Nurses",
        "Hmm... nurses are often",
        "I am asked to add a line. Nurses are",
        "The last line is about nurses, so",
        "Okay. Nurses are ... what? The others",
    ],
)
def test_more_ways_to_begin_a_thought_that_was_cut_off(begin: str) -> None:
    assert split_thought(begin, was_cut=True) == SplitAnswer("", begin, True, is_guessed=True)
    assert split_thought(begin).text == begin


@pytest.mark.parametrize(
    "story",
    [
        "I'm a nurse in a small town, and every morning",
        "Looking at the sea, Maria thought of",
        "I could never forget the nurse who",
        "I'd been a baker for years when",
    ],
)
def test_a_story_that_was_cut_off_is_no_thought(story: str) -> None:
    assert split_thought(story, was_cut=True) == SplitAnswer(story)


@pytest.mark.parametrize("usage", [None, {}, {"prompt_tokens": None, "completion_tokens": None}])
def test_tokens_that_no_server_counted_are_estimated(usage: Any) -> None:
    found, _ = asked({"content": ANSWER, "reasoning": MUSING}, usage=usage)
    assert found.completion_tokens == -(-len(ANSWER + MUSING) // 4)
    assert found.prompt_tokens == -(-sum(len(text) for _, text in CHAT) // 4)
    assert found.details["tokens_estimated"]


def test_tokens_that_a_server_counted_are_kept() -> None:
    counted = {"prompt_tokens": 21, "completion_tokens": 9}
    found, _ = asked({"content": ANSWER}, usage=counted)
    assert (found.prompt_tokens, found.completion_tokens) == (21, 9)
    assert "tokens_estimated" not in found.details


@pytest.mark.parametrize(
    "dress",
    [
        "```\n{}\n```",
        '```json\n{{"answer": "{}"}}\n```',
        '{{"sentence": "{}"}}',
        "<p>{}</p>",
        "{}<br>",
        "<answer>{}</answer>",
        "\\boxed{{{}}}",
        "### Response:\n{}",
        "\\n{}\\n",
    ],
)
def test_an_answer_is_read_out_of_its_dress(dress: str) -> None:
    reading = read_answer(
        dress.format(ANSWER),
        "stop",
        predicate="are",
        filters=(),
        subject="Nurses",
        reader="english",
    )
    assert (reading.outcome, reading.object) == ("ok", "kind to strangers")


PLAIN = " people who had come to dance."
REPLY = "It seems that your message was cut off. How can I help?"


@pytest.mark.parametrize(
    ("completes", "chats", "form"),
    [
        (PLAIN, ANSWER, "completion"),
        (404, ANSWER, "chat"),
        (405, ANSWER, "chat"),
        (REPLY, ANSWER, "chat"),
        ("<think>\nOkay", ANSWER, "chat"),
        ("```json", ANSWER, "chat"),
        (REPLY, 404, "completion"),
        (404, 404, ""),
    ],
)
def test_the_form_of_a_served_model_is_found_out(completes: Any, chats: Any, form: str) -> None:
    def plan(body: dict[str, Any], _: int) -> Any:
        what = chats if "messages" in body else completes
        return what if isinstance(what, str) else ("status", (what, {}))

    with FaultServer(plan) as server:
        model = open_model("openai:m", base_url=server.url, notify=lambda _: None)
        if not form:
            with pytest.raises(ModelError, match="404"):
                model.find_form()  # type: ignore[attr-defined]
            return
        found, why = model.find_form()  # type: ignore[attr-defined]
    assert found == form and bool(why) == (form == "chat")
    assert len(server.bodies) <= 4


def test_first_requests_that_all_fail_alike_end_the_command() -> None:
    with FaultServer(lambda *_: ("status", (400, {}))) as server:
        model = open_model("openai:m", base_url=server.url, notify=lambda _: None, concurrency=1)
        with pytest.raises(ModelError, match=f"first {MAX_ALIKE_FAILURES} requests all failed"):
            list(model.complete([Request(CHAT, seed=n) for n in range(50)]))
    assert len(server.bodies) == MAX_ALIKE_FAILURES


@pytest.mark.parametrize(
    ("status", "headers", "body", "said"),
    [
        (429, {}, {"error": {"message": "no quota", "code": "insufficient_quota"}}, "no quota"),
        (402, {}, {"error": "add credits"}, "add credits"),
        (429, {"retry-after": "86400"}, {"error": {"message": "tomorrow"}}, "tomorrow; .* 24"),
    ],
)
def test_what_waiting_does_not_mend_ends_the_command_at_once(
    status: int, headers: dict[str, str], body: Any, said: str
) -> None:
    told = {"content-type": "application/json", **headers}
    fault = ("raw", (status, told, json.dumps(body).encode()))
    with FaultServer(lambda *_: fault) as server:
        model = open_model("openai:m", base_url=server.url, notify=lambda _: None)
        with pytest.raises(ModelError, match=said):
            list(model.complete([Request(CHAT, seed=1)]))
    assert len(server.bodies) == 1


def test_a_server_that_refuses_whatever_is_asked_is_left_alone() -> None:
    """Each thing that can be learned from a refusal is learned once."""
    why = (
        "use max_completion_tokens; system role not supported; thinking must be false; this only "
        "supports stream; seed, temperature, stop, reasoning effort none, low, minimal: not taken"
    )
    with FaultServer(lambda *_: ("refuse", why)) as server:
        model = open_model("openai:m", base_url=server.url, notify=lambda _: None)
        for prompt in (CHAT, "Nurses are"):
            [(_, found)] = [x for b in model.complete([Request(prompt, 1)]) for x in b]
            assert found.finish == "error"
        assert len(server.bodies) < 20
