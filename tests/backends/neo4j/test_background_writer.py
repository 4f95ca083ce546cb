"""Writes behind the back of who prepares them."""

import threading

import pytest

from kgbias.backends.neo4j.crawls import MAX_WRITERS, BackgroundWriter, WriteLocks
from tests.waiting import DEADLINE_SECONDS


def test_so_many_at_once_and_no_more() -> None:
    behind, going, most = BackgroundWriter(), 0, 0
    lock, together = threading.Lock(), threading.Barrier(MAX_WRITERS, timeout=DEADLINE_SECONDS)

    def work() -> None:
        nonlocal going, most
        with lock:
            going += 1
            most = max(most, going)
        together.wait()  # which they only pass where all of them are begun
        with lock:
            going -= 1

    for _ in range(3 * MAX_WRITERS):
        behind.start(work)
    behind.wait()
    assert (going, most) == (0, MAX_WRITERS)


def test_the_first_error_is_raised_when_the_others_are_done() -> None:
    behind, failed, done = BackgroundWriter(), threading.Event(), []

    def fail() -> None:
        failed.set()
        raise ValueError("first")

    def end() -> None:
        failed.wait(DEADLINE_SECONDS)
        done.append("second")

    behind.start(fail)
    behind.start(end)
    with pytest.raises(ValueError, match="first"):
        behind.start(lambda: done.append("third"))
    assert done == ["second"]
    behind.wait()


def test_what_somebody_creates_is_not_claimed_by_another() -> None:
    claims = WriteLocks()
    told: list[bool] = []

    def claim(*uids: str) -> None:
        with claims.lock(uids) as free:
            told.append(free)

    with claims.lock(("a", "b")) as free:
        assert free
        claim("c", "d")
        assert told == [True]
        other = threading.Thread(target=claim, args=("b", "e"))
        other.start()
        other.join(0.05)
        assert other.is_alive()  # it waits
    other.join(DEADLINE_SECONDS)
    assert told == [True, False]
    claim("b")  # looked for before it was made
    claim("e")
    assert told == [True, False, False, True]
