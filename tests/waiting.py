"""Waiting for another process, a server or a page. No test asserts how long anything takes: what a
limit of time would stand for is counted (requests, tokens, rows). What would hang is ended."""

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TypeVar

T = TypeVar("T")

DEADLINE_SECONDS = 300.0
"""Seconds after which a test that waits is taken to hang: far longer than anything takes, on a
machine that is slow or busy too."""


def wait_until(poll: Callable[[], T], every: float = 0.02) -> T:
    """What is found, as soon as it is true."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not (value := poll()):
        if time.monotonic() > deadline:
            raise TimeoutError(f"still {value!r} after {DEADLINE_SECONDS:g} s")
        time.sleep(every)
    return value


class Hang(BaseException):
    """What does not come back. (Not an Exception: nothing that is tested may catch it.)"""


@contextmanager
def end_hangs() -> Iterator[None]:
    """End what takes longer than the deadline, in the main thread."""

    def late(_: int, __: FrameType | None) -> None:
        raise Hang(f"no end after {DEADLINE_SECONDS:g} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, DEADLINE_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
