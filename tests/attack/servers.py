"""What a hostile server may answer, and the clients that ask it: a crawl by completions, by chat
and by structured chat, a probe, and the moderation scorer."""

import base64
import gzip
import json
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.attack.commands import Commands, Ended
from tests.attack.worlds import measuring
from tests.fault_server import Fault, FaultServer

KEY = "sk-ATTACK0123456789abcdefghijklmnopqrstuvwxyz"
JSON = {"content-type": "application/json"}
Answer = dict[str, Any]
Scenario = Callable[
    [Answer, dict[str, Any]], Fault
]  # (the right answer, the request) -> what comes


def right(body: dict[str, Any]) -> Answer:
    """What a sound server answers to a request of any of the clients."""
    if "input" in body:
        result = {"flagged": False, "categories": {"hate": False}, "category_scores": {"hate": 0.2}}
        return {"id": "x", "model": "omni", "results": [result for _ in body["input"]]}
    top = {
        "id": "x",
        "object": "text_completion",
        "created": 1,
        "model": "m",
        "usage": {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10},
    }
    if "messages" in body:
        text = '{"predicate": "like", "object": "music"}' if "response_format" in body else " music"
        choice = {
            "index": 0,
            "finish_reason": "stop",
            "message": {"role": "assistant", "content": text},
        }
        return top | {"choices": [choice]}
    if body.get("echo"):
        return top | {"choices": [_echo(n, text) for n, text in enumerate(body["prompt"])]}
    return top | {"choices": [{"index": 0, "text": " music.", "finish_reason": "stop"}]}


def _echo(number: int, text: str) -> dict[str, Any]:
    words, places, at = [], [], 0
    for word in text.split(" "):
        words.append(word if not places else f" {word}")
        places.append(at)
        at += len(words[-1])
    logs = [None, *(-1.0 - 0.01 * len(w) for w in words[1:])] if len(words) > 1 else [-2.0]
    logprobs = {
        "tokens": words,
        "token_logprobs": logs,
        "text_offset": places,
        "top_logprobs": None,
    }
    return {"index": number, "text": text, "finish_reason": "length", "logprobs": logprobs}


def _raw(body: bytes | str, code: int = 200, **headers: str) -> Scenario:
    data = body.encode("utf-8", "surrogatepass") if isinstance(body, str) else body
    named = {name.replace("_", "-"): value for name, value in headers.items()} or JSON
    return lambda *_: ("raw", (code, named, data))


def _changed(change: Callable[[Answer], Any], **dumps: Any) -> Scenario:
    """The right answer with a change."""

    def scenario(answer: Answer, _: dict[str, Any]) -> Fault:
        new = change(answer)
        text = json.dumps(answer if new is None else new, **dumps)
        return "raw", (200, JSON, text.encode("utf-8", "surrogatepass"))

    return scenario


def _text(text: Any) -> Scenario:
    """The right answer, saying this."""

    def change(answer: Answer) -> None:
        for choice in answer.get("choices", ()):
            if "message" in choice:
                choice["message"]["content"] = text
            choice["text"] = text

    return _changed(change, ensure_ascii=False)


def _set(path: str, value: Any) -> Scenario:
    """The right answer with one of its fields replaced, where it has it."""

    def change(answer: Answer) -> None:
        *parents, last = path.split(".")
        for holder in _holders([answer], parents):
            if isinstance(holder, dict):
                holder[last] = value

    return _changed(change)


def _holders(nodes: list[Any], path: list[str]) -> list[Any]:
    for name in path:
        nodes = [n[name] for n in nodes if isinstance(n, dict) and name in n]
        nodes = [m for n in nodes for m in (n if isinstance(n, list) else [n])]
    return nodes


def _logs(*values: Any) -> Scenario:
    """All log-probabilities of a prompt, and all scores, are one of these."""

    def change(answer: Answer) -> None:
        for n, holder in enumerate(_holders([answer], ["choices", "logprobs"])):
            length = len(holder["tokens"])
            holder["token_logprobs"] = [values[(n + k) % len(values)] for k in range(length)]
        for holder in _holders([answer], ["results", "category_scores"]):
            holder["hate"] = values[0]

    return _changed(change)


