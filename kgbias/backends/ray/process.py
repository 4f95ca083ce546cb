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

from kgbias.backends.ray.cluster import MAX_CONNECT_SECONDS, PieceFailure, join_ray, open_cluster
from kgbias.errors import MissingExtra, ModelError
from kgbias.io.progress import Progress, SilentProgress
from kgbias.io.sandbox import start_python
from kgbias.parallel.work import Executor, P, R, Work

_POLL_SECONDS = 5.0  # seconds of silence before checking that the cluster is still there
_MAX_LEAVE_SECONDS = 20.0  # seconds to leave it in
_HEAD_LABEL, _LOCAL_NODE_LABEL = "its head", "its node on this machine"

RayAddresses = dict[str, str]  # the parts of a cluster that must be there, each with its HOST:PORT


@contextmanager
def open_ray(address: str, progress: Progress) -> Iterator[Executor]:
    """A cluster, or without an `address` a new Ray, left at the end. A Ray that the program has
    joined itself is used as it is, in this process.

    Raises:
        MissingExtra: Ray is not installed.
    """
    ray = sys.modules.get("ray")
    if ray and ray.is_initialized():
        with open_cluster(address, progress) as cluster:
            yield cluster
        return
    if not importlib.util.find_spec("ray"):
        raise MissingExtra("ray", extra="ray")
    with closing(RayProcess(address, progress)) as process:
        yield process


class RayProcess:
    """A cluster (`kgbias.backends.ray.cluster`) that another process joins when there is work."""

    def __init__(self, address: str, progress: Progress) -> None:
        self._address, self._progress = address, progress
        self._process: subprocess.Popen[bytes] | None = None
        self._resources = ExitStack()
        self._connection: Connection
        self._addresses: RayAddresses = {}

    def run_pieces(
        self, work: Work[P, R], pieces: Sequence[P]
    ) -> Generator[tuple[int, R], None, None]:
        """See `kgbias.parallel.Executor`."""
        if self._process is None:
            self._start_process()
        with suppress(OSError):  # if the other process has ended, the next read shows it
            self._connection.send((pickle.dumps(work), pieces))
        busy = True
        try:
            while busy:
                match self._receive():
                    case dict() as places:
                        self._addresses = places
                    case str() as note:
                        self._progress.note(note)
                    case PieceFailure() as failure:
                        busy = False
                        raise failure.as_error()
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
                self._connection.send(())

    def close(self) -> None:
        """Leave the cluster; its workers end."""
        if self._process is None:
            return
        process, self._process = self._process, None
        self._connection.close()
        with suppress(subprocess.TimeoutExpired):
            process.wait(_MAX_LEAVE_SECONDS)
        with suppress(ProcessLookupError):  # processes of a lost Ray may outlive it for minutes
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        self._resources.close()

    def _start_process(self) -> None:
        folder = ""
        if not self._address:
            folder = self._resources.enter_context(
                tempfile.TemporaryDirectory(prefix="kgbias-ray-", ignore_cleanup_errors=True)
            )
        self._connection, child_end = Pipe()
        with closing(child_end):
            self._process = start_python(
                __name__,
                str(child_end.fileno()),
                self._address,
                folder,
                pass_fds=[child_end.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,  # where Ray says, hundreds of times, what is lost
                start_new_session=True,  # out of reach of Ctrl-C, which this process handles
            )

    def _receive(self) -> Any:
        """The other process's next message. Raises ModelError if the cluster is lost."""
        while not self._connection.poll(_POLL_SECONDS):
            if _LOCAL_NODE_LABEL in (lost := self._find_lost()):
                raise _lost_error(lost)
        try:
            message = self._connection.recv()
        except (EOFError, OSError) as error:
            assert self._process is not None
            exit_code = self._process.wait()
            if exit_code >= 0 and (lost := self._find_lost()):
                raise _lost_error(lost) from error
            ending = (
                f"exit code {exit_code}" if exit_code >= 0 else f"killed by signal {-exit_code}"
            )
            raise _stopped_error(f"the process that had joined Ray ended ({ending})") from error
        if isinstance(message, PieceFailure) and (lost := self._find_lost()):
            raise _lost_error(lost)
        return message

    def _find_lost(self) -> RayAddresses:
        """The parts of the cluster that do not answer."""
        return {
            part: address for part, address in self._addresses.items() if not _is_reachable(address)
        }


def _lost_error(lost: RayAddresses) -> ModelError:
    descriptions = " and ".join(f"{part} at {address}" for part, address in lost.items())
    return _stopped_error(f"Ray is lost (no answer from {descriptions})")


def _stopped_error(reason: str) -> ModelError:
    return ModelError(
        f"{reason}: what was finished is kept, and running this again continues from there"
    )


def _is_reachable(address: str) -> bool:
    """Whether something listens at HOST:PORT."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=MAX_CONNECT_SECONDS).close()
    except OSError:
        return False
    return True


class _NoteForwarder(SilentProgress):
    """Passes notes on."""

    def __init__(self, link: Connection) -> None:
        self._connection = link

    def note(self, text: str) -> None:
        self._connection.send(text)


def serve(connection: Connection, address: str, folder: str) -> None:
    """Does what is asked on the link, until that is closed, which ends it even at work."""
    requests: queue.SimpleQueue[Any] = queue.SimpleQueue()
    busy = threading.Event()

    def listen() -> None:
        with suppress(EOFError, OSError):
            while True:
                requests.put(connection.recv())
        if busy.is_set():
            os.killpg(os.getpid(), signal.SIGKILL)  # of which this is the leader
        requests.put(None)

    threading.Thread(target=listen, daemon=True).start()
    with ExitStack() as resources:
        cluster = None
        while (request := requests.get()) is not None:
            busy.set()
            try:
                if cluster is None and request:
                    ray = resources.enter_context(join_ray(address, folder))
                    connection.send(_find_addresses(ray))
                    cluster = resources.enter_context(
                        open_cluster(address, _NoteForwarder(connection))
                    )
                if cluster and request:
                    work, pieces = request
                    for result in cluster.run_pieces(pickle.loads(work), pieces):
                        connection.send(result)
                    connection.send(None)
                elif cluster:
                    cluster.dismiss()
            except Exception as error:
                connection.send(PieceFailure.from_error(error))
            busy.clear()


def _find_addresses(ray: Any) -> RayAddresses:
    context = ray.get_runtime_context()
    addresses = {_HEAD_LABEL: context.gcs_address}
    for node in ray.nodes():
        if node["NodeID"] == context.get_node_id():
            addresses[_LOCAL_NODE_LABEL] = f"{node['NodeManagerAddress']}:{node['NodeManagerPort']}"
    return addresses


if __name__ == "__main__":
    serve(Connection(int(sys.argv[1])), *sys.argv[2:])
