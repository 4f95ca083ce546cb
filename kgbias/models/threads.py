"""Threads that nobody waits for."""

from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import thread as pool


class UnawaitedThreads(ThreadPoolExecutor):
    """Threads that Python does not wait for at its exit: a look-up of a name that no server answers
    can take a minute, a request longer, whatever a person wants meanwhile."""

    def _adjust_thread_count(self) -> None:
        super()._adjust_thread_count()
        # At its exit, Python joins the threads in this table of its own.
        awaited_threads = getattr(pool, "_threads_queues", {})
        for thread in self._threads:
            awaited_threads.pop(thread, None)
