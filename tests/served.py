"""Models as they are served: one server for each kind of behaviour that users of other tools have
reported, and what a crawl makes of it.

    python -m tests.served        the table of docs/server-answers.md, as it comes out now

A kind is what a server does (`answer`: the body of a request and how often it was asked, to what
comes back), and how the command should end: with statements, or with an error that says why.
"""

import asyncio
import hashlib
import json
import tempfile
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
Answer = Callable[[Body, int], Fault]

OBJECTS = (
    "patient with children", "early for meetings", "proud of their gardens", "loud at parties",
    "fond of strong coffee", "clever with numbers", "careful on wet roads", "afraid of ladders",
    "honest with strangers", "bad at keeping secrets", "tired of speeches", "quick to laugh",
)  # fmt: skip
MUSING = (
    "Okay, the user wants one short sentence. The list is about groups, and I should be careful: "
    "Women are bad drivers would be a stereotype."
)
PLAIN = "He opened the door", "In the morning she drank", "The old bridge"
REPLY = "It seems that your message was cut off. What would you like to know?"


def asked(body: Body) -> str:
    """The last line of what was asked, without the dots that stand for the answer."""
    text = body["messages"][-1]["content"] if "messages" in body else str(body["prompt"])
    return str(text).rstrip().rpartition("\n")[2].removesuffix("...").strip()


def sentence(body: Body) -> str:
    """A sound model's answer: the sentence that was begun, or the rest of it for a text."""
    begun = asked(body)
    if begun.startswith(PLAIN):
        return " people who had come to dance."
    digest = hashlib.sha256(f"{body.get('seed')} {begun}".encode()).digest()
    rest = f"{OBJECTS[digest[0] % len(OBJECTS)]}."
    if begun.rpartition(" ")[2][:1].isupper():  # no predicate
        rest = f"are {rest}"
    return f"{begun} {rest}" if "messages" in body else f" {rest}"


def wanted(body: Body) -> int:
    """The tokens that an answer may take."""
    return int(body.get("max_tokens") or body.get("max_completion_tokens") or 1_000_000)


def in_chat(
    content: Any = None, *, finish: Any = "stop", usage: Any = True, choice: Any = None, **more: Any
) -> Fault:
    """A chat completion with this message."""
    counted = {"prompt_tokens": 90, "completion_tokens": 12}
    message = {"role": "assistant", "content": content, **more}
    made: Body = {
        "object": "chat.completion",
        "model": "m",
        "choices": [{"index": 0, "message": message, "finish_reason": finish, **(choice or {})}],
    }
    if usage is not None:
        made["usage"] = counted if usage is True else usage
    return "said", made


def error(status: int, body: Any, **headers: str) -> Fault:
    """An error with this body, of JSON unless it is a text."""
    told = {"content-type": "text/plain" if isinstance(body, str) else "application/json"}
    text = body if isinstance(body, str) else json.dumps(body)
    return "raw", (status, {**told, **headers}, text.encode())


def streamed(body: Body) -> Fault:
    """An answer in a stream of events, word by word."""
    words = [f"{word} " for word in sentence(body).split(" ")]
    chat = "messages" in body
    choices = [{"delta": {"content": w}} if chat else {"text": w} for w in words]
    choices[-1]["finish_reason"] = "stop"
    events = [f"data: {json.dumps({'choices': [choice]})}" for choice in choices]
    text = "\n\n".join([": waiting", *events, "data: [DONE]", ""])
    return "raw", (200, {"content-type": "text/event-stream"}, text.encode())


def broken_off(body: Body) -> Fault:
    """The beginning of an answer in a stream that ends before it does."""
    _, (status, headers, text) = streamed(body)
    return "raw", (status, headers, text.partition(b'"stop"')[0].rpartition(b"data: ")[0])


def said(why: str, **more: Any) -> Body:
    return {"error": {"message": why, **more}}


def dressed(form: str) -> Answer:
    """A chat model whose sentence stands inside this text."""
    return lambda body, _: in_chat(form.format(S=sentence(body))) if "messages" in body else REPLY


def chat_only(status: int, body: Any) -> Answer:
    return lambda asked_for, _: (
        sentence(asked_for) if "messages" in asked_for else error(status, body)
    )


