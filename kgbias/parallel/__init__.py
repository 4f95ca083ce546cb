"""Work spread over workers: one interface, and what carries it out: this process, processes of this
machine (`local`), or actors of a Ray cluster (`cluster`, which `apart` keeps out of this process).

Work is cut into pieces by those who know it, in a way that does not depend on who does them, and a
piece is done as a whole by one worker. So the results are the same, bit for bit, wherever they were
computed. Results come as they are done, and who asked for them keeps each at once: what is kept is
the checkpoint, and the same call continues from there.
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
# An OpenMP thread without work spins on its core for a while before it sleeps. On a machine that
# has other work this takes the core from whoever it waits for: torch with two threads then scores
# eight times fewer statements a second than with one, while on a quiet machine sleeping at once
# costs nothing that can be measured (benchmarks/threads.py). These are the runtimes' own names for
# it: the standard's, GNU's and those of Intel and LLVM.
_SPINS = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME", "KMP_LIBRARY")


def wait_passively() -> None:
    """Let the OpenMP threads of this process and its children sleep while they wait, unless the
    environment already says how they wait. An OpenMP runtime reads this when it is loaded: call it
    before torch is imported."""
    if not any(name in os.environ for name in _SPINS):
        os.environ["OMP_WAIT_POLICY"] = "PASSIVE"
        os.environ["KMP_BLOCKTIME"] = "0"


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
    """What carries out work. Workers live from one call to the next, and keep the models that they
    loaded (`kgbias.models.load`)."""

    def each(self, work: Work[P, R], pieces: Sequence[P]) -> Generator[tuple[int, R], None, None]:
        """The number of each piece with what was made of it, as they are done, in any order.

        Raises a KgbiasError where a piece cannot be done; on a cluster after all others are done.
        """
        ...

    def dismiss(self) -> None:
        """End the workers, and with them the models that they hold."""
        ...


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
