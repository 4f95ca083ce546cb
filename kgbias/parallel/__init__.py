"""Work spread over workers: one interface, and what carries it out: this process, processes of this
machine (`local`), or actors of a Ray cluster (`cluster`, which `apart` keeps out of this process).

Work is cut into pieces by those who know it, in a way that does not depend on who does them, and a
piece is done as a whole by one worker. So the results are the same, bit for bit, wherever they were
computed. Results come as they are done, and who asked for them keeps each at once: what is kept is
the checkpoint, and the same call continues from there.
"""

from collections.abc import Iterator
from contextlib import closing, contextmanager

from kgbias.errors import UsageError
from kgbias.io.progress import Progress, Silent
from kgbias.parallel.work import LOCAL as LOCAL
from kgbias.parallel.work import Executor as Executor
from kgbias.parallel.work import Work as Work
from kgbias.parallel.work import wait_passively as wait_passively

_RAY = "ray"


def check_executor(spec: str, processes: int | None = None) -> None:
    """Raise UsageError unless there is such an executor, with so many processes (None: as many as
    it has); whether it can be reached is not tried."""
    kind, slashes, address = spec.partition("://")
    if spec != LOCAL and not (kind == _RAY and bool(slashes) == bool(address)):
        raise UsageError(
            f"no `executor` {spec!r}: there is {LOCAL}, ray (a Ray of its own on this machine) and "
            "ray://ADDRESS (a cluster that this machine is part of: auto, or HOST:PORT of its head)"
        )
    if processes is not None and processes < 1:
        raise UsageError("`processes` is at least 1")
    if processes is not None and spec != LOCAL:
        raise UsageError(f"`processes` are of this machine, not of `executor` {spec}")


@contextmanager
def opened_executor(
    spec: str, progress: Progress | None = None, processes: int | None = None
) -> Iterator[Executor | None]:
    """The executor of a spec, whose workers end with it; None where this process does the work
    alone: local, with one of the `processes` or none said.

    Raises:
        UsageError: no such executor.
        MissingExtra: Ray is not installed.
        ModelError: the cluster cannot be reached.
    """
    check_executor(spec, processes)
    if spec == LOCAL:
        if processes is None or processes == 1:
            yield None
            return
        from kgbias.parallel.local import Local

        with closing(Local(processes)) as local:
            yield local
        return
    from kgbias.parallel.apart import opened_ray

    with opened_ray(spec.partition("://")[2], progress or Silent()) as cluster:
        yield cluster