def cut_thought(field: str, content: Any = None) -> Answer:
    """A model whose thoughts stand in a field, and take the whole limit of a short answer."""

    def answer(body: Body, _: int) -> Fault:
        if "messages" not in body:
            return error(404, {"detail": "Not Found"})
        if wanted(body) < 1_000:
            return in_chat(content, finish="length", **{field: MUSING})
        return in_chat(sentence(body), **{field: MUSING})

    return answer


def cut_text(before: str, after: str) -> Answer:
    """The same with the thoughts in the text, between these marks."""

    def answer(body: Body, _: int) -> Fault:
        if "messages" not in body:
            return REPLY
        if wanted(body) < 1_000:
            return in_chat(before + MUSING, finish="length")
        return in_chat(f"{before}{MUSING}{after}{sentence(body)}")

    return answer


def sometimes(fault: Fault, every: int = 4) -> Answer:
    """A sound model, but for one prompt in so many."""

    def answer(body: Body, number: int) -> Fault:
        odd = body.get("seed", 0) % every == 0 and not asked(body).startswith(PLAIN)
        return fault if odd else sentence(body)

    return answer


def at_first(fault: Fault, times: int = 1) -> Answer:
    """A sound model that does this when a prompt is asked for the first time."""
    return lambda body, number: fault if number <= times else sentence(body)


def refusing(refuses: Callable[[Body], str], status: int = 400) -> Answer:
    """A sound model that refuses a request for the reason given, "" for none."""

    def answer(body: Body, _: int) -> Fault:
        why = refuses(body)
        return error(status, said(why)) if why else sentence(body)

    return answer


def thinking_until(asked_not_to: Callable[[Body], bool]) -> Answer:
    """A model that only thinks, unless it is asked not to."""

    def answer(body: Body, _: int) -> Fault:
        if "messages" not in body:
            return error(404, {"detail": "Not Found"})
        return in_chat(sentence(body)) if asked_not_to(body) else in_chat("", reasoning=MUSING)

    return answer


def _extra(body: Body) -> Fault:
    """Mistral's refusal: every unknown parameter, in an object where the message would be."""
    extra = [name for name in ("seed", "min_p", "think") if name in body]
    detail = [{"type": "extra_forbidden", "loc": ["body", name], "msg": "Extra inputs are not "
               "permitted"} for name in extra]  # fmt: skip
    return error(422, {"message": {"detail": detail}}) if extra else sentence(body)


def _taken(body: Body) -> str:
    taken = "expected one of `model`, `prompt`, `messages`, `max_tokens`, `temperature`, `stop`"
    return f"unknown field `seed`, {taken}" if "seed" in body else ""


def _dashscope(body: Body) -> str:
    off = body.get("enable_thinking") is False
    why = "parameter.enable_thinking must be set to false for non-streaming calls"
    return "" if off or "messages" not in body else why


def _chat_or_404(answer: Answer) -> Answer:
    return lambda body, n: (
        answer(body, n) if "messages" in body else error(404, {"detail": "Not Found"})
    )


def _strict_thinker(body: Body, _: int) -> Fault:
    """It refuses what asks it not to think, in words that name nothing."""
    if "messages" not in body:
        return REPLY
    if {"think", "thinking", "enable_thinking", "chat_template_kwargs"} & body.keys():
        return error(400, said("Bad request."))
    return in_chat(sentence(body), reasoning_content=MUSING)


def _small_window(body: Body, _: int) -> Fault:
    """A model that thinks, behind a window in which kgbias's room for thoughts does not fit."""
    if "messages" not in body:
        return REPLY
    if wanted(body) > 1_200:
        why = "max_tokens is too large. This model's maximum context length is 1300 tokens"
        return error(400, said(why))
    return cut_text("<think>", "</think>")(body, 1)


def _no_system(status: int, why: str) -> Answer:
    def answer(body: Body, _: int) -> Fault:
        if "messages" not in body:
            return error(404, {"detail": "Not Found"})
        roles = [message["role"] for message in body["messages"]]
        return error(status, said(why)) if "system" in roles else sentence(body)

    return answer


@dataclass(frozen=True)
class Kind:
    """What a server does; what should come of it ("read", "asked in messages" and so on, in the
    words of the table), or the words in which the command says why it ends; more arguments of the
    command; and what is added to the address."""

    what: str
    answer: Answer
    comes: str = ""
    ends: str = ""
    arguments: tuple[str, ...] = ()
    path: str = ""


