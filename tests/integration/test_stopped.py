"""Ctrl-C, whatever hangs: real processes. What is asserted is that they end by it, and not by what
they wait for, which takes far longer than any test."""

import os
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from tests.limited_system import limited_environment
from tests.silent_bolt import SilentBolt
from tests.waiting import DEADLINE_SECONDS, wait_until

pytestmark = pytest.mark.integration

HANGS = str(int(3 * DEADLINE_SECONDS))


class Silent:
    """A server that takes connections and never says a word."""

    def __init__(self) -> None:
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listening.getsockname()[1]}"
        self.taken: list[socket.socket] = []
        threading.Thread(target=self._take, daemon=True).start()

    def _take(self) -> None:
        while True:
            self.taken.append(self._listening.accept()[0])


@pytest.fixture
def silent() -> Silent:
    return Silent()


def stopped(folder: Path, argv: list[str], begun: Callable[[str], object], times: int = 1) -> None:
    """A command that gets so many Ctrl-C, once it has begun by what it says, ends by
    them, with 130, and says so."""
    process = subprocess.Popen(
        [sys.executable, "-m", "kgbias", *argv],
        cwd=folder,
        env={
            **os.environ,
            **limited_environment(folder, LESS_LOOKUP=HANGS),
            "NEO4J_PASSWORD": "x",
            "HF_ENDPOINT": "http://slow.invalid",
        },
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    said: list[str] = []
    reader = threading.Thread(target=_read, args=(process, said))
    reader.start()
    try:
        wait_until(lambda: begun("".join(said)) or process.poll() is not None)
        assert process.poll() is None, said
        for _ in range(times):
            process.send_signal(signal.SIGINT)
        process.wait(DEADLINE_SECONDS)
    finally:
        process.kill()
        reader.join()
    text = "".join(said)
    assert process.returncode == 130, text
    assert "Traceback" not in text and "ignored" not in text and "stopped" in text, text


def _read(process: subprocess.Popen[str], said: list[str]) -> None:
    assert process.stderr
    for line in process.stderr:
        said.append(line)
    process.stderr.close()


ASKING = ["crawl", "--group", "x", "--samples", "3", "--model", "openai:m", "--base-url"]


@pytest.mark.parametrize("times", [1, 2])
def test_while_a_name_is_looked_up(tmp_path: Path, times: int) -> None:
    stopped(tmp_path, [*ASKING, "http://slow.invalid/v1"], lambda said: "opening" in said, times)


def test_while_a_server_is_silent(tmp_path: Path, silent: Silent) -> None:
    stopped(tmp_path, [*ASKING, f"http://{silent.address}/v1"], lambda _: silent.taken)
    silent.taken.clear()
    (tmp_path / "s.txt").write_text("are kind\nlie\n")
    (tmp_path / "g.txt").write_text("women\nmen\n")
    scoring = [
        "probe",
        "sets",
        "--identities",
        "g.txt",
        "--statements",
        "s.txt",
        "--model",
        "openai:m",
        "--base-url",
        f"http://{silent.address}/v1",
    ]
    stopped(tmp_path, scoring, lambda _: silent.taken)
    silent.taken.clear()
    (tmp_path / "t.csv").write_text("group,predicate,object\nMen,love,tea\n")
    subprocess.run([sys.executable, "-m", "kgbias", "import", "t.csv"], cwd=tmp_path, check=True)
    push = ["push", "--from", "kgbias.db", "--to", f"neo4j://{silent.address}"]
    stopped(tmp_path, push, lambda _: silent.taken)


@pytest.mark.slow  # tests/backends/neo4j/test_session.py has it without a process
@pytest.mark.parametrize("times", [1, 2])
def test_while_a_database_is_silent(tmp_path: Path, times: int) -> None:
    pytest.importorskip("neo4j")
    silent = SilentBolt()
    stopped(tmp_path, ["runs", "--store", silent.url], lambda _: silent.asked, times)


def test_nothing_is_imported_before_ctrl_c_is_caught(tmp_path: Path) -> None:
    code = (
        "import importlib, os, sys\nbefore = set(sys.modules)\nimport kgbias.__main__\n"
        "print(*sorted(set(sys.modules) - before))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, stdout=subprocess.PIPE)
    assert done.stdout.split() == [b"kgbias", b"kgbias.__main__"]


def test_while_another_program_writes(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("group,predicate,object\nMen,love,tea\n")
    argv = ["import", "t.csv", "--run", "r"]
    subprocess.run([sys.executable, "-m", "kgbias", *argv], cwd=tmp_path, check=True)
    with closing(sqlite3.connect(tmp_path / "kgbias.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        again = ["import", "t.csv", "--run", "s", "--model", "other"]
        stopped(tmp_path, again, lambda said: "another program is writing to kgbias.db" in said)
