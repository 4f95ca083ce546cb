"""Scoring in several processes, one thread each: at the sizes of a statement, two threads of one
process gain nothing over one.

The work is cut into pieces that do not depend on how many processes there are, and a piece is read
as a whole by one of them: so the scores are the same, bit for bit, with any number. The processes
are Python's own interpreters started anew, so that nothing of the caller's program is run again.
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
from typing import IO

from kgbias.measure.scorers._base import Judgement
from kgbias.measure.scorers._together import Joined, judge

PIECE = 1024  # statements
_WORTH = 2048  # statements for each process: below, starting one takes longer than it saves

Judged = tuple[int, list[list[Judgement]]]


def processes_for(statements: int, wanted: int | None = None) -> int:
    """How many processes score so many statements: those wanted, or one for each core that this
    process may use, where there is enough for each."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    pieces = -(-statements // PIECE)
    return max(1, min(wanted or min(cores or 1, statements // _WORTH), pieces))


def judged(
    scorers: Sequence[Joined], pieces: Sequence[Sequence[str]], processes: int
) -> Generator[Judged, None, None]:
    """The number of each piece with what each scorer says of its texts, as they are done."""
    with ExitStack() as held:
        held.enter_context(_one_thread())
        waiting = iter(enumerate(pieces))
        done: queue.SimpleQueue[Judged] = queue.SimpleQueue()
        lock = threading.Lock()
        lost: list[int] = []
        helpers = [
            held.enter_context(_Helper(scorers, pieces, waiting, lock, done, lost))
            for _ in range(processes - 1)
        ]
        left = len(pieces)
        while left:
            with lock:
                number = next((n for n, _ in waiting), None)
                if number is None and lost:
                    number = lost.pop()  # what a process that ended had in hand
            if number is not None:
                yield number, judge(scorers, pieces[number])
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
        scorers: Sequence[Joined],
        pieces: Sequence[Sequence[str]],
        waiting: Iterator[tuple[int, Sequence[str]]],
        lock: threading.Lock,
        done: "queue.SimpleQueue[Judged]",
        lost: list[int],
    ) -> None:
        super().__init__(daemon=True)
        self._waiting, self._lock, self._done, self._lost = waiting, lock, done, lost
        self._process = subprocess.Popen(
            [sys.executable, "-m", "kgbias.measure.workers"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={
                **os.environ,
                "OMP_NUM_THREADS": "1",
                "PYTHONPATH": os.pathsep.join(sys.path),  # this kgbias, not another
            },
        )
        self._scorers = list(scorers)

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
            _put(self._scorers, ask)
            pickle.load(answer)  # it is ready; until then the others take what there is
            while True:
                with self._lock:
                    number, texts = next(self._waiting, (None, None))
                if number is None:
                    return
                _put(list(texts or ()), ask)
                self._done.put((number, pickle.load(answer)))
        except (OSError, EOFError, ValueError, pickle.UnpicklingError):
            if number is not None:
                with self._lock:
                    self._lost.append(number)


def _put(value: object, pipe: IO[bytes]) -> None:
    pickle.dump(value, pipe)
    pipe.flush()


@contextmanager
def _one_thread() -> Iterator[None]:
    """torch with one thread, as in the other processes."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def main() -> None:
    """Reads scorers and then pieces from stdin, each pickled, and writes what they say."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the caller's, who ends this process
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints must not stand between the answers
    try:
        scorers = pickle.load(sys.stdin.buffer)
        with _one_thread():
            pickle.dump("ready", out)
            out.flush()
            while True:
                pickle.dump(judge(scorers, pickle.load(sys.stdin.buffer)), out)
                out.flush()
    except (EOFError, BrokenPipeError):
        return


if __name__ == "__main__":
    main()
