"""Work spread over workers behind one interface: this process, processes of this machine (`local`),
or actors of a Ray cluster (`cluster`, which `apart` keeps out of this process).

Whoever knows the work cuts it into pieces, in a way that does not depend on who does them, and one
worker does a whole piece. So the results are the same, bit for bit, wherever they were computed.
Results arrive as they are done, and the caller keeps each at once: what is kept is the checkpoint,
from which the same call continues.
"""

import os
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Protocol, TypeVar

from kgbias.errors import UsageError
from kgbias.io.progress import Progress, Silent

P = TypeVar("P")
R = TypeVar("R")
P_contra = TypeVar("P_contra", contravariant=True)
R_co = TypeVar("R_co", covariant=True)

LOCAL = "local"
_RAY = "ray"
# An idle OpenMP thread spins on its core for a while before it sleeps. On a machine with other work
# this takes the core from whoever it waits for: torch with two threads then scores eight times
# fewer statements a second than with one, while on a quiet machine sleeping at once costs nothing
# measurable (benchmarks/threads.py). These are the runtimes' own names for the setting: the
# standard's, GNU's, and Intel's and LLVM's.
_SPINS = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME", "KMP_LIBRARY")


def wait_passively() -> None:
    """Let the OpenMP threads of this process and its children sleep while they wait, unless the
    environment already says how they wait. The OpenMP runtime reads this when it is loaded, so call
    it before torch is imported."""
    if not any(name in os.environ for name in _SPINS):
        os.environ["OMP_WAIT_POLICY"] = "PASSIVE"
        os.environ["KMP_BLOCKTIME"] = "0"


class Work(Protocol[P_contra, R_co]):
    """What to do with a piece. It is pickled to reach another process."""

    @property
    def version(self) -> str:
        """Everything that decides its result, such as the model and its revision."""
        ...

    @property
    def device(self) -> str:
        """Where its model runs: "auto", "cpu" or "cuda"."""
        ...

    @property
    def threads(self) -> int:
        """How many CPU threads a worker uses: floating-point sums may depend on it."""
        ...

    def open(self) -> str:
        """Load what is needed, where the work is done; returns the version of what was loaded."""
        ...

    def __call__(self, piece: P_contra, /) -> R_co: ...


class Executor(Protocol):
    """Carries out work. Workers live from one call to the next, and keep the models they loaded
    (`kgbias.models.load`)."""

    def each(self, work: Work[P, R], pieces: Sequence[P]) -> Generator[tuple[int, R], None, None]:
        """The number and result of each piece, as they are done, in any order.

        Raises a KgbiasError if a piece cannot be done; on a cluster after all others are done.
        """
        ...

    def dismiss(self) -> None:
        """End the workers and drop the models they hold."""
        ...


def check_executor(spec: str, processes: int | None = None) -> None:
    """Raise UsageError for an unknown executor, or a number of processes that it cannot have (None:
    its own number); does not try to reach it."""
    kind, slashes, address = spec.partition("://")
    if spec != LOCAL and not (kind == _RAY and bool(slashes) == bool(address)):
        raise UsageError(
            f"no `executor` {spec!r}; choose from {LOCAL}, ray (a new Ray on this machine) and "
            "ray://ADDRESS (a cluster that this machine belongs to: auto, or HOST:PORT of its head)"
        )
    if processes is not None and processes < 1:
        raise UsageError("`processes` must be at least 1")
    if processes is not None and spec != LOCAL:
        raise UsageError(f"`processes` applies to this machine, not to `executor` {spec}")


@contextmanager
def opened_executor(
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
