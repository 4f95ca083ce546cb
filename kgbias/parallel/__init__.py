"""Work spread over workers: one interface, and what carries it out: this process, processes of this
machine (`local`), or actors of a Ray cluster (`cluster`).

Work is cut into pieces by those who know it, in a way that does not depend on who does them, and a
piece is done as a whole by one worker. So the results are the same, bit for bit, wherever they were
computed. Results come as they are done, and who asked for them keeps each at once: what is kept is
the checkpoint, and the same call continues from there.
"""

from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol, TypeVar

from kgbias.errors import UsageError
from kgbias.progress import Progress, Silent

P = TypeVar("P")
R = TypeVar("R")
P_contra = TypeVar("P_contra", contravariant=True)
R_co = TypeVar("R_co", covariant=True)

LOCAL = "local"
_RAY = "ray"


class Work(Protocol[P_contra, R_co]):
    """What is done with a piece. It is pickled to reach another process."""

    @property
    def version(self) -> str:
        """All that decides what it says of a piece, such as the model and its revision."""
        ...

    @property
    def device(self) -> str:
        """Where its model runs: "auto", "cpu" or "cuda"."""
        ...

    @property
    def threads(self) -> int:
        """How many threads of a CPU a worker uses: sums in floating point may follow it."""
        ...

    def open(self) -> str:
        """Load what it takes, where the work is done; returns the version of what was loaded."""
        ...

    def __call__(self, piece: P_contra, /) -> R_co: ...


class Executor(Protocol):
    """What carries out work."""

    def each(self, work: Work[P, R], pieces: Sequence[P]) -> Generator[tuple[int, R], None, None]:
        """The number of each piece with what was made of it, as they are done, in any order.

        Raises a KgbiasError where a piece cannot be done; on a cluster after all others are done.
        """
        ...


def check_executor(spec: str) -> None:
    """Raise UsageError unless there is such an executor; whether it can be reached is not tried."""
    kind, slashes, address = spec.partition("://")
    if spec != LOCAL and not (kind == _RAY and bool(slashes) == bool(address)):
        raise UsageError(
            f"no `executor` {spec!r}: there is {LOCAL}, ray (a Ray of its own on this machine) and "
            "ray://ADDRESS (a cluster that this machine is part of: auto, or HOST:PORT of its head)"
        )


@contextmanager
def opened_executor(spec: str, progress: Progress | None = None) -> Iterator[Executor | None]:
    """The executor of a spec, closed at the end; None for local work, whose processes are started
    for the work that there is (`kgbias.parallel.local.Local`).

    Raises:
        UsageError: no such executor.
        MissingExtra: Ray is not installed.
        ModelError: the cluster cannot be reached.
    """
    check_executor(spec)
    if spec == LOCAL:
        yield None
        return
    from kgbias.parallel.cluster import opened_cluster

    with opened_cluster(spec.partition("://")[2], progress or Silent()) as cluster:
        yield cluster
