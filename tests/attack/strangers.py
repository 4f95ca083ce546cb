"""What a stranger hands over: stores that act or lie, studies, packs, vectors, queries, a strange
environment; decisions of people in any order; and crowds of visitors."""

import csv
import os
import random
import shutil
import sqlite3
import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import Any

from tests.attack.commands import Commands
from tests.attack.disturbing import READERS, AttackTally, read_folder
from tests.attack.impostors import (
    addresses,
    models,
    names,
    numbers,
    refusal_fault,
    second_answers,
)
from tests.attack.readers import TOML_TESTS
from tests.attack.visitors import visitors
from tests.attack.worlds import MEASURE, TRIPLES, AttackWorld

ENDLESS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x FROM n"
ACTING = (
    "CREATE TRIGGER t AFTER INSERT ON generation BEGIN DELETE FROM triple; END",
    "CREATE TRIGGER t AFTER UPDATE ON state BEGIN DELETE FROM score; END",
    f"CREATE VIEW v AS {ENDLESS}",
    f"DROP TABLE state; CREATE VIEW state AS {ENDLESS}",
    f"DROP TABLE place; CREATE VIEW place AS {ENDLESS}",
    "CREATE VIRTUAL TABLE words USING fts5(text)",
    "ALTER TABLE run ADD COLUMN x GENERATED ALWAYS AS (length(zeroblob(900000000)))",
    "CREATE INDEX i ON run (length(zeroblob(90000000) || id))",
    "CREATE UNIQUE INDEX i ON run (kind)",
    "CREATE INDEX i ON generation (id) WHERE count > 5",
    "CREATE TABLE own (a DEFAULT (randomblob(900000000)), b CHECK/**/(length(b) < 9))",
    "CREATE TABLE own (a TEXT UNIQUE ON/**/CONFLICT IGNORE)",
)
VALUES: tuple[object, ...] = (
    "text",
    "",
    "\x1b[2J\x00",
    b"\xff\xfe",
    9e999,
    -9e999,
    -1,
    0,
    2**63 - 1,
    -(2**63),
    10**18,
    1e308,
    "[" * 100_000,
    '{"a": NaN}',
    "null",
    "[1]",
    "\ud7ff" * 1000,
)
LOOP = "{% for a in range(99999) %}{% for b in range(99999) %}x{% endfor %}{% endfor %}"
PACKS = (
    LOOP,
    "{{ lipsum(n=100000) }}",
    "{{ group | wordwrap(1) }}",
    "{{ 'a' * 3000000000 }}",
    "{{ '%2000000000d' | format(1) }}",
    "{{ 9 ** 9 ** 9 }}",
    "{{ 'a'.ljust(3000000000) }}",
    "{% set a = 'ab' %}" + "{% set a = a ~ a %}" * 33 + "{{ a }}",
    "{{ group | center(3000000000) }}",
    "{{ ''.__class__.__mro__ }}",
    "{% include 'x' %}",
    "{{ header" + " | join('abcd')" * 14 + " }}",
    "{{ header" + " | list | lower" * 14 + " }}",
    "{% for a in header %}" * 9 + "x" + "{% endfor %}" * 9,
    "{{ " + "header | join(" * 14 + "header" + ")" * 14 + " }}",
    "{{ " + "(" * 5000 + "1" + ")" * 5000 + " }}",
)
VECTORS = {
    "a.bin": b"1000000 2000\nmen " + bytes(60),
    "b.txt": b"1000000 2000\nmen 1 2 3",
    "c.txt": b"1 2000000000\nmen 1 2 3",
    "d.bin": (793712314).to_bytes(4, "little") + bytes(84) + b"\xff" * 40,
}
STUDIES = (
    "[[query]]\nname = 'shared'\npath = '{outside}/precious.csv'",
    "[[query]]\nname = 'shared'\npath = '../../precious.csv'",
    "[[export]]\npath = '../../../precious.csv'",
    "[[imports]]\npath = '../precious.csv'\nname = 'x'",
    "[[benchmark]]\nmodels = 'reference'\ntables = '../../tables'",
    "[measure]\nexecutor = 'ray://127.0.0.1:10001'",
)
FILE = "'file:///etc/passwd' AS r RETURN r"
QUERIES = (
    f"MATCH (n) WITH n LIMIT 1 // x\rLOAD CSV FROM {FILE}",
    f"MATCH (n) WITH n // x\u2028LOAD CSV FROM {FILE}",
    f"\\u004cOAD CSV FROM {FILE}",
    f"WITH 'a\\u0027 AS x LOAD CSV FROM {FILE} //' AS y",
    f"WITH 1 AS `a``b` LOAD CSV FROM {FILE}",
    f"MATCH (n) RETURN n /* LOAD CSV FROM {FILE}",
    "CALL db.clearQueryCaches()",
    "SHOW USERS",
    "TERMINATE TRANSACTIONS 'x'",
    "CALL dbms.queryJmx('*:*')",
    "RETURN apoc.util.md5(['x'])",
    "CREATE (n)",
)
SURROUNDINGS: tuple[dict[str, Any], ...] = (
    {"closed": [1]},
    {"closed": [0]},
    {"closed": [2]},
    {"closed": [0, 1, 2]},
    {"clock": True},
    {"env": {"ALL_PROXY": "socks5://127.0.0.1:1"}},
    {"env": {"HTTP_PROXY": "http://[::1"}},
    {"env": {"SSL_CERT_FILE": "/nowhere.pem"}},
    {"env": {"LANG": "C", "LC_ALL": "POSIX"}},
    {"env": {"KGBIAS_CONFIG": "/nowhere.toml"}},
    {"env": {"HOME": "/nowhere"}},
)
ASKING = (
    "crawl",
    "--model",
    "openai:m",
    "--base-url",
    "http://127.0.0.1:9/v1",
    "--category",
    "gender",
    "--samples",
    "1",
    "--iterations",
    "0",
)
LIGHT_READERS = [argv for argv in READERS if argv[0] != "query"]

