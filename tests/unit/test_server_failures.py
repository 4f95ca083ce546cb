"""What servers say when they do not answer: filters, money, waits and errors, in all the words and
places in which users of other tools have reported them."""

import json
import time
from typing import Any

import pytest

from kgbias.models.http import (
    classify_ending,
    error_message,
    find_failure,
    parse_body,
    read_failure,
)

MOON = "the moon is full"


@pytest.mark.parametrize(
    "body",
    [
        {"error": {"message": MOON}},
        {"detail": {"error": {"message": MOON}}},
        {"fault": {"faultstring": MOON, "detail": {"errorcode": "x"}}},
        {"Message": MOON},
        {"errorMessage": MOON, "errorType": "Sandbox.Timedout"},
        {"error_code": 336003, "error_msg": MOON},
        {"base_resp": {"status_code": 2013, "status_msg": MOON}},
        {"error": {"reason": MOON, "type": "x"}},
        {"error": {"message": json.dumps({"error": {"message": MOON}})}},
        {"type": "about:blank", "title": MOON, "status": 400},
        [{"error": {"code": 400, "message": MOON}}],
        f"<html>\r\n<head><title>{MOON}</title></head><body><h1>no</h1></body></html>",
        f"<!DOCTYPE html><body><h1>{MOON}</h1></body>",
        f"<!DOCTYPE html><head><title>Error</title></head><body><pre>{MOON}</pre></body>",
        f"<html><body><p>{MOON}</p></body></html>",
        f'<?xml version="1.0"?><Error><Code>Denied</Code><Message>{MOON}</Message></Error>',
        f'<ErrorResponse xmlns="x"><Error><Message>{MOON}</Message></Error></ErrorResponse>',
    ],
)
def test_the_message_is_found_wherever_a_server_puts_it(body: Any) -> None:
    assert error_message(body) == MOON


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            {
                "error": {
                    "message": "Provider returned error",
                    "metadata": {"raw": json.dumps({"error": {"message": MOON}})},
                }
            },
            f"Provider returned error: {MOON}",
        ),
        (
            {"error": {"message": "no", "metadata": {"raw": f'data: {{"error":"{MOON}"}}\n\n'}}},
            f"no: {MOON}",
        ),
        ({"error": {"message": "no", "metadata": {"raw": MOON}}}, f"no: {MOON}"),
        ({"error": "invalid_request", "error_description": MOON}, f"invalid_request: {MOON}"),
        ({"errors": {"prompt": ["too long"], "seed": ["bad"]}}, "prompt: too long; seed: bad"),
        ({"error": {"code": "model_busy"}}, "model_busy"),
        ({"error": {"message": "Unsupported", "param": "min_p"}}, "Unsupported (min_p)"),
        ({"id": "x", "model": "m"}, ""),
        ("upstream connect error", "upstream connect error"),
    ],
)
def test_what_a_proxy_was_told_is_said_and_a_code_is_better_than_nothing(
    body: Any, message: str
) -> None:
    assert error_message(body) == message


@pytest.mark.parametrize(
    ("code", "error"),
    [
        (400, {"message": "Content Exists Risk"}),
        (400, {"code": "1301", "message": "系统检测到输入或生成内容可能包含不安全或敏感内容"}),
        (400, {"code": "InputTextSensitiveContentDetected", "message": "no"}),
        (400, {"message": "rejected because it was considered high risk"}),
        (400, {"type": "content_filter", "message": "no"}),
        (400, {"message": "Output blocked by content filtering policy"}),
        (400, {"message": "blocked output: please try again with a different prompt"}),
        (400, {"message": "bad request: prompt blocked by ai-prompt-guard"}),
        (400, {"message": "{'input_guardrail': [{'flagged': True}]}"}),
        (400, {"message": "Your request was rejected as a result of our safety system."}),
        (403, {"message": "Content violates usage guidelines. Failed check: SAFETY_CHECK_X"}),
        (403, {"message": "Prompt violates our Acceptable Use Policy"}),
        (446, {"message": "The guardrail checks defined in the config failed."}),
        (500, {"message": "litellm.ContentPolicyViolationError: x"}),
        (424, {"message": "Prompt blocked due to security configurations"}),
    ],
)
def test_a_filter_withholds_one_answer_in_whatever_words(code: int, error: dict[str, Any]) -> None:
    failure = read_failure(error["message"], code, {"error": error})
    assert failure.is_withheld and not failure.is_final


