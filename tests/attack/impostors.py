"""What is not what it says it is: models and vectors that are none, answers that nobody asked for,
secrets in addresses, names with characters that are not seen. A case is a valid small input with a
change."""

import json
import random
import re
import sqlite3
import struct
import tempfile
from collections.abc import Iterator
from contextlib import closing
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from tests import tiny
from tests.attack.commands import CommandResult, Commands
from tests.attack.readers import TOML_TESTS
from tests.attack.servers import CLIENTS, KEY, find_leaks, right_answer
from tests.attack.worlds import measure_options
from tests.fault_server import Fault, FaultServer

Faults = Iterator[tuple[str, str]]
_NO_NUMBER = re.compile(r"(?<![\w.])[-+]?(nan|inf(inity)?)(?!\w)", re.IGNORECASE)


def refusal_fault(code: int, err: str) -> str:
    message = err[max(0, err.rfind("kgbias: ")) :].strip()
    if code == 2 and "\n" not in message:
        return ""
    return f"was not refused in a line: {code}, {err[-300:]!r}"


def _fault(done: CommandResult) -> str:
    """What is wrong with a command that may be refused, but says no number that is none."""
    if done.fault or done.code:
        return done.fault or refusal_fault(done.code, done.err)
    return f"says {found[0]}" if (found := _NO_NUMBER.search(done.out)) else ""


def _count(folder: Path, what: str) -> int:
    with closing(sqlite3.connect(folder / "kgbias.db")) as db:
        ((count,),) = db.execute(f"SELECT count(*) FROM {what}")
    return int(count)


@cache
def _model_files(is_gguf: bool) -> dict[str, bytes]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if is_gguf:
            tiny.save_gguf(folder / "m.gguf")
        else:
            tiny.save_model(folder)
        return {file.name: file.read_bytes() for file in folder.iterdir()}


_SIZES = (-1, 0, 1, 3, 5, 64, 10**4, 10**9, 2**31 - 1)


def _change_gguf(rng: random.Random, files: dict[str, bytes]) -> str:
    data = files["m.gguf"]
    match rng.randrange(3):
        case 0:
            names = ("block_count", "embedding_length", "feed_forward_length", "vocab_size")
            name = rng.choice((*names, "attention.head_count", "attention.head_count_kv"))
            key = f"llama.{name}".encode() + struct.pack("<I", 4)
            at = data.index(key) + len(key)
            size = rng.choice(_SIZES)
            files["m.gguf"] = data[:at] + struct.pack("<I", size % 2**32) + data[at + 4 :]
            return f"{name} {size}"
        case 1:
            end = rng.randrange(len(data))
            files["m.gguf"] = data[:end]
            return f"the first {end} bytes"
        case _:  # of float32: four bytes of ones are no number
            count = 4 * rng.choice((1, 8, 2000))
            files["m.gguf"] = data[:-count] + b"\xff" * count
            return f"no numbers in the last {count} bytes"


