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
from typing import Any, NamedTuple

from kgbias import errors
from kgbias.errors import KgbiasError, MissingExtra, ModelError, UsageError, first_line
from kgbias.io.caller_state import wait_passively
from kgbias.io.progress import Progress
from kgbias.io.resources import __version__
from kgbias.parallel.local import count_cores
from kgbias.parallel.work import P, R, Work

MAX_ATTEMPTS = 3  # at a piece, of one worker
_RETRY_SECONDS = 0.5  # seconds before the next attempt


@dataclass(frozen=True, slots=True)
class PieceFailure:
    """Why a piece was not done, as text, since an error may not survive being pickled. `is_final`:
    no other piece can be done either."""

    kind: str
    message: str
    is_final: bool

    @classmethod
    def from_error(cls, error: Exception, final: bool = False) -> "PieceFailure":
        if isinstance(error, KgbiasError):
            return cls(type(error).__name__, str(error), final)
        return cls("", f"{type(error).__name__}: {first_line(error)}", final)

    def as_error(self) -> KgbiasError:
        kind = {"DataError": errors.DataError, "UsageError": errors.UsageError}
        return kind.get(self.kind, ModelError)(self.message)


class PieceOutcome(NamedTuple):
    """The number of a piece, with its result, or why it was not done."""

    number: int
    result: Any = None
    failure: PieceFailure | None = None


def pack_work(work: Work[Any, Any]) -> bytes:
    """Work as it is sent, and what it must be when opened."""
    return pickle.dumps((__version__, work.version, work))


class RayWorker:
    """Does pieces of work. The packed work is sent with each piece, and opened when it is new."""

    def __init__(self) -> None:
        self._packed_work = b""
        self._work: Any = None
        self._failure: PieceFailure | None = None

    def failure(self, work: bytes) -> PieceFailure | None:
        """Why no piece of the work can be done; None if it is open."""
        if work != self._packed_work:
            self._failure = None
            try:
                self._work = _open_work(work)
            except Exception as error:
                self._failure = PieceFailure.from_error(error, final=True)
            self._packed_work = work
        return self._failure

    def do(self, number: int, piece: bytes, work: bytes) -> bytes:
        """The pickled outcome of a pickled piece."""
        return pickle.dumps(self._do_piece(number, piece, work))

    def _do_piece(self, number: int, piece: bytes, work: bytes) -> PieceOutcome:
        if failure := self.failure(work):
            return PieceOutcome(number, failure=failure)
        for attempts_left in reversed(range(MAX_ATTEMPTS)):
            try:
                return PieceOutcome(number, self._work(pickle.loads(piece)))
            except Exception as error:
                would_fail_again = isinstance(error, KgbiasError)
                if would_fail_again or not attempts_left:
                    return PieceOutcome(number, failure=PieceFailure.from_error(error))
                time.sleep(_RETRY_SECONDS)
        raise AssertionError("there is at least one attempt")


def _open_work(work: bytes) -> Work[Any, Any]:
    wait_passively()  # before anything imports torch
    unpacked: Work[Any, Any]
    version, wanted_version, unpacked = _unpack_work(work)
    found_version = unpacked.open()
    if torch := sys.modules.get("torch"):
        torch.set_num_threads(unpacked.threads)
    if (version, wanted_version) != (__version__, found_version):
        raise ModelError(
            f"a worker has kgbias {__version__} and {found_version}, not kgbias {version} and "
            f"{wanted_version}: install the same on all nodes"
        )
    return unpacked


def _unpack_work(work: bytes) -> Sequence[Any]:
    try:
        unpacked: Sequence[Any] = pickle.loads(work)
        return unpacked
    except (AttributeError, ImportError) as error:
        raise ModelError(
            f"a worker cannot open the work ({error}): install the same kgbias, with its extras, "
            "on all nodes"
        ) from error


_MAX_WORKER_DEATHS = 2  # workers that may end over one piece before it is given up
_MAX_WORKER_STARTS = 5  # attempts to start a worker that ends before it is ready
_QUEUED_PIECES = 2  # pieces given to a worker at once, so it need not wait for the next
MAX_CONNECT_SECONDS = 5.0  # seconds for a head to answer
_NOTICE_SECONDS = 30.0  # seconds without a worker before a line says what it waits for
_OBJECT_STORE_BYTES = 128 * 2**20  # bytes that our own Ray holds in memory; more go to disk


