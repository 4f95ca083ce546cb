"""The crawl under SIGKILL and Ctrl-C: real processes, a real HTTP server, the real command line."""

import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import psutil
import pytest

from tests.conftest import needs
from tests.fault_server import FaultServer
from tests.kill_rounds import answer, finish, logged, picture, run_rounds, start

pytestmark = pytest.mark.integration
needs("openai")


def test_killed_at_random_moments_the_graph_is_the_same(tmp_path: Path) -> None:
    tally = run_rounds(3, seed=int(time.time()), folder=tmp_path)
    assert tally.rounds == 3 and tally.kills >= 2, tally
    assert tally.sound, tally


def test_the_comparison_sees_what_is_lost_and_what_is_doubled(tmp_path: Path) -> None:
    with FaultServer(answer) as server:
        finish(start(tmp_path / "a.db", server.url))
        finish(start(tmp_path / "b.db", server.url))  # another store: asked anew, the same graph
    whole, other = picture(tmp_path / "a.db"), picture(tmp_path / "b.db")
    assert whole == other and all(whole[table] for table in ("answer", "generation", "shown"))
    assert len(logged(tmp_path / "a.db")) == whole["answer"].total()
    other["generation"].subtract([next(iter(other["generation"]))])
    assert +other["generation"] != whole["generation"]


def test_ctrl_c_stops_within_two_seconds_and_says_how_to_go_on(tmp_path: Path) -> None:
    """Half of the requests hang, as on a server that is stuck."""

    def stuck(body: dict[str, object], number: int) -> object:
        return ("hang", 30) if int(str(body["seed"])) % 2 else answer(body, number)

    store = tmp_path / "kgbias.db"
    with FaultServer(stuck) as server:  # type: ignore[arg-type]
        crawl = start(store, server.url)
        deadline = time.monotonic() + 60
        while len(server.bodies) < 12 and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(0.3)
        last = interrupt(crawl)
    held = len(logged(store))
    assert held and f"{held} answers that came are kept" in last


def test_ctrl_c_while_a_local_model_answers(tmp_path: Path) -> None:
    needs("torch")
    store = tmp_path / "kgbias.db"
    crawl = subprocess.Popen(
        [sys.executable, "-m", "kgbias", "crawl", "--model", "reference", "--store", str(store),
         "--samples", "50"],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
    )  # fmt: skip
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and not _answers(store):
        time.sleep(0.1)
    assert "are kept" in interrupt(crawl)


def _worked(process: subprocess.Popen[bytes]) -> float:
    """The seconds of processor time that a process has taken."""
    times = psutil.Process(process.pid).cpu_times()
    return float(times.user + times.system)


def interrupt(crawl: subprocess.Popen[bytes]) -> str:
    """Send Ctrl-C; the line that says how to go on, which must be the last and come in time."""
    began, worked = time.monotonic(), _worked(crawl)
    crawl.send_signal(signal.SIGINT)
    assert crawl.stderr is not None
    line = ""
    while "running this again continues" not in line:
        line = crawl.stderr.readline().decode()
        assert line, "it did not say how to go on"
    # Two seconds of its own work: on a busy machine it waits for a processor, and for longer still
    # to unload Python.
    assert _worked(crawl) - worked < 2 and time.monotonic() - began < 10
    _, rest = crawl.communicate(timeout=30)
    assert (crawl.returncode, rest) == (130, b"")
    return line


def _answers(store: Path) -> int:
    if not store.exists():
        return 0
    with closing(sqlite3.connect(store)) as db:
        if not db.execute("SELECT 1 FROM sqlite_master WHERE name = 'answer'").fetchone():
            return 0
        return int(db.execute("SELECT count(*) FROM answer").fetchone()[0])
