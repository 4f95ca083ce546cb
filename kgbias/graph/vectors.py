"""Vectors of statements: where an encoder places what a statement says, without its group.

They are derived and no part of the graph's shape: an encoder makes them again from the words, and
exports leave them out. Triples that say the same of several groups share one.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kgbias.graph.types import statement_id

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

KEPT = "<f2"  # half precision: a cosine of unit vectors is right to about .0005


@dataclass(frozen=True, slots=True)
class StatementVectors:
    """Vectors of statements by one encoder, in half precision.

    Attributes:
        statements: the uids of each one's predicate and object.
        rows: its vector, [n, d], of length 1 but for rounding; the dot product of two is their
            cosine.
    """

    statements: Sequence[tuple[str, str]]
    rows: "NDArray[np.float32]"

    @property
    def ids(self) -> list[str]:
        """The statements' ids, as `kgbias.graph.types.TripleView.statement_id`."""
        return [statement_id(*ends) for ends in self.statements]


def packed(rows: "NDArray[np.float32]") -> list[bytes]:
    """Each row as a store keeps it: two bytes a number."""
    return [row.tobytes() for row in rows.astype(KEPT)]


def unpacked(found: Sequence[bytes]) -> "NDArray[np.float32]":
    """The rows, [n, d], that were `packed`; [0, 0] if there are none."""
    import numpy as np

    if not found:
        return np.zeros((0, 0), dtype=np.float32)
    return np.frombuffer(b"".join(found), dtype=KEPT).reshape(len(found), -1).astype(np.float32)
