"""Commands that write, disturbed: killed, out of disk, two at once, on damaged stores. What is
promised: the store is sound, an output is whole or not there, and the same command again ends with
what it would have written undisturbed."""

import os
import random
import re
import shutil
import sqlite3
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from kgbias.graph.sqlite import schema
from kgbias.io.files import sha256_of
from tests.attack.commands import CommandResult, Commands
from tests.attack.readers import EXPORTS, READING_COMMANDS, TOML_TESTS, VECTORS
from tests.attack.worlds import MANY, MEASURE, SCORED_MEASURES, TRIPLES, AttackWorld

FolderContents = dict[str, Any]
_CLOCKS = {"created", "seconds", "at", "when", "updated", "version"}  # columns that tell the time

# In a manifest, in a record, and a checksum of these (which `find_damage` looks at).
_CLOCK = re.compile(
    rb"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d[^\"<]{0,14}"
    rb"|\b1[0-9]{9}(?=\",)|\b[0-9a-f]{64}(?=  )"
)
_SECONDS = re.compile(r'"seconds":[0-9.e-]+,?')  # what a model took, in a column of JSON

Writers = dict[str, tuple[str, ...]]
OLD = "old.db"  # the same store, as the first version of kgbias would have left it

WRITERS: Writers = {
    "import": ("import", TRIPLES, "--run", "new", "--model", "other"),
    "measure": ("measure", "r", *MEASURE),
    "structure": ("structure", "r"),
    "associate": (
        "associate",
        "--vectors",
        "v.txt",
        "--tests-file",
        "t.toml",
        "--run",
        "r",
        "-o",
        "out.csv",
    ),
    "report": ("report", "r", "-o", "out.html"),
    "figures": ("figures", "r", "-o", "out"),
    "push": ("push", "r", "--from", "kgbias.db", "--to", "other.db"),
    "explore": ("explore", "r", "-o", "out.html"),
    "study": ("run", "study.toml"),
    "publish": ("publish", "r", "-o", "out"),
    "backup": ("backup", "out.db"),
    "compact": ("compact",),
    "delete": ("delete", "r", "--yes"),
    "migrate": ("runs", "--store", OLD),
    **{
        f"export {name}": ("export", "r", "--format", name, "-o", f"out{ending}")
        for name, ending in (
            ("jsonl", ".jsonl"),
            ("csv", ".csv"),
            ("csv-pair", ""),
            ("graphml", ".graphml"),
            ("turtle", ".ttl"),
            ("tikz", ".tex"),
            ("svg", ".svg"),
            ("cypher", ".cypher"),
            ("neo4j-admin", ""),
        )
    },
    **EXPORTS,
}
# Those that take seconds: of a table beside the copies of the world (`write_many`).
LONG_WRITERS: Writers = {
    "import many": ("import", f"../{MANY}", "--run", "new", "--model", "other")
}
RUN_ONCE = ("publish", "delete")  # that refuse to do again what is done
# What a study of one file does: all of it again at each call, but for what the store holds.
STUDY = f"""store = "study.db"
output = "out"
[[imports]]
path = "{TRIPLES}"
name = "s"
model = "other"
[measure]
axes = false
scorers = {{{", ".join(f'{name} = "scores:scores.csv"' for name in SCORED_MEASURES)}}}
[report]
[[export]]
format = "graphml"
"""
HEAVY_MODULES = (  # what these load, which would take most of their time
    "torch",
    "transformers.activations",
    "transformers.modeling_layers",
    "transformers.modeling_utils",
    "transformers.tokenization_utils_tokenizers",
)
MODEL_WRITERS: Writers = {  # those that load a model
    "measure offline": ("measure", "r"),
    "merge": ("merge", "r"),
    "attribute": ("attribute", "r"),
    "probe": ("probe", "r", "--model", "reference"),
    "probe choice": ("probe", "choice", "r", "--model", "reference", "--samples", "2"),
    "apx": (
        "probe",
        "apx",
        "--model",
        "reference",
        "--names",
        "names.csv",
        "--descriptors",
        "d.csv",
    ),
    "benchmark": ("benchmark", "--model", "reference", "--run", "r"),
    "associate a model": ("associate", "--tests-file", "t.toml", "--model", "reference"),
    "evidence": ("evidence", "r", "--model", "reference"),
    "profiles": ("profiles", "--model", "reference", "--names", "names.csv", "--run", "p"),
    "sofa build": ("sofa", "build", "--run", "r", "-o", "out.csv"),
}


