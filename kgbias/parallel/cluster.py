"""Work on a Ray cluster: actors that each hold the model, and are handed one piece after another.

Ray's own checkpoints are not used: the caller keeps each result as soon as it arrives, and the next
call asks for what is missing. Nor is Ray Data, which would first load all pieces into memory, start
four more processes, and retry a piece that kills its worker for ever.
"""

import logging
import os
import pickle
import secrets
import signal
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import Any

from kgbias import errors
from kgbias.errors import KgbiasError, MissingExtra, ModelError, UsageError, first_line
from kgbias.io.progress import Progress
from kgbias.io.resources import __version__
from kgbias.io.traces import wait_passively
from kgbias.parallel.local import cores
from kgbias.parallel.work import P, R, Work

ATTEMPTS = 3  # at a piece, of one worker
_PAUSE = 0.5  # seconds before the next attempt


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a piece was not done, as text, since an error may not survive being pickled. `final`: no
    other piece can be done either."""

    kind: str
    message: str
    final: bool

    @classmethod
    def of(cls, error: Exception, final: bool = False) -> "Failure":
        if isinstance(error, KgbiasError):
            return cls(type(error).__name__, str(error), final)
        return cls("", f"{type(error).__name__}: {first_line(error)}", final)

    def error(self) -> KgbiasError:
        kind = {"DataError": errors.DataError, "UsageError": errors.UsageError}
        return kind.get(self.kind, ModelError)(self.message)


Outcome = tuple[int, Any, Failure | None]  # the number of the piece, and its result


def packed(work: Work[Any, Any]) -> bytes:
    """Work as it is sent, and what it must be when opened."""
    return pickle.dumps((__version__, work.version, work))


class Worker:
    """Does pieces of work. The packed work is sent with each piece, and opened when it is new."""

    def __init__(self) -> None:
        self._packed = b""
        self._work: Any = None
        self._failure: Failure | None = None

    def failure(self, work: bytes) -> Failure | None:
        """Why no piece of the work can be done; None if it is open."""
        if work != self._packed:
            self._failure = None
            try:
                self._work = _opened(work)
            except Exception as error:
                self._failure = Failure.of(error, final=True)
            self._packed = work
        return self._failure

    def do(self, number: int, piece: bytes, work: bytes) -> bytes:
        """The pickled outcome of a pickled piece."""
        return pickle.dumps(self._done(number, piece, work))

    def _done(self, number: int, piece: bytes, work: bytes) -> Outcome:
        if failure := self.failure(work):
            return number, None, failure
        for left in reversed(range(ATTEMPTS)):
            try:
                return number, self._work(pickle.loads(piece)), None
            except Exception as error:
                if not left or isinstance(error, KgbiasError):  # it would fail the same way again
                    return number, None, Failure.of(error)
                time.sleep(_PAUSE)
        raise AssertionError("there is at least one attempt")


def _opened(work: bytes) -> Work[Any, Any]:
    wait_passively()  # before anything imports torch
    opened: Work[Any, Any]
    version, wanted, opened = _read(work)
    found = opened.open()
    if torch := sys.modules.get("torch"):
        torch.set_num_threads(opened.threads)
    if (version, wanted) != (__version__, found):
        raise ModelError(
            f"a worker has kgbias {__version__} and {found}, not kgbias {version} and "
            f"{wanted}: install the same on all nodes"
        )
    return opened


def _read(work: bytes) -> Sequence[Any]:
    try:
        found: Sequence[Any] = pickle.loads(work)
        return found
    except (AttributeError, ImportError) as error:
        raise ModelError(
            f"a worker cannot open the work ({error}): install the same kgbias, with its extras, "
            "on all nodes"
        ) from error


_DEATHS = 2  # workers that may end over one piece before it is given up
_STARTS = 5  # attempts to start a worker that ends before it is ready
_AHEAD = 2  # pieces given to a worker at once, so it need not wait for the next
REACHED = 5.0  # seconds for a head to answer
_PATIENCE = 30.0  # seconds without a worker before a line says what it waits for
_OBJECTS = 128 * 2**20  # bytes that our own Ray holds in memory; more go to disk


class Cluster:
    """A Ray cluster, joined when there is work, or without an `address` a new Ray on this machine.
    A Ray that the program has already joined is used, and left as it is."""

    def __init__(self, address: str, progress: Progress) -> None:
        self._address, self._told = address, progress
        self._joined = ExitStack()
        self._ray: Any = None
        self._workers: list[Any] = []
        self._needs: dict[str, float] = {}  # what each worker takes of the cluster

    def close(self) -> None:
        """Leave the cluster; its workers end."""
        self.dismiss()
        self._ray = None
        self._joined.close()

    def dismiss(self) -> None:
        """End the workers."""
        for worker in self._workers:
            self._ray.kill(worker)
        self._workers = []

    def each(self, work: Work[P, R], pieces: Sequence[P]) -> Generator[tuple[int, R], None, None]:
        """See `kgbias.parallel.Executor`. A piece is tried again if it failed or its worker ended;
        the others go on."""
        if work.device not in ("auto", "cpu", "cuda"):
            raise UsageError(
                f"`device` {work.device}: Ray gives each worker its GPU; choose auto, cpu or cuda"
            )
        if self._ray is None:
            self._ray = self._joined.enter_context(joined_ray(self._address))
        failed: list[Failure] = []
        for number, result, failure in self._outcomes(work, pieces):
            if failure and failure.final:
                raise failure.error()
            if failure:
                failed.append(failure)
            else:
                yield number, result
        if failed:
            error = failed[0].error()
            undone = f"{len(failed)} of {len(pieces)} pieces were not done; the others are kept"
            raise type(error)(f"{error} ({undone})")

    def _outcomes(self, work: Work[P, R], pieces: Sequence[P]) -> Iterator[Outcome]:
        self._call(work, len(pieces))
        sent = self._ray.put(packed(work))
        left = dict(enumerate(pieces))
        try:
            # The pieces of workers that ended are handed out again, one at a time, so a piece that
            # kills its worker takes no other with it.
            for ahead in (_AHEAD, 1):
                for number, outcome in self._handed(sent, dict(left), ahead):
                    if outcome:
                        del left[number]
                        yield outcome
            for number in left:
                yield (
                    number,
                    None,
                    Failure("", "the workers ended, perhaps for lack of memory", False),
                )
        except BaseException:  # they have pieces in hand
            self.dismiss()
            raise
        if left:
            self.dismiss()

    def _call(self, work: Work[P, R], pieces: int) -> None:
        """Start the workers needed for this many pieces, unless they are there already."""
        needs = self._needs_of(work)
        if needs != self._needs:
            self.dismiss()
            self._needs = needs
        start = self._ray.remote(Worker).options(
            **needs, max_restarts=-1, max_task_retries=_DEATHS, scheduling_strategy="SPREAD"
        )
        for _ in range(min(pieces, self._room(needs)) - len(self._workers)):
            self._workers.append(start.remote())

    def _handed(
        self, work: Any, pieces: Mapping[int, P], ahead: int
    ) -> Iterator[tuple[int, Outcome | None]]:
        """The number of each piece with its outcome, or None if its worker ended each time. Workers
        get `ahead` pieces once they are ready: one that waits for room on a busy cluster would
        hold on to them."""
        ray, waiting, left = self._ray, iter(pieces.items()), len(pieces)
        if not left:
            return
        running: dict[Any, tuple[int | None, Any]] = {}

        def await_ready(worker: Any) -> None:
            asked = worker.failure.options(max_task_retries=_STARTS).remote(work)
            running[asked] = None, worker

        for worker in self._workers[:left]:
            await_ready(worker)
        if not ray.wait(list(running), timeout=_PATIENCE)[0]:
            self._told.note("waiting for room on the cluster, or for models to load")
        while left and running:
            done, _ = ray.wait(list(running))
            number, worker = running.pop(done[0])
            outcome: Outcome | None = None
            room = 0
            try:
                said = ray.get(done[0])
            except ray.exceptions.ActorDiedError as error:  # it does not come back
                if number is None and not running:
                    raise ModelError(f"no worker could start: {first_line(error)}") from error
            except ray.exceptions.RayError as error:
                if number is None:
                    raise ModelError(f"a worker could not start: {first_line(error)}") from error
                await_ready(worker)
            else:
                if number is None and said:
                    raise said.error()
                outcome = None if number is None else pickle.loads(said)
                room = ahead if number is None else 1
            for place, piece in islice(waiting, room):
                running[worker.do.remote(place, pickle.dumps(piece), work)] = place, worker
            if number is not None:
                left -= 1
                yield number, outcome

    def _needs_of(self, work: Work[P, R]) -> dict[str, float]:
        """What a worker takes of the cluster: a GPU if there is one, else CPUs."""
        there = self._ray.cluster_resources()
        if work.device == "cuda" and not there.get("GPU"):
            raise UsageError("`device` cuda: the cluster has no GPU")
        if work.device != "cpu" and there.get("GPU"):
            return {"num_gpus": 1, "num_cpus": 1}
        return {"num_cpus": work.threads}

    def _room(self, needs: Mapping[str, float]) -> int:
        """How many workers the cluster's nodes have room for."""
        nodes = [node["Resources"] for node in self._ray.nodes() if node["Alive"]]
        name = {"num_cpus": "CPU", "num_gpus": "GPU"}
        room = sum(
            min(int(node.get(name[kind], 0) // number) for kind, number in needs.items())
            for node in nodes
        )
        if not room:
            most = max((int(node.get("CPU", 0)) for node in nodes), default=0)
            raise UsageError(
                f"a worker takes {needs['num_cpus']:g} CPUs, as many as this process has threads, "
                f"but the cluster's largest node has {most}: set OMP_NUM_THREADS to fewer"
            )
        return room


@contextmanager
def opened_cluster(address: str, progress: Progress) -> Iterator[Cluster]:
    """A cluster, left at the end."""
    cluster = Cluster(address, progress)
    try:
        yield cluster
    finally:
        cluster.close()


@contextmanager
def joined_ray(address: str, folder: str = "") -> Iterator[Any]:
    """Ray, with this process in the cluster at that address, or with a new Ray, whose files go to a
    temporary folder or to `folder`; or the one that the program has already joined. Changes to the
    process are undone at the end."""
    names = {"RAY_USAGE_STATS_ENABLED": "0"}
    if not address:
        names |= {
            "RAY_AUTH_TOKEN": secrets.token_hex(32),  # required of all who speak to its ports
            "RAY_worker_niceness": "0",  # 15 would rank them behind everything else
            "RAY_gcs_rpc_server_reconnect_timeout_s": "10",  # 60: no head returns
        }
    with ExitStack() as held:
        held.enter_context(_environment(names))
        try:
            import ray
            from ray._private import ray_constants, worker
        except ModuleNotFoundError as error:
            raise MissingExtra(error.name or "ray", extra="ray") from error
        if ray.is_initialized():
            yield ray
            return
        joining: dict[str, Any] = {"address": address}
        if not address:
            folder = folder or held.enter_context(
                tempfile.TemporaryDirectory(prefix="kgbias-ray-", ignore_cleanup_errors=True)
            )
            joining = {
                "address": "local",
                "num_cpus": cores(),
                "include_dashboard": False,
                "object_store_memory": _OBJECTS,
                "_temp_dir": folder,
            }
            # As on macOS and Windows: keep all of its ports on the loopback interface.
            held.enter_context(_attribute(ray_constants, "ENABLE_RAY_CLUSTER", False))
        elif address != "auto":
            _reach(address)
        # Its messages about ended workers go to stdout, where results go.
        held.enter_context(_attribute(worker, "print_to_stdstream", lambda *_, **__: None))
        held.callback(_left, ray, signal.getsignal(signal.SIGTERM))
        try:
            ray.init(**joining, logging_level=logging.CRITICAL, log_to_driver=False)
        except (ConnectionError, RuntimeError, ValueError, ray.exceptions.RayError) as error:
            if not address:
                why = first_line(error)
                raise ModelError(f"Ray could not start on this machine: {why}") from error
            raise _no_cluster(address, error) from error
        yield ray


def _reach(address: str) -> None:
    """Raise ModelError if nothing listens at HOST:PORT; Ray itself takes minutes to say so."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=REACHED).close()
    except (OSError, ValueError, OverflowError) as error:
        raise _no_cluster(address, error) from error


def _no_cluster(address: str, error: Exception) -> ModelError:
    return ModelError(
        f"no Ray cluster at {address} ({first_line(error)}): give auto, or HOST:PORT of the head "
        "of a cluster that this machine belongs to"
    )


def _left(ray: Any, terminate: Any) -> None:
    """Leave a cluster, and restore the handling of SIGTERM: until now Ray made sure that its
    processes end with the program."""
    ray.shutdown()
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, terminate)


@contextmanager
def _environment(values: Mapping[str, str]) -> Iterator[None]:
    """Set these environment variables for a while; afterwards they are restored, even if Ray
    changed them."""
    before = dict(os.environ)
    os.environ.update(values)
    try:
        yield
    finally:
        for name in [name for name in os.environ if name.startswith("RAY_")]:
            del os.environ[name]
        os.environ.update({n: value for n, value in before.items() if n.startswith("RAY_")})


@contextmanager
def _attribute(of: Any, name: str, value: object) -> Iterator[None]:
    """Change a Ray setting that has no public name for a while."""
    before = getattr(of, name, None)
    setattr(of, name, value)
    try:
        yield
    finally:
        setattr(of, name, before)
