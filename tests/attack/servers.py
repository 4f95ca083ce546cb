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

from tests.attack.commands import CommandResult, Commands
from tests.attack.worlds import measure_options
from tests.fault_server import Fault, FaultServer

KEY = "sk-ATTACK0123456789abcdefghijklmnopqrstuvwxyz"
JSON = {"content-type": "application/json"}
ServerAnswer = dict[str, Any]
Scenario = Callable[
    [ServerAnswer, dict[str, Any]], Fault
]  # (the right answer, the request) -> what comes


def right_answer(body: dict[str, Any]) -> ServerAnswer:
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
        return top | {
            "choices": [_completion_choice(n, text) for n, text in enumerate(body["prompt"])]
        }
    return top | {"choices": [{"index": 0, "text": " music.", "finish_reason": "stop"}]}


def _completion_choice(number: int, text: str) -> dict[str, Any]:
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


def _raw_scenario(body: bytes | str, code: int = 200, **headers: str) -> Scenario:
    data = body.encode("utf-8", "surrogatepass") if isinstance(body, str) else body
    header_values = {name.replace("_", "-"): value for name, value in headers.items()} or JSON
    return lambda *_: ("raw", (code, header_values, data))


def _changed_scenario(change: Callable[[ServerAnswer], Any], **dumps: Any) -> Scenario:
    """The right answer with a change."""

    def scenario(answer: ServerAnswer, _: dict[str, Any]) -> Fault:
        new = change(answer)
        text = json.dumps(answer if new is None else new, **dumps)
        return "raw", (200, JSON, text.encode("utf-8", "surrogatepass"))

    return scenario


def _text_scenario(text: Any) -> Scenario:
    """The right answer, saying this."""

    def change(answer: ServerAnswer) -> None:
        for choice in answer.get("choices", ()):
            if "message" in choice:
                choice["message"]["content"] = text
            choice["text"] = text

    return _changed_scenario(change, ensure_ascii=False)


def _field_scenario(path: str, value: Any) -> Scenario:
    """The right answer with one of its fields replaced, where it has it."""

    def change(answer: ServerAnswer) -> None:
        *parents, last = path.split(".")
        for holder in _find_holders([answer], parents):
            if isinstance(holder, dict):
                holder[last] = value

    return _changed_scenario(change)


def _find_holders(nodes: list[Any], path: list[str]) -> list[Any]:
    for name in path:
        nodes = [n[name] for n in nodes if isinstance(n, dict) and name in n]
        nodes = [m for n in nodes for m in (n if isinstance(n, list) else [n])]
    return nodes


def _scores_scenario(*values: Any) -> Scenario:
    """All log-probabilities of a prompt, and all scores, are one of these."""

    def change(answer: ServerAnswer) -> None:
        for n, holder in enumerate(_find_holders([answer], ["choices", "logprobs"])):
            length = len(holder["tokens"])
            holder["token_logprobs"] = [values[(n + k) % len(values)] for k in range(length)]
        for holder in _find_holders([answer], ["results", "category_scores"]):
            holder["hate"] = values[0]

    return _changed_scenario(change)


