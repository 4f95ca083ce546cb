"""Work spread over workers behind one interface: this process, processes of this machine (`local`),
or what backends add (`executors`), such as a Ray cluster.

Whoever knows the work says what is done with a piece (`Work`), and cuts it into pieces in a way
that does not depend on who does them; one worker does a whole piece. So the results are the same,
bit for bit, wherever they were computed. Results arrive as they are done, and the caller, alone,
keeps each at once: what is kept is the checkpoint, from which the same call continues. A worker
that is lost leaves its pieces to others or, at worst, to the next call.

Workers live as long as their executor and open the work that they are handed, so a model is loaded
once, whatever it is asked. A worker that opens another version than the one asked for does nothing.

Held by tests/integration/test_measure_processes.py and, of Ray, tests/backends/ray/integration.
"""

from collections.abc import Iterator
from contextlib import closing, contextmanager

from kgbias.errors import UsageError
from kgbias.io.progress import Progress, SilentProgress
from kgbias.parallel.work import LOCAL_EXECUTOR as LOCAL_EXECUTOR
from kgbias.parallel.work import Executor as Executor
from kgbias.parallel.work import Work as Work


def check_executor(spec: str, processes: int | None = None) -> None:
    """Raise UsageError for an unknown executor, or a number of processes that it cannot have (None:
    its own number), PluginError for one that cannot be used; does not try to reach it."""
    kind, slashes, address = spec.partition("://")
    if spec != LOCAL_EXECUTOR:
        from kgbias.parallel.executors import EXECUTORS

        if kind not in EXECUTORS or bool(slashes) != bool(address):
            kinds = EXECUTORS.usable_entries().values()
            spellings = ", ".join([LOCAL_EXECUTOR, *(kind.spelling for kind in kinds)])
            raise UsageError(f"no `executor` {spec!r}; choose from {spellings}")
        EXECUTORS[kind]
    if processes is not None and processes < 1:
        raise UsageError("`processes` must be at least 1")
    if processes is not None and spec != LOCAL_EXECUTOR:
        raise UsageError(f"`processes` applies to this machine, not to `executor` {spec}")


@contextmanager
def open_executor(
    spec: str, progress: Progress | None = None, processes: int | None = None
) -> Iterator[Executor | None]:
    """The executor of a spec, whose workers end with it; None if this process does the work alone:
    local, with `processes` 1 or not given.

    Raises:
        UsageError: an unknown executor.
        PluginError: one that cannot be used.
        MissingExtra: its packages are not installed.
        ModelError: it cannot be reached.
    """
    check_executor(spec, processes)
    if spec == LOCAL_EXECUTOR:
        if processes is None or processes == 1:
            yield None
            return
        from kgbias.parallel.local import LocalExecutor

        with closing(LocalExecutor(processes, (progress or SilentProgress()).note)) as local:
            yield local
        return
    from kgbias.parallel.executors import EXECUTORS

    kind, _, address = spec.partition("://")
    open_kind = EXECUTORS.import_part(kind, EXECUTORS[kind].opener)
    with open_kind(address, progress or SilentProgress()) as executor:
        yield executor
