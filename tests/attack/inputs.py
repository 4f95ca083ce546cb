"""Mutated files for every reader of kgbias, in this process: a case is a valid file with a few
changes, by bytes or by what its format means. Each reader must read it or raise a KgbiasError, in
little time."""

import bz2
import csv
import gzip
import io
import json
import lzma
import random
import re
import signal
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from types import FrameType
from typing import Any

from kgbias.errors import KgbiasError
from tests.hostile import CORPUS

SECONDS = 20.0  # for one file of a few kilobytes
DIGITS = "7" * 5000

TOML_SEEDS = """[trade]
singular = "a trade"
plural = "trades"
prefix = "Well,"
aliases = ["job"]
groups = ["Bakers", "Smiths | Blacksmiths"]
[trade.modifiers]
Bakers = "baking"
[trade.inside]
Bakers = "bakers"
"""
TOML_TESTS = """source = "here"
[[test]]
name = "t"
title = "T"
frames = ["{t} is a {a}."]
[test.x]
concept = "x"
slot = "name"
words = ["a", "b"]
adjectives = ["c"]
[test.y]
words = ["c", "d"]
[test.a]
words = ["e", "f"]
[test.b]
words = ["g", "h"]
[[test.simplified]]
x = ["he"]
y = ["she"]
frames = ["{t} is a {a}."]
"""
TRIPLES = (
    "group,predicate,object,category,count,arm\nWomen,like,music,g,2,none\nMen,fear,rain,g,1,b\n"
)
JSONL = (
    '{"group": "Women", "predicate": "like", "object": "music", "count": 2}\n'
    '{"group": "Men", "predicate": "fear", "object": "rain", "category": "g"}\n'
)
PROFILES = (
    "name,Ethnicity,hobbies,job\nAnna,X,\"['reading', 'tea']\",baker\n"
    "\"('BO', 'F')\",Y,\"('a', 1)\",smith\n"
)
SCORES = (
    "sentence,label,regard,toxicity\nWomen like music.,positive,0.5,0.1\nMen run.,negative,-1,0.9\n"
)
APX = "Group,descriptor,axis,apx_1,apx_2\na,x,k,1.5,2\na,y,k,1,2.5\nb,x,k,1,1\nb,y,k,2,2\n"
CROWS = (
    "sent_more,sent_less,stereo_antistereo,bias_type\nA b.,A c.,stereo,race\nD e.,D f.,stereo,age\n"
)
STEREOSET = json.dumps(
    {
        "version": "1",
        "data": {
            "intrasentence": [
                {
                    "id": "1",
                    "target": "t",
                    "bias_type": "race",
                    "context": "A BLANK b.",
                    "sentences": [
                        {"sentence": f"A {w} b.", "gold_label": label}
                        for w, label in (
                            ("x", "stereotype"),
                            ("y", "anti-stereotype"),
                            ("z", "unrelated"),
                        )
                    ],
                }
            ]
        },
    }
)
VECTORS = "".join(f"{w} {n}.5 -1 2e-1\n" for n, w in enumerate(("man", "woman", "kind", "bad")))
_BINARY = b"4 3\n" + b"".join(
    w + b" " + bytes(range(12)) + b"\n" for w in (b"man", b"woman", b"kind", b"bad")
)
_FASTTEXT = (793712314).to_bytes(4, "little") + (12).to_bytes(4, "little") + bytes(range(200))


@dataclass(frozen=True)
class Reader:
    """What reads a file: a function (module:name, called with the path), and its valid files by
    extension."""

    name: str
    read: str
    files: dict[str, bytes]
    call: Callable[[Callable[..., Any], Path], Any] = lambda read, path: read(path)


def _all(found: Any) -> Any:
    return list(found)


def _ingest(kind: str) -> Callable[[Callable[..., Any], Path], Any]:
    def call(read: Callable[..., Any], path: Path) -> Any:
        from kgbias.ingest import Columns, ProfileColumns

        if kind == "profiles":
            return _all(read(path, "csv", ProfileColumns()))
        suffix = path.suffix.lstrip(".")
        return _all(read(path, suffix if suffix in ("csv", "tsv") else "jsonl", Columns()))

    return call


def _scores(measure: str) -> Callable[[Callable[..., Any], Path], Any]:
    return lambda load, path: load(measure, f"scores:{path}")


def _contexts(make: Callable[..., Any], path: Path) -> Any:
    return _all(make(path))