@pytest.mark.parametrize(
    "message",
    [
        "This model's maximum context length is 100 tokens",
        "Your IP is blocked",
        "temperature: a number between 0 and 2",
        "the service is blocked in your country",
        "Unsupported parameter: 'min_p'",
    ],
)
def test_other_refusals_are_no_filters(message: str) -> None:
    failure = read_failure(message, 400, {"error": {"message": message}})
    assert not failure.is_withheld and not failure.is_final and failure.code == 400


@pytest.mark.parametrize(
    ("code", "error"),
    [
        (400, {"message": "Budget has been exceeded! Current cost: 10.1, Max budget: 10.0"}),
        (400, {"code": "Arrearage", "message": "make sure your account is in good standing"}),
        (403, {"message": "Key limit exceeded (total limit)"}),
        (403, {"message": "Sorry, your account balance is insufficient"}),
        (412, {"message": "Account x is suspended, possibly due to the monthly spending limit"}),
        (429, {"type": "exceeded_current_quota_error", "message": "check your plan"}),
        (429, {"message": "used all available credits or reached its monthly spending limit"}),
        (429, {"code": "1113", "message": "余额不足或无可用资源包,请充值。"}),
        (402, {"message": "exceeded your monthly included credits"}),
    ],
)
def test_without_money_nothing_more_is_asked(code: int, error: dict[str, Any]) -> None:
    failure = read_failure(error["message"], code, {"error": error})
    assert failure.is_final and not failure.is_withheld


@pytest.mark.parametrize(
    "message", ["API key not valid. Please pass a valid API key.", "Invalid API key", "No API-key"]
)
def test_a_wrong_key_is_one_whatever_the_status(message: str) -> None:
    assert read_failure(message, 400).code == 401


def test_waits_are_read_from_the_body() -> None:
    reset = str(int(1000 * (time.time() + 7200)))
    headers = {"X-RateLimit-Limit": "50", "X-RateLimit-Reset": reset}
    error = {"message": "free-models-per-day", "metadata": {"headers": headers}}
    assert 7000 < read_failure("free-models-per-day", 429, {"error": error}).wait <= 7200
    loading = {"error": "Model m is currently loading", "estimated_time": 20.0}
    assert read_failure("Model m is currently loading", 503, loading).wait == 20
    assert read_failure("no", 429, {"error": {"metadata": {"headers": {}}}}).wait == 0


@pytest.mark.parametrize(
    "body",
    [
        {
            "choices": [],
            "prompt_filter_results": [{"content_filter_results": {"hate": {"filtered": True}}}],
        },
        {"choices": None, "base_resp": {"status_code": 1026, "status_msg": "input new_sensitive"}},
    ],
)
def test_a_filter_that_leaves_no_answer_withholds_it(body: Any) -> None:
    failure = find_failure(body)
    assert failure is not None and failure.is_withheld


def test_no_answer_in_an_answer_is_called_so() -> None:
    for body in ({"choices": [], "usage": {"prompt_tokens": 9}}, {"choices": None}):
        failure = find_failure(body)
        assert failure is not None and "'choices' is empty" in failure.message
        assert failure.code == 500 and not failure.is_withheld
    assert find_failure({"content": [], "stop_reason": "end_turn"}) is None
    money = find_failure({"base_resp": {"status_msg": "insufficient balance"}, "choices": None})
    assert money is not None and money.is_final