_HOLDER = b'{"host": "%s", "process": %s, "machine": "m", "started": "1", "token": "t"}'
HOLDERS = tuple(
    (text, dead)
    for text in (
        _HOLDER % (b"far", b"7"),
        _HOLDER % (b"\\u001b[2J", b"-1"),
        _HOLDER % (b"x" * 9999, b"1e9"),
        b"",
        b"\xff\x00",
        b"[" * 100_000,
        b'{"host": 3}',
        b'{"process": null, "other": {}}',
    )
    for dead in (False, True)
)

Faults = Iterator[tuple[str, str]]  # where, and what; "" where nothing is wrong
StrangerAttack = Callable[[Commands, Path, random.Random, int], Faults]


def acting_stores(commands: Commands, folder: Path, rng: random.Random, n: int) -> Faults:
    """A store that acts by itself is not opened, and not changed."""
    statement = ACTING[n % len(ACTING)]
    with closing(sqlite3.connect(folder / "kgbias.db")) as db:
        db.executescript(statement)
    before = (folder / "kgbias.db").read_bytes()
    argv = rng.choice([*LIGHT_READERS, ("delete", "r", "--yes")])
    done = commands.run(*argv, cwd=folder)
    yield f"{argv[0]} of a store that acts", done.fault or refusal_fault(done.code, done.err)
    if (folder / "kgbias.db").read_bytes() != before:
        yield argv[0], "a store that acts was changed"


def lying_stores(commands: Commands, folder: Path, rng: random.Random, _: int) -> Faults:
    """Values that no store holds end in a line, and are found."""
    with closing(sqlite3.connect(folder / "kgbias.db")) as db:
        tables = [
            t
            for (t,) in db.execute(
                "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
            )
        ]
        filled = [t for t in tables if db.execute(f'SELECT 1 FROM "{t}"').fetchone()]
        table = rng.choice(filled)
        column = rng.choice([row[1] for row in db.execute(f'PRAGMA table_info("{table}")')])
        some = rng.choice(("", f' WHERE "{column}" = (SELECT max("{column}") FROM "{table}")'))
        try:
            db.execute(f'UPDATE "{table}" SET "{column}" = ?{some}', (rng.choice(VALUES),))
            db.commit()
        except sqlite3.Error:
            return  # two rows of one key
    for argv in rng.sample(LIGHT_READERS, 2):
        done = commands.run(*argv, cwd=folder)
        yield f"{argv[0]} of a store with {table}.{column} of another kind", done.fault


