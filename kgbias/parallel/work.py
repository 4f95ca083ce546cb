"""What work is, and what an executor of it does."""

from collections.abc import Generator, Sequence
from typing import Protocol, TypeVar

P = TypeVar("P")
R = TypeVar("R")
P_contra = TypeVar("P_contra", contravariant=True)
R_co = TypeVar("R_co", covariant=True)

LOCAL_EXECUTOR = "local"


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

    def run_pieces(
        self, work: Work[P, R], pieces: Sequence[P]
    ) -> Generator[tuple[int, R], None, None]:
        """The number and result of each piece, as they are done, in any order.

        Raises a KgbiasError if a piece cannot be done; on a cluster after all others are done.
        """
        ...

    def dismiss(self) -> None:
        """End the workers and drop the models they hold."""
        ...