_BASIC = base64.b64encode(f"user:{KEY}".encode()).decode()
ECHOES = {  # a server that says the key back, wherever it can
    "401 says the key": _raw(json.dumps({"error": {"message": f"Incorrect API key: {KEY}"}}), 401),
    "403 says the key": _raw(f"<p>not with {KEY}</p>", 403, content_type="text/html"),
    "400 says the key": _raw(json.dumps({"error": {"message": f"bad header Bearer {KEY}"}}), 400),
    "500 says the key": _raw(json.dumps({"error": {"message": f"{'x' * 280} {KEY}"}}), 500),
    "404 says it in Basic": _raw(json.dumps({"error": {"message": f"Basic {_BASIC}"}}), 404),
    "422 says its repr": _raw(json.dumps({"error": {"message": repr(KEY.encode())}}), 422),
    "200 says the key": _raw(f"not JSON, but {KEY}"),
    "200 cuts the key": _raw("x" * 60 + KEY),
    "200 escapes the key": _raw("".join(f"\\u{ord(c):04x}" for c in KEY) + KEY),
    "model is the key": _set("model", f"m {KEY}"),
    "fingerprint is the key": _set("system_fingerprint", KEY),
    "fingerprint cuts the key": _set("system_fingerprint", "x" * 80 + KEY),
    "finish is the key": _set("choices.finish_reason", KEY),
    "text is the key": _text(f" {KEY}."),
    "a header says the key": _raw("{}", 500, content_type="text/html", retry_after=KEY),
}
SCENARIOS: dict[str, Scenario] = {
    **ECHOES,
    "html": _raw("<html><body>Sign in</body></html>", content_type="text/html"),
    "html that fails": _raw("<html>Bad gateway</html>", 502, content_type="text/html"),
    "nothing": _raw(""),
    "null": _raw("null"),
    "a list": _raw("[]"),
    "a list of lists": _raw("[[[]]]"),
    "a string": _raw('"no"'),
    "a number": _raw("7"),
    "an empty object": _raw("{}"),
    "half an object": _raw('{"choices": ['),
    "JSON twice": _raw('{"choices": []}{"choices": []}'),
    "deep JSON": _raw("[" * 100_000),
    "deep object": _raw('{"choices":' * 50_000),
    "a number of 6,000 digits": _raw('{"choices": ' + "9" * 6000 + "}"),
    "UTF-16": _raw('{"choices": []}'.encode("utf-16")),
    "bytes that are no text": _raw(b"\xff\xfe\x00\xd8\xc3("),
    "a charset that is not": _raw(
        json.dumps({"choices": []}), content_type="application/json; charset=klingon"
    ),
    "the wrong charset": _changed(lambda a: None)
    and _raw(
        '{"model": "\xe9\xff", "choices": [{"text": " \xe9", "index": 0}]}'.encode("latin-1"),
        content_type="application/json; charset=utf-8",
    ),
    "charset rot13": _raw("{}", content_type="application/json; charset=rot13"),
    "charset utf-7": _raw("+2D8-", content_type="application/json; charset=utf-7"),
    "gzip that is none": _raw("{}", content_encoding="gzip", content_type="application/json"),
    "a gzip bomb": _raw(
        gzip.compress(b" " * 300_000_000, 9),
        content_encoding="gzip",
        content_type="application/json",
    ),
    "a long body": _raw(b"[" + b"0," * 20_000_000),
    "a body of objects": _raw(b'{"choices": [' + b"{}," * 2_700_000 + b"{}]}"),  # 8 MB
    "to another place": _raw("", 302, location="http://127.0.0.1:9/v1"),
    "round and round": _raw("", 307, location="/v1/completions"),
    "to be fetched": _raw("", 303, location="/v1/completions"),
    "to a port that is none": _raw("", 307, location="http://127.0.0.1:99999/v1"),
    "to half an address": _raw("", 307, location="http://[::1"),
    "to a file": _raw("", 302, location="file:///etc/passwd"),
    "to nowhere": _raw("", 302, location=""),
    "to a place that is no text": _raw("", 302, location="/\xff\xfe"),
    "a length too long": _raw("{}", content_length="100000", content_type="application/json"),
    "a length too short": _raw('{"choices": []}', content_length="4"),
    "no such chunks": _raw("zz\r\n{}\r\n", transfer_encoding="chunked"),
    "status 299": _raw("{}", 299),
    "status 204": _raw("", 204),
    "status 418": _raw("teapot", 418),
    "retry after nan": _raw("{}", 429, retry_after="nan", content_type="application/json"),
    "cut": lambda *_: ("cut", None),
    "no choices": _set("choices", []),
    "choices null": _set("choices", None),
    "choices a string": _set("choices", "no"),
    "choices of null": _set("choices", [None]),
    "choices of strings": _set("choices", ["a", "b"]),
    "index a string": _set("choices.index", "0"),
    "index null": _set("choices.index", None),
    "index away": _set("choices.index", 10**30),
    "usage a string": _set("usage", "none"),
    "usage of strings": _set("usage", {"prompt_tokens": "x", "completion_tokens": -1}),
    "usage of floats": _set("usage", {"prompt_tokens": 1e400, "completion_tokens": 0.5}),
    "text null": _text(None),
    "text a list": _text(["a"]),
    "text a number": _text(7),
    "text with half a pair": _text(" half \ud83d"),
    "text with NUL": _text(" a\x00b"),
    "text of spaces": _text(" " * 65_000),
    "text of a fence and spaces": _text("```" + " " * 65_000),
    "text of brackets": _text("{" * 60_000),
    "text of quotes": _text("```json" + "\n" * 30_000 + "x"),
    "text of commas": _text(", " * 30_000),
    "text of A:": _text(" A:" * 20_000),
    "text very long": _text(" word" * 400_000),
    "text hostile": _text(" </script>\x1b]0;x\x07\u202e=1+1."),
    "model with half a pair": _set("model", "m\ud800"),
    "fingerprint with half a pair": _set("system_fingerprint", "\udfff"),
    "finish with half a pair": _set("choices.finish_reason", "\ud83d"),
    "fingerprint of controls": _set("system_fingerprint", "\x1b]0;x\x07\u202e\x00"),
    "model a list": _set("model", ["m"]),
    "logprobs null": _set("choices.logprobs", None),
    "logprobs a list": _set("choices.logprobs", [1]),
    "logprobs empty": _set("choices.logprobs", {}),
    "tokens null": _set("choices.logprobs.tokens", None),
    "tokens too few": _set("choices.logprobs.tokens", ["a"]),
    "tokens of numbers": _set("choices.logprobs.tokens", [1, 2, 3]),
    "offsets null": _set("choices.logprobs.text_offset", None),
    "offsets too few": _set("choices.logprobs.text_offset", [0]),
    "offsets of strings": _set("choices.logprobs.text_offset", ["0", "1"]),
    "offsets empty": _set("choices.logprobs.text_offset", []),
    "logs NaN": _logs(math.nan),
    "logs -Infinity": _logs(-math.inf),
    "logs Infinity": _logs(math.inf),
    "one log -Infinity": _logs(-1.0, -math.inf),
    "logs positive": _logs(0.5),
    "logs huge": _logs(-1e308),
    "logs null": _logs(None),
    "logs strings": _logs("-1"),
    "logs lists": _logs([]),
    "logs true": _logs(True),
    "results null": _set("results", None),
    "results empty": _set("results", []),
    "results of strings": _set("results", ["hate"]),
    "results of null": _set("results", [None]),
    "scores null": _set("results.category_scores", None),
    "scores a string": _set("results.category_scores", "hate"),
    "scores a list": _set("results.category_scores", [1]),
    "scores negative": _logs(-3.0),
    "scores above 1": _logs(7.5),
}


