"""Writes behind the back of who prepares them."""

import threading

import pytest

from kgbias.graph.neo4j.crawls import AT_ONCE, Behind, Claims
from tests.waiting import DEADLINE


def test_so_many_at_once_and_no_more() -> None:
    behind, going, most = Behind(), 0, 0
    lock, together = threading.Lock(), threading.Barrier(AT_ONCE, timeout=DEADLINE)

    def work() -> None:
        nonlocal going, most
        with lock:
            going += 1
            most = max(most, going)
        together.wait()  # which they only pass where all of them are begun
        with lock:
            going -= 1

    for _ in range(3 * AT_ONCE):
        behind.do(work)
    behind.wait()
    assert (going, most) == (0, AT_ONCE)


def test_the_first_error_is_raised_when_the_others_are_done() -> None:
    behind, failed, done = Behind(), threading.Event(), []

    def fail() -> None:
        failed.set()
        raise ValueError("first")

    def end() -> None:
        failed.wait(10)
        done.append("second")

    behind.do(fail)
    behind.do(end)
    with pytest.raises(ValueError, match="first"):
        behind.do(lambda: done.append("third"))
    assert done == ["second"]
    behind.wait()


def test_what_somebody_creates_is_not_claimed_by_another() -> None:
    claims = Claims()
    told: list[bool] = []

    def claim(*uids: str) -> None:
        with claims.held(uids) as free:
            told.append(free)

    with claims.held(("a", "b")) as free:
        assert free
        claim("c", "d")
        assert told == [True]
        other = threading.Thread(target=claim, args=("b", "e"))
        other.start()
        other.join(0.05)
        assert other.is_alive()  # it waits
    other.join(10)
    assert told == [True, False]
    claim("b")  # looked for before it was made
    claim("e")
    assert told == [True, False, False, True]