def prepare(folder: Path, argv: Sequence[str] = ()) -> None:
    """The files that the writers read, beside those of a world."""
    if OLD in argv:
        _write_old(folder / "kgbias.db", folder / OLD)
    (folder / "v.txt").write_text(
        "".join(f"{word} {n % 7}.5 {n % 3} -{n % 5}\n" for n, word in enumerate("abcdefgh"))
    )
    (folder / "t.toml").write_text(TOML_TESTS)
    (folder / "study.toml").write_text(STUDY)
    (folder / "names.csv").write_text("name,group\nAnna,x\nBo,y\n")
    (folder / "d.csv").write_text("descriptor\nkind\nlazy\nloud\n")
    assert VECTORS


def _write_old(store: Path, old: Path) -> None:
    """Write a store as the first version, with the rows of another."""
    now = schema.latest_tables()
    with pytest.MonkeyPatch.context() as patched, closing(sqlite3.connect(old)) as db:
        db.isolation_level = None
        patched.setattr(schema, "MIGRATIONS", schema.MIGRATIONS[:1])
        schema.migrate(db)
        db.execute("ATTACH ? AS new", (str(store),))
        for table, columns in schema.read_columns(db).items():
            if not set(columns) <= set(now.get(table, ())):
                continue  # a later version has no such rows
            listed = ", ".join(columns)
            db.execute(f'DELETE FROM main."{table}"')
            db.execute(f'INSERT INTO main."{table}" ({listed}) SELECT {listed} FROM new."{table}"')


def read_folder(folder: Path) -> FolderContents:
    """All that is in a folder: the rows of each table of a store, the bytes of each output."""
    contents: FolderContents = {}
    for file in sorted(folder.rglob("*")):
        name = str(file.relative_to(folder))
        if _is_hidden(file.relative_to(folder)):
            continue
        if file.suffix == ".db":
            contents |= {f"{name}/{table}": rows for table, rows in _table_rows(file).items()}
        elif name.startswith("out") and file.is_file():
            contents[name] = _CLOCK.sub(b"now", file.read_bytes())
    return contents


def _is_hidden(file: Path) -> bool:
    """Whether a file lies under a hidden name: what a kill left, and nobody takes for an output."""
    return any(part.startswith(".") for part in file.parts)


def _table_rows(file: Path) -> dict[str, Counter[Any]]:
    with closing(sqlite3.connect(file)) as db:
        tables = [
            t
            for (t,) in db.execute(
                "SELECT name FROM sqlite_master WHERE type = 'table' "
                "AND name NOT LIKE 'sqlite_%' AND name <> 'state'"  # a new token at each write
            )
        ]
        rows = {}
        for table in tables:
            columns = [
                c for _, c, *_ in db.execute(f'PRAGMA table_info("{table}")') if c not in _CLOCKS
            ]
            listed = ", ".join(f'"{c}"' for c in columns)
            rows[table] = Counter(
                tuple(_SECONDS.sub("", cell) if isinstance(cell, str) else cell for cell in row)
                for row in db.execute(f'SELECT {listed} FROM "{table}"')
            )
        return rows


