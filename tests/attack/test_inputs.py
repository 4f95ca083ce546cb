"""A stranger's file: from a pipe, odd, deep, large or wrong in silence."""

import csv
import gzip
import os
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path

import pytest

from kgbias.errors import KgbiasError
from tests.attack.commands import ROOT, Commands
from tests.attack.inputs import fuzz
from tests.attack.readers import DIGITS, TOML_SEEDS, TOML_TESTS, VECTORS
from tests.waiting import DEADLINE_SECONDS

pytestmark = pytest.mark.attack
FIRST = "group,predicate,object\nwomen,like,music\n"
SECOND = "group,predicate,object\nmen,like,rain\nmen,fear,snow\n"


def test_fuzzed_files_are_read_or_refused(tmp_path: Path) -> None:
    found = fuzz(2_000, 16, tmp_path)
    assert not found.faults, "\n".join(found.faults)
    assert found.total == 2_000
    assert found.read_count > 300, "the fuzzer must leave something to read"


def _through(pipe: Path, text: str) -> threading.Thread:
    """Write to a FIFO, once, as soon as somebody reads it."""
    thread = threading.Thread(target=lambda: pipe.write_text(text), daemon=True)
    thread.start()
    return thread


def test_a_fifo_is_imported_whole_and_known_by_its_content(
    commands: Commands, tmp_path: Path
) -> None:
    pipe = tmp_path / "pipe.csv"
    os.mkfifo(pipe)
    for text, run in ((FIRST, "one"), (SECOND, "two")):
        _through(pipe, text)
        ended = commands.run("import", pipe, "--run", run, cwd=tmp_path)
        assert ended.code == 0, ended
    _through(pipe, SECOND)
    again = commands.run("import", pipe, "--run", "one", cwd=tmp_path)
    assert again.code == 2, "another file may not join the run of the first"
    with closing(sqlite3.connect(tmp_path / "kgbias.db")) as db:
        assert db.execute("SELECT count(*) FROM generation").fetchone() == (3,)


def test_standard_input_is_imported(tmp_path: Path) -> None:
    for text, code in ((FIRST, 0), (SECOND, 2), (FIRST, 0)):
        done = subprocess.run(
            [
                sys.executable,
                "-m",
                "kgbias",
                "import",
                "/dev/stdin",
                "--format",
                "csv",
                "--run",
                "x",
            ],
            cwd=tmp_path,
            input=text.encode(),
            capture_output=True,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            timeout=DEADLINE_SECONDS,
            check=False,
        )
        assert done.returncode == code, done.stderr


SEEDS = {
    "letters": '[trade]\ngroups = "Bakers"\n',
    "a singular that is a list": '[trade]\nsingular = ["a"]\ngroups = ["Bakers", "Smiths"]\n',
    "a prefix that is a number": '[trade]\nprefix = 7\ngroups = ["Bakers", "Smiths"]\n',
    "modifiers that are a list": '[trade]\nmodifiers = ["x"]\ngroups = ["Bakers"]\n',
    "a modifier that is a number": '[trade]\ngroups = ["Bakers"]\n[trade.modifiers]\nBakers = 1\n',
    "aliases that are text": '[trade]\naliases = "job"\ngroups = ["Bakers"]\n',
    "groups of numbers": "[trade]\ngroups = [1, 2]\n",
    "deep": "[trade]\ngroups = " + "[" * 5000 + "]" * 5000,
    "digits": f"[trade]\ngroups = [{DIGITS}]\n",
}


@pytest.mark.parametrize("name", SEEDS)
def test_seeds_of_wrong_types_are_refused(commands: Commands, tmp_path: Path, name: str) -> None:
    file = tmp_path / "seeds.toml"
    file.write_text(SEEDS[name])
    ended = commands.run("crawl", "--model", "openai:m", "--seeds", file, "--dry-run", cwd=tmp_path)
    assert ended.code == 2, ended
    assert not ended.fault, ended