MESSAGES = "asked in messages, and said so"
APART = "the thought is kept beside the answer"
ROOM = f"{APART}; it is asked again, with more room and the wish not to think"
READ = "what is inside is read"
CUT = {"choices": [{"index": 0, "text": " are people who live in a house near the"}]}

KINDS: Mapping[str, tuple[Kind, ...]] = {
    "How it is asked": (
        Kind("chat only: 404 for completions", chat_only(404, {"detail": "Not Found"}), MESSAGES),
        Kind("chat only: 405", chat_only(405, {"detail": "Method Not Allowed"}), MESSAGES),
        Kind("chat only: 400, the model does not do that (Azure)",
             chat_only(400, said("The completion operation does not work with the model")),
             MESSAGES),
        Kind("answers completions through a chat template (Ollama)",
             lambda body, _: sentence(body) if "messages" in body else REPLY, MESSAGES),
        Kind("answers completions in the shape of a message",
             lambda body, _: in_chat(sentence(body) if "messages" in body else REPLY), MESSAGES),
        Kind("has no chat template, and refuses messages (vLLM with a base model)",
             lambda body, _: sentence(body) if "prompt" in body else
             error(400, said("default chat template is no longer allowed")),
             "asked to continue text"),
        Kind("takes no system role (400)", _no_system(400, "System role not supported"),
             "the user's message has the instruction"),
        Kind("takes no system role (500, from the template)",
             _no_system(500, "Conversation roles must alternate user/assistant/user/assistant/..."),
             "the user's message has the instruction"),
        Kind("wants an address with a query (Azure)", lambda body, _: sentence(body),
             "the query is sent", path="?api-version=2026-01-01"),
        Kind("answers nobody who does not stream, unless thinking is off (DashScope)",
             _chat_or_404(refusing(_dashscope)), "thinking is turned off"),
        Kind("is not there", lambda *_: "", ends="cannot reach"),
        Kind("is a page, not an API", lambda *_: ("raw", (200, {"content-type": "text/html"},
             b"<html><body>Log in</body></html>")), ends="is not an API"),
        Kind("wants another path: 404 in plain text", lambda *_: error(404, "404 page not found"),
             ends="404 page not found"),
        Kind("answers 200 and an error for an unknown path (LM Studio)",
             lambda *_: error(200, {"error": "Unexpected endpoint or method."}),
             ends="Unexpected endpoint"),
        Kind("streams whatever is asked", lambda body, _: streamed(body),
             "the stream is put together"),
        Kind("answers nobody who does not stream", refusing(lambda body: "" if body.get("stream")
             else "This model only supports stream mode"), "asked for a stream"),
    ),
    "Parameters": (
        Kind("refuses `seed` and `min_p`, named in an object (Mistral)", lambda b, _: _extra(b),
             "left out from then on, and said once", arguments=("--set", "min-p=0.1")),
        Kind("refuses `seed`, and lists what it takes (TGI)", refusing(_taken, 422),
             "only `seed` is left out"),
        Kind("wants `max_completion_tokens`", _chat_or_404(refusing(
             lambda b: "use max_completion_tokens instead" if "max_tokens" in b else "")),
             "renamed"),
        Kind("thinks, and refuses to be asked not to, naming nothing", _strict_thinker,
             "asked without these parameters"),
        Kind("thinks, in a window too small for that", _small_window,
             "the room for thoughts is halved until it fits"),
    ),
    "Thoughts": (
        Kind("in `<think>` tags", dressed("<think>" + MUSING + "</think>\n\n{S}"), APART),
        Kind("without the opening tag, which the template has",
             dressed(MUSING + "\n</think>\n\n{S}"), APART),
        Kind("in other tags (`[THINK]`, `<thought>` ...)",
             dressed("[THINK]" + MUSING + "[/THINK]{S}"),
             APART),
        Kind("in empty tags", dressed("<think>\n\n</think>\n\n{S}"), READ),
        Kind("in tags, cut at the limit", cut_text("<think>\n", "\n</think>\n\n"), ROOM),
        Kind("without any tag, cut at the limit", cut_text("", "\n</think>\n\n"), ROOM),
        Kind("in `reasoning_content`, cut, content empty (DeepSeek, llama.cpp)",
             cut_thought("reasoning_content", ""), ROOM),
        Kind("in `reasoning`, cut, content null, not counted (vLLM)", cut_thought("reasoning"),
             ROOM),
        Kind("in `thinking_blocks` (LiteLLM)", lambda body, _: in_chat(sentence(body),
             thinking_blocks=[{"type": "thinking", "thinking": MUSING}]) if "messages" in body
             else REPLY, APART),
        Kind("in parts of the content (Mistral)", lambda body, _: in_chat(
             [{"type": "thinking", "thinking": [{"type": "text", "text": MUSING}]},
              {"type": "text", "text": sentence(body)}]) if "messages" in body else REPLY, APART),
        Kind("in gpt-oss's channels", dressed("<|channel|>analysis<|message|>" + MUSING +
             "<|end|><|start|>assistant<|channel|>final<|message|>{S}<|return|>"), APART),
        Kind("in these, with the marks stripped off",
             dressed("analysisWe need one sentence.assistantfinal{S}"), APART),
        Kind("under the line \"thought\"", dressed("thought\nOne short sentence.\n{S}"), APART),
        Kind("and nothing else, until it is asked not to (Ollama: `reasoning_effort`)",
             thinking_until(lambda body: body.get("reasoning_effort") == "none"), ROOM),
        Kind("and nothing else, until it is asked not to (GLM, Kimi: `thinking`)",
             thinking_until(lambda body: body.get("thinking") == {"type": "disabled"}), ROOM),
        Kind("and nothing else, ever", thinking_until(lambda _: False), ends="no text"),
    ),
    "What surrounds an answer": (
        Kind("the tokens that end a turn", dressed("{S}<|im_end|>"), READ),
        Kind("a role on the first line", dressed("assistant\n\n{S}"), READ),
        Kind("Cohere's marks", dressed("<|START_TEXT|>{S}<|END_TEXT|>"), READ),
        Kind("a fence with JSON", dressed('```json\n{{"answer": "{S}"}}\n```'), READ),
        Kind("HTML and entities", dressed("<p>{S}</p>&nbsp;"), READ),
        Kind("the prompt again", lambda body, _: body["prompt"] + sentence(body) if "prompt" in
             body else body["messages"][-1]["content"].removesuffix("...") + sentence(body)
             .removeprefix(asked(body)), "it is taken off"),
    ),
    "How an answer ends": (
        Kind("`max_tokens`, `MAX_TOKENS` and the like", lambda body, _: in_chat(
             sentence(body)[:-5], finish="MAX_TOKENS") if "messages" in body else REPLY,
             ends="unfinished"),
        Kind("without a reason or a count, in the middle", lambda body, _: ("said", CUT)
             if "prompt" in body else error(404, "no"), ends="a fragment"),
        Kind("`error`, with half an answer", _chat_or_404(lambda body, _: in_chat(
             sentence(body)[:9], finish="error", choice=said("Upstream error"))),
             ends="Upstream error"),
        Kind("a stream that ends before the answer does", lambda body, _: broken_off(body),
             ends="the stream ended before the answer did"),
        Kind("`content_filter`", lambda body, _: in_chat("", finish="content_filter"),
             ends="withheld by the server"),
        Kind("`guardrail_intervened`, with a text of the server's", lambda body, _: in_chat(
             "Sorry, this cannot be answered.", finish="guardrail_intervened"),
             ends="withheld by the server"),
        Kind("with null, and usage null", lambda body, _: in_chat(sentence(body), finish=None,
             usage=None) if "messages" in body else REPLY, "tokens are estimated, and said so"),
    ),
    "Errors": (
        Kind("no key (401)", lambda *_: error(401, said("Incorrect API key")),
             ends="set OPENAI_API_KEY"),
        Kind("no such model (404)", lambda *_: error(404, said("The model `m` does not exist")),
             ends="does not exist"),
        Kind("no money (402)", lambda *_: error(402, said("Insufficient credits")),
             ends="Insufficient credits"),
        Kind("no quota (429, `insufficient_quota`)", lambda *_: error(429, said(
             "You exceeded your current quota", code="insufficient_quota")),
             ends="exceeded your current quota"),
        Kind("a quota of this minute, in the same words (Gemini)", at_first(error(429, said(
             "You exceeded your current quota. Please retry in 0.1s"))), "waited for"),
        Kind("too many requests, Retry-After", at_first(error(429, said("slow down"),
             **{"retry-after": "1s"})), "waited for, with fewer at once"),
        Kind("too many today: Retry-After of a day", lambda *_: error(429, said("Daily limit"),
             **{"retry-after": "86400"}), ends="asks to wait 24"),
        Kind("still loading (503)", at_first(error(503, said("Loading model"))), "waited for"),
        Kind("an error inside a 200 (OpenRouter)", lambda *_: error(200, said(
             "No endpoints found", code=404)), ends="No endpoints found"),
        Kind("the same in FastChat's words", lambda *_: error(200, {"object": "error", "message":
             "Only worker is busy", "code": 50001}), ends="Only worker is busy"),
        Kind("a text as the error", lambda *_: error(400, {"error": "missing header X-Tenant"}),
             ends="missing header X-Tenant"),
        Kind("a list as the error", lambda *_: error(400, ["bad", "request"]), ends="bad; request"),
        Kind("the context is too short", lambda *_: error(400, said(
             "This model's maximum context length is 64 tokens")), ends="maximum context length"),
        Kind("a filter, for some prompts (Azure: 400)", sometimes(error(400, said(
             "The response was filtered", code="content_filter"))), "refusals of these prompts"),
        Kind("a filter, for some prompts (OpenRouter: 403)", sometimes(error(403, {"error": {
             "message": "Input was flagged", "metadata": {"reasons": ["hate"]}}})),
             "refusals of these prompts"),
        Kind("a filter, for some prompts (LiteLLM: 500)", sometimes(error(500, said(
             "litellm.ContentPolicyViolationError: filtered"))), "refusals of these prompts"),
        Kind("a filter, as an answer with 400 (Azure AI Foundry)", sometimes(error(400, {"choices":
             [{"message": {"content": ""}, "finish_reason": "content_filter"}]})),
             "refusals of these prompts"),
    ),
}  # fmt: skip


