"""Mutated files for every reader of kgbias, in this process: a case is a valid file with a few
changes, by bytes or by what its format means. Each reader must read it or raise a KgbiasError, in
little time."""

import csv
import gzip
import io
import json
import random
import re
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from kgbias.errors import KgbiasError
from tests.attack.readers import DIGITS, READERS, Reader
from tests.hostile import CORPUS
from tests.waiting import Hang, end_hangs

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


@dataclass
class FuzzResult:
    """What came of the cases: how many were read, how many refused, and the faults by place."""

    read_count: int = 0
    refused_count: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    examples: dict[str, bytes] = field(default_factory=dict)

    @property
    def total(self) -> int:
        return self.read_count + self.refused_count + self.faults.total()


def fuzz(count: int, seed: int | str, folder: Path, only: str = "") -> FuzzResult:
    """`count` mutated files, dealt to the readers in turn."""
    rng = random.Random(seed)
    result = FuzzResult()
    readers = [r for r in READERS if only in r.name]
    for number in range(count):
        reader = readers[number % len(readers)]
        suffix, base = rng.choice(list(reader.files.items()))
        data = base if number < 2 * len(readers) else mutate_file(rng, suffix, base)
        path = folder / f"input.{suffix}"
        path.write_bytes(data)
        try_reader(reader, path, data, result)
    return result


def try_reader(reader: Reader, path: Path, data: bytes, result: FuzzResult) -> None:
    try:
        with end_hangs():
            reader.read_file(_import_function(reader.function_path), path)
        result.read_count += 1
        return
    except KgbiasError as error:
        try:
            text = str(error)
            text.encode()
            fault = f"an error of {len(text)} characters" if len(text) > 2500 else ""
        except UnicodeEncodeError:
            fault = "an error with half a pair of surrogates"
        if not fault:
            result.refused_count += 1
            return
        where = f"{reader.name}: {fault}"
    except (Exception, Hang) as error:
        frames = [f for f in traceback.extract_tb(error.__traceback__) if "/kgbias/" in f.filename]
        place = f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else "?"
        where = f"{reader.name}: {type(error).__name__} at {place}: {str(error)[:100]!r}"
        where = re.sub(r"\d{4,}", "N", where)
    result.faults[where] += 1
    result.examples.setdefault(where, data[:20_000])


@cache
def _import_function(name: str) -> Callable[..., Any]:
    module, _, function = name.partition(":")
    imported: Callable[..., Any] = getattr(import_module(module), function)
    return imported


def mutate_file(rng: random.Random, suffix: str, data: bytes) -> bytes:
    """The file with one to three changes."""
    kind = suffix.rsplit(".", 1)[-1]
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        by_format = rng.random() < 0.6
        try:
            if by_format and kind in ("json", "jsonl"):
                data = _mutate_json(rng, data)
            elif by_format and kind == "toml":
                data = _mutate_toml(rng, data)
            elif by_format and kind in ("csv", "tsv"):
                data = _mutate_table(rng, data, "\t" if kind == "tsv" else ",")
            else:
                data = _mutate_bytes(rng, data)
        except (ValueError, RecursionError, csv.Error):
            data = _mutate_bytes(rng, data)  # it is of its format no more
    return data


def _mutate_bytes(rng: random.Random, data: bytes) -> bytes:
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


def _mutate_json(rng: random.Random, data: bytes) -> bytes:
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


def _mutate_toml(rng: random.Random, data: bytes) -> bytes:
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


def _mutate_table(rng: random.Random, data: bytes, delimiter: str) -> bytes:
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
