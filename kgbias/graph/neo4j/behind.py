"""Writes in the background, while the next ones are prepared: a server writes a batch on one core
and waits for its disk at the end of each, so two at once keep it busy."""

import threading
from collections import deque
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from queue import SimpleQueue

AT_ONCE = 2  # more gains nothing: a client prepares batches no faster than two are written


class Behind:
    """Does work in threads while more is prepared: `at_once` pieces at a time, begun in order. If
    the program is stopped, work that was begun may or may not be done."""

    def __init__(self, at_once: int = AT_ONCE) -> None:
        self._at_once = at_once
        self._begun: deque[SimpleQueue[Exception | None]] = deque()

    def do(self, work: Callable[[], None]) -> None:
        """Begin work as soon as there is room. If earlier work raised an error, raise it once all
        begun work has ended."""
        self._leave(self._at_once - 1)
        outcome: SimpleQueue[Exception | None] = SimpleQueue()

        def run() -> None:
            try:
                work()
            except Exception as error:
                outcome.put(error)
            else:
                outcome.put(None)

        threading.Thread(target=run, daemon=True).start()
        self._begun.append(outcome)

    def wait(self) -> None:
        """Wait for all begun work. Raises the first error in it."""
        self._leave(0)

    def _leave(self, most: int) -> None:
        while len(self._begun) > most:
            if (error := self._begun.popleft().get()) is not None:
                while self._begun:
                    self._begun.popleft().get()
                raise error


class Claims:
    """What the writers of one load are creating: none may create what another is creating."""

    def __init__(self) -> None:
        self._held: set[str] = set()
        self._made: deque[frozenset[str]] = deque(maxlen=AT_ONCE)
        self._changed = threading.Condition()

    @contextmanager
    def held(self, uids: Collection[str]) -> Iterator[bool]:
        """Hold these, which were looked for and not found, while they are created. False, once
        nobody holds them, if somebody has held them since the look-up: then they may exist."""
        with self._changed:
            free = all(made.isdisjoint(uids) for made in (self._held, *self._made))
            if free:
                self._held.update(uids)
            else:
                self._changed.wait_for(lambda: self._held.isdisjoint(uids))
        try:
            yield free
        finally:
            if free:
                with self._changed:
                    self._held.difference_update(uids)
                    self._made.append(frozenset(uids))
                    self._changed.notify_all()
