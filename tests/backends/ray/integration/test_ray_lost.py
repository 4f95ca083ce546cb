"""A real Ray that is lost in the middle: one line says what is gone, what was measured is kept, and
measuring again ends with the same graph."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from shutil import rmtree
from socket import socket
from tempfile import gettempdir
from typing import Any

import psutil
import pytest

from kgbias.backends.ray.process import RayProcess
from kgbias.errors import ModelError
from kgbias.parallel import open_executor
from tests.backends.ray.integration.test_ray import (  # noqa: F401
    SAID,
    Meanwhile,
    measured,
    run,
    started,
    stored,
    twins,
)
from tests.conftest import require_modules
from tests.waiting import wait_until

pytestmark = pytest.mark.integration
require_modules("torch", "ray")


@dataclass
class Stuck:
    """Work that each worker does one piece of, and then stays at the next."""

    work: Any
    done: int = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["work"], name)

    def __reduce__(self) -> Any:
        return Stuck, (self.work,)

    def __call__(self, piece: Any) -> Any:
        self.done += 1
        return self.work(piece) if self.done == 1 else time.sleep(600)


def kill(what: str, among: Callable[[], list[psutil.Process]]) -> None:
    killed = []
    for process in among():
        with suppress(psutil.NoSuchProcess):
            if any(word.split("/")[-1] == what for word in process.cmdline()[:4]):
                process.kill()
                killed.append(process)
    assert len(killed) == 1


@pytest.fixture(autouse=True)
def _nothing_is_left() -> Iterator[None]:
    """What other tests started goes on, and starts more (a browser does)."""
    before = set(started())
    yield

    def left() -> set[psutil.Process]:
        theirs = set(before)
        for process in before:
            with suppress(psutil.NoSuchProcess):
                theirs.update(process.children(recursive=True))
        return set(started()) - theirs

    wait_until(lambda: not left())


@pytest.mark.slow
def test_a_graph_is_finished_after_its_ray_was_lost(
    run: Path,  # noqa: F811
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("kgbias.measure.scoring.PIECE_STATEMENTS", 2)
    one, other = twins(run, tmp_path)
    each, lost = (
        RayProcess.run_pieces,
        "no answer from .*its node on this machine at 127.*: what was finished",
    )
    with monkeypatch.context() as patch, pytest.raises(ModelError, match=lost):
        patch.setattr(
            RayProcess, "run_pieces", lambda self, work, pieces: each(self, Stuck(work), pieces)
        )
        measured(one, progress=Meanwhile(partial(kill, "raylet", started)))
    assert 0 < sum('INTO "score"' in row for row in stored(one)) < len(SAID)
    assert measured(one, "local") == measured(other, "local")
    assert capfd.readouterr() == ("", "")


def done_until_lost(executor: str, what: str, among: Callable[[], list[psutil.Process]]) -> str:
    """What is said where it is killed after the first piece."""
    work: Any = partial(eval)
    work.version, work.device, work.threads, work.open = "v", "cpu", 1, partial(str, "v")
    found = []
    with pytest.raises(ModelError) as said, open_executor(executor) as opened:
        assert opened
        for number, _ in opened.run_pieces(work, ["0", *["__import__('time').sleep(600)"] * 4]):
            found.append(number)
            kill(what, among)
    assert found == [0]
    return str(said.value)


@pytest.mark.parametrize(
    ("what", "why"),
    [
        ("gcs_server", "Ray is lost (no answer from its head at 127.0.0.1:"),
        (
            "kgbias.backends.ray.process",
            "the process that had joined Ray ended (killed by signal 9): ",
        ),
    ],
)
def test_whatever_is_lost_is_a_line(what: str, why: str) -> None:
    assert done_until_lost("ray", what, started).startswith(why)


@contextmanager
def cluster(folder: Path) -> Iterator[tuple[str, psutil.Process]]:
    """The address of a cluster of one node, and what started it."""
    with closing(socket()) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    call = [
        "start",
        "--head",
        "--block",
        f"--port={port}",
        "--node-ip-address=127.0.0.1",
        "--num-cpus=2",
        "--include-dashboard=false",
        "--disable-usage-stats",
        "--object-store-memory=100000000",
        f"--temp-dir={folder}",
    ]
    with subprocess.Popen(
        [Path(sys.executable).with_name("ray"), *call],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as running:
        try:
            wait_until(lambda: socket().connect_ex(("127.0.0.1", port)) == 0)
            yield f"127.0.0.1:{port}", psutil.Process(running.pid)
        finally:
            left = psutil.Process(running.pid).children(recursive=True)
            os.killpg(running.pid, signal.SIGKILL)
            for process in left:
                with suppress(psutil.NoSuchProcess):
                    process.kill()


@pytest.mark.slow
def test_the_head_of_a_cluster_is_lost(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAY_gcs_rpc_server_reconnect_timeout_s", "2")  # of 60
    folder = Path(gettempdir()) / tmp_path_factory.mktemp("ray").name  # sockets have short names
    with cluster(folder) as (address, head):
        joined, port = f"ray://{address}", address.rpartition(":")[2]
        said = done_until_lost(joined, "gcs_server", partial(head.children, recursive=True))
    assert re.search(rf"no answer from its head at [\d.]+:{port}.*what was finished is kept", said)
    rmtree(folder, ignore_errors=True)