def find_damage(folder: Path) -> list[str]:
    """What SQLite finds wrong with the stores of a folder, and checksums with a published one."""
    faults = []
    for file in folder.glob("[!.]*.db"):
        with closing(sqlite3.connect(file)) as db:
            if file.stat().st_size:
                for pragma in ("integrity_check", "foreign_key_check"):
                    rows = db.execute(f"PRAGMA {pragma}").fetchall()
                    if rows not in ([("ok",)], []):
                        faults.append(f"{file.name}: {pragma} says {rows[:2]}")
    for sums in folder.glob("out/SHA256SUMS"):
        for line in sums.read_text().splitlines():
            digest, name = line.split("  ")
            if sha256_of(sums.parent / name) != digest:
                faults.append(f"{name} is not what its checksum says")
    return faults


def differences(
    expected: FolderContents, now: FolderContents, *, whole_only: bool = False
) -> list[str]:
    """How a folder differs from what it should be. With `whole_only` an output may be absent, and
    the store is not compared: what is there must be whole."""
    faults = []
    for name, value in now.items():
        if isinstance(value, bytes) and value != expected.get(name):
            faults.append(f"{name} is not the undisturbed one ({len(value)} bytes)")
        elif whole_only and name.startswith("out") and value != expected.get(name):
            faults.append(f"{name}, of a copy, is not the undisturbed one")
    if whole_only:
        return faults
    faults += [f"{name} is missing" for name in expected if name not in now]
    for name, rows in expected.items():
        if isinstance(rows, Counter) and name in now:
            lost, doubled = (rows - now[name]).total(), (now[name] - rows).total()
            if lost or doubled:
                faults.append(f"{name}: {lost} rows lost, {doubled} too many")
    return faults


@dataclass
class AttackTally:
    """What happened; anything in `faults` fails the attack."""

    rounds: int = 0
    kills: int = 0
    refused_count: int = 0
    faults: Counter[str] = field(default_factory=Counter)

    def note(self, where: str, faults: Sequence[str]) -> None:
        for fault in faults:
            self.faults[f"{where}: {fault}"] += 1

    def __iadd__(self, other: "AttackTally") -> "AttackTally":
        self.rounds += other.rounds
        self.kills += other.kills
        self.refused_count += other.refused_count
        self.faults += other.faults
        return self


