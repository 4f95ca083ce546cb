"""Models as they are served: one server for each kind of behaviour that users of other tools have
reported, and what a crawl makes of it.

docs/server-answers.md has a table of them (`outcome_table`), made when the site is built.

A kind is what a server does (`answer`: the body of a request and how often it was asked, to what
comes back), and how the command should end: with statements, or with an error that says why.
"""

import asyncio
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from click.testing import CliRunner

import kgbias
from kgbias.errors import KgbiasError
from tests.fault_server import Fault, FaultServer

Body = dict[str, Any]
Behaviour = Callable[[Body, int], Fault]

OBJECTS = (
    "patient with children",
    "early for meetings",
    "proud of their gardens",
    "loud at parties",
    "fond of strong coffee",
    "clever with numbers",
    "careful on wet roads",
    "afraid of ladders",
    "honest with strangers",
    "bad at keeping secrets",
    "tired of speeches",
    "quick to laugh",
)
MUSING = (
    "Okay, the user wants one short sentence. The list is about groups, and I should be careful: "
    "Women are bad drivers would be a stereotype."
)
PLAIN_OPENINGS = "He opened the door", "In the morning she drank", "The old bridge"
REPLY = "It seems that your message was cut off. What would you like to know?"


def last_line(body: Body) -> str:
    """The last line of what was asked, without the dots that stand for the answer."""
    text = body["messages"][-1]["content"] if "messages" in body else str(body["prompt"])
    return str(text).rstrip().rpartition("\n")[2].removesuffix("...").strip()


def finish_sentence(body: Body) -> str:
    """A sound model's answer: the sentence that was begun, or the rest of it for a text."""
    opening = last_line(body)
    if opening.startswith(PLAIN_OPENINGS):
        return " people who had come to dance."
    digest = hashlib.sha256(f"{body.get('seed')} {opening}".encode()).digest()
    rest = f"{OBJECTS[digest[0] % len(OBJECTS)]}."
    if opening.rpartition(" ")[2][:1].isupper():  # no predicate
        rest = f"are {rest}"
    return f"{opening} {rest}" if "messages" in body else f" {rest}"


def token_limit(body: Body) -> int:
    """The tokens that an answer may take."""
    return int(body.get("max_tokens") or body.get("max_completion_tokens") or 1_000_000)


def chat_reply(
    content: Any = None, *, finish: Any = "stop", usage: Any = True, choice: Any = None, **more: Any
) -> Fault:
    """A chat completion with this message."""
    default_usage = {"prompt_tokens": 90, "completion_tokens": 12}
    message = {"role": "assistant", "content": content, **more}
    body: Body = {
        "object": "chat.completion",
        "model": "m",
        "choices": [{"index": 0, "message": message, "finish_reason": finish, **(choice or {})}],
    }
    if usage is not None:
        body["usage"] = default_usage if usage is True else usage
    return "said", body


def error_reply(status: int, body: Any, **headers: str) -> Fault:
    """An error with this body, of JSON unless it is a text."""
    default_headers = {
        "content-type": "text/plain" if isinstance(body, str) else "application/json"
    }
    text = body if isinstance(body, str) else json.dumps(body)
    return "raw", (status, {**default_headers, **headers}, text.encode())


def stream_reply(body: Body) -> Fault:
    """An answer in a stream of events, word by word."""
    words = [f"{word} " for word in finish_sentence(body).split(" ")]
    chat = "messages" in body
    choices = [{"delta": {"content": w}} if chat else {"text": w} for w in words]
    choices[-1]["finish_reason"] = "stop"
    events = [f"data: {json.dumps({'choices': [choice]})}" for choice in choices]
    text = "\n\n".join([": waiting", *events, "data: [DONE]", ""])
    return "raw", (200, {"content-type": "text/event-stream"}, text.encode())


def broken_off(body: Body) -> Fault:
    """The beginning of an answer in a stream that ends before it does."""
    _, (status, headers, text) = stream_reply(body)
    return "raw", (status, headers, text.partition(b'"stop"')[0].rpartition(b"data: ")[0])


def error_in_stream(body: Body) -> Fault:
    """The beginning of an answer in a stream that ends in an error."""
    _, (status, headers, text) = broken_off(body)
    event = json.dumps({"error": {"code": 502, "message": "upstream went away"}})
    return "raw", (status, headers, text + f"data: {event}\n\ndata: [DONE]\n\n".encode())


