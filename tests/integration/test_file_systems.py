"""Stores on file systems without locks, or without memory that processes share: real commands, for
which such calls fail."""

import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from kgbias.graph.sqlite import filesystem
from kgbias.graph.stores import open_store
from tests.conftest import sweep_params
from tests.limited_system import NO_LOCKS, NO_MEMORY, limited_environment
from tests.waiting import DEADLINE_SECONDS, wait_until

pytestmark = pytest.mark.integration

ROWS = "group,predicate,object\nMen,love,tea\nWomen,are,kind\n"
CRAWL = (
    "crawl",
    "--model",
    "reference",
    "--group",
    "Bakers",
    "--samples",
    "2",
    "--iterations",
    "0",
    "--run",
    "c",
    "--set",
    "batch-size=2",
)


def kgbias(folder: Path, *argv: str, **less: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "kgbias", *argv],
        cwd=folder,
        env={**os.environ, "OMP_NUM_THREADS": "1", **limited_environment(folder, **less)},
        capture_output=True,
        text=True,
        timeout=DEADLINE_SECONDS,
    )


def journal(file: Path) -> str:
    with closing(sqlite3.connect(file)) as db:
        return str(db.execute("PRAGMA journal_mode").fetchone()[0])


def stopped_between_writes(process: int, file: Path) -> bool:
    """Stop a process, so that it is not done before others look; it lives all the same."""
    os.kill(process, signal.SIGSTOP)
    with closing(sqlite3.connect(file, timeout=0, isolation_level=None)) as db:
        try:
            db.execute("BEGIN EXCLUSIVE")
        except sqlite3.OperationalError:
            os.kill(process, signal.SIGCONT)
            return False
    return True


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "drive"
    folder.mkdir()
    (folder / "t.csv").write_text(ROWS)
    return folder


@pytest.mark.parametrize(
    ("less", "said"),
    [
        (NO_LOCKS, "without locks (No locks available): one process at a time"),
        (NO_MEMORY, "without shared memory (No such device): it is kept without a log"),
    ],
)
def test_a_store_is_served_and_that_is_said(folder: Path, less: dict[str, str], said: str) -> None:
    """A new store, and one that has a log from a local disk, are written, read and copied."""
    assert kgbias(folder, "import", "t.csv", "--run", "r", "--store", "log.db").returncode == 0
    assert journal(folder / "log.db") == "wal"
    write = ("import", "t.csv", "--run", "s", "--model", "other")
    query = ("query", "--cypher", "MATCH (n:Triple) RETURN count(n)")
    for name, *calls in (
        ("new.db", write, query, ("compact",)),
        ("log.db", write, ("backup", "copy.db")),
    ):
        for argv in calls:
            done = kgbias(folder, *argv, "--store", name, **less)
            assert done.returncode == 0, done.stderr
            assert said in done.stderr or (argv != write and less == NO_MEMORY)
        assert journal(folder / name) == "delete"
        assert not list(folder.glob("*-in-use*")) and not list(folder.glob("*-wal"))
    done = kgbias(folder, "import", "t.csv", "--run", "t", "--model", "third", "--store", "new.db")
    assert done.returncode == 0 and "file system" not in done.stderr
    assert journal(folder / "new.db") == "wal"


@pytest.mark.parametrize(
    ("less", "said"),
    sweep_params(2, [(NO_LOCKS, "k.db open, which is on"), (NO_MEMORY, "is at work on run c")]),
)
def test_a_second_process_is_told_and_a_dead_one_is_no_hindrance(
    folder: Path, less: dict[str, str], said: str
) -> None:
    first = subprocess.Popen(
        [sys.executable, "-m", "kgbias", *CRAWL, "--store", "k.db"],
        cwd=folder,
        env={**os.environ, "OMP_NUM_THREADS": "1", **limited_environment(folder, **less)},
        stderr=subprocess.DEVNULL,
    )
    wait_until(lambda: list(folder.glob("k.db-run-*")) or first.poll() is not None)
    wait_until(lambda: stopped_between_writes(first.pid, folder / "k.db"))
    try:
        done = kgbias(folder, *CRAWL, "--store", "k.db", **less)
        assert done.returncode == 2 and f"process {first.pid} on " in done.stderr
        assert said in done.stderr
    finally:
        first.kill()
        first.wait()
    done = kgbias(folder, *CRAWL, "--store", "k.db", **less)
    assert done.returncode == 0, done.stderr
    assert "no faults" in kgbias(folder, "verify", "--store", "k.db").stdout


def test_no_log_is_kept_where_machines_may_share_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(filesystem, "_file_system_type", lambda path: "nfs4")
    said: list[str] = []
    with open_store(str(tmp_path / "k.db"), notify=said.append) as store:
        assert not store.summaries()
    assert journal(tmp_path / "k.db") == "delete" and "type nfs4" in said[0]
    monkeypatch.undo()
    assert filesystem.file_system_of("/proc/self/status") == filesystem.LOCAL_FILE_SYSTEM
    assert filesystem._file_system_type("/proc/self/status") == "proc"
