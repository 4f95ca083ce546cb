"""What work is, and what an executor of it does; how the threads of this process wait."""

import os
from collections.abc import Generator, Sequence
from typing import Protocol, TypeVar

P = TypeVar("P")
R = TypeVar("R")
P_contra = TypeVar("P_contra", contravariant=True)
R_co = TypeVar("R_co", covariant=True)

LOCAL = "local"
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
