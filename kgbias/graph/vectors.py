"""Vectors of statements: where an encoder places what a statement says, without its group; how
stores keep them, and which lie near each other.

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

KEPT = "<f2"  # half precision: the cosine of two unit vectors is right to about .0003
_BLOCK = 256  # rows compared with all others at once


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


def packed(rows: "NDArray[np.floating]") -> list[bytes]:
    """Each row as a store keeps it: two bytes a number."""
    return [row.tobytes() for row in rows.astype(KEPT)]


def unpacked(found: Sequence[bytes]) -> "NDArray[np.float32]":
    """The rows, [n, d], that were `packed`; [0, 0] if there are none."""
    import numpy as np

    if not found:
        return np.zeros((0, 0), dtype=np.float32)
    return np.frombuffer(b"".join(found), dtype=KEPT).reshape(len(found), -1).astype(np.float32)


def nearest(
    rows: "NDArray[np.float32]", to: "NDArray[np.float32]", most: int, floor: float = -1.0
) -> list[tuple[int, float]]:
    """The numbers of the rows nearest to a vector, with their cosines (to three decimals), the
    nearest first, then by number: at most `most`, none below the `floor`."""
    import numpy as np

    cosines = (rows @ to).round(3)
    there = np.flatnonzero(cosines >= floor)
    order = there[np.argsort(-cosines[there], kind="stable")][:most]
    return [(int(n), round(float(cosines[n]), 3)) for n in order]


def neighbours(
    rows: "NDArray[np.float32]", most: int, floor: float
) -> list[list[tuple[int, float]]]:
    """For each row, what `nearest` finds of the others. Compares all pairs, in blocks."""
    import numpy as np

    found: list[list[tuple[int, float]]] = [[] for _ in range(len(rows))]
    for start in range(0, len(rows), _BLOCK):
        cosines = rows[start : start + _BLOCK] @ rows.T
        block = np.arange(len(cosines))
        cosines[block, start + block] = -2.0  # itself
        at, others = np.nonzero(cosines >= floor - 0.0005)  # few pairs are near
        near = cosines[at, others].round(3)
        order = np.lexsort((others, -near, at))
        at, others, near = at[order], others[order], near[order]
        kept = (np.arange(len(at)) - np.searchsorted(at, at) < most) & (near >= floor)
        pairs = zip(at[kept].tolist(), others[kept].tolist(), near[kept].tolist(), strict=True)
        for n, other, cosine in pairs:
            found[start + n].append((other, round(cosine, 3)))
    return found