def endless_stores(commands: Commands, folder: Path, rng: random.Random, _: int) -> Faults:
    """A store with a table that has no end: what looks after a store sees that, and ends."""
    store = folder / "kgbias.db"
    with closing(sqlite3.connect(store)) as db:
        roots = db.execute("SELECT name, rootpage FROM sqlite_master WHERE rootpage > 1").fetchall()
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    table, root = rng.choice(roots)
    store.write_bytes(_without_end(store.read_bytes(), root, rng.randrange(4, 300)))
    for argv in (("verify",), ("compact",)):
        done = commands.run(*argv, cwd=folder)
        found = "" if done.code == 1 and done.out.strip() else refusal_fault(done.code, done.err)
        yield f"{argv[0]} of a store without end in {table}", done.fault or found


_PAGE, _LEVELS = 4096, 12  # SQLite gives up below twenty


def _without_end(data: bytes, root: int, width: int) -> bytes:
    """A database whose tree at a root page has levels of one page each, and every branch of a page
    leads to the next: `width` to the power of the levels ways to its leaf."""
    pages = [data[at : at + _PAGE] for at in range(0, len(data), _PAGE)]
    top = pages[root - 1]
    kind = 5 if top[0] in (5, 13) else 2  # of an inner page: of a table, of an index
    key = b"\x01" if kind == 5 else b"\x03\x02\x01\x01"  # 1, as a row's number or as a record
    numbers = [root, *range(len(pages) + 1, len(pages) + _LEVELS + 1)]
    pages += [top] * _LEVELS
    for here, below in pairwise(numbers):
        branch = below.to_bytes(4, "big") + key
        places = [_PAGE - len(branch) * n for n in range(1, width + 1)]
        head = struct.pack(f">BHHHBI{width}H", kind, 0, width, places[-1], 0, below, *places)
        pages[here - 1] = head.ljust(places[-1], b"\0") + branch * width
    whole = bytearray(b"".join(pages))
    whole[28:32], whole[92:96] = len(pages).to_bytes(4, "big"), whole[24:28]
    return bytes(whole)


def dumped_stores(commands: Commands, folder: Path, rng: random.Random, _: int) -> Faults:
    """A store that was repaired by `.dump` is one."""
    with (
        closing(sqlite3.connect(folder / "kgbias.db")) as old,
        closing(sqlite3.connect(folder / "new.db")) as new,
    ):
        new.executescript("\n".join(old.iterdump()))
    for argv in (
        rng.choice([("runs",), ("verify",)]),
        ("structure", "r"),
        ("import", TRIPLES, "--run", "n", "--model", "m"),
    ):
        done = commands.run(*argv, "--store", "new.db", cwd=folder)
        yield f"{argv[0]} of a store that was dumped", done.fault or done.err * (done.code != 0)


def packs(commands: Commands, folder: Path, _: random.Random, n: int) -> Faults:
    """A pack takes no more than its size."""
    shutil.copytree(Path(__file__).parents[2] / "prompts" / "sentences", folder / "pack")
    file = folder / "pack" / "object.toml"
    file.write_text(file.read_text().replace("{{ header }}", PACKS[n % len(PACKS)], 1))
    done = commands.run(
        "crawl",
        "--model",
        "reference",
        "--category",
        "peoples",
        "--prompts",
        "pack",
        "--dry-run",
        cwd=folder,
        limits={"RLIMIT_CPU": 20},
    )
    yield "a pack", done.fault or refusal_fault(done.code, done.err)


def vectors(commands: Commands, folder: Path, _: random.Random, n: int) -> Faults:
    """A file of vectors takes no more than it can hold."""
    name = list(VECTORS)[n % len(VECTORS)]
    (folder / name).write_bytes(VECTORS[name])
    (folder / "t.toml").write_text(TOML_TESTS)
    done = commands.run("associate", "--vectors", name, "--tests-file", "t.toml", cwd=folder)
    yield "vectors", done.fault or refusal_fault(done.code, done.err)