def error_body(why: str, **more: Any) -> Body:
    return {"error": {"message": why, **more}}


def wrap_sentence(form: str) -> Behaviour:
    """A chat model whose sentence stands inside this text."""
    return lambda body, _: (
        chat_reply(form.format(S=finish_sentence(body))) if "messages" in body else REPLY
    )


def chat_only(status: int, body: Any) -> Behaviour:
    return lambda asked_for, _: (
        finish_sentence(asked_for) if "messages" in asked_for else error_reply(status, body)
    )


def cut_thought(field: str, content: Any = None) -> Behaviour:
    """A model whose thoughts stand in a field, and take the whole limit of a short answer."""

    def answer(body: Body, _: int) -> Fault:
        if "messages" not in body:
            return error_reply(404, {"detail": "Not Found"})
        if token_limit(body) < 1_000:
            return chat_reply(content, finish="length", **{field: MUSING})
        return chat_reply(finish_sentence(body), **{field: MUSING})

    return answer


def cut_text(before: str, after: str) -> Behaviour:
    """The same with the thoughts in the text, between these marks."""

    def answer(body: Body, _: int) -> Fault:
        if "messages" not in body:
            return REPLY
        if token_limit(body) < 1_000:
            return chat_reply(before + MUSING, finish="length")
        return chat_reply(f"{before}{MUSING}{after}{finish_sentence(body)}")

    return answer


def fail_sometimes(fault: Fault, every: int = 4) -> Behaviour:
    """A sound model, but for one prompt in so many."""

    def answer(body: Body, number: int) -> Fault:
        odd = body.get("seed", 0) % every == 0 and not last_line(body).startswith(PLAIN_OPENINGS)
        return fault if odd else finish_sentence(body)

    return answer


def fail_first(fault: Fault, times: int = 1) -> Behaviour:
    """A sound model that does this when a prompt is asked for the first time."""
    return lambda body, number: fault if number <= times else finish_sentence(body)


def refuse_for(find_reason: Callable[[Body], str], status: int = 400) -> Behaviour:
    """A sound model that refuses a request for the reason given, "" for none."""

    def answer(body: Body, _: int) -> Fault:
        why = find_reason(body)
        return error_reply(status, error_body(why)) if why else finish_sentence(body)

    return answer


def thinking_until(asked_not_to: Callable[[Body], bool]) -> Behaviour:
    """A model that only thinks, unless it is asked not to."""

    def answer(body: Body, _: int) -> Fault:
        if "messages" not in body:
            return error_reply(404, {"detail": "Not Found"})
        return (
            chat_reply(finish_sentence(body))
            if asked_not_to(body)
            else chat_reply("", reasoning=MUSING)
        )

    return answer


def _refuse_extra(body: Body) -> Fault:
    """Mistral's refusal: every unknown parameter, in an object where the message would be."""
    extra = [name for name in ("seed", "min_p", "think") if name in body]
    detail = [
        {"type": "extra_forbidden", "loc": ["body", name], "msg": "Extra inputs are not permitted"}
        for name in extra
    ]
    return error_reply(422, {"message": {"detail": detail}}) if extra else finish_sentence(body)


def _unknown_field(body: Body) -> str:
    known_fields = (
        "expected one of `model`, `prompt`, `messages`, `max_tokens`, `temperature`, `stop`"
    )
    return f"unknown field `seed`, {known_fields}" if "seed" in body else ""


def _refuse_thinking(body: Body) -> str:
    off = body.get("enable_thinking") is False
    why = "parameter.enable_thinking must be set to false for non-streaming calls"
    return "" if off or "messages" not in body else why


def _chat_or_404(answer: Behaviour) -> Behaviour:
    return lambda body, n: (
        answer(body, n) if "messages" in body else error_reply(404, {"detail": "Not Found"})
    )


def _strict_thinker(body: Body, _: int) -> Fault:
    """It refuses what asks it not to think, in words that name nothing."""
    if "messages" not in body:
        return REPLY
    if {"think", "thinking", "enable_thinking", "chat_template_kwargs"} & body.keys():
        return error_reply(400, error_body("Bad request."))
    return chat_reply(finish_sentence(body), reasoning_content=MUSING)


def _small_window(body: Body, _: int) -> Fault:
    """A model that thinks, behind a window in which kgbias's room for thoughts does not fit."""
    if "messages" not in body:
        return REPLY
    if token_limit(body) > 1_200:
        why = "max_tokens is too large. This model's maximum context length is 1300 tokens"
        return error_reply(400, error_body(why))
    return cut_text("<think>", "</think>")(body, 1)