def _change_folder(rng: random.Random, files: dict[str, bytes]) -> str:
    from safetensors.numpy import load, save

    match rng.randrange(4):
        case 0:
            names = ("n_layer", "n_embd", "n_head", "n_inner", "vocab_size", "n_positions")
            odd_values: tuple[Any, ...] = (*_SIZES, 10**12, None, "x", 1.5, [])
            name, value = rng.choice(names), rng.choice(odd_values)
            config = json.loads(files["config.json"]) | {name: value}
            files["config.json"] = json.dumps(config).encode()
            return f"{name} {value!r}"
        case 1:
            tokenizer = json.loads(files["tokenizer.json"])
            vocabulary = tokenizer["model"]["vocab"]
            shift = rng.choice((1, 100, 10**6, 2**31))
            tokenizer["model"]["vocab"] = {w: n + shift for w, n in vocabulary.items()}
            files["tokenizer.json"] = json.dumps(tokenizer).encode()
            return f"tokens of another model, {shift} further"
        case 2:
            name = rng.choice(list(files))
            files[name] = files[name][: rng.choice((0, len(files[name]) // 2))]
            return f"{len(files[name])} bytes of {name}"
        case _:
            weights: dict[str, Any] = {
                n: w.copy() for n, w in load(files["model.safetensors"]).items()
            }
            name, what = rng.choice(sorted(weights)), rng.choice(("nan", "inf", "lacks", "shorter"))
            if what == "lacks":
                del weights[name]
            elif what == "shorter":
                weights[name] = weights[name][:-1]
            else:
                weights[name].reshape(-1)[:: rng.choice((1, 7))] = float(what)
            files["model.safetensors"] = save(weights, {"format": "pt"})
            return f"{what} in {name}"


def models(commands: Commands, folder: Path, rng: random.Random, n: int) -> Faults:
    """A folder or a GGUF file that is no model is refused, and nothing of it is stored; what is
    taken gives numbers."""
    files, is_gguf = dict(_model_files(n % 3 == 2)), n % 3 == 2
    change = "" if n == 0 else (_change_gguf if is_gguf else _change_folder)(rng, files)
    (folder / "m").mkdir()
    for name, data in files.items():
        (folder / "m" / name).write_bytes(data)
    model = ("--model", "hf:m:m.gguf" if is_gguf else "hf:m")
    env = {"KGBIAS_CACHE": str(folder / "cache")}
    done = commands.run("probe", "surprisal", "women like music", *model, env=env, cwd=folder)
    yield f"surprisal: {change}", _fault(done)
    if change.startswith(("shorter", "lacks")):  # random numbers would take their place
        yield f"surprisal: {change}", "was taken" * (not done.code)
    if done.code:
        yield "a model", "" if change else f"the sound one was refused: {done.err[-300:]!r}"
        crawl = (*CLIENTS["crawl"].argv[3:], *model)
        done = commands.run("crawl", *crawl, env=env, cwd=folder)
        yield f"crawl: {change}", done.fault or refusal_fault(done.code, done.err)
        yield f"store: {change}", "has answers" if _count(folder, "answer") else ""


_WORDS = "kind warm good bad cold rude clever able stupid weak men women like music love".split()


def numbers(commands: Commands, folder: Path, rng: random.Random, n: int) -> Faults:
    """Vectors that are no numbers, or all alike, give no position and no effect that is none."""
    words = dict.fromkeys((*_WORDS, *re.findall(r"\w+", TOML_TESTS)))
    rows = [[word, *(f"{rng.gauss(0, 1):.3f}" for _ in range(5))] for word in words]
    odd = rng.choice(("nan", "inf", "-inf", "1e400", "1e308", "0", "-0", "1e-320"))
    change = ("nothing", "a column", "one", "a row", "all")[n % 5]
    places = {
        "nothing": [],
        "one": [(rng.choice(rows[: len(_WORDS)]), rng.randrange(1, 6))],
        "a row": [(row, k) for row in [rng.choice(rows[: len(_WORDS)])] for k in range(1, 6)],
        "a column": [(row, k) for k in [rng.randrange(1, 6)] for row in rows],
        "all": [(row, k) for row in rows for k in range(1, 6)],
    }
    for row, k in places[change]:
        row[k] = odd
    (folder / "v.txt").write_text("".join(f"{' '.join(row)}\n" for row in rows))
    (folder / "t.toml").write_text(TOML_TESTS)
    done = commands.run("associate", "--vectors", "v.txt", "--tests-file", "t.toml", cwd=folder)
    yield f"associate: {change} {odd}", _fault(done)
    if change == "nothing":
        yield "associate", f"sound vectors were refused: {done.err[-200:]}" * (done.code != 0)
    scorers = measure_options()[:-1]  # without --no-axes
    axes = ("--axes", "--set", "embedding=vectors:v.txt")
    done = commands.run("measure", "r", *scorers, *axes, cwd=folder)
    yield f"measure: {change} {odd}", _fault(done)
    if change == "nothing":
        yield "measure", f"sound vectors were refused: {done.err[-200:]}" * (done.code != 0)
    false = _count(folder, "score WHERE value IS NULL OR abs(value) > 1e300")
    yield f"store: {change} {odd}", f"has {false} scores that are no numbers" if false else ""


def second_answers(commands: Commands, folder: Path, rng: random.Random, _: int) -> Faults:
    """What a server sends unasked is the answer of no request."""

    def answer_text(body: dict[str, Any]) -> str:
        asked = json.dumps([body["prompt"], body.get("seed")])
        return f" music{sha256(asked.encode()).hexdigest()[:12]}."

    def response(text: str, code: int) -> bytes:
        body = right_answer({"prompt": ""})
        body["choices"][0]["text"] = text
        data = json.dumps(body).encode()
        head = f"HTTP/1.1 {code} X\r\ncontent-type: application/json\r\n"
        return f"{head}content-length: {len(data)}\r\n\r\n".encode() + data

    def plan(body: dict[str, Any], _: int) -> Fault:
        answer = right_answer(body)
        answer["choices"][0]["text"] = answer_text(body)
        unasked = response(" stray.", rng.choice((200, 200, 200, 201, 429, 500, 100)))
        unasked *= rng.choice((0, 1, 1, 3))
        unasked = unasked[: rng.choice((len(unasked), len(unasked), 20))]
        return "stray", (json.dumps(answer), unasked, rng.choice((0, 0, 0.02)))

    with FaultServer(plan) as server:
        env = {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": server.url}
        done = commands.run(*CLIENTS["crawl"].argv, "--form", "completion", env=env, cwd=folder)
        asked = {answer_text(body) for body in server.bodies}
    yield "second answers", done.fault or f"exit {done.code}, {done.err[-200:]}" * (done.code != 0)
    with closing(sqlite3.connect(folder / "kgbias.db")) as db:
        kept = [text for (text,) in db.execute("SELECT text FROM answer")]
    yield (
        "second answers",
        f"{kept} of {asked}" * (not kept or {*kept} != asked),
    )


_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"


def addresses(commands: Commands, folder: Path, rng: random.Random, n: int) -> Faults:
    """A token in an address is neither shown nor stored, whatever a server says back."""
    marks = rng.choice(("", "-_", "-_.~", "+/=@:"))
    letters = [rng.choice(_LETTERS + marks) for _ in range(rng.choice((16, 24, 40)))]
    token = "Ab1" + "".join(letters) + "9z"
    hidden = quote(token, safe="")
    path = ("/v1", f"/{hidden}/v1", f"/v1/{hidden}")[n % 3]
    query = rng.choice(("", f"?key={hidden}", f"?api-version=1&sig={hidden}"))
    if path == "/v1" and not query:
        query = f"?{hidden}=1&token={hidden}"
    said = rng.choice((token, hidden, f"POST {path}/completions{query} HTTP/1.1"))
    is_error = rng.random() < 0.7

    def plan(body: dict[str, Any], _: int) -> Fault:
        if is_error:
            return "refuse", (rng.choice((400, 401, 403, 404, 500)), f"no: {said}")
        answer = right_answer(body)
        answer |= {"model": f"m {said}", "system_fingerprint": said}
        return "body", json.dumps(answer)

    with FaultServer(plan) as server:
        url = server.url.removesuffix("/v1") + path + query
        crawl = (*CLIENTS["crawl"].argv, "--form", "completion")
        env = {"OPENAI_API_KEY": KEY}
        done = commands.run(*crawl, "--base-url", url, env=env, cwd=folder)
    results = [done]
    if not done.code:
        for argv in (("runs",), ("report", "c", "-o", "c.html"), ("publish", "c", "-o", "out")):
            results.append(commands.run(*argv, cwd=folder))
    for each in results:
        yield f"an address: {each.argv[0]}", each.fault
    text = "".join(each.out + each.err for each in results)
    for form in dict.fromkeys((token, hidden, unquote(token))):
        for leak in find_leaks(folder, text, form):
            yield f"an address with {path != '/v1' and 'a path'} {query and 'a query'}", leak


_BASES = ("می‌خواهم", "ක්ෂ", "Köche", "женщины", "bakers of bread", "北方人")
_UNSEEN = (
    *"\u200c\u200d",  # joiners, the only ones that belong to names; white space becomes a space
    *"\u202e\u2066\u200e\u200b\ufeff\u00ad\x07\x1b\x7f\x9b\u061c\ue000\U000e0041",
)


def names(commands: Commands, folder: Path, rng: random.Random, n: int) -> Faults:
    """A group's name has one rule at every door: joiners are letters, other characters that are not
    seen are refused."""
    base, unseen = rng.choice(_BASES), _UNSEEN[n % len(_UNSEEN)]
    at = rng.randrange(1, len(base))
    name = base[:at] + unseen + base[at:]
    is_plain = unseen in "\u200c\u200d"
    (folder / "s.toml").write_text(
        f"[trade]\ngroups = {json.dumps([name], ensure_ascii=False)}\n", "utf-8"
    )
    (folder / "t.csv").write_text(f'group,predicate,object\n"{name}",like,music\n', "utf-8")
    crawl = ("crawl", "--model", "openai:m", "--dry-run")
    for where, door in (("--group", name), ("--seeds", "s.toml")):
        done = commands.run(*crawl, where, door, cwd=folder)
        refused = "" if done.code == 0 else refusal_fault(done.code, done.err)
        yield (
            f"{where} {name!a}",
            done.fault or refused or f"exit {done.code}" * (is_plain != (done.code == 0)),
        )
    done = commands.run("import", "t.csv", "--run", "i", cwd=folder)
    yield f"import {name!a}", done.fault or (done.code != 0) * refusal_fault(done.code, done.err)
    if done.code == 0:
        with closing(sqlite3.connect(folder / "kgbias.db")) as db:
            kept = [group for (group,) in db.execute('SELECT name FROM "group"')]
        others = name not in kept if is_plain else any(unseen in group for group in kept)
        yield f"import {name!a}", f"is kept as one of {kept!a}" * others
        yield f"runs {name!a}", commands.run("runs", cwd=folder).fault
