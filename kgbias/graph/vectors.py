"""Vectors of statements: where an encoder places what a statement says, without its group; how
stores keep them, and which lie near each other.

They are derived and no part of the graph's shape: an encoder makes them again from the words, and
exports leave them out. Triples that say the same of several groups share one.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kgbias.errors import StoreError
from kgbias.graph.types import statement_id

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_BLOCK = 256  # rows compared with all others at once
_MANY = 1_000  # near ones of a row, on average, from which they are not all sorted
KEPT = "<f2"  # half precision: the cosine of two unit vectors is right to about .0003


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


def half(rows: "NDArray[np.floating]") -> "NDArray[np.float32]":
    """The rows as they come back from a store: in half precision."""
    return rows.astype(KEPT).astype("<f4")


def packed(rows: "NDArray[np.floating]") -> list[bytes]:
    """Each row as a store keeps it: two bytes a number."""
    return [row.tobytes() for row in rows.astype(KEPT)]


def unpacked(found: Sequence[bytes]) -> "NDArray[np.float32]":
    """The rows, [n, d], that were `packed`; [0, 0] if there are none. Raises StoreError if they are
    not vectors of one length."""
    import numpy as np

    if not found:
        return np.zeros((0, 0), dtype=np.float32)
    lengths = {len(row) if isinstance(row, bytes) else 0 for row in found}
    if len(lengths) == 1 and (length := lengths.pop()) and length % 2 == 0:
        rows = np.frombuffer(b"".join(found), dtype=KEPT).reshape(len(found), -1)
        if np.isfinite(rows).all():
            return rows.astype(np.float32)
    raise StoreError(
        "the store is damaged: its vectors of statements are not numbers of one length"
    )


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
    rows: "NDArray[np.float32]",
    most: int,
    floor: float,
    among: "NDArray[np.int64] | None" = None,
) -> list[list[tuple[int, float]]]:
    """For each row, what `nearest` finds of the others, or of those `among` them (their numbers, in
    order). Of a row with many near ones, which of those equally near at the end of its list come
    in is left open. Compares all pairs, some rows at a time."""
    import numpy as np

    among = np.arange(len(rows)) if among is None else among
    others, place = rows[among].T.copy(), np.full(len(rows), -1)
    place[among] = np.arange(len(among))
    found: list[list[tuple[int, float]]] = []
    for start in range(0, len(rows), _BLOCK):
        cosines = rows[start : start + _BLOCK] @ others
        own = place[start : start + _BLOCK]
        itself = np.flatnonzero(own >= 0)
        cosines[itself, own[itself]] = -2.0
        at, to = np.divmod(_close(cosines, most, floor), max(1, len(among)))
        near = cosines[at, to].round(3)
        order = np.lexsort((to, -near, at))
        at, to, near = at[order], to[order], near[order]
        kept = (np.arange(len(at)) - np.searchsorted(at, at) < most) & (near >= floor)
        lists: list[list[tuple[int, float]]] = [[] for _ in range(len(cosines))]
        numbers = among[to[kept]].tolist()
        for n, other, cosine in zip(at[kept].tolist(), numbers, near[kept].tolist(), strict=True):
            lists[n].append((other, round(cosine, 3)))
        found += lists
    return found


def _close(cosines: "NDArray[np.float32]", most: int, floor: float) -> "NDArray[np.int64]":
    """The places, in the flat table, of the cosines that reach the floor, or of the highest of each
    row if these would be many."""
    import numpy as np

    rows, columns = cosines.shape
    close = np.flatnonzero(cosines >= floor - 0.0005)
    if len(close) <= _MANY * rows or columns <= most:
        return close
    highest = np.argpartition(-cosines, most - 1, axis=1)[:, :most]
    return np.asarray((highest + np.arange(rows)[:, None] * columns).ravel())