READERS = (
    Reader(
        "seeds",
        "kgbias.crawl.seeds:read_seeds",
        {"toml": TOML_SEEDS.encode(), "txt": b"Bakers\nSmiths | Blacksmiths # c\n"},
        lambda read, path: read(str(path)),
    ),
    Reader("tests", "kgbias.associate.sets:read_tests", {"toml": TOML_TESTS.encode()}),
    Reader(
        "triples",
        "kgbias.ingest:read_triples",
        {
            "csv": TRIPLES.encode(),
            "tsv": TRIPLES.replace(",", "\t").encode(),
            "jsonl": JSONL.encode(),
        },
        _ingest("triples"),
    ),
    Reader(
        "profiles", "kgbias.ingest:read_profiles", {"csv": PROFILES.encode()}, _ingest("profiles")
    ),
    Reader(
        "scores of toxicity",
        "kgbias.measure.scorers:load_scorer",
        {"csv": SCORES.encode(), "jsonl": b'{"text": "Women like music.", "toxicity": 0.25}\n'},
        _scores("toxicity"),
    ),
    Reader(
        "scores of regard",
        "kgbias.measure.scorers:load_scorer",
        {"csv": SCORES.encode()},
        _scores("regard"),
    ),
    Reader("APX", "kgbias.probe.apx:read_apx", {"csv": APX.encode()}),
    Reader("CrowS-Pairs", "kgbias.probe.benchmarks:read_crows_pairs", {"csv": CROWS.encode()}),
    Reader("StereoSet", "kgbias.probe.benchmarks:read_stereoset", {"json": STEREOSET.encode()}),
    Reader(
        "identities",
        "kgbias.probe.sets:read_identities",
        {
            "json": b'{"gender": ["women", "men"], "trade": ["bakers", "smiths"]}',
            "csv": b"category,group\ngender,women\ngender,men\n",
            "txt": b"women\nmen\n",
        },
        lambda read, path: read(str(path)),
    ),
    Reader(
        "statements",
        "kgbias.probe.sets:read_statements",
        {
            "csv": b"category,statement\ngender,are kind\ngender,are bad\n",
            "txt": b"are kind\nare bad\n",
        },
    ),
    Reader(
        "names",
        "kgbias.probe.sets:read_names",
        {"csv": b"name,group\nAnna,x\nBo,y\n"},
        lambda read, path: read(str(path)),
    ),
    Reader(
        "descriptors",
        "kgbias.probe.sets:read_descriptors",
        {"csv": b"descriptor,axis,label,partial_1\nkind,a,x,am kind\nbad,a,y,am bad\n"},
        lambda read, path: read(str(path)),
    ),
    Reader(
        "vectors",
        "kgbias.models.vectors:load_vectors",
        {
            "txt": VECTORS.encode(),
            "w2v.txt": b"4 3\n" + VECTORS.encode(),
            "bin": _BINARY,
            "txt.gz": gzip.compress(VECTORS.encode()),
            "ft.bin": _FASTTEXT,
            "txt.bz2": bz2.compress(VECTORS.encode()),
            "txt.xz": lzma.compress(VECTORS.encode()),
        },
    ),
    Reader(
        "contexts",
        "kgbias.associate.contexts:corpus_lines",
        {"txt": b"a man is kind\nwomen sing\n", "jsonl": b'{"text": "a man is kind"}\n'},
        _contexts,
    ),
    Reader(
        "review",
        "kgbias.study.review:_sheet",
        {"csv": b"id,decision,predicate,object\ng1,restore,love,tea\ng2,reject,,\n"},
    ),
)

