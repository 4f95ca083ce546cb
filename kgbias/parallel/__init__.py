"""Work spread over workers behind one interface: this process, processes of this machine (`local`),
or actors of a Ray cluster (`ray_cluster`), which a separate process joins (`ray_process`).

Whoever knows the work says what is done with a piece (`Work`), and cuts it into pieces in a way
that does not depend on who does them; one worker does a whole piece. So the results are the same,
bit for bit, wherever they were computed. Results arrive as they are done, and the caller, alone,
keeps each at once: what is kept is the checkpoint, from which the same call continues. A worker
that is lost leaves its pieces to others or, at worst, to the next call.

Workers live as long as their executor and open the work that they are handed, so a model is loaded
once, whatever it is asked. A worker that opens another version than the one asked for does nothing.

Held by tests/integration/test_measure_processes.py and test_ray_lost.py.
"""

from collections.abc import Iterator
from contextlib import closing, contextmanager

from kgbias.errors import UsageError
from kgbias.io.progress import Progress, SilentProgress
from kgbias.parallel.work import LOCAL_EXECUTOR as LOCAL_EXECUTOR
from kgbias.parallel.work import Executor as Executor
from kgbias.parallel.work import Work as Work

_RAY_SCHEME = "ray"


def check_executor(spec: str, processes: int | None = None) -> None:
    """Raise UsageError for an unknown executor, or a number of processes that it cannot have (None:
    its own number); does not try to reach it."""
    kind, slashes, address = spec.partition("://")
    if spec != LOCAL_EXECUTOR and not (kind == _RAY_SCHEME and bool(slashes) == bool(address)):
        raise UsageError(
            f"no `executor` {spec!r}; choose from {LOCAL_EXECUTOR}, ray (a new Ray on this "
            f"machine) and "
            "ray://ADDRESS (a cluster that this machine belongs to: auto, or HOST:PORT of its head)"
        )
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
        MissingExtra: Ray is not installed.
        ModelError: the cluster cannot be reached.
    """
    check_executor(spec, processes)
    if spec == LOCAL_EXECUTOR:
        if processes is None or processes == 1:
            yield None
            return
        from kgbias.parallel.local import LocalExecutor

        with closing(LocalExecutor(processes)) as local:
            yield local
        return
    from kgbias.parallel.ray_process import open_ray

    with open_ray(spec.partition("://")[2], progress or SilentProgress()) as cluster:
        yield cluster