class RayCluster:
    """A Ray cluster, joined when there is work, or without an `address` a new Ray on this machine.
    A Ray that the program has already joined is used, and left as it is."""

    def __init__(self, address: str, progress: Progress) -> None:
        self._address, self._progress = address, progress
        self._resources = ExitStack()
        self._ray: Any = None
        self._workers: list[Any] = []
        self._worker_needs: dict[str, float] = {}  # what each worker takes of the cluster

    def close(self) -> None:
        """Leave the cluster; its workers end."""
        self.dismiss()
        self._ray = None
        self._resources.close()

    def dismiss(self) -> None:
        """End the workers."""
        for worker in self._workers:
            self._ray.kill(worker)
        self._workers = []

    def run_pieces(
        self, work: Work[P, R], pieces: Sequence[P]
    ) -> Generator[tuple[int, R], None, None]:
        """See `kgbias.parallel.Executor`. A piece is tried again if it failed or its worker ended;
        the others go on."""
        if work.device not in ("auto", "cpu", "cuda"):
            raise UsageError(
                f"`device` {work.device}: Ray gives each worker its GPU; choose auto, cpu or cuda"
            )
        if self._ray is None:
            self._ray = self._resources.enter_context(join_ray(self._address))
        failures: list[PieceFailure] = []
        for number, result, failure in self._iter_outcomes(work, pieces):
            if failure and failure.is_final:
                raise failure.as_error()
            if failure:
                failures.append(failure)
            else:
                yield number, result
        if failures:
            error = failures[0].as_error()
            note = f"{len(failures)} of {len(pieces)} pieces were not done; the others are kept"
            raise type(error)(f"{error} ({note})")

    def _iter_outcomes(self, work: Work[P, R], pieces: Sequence[P]) -> Iterator[PieceOutcome]:
        self._start_workers(work, len(pieces))
        packed_work = self._ray.put(pack_work(work))
        remaining = dict(enumerate(pieces))
        try:
            # The pieces of workers that ended are handed out again, one at a time, so a piece that
            # kills its worker takes no other with it.
            for queue_length in (_QUEUED_PIECES, 1):
                for number, outcome in self._hand_out(packed_work, dict(remaining), queue_length):
                    if outcome:
                        del remaining[number]
                        yield outcome
            for number in remaining:
                reason = "the workers ended, perhaps for lack of memory"
                yield PieceOutcome(number, failure=PieceFailure("", reason, is_final=False))
        except BaseException:  # they have pieces in hand
            self.dismiss()
            raise
        if remaining:
            self.dismiss()

    def _start_workers(self, work: Work[P, R], pieces: int) -> None:
        """Start the workers needed for this many pieces, unless they are there already."""
        needs = self._needs_per_worker(work)
        if needs != self._worker_needs:
            self.dismiss()
            self._worker_needs = needs
        start = self._ray.remote(RayWorker).options(
            **needs,
            max_restarts=-1,
            max_task_retries=_MAX_WORKER_DEATHS,
            # Ray's default fills one node before it uses the next.
            scheduling_strategy="SPREAD",
        )
        for _ in range(min(pieces, self._count_worker_slots(needs)) - len(self._workers)):
            self._workers.append(start.remote())

    def _hand_out(
        self, work: Any, pieces: Mapping[int, P], queue_length: int
    ) -> Iterator[tuple[int, PieceOutcome | None]]:
        """The number of each piece with its outcome, or None if its worker ended each time. Workers
        get `queue_length` pieces once they are ready: one that waits for room on a busy cluster
        would hold on to them."""
        ray, waiting, remaining = self._ray, iter(pieces.items()), len(pieces)
        if not remaining:
            return
        running: dict[Any, tuple[int | None, Any]] = {}

        def await_ready(worker: Any) -> None:
            request = worker.failure.options(max_task_retries=_MAX_WORKER_STARTS).remote(work)
            running[request] = None, worker

        for worker in self._workers[:remaining]:
            await_ready(worker)
        if not ray.wait(list(running), timeout=_NOTICE_SECONDS)[0]:
            self._progress.note("waiting for room on the cluster, or for models to load")
        while remaining and running:
            finished, _ = ray.wait(list(running))
            number, worker = running.pop(finished[0])
            outcome: PieceOutcome | None = None
            free_slots = 0
            try:
                reply = ray.get(finished[0])
            except ray.exceptions.ActorDiedError as error:  # it does not come back
                if number is None and not running:
                    raise ModelError(f"no worker could start: {first_line(error)}") from error
            except ray.exceptions.RayError as error:
                if number is None:
                    raise ModelError(f"a worker could not start: {first_line(error)}") from error
                await_ready(worker)
            else:
                if number is None and reply:
                    raise reply.as_error()
                outcome = None if number is None else pickle.loads(reply)
                free_slots = queue_length if number is None else 1
            for place, piece in islice(waiting, free_slots):
                running[worker.do.remote(place, pickle.dumps(piece), work)] = place, worker
            if number is not None:
                remaining -= 1
                yield number, outcome

    def _needs_per_worker(self, work: Work[P, R]) -> dict[str, float]:
        """What a worker takes of the cluster: a GPU if there is one, else CPUs."""
        resources = self._ray.cluster_resources()
        if work.device == "cuda" and not resources.get("GPU"):
            raise UsageError("`device` cuda: the cluster has no GPU")
        if work.device != "cpu" and resources.get("GPU"):
            return {"num_gpus": 1, "num_cpus": 1}
        return {"num_cpus": work.threads}

    def _count_worker_slots(self, needs: Mapping[str, float]) -> int:
        """How many workers the cluster's nodes have room for."""
        nodes = [node["Resources"] for node in self._ray.nodes() if node["Alive"]]
        name = {"num_cpus": "CPU", "num_gpus": "GPU"}
        slots = sum(
            min(int(node.get(name[kind], 0) // number) for kind, number in needs.items())
            for node in nodes
        )
        if not slots:
            max_cpus = max((int(node.get("CPU", 0)) for node in nodes), default=0)
            raise UsageError(
                f"a worker takes {needs['num_cpus']:g} CPUs, as many as this process has threads, "
                f"but the cluster's largest node has {max_cpus}: set OMP_NUM_THREADS to fewer"
            )
        return slots


@contextmanager
def open_cluster(address: str, progress: Progress) -> Iterator[RayCluster]:
    """A cluster, left at the end."""
    cluster = RayCluster(address, progress)
    try:
        yield cluster
    finally:
        cluster.close()


@contextmanager
def join_ray(address: str, folder: str = "") -> Iterator[Any]:
    """Ray, with this process in the cluster at that address, or with a new Ray, whose files go to a
    temporary folder or to `folder`; or the one that the program has already joined. Changes to the
    process are undone at the end."""
    variables = {"RAY_USAGE_STATS_ENABLED": "0"}
    if not address:
        variables |= {
            "RAY_AUTH_TOKEN": secrets.token_hex(32),  # required of all who speak to its ports
            "RAY_worker_niceness": "0",  # 15 would rank them behind everything else
            "RAY_gcs_rpc_server_reconnect_timeout_s": "10",  # 60: no head returns
        }
    with ExitStack() as resources:
        resources.enter_context(_set_environment(variables))
        try:
            import ray
            from ray._private import ray_constants, worker
        except ModuleNotFoundError as error:
            raise MissingExtra(error.name or "ray", extra="ray") from error
        if ray.is_initialized():
            yield ray
            return
        options: dict[str, Any] = {"address": address}
        if not address:
            folder = folder or resources.enter_context(
                tempfile.TemporaryDirectory(prefix="kgbias-ray-", ignore_cleanup_errors=True)
            )
            options = {
                "address": "local",
                "num_cpus": count_cores(),
                "include_dashboard": False,
                "object_store_memory": _OBJECT_STORE_BYTES,
                "_temp_dir": folder,
            }
            # As on macOS and Windows: keep all of its ports on the loopback interface.
            resources.enter_context(_set_attribute(ray_constants, "ENABLE_RAY_CLUSTER", False))
        elif address != "auto":
            _check_reachable(address)
        # Its messages about ended workers go to stdout, where results go.
        resources.enter_context(_set_attribute(worker, "print_to_stdstream", lambda *_, **__: None))
        resources.callback(_leave_ray, ray, signal.getsignal(signal.SIGTERM))
        try:
            ray.init(**options, logging_level=logging.CRITICAL, log_to_driver=False)
        except (ConnectionError, RuntimeError, ValueError, ray.exceptions.RayError) as error:
            if not address:
                reason = first_line(error)
                raise ModelError(f"Ray could not start on this machine: {reason}") from error
            raise _no_cluster_error(address, error) from error
        yield ray


def _check_reachable(address: str) -> None:
    """Raise ModelError if nothing listens at HOST:PORT; Ray itself takes minutes to say so."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=MAX_CONNECT_SECONDS).close()
    except (OSError, ValueError, OverflowError) as error:
        raise _no_cluster_error(address, error) from error


def _no_cluster_error(address: str, error: Exception) -> ModelError:
    return ModelError(
        f"no Ray cluster at {address} ({first_line(error)}): give auto, or HOST:PORT of the head "
        "of a cluster that this machine belongs to"
    )


def _leave_ray(ray: Any, terminate: Any) -> None:
    """Leave a cluster, and restore the handling of SIGTERM: until now Ray made sure that its
    processes end with the program."""
    ray.shutdown()
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, terminate)


@contextmanager
def _set_environment(values: Mapping[str, str]) -> Iterator[None]:
    """Set these environment variables for a while; afterwards they are restored, even if Ray
    changed them."""
    previous = dict(os.environ)
    os.environ.update(values)
    try:
        yield
    finally:
        for name in [name for name in os.environ if name.startswith("RAY_")]:
            del os.environ[name]
        os.environ.update({n: value for n, value in previous.items() if n.startswith("RAY_")})


@contextmanager
def _set_attribute(target: Any, name: str, value: object) -> Iterator[None]:
    """Change a Ray setting that has no public name for a while."""
    previous = getattr(target, name, None)
    setattr(target, name, value)
    try:
        yield
    finally:
        setattr(target, name, previous)