ODD_JSON: tuple[Any, ...] = (
    None,
    True,
    False,
    0,
    -1,
    1e308,
    2**53,
    2**70,
    0.5,
    "",
    " ",
    "\ud800",
    "\x00",
    [],
    {},
    [[]],
    [None],
    {"a": None},
    {"": ""},
    "nan",
    "null",
    ["a"],
    [1, 2],
    [[["x"]]],
    "A" * 3000,
    "\u202e",
)
ODD_TOML = (
    "1",
    "-1",
    "true",
    "1979-05-27T07:32:00Z",
    "nan",
    "inf",
    '""',
    '" "',
    '"\\uFFFE"',
    "[]",
    "{}",
    "[1]",
    '["a", 1]',
    '[["a"]]',
    "{a = 1}",
    '{a = ["b"]}',
    '"Bakers"',
    "[[[[]]]]",
    '[""]',
    '["a", "a"]',
    "[ " * 5000,
    DIGITS,
    "0x" + DIGITS,
    "[[], {}]",
    '"|"',
    '["|"]',
    '["a |"]',
)
ODD_CELLS = (
    "",
    " ",
    "\t",
    "nan",
    "inf",
    "-inf",
    "-1",
    "0",
    "1e400",
    "1" * 400,
    DIGITS,
    "9007199254740992",
    "0x10",
    "1_0",
    "１",
    "½",
    "1e9",
    "\x00",
    "\ufeff",
    "[",
    "[[[[",
    "(" * 9000 + ")",
    "('a',",
    "['a', {}]",
    "['a' * 9]",
    "(" + "-" * 5000 + "1)",
    "{1: 2}",
    "[1, [2]]",
    "(lambda: 1)",
    '"',
    "'",
    "\u2028",
    "\u0085",
    "a\x1cb",
    "positive",
    "None",
    *CORPUS[:40],
)
TOKENS: tuple[bytes, ...] = (
    b"\x00",
    b"\xff",
    b"\xfe\xff",
    b"\xef\xbb\xbf",
    b"\xed\xa0\x80",
    b"\xc0\xaf",
    b'"',
    b"'",
    b",",
    b"\n",
    b"\r",
    b"\r\n",
    b"[",
    b"]",
    b"{",
    b"}",
    b"=",
    b"\\",
    b"\\ud800",
    b"\\u0000",
    b"nan",
    b"NaN",
    b"-Infinity",
    b"1e999",
    DIGITS.encode(),
    b"[" * 3000,
    b'{"a":' * 3000,
    b" " * 3000,
    b"\x1f\x8b",
    b"\x28\xb5\x2f\xfd",
    b"BZh9",
    b"\xfd7zXZ\x00",
    b"a" * 9000,
    b"\xe2\x80\xa8",
    b"#",
    b"|",
    b"{t}",
    b"{a}",
    b"BLANK",
    b"null",
    b"::",
    b"-1",
    b"0",
    b"1 1\n",
    b"99999999999 300\n",
)


class Hang(BaseException):
    """A reader that does not come back. (Not an Exception: no reader may catch it.)"""


@dataclass
class Found:
    """What came of the cases: how many were read, how many refused, and the faults by place."""

    read: int = 0
    refused: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    examples: dict[str, bytes] = field(default_factory=dict)

    @property
    def tried(self) -> int:
        return self.read + self.refused + self.faults.total()


def fuzz(count: int, seed: int, folder: Path, only: str = "") -> Found:
    """`count` mutated files, dealt to the readers in turn."""
    rng = random.Random(seed)
    found = Found()
    readers = [r for r in READERS if only in r.name]
    for number in range(count):
        reader = readers[number % len(readers)]
        suffix, base = rng.choice(list(reader.files.items()))
        data = base if number < 2 * len(readers) else mutated(rng, suffix, base)
        path = folder / f"input.{suffix}"
        path.write_bytes(data)
        try_one(reader, path, data, found)
    return found


def try_one(reader: Reader, path: Path, data: bytes, found: Found) -> None:
    try:
        with at_most(SECONDS):
            reader.call(_function(reader.read), path)
        found.read += 1
        return
    except KgbiasError as error:
        try:
            text = str(error)
            text.encode()
            fault = f"an error of {len(text)} characters" if len(text) > 2500 else ""
        except UnicodeEncodeError:
            fault = "an error with half a pair of surrogates"
        if not fault:
            found.refused += 1
            return
        where = f"{reader.name}: {fault}"
    except (Exception, Hang) as error:
        frames = [f for f in traceback.extract_tb(error.__traceback__) if "/kgbias/" in f.filename]
        place = f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else "?"
        where = f"{reader.name}: {type(error).__name__} at {place}: {str(error)[:100]!r}"
        where = re.sub(r"\d{4,}", "N", where)
    found.faults[where] += 1
    found.examples.setdefault(where, data[:20_000])