class Disturber:
    """Disturbs a writer, again and again, each time in a copy of the world."""

    def __init__(
        self, commands: Commands, world: AttackWorld, folder: Path, seed: int | str
    ) -> None:
        self._commands, self._world, self._folder = commands, world, folder
        self._rng = random.Random(seed)
        self._number = 0

    def kill(self, name: str, argv: Sequence[str], rounds: int) -> AttackTally:
        tally = AttackTally()
        expected, calm, _ = self._run_undisturbed(argv)
        for _ in range(rounds):
            folder = self._copy(argv)
            for _ in range(self._rng.randint(1, 2)):
                moment = self._rng.uniform(0, 1.05 * calm.seconds)
                tally.kills += self._run(folder, argv, kill_after=moment).code == -9
            tally.note(
                name,
                [
                    *find_damage(folder),
                    *differences(expected, read_folder(folder), whole_only=True),
                ],
            )
            self._run_again(name, argv, folder, expected, tally)
        return tally

    def power(self, name: str, argv: Sequence[str], rounds: int) -> AttackTally:
        """As if the power went: what was written last to a store's log is lost, or is noise. What
        the log still holds is the store of some earlier moment, and it goes on from there. (A log
        that was being moved into its file is whole: it had reached the disk before.)"""
        tally = AttackTally()
        expected, calm, _ = self._run_undisturbed(argv)
        for _ in range(rounds):
            folder = self._copy(argv)
            moment = self._rng.uniform(0, 1.05 * calm.seconds)
            before = {file: file.read_bytes() for file in folder.glob("*.db")}
            tally.kills += self._run(folder, argv, kill_after=moment).code == -9
            for file, data in before.items():
                if file.exists() and file.read_bytes() == data:
                    self._tear_log(Path(f"{file}-wal"))
            tally.note(
                name,
                [
                    *find_damage(folder),
                    *differences(expected, read_folder(folder), whole_only=True),
                ],
            )
            self._run_again(name, argv, folder, expected, tally)
        return tally

    def _tear_log(self, log: Path) -> None:
        """Cut a log anywhere, or write noise from there on; the file of shared memory is gone."""
        Path(f"{log.as_posix().removesuffix('-wal')}-shm").unlink(missing_ok=True)
        data = log.read_bytes() if log.exists() else b""
        at = self._rng.randrange(len(data) + 1)
        torn = (b"", self._rng.randbytes(len(data) - at), bytes(len(data) - at))
        if data:
            log.write_bytes(data[:at] + self._rng.choice(torn))

    def full(self, name: str, argv: Sequence[str], rounds: int) -> AttackTally:
        """No file may grow beyond a limit, which is anywhere between a page and all of it."""
        tally = AttackTally()
        expected, _, largest = self._run_undisturbed(argv)
        for number in range(rounds):
            folder = self._copy(argv)
            most, share = 1.1 * largest, self._rng.random()
            limit = int(most * share if number % 2 else 4096 * (most / 4096) ** share)
            limit = max(4096, limit // 512 * 512)
            done = self._run(folder, argv, limits={"RLIMIT_FSIZE": limit})
            faults = [done.fault] if done.fault else []
            if done.code == 0:
                faults += differences(expected, read_folder(folder))
            else:
                tally.refused_count += 1
                if name != "study":  # it goes on without a step that failed, and says so
                    faults += differences(expected, read_folder(folder), whole_only=True)
                faults += [f"left {p.name}" for p in folder.rglob(".*") if p.is_file()]
            tally.note(name, [*faults, *find_damage(folder)])
            self._run_again(name, argv, folder, expected, tally)
        return tally

    def twice(self, name: str, argv: Sequence[str], rounds: int) -> AttackTally:
        """Two of the same at once; both end well, with what one alone would have written."""
        tally = AttackTally()
        expected, *_ = self._run_undisturbed(argv)
        for _ in range(rounds):
            folder = self._copy(argv)
            both = [self._commands.start(*argv, cwd=folder) for _ in range(2)]
            for done in [started.wait() for started in both]:
                refused = done.code == 2 and name in RUN_ONCE
                tally.note(name, [str(done)] if done.fault or (done.code and not refused) else [])
            tally.note(name, [*find_damage(folder), *differences(expected, read_folder(folder))])
            self._run_again(name, argv, folder, expected, tally)
        return tally

    def _run_again(
        self,
        name: str,
        argv: Sequence[str],
        folder: Path,
        expected: FolderContents,
        tally: AttackTally,
    ) -> None:
        is_whole = not differences(expected, read_folder(folder))
        result = self._run(folder, argv)
        is_refused = result.code == 2 and name in RUN_ONCE and is_whole
        faults = [str(result)] if result.code and not is_refused else []
        tally.note(
            f"{name}, again",
            [*faults, *find_damage(folder), *differences(expected, read_folder(folder))],
        )
        tally.rounds += 1
        shutil.rmtree(folder)

    def _run(self, folder: Path, argv: Sequence[str], **how: Any) -> CommandResult:
        return self._commands.run(*argv, cwd=folder, **how)

    def _run_undisturbed(self, argv: Sequence[str]) -> tuple[FolderContents, CommandResult, int]:
        """What is there then, how it ended, and the bytes of the largest file."""
        folder = self._copy(argv)
        result = self._run(folder, argv)
        if result.code or result.fault:
            raise RuntimeError(f"undisturbed, and yet: {result}")
        contents = read_folder(folder)
        largest = max(file.stat().st_size for file in folder.rglob("*") if file.is_file())
        shutil.rmtree(folder)
        return contents, result, largest

    def _copy(self, argv: Sequence[str]) -> Path:
        self._number += 1
        folder = self._world.copy(self._folder / f"copy{self._number}")
        prepare(folder, argv)
        return folder


READERS: tuple[tuple[str, ...], ...] = (
    ("runs",),
    ("report", "r", "-o", "out.html"),
    ("export", "r", "--format", "jsonl", "-o", "o.jsonl"),
    ("compare", "r"),
    ("figures", "r", "-o", "out"),
    ("structure", "r"),
    ("measure", "r", *MEASURE),
    ("import", TRIPLES, "--run", "more", "--model", "m2"),
    ("push", "r", "--from", "kgbias.db", "--to", "o.db"),
    ("explore", "r", "-o", "out.html"),
    ("publish", "r", "-o", "out"),
    ("evidence", "r"),
    *READING_COMMANDS,
    ("ask", "women and music", "--set", "encoder=none"),
    ("review", "r", "--csv", "review.csv"),
    ("verify",),
    ("compact",),
    ("query", "summary"),
    ("query", "--cypher", "MATCH (n) RETURN count(n)"),
)


def damage_stores(
    commands: Commands,
    world: AttackWorld,
    folder: Path,
    count: int,
    seed: int | str,
    max_commands: int = 3,
) -> AttackTally:
    """`count` stores with bytes or pages that are not what they were; `max_commands` commands
    each."""
    rng, tally = random.Random(seed), AttackTally()
    for number in range(count):
        place = world.copy(folder / f"damaged{number}")
        store = place / "kgbias.db"
        damage_name, data = damage(rng, store.read_bytes())
        store.write_bytes(data)
        light = [argv for argv in READERS if argv[0] != "query"]
        for argv in rng.sample(light, max_commands) + (
            [rng.choice(READERS[-2:])] if number % 25 == 0 else []
        ):
            result = commands.run(*argv, cwd=place)
            tally.note(
                f"{argv[0]} of a store with {damage_name}", [result.fault] if result.fault else []
            )
            tally.refused_count += result.code != 0
            error = result.err[
                max(0, result.err.find("kgbias: ")) :
            ].strip()  # progress is before it
            if "\n" in error and result.code == 2 and "usage" not in error.lower():
                tally.note(argv[0], [f"more than one line: {error[:200]!r}"])
        tally.rounds += 1
        shutil.rmtree(place)
    return tally


def damage(rng: random.Random, data: bytes) -> tuple[str, bytes]:
    """One kind of damage, by name."""
    size = 4096
    pages = len(data) // size
    at = rng.randrange(pages) * size
    bad = bytearray(data)
    match rng.randrange(8):
        case 0:
            bad[at : at + size] = bytes(size)
            return "a page of zeros", bytes(bad)
        case 1:
            bad[at : at + size] = rng.randbytes(size)
            return "a page of noise", bytes(bad)
        case 2:
            return "its end cut off", data[: rng.randrange(len(data))]
        case 3:
            place = rng.randrange(100)
            bad[place] = rng.randrange(256)
            return "another header", bytes(bad)
        case 4:
            for _ in range(rng.randrange(1, 200)):
                bad[rng.randrange(len(bad))] = rng.randrange(256)
            return "other bytes", bytes(bad)
        case 5:
            other = rng.randrange(pages) * size
            bad[at : at + size], bad[other : other + size] = (
                data[other : other + size],
                data[at : at + size],
            )
            return "two pages exchanged", bytes(bad)
        case 6:
            return "nothing of SQLite", rng.randbytes(rng.choice((0, 1, 100, 10_000)))
        case _:
            bad[100:] = bytes(b ^ 255 if rng.random() < 0.001 else b for b in data[100:])
            return "flipped bytes", bytes(bad)


def limits_of_root() -> bool:
    """Whether permissions do not bind us (as root)."""
    return os.geteuid() == 0
