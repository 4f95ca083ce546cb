"""Vectors of statements: where an encoder places what a statement says, without its group; how
stores keep them, and which lie near each other.

They are derived and no part of the graph's shape: an encoder makes them again from the words, and
exports leave them out. Triples that say the same of several groups share one.

In SQLite vectors are rows, in Neo4j nodes beside the graph. They are found by predicate, object and
encoder, and deleted with the last triple that says the statement.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from kgbias.errors import StoreError
from kgbias.graph.types import statement_id

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_BLOCK_ROWS = 256  # rows compared with all others at once
_MAX_SORTED_PER_ROW = 1_000  # near ones of a row, on average, from which they are not all sorted
STORED_DTYPE = "<f2"  # half precision: the cosine of two unit vectors is right to about .0003


@dataclass(frozen=True)
class StatementVectors:
    """Vectors of statements by one encoder, in half precision.

    Attributes:
        statements: the uids of each one's predicate and object.
        rows: its vector, [n, d], of length 1 but for rounding; the dot product of two is their
            cosine.
    """

    statements: Sequence[tuple[str, str]]
    rows: "NDArray[np.float32]"

    @cached_property
    def ids(self) -> list[str]:
        """The statements' ids, as `kgbias.graph.types.TripleView.statement_id`."""
        return [statement_id(*ends) for ends in self.statements]


def round_to_half(rows: "NDArray[np.floating]") -> "NDArray[np.float32]":
    """The rows as they come back from a store: in half precision."""
    return rows.astype(STORED_DTYPE).astype("<f4")


def pack_vectors(rows: "NDArray[np.floating]") -> list[bytes]:
    """Each row as a store keeps it: two bytes a number."""
    return [row.tobytes() for row in rows.astype(STORED_DTYPE)]


def unpack_vectors(packed_rows: Sequence[bytes]) -> "NDArray[np.float32]":
    """The rows, [n, d], that were `pack_vectors`; [0, 0] if there are none. Raises StoreError if
    they are not vectors of one length."""
    import numpy as np

    if not packed_rows:
        return np.zeros((0, 0), dtype=np.float32)
    lengths = {len(row) if isinstance(row, bytes) else 0 for row in packed_rows}
    if len(lengths) == 1 and (length := lengths.pop()) and length % 2 == 0:
        rows = np.frombuffer(b"".join(packed_rows), dtype=STORED_DTYPE).reshape(
            len(packed_rows), -1
        )
        if np.isfinite(rows).all():
            return rows.astype(np.float32)
    raise StoreError(
        "the store is damaged: its vectors of statements are not numbers of one length"
    )


def find_nearest(
    rows: "NDArray[np.float32]", target: "NDArray[np.float32]", limit: int, floor: float = -1.0
) -> list[tuple[int, float]]:
    """The numbers of the rows nearest to a vector, with their cosines (to three decimals), the
    nearest first, then by number: at most `limit`, none below the `floor`."""
    import numpy as np

    # Further decimals depend on how the product is computed.
    cosines = (rows @ target).round(3)
    near_rows = np.flatnonzero(cosines >= floor)
    order = near_rows[np.argsort(-cosines[near_rows], kind="stable")][:limit]
    return [(int(n), round(float(cosines[n]), 3)) for n in order]


def find_neighbours(
    rows: "NDArray[np.float32]",
    limit: int,
    floor: float,
    candidates: "NDArray[np.int64] | None" = None,
) -> list[list[tuple[int, float]]]:
    """For each row, what `find_nearest` finds of the others, or of the `candidates` among
    them (their numbers, in order). Of a row with many near ones, which of those equally near at
    the end of its list come in is left open. Compares all pairs, some rows at a time."""
    import numpy as np

    candidates = np.arange(len(rows)) if candidates is None else candidates
    candidate_vectors, place = rows[candidates].T.copy(), np.full(len(rows), -1)
    place[candidates] = np.arange(len(candidates))
    neighbour_lists: list[list[tuple[int, float]]] = []
    for start in range(0, len(rows), _BLOCK_ROWS):
        cosines = rows[start : start + _BLOCK_ROWS] @ candidate_vectors
        own_places = place[start : start + _BLOCK_ROWS]
        own_rows = np.flatnonzero(own_places >= 0)
        # Below any cosine: a row is no neighbour of itself.
        cosines[own_rows, own_places[own_rows]] = -2.0
        row_numbers, column_numbers = np.divmod(
            _find_close(cosines, limit, floor), max(1, len(candidates))
        )
        near_cosines = cosines[row_numbers, column_numbers].round(3)
        order = np.lexsort((column_numbers, -near_cosines, row_numbers))
        row_numbers, column_numbers, near_cosines = (
            row_numbers[order],
            column_numbers[order],
            near_cosines[order],
        )
        is_kept = (
            np.arange(len(row_numbers)) - np.searchsorted(row_numbers, row_numbers) < limit
        ) & (near_cosines >= floor)
        lists: list[list[tuple[int, float]]] = [[] for _ in range(len(cosines))]
        numbers = candidates[column_numbers[is_kept]].tolist()
        for n, neighbour, cosine in zip(
            row_numbers[is_kept].tolist(), numbers, near_cosines[is_kept].tolist(), strict=True
        ):
            lists[n].append((neighbour, round(cosine, 3)))
        neighbour_lists += lists
    return neighbour_lists


def _find_close(cosines: "NDArray[np.float32]", limit: int, floor: float) -> "NDArray[np.int64]":
    """The places, in the flat table, of the cosines that reach the floor, or of the highest of each
    row if these would be many."""
    import numpy as np

    rows, columns = cosines.shape
    # What rounds up to the floor at three decimals reaches it.
    close = np.flatnonzero(cosines >= floor - 0.0005)
    if len(close) <= _MAX_SORTED_PER_ROW * rows or columns <= limit:
        return close
    # Linear, where sorting is not; the few that are left are sorted by the caller.
    highest = np.argpartition(-cosines, limit - 1, axis=1)[:, :limit]
    return np.asarray((highest + np.arange(rows)[:, None] * columns).ravel())
