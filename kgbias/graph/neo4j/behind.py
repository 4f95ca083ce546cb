"""Writes behind the back of who prepares them: a server writes one batch on one core, and waits for
its disk at the end of each, so that two at once keep it busy."""

import threading
from collections import deque
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from queue import SimpleQueue

AT_ONCE = 2  # more gain nothing: a client prepares no faster than two are written


class Behind:
    """Does things in threads, while the next ones are prepared: so many at once, begun in their
    order. What was begun when the program is stopped may or may not be done."""

    def __init__(self, at_once: int = AT_ONCE) -> None:
        self._at_once = at_once
        self._begun: deque[SimpleQueue[Exception | None]] = deque()

    def do(self, work: Callable[[], None]) -> None:
        """Begin, when there is room. Raises what something raised that was begun before, when all
        that was begun is done."""
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
        """Wait for what was begun. Raises the first thing that it raised."""
        self._leave(0)

    def _leave(self, most: int) -> None:
        while len(self._begun) > most:
            if (error := self._begun.popleft().get()) is not None:
                while self._begun:
                    self._begun.popleft().get()
                raise error


class Claims:
    """What the writers of one load are creating, so that none creates what another does."""

    def __init__(self) -> None:
        self._held: set[str] = set()
        self._made: deque[frozenset[str]] = deque(maxlen=AT_ONCE)
        self._changed = threading.Condition()

    @contextmanager
    def held(self, uids: Collection[str]) -> Iterator[bool]:
        """Hold these, which somebody looked for and did not find, while they are created. False,
        when nobody holds them, where somebody did since: then they may be there."""
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