@pytest.mark.parametrize(
    ("reasons", "ending"),
    [
        ("contextLengthReached maxPredictedTokensReached model_length MaxTokens", "length"),
        (
            "model_context_window_exceeded max_new_tokens output_limit incomplete out_of_tokens",
            "length",
        ),
        ("sensitive guardrails IMAGE_SAFETY ERROR_TOXIC input_guardrail_triggered", "refused"),
        ("network_error ERROR_LIMIT engine_overloaded preempted disconnected crashed", "error"),
        ("eosFound end_turn COMPLETE stop_sequence tool_calls eod finished", "stop"),
    ],
)
def test_more_names_of_endings(reasons: str, ending: str) -> None:
    assert [classify_ending(reason) for reason in reasons.split()] == [ending] * len(
        reasons.split()
    )


def test_half_an_answer_beside_an_error_is_none() -> None:
    half = {"choices": [{"message": {"content": "Nurses are"}, "finish_reason": None}]}
    failure = find_failure({**half, "error": {"code": 502, "message": MOON}})
    assert failure is not None and (failure.code, failure.message) == (502, MOON)
    for nothing in (None, {}, "", False):
        assert find_failure({**half, "error": nothing}) is None


@pytest.mark.parametrize(
    "text",
    [
        ': ping\n\n{\n "choices": [{"text": "a\nb"}]\n}',
        '[{"choices": [{"text": "a\\nb"}]}]',
        json.dumps('{"choices": [{"text": "a\\nb"}]}'),
        json.dumps({"statusCode": 200, "body": '{"choices": [{"text": "a\\nb"}]}'}),
    ],
)
def test_an_answer_is_found_in_what_gateways_put_around_it(text: str) -> None:
    (choice,) = parse_body(text.encode())["choices"]
    assert choice["text"] == "a\nb"


def test_a_stream_that_repeats_itself_is_read_once() -> None:
    def read(*parts: dict[str, Any]) -> str:
        events = [{"choices": [{"finish_reason": "stop", **part}]} for part in parts]
        (choice,) = parse_body("".join(f"data: {json.dumps(e)}\n\n" for e in events).encode())[
            "choices"
        ]
        return str(choice["message"]["content"])

    so_far = ("Nurses", "Nurses are", "Nurses are kind.")
    assert read(*({"delta": {"content": text}} for text in so_far)) == so_far[-1]
    pieces = [{"delta": {"content": piece}} for piece in ("Nurses ", "are ", "kind.")]
    assert read(*pieces, {"message": {"content": so_far[-1]}}) == so_far[-1]
    assert read({"delta": {"content": "ha"}}, {"delta": {"content": "ha"}}) == "haha"
    other = {"index": 1, "delta": {"content": "lazy "}}
    assert read(pieces[0], pieces[1], other, pieces[2]) == so_far[-1]
    assert parse_body(b'data: {"type": "message_stop"}\n\n') is None


EVENT = 'data: {"choices":[{"delta":{"content":"Nurses are"}}]}\n\n'


@pytest.mark.parametrize(
    "text",
    [
        EVENT + 'data: {"error":{"code":502,"message":"upstream went away"}}\n\ndata: [DONE]\n\n',
        EVENT + 'event: error\ndata: {"message":"upstream went away"}\n\n',
        EVENT + "error: upstream went away\n\n",
    ],
)
def test_an_error_in_a_stream_breaks_the_answer_off(text: str) -> None:
    (choice,) = parse_body(text.encode())["choices"]
    assert choice["finish_reason"] == "error" and "upstream went away" in str(choice["error"])


def test_parts_in_a_stream_and_lines_of_json_are_put_together() -> None:
    thought = [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}]
    events: list[Any] = [
        {"choices": [{"delta": {"content": thought}}]},
        {"choices": [{"delta": {"content": "Nurses are"}}]},
        {"choices": [{"delta": {"content": " kind."}, "finish_reason": "stop"}]},
    ]
    stream = "".join(f"data: {json.dumps(event)}\n\n" for event in events)
    for text in (stream, stream.replace("\n", "\r\n"), "\n".join(map(json.dumps, events))):
        (choice,) = parse_body(text.encode())["choices"]
        assert choice["message"]["content"] == [*thought, "Nurses are", " kind."]
        assert choice["finish_reason"] == "stop"