@cache
def _function(name: str) -> Callable[..., Any]:
    module, _, function = name.partition(":")
    found: Callable[..., Any] = getattr(import_module(module), function)
    return found


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    def late(_: int, __: FrameType | None) -> None:
        raise Hang(f"no end after {seconds:g} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def mutated(rng: random.Random, suffix: str, data: bytes) -> bytes:
    """The file with one to three changes."""
    kind = suffix.rsplit(".", 1)[-1]
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        by_format = rng.random() < 0.6
        try:
            if by_format and kind in ("json", "jsonl"):
                data = _json(rng, data)
            elif by_format and kind == "toml":
                data = _toml(rng, data)
            elif by_format and kind in ("csv", "tsv"):
                data = _table(rng, data, "\t" if kind == "tsv" else ",")
            else:
                data = _bytes(rng, data)
        except (ValueError, RecursionError, csv.Error):
            data = _bytes(rng, data)  # it is of its format no more
    return data


def _bytes(rng: random.Random, data: bytes) -> bytes:
    a, b = sorted(rng.randrange(len(data) + 1) for _ in range(2))
    match rng.randrange(9):
        case 0:
            return data[:a]
        case 1:
            return data[:a] + data[b:]
        case 2:
            return data[:b] + data[a:b] * rng.choice((1, 2, 50)) + data[b:]
        case 3 if data:
            at = rng.randrange(len(data))
            return data[:at] + bytes([rng.randrange(256)]) + data[at + 1 :]
        case 4:
            return data.decode("utf-8", "replace").encode(
                rng.choice(("utf-16", "utf-32-le", "utf-8-sig"))
            )
        case 5:
            return rng.choice((b"", b"\n", b"\x00" * 64, b"\xef\xbb\xbf", gzip.compress(data)))
        case 6:
            return data.replace(b"\n", rng.choice((b"\r", b"\r\n", b"\x0b", b"\xe2\x80\xa8")))
        case _:
            return data[:a] + rng.choice(TOKENS) + data[a:]


def _json(rng: random.Random, data: bytes) -> bytes:
    lines = data.decode("utf-8", "surrogatepass").splitlines()
    if not lines:
        return b""
    at = rng.randrange(len(lines))
    value = json.loads(lines[at])
    nodes: list[tuple[Any, Any]] = []
    stack = [value] if isinstance(value, dict | list) else []
    while stack:
        node = stack.pop()
        places = list(node) if isinstance(node, dict) else range(len(node))
        for place in places:
            nodes.append((node, place))
            if isinstance(node[place], dict | list):
                stack.append(node[place])
    if not nodes or rng.random() < 0.05:
        value = rng.choice(ODD_JSON)
    else:
        node, place = rng.choice(nodes)
        if isinstance(node, dict) and rng.random() < 0.2:
            del node[place]
        else:
            node[place] = rng.choice(ODD_JSON)
    lines[at] = json.dumps(value, ensure_ascii=rng.random() < 0.5)
    if rng.random() < 0.05:
        lines[at] = "[" * 100_000 if rng.random() < 0.5 else lines[at].replace("1", DIGITS)
    return "\n".join(lines).encode("utf-8", "surrogatepass")


def _toml(rng: random.Random, data: bytes) -> bytes:
    lines = data.decode("utf-8", "replace").split("\n")
    settings = [n for n, line in enumerate(lines) if "=" in line or line.startswith("[")]
    if not settings:
        raise ValueError
    at = rng.choice(settings)
    name, equals, _ = lines[at].partition("=")
    match rng.randrange(8):
        case 0:
            del lines[at]
        case 1:
            lines.insert(at, lines[at])
        case 2:
            lines[at] = rng.choice(("[[trade]]", "[test]", "[a.b.c]", "a = 1", '"" = ""', "[''] "))
        case _ if equals:
            lines[at] = f"{name}= {rng.choice(ODD_TOML)}"
        case _:
            lines[at] = f"x = {rng.choice(ODD_TOML)}"
    return "\n".join(lines).encode()


def _table(rng: random.Random, data: bytes, delimiter: str) -> bytes:
    rows = list(csv.reader(io.StringIO(data.decode("utf-8", "replace")), delimiter=delimiter))
    if not rows:
        raise ValueError
    at = rng.randrange(len(rows))
    row = rows[at]
    match rng.randrange(9):
        case 0 if row:
            del row[rng.randrange(len(row))]
        case 1:
            row.insert(rng.randrange(len(row) + 1), rng.choice(ODD_CELLS))
        case 2:
            del rows[at]
        case 3:
            rows.insert(at, row)
        case 4:
            rows = rows[:1]
        case 5:
            rows = rows[1:]
        case 6:
            rows[0] = rows[0] + [rng.choice((*rows[0], "apx_" + DIGITS, "apx_0", "count", ""))]
        case _ if row:
            row[rng.randrange(len(row))] = rng.choice(ODD_CELLS)
        case _:
            rows = []
    out = io.StringIO()
    writer = csv.writer(out, delimiter=delimiter, lineterminator="\n", escapechar="\\")
    writer.writerows(rows)
    return out.getvalue().encode("utf-8", "surrogatepass")