_BASIC = base64.b64encode(f"user:{KEY}".encode()).decode()
ECHOES = {  # a server that says the key back, wherever it can
    "401 says the key": _raw_scenario(
        json.dumps({"error": {"message": f"Incorrect API key: {KEY}"}}), 401
    ),
    "403 says the key": _raw_scenario(f"<p>not with {KEY}</p>", 403, content_type="text/html"),
    "400 says the key": _raw_scenario(
        json.dumps({"error": {"message": f"bad header Bearer {KEY}"}}), 400
    ),
    "500 says the key": _raw_scenario(
        json.dumps({"error": {"message": f"{'x' * 280} {KEY}"}}), 500
    ),
    "404 says it in Basic": _raw_scenario(
        json.dumps({"error": {"message": f"Basic {_BASIC}"}}), 404
    ),
    "422 says its repr": _raw_scenario(json.dumps({"error": {"message": repr(KEY.encode())}}), 422),
    "200 says the key": _raw_scenario(f"not JSON, but {KEY}"),
    "200 cuts the key": _raw_scenario("x" * 60 + KEY),
    "200 escapes the key": _raw_scenario("".join(f"\\u{ord(c):04x}" for c in KEY) + KEY),
    "model is the key": _field_scenario("model", f"m {KEY}"),
    "fingerprint is the key": _field_scenario("system_fingerprint", KEY),
    "fingerprint cuts the key": _field_scenario("system_fingerprint", "x" * 80 + KEY),
    "finish is the key": _field_scenario("choices.finish_reason", KEY),
    "text is the key": _text_scenario(f" {KEY}."),
    "a header says the key": _raw_scenario("{}", 500, content_type="text/html", retry_after=KEY),
}
SCENARIOS: dict[str, Scenario] = {
    **ECHOES,
    "html": _raw_scenario("<html><body>Sign in</body></html>", content_type="text/html"),
    "html that fails": _raw_scenario("<html>Bad gateway</html>", 502, content_type="text/html"),
    "nothing": _raw_scenario(""),
    "null": _raw_scenario("null"),
    "a list": _raw_scenario("[]"),
    "a list of lists": _raw_scenario("[[[]]]"),
    "a string": _raw_scenario('"no"'),
    "a number": _raw_scenario("7"),
    "an empty object": _raw_scenario("{}"),
    "half an object": _raw_scenario('{"choices": ['),
    "JSON twice": _raw_scenario('{"choices": []}{"choices": []}'),
    "deep JSON": _raw_scenario("[" * 100_000),
    "deep object": _raw_scenario('{"choices":' * 50_000),
    "a number of 6,000 digits": _raw_scenario('{"choices": ' + "9" * 6000 + "}"),
    "UTF-16": _raw_scenario('{"choices": []}'.encode("utf-16")),
    "bytes that are no text": _raw_scenario(b"\xff\xfe\x00\xd8\xc3("),
    "a charset that is not": _raw_scenario(
        json.dumps({"choices": []}), content_type="application/json; charset=klingon"
    ),
    "the wrong charset": _changed_scenario(lambda a: None)
    and _raw_scenario(
        '{"model": "\xe9\xff", "choices": [{"text": " \xe9", "index": 0}]}'.encode("latin-1"),
        content_type="application/json; charset=utf-8",
    ),
    "charset rot13": _raw_scenario("{}", content_type="application/json; charset=rot13"),
    "charset utf-7": _raw_scenario("+2D8-", content_type="application/json; charset=utf-7"),
    "gzip that is none": _raw_scenario(
        "{}", content_encoding="gzip", content_type="application/json"
    ),
    "a gzip bomb": _raw_scenario(
        gzip.compress(b" " * 300_000_000, 9),
        content_encoding="gzip",
        content_type="application/json",
    ),
    "a long body": _raw_scenario(b"[" + b"0," * 20_000_000),
    "a body of objects": _raw_scenario(b'{"choices": [' + b"{}," * 2_700_000 + b"{}]}"),  # 8 MB
    "to another place": _raw_scenario("", 302, location="http://127.0.0.1:9/v1"),
    "round and round": _raw_scenario("", 307, location="/v1/completions"),
    "to be fetched": _raw_scenario("", 303, location="/v1/completions"),
    "to a port that is none": _raw_scenario("", 307, location="http://127.0.0.1:99999/v1"),
    "to half an address": _raw_scenario("", 307, location="http://[::1"),
    "to a file": _raw_scenario("", 302, location="file:///etc/passwd"),
    "to nowhere": _raw_scenario("", 302, location=""),
    "to a place that is no text": _raw_scenario("", 302, location="/\xff\xfe"),
    "a length too long": _raw_scenario(
        "{}", content_length="100000", content_type="application/json"
    ),
    "a length too short": _raw_scenario('{"choices": []}', content_length="4"),
    "no such chunks": _raw_scenario("zz\r\n{}\r\n", transfer_encoding="chunked"),
    "status 299": _raw_scenario("{}", 299),
    "status 204": _raw_scenario("", 204),
    "status 418": _raw_scenario("teapot", 418),
    "retry after nan": _raw_scenario("{}", 429, retry_after="nan", content_type="application/json"),
    "cut": lambda *_: ("cut", None),
    "no choices": _field_scenario("choices", []),
    "choices null": _field_scenario("choices", None),
    "choices a string": _field_scenario("choices", "no"),
    "choices of null": _field_scenario("choices", [None]),
    "choices of strings": _field_scenario("choices", ["a", "b"]),
    "index a string": _field_scenario("choices.index", "0"),
    "index null": _field_scenario("choices.index", None),
    "index away": _field_scenario("choices.index", 10**30),
    "usage a string": _field_scenario("usage", "none"),
    "usage of strings": _field_scenario("usage", {"prompt_tokens": "x", "completion_tokens": -1}),
    "usage of floats": _field_scenario("usage", {"prompt_tokens": 1e400, "completion_tokens": 0.5}),
    "text null": _text_scenario(None),
    "text a list": _text_scenario(["a"]),
    "text a number": _text_scenario(7),
    "text with half a pair": _text_scenario(" half \ud83d"),
    "text with NUL": _text_scenario(" a\x00b"),
    "text of spaces": _text_scenario(" " * 65_000),
    "text of a fence and spaces": _text_scenario("```" + " " * 65_000),
    "text of brackets": _text_scenario("{" * 60_000),
    "text of quotes": _text_scenario("```json" + "\n" * 30_000 + "x"),
    "text of commas": _text_scenario(", " * 30_000),
    "text of A:": _text_scenario(" A:" * 20_000),
    "text very long": _text_scenario(" word" * 400_000),
    "text hostile": _text_scenario(" </script>\x1b]0;x\x07\u202e=1+1."),
    "model with half a pair": _field_scenario("model", "m\ud800"),
    "fingerprint with half a pair": _field_scenario("system_fingerprint", "\udfff"),
    "finish with half a pair": _field_scenario("choices.finish_reason", "\ud83d"),
    "fingerprint of controls": _field_scenario("system_fingerprint", "\x1b]0;x\x07\u202e\x00"),
    "model a list": _field_scenario("model", ["m"]),
    "logprobs null": _field_scenario("choices.logprobs", None),
    "logprobs a list": _field_scenario("choices.logprobs", [1]),
    "logprobs empty": _field_scenario("choices.logprobs", {}),
    "tokens null": _field_scenario("choices.logprobs.tokens", None),
    "tokens too few": _field_scenario("choices.logprobs.tokens", ["a"]),
    "tokens of numbers": _field_scenario("choices.logprobs.tokens", [1, 2, 3]),
    "offsets null": _field_scenario("choices.logprobs.text_offset", None),
    "offsets too few": _field_scenario("choices.logprobs.text_offset", [0]),
    "offsets of strings": _field_scenario("choices.logprobs.text_offset", ["0", "1"]),
    "offsets empty": _field_scenario("choices.logprobs.text_offset", []),
    "logs NaN": _scores_scenario(math.nan),
    "logs -Infinity": _scores_scenario(-math.inf),
    "logs Infinity": _scores_scenario(math.inf),
    "one log -Infinity": _scores_scenario(-1.0, -math.inf),
    "logs positive": _scores_scenario(0.5),
    "logs huge": _scores_scenario(-1e308),
    "logs null": _scores_scenario(None),
    "logs strings": _scores_scenario("-1"),
    "logs lists": _scores_scenario([]),
    "logs true": _scores_scenario(True),
    "results null": _field_scenario("results", None),
    "results empty": _field_scenario("results", []),
    "results of strings": _field_scenario("results", ["hate"]),
    "results of null": _field_scenario("results", [None]),
    "scores null": _field_scenario("results.category_scores", None),
    "scores a string": _field_scenario("results.category_scores", "hate"),
    "scores a list": _field_scenario("results.category_scores", [1]),
    "scores negative": _scores_scenario(-3.0),
    "scores above 1": _scores_scenario(7.5),
}


