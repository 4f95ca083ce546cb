"""Threads that nobody waits for."""

from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import thread as pool


class Unawaited(ThreadPoolExecutor):
    """Threads that Python does not wait for at its exit: a look-up of a name that no server answers
    can take a minute, a request longer, whatever a person wants meanwhile."""

    def _adjust_thread_count(self) -> None:
        super()._adjust_thread_count()
        waited_for = getattr(pool, "_threads_queues", {})
        for thread in self._threads:
            waited_for.pop(thread, None)