@dataclass(frozen=True)
class Client:
    """A command that asks a server; `first` are the requests that are answered as they should be
    (the scorer's question which categories there are)."""

    argv: tuple[str, ...]
    first: int = 0


_CRAWL = (
    "crawl",
    "--model",
    "openai:m",
    "--group",
    "women",
    "--samples",
    "2",
    "--iterations",
    "1",
    "--set",
    "predicate-prompts=1",
    "--set",
    "object-prompts=1",
    "--set",
    "initial-predicates=are,like",
    "--set",
    "max-attempts=2",
    "--run",
    "c",
)
_MODERATION = ("measure", "r", *measuring(toxicity="openai-moderation"))
CLIENTS = {
    "crawl": Client(_CRAWL),
    "chat": Client((*_CRAWL, "--form", "chat")),
    "structured": Client((*_CRAWL, "--form", "chat", "--set", "structured=true")),
    "probe": Client(("probe", "r", "--model", "openai:m")),
    "surprisal": Client(("probe", "surprisal", "women like music", "--model", "openai:m")),
    "moderation": Client(_MODERATION, 1),
    "moderation at once": Client(_MODERATION),
}
OF_CRAWL = ("choices", "text", "usage", "finish", "fingerprint", "model")
OF_PROBE = ("choices", "index", "logprobs", "tokens", "offsets", "logs", "one log")
OF_SCORER = ("results", "scores", "logs")


