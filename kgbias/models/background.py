"""An event loop in a thread, and a gate that limits how much is under way in it."""

import asyncio
import queue
import threading
import time
from collections.abc import Callable, Coroutine, Generator
from contextlib import suppress
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Background:
    """An event loop in a separate thread, from the first `run` until `close`."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None

    def run(self, work: Callable[["Stream[T]"], Coroutine[Any, Any, None]]) -> "Stream[T]":
        """Start `work` in the loop; what it puts on its stream can be read here."""
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            threading.Thread(target=self._loop.run_forever, daemon=True).start()
        stream: Stream[T] = Stream()
        stream.task = asyncio.run_coroutine_threadsafe(stream.follow(work), self._loop)
        return stream

    def close(self, last: Coroutine[Any, Any, None] | None = None) -> None:
        """Run `last`, for half a second at most, and stop the loop."""
        if self._loop is None:
            return
        if last is not None:
            with suppress(TimeoutError):
                asyncio.run_coroutine_threadsafe(last, self._loop).result(timeout=0.5)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._loop = None


class Stream(Generic[T]):
    """The output of work in the background, in lists of everything since the last list."""

    def __init__(self) -> None:
        self.task: Any = None
        # Not queue.Queue: Ctrl-C at the wrong moment leaves its lock broken.
        self._items: queue.SimpleQueue[T | BaseException | None] = queue.SimpleQueue()
        self._ended = threading.Event()

    def put(self, item: T) -> None:
        self._items.put(item)

    async def follow(self, work: Callable[["Stream[T]"], Coroutine[Any, Any, None]]) -> None:
        try:
            await work(self)
        except asyncio.CancelledError:
            pass
        except BaseException as error:
            self._items.put(_first(error))
        finally:
            self._items.put(None)
            self._ended.set()

    def batches(self) -> Generator[list[T], None, None]:
        """Yield until the work has ended; raise its error. On Ctrl-C, hand over what was done, then
        raise. Closing the generator, like any other ending, cancels what is still under way."""
        taken: list[T | BaseException | None] = []
        interrupt: KeyboardInterrupt | None = None
        try:
            while interrupt is None and None not in taken:
                taken.clear()
                try:
                    self._take(taken)
                except KeyboardInterrupt as stop:
                    interrupt = stop
                    self.stop()
                    self._take(taken, wait=False)
                done = [i for i in taken if i is not None and not isinstance(i, BaseException)]
                if done:
                    yield done
                for item in taken:
                    if isinstance(item, BaseException):
                        raise item
            if interrupt is not None:
                raise interrupt
        finally:
            self.stop()

    def stop(self) -> None:
        """Cancel what is under way, and wait up to a second for it."""
        if not self._ended.is_set():
            self.task.cancel()
            self._ended.wait(timeout=1.0)

    def _take(self, taken: list[T | BaseException | None], *, wait: bool = True) -> None:
        """Take everything available, after waiting for one item if asked."""
        if wait:
            taken.append(self._items.get())
        while True:
            try:
                taken.append(self._items.get_nowait())
            except queue.Empty:
                return


class Gate:
    """A limit on how many are under way: halved when the server is busy, grown as it answers."""

    def __init__(self, most: int, notify: Callable[[str], None]) -> None:
        self._most = most
        self._limit = float(most)
        self._active = 0
        self._changed = asyncio.Condition()
        self._quiet_until = 0.0
        self._notify = notify

    async def __aenter__(self) -> None:
        async with self._changed:
            await self._changed.wait_for(lambda: self._active < max(1, int(self._limit)))
            self._active += 1

    async def __aexit__(self, *_: object) -> None:
        async with self._changed:
            self._active -= 1
            self._changed.notify_all()

    def grow(self) -> None:
        self._limit = min(self._most, self._limit + 1 / self._limit)

    def shrink(self, wait: float) -> None:
        """Halve, at most once while the busy answers last."""
        now = time.monotonic()
        if now >= self._quiet_until:
            self._limit = max(1.0, self._limit / 2)
            self._quiet_until = now + max(1.0, wait)
            self._notify(f"the server is busy: {int(self._limit)} at a time, waiting {wait:.0f} s")


def _first(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