@dataclass(frozen=True)
class AttackedClient:
    """A command that asks a server; `sound_requests` are the requests that are answered as they
    should be (the scorer's question which categories there are)."""

    argv: tuple[str, ...]
    sound_requests: int = 0


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
_MODERATION = ("measure", "r", *measure_options(toxicity="openai-moderation"))
CLIENTS = {
    "crawl": AttackedClient(_CRAWL),
    "chat": AttackedClient((*_CRAWL, "--form", "chat")),
    "structured": AttackedClient((*_CRAWL, "--form", "chat", "--set", "structured=true")),
    "probe": AttackedClient(("probe", "r", "--model", "openai:m")),
    "surprisal": AttackedClient(("probe", "surprisal", "women like music", "--model", "openai:m")),
    "moderation": AttackedClient(_MODERATION, 1),
    "moderation at once": AttackedClient(_MODERATION),
}
CRAWL_SCENARIOS = ("choices", "text", "usage", "finish", "fingerprint", "model")
PROBE_SCENARIOS = ("choices", "index", "logprobs", "tokens", "offsets", "logs", "one log")
SCORER_SCENARIOS = ("results", "scores", "logs")


def concerns_client(client: str, scenario: str) -> bool:
    """Whether the scenario changes anything for the client."""
    client_scenarios = {
        "crawl": CRAWL_SCENARIOS,
        "chat": CRAWL_SCENARIOS,
        "structured": CRAWL_SCENARIOS,
        "probe": PROBE_SCENARIOS,
        "surprisal": PROBE_SCENARIOS,
    }.get(client, SCORER_SCENARIOS)
    special = {*CRAWL_SCENARIOS, *PROBE_SCENARIOS, *SCORER_SCENARIOS}
    word = scenario.split()[0]
    return word not in special or scenario.startswith(client_scenarios)