def concerns(client: str, scenario: str) -> bool:
    """Whether the scenario changes anything for the client."""
    own = {
        "crawl": OF_CRAWL,
        "chat": OF_CRAWL,
        "structured": OF_CRAWL,
        "probe": OF_PROBE,
        "surprisal": OF_PROBE,
    }.get(client, OF_SCORER)
    special = {*OF_CRAWL, *OF_PROBE, *OF_SCORER}
    word = scenario.split()[0]
    return word not in special or scenario.startswith(own)


# What must still work on a store that a hostile answer may have reached; a report draws figures and
# takes a second.
NOTHING = re.compile(
    r"kgbias: run '\w+'( \(\w+\))? has no statements: repeat its crawl, or name another run"
)
AFTER: tuple[tuple[str, ...], ...] = (("runs",), ("compare", "r"), ("export", "-o", "after.jsonl"))
REPORT = ("report", "-o", "after.html")


def attack(
    commands: Commands,
    folder: Path,
    client: str,
    scenario: Scenario,
    *,
    after: tuple[tuple[str, ...], ...] = (*AFTER, REPORT),
) -> tuple[Ended, list[str]]:
    """Let the client ask a server that answers so, in a folder prepared by `tests.attack.worlds`,
    and see what `after` it makes of the store; how it ended, and what is wrong with that."""
    asker = CLIENTS[client]
    asked = 0

    def plan(body: dict[str, Any], _: int) -> Fault:
        nonlocal asked
        asked += 1
        answer = right(body)
        if asked <= asker.first:
            return "body", json.dumps(answer)
        return scenario(answer, body)

    with FaultServer(plan) as server:
        env = {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": server.url}
        ended = commands.run(*asker.argv, env=env, cwd=folder)
    faults = [ended.fault] if ended.fault else []
    faults += leaks(folder, ended.out + ended.err)
    if client in ("crawl", "probe", "moderation"):
        for argv in after:
            done = commands.run(*argv, cwd=folder)
            # A crawl that the server gave nothing has nothing to take out, and that is said.
            nothing = done.code == 2 and NOTHING.fullmatch(done.err.strip())
            if done.fault or (done.code and not nothing):
                faults.append(f"then {argv[0]} failed: {done.fault or done.err.strip()[:200]}")
        faults += leaks(folder, "")
    return ended, faults


def leaks(folder: Path, text: str, key: str = KEY) -> list[str]:
    """Where the key, or half of it, is: in the text, or in a file of the folder."""
    halves = (key[:14], key[-14:])
    found = [
        f"the key is printed: ...{text[max(0, at - 40) : at + 20]!r}"
        for half in halves
        if (at := text.find(half)) >= 0
    ]
    for file in sorted(folder.rglob("*")):
        if file.is_file():
            data = file.read_bytes()
            found += [f"the key is in {file.name}" for half in halves if half.encode() in data]
    return list(dict.fromkeys(found))