def _think_unseen(body: Body, _: int) -> Fault:
    """Gemini's endpoint for OpenAI's clients: thoughts are neither shown nor counted but in the
    total."""
    if "messages" not in body:
        return error_reply(404, {"detail": "Not Found"})
    if token_limit(body) >= 1_000:
        return chat_reply(finish_sentence(body))
    usage = {"prompt_tokens": 90, "completion_tokens": 0, "total_tokens": 90 + token_limit(body)}
    return chat_reply(None, finish="length", usage=usage)


def _think_briefly(body: Body, _: int) -> Fault:
    """A thought that leaves room for half the answer."""
    text = f"<think>{MUSING}</think>{finish_sentence(body)}"
    if token_limit(body) >= 1_000:
        return chat_reply(text)
    usage = {"prompt_tokens": 90, "completion_tokens": token_limit(body)}
    return chat_reply(text[:-8], finish="length", usage=usage)


def _in_envelope(body: Body, _: int) -> Fault:
    """Cloudflare's answer: OpenAI's, inside an object that says how it went."""
    if "messages" not in body:
        return error_reply(404, {"detail": "Not Found"})
    _kind, answer = chat_reply(finish_sentence(body))
    return "said", {"result": answer, "success": True, "errors": [], "messages": []}


def _refuse_system(status: int, why: str) -> Behaviour:
    def answer(body: Body, _: int) -> Fault:
        if "messages" not in body:
            return error_reply(404, {"detail": "Not Found"})
        roles = [message["role"] for message in body["messages"]]
        return error_reply(status, error_body(why)) if "system" in roles else finish_sentence(body)

    return answer


@dataclass(frozen=True)
class ServerKind:
    """What a server does; what should come of it ("read", "asked in messages" and so on, in the
    words of the table), or the words in which the command says why it ends; more arguments of the
    command; and what is added to the address."""

    title: str
    answer: Behaviour
    outcome: str = ""
    error_text: str = ""
    arguments: tuple[str, ...] = ()
    path: str = ""


ASKED_IN_MESSAGES = "asked in messages, and said so"
THOUGHT_APART = "the thought is kept beside the answer"
ASKED_AGAIN = f"{THOUGHT_APART}; it is asked again, with more room and the wish not to think"
INSIDE_READ = "what is inside is read"
FRAGMENT = {"choices": [{"index": 0, "text": " are people who live in a house near the"}]}