def studies(commands: Commands, folder: Path, _: random.Random, n: int) -> Faults:
    """A study stays in its folder."""
    place = folder / "theirs"
    place.mkdir()
    (folder / "precious.csv").write_text("mine")
    shutil.copy(folder / TRIPLES, place)
    text = STUDIES[n % len(STUDIES)].format(outside=folder)
    (place / "study.toml").write_text(f"[[imports]]\npath = '{TRIPLES}'\nmodel = 'm'\n{text}\n")
    done = commands.run("run", "theirs/study.toml", cwd=folder)
    yield "a study", done.fault or refusal_fault(done.code, done.err)
    if (folder / "precious.csv").read_text() != "mine" or (folder / "tables").exists():
        yield "a study", "wrote outside of its folder"


def publications(commands: Commands, folder: Path, rng: random.Random, _: int) -> Faults:
    """A published run whose files are pipes, devices, links, halves or other files."""
    done = commands.run("publish", "r", "-o", "pub", cwd=folder)
    yield "publish", done.fault or done.err * (done.code != 0)
    files = [file for file in sorted((folder / "pub").rglob("*")) if file.is_file()]
    file = rng.choice(files)
    data = file.read_bytes()
    file.unlink()
    match rng.randrange(6):
        case 0:
            os.mkfifo(file)
        case 1:
            file.symlink_to(rng.choice(("/dev/zero", "/dev/stdin", "/nowhere", "/", file)))
        case 2:
            file.write_bytes(data[: rng.randrange(len(data) + 1)])
        case 3:
            file.write_bytes(b"[" * 200_000)
        case 4:
            file.write_bytes(data.replace(b"0", b"-").replace(b'"', b"\x00", rng.randrange(3)))
        case _:
            file.write_bytes(data)
            (folder / "pub" / "SHA256SUMS").write_text(f"{'0' * 64}  ../kgbias.db\n")
    for argv in (("reproduce", "pub", "--check"), ("reproduce", "pub")):
        done = commands.run(*argv, cwd=folder)
        told = (
            "" if done.code == 1 else refusal_fault(done.code, done.err)
        )  # 1: it says what differs
        if done.code == 0 and (file.name == "SHA256SUMS" or file.read_bytes() == data):
            told = ""
        yield f"{' '.join(argv)} of another {file.name}", done.fault or told


def memory(commands: Commands, folder: Path, rng: random.Random, n: int) -> Faults:
    """Under `ulimit -v`, a command ends well or in a line, and leaves the store as it should."""
    argv = rng.choice([("publish", "r", "-o", "pub"), *LIGHT_READERS])
    most = rng.randrange(180, 900)
    done = commands.run(*argv, cwd=folder, limits={"RLIMIT_AS": most << 20})
    yield f"{argv[0]} in {most} MB", done.fault
    if not done.fault and done.code:
        yield f"{argv[0]} in {most} MB", refusal_fault(done.code, done.err)


def handles(commands: Commands, folder: Path, rng: random.Random, n: int) -> Faults:
    """Under `ulimit -n`, a command ends well or in a line."""
    argv = rng.choice([("publish", "r", "-o", "pub"), *LIGHT_READERS])
    most = rng.randrange(5, 40)
    done = commands.run(*argv, cwd=folder, limits={"RLIMIT_NOFILE": most})
    where = f"{argv[0]} with {most} files"
    yield where, done.fault or (refusal_fault(done.code, done.err) if done.code else "")


def holders(commands: Commands, folder: Path, rng: random.Random, n: int) -> Faults:
    """What stands where a run's holder is written, whatever it is, ends in a line."""
    with closing(sqlite3.connect(folder / "kgbias.db")) as db:
        ((run,),) = db.execute("SELECT id FROM run")
        db.execute("UPDATE run SET status = 'running'")
        db.commit()
    text, dead = HOLDERS[n % len(HOLDERS)]
    lease = folder / f"kgbias.db-run-{run[:16]}"
    lease.write_bytes(text)
    if dead:
        os.utime(lease, (0, 0))  # long ago
    done = commands.run("runs", cwd=folder)
    state = "  abandoned  " if dead else "  running  "
    yield "runs with a holder", done.fault or ("" if state in done.out else done.out)
    done = commands.run("delete", "r", "--yes", cwd=folder)
    yield (
        "delete with a holder",
        done.fault or ("" if dead else refusal_fault(done.code, done.err)),
    )


