"""The crawl under SIGKILL and Ctrl-C: real processes, a real HTTP server, the real command line."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from tests.conftest import ROOT, require_modules
from tests.fault_server import Fault, FaultServer
from tests.kill_rounds import (
    CONCURRENCY,
    answer,
    count_answers,
    finish_crawl,
    logged_fingerprints,
    read_tables,
    run_rounds,
    start_crawl,
)
from tests.waiting import DEADLINE_SECONDS, wait_until

pytestmark = pytest.mark.integration
require_modules("openai")


@pytest.mark.slow
def test_killed_at_random_moments_the_graph_is_the_same(tmp_path: Path) -> None:
    tally = run_rounds(3, seed=int(time.time()), folder=tmp_path)
    assert tally.rounds == 3 and tally.kills, tally
    assert tally.is_sound, tally


@pytest.mark.slow
def test_the_comparison_sees_what_is_lost_and_what_is_doubled(tmp_path: Path) -> None:
    with FaultServer(answer) as server:
        finish_crawl(start_crawl(tmp_path / "a.db", server.url))
        finish_crawl(
            start_crawl(tmp_path / "b.db", server.url)
        )  # another store: asked anew, the same graph
    whole, other = read_tables(tmp_path / "a.db"), read_tables(tmp_path / "b.db")
    assert whole == other and all(whole[table] for table in ("answer", "generation", "shown"))
    assert len(logged_fingerprints(tmp_path / "a.db")) == whole["answer"].total()
    other["generation"].subtract([next(iter(other["generation"]))])
    assert +other["generation"] != whole["generation"]


def test_ctrl_c_waits_for_no_server_and_says_how_to_go_on(tmp_path: Path) -> None:
    """Half of the requests hang, as on a server that is stuck, until nothing else is under way."""
    over, stuck = threading.Event(), []

    def plan(body: dict[str, object], number: int) -> Fault:
        if int(str(body["seed"])) % 2:
            stuck.append(body)
            over.wait(DEADLINE_SECONDS)
        return answer(body, number)

    store = tmp_path / "kgbias.db"
    with FaultServer(plan) as server:
        crawl = start_crawl(store, server.url)
        wait_until(lambda: len(stuck) == CONCURRENCY or crawl.poll() is not None)
        sent = len(server.bodies)
        crawl.send_signal(signal.SIGINT)
        last = last_line(crawl)  # while the server still holds what it was asked
        assert len(server.bodies) == sent
        over.set()
    held = len(logged_fingerprints(store))
    assert held and f"{held} answers that came are kept" in last


# Ctrl-C comes while the first token after an answer is drawn; how many are drawn after it?
INTERRUPTED = """
import os, signal
from pathlib import Path
from kgbias.cli import main
from kgbias.models.generate import Sampler

step, done, after = Sampler._draw_step, [], []

def counted(self, batch):
    if done and not after:
        os.kill(os.getpid(), signal.SIGINT)
    after.extend([len(batch.rows)] if done else [])
    done.extend(found := step(self, batch))
    return found

Sampler._draw_step = counted
try:
    main()
finally:
    Path("after").write_text(f"{len(done)} {len(after)}")
"""


def test_ctrl_c_while_a_local_modelcount_answers(tmp_path: Path) -> None:
    require_modules("torch")
    crawl = subprocess.Popen(
        [
            sys.executable,
            "-c",
            INTERRUPTED,
            "crawl",
            "--model",
            "reference",
            "--samples",
            "50",
            "--store",
            "kgbias.db",
        ],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    last = last_line(crawl)
    answered, steps = map(int, (tmp_path / "after").read_text().split())
    assert steps <= 1, "it went on drawing tokens"
    assert answered == count_answers(tmp_path / "kgbias.db") > 0
    assert f"the {answered} answers that came are kept" in last


def last_line(crawl: subprocess.Popen[bytes]) -> str:
    """The line that says how to go on after Ctrl-C, which must be the last."""
    _, error = crawl.communicate(timeout=DEADLINE_SECONDS)
    *_, line = error.decode().splitlines()
    assert crawl.returncode == 130 and "running this again continues" in line, error
    return line