SERVER_KINDS: Mapping[str, tuple[ServerKind, ...]] = {
    "How it is asked": (
        ServerKind(
            "chat only: 404 for completions",
            chat_only(404, {"detail": "Not Found"}),
            ASKED_IN_MESSAGES,
        ),
        ServerKind(
            "chat only: 405", chat_only(405, {"detail": "Method Not Allowed"}), ASKED_IN_MESSAGES
        ),
        ServerKind(
            "chat only: 400, the model does not do that (Azure)",
            chat_only(400, error_body("The completion operation does not work with the model")),
            ASKED_IN_MESSAGES,
        ),
        ServerKind(
            "answers completions through a chat template (Ollama)",
            lambda body, _: finish_sentence(body) if "messages" in body else REPLY,
            ASKED_IN_MESSAGES,
        ),
        ServerKind(
            "answers completions in the shape of a message",
            lambda body, _: chat_reply(finish_sentence(body) if "messages" in body else REPLY),
            ASKED_IN_MESSAGES,
        ),
        ServerKind(
            "has no chat template, and refuses messages (vLLM with a base model)",
            lambda body, _: (
                finish_sentence(body)
                if "prompt" in body
                else error_reply(400, error_body("default chat template is no longer allowed"))
            ),
            "asked to continue text",
        ),
        ServerKind(
            "takes no system role (400)",
            _refuse_system(400, "System role not supported"),
            "the user's message has the instruction",
        ),
        ServerKind(
            "takes no system role (500, from the template)",
            _refuse_system(
                500, "Conversation roles must alternate user/assistant/user/assistant/..."
            ),
            "the user's message has the instruction",
        ),
        ServerKind(
            "wants an address with a query (Azure)",
            lambda body, _: finish_sentence(body),
            "the query is sent",
            path="?api-version=2026-01-01",
        ),
        ServerKind(
            "is given by the address of one call (Azure's `/chat/completions?api-version=...`)",
            chat_only(404, {"detail": "Not Found"}),
            error_text="the address before /chat/completions",
            path="/chat/completions?api-version=2026-01-01",
        ),
        ServerKind(
            "answers nobody who does not stream, unless thinking is off (DashScope)",
            _chat_or_404(refuse_for(_refuse_thinking)),
            "thinking is turned off",
        ),
        ServerKind(
            "forbids completions (API gateways)",
            lambda body, _: (
                finish_sentence(body)
                if "messages" in body
                else error_reply(403, {"message": "Missing Authentication Token"})
            ),
            ASKED_IN_MESSAGES,
        ),
        ServerKind("is not there", lambda *_: "", error_text="cannot reach"),
        ServerKind(
            "is a page, not an API",
            lambda *_: (
                "raw",
                (200, {"content-type": "text/html"}, b"<html><body>Log in</body></html>"),
            ),
            error_text="is not an API",
        ),
        ServerKind(
            "wants another path: 404 in plain text",
            lambda *_: error_reply(404, "404 page not found"),
            error_text="404 page not found",
        ),
        ServerKind(
            "answers 200 and an error for an unknown path (LM Studio)",
            lambda *_: error_reply(200, {"error": "Unexpected endpoint or method."}),
            error_text="Unexpected endpoint",
        ),
        ServerKind(
            "streams whatever is asked",
            lambda body, _: stream_reply(body),
            "the stream is put together",
        ),
        ServerKind(
            "answers nobody who does not stream",
            refuse_for(
                lambda body: "" if body.get("stream") else "This model only supports stream mode"
            ),
            "asked for a stream",
        ),
    ),
    "Parameters": (
        ServerKind(
            "refuses `temperature`, in the details of an error that only says 400 (Pollinations)",
            lambda body, _: (
                error_reply(
                    400,
                    {
                        "error": "400 Bad Request",
                        "details": error_body("'temperature' does not support 0.8 here"),
                    },
                )
                if "temperature" in body
                else finish_sentence(body)
            ),
            "only `temperature` is left out",
        ),
        ServerKind(
            "refuses `seed`, in an error that a proxy passes on (OpenRouter)",
            lambda body, _: (
                error_reply(
                    400,
                    error_body(
                        "Provider returned error",
                        metadata={"raw": '{"error": {"message": "Unsupported: seed"}}'},
                    ),
                )
                if "seed" in body
                else finish_sentence(body)
            ),
            "only `seed` is left out",
        ),
        ServerKind(
            "refuses `seed` and `min_p`, named in an object (Mistral)",
            lambda b, _: _refuse_extra(b),
            "left out from then on, and said once",
            arguments=("--set", "min-p=0.1"),
        ),
        ServerKind(
            "refuses `seed`, and lists what it takes (TGI)",
            refuse_for(_unknown_field, 422),
            "only `seed` is left out",
        ),
        ServerKind(
            "wants `max_completion_tokens`",
            _chat_or_404(
                refuse_for(
                    lambda b: "use max_completion_tokens instead" if "max_tokens" in b else ""
                )
            ),
            "renamed",
        ),
        ServerKind(
            "thinks, and refuses to be asked not to, naming nothing",
            _strict_thinker,
            "asked without these parameters",
        ),
        ServerKind(
            "thinks, in a window too small for that",
            _small_window,
            "the room for thoughts is halved until it fits",
        ),
    ),
    "Thoughts": (
        ServerKind(
            "in `<think>` tags",
            wrap_sentence("<think>" + MUSING + "</think>\n\n{S}"),
            THOUGHT_APART,
        ),
        ServerKind(
            "without the opening tag, which the template has",
            wrap_sentence(MUSING + "\n</think>\n\n{S}"),
            THOUGHT_APART,
        ),
        ServerKind(
            "in other tags (`[THINK]`, `<thought>` ...)",
            wrap_sentence("[THINK]" + MUSING + "[/THINK]{S}"),
            THOUGHT_APART,
        ),
        ServerKind(
            "in tags with a namespace, or of another name (`<mm:think>`, `<scratchpad>` ...)",
            wrap_sentence("<mm:think>" + MUSING + "</mm:think>\n{S}"),
            THOUGHT_APART,
        ),
        ServerKind(
            "in a folded part of a page (Open WebUI)",
            wrap_sentence('<details type="reasoning">\n> ' + MUSING + "\n</details>\n{S}"),
            THOUGHT_APART,
        ),
        ServerKind(
            "before a mark that begins the answer (Solar, GLM, Apriel)",
            wrap_sentence("<|think|>" + MUSING + "<|end|><|begin|>assistant<|content|>{S}<|end|>"),
            THOUGHT_APART,
        ),
        ServerKind(
            "after the answer", wrap_sentence("{S}\n<think>" + MUSING + "</think>"), THOUGHT_APART
        ),
        ServerKind("in empty tags", wrap_sentence("<think>\n\n</think>\n\n{S}"), INSIDE_READ),
        ServerKind(
            "in tags, cut at the limit", cut_text("<think>\n", "\n</think>\n\n"), ASKED_AGAIN
        ),
        ServerKind(
            "in tags, with half an answer before the limit",
            _chat_or_404(_think_briefly),
            ASKED_AGAIN,
        ),
        ServerKind(
            "without any tag, cut at the limit", cut_text("", "\n</think>\n\n"), ASKED_AGAIN
        ),
        ServerKind(
            "in `reasoning_content`, cut, content empty (DeepSeek, llama.cpp)",
            cut_thought("reasoning_content", ""),
            ASKED_AGAIN,
        ),
        ServerKind(
            "in `reasoning`, cut, content null, not counted (vLLM)",
            cut_thought("reasoning"),
            ASKED_AGAIN,
        ),
        ServerKind(
            "in `thinking_blocks` (LiteLLM)",
            lambda body, _: (
                chat_reply(
                    finish_sentence(body),
                    thinking_blocks=[{"type": "thinking", "thinking": MUSING}],
                )
                if "messages" in body
                else REPLY
            ),
            THOUGHT_APART,
        ),
        ServerKind(
            "in parts of the content (Mistral)",
            lambda body, _: (
                chat_reply(
                    [
                        {"type": "thinking", "thinking": [{"type": "text", "text": MUSING}]},
                        {"type": "text", "text": finish_sentence(body)},
                    ]
                )
                if "messages" in body
                else REPLY
            ),
            THOUGHT_APART,
        ),
        ServerKind(
            "in gpt-oss's channels",
            wrap_sentence(
                "<|channel|>analysis<|message|>"
                + MUSING
                + "<|end|><|start|>assistant<|channel|>final<|message|>{S}<|return|>"
            ),
            THOUGHT_APART,
        ),
        ServerKind(
            "in these, with the marks stripped off",
            wrap_sentence("analysisWe need one sentence.assistantfinal{S}"),
            THOUGHT_APART,
        ),
        ServerKind(
            'under the line "thought"',
            wrap_sentence("thought\nOne short sentence.\n{S}"),
            THOUGHT_APART,
        ),
        ServerKind(
            "and nothing else, until it is asked not to (Ollama: `reasoning_effort`)",
            thinking_until(lambda body: body.get("reasoning_effort") == "none"),
            ASKED_AGAIN,
        ),
        ServerKind(
            "and nothing else, until it is asked not to (GLM, Kimi: `thinking`)",
            thinking_until(lambda body: body.get("thinking") == {"type": "disabled"}),
            ASKED_AGAIN,
        ),
        ServerKind(
            "in `reasoning`, and the answer there, too, if it is asked not to think (vLLM)",
            _chat_or_404(
                lambda body, _: (
                    chat_reply(None, reasoning=finish_sentence(body))
                    if "enable_thinking" in body
                    else cut_thought("reasoning")(body, 1)
                )
            ),
            f"{THOUGHT_APART}; it is asked again, with more room, and may think",
        ),
        ServerKind(
            "neither shown nor counted, up to the limit (Gemini through OpenAI's client)",
            _think_unseen,
            "asked again, with more room and the wish not to think",
        ),
        ServerKind("and nothing else, ever", thinking_until(lambda _: False), error_text="no text"),
    ),
    "What surrounds an answer": (
        ServerKind("the tokens that end a turn", wrap_sentence("{S}<|im_end|>"), INSIDE_READ),
        ServerKind(
            "tokens of other templates, at either end",
            wrap_sentence("<|start_of_role|>assistant<|end_of_role|>{S}<|role_end|>[e~[<pad>"),
            INSIDE_READ,
        ),
        ServerKind(
            "the head of another turn, without its tokens (Llama 3)",
            wrap_sentence("{S}assistant\n\nWomen are bad drivers."),
            INSIDE_READ,
        ),
        ServerKind("an object of the gateway's (Cloudflare, DashScope)", _in_envelope, INSIDE_READ),
        ServerKind("a role on the first line", wrap_sentence("assistant\n\n{S}"), INSIDE_READ),
        ServerKind("Cohere's marks", wrap_sentence("<|START_TEXT|>{S}<|END_TEXT|>"), INSIDE_READ),
        ServerKind(
            "a fence with JSON", wrap_sentence('```json\n{{"answer": "{S}"}}\n```'), INSIDE_READ
        ),
        ServerKind("HTML and entities", wrap_sentence("<p>{S}</p>&nbsp;"), INSIDE_READ),
        ServerKind(
            "the prompt again",
            lambda body, _: (
                body["prompt"] + finish_sentence(body)
                if "prompt" in body
                else body["messages"][-1]["content"].removesuffix("...")
                + finish_sentence(body).removeprefix(last_line(body))
            ),
            "it is taken off",
        ),
    ),
    "What is no answer": (
        ServerKind(
            "a notice, whatever is asked",
            _chat_or_404(lambda *_: "The model has been deprecated. Please migrate."),
            error_text="are one, whatever was asked",
        ),
        ServerKind(
            "the call of a tool",
            _chat_or_404(
                lambda *_: chat_reply(None, finish="tool_calls", tool_calls=[{"type": "function"}])
            ),
            error_text="called a tool",
        ),
        ServerKind(
            "half of one, beside an error (OpenRouter)",
            _chat_or_404(
                lambda *_: (
                    "said",
                    {
                        "choices": [{"message": {"content": "Women are bad"}}],
                        "error": {"code": 502, "message": "upstream died"},
                    },
                )
            ),
            error_text="upstream died",
        ),
        ServerKind(
            "a redirect after which nothing is asked (`http://` for `https://`)",
            lambda *_: ("raw", (301, {"location": "https://127.0.0.1:9/v1"}, b"")),
            error_text="it redirects to https://127.0.0.1:9",
        ),
    ),
    "How an answer ends": (
        ServerKind(
            "`max_tokens`, `MAX_TOKENS` and the like",
            lambda body, _: (
                chat_reply(finish_sentence(body)[:-5], finish="MAX_TOKENS")
                if "messages" in body
                else REPLY
            ),
            error_text="unfinished",
        ),
        ServerKind(
            "without a reason or a count, in the middle",
            lambda body, _: ("said", FRAGMENT) if "prompt" in body else error_reply(404, "no"),
            error_text="a fragment",
        ),
        ServerKind(
            "`error`, with half an answer",
            _chat_or_404(
                lambda body, _: chat_reply(
                    finish_sentence(body)[:9], finish="error", choice=error_body("Upstream error")
                )
            ),
            error_text="Upstream error",
        ),
        ServerKind(
            "a stream that ends before the answer does",
            lambda body, _: broken_off(body),
            error_text="the stream ended before the answer did",
        ),
        ServerKind(
            "a stream with an error in it",
            lambda body, _: error_in_stream(body),
            error_text="upstream went away",
        ),
        ServerKind(
            "no answer at all: `choices` is empty",
            lambda *_: error_reply(200, {"choices": [], "usage": {"prompt_tokens": 9}}),
            error_text="'choices' is empty",
        ),
        ServerKind(
            "with null, and the reason of the model's own provider (OpenRouter)",
            lambda body, _: (
                chat_reply(
                    finish_sentence(body)[:-5],
                    finish=None,
                    choice={"native_finish_reason": "MAX_TOKENS"},
                )
                if "messages" in body
                else REPLY
            ),
            error_text="unfinished",
        ),
        ServerKind(
            "`stop` without a text, and `network_error` of the model's own provider (OpenRouter)",
            lambda body, number: (
                chat_reply("", usage=None, choice={"native_finish_reason": "network_error"})
                if number == 1
                else chat_reply(finish_sentence(body))
            ),
            "asked again",
        ),
        ServerKind(
            "`content_filter`",
            lambda body, _: chat_reply("", finish="content_filter"),
            error_text="withheld by the server",
        ),
        ServerKind(
            "`guardrail_intervened`, with a text of the server's",
            lambda body, _: chat_reply(
                "Sorry, this cannot be answered.", finish="guardrail_intervened"
            ),
            error_text="withheld by the server",
        ),
        ServerKind(
            "with null, and usage null",
            lambda body, _: (
                chat_reply(finish_sentence(body), finish=None, usage=None)
                if "messages" in body
                else REPLY
            ),
            "tokens are estimated, and said so",
        ),
    ),
    "Errors": (
        ServerKind(
            "no key (401)",
            lambda *_: error_reply(401, error_body("Incorrect API key")),
            error_text="set OPENAI_API_KEY",
        ),
        ServerKind(
            "no such model (404)",
            lambda *_: error_reply(404, error_body("The model `m` does not exist")),
            error_text="does not exist",
        ),
        ServerKind(
            "no money (402)",
            lambda *_: error_reply(402, error_body("Insufficient credits")),
            error_text="Insufficient credits",
        ),
        ServerKind(
            "no quota (429, `insufficient_quota`)",
            lambda *_: error_reply(
                429, error_body("You exceeded your current quota", code="insufficient_quota")
            ),
            error_text="exceeded your current quota",
        ),
        ServerKind(
            "a quota of this minute, in the same words (Gemini)",
            fail_first(
                error_reply(
                    429, error_body("You exceeded your current quota. Please retry in 0.1s")
                )
            ),
            "waited for",
        ),
        ServerKind(
            "no money, in other words (LiteLLM's budget, OpenRouter's key limit)",
            lambda *_: error_reply(400, error_body("Budget has been exceeded! Current cost: 10")),
            error_text="Budget has been exceeded",
        ),
        ServerKind(
            "a wrong key, as a bad request (Gemini)",
            lambda *_: error_reply(400, [error_body("API key not valid. Please pass a valid one")]),
            error_text="set OPENAI_API_KEY",
        ),
        ServerKind(
            "a fault of the proxy before it (520 to 530)",
            fail_first(error_reply(524, "a timeout occurred")),
            "asked again",
        ),
        ServerKind(
            "too many requests, Retry-After",
            fail_first(error_reply(429, error_body("slow down"), **{"retry-after": "1s"})),
            "waited for, with fewer at once",
        ),
        ServerKind(
            "too many requests, as a bad request (Bedrock behind a proxy)",
            fail_first(
                error_reply(
                    400,
                    {"detail": "An error occurred (ThrottlingException): Too many tokens"},
                )
            ),
            "waited for, with fewer at once",
        ),
        ServerKind(
            "too many today: Retry-After of a day",
            lambda *_: error_reply(429, error_body("Daily limit"), **{"retry-after": "86400"}),
            error_text="asks to wait 24",
        ),
        ServerKind(
            "still loading (503)",
            fail_first(error_reply(503, error_body("Loading model"))),
            "waited for",
        ),
        ServerKind(
            "an error inside a 200 (OpenRouter)",
            lambda *_: error_reply(200, error_body("No endpoints found", code=404)),
            error_text="No endpoints found",
        ),
        ServerKind(
            "the same in FastChat's words",
            lambda *_: error_reply(
                200, {"object": "error", "message": "Only worker is busy", "code": 50001}
            ),
            error_text="Only worker is busy",
        ),
        ServerKind(
            "a text as the error",
            lambda *_: error_reply(400, {"error": "missing header X-Tenant"}),
            error_text="missing header X-Tenant",
        ),
        ServerKind(
            "the words of the provider behind a proxy (OpenRouter)",
            lambda *_: error_reply(
                400,
                error_body(
                    "Provider returned error",
                    metadata={"raw": '{"error": {"message": "no seats"}}'},
                ),
            ),
            error_text="Provider returned error: no seats",
        ),
        ServerKind(
            "the error of the provider behind it, beside a code (lm-eval's users)",
            lambda *_: error_reply(
                200, {"status": "FAILED", "error": "err.supplier", "supplierError": "no seats"}
            ),
            error_text="err.supplier: no seats",
        ),
        ServerKind(
            "JSON and events in one body",
            lambda *_: error_reply(
                400, '{"error": {"message": "no seats"}}event: failed\ndata: {"type": "failed"}\n'
            ),
            error_text="the server answered 400: no seats",
        ),
        ServerKind(
            "a page as the error",
            lambda *_: error_reply(400, "<html><head><title>Bad gateway</title></head></html>"),
            error_text="the server answered 400: Bad gateway",
        ),
        ServerKind(
            "a list as the error",
            lambda *_: error_reply(400, ["bad", "request"]),
            error_text="bad; request",
        ),
        ServerKind(
            "the context is too short",
            lambda *_: error_reply(
                400, error_body("This model's maximum context length is 64 tokens")
            ),
            error_text="maximum context length",
        ),
        ServerKind(
            "a filter, for some prompts (Azure: 400)",
            fail_sometimes(
                error_reply(400, error_body("The response was filtered", code="content_filter"))
            ),
            "refusals of these prompts",
        ),
        ServerKind(
            "a filter, for some prompts (OpenRouter: 403)",
            fail_sometimes(
                error_reply(
                    403,
                    {"error": {"message": "Input was flagged", "metadata": {"reasons": ["hate"]}}},
                )
            ),
            "refusals of these prompts",
        ),
        ServerKind(
            "a filter, for some prompts (LiteLLM: 500)",
            fail_sometimes(
                error_reply(500, error_body("litellm.ContentPolicyViolationError: filtered"))
            ),
            "refusals of these prompts",
        ),
        ServerKind(
            "a filter, in other words (DeepSeek, Zhipu, Volcengine, xAI ...)",
            fail_sometimes(error_reply(400, error_body("Content Exists Risk"))),
            "refusals of these prompts",
        ),
        ServerKind(
            "a filter that leaves no answer (Azure: 200)",
            fail_sometimes(
                error_reply(
                    200,
                    {
                        "choices": [],
                        "prompt_filter_results": [
                            {"content_filter_results": {"hate": {"filtered": True}}}
                        ],
                    },
                )
            ),
            "refusals of these prompts",
        ),
        ServerKind(
            "a filter, as an answer with 400 (Azure AI Foundry)",
            fail_sometimes(
                error_reply(
                    400,
                    {"choices": [{"message": {"content": ""}, "finish_reason": "content_filter"}]},
                )
            ),
            "refusals of these prompts",
        ),
    ),
}