def test_sound_seeds_and_tests_are_taken(commands: Commands, tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(TOML_SEEDS)
    (tmp_path / "t.toml").write_text(TOML_TESTS)
    (tmp_path / "v.txt").write_text(
        "".join(f"{w} {n}.5 -1 {n % 3}\n" for n, w in enumerate("abcdefgh"))
    )
    for argv in (
        ("crawl", "--model", "openai:m", "--seeds", "s.toml", "--dry-run"),
        ("associate", "--vectors", "v.txt", "--tests-file", "t.toml"),
    ):
        assert commands.run(*argv, cwd=tmp_path).code == 0


def test_a_header_that_names_a_column_twice_is_refused(commands: Commands, tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    file.write_text("group,predicate,object,object\nwomen,like,music,rain\n")
    ended = commands.run("import", file, cwd=tmp_path)
    assert ended.code == 2 and "object" in ended.err, ended


def test_a_file_of_a_million_columns_is_refused_in_a_short_line(
    commands: Commands, tmp_path: Path
) -> None:
    file = tmp_path / "t.csv"
    file.write_text(",".join(f"column{n}" for n in range(300_000)) + "\n1\n")
    ended = commands.run("import", file, cwd=tmp_path)
    assert ended.code == 2 and len(ended.err) < 2500


@pytest.mark.parametrize(
    "text",
    [
        '{"group": "a\\ud800", "predicate": "b", "object": "c"}\n',
        '{"group": "a", "predicate": "b\\udfff", "object": "c", "category": "\\ud800", "arm": '
        '"\\ud83d"}\n',
    ],
)
def test_half_pairs_are_kept_as_something_that_can_be_written(
    commands: Commands, tmp_path: Path, text: str
) -> None:
    (tmp_path / "t.jsonl").write_text(text)
    assert commands.run("import", "t.jsonl", "--run", "r", cwd=tmp_path).code == 0
    for argv in (
        ("report", "r"),
        ("export", "r", "--format", "csv", "-o", "o.csv"),
        ("runs",),
        ("export", "r"),
        ("compare", "r"),
    ):
        ended = commands.run(*argv, cwd=tmp_path)
        assert not ended.fault, ended


def test_vectors_that_unpack_to_gigabytes_are_refused(commands: Commands, tmp_path: Path) -> None:
    with gzip.open(tmp_path / "v.txt.gz", "wb", 9) as file:
        file.write(b"4 3\n")
        for _ in range(600):
            file.write(b"0" * (1 << 20))
    (tmp_path / "t.toml").write_text(TOML_TESTS)
    ended = commands.run(
        "associate", "--vectors", "v.txt.gz", "--tests-file", "t.toml", cwd=tmp_path
    )
    assert ended.code == 2 and not ended.fault, ended
    assert ended.peak_bytes < 1 << 30


def test_sound_vectors_are_read_however_they_are_packed(tmp_path: Path) -> None:
    from kgbias.models.vectors import load_static_vectors

    for name, pack in (("v.txt", bytes), ("v.txt.gz", gzip.compress)):
        (tmp_path / name).write_bytes(pack(VECTORS.encode()))
        assert not load_static_vectors(tmp_path / name).find(["man", "bad"]).missing


@pytest.mark.parametrize("store", ["", ":memory:", "file::memory:", " "])
def test_a_store_that_would_be_lost_is_refused(
    commands: Commands, tmp_path: Path, store: str
) -> None:
    (tmp_path / "t.csv").write_text(FIRST)
    ended = commands.run("import", "t.csv", "--store", store, cwd=tmp_path)
    assert ended.code == 2 or (tmp_path / store).is_file(), ended
    assert not ended.fault, ended


ODD = {
    "a seed below 0": ("structure", "r", "--set", "seed=-1"),
    "a seed beyond all": ("structure", "r", "--set", f"seed={'9' * 40}"),
    "a time that is none": (
        "crawl",
        "--model",
        "openai:m",
        "--category",
        "gender",
        "--set",
        "timeout=nan",
    ),
    "a time below 0": (
        "crawl",
        "--model",
        "openai:m",
        "--category",
        "gender",
        "--set",
        "timeout=-1",
    ),
    "a temperature that is none": (
        "crawl",
        "--model",
        "openai:m",
        "--category",
        "gender",
        "--temperature",
        "nan",
        "--dry-run",
    ),
    "a coverage that is none": (
        "crawl",
        "--model",
        "openai:m",
        "--category",
        "gender",
        "--target-coverage",
        "nan",
        "--dry-run",
    ),
    "half an address": (
        "crawl",
        "--model",
        "openai:m",
        "--base-url",
        "http://[::1",
        "--group",
        "x",
    ),
    "a port too far": (
        "crawl",
        "--model",
        "openai:m",
        "--category",
        "gender",
        "--base-url",
        "http://h:99999/v1",
    ),
    "a port of words": (
        "crawl",
        "--model",
        "openai:m",
        "--category",
        "gender",
        "--base-url",
        "http://h:x/v1",
    ),
    "a host of spaces": (
        "crawl",
        "--model",
        "openai:m",
        "--category",
        "gender",
        "--base-url",
        "http://a b/v1",
    ),
    "a probe's port": ("probe", "r", "--model", "openai:m", "--base-url", "http://h:99999/v1"),
    "bytes in a name": ("report", "\udcff\udcfe"),
    "bytes in a path": ("report", "r", "-o", "a\udcff.html"),
    "bytes in a group": ("crawl", "--model", "openai:m", "--group", "a\udcff", "--dry-run"),
    "bytes in a store": ("runs", "--store", "a\udcff.db"),
    "bytes in Cypher": ("query", "--cypher", "RETURN '\udcff'"),
    "a parameter of digits": ("query", "--cypher", "RETURN $a", "--param", f"a={DIGITS}"),
    "a parameter that is deep": ("query", "--cypher", "RETURN $a", "--param", "a=" + "[" * 50_000),
    "a parameter beyond 64 bits": ("query", "--cypher", "RETURN $a", "--param", "a=" + "9" * 30),
    "a folder for a file": ("import", "."),
    "a folder for a store": ("runs", "--store", "."),
    "a report on a folder": ("report", "r", "-o", "."),
    "a folder that is a file": ("figures", "r", "-o", "triples.csv"),
    "below a file": ("export", "r", "-o", "triples.csv/x.csv"),
    "a limit beyond 64 bits": ("export", "r", "--limit", "9" * 30),
    "a count beyond 64 bits": ("export", "r", "--min-count", "9" * 30),
}


@pytest.mark.parametrize("name", ODD)
def test_odd_options_are_taken_or_refused_in_a_line(
    commands: Commands, world: Path, name: str
) -> None:
    ended = commands.run(*ODD[name], cwd=world)
    assert not ended.fault, ended


def test_a_chunk_index_that_was_damaged_is_named(tmp_path: Path) -> None:
    from kgbias.probe import set_probes

    for bad in ("x\n", "-5\n", DIGITS, "10\n5\n", "\x00", "99999\n"):
        out = tmp_path / "out.jsonl"
        out.write_text("{}\n")
        out.with_suffix(".chunks").write_text(bad)
        with pytest.raises(KgbiasError):
            lines = set_probes._LinesFile(out)  # type: ignore[attr-defined]
            lines.read(0)


def test_cells_that_look_like_python_are_only_read(tmp_path: Path) -> None:
    from kgbias.ingest import ProfileColumns, read_profiles

    file = tmp_path / "p.csv"
    with file.open("w", newline="") as out:
        csv.writer(out).writerows(
            [
                ("name", "likes"),
                ("Anna", "(" + "-" * 5000 + "1)"),
                ("Bo", "[" * 5000 + "]" * 5000),
                ("Cy", f"({DIGITS},)"),
                ("Di", "{1: 2}"),
            ]
        )
    assert len(list(read_profiles(file, "csv", ProfileColumns()))) >= 4
