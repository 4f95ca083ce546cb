"""A Ray cluster, joined by a separate process: if its head or its node on this machine is lost, Ray
ends any process that has joined, whatever it is doing. So Ray ends that process, and this one says
what was lost.
"""

import importlib.util
import os
import pickle
import queue
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Generator, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any

from kgbias.errors import MissingExtra, ModelError
from kgbias.io.sandbox import start_python
from kgbias.io.progress import Progress, SilentProgress
from kgbias.parallel.cluster import REACHED, Failure, joined_ray, opened_cluster
from kgbias.parallel.work import Executor, P, R, Work

_LOOK = 5.0  # seconds of silence before checking that the cluster is still there
_LEAVING = 20.0  # seconds to leave it in
_HEAD, _HERE = "its head", "its node on this machine"

Places = dict[str, str]  # the parts of a cluster that must be there, each with its HOST:PORT


@contextmanager
def opened_ray(address: str, progress: Progress) -> Iterator[Executor]:
    """A cluster, or without an `address` a new Ray, left at the end. A Ray that the program has
    joined itself is used as it is, in this process.

    Raises:
        MissingExtra: Ray is not installed.
    """
    ray = sys.modules.get("ray")
    if ray and ray.is_initialized():
        with opened_cluster(address, progress) as cluster:
            yield cluster
        return
    if not importlib.util.find_spec("ray"):
        raise MissingExtra("ray", extra="ray")
    with closing(Apart(address, progress)) as apart:
        yield apart


class Apart:
    """A cluster (`kgbias.parallel.cluster`) that another process joins when there is work."""

    def __init__(self, address: str, progress: Progress) -> None:
        self._address, self._told = address, progress
        self._process: subprocess.Popen[bytes] | None = None
        self._held = ExitStack()
        self._link: Connection
        self._places: Places = {}

    def each(self, work: Work[P, R], pieces: Sequence[P]) -> Generator[tuple[int, R], None, None]:
        """See `kgbias.parallel.Executor`."""
        if self._process is None:
            self._start()
        with suppress(OSError):  # if the other process has ended, the next read shows it
            self._link.send((pickle.dumps(work), pieces))
        busy = True
        try:
            while busy:
                match self._heard():
                    case dict() as places:
                        self._places = places
                    case str() as note:
                        self._told.note(note)
                    case Failure() as failure:
                        busy = False
                        raise failure.error()
                    case None:
                        busy = False
                    case (int(number), result):
                        yield number, result
        finally:
            if busy:  # it has pieces in hand
                self.close()

    def dismiss(self) -> None:
        """End the workers."""
        if self._process is not None:
            with suppress(OSError):  # there are none, which the next work will find
                self._link.send(())

    def close(self) -> None:
        """Leave the cluster; its workers end."""
        if self._process is None:
            return
        process, self._process = self._process, None
        self._link.close()
        with suppress(subprocess.TimeoutExpired):
            process.wait(_LEAVING)
        with suppress(ProcessLookupError):  # processes of a lost Ray may outlive it for minutes
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        self._held.close()

    def _start(self) -> None:
        folder = ""
        if not self._address:
            folder = self._held.enter_context(
                tempfile.TemporaryDirectory(prefix="kgbias-ray-", ignore_cleanup_errors=True)
            )
        self._link, theirs = Pipe()
        with closing(theirs):
            self._process = start_python(
                __name__,
                str(theirs.fileno()),
                self._address,
                folder,
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,  # where Ray says, hundreds of times, what is lost
                start_new_session=True,  # out of reach of Ctrl-C, which this process handles
            )

    def _heard(self) -> Any:
        """The other process's next message. Raises ModelError if the cluster is lost."""
        while not self._link.poll(_LOOK):
            if _HERE in (gone := self._gone()):
                raise _lost(gone)
        try:
            said = self._link.recv()
        except (EOFError, OSError) as error:
            assert self._process is not None
            code = self._process.wait()
            if code >= 0 and (gone := self._gone()):
                raise _lost(gone) from error
            how = f"exit code {code}" if code >= 0 else f"killed by signal {-code}"
            raise _stopped(f"the process that had joined Ray ended ({how})") from error
        if isinstance(said, Failure) and (gone := self._gone()):
            raise _lost(gone)
        return said

    def _gone(self) -> Places:
        """The parts of the cluster that do not answer."""
        return {what: place for what, place in self._places.items() if not _answers(place)}


def _lost(gone: Places) -> ModelError:
    places = " and ".join(f"{what} at {place}" for what, place in gone.items())
    return _stopped(f"Ray is lost (no answer from {places})")


def _stopped(why: str) -> ModelError:
    return ModelError(
        f"{why}: what was finished is kept, and running this again continues from there"
    )


def _answers(place: str) -> bool:
    """Whether something listens at HOST:PORT."""
    host, _, port = place.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=REACHED).close()
    except OSError:
        return False
    return True


class _Notes(SilentProgress):
    """Passes notes on."""

    def __init__(self, link: Connection) -> None:
        self._link = link

    def note(self, text: str) -> None:
        self._link.send(text)


def main(link: Connection, address: str, folder: str) -> None:
    """Does what is asked on the link, until that is closed, which ends it even at work."""
    asked: queue.SimpleQueue[Any] = queue.SimpleQueue()
    busy = threading.Event()

    def listen() -> None:
        with suppress(EOFError, OSError):
            while True:
                asked.put(link.recv())
        if busy.is_set():
            os.killpg(os.getpid(), signal.SIGKILL)  # of which this is the leader
        asked.put(None)

    threading.Thread(target=listen, daemon=True).start()
    with ExitStack() as joined:
        cluster = None
        while (given := asked.get()) is not None:
            busy.set()
            try:
                if cluster is None and given:
                    ray = joined.enter_context(joined_ray(address, folder))
                    link.send(_places(ray))
                    cluster = joined.enter_context(opened_cluster(address, _Notes(link)))
                if cluster and given:
                    work, pieces = given
                    for found in cluster.each(pickle.loads(work), pieces):
                        link.send(found)
                    link.send(None)
                elif cluster:
                    cluster.dismiss()
            except Exception as error:
                link.send(Failure.of(error))
            busy.clear()


def _places(ray: Any) -> Places:
    here = ray.get_runtime_context()
    found = {_HEAD: here.gcs_address}
    for node in ray.nodes():
        if node["NodeID"] == here.get_node_id():
            found[_HERE] = f"{node['NodeManagerAddress']}:{node['NodeManagerPort']}"
    return found


if __name__ == "__main__":
    main(Connection(int(sys.argv[1])), *sys.argv[2:])
