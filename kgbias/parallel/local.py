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
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import IO, Any

from kgbias.io.sandbox import start_python
from kgbias.parallel.work import P, R, Work


def cores() -> int:
    """How many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def own_threads() -> int:
    """How many threads torch uses in this process."""
    import torch

    return torch.get_num_threads()


class Local:
    """Work in this many processes, including this one. They share the work's threads: a process
    with one thread gets more out of a core than a second thread of one process."""

    def __init__(self, processes: int = 1) -> None:
        self._processes = processes
        self._helpers: list[_Helper] = []

    def close(self) -> None:
        """End the other processes."""
        for helper in self._helpers:
            helper.end()
        self._helpers = []

    dismiss = close

    def each(self, work: Work[P, R], pieces: Sequence[P]) -> Generator[tuple[int, R], None, None]:
        """See `kgbias.parallel.Executor`. The pieces of a process that ended are done here; a piece
        that cannot be done ends the work."""
        share = _Share(work, pieces)
        threads = max(1, work.threads // self._processes)
        self._helpers = [helper for helper in self._helpers if helper.lives()]
        while len(self._helpers) < min(self._processes, len(pieces)) - 1:
            self._helpers.append(_Helper(threads))
        handing = [
            threading.Thread(target=helper.help, args=[share], daemon=True)
            for helper in self._helpers[: max(0, len(pieces) - 1)]
        ]
        left = len(pieces)
        with using_threads(threads):
            try:
                for thread in handing:
                    thread.start()
                work.open()
                while left:
                    number = share.take()
                    if number is not None:
                        yield number, work(pieces[number])
                        left -= 1
                    while left and (number is None or not share.done.empty()):
                        try:
                            yield share.done.get(timeout=0.2)
                            left -= 1
                        except queue.Empty:
                            if share.lost or not any(thread.is_alive() for thread in handing):
                                break
            finally:
                if left:  # nobody waits for the others' pieces
                    self.close()


class _Share:
    """The pieces of one call, which all processes take from."""

    def __init__(self, work: Work[Any, Any], pieces: Sequence[Any]) -> None:
        self.work, self.pieces = work, pieces
        self.done: queue.SimpleQueue[tuple[int, Any]] = queue.SimpleQueue()
        self.lost: list[int] = []  # in the hands of processes that ended
        self._waiting = iter(range(len(pieces)))
        self._lock = threading.Lock()

    def take(self, *, lost: bool = True) -> int | None:
        """The number of the next piece to do."""
        with self._lock:
            number = next(self._waiting, None)
            return self.lost.pop() if number is None and lost and self.lost else number


class _Helper:
    """Another process, which is handed pieces."""

    def __init__(self, threads: int) -> None:
        self._process = start_python(
            "kgbias.parallel.local",
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={"OMP_NUM_THREADS": str(threads)},
        )
        self._work: object = None  # what it has open
        self._asking = threading.Lock()

    def lives(self) -> bool:
        return self._process.poll() is None

    def end(self) -> None:
        self._process.kill()
        with self._asking:  # whoever waits for its answer will see that it ended
            for pipe in (self._process.stdin, self._process.stdout):
                if pipe:
                    with suppress(BrokenPipeError):
                        pipe.close()
        self._process.wait()

    def help(self, share: _Share) -> None:
        """Do pieces until none are left."""
        number = None
        with self._asking:
            try:
                if self._work is not share.work:
                    self._asked((True, share.work))  # until it is ready, the others take the pieces
                    self._work = share.work
                while (number := share.take(lost=False)) is not None:
                    share.done.put((number, self._asked((False, share.pieces[number]))))
            except (OSError, EOFError, ValueError, pickle.UnpicklingError):
                self._process.kill()
                if number is not None:
                    share.lost.append(number)

    def _asked(self, message: tuple[bool, object]) -> Any:
        ask, answer = self._process.stdin, self._process.stdout
        assert ask and answer
        _put(message, ask)
        return pickle.load(answer)


def _put(value: object, pipe: IO[bytes]) -> None:
    pickle.dump(value, pipe)
    pipe.flush()


@contextmanager
def using_threads(number: int) -> Iterator[None]:
    """Let torch use this many threads."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(number)
    try:
        yield
    finally:
        torch.set_num_threads(before)


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


def main() -> None:
    """Read pickled work to open and pieces to do from stdin, and write the results. If something
    cannot be done, the process ends: its caller tries it itself, and says why."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the caller, who ends this process
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints must not get between the answers
    work: Any = None
    with using_threads(int(os.environ["OMP_NUM_THREADS"])):
        while True:
            try:
                new, message = pickle.load(sys.stdin.buffer)
                if new:
                    work = message
                _put(work.open() if new else work(message), out)
            except Exception:
                return


if __name__ == "__main__":
    main()