@contextmanager
def impatient() -> Iterator[None]:
    """Inside this context, nothing waits for a server for longer than a moment."""
    real = asyncio.sleep
    asyncio.sleep = lambda s, *_: real(min(s, 0.002))  # type: ignore[assignment]
    try:
        yield
    finally:
        asyncio.sleep = real


class Outcome(NamedTuple):
    """What came of a crawl: its exit code, the objects of its statements, and what was said."""

    code: int
    objects: frozenset[str]
    told: str


def crawled(kind: Kind, folder: Path) -> Outcome:
    """What comes of a small crawl of a server of this kind, by the command."""
    from kgbias.cli import cli

    store = folder / "k.db"
    with FaultServer(kind.answer) as server:
        asked_for = ["crawl", "--model", "openai:m", "--base-url", server.url + kind.path]
        asked_for += ["--store", str(store), "--group", "Women", "--samples", "1"]
        asked_for += ["--iterations", "0", *kind.arguments]
        if kind.ends == "cannot reach":
            server.__exit__()
        with impatient():
            done = CliRunner().invoke(cli, asked_for, standalone_mode=False)
    told, code = done.stderr, done.return_value or 0
    if done.exception is not None:
        if not isinstance(done.exception, KgbiasError):
            raise done.exception
        told, code = f"{told}{done.exception}", done.exception.exit_code
    objects = set[str]()
    if store.exists():
        with kgbias.open(str(store)) as study:
            objects = {t.object for run in study.runs() for t in study.run(run.name).triples()}
    return Outcome(code, frozenset(objects), told)


def check(kind: Kind, found: Outcome) -> None:
    """Raise AssertionError if anything but answers was read, or a reason is not said."""
    assert found.objects <= {o.rstrip(".") for o in OBJECTS}, (kind.what, found)
    if kind.ends:
        assert found.code == 2 and kind.ends in found.told, (kind.what, found)
    else:
        assert found.code == 0 and len(found.objects) >= 4, (kind.what, found)


def table() -> str:
    """The table of the documentation, from what comes out now."""
    rows = ["| the server or model | what comes out | exit code |", "|---|---|---|"]
    for title, kinds in KINDS.items():
        rows.append(f"| **{title}** | | |")
        for kind in kinds:
            with tempfile.TemporaryDirectory() as folder:
                found = crawled(kind, Path(folder))
            check(kind, found)
            ends = f"ends, and says: {kind.ends} ..."
            rows.append(f"| {kind.what} | {kind.comes or ends} | {found.code} |")
    return "\n".join(rows)


if __name__ == "__main__":
    print(table())
