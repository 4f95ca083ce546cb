"""Work in this process and in others of this machine.

The processes are Python's own interpreters started anew, so that nothing of the caller's program is
run again.
"""

import os
import pickle
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import IO, Any

from kgbias.parallel import P, R, Work

_Done = queue.SimpleQueue[tuple[int, Any]]


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
    """Work in so many processes, of which this is one."""

    def __init__(self, processes: int = 1) -> None:
        self._processes = processes

    def each(self, work: Work[P, R], pieces: Sequence[P]) -> Generator[tuple[int, R], None, None]:
        """See `kgbias.parallel.Executor`. What a process that ended had in hand is done here; a
        piece that cannot be done ends the work."""
        with ExitStack() as held:
            held.enter_context(using_threads(work.threads))
            waiting = iter(enumerate(pieces))
            done: _Done = queue.SimpleQueue()
            lock = threading.Lock()
            lost: list[int] = []
            helpers = [
                held.enter_context(_Helper(work, waiting, lock, done, lost))
                for _ in range(self._processes - 1)
            ]
            left = len(pieces)
            while left:
                with lock:
                    number = next((n for n, _ in waiting), None)
                    if number is None and lost:
                        number = lost.pop()
                if number is not None:
                    yield number, work(pieces[number])
                    left -= 1
                while left and (number is None or not done.empty()):
                    try:
                        yield done.get(timeout=0.2)
                        left -= 1
                    except queue.Empty:
                        if lost or not any(h.is_alive() for h in helpers):
                            break


class _Helper(threading.Thread):
    """A process of its own, and the thread that hands it pieces."""

    def __init__(
        self,
        work: Work[Any, Any],
        waiting: Iterator[tuple[int, Any]],
        lock: threading.Lock,
        done: _Done,
        lost: list[int],
    ) -> None:
        super().__init__(daemon=True)
        self._waiting, self._lock, self._done, self._lost = waiting, lock, done, lost
        self._process = subprocess.Popen(
            [sys.executable, "-m", "kgbias.parallel.local"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={
                **os.environ,
                "OMP_NUM_THREADS": str(work.threads),
                "PYTHONPATH": os.pathsep.join(sys.path),  # this kgbias, not another
            },
        )
        self._work = work

    def __enter__(self) -> "_Helper":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self.join()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe:
                pipe.close()
        self._process.wait()

    def run(self) -> None:
        ask, answer = self._process.stdin, self._process.stdout
        assert ask and answer
        number = None
        try:
            _put(self._work, ask)
            pickle.load(answer)  # it is ready; until then the others take what there is
            while True:
                with self._lock:
                    number, piece = next(self._waiting, (None, None))
                if number is None:
                    return
                _put(piece, ask)
                self._done.put((number, pickle.load(answer)))
        except (OSError, EOFError, ValueError, pickle.UnpicklingError):
            if number is not None:
                with self._lock:
                    self._lost.append(number)


def _put(value: object, pipe: IO[bytes]) -> None:
    pickle.dump(value, pipe)
    pipe.flush()


@contextmanager
def using_threads(number: int) -> Iterator[None]:
    """torch with so many threads."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(number)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def main() -> None:
    """Reads work and then pieces from stdin, each pickled, and writes what is made of them."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the caller's, who ends this process
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints must not stand between the answers
    try:
        work = pickle.load(sys.stdin.buffer)
        with using_threads(work.threads):
            work.open()
            _put("ready", out)
            while True:
                _put(work(pickle.load(sys.stdin.buffer)), out)
    except (EOFError, BrokenPipeError):
        return


if __name__ == "__main__":
    main()