# What must still work on a store that a hostile answer may have reached; a report draws figures and
# takes a second.
NO_STATEMENTS = re.compile(
    r"kgbias: run '\w+'( \(\w+\))? has no statements: repeat its crawl, or name another run"
)
FOLLOW_UPS: tuple[tuple[str, ...], ...] = (
    ("runs",),
    ("compare", "r"),
    ("export", "-o", "after.jsonl"),
)
REPORT_COMMAND = ("report", "-o", "after.html")


def attack_client(
    commands: Commands,
    folder: Path,
    client: str,
    scenario: Scenario,
    *,
    follow_ups: tuple[tuple[str, ...], ...] = (*FOLLOW_UPS, REPORT_COMMAND),
) -> tuple[CommandResult, list[str]]:
    """Let the client ask a server that answers so, in a folder prepared by `tests.attack.worlds`,
    and see what `follow_ups` it makes of the store; how it ended, and what is wrong with that."""
    asker = CLIENTS[client]
    request_count = 0

    def plan(body: dict[str, Any], _: int) -> Fault:
        nonlocal request_count
        request_count += 1
        answer = right_answer(body)
        if request_count <= asker.sound_requests:
            return "body", json.dumps(answer)
        return scenario(answer, body)

    with FaultServer(plan) as server:
        env = {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": server.url}
        result = commands.run(*asker.argv, env=env, cwd=folder)
    faults = [result.fault] if result.fault else []
    faults += find_leaks(folder, result.out + result.err)
    if client in ("crawl", "probe", "moderation"):
        for argv in follow_ups:
            follow_up = commands.run(*argv, cwd=folder)
            # A crawl that the server gave nothing has nothing to take out, and that is said.
            is_empty = follow_up.code == 2 and NO_STATEMENTS.fullmatch(follow_up.err.strip())
            if follow_up.fault or (follow_up.code and not is_empty):
                faults.append(
                    f"then {argv[0]} failed: {follow_up.fault or follow_up.err.strip()[:200]}"
                )
        faults += find_leaks(folder, "")
    return result, faults


def find_leaks(folder: Path, text: str, key: str = KEY) -> list[str]:
    """Where the key, or half of it, is: in the text, or in a file of the folder."""
    halves = (key[:14], key[-14:])
    places = [
        f"the key is printed: ...{text[max(0, at - 40) : at + 20]!r}"
        for half in halves
        if (at := text.find(half)) >= 0
    ]
    for file in sorted(folder.rglob("*")):
        if file.is_file():
            data = file.read_bytes()
            places += [f"the key is in {file.name}" for half in halves if half.encode() in data]
    return list(dict.fromkeys(places))