def queries(commands: Commands, folder: Path, _: random.Random, n: int) -> Faults:
    """A query reads the graph alone."""
    done = commands.run("query", "--cypher", QUERIES[n % len(QUERIES)], cwd=folder)
    yield "a query", done.fault or refusal_fault(done.code, done.err)
    if "root:" in done.out + done.err:
        yield "a query", "read a file"


def surroundings(commands: Commands, folder: Path, rng: random.Random, n: int) -> Faults:
    """Closed streams, odd proxies and certificates, a clock that jumps."""
    how = SURROUNDINGS[n % len(SURROUNDINGS)]
    argv = (
        ASKING
        if "PROXY" in str(how) or "SSL" in str(how)
        else rng.choice([*LIGHT_READERS, ("delete", "r", "--yes")])
    )
    done = commands.run(*argv, cwd=folder, **how)
    silent = 2 in how.get("closed", ()) and done.fault == "failed without a word"
    yield f"{argv[0]} with {how}", "" if silent else done.fault


def reviews(commands: Commands, folder: Path, rng: random.Random, _: int) -> Faults:
    """Decisions in any order, and all of them taken back, leave what was there."""
    before = _crawl_rows(folder)
    for _ in range(rng.randrange(1, 6)):
        which = rng.choice((("--accepted",), ("--accepted", "--decided"), ("--decided",)))
        done = commands.run("review", "r", *which, "--csv", "s.csv", cwd=folder)
        yield "review, a sheet", done.fault or done.err * (done.code != 0)
        if not (folder / "s.csv").exists():
            continue
        with (folder / "s.csv").open(newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        for row in rows:
            row["decision"] = rng.choice(("reject", "undo", "", "", "restore"))
        rng.shuffle(rows)
        if rows:
            with (folder / "s.csv").open("w", newline="", encoding="utf-8") as file:
                out = csv.DictWriter(file, list(rows[0]))
                out.writeheader()
                out.writerows(rows)
            argv = ("review", "r", "--from", "s.csv", "--by", rng.choice("abc"))
            yield "review, decisions", commands.run(*argv, cwd=folder).fault
        if rng.random() < 0.3:
            yield "measure", commands.run("measure", "r", *MEASURE, cwd=folder).fault
    yield "review, undo", commands.run("review", "r", "--undo", cwd=folder).fault
    done = commands.run("verify", cwd=folder)
    yield "verify after reviews", done.fault or done.out * (done.code != 0)
    if _crawl_rows(folder) != before:
        yield "reviews", "all decisions were taken back, and the statements are others"


def _crawl_rows(folder: Path) -> dict[str, Any]:
    return {
        name: rows
        for name, rows in read_folder(folder).items()
        if name.split("/")[-1] in ("generation", "triple", "run")
    }


STRANGER_KINDS: dict[
    str, tuple[StrangerAttack, int]
] = {  # and how many of it belong to a whole attack
    "acting stores": (acting_stores, 100),
    "lying stores": (lying_stores, 300),
    "endless stores": (endless_stores, 40),
    "dumped stores": (dumped_stores, 20),
    "packs": (packs, 32),
    "vectors": (vectors, 8),
    "studies": (studies, 12),
    "queries": (queries, 24),
    "publications": (publications, 60),
    "memory": (memory, 60),
    "handles": (handles, 60),
    "holders": (holders, 16),
    "surroundings": (surroundings, 110),
    "reviews": (reviews, 50),
    "visitors": (visitors, 12),
    "models": (models, 90),
    "numbers": (numbers, 100),
    "second answers": (second_answers, 60),
    "addresses": (addresses, 60),
    "names": (names, 60),
}


def attack_kind(
    commands: Commands, world: AttackWorld, folder: Path, seed: int, kind: str, count: int
) -> AttackTally:
    """So many attacks of a kind, each on a copy of the world."""
    rng, tally = random.Random(f"{seed} {kind}"), AttackTally()
    for number in range(count):
        place = world.copy(folder / f"strange{number}")
        faults: Sequence[tuple[str, str]] = list(
            STRANGER_KINDS[kind][0](commands, place, rng, number)
        )
        for where, fault in faults:
            tally.note(where, [fault] if fault else [])
        tally.rounds += 1
        shutil.rmtree(place)
    return tally
