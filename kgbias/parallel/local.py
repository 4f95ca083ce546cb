"""Work in this process and in others of this machine.

The processes are fresh Python interpreters, so nothing of the caller's program runs again.
"""

import os
import pickle
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import IO, Any

from kgbias.io.sandbox import start_python
from kgbias.parallel.work import P, R, Work


def count_cores() -> int:
    """How many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def count_torch_threads() -> int:
    """How many threads torch uses in this process."""
    import torch

    return torch.get_num_threads()


class LocalExecutor:
    """Work in this many processes, including this one. They share the work's threads: a process
    with one thread gets more out of a core than a second thread of one process."""

    def __init__(self, processes: int = 1, notify: Callable[[str], None] = lambda _: None) -> None:
        self._processes, self._notify = processes, notify
        self._helpers: list[_HelperProcess] = []

    def close(self) -> None:
        """End the other processes."""
        for helper in self._helpers:
            helper.stop()
        self._helpers = []

    dismiss = close

    def run_pieces(
        self, work: Work[P, R], pieces: Sequence[P]
    ) -> Generator[tuple[int, R], None, None]:
        """See `kgbias.parallel.Executor`. The pieces of a process that ended are done here; a piece
        that cannot be done ends the work."""
        shared = _SharedPieces(work, pieces)
        threads = max(1, work.threads // self._processes)
        self._helpers = [helper for helper in self._helpers if helper.is_alive()]
        while len(self._helpers) < min(self._processes, len(pieces)) - 1:
            self._helpers.append(_HelperProcess(threads))
        threads_of_helpers = [
            threading.Thread(target=helper.do_pieces, args=[shared], daemon=True)
            for helper in self._helpers[: max(0, len(pieces) - 1)]
        ]
        remaining = len(pieces)
        with using_threads(threads):
            try:
                for thread in threads_of_helpers:
                    thread.start()
                work.open()
                while remaining:
                    number = shared.take()
                    if number is not None:
                        yield number, work(pieces[number])
                        remaining -= 1
                    while remaining and (number is None or not shared.results.empty()):
                        try:
                            # Not for ever: of a process that ended, no result comes.
                            yield shared.results.get(timeout=0.2)
                            remaining -= 1
                        except queue.Empty:
                            if shared.lost_pieces or not any(
                                thread.is_alive() for thread in threads_of_helpers
                            ):
                                break
            finally:
                if remaining:  # nobody waits for the others' pieces
                    self.close()
                for killed in [helper for helper in self._helpers if helper.ending]:
                    self._notify(f"{killed.ending}: its part is done by this one")
                    self._helpers.remove(killed)


class _SharedPieces:
    """The pieces of one call, which all processes take from."""

    def __init__(self, work: Work[Any, Any], pieces: Sequence[Any]) -> None:
        self.work, self.pieces = work, pieces
        self.results: queue.SimpleQueue[tuple[int, Any]] = queue.SimpleQueue()
        self.lost_pieces: list[int] = []  # in the hands of processes that ended
        self._remaining = iter(range(len(pieces)))
        self._lock = threading.Lock()

    def take(self, *, lost: bool = True) -> int | None:
        """The number of the next piece to do."""
        with self._lock:
            number = next(self._remaining, None)
            return (
                self.lost_pieces.pop() if number is None and lost and self.lost_pieces else number
            )


class _HelperProcess:
    """Another process, which is handed pieces."""

    def __init__(self, threads: int) -> None:
        self._process = start_python(
            "kgbias.parallel.local",
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={"OMP_NUM_THREADS": str(threads)},
        )
        self._work: object = None  # what it has open
        self.ending = ""  # how it was ended, if by somebody else
        self._request_lock = threading.Lock()

    def is_alive(self) -> bool:
        return self._process.poll() is None

    def stop(self) -> None:
        self._process.kill()
        with self._request_lock:  # whoever waits for its answer will see that it ended
            for pipe in (self._process.stdin, self._process.stdout):
                if pipe:
                    with suppress(BrokenPipeError):
                        pipe.close()
        self._process.wait()

    def do_pieces(self, share: _SharedPieces) -> None:
        """Do pieces until none are left."""
        number = None
        with self._request_lock:
            try:
                if self._work is not share.work:
                    self._ask((True, share.work))  # until it is ready, the others take the pieces
                    self._work = share.work
                while (number := share.take(lost=False)) is not None:
                    share.results.put((number, self._ask((False, share.pieces[number]))))
            except (OSError, EOFError, ValueError, pickle.UnpicklingError):
                self.ending = describe_ending(self._process)
                self._process.kill()
                if number is not None:
                    share.lost_pieces.append(number)

    def _ask(self, message: tuple[bool, object]) -> Any:
        request_pipe, reply_pipe = self._process.stdin, self._process.stdout
        assert request_pipe and reply_pipe
        _write_pickle(message, request_pipe)
        return pickle.load(reply_pipe)


def describe_ending(process: "subprocess.Popen[bytes]") -> str:
    """How a process that no longer answers was ended, as the system does where memory runs out;
    "" if it ended by itself, for then what it could not do is an error here too."""
    with suppress(subprocess.TimeoutExpired):
        code = process.wait(_MAX_ENDING_SECONDS)  # its pipes close before it is gone
        return f"another process was killed by signal {-code}" if code < 0 else ""
    return ""


_MAX_ENDING_SECONDS = 5.0


def _write_pickle(value: object, pipe: IO[bytes]) -> None:
    pickle.dump(value, pipe)
    pipe.flush()


@contextmanager
def using_threads(threads: int) -> Iterator[None]:
    """Let torch use this many threads."""
    import torch

    previous = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        yield
    finally:
        torch.set_num_threads(previous)


@contextmanager
def keeping_threads() -> Iterator[None]:
    """Let torch use as many threads afterwards as before, whatever happens inside: Numba sets the
    number for all who share its OpenMP, as it starts."""
    torch = sys.modules.get("torch")
    if torch is None:
        yield
        return
    with using_threads(torch.get_num_threads()):
        yield


def serve_pieces() -> None:
    """Read pickled work to open and pieces to do from stdin, and write the results. If something
    cannot be done, the process ends: its caller tries it itself, and says why."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the caller, who ends this process
    output = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints must not get between the answers
    work: Any = None
    with using_threads(int(os.environ["OMP_NUM_THREADS"])):
        while True:
            try:
                is_work, message = pickle.load(sys.stdin.buffer)
                if is_work:
                    work = message
                _write_pickle(work.open() if is_work else work(message), output)
            except Exception:
                return


if __name__ == "__main__":
    serve_pieces()