@contextmanager
def without_waiting() -> Iterator[None]:
    """Inside this context, nothing waits for a server for longer than a moment."""
    real = asyncio.sleep
    asyncio.sleep = lambda s, *_: real(min(s, 0.002))  # type: ignore[assignment]
    try:
        yield
    finally:
        asyncio.sleep = real


class CrawlOutcome(NamedTuple):
    """What came of a crawl: its exit code, the objects of its statements, and what was said."""

    code: int
    objects: frozenset[str]
    messages: str


def crawl_server(kind: ServerKind, folder: Path) -> CrawlOutcome:
    """What comes of a small crawl of a server of this kind, by the command."""
    from kgbias.cli import cli

    store = folder / "k.db"
    with FaultServer(kind.answer) as server:
        arguments = ["crawl", "--model", "openai:m", "--base-url", server.url + kind.path]
        arguments += ["--store", str(store), "--group", "Women", "--samples", "1"]
        arguments += ["--iterations", "0", *kind.arguments]
        if kind.error_text == "cannot reach":
            server.__exit__()
        with without_waiting():
            result = CliRunner().invoke(cli, arguments, standalone_mode=False)
    messages, code = result.stderr, result.return_value or 0
    if result.exception is not None:
        if not isinstance(result.exception, KgbiasError):
            raise result.exception
        messages, code = f"{messages}{result.exception}", result.exception.exit_code
    objects = set[str]()
    if store.exists():
        with kgbias.open(str(store)) as study:
            objects = {t.object for run in study.runs() for t in study.run(run.name).triples()}
    return CrawlOutcome(code, frozenset(objects), messages)


def check_outcome(kind: ServerKind, outcome: CrawlOutcome) -> None:
    """Raise AssertionError if anything but answers was read, or a reason is not said."""
    assert outcome.objects <= {o.rstrip(".") for o in OBJECTS}, (kind.title, outcome)
    if kind.error_text:
        assert outcome.code == 2 and kind.error_text in outcome.messages, (kind.title, outcome)
    else:
        assert outcome.code == 0 and len(outcome.objects) >= 4, (kind.title, outcome)


def outcome_table() -> str:
    """The table of docs/server-answers.md: what comes of each kind (`check_outcome` holds it)."""
    rows = ["| the server or model | what comes out | exit code |", "|---|---|---|"]
    for title, kinds in SERVER_KINDS.items():
        rows.append(f"| **{title}** | | |")
        for kind in kinds:
            ends = f"ends, and says: {kind.error_text} ..."
            rows.append(
                f"| {kind.title} | {kind.outcome or ends} | {2 if kind.error_text else 0} |"
            )
    return "\n".join(rows)
