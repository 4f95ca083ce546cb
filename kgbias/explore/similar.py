"""Similar statements, for the page: in a file, the nearest of each; on a server, what is near any
text."""

from collections import Counter
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kgbias.explore.columns import ColumnBlock
from kgbias.explore.statements import RowIndex, StatementTable
from kgbias.graph.types import node_id, statement_id
from kgbias.graph.vectors import find_nearest, find_neighbours
from kgbias.io.progress import Progress
from kgbias.language.words import is_negated
from kgbias.measure.embedding import load_vectors
from kgbias.measure.semantic_search import (
    MIN_SEARCH_COSINE,
    MIN_SIMILAR_COSINE,
    SHIPPED_ENCODER,
    StatementIndex,
)

MAX_SIMILAR = 10  # statements that a file holds as near one
MAX_SENT_STATEMENTS = 1_000  # that a server sends: the page shows the first that pass its filters
# Of more statements, each is compared with this many that were said most.
MAX_COMPARED_STATEMENTS = 20_000
_OPPOSED_FLAG = 128  # added to a cosine, in hundredths, if only one of the two is negated


def build_block(table: StatementTable, progress: Progress) -> ColumnBlock:
    """The statements that are similar to each (`MIN_SIMILAR_COSINE`), at most `MAX_SIMILAR`, among
    the `MAX_COMPARED_STATEMENTS` that were said most: `to` has their numbers, `cosine` hundredths.
    Of those whose vectors the store keeps; empty if it keeps none."""
    progress.stage("similar statements", 1)
    vectors: dict[tuple[int, int], NDArray[np.float32]] = {}
    for run in table.runs:
        stored_vectors = run.vectors(SHIPPED_ENCODER)
        for (predicate, object), vector in zip(
            stored_vectors.statements, stored_vectors.rows, strict=True
        ):
            place = (table.predicates.find(predicate), table.objects.find(object))
            if min(place) >= 0:
                vectors.setdefault(place, vector)
    places = sorted(vectors)
    rows = np.array([vectors[place] for place in places], dtype=np.float32)
    denies_statement = [
        is_negated(f"{table.predicates.texts[p]} {table.objects.texts[o]}") for p, o in places
    ]
    row_columns = (table.predicate, table.object, table.count)
    counts: Counter[tuple[int, int]] = Counter()
    for predicate, object, count in zip(*map(np.ndarray.tolist, row_columns), strict=True):
        counts[predicate, object] += count
    order = np.argsort([-counts[place] for place in places], kind="stable")
    neighbour_rows = find_neighbours(
        rows, MAX_SIMILAR, MIN_SIMILAR_COSINE, np.sort(order[:MAX_COMPARED_STATEMENTS])
    )
    block = ColumnBlock()
    block.add_numbers("predicate", [p for p, _ in places])
    block.add_numbers("object", [o for _, o in places])
    block.add_lists(
        "to", [[neighbour for neighbour, _ in neighbour_row] for neighbour_row in neighbour_rows]
    )
    block.add_numbers(
        "cosine",
        [
            _to_hundredths(cosine)
            + _OPPOSED_FLAG * (denies_statement[n] != denies_statement[neighbour])
            for n, neighbour_row in enumerate(neighbour_rows)
            for neighbour, cosine in neighbour_row
        ],
    )
    progress.advance()
    return block


def _to_hundredths(cosine: float) -> int:
    return round(100 * cosine)


class SimilarStatements:
    """What is near in the run of one source, for a server: of the statements whose vectors the
    store keeps, and none if it keeps none. To make one reads the store, which may only be done in
    the thread that opened it; to ask it reads nothing there.

    Its methods give {"row": a row of the run that says it, "cosine": ..., "opposed": whether only
    one of the two is negated}, the nearest first: at most `MAX_SENT_STATEMENTS`, of a text twice as
    many.

    Raises MissingExtra if the encoder is not installed."""

    def __init__(self, row_index: RowIndex, source: int) -> None:
        run = row_index.sources[source].run
        # One encoder for the process: it is loaded when it first reads words.
        self._meanings = StatementIndex.from_stored(run, load_vectors("minilm"))
        rows = {
            row_index.triple_id(n): n
            for s in row_index.sources
            if s.run.id == run.id
            for n in range(s.start, s.end)
        }
        self._row_by_statement: dict[str, int] = {}  # of each statement
        self._statement_of_triple: dict[str, str] = {}  # the statement of each triple
        for triple, _, predicate, object in run.distinct_triples():
            if triple in rows:
                id = statement_id(node_id("predicate", predicate), node_id("object", object))
                self._row_by_statement[id], self._statement_of_triple[triple] = rows[triple], id

    def search_text(self, text: str) -> list[dict[str, Any]]:
        """The statements that are about the same as a text (`MIN_SEARCH_COSINE`), those that share
        its words
        too: the page knows which of them hold the words as they were typed."""
        if not self._meanings.ids:
            return []
        hits = sorted(self._meanings.search(text, MAX_SENT_STATEMENTS), key=lambda hit: -hit.cosine)
        return [
            {
                "row": self._row_by_statement[hit.id],
                "cosine": _to_hundredths(hit.cosine) / 100,
                "opposed": hit.opposed,
            }
            for hit in hits
            if hit.cosine >= MIN_SEARCH_COSINE and hit.id in self._row_by_statement
        ]

    def search_statement(self, triple: str) -> list[dict[str, Any]]:
        """The statements that are similar to that of a triple (its id), as `build_block` has
        them."""
        ids, texts, rows = self._meanings.ids, self._meanings.texts, self._meanings.rows
        if (statement := self._statement_of_triple.get(triple)) not in self._number_by_id:
            return []
        number = self._number_by_id[statement]
        denies_statement = is_negated(texts[number])
        return [
            {
                "row": self._row_by_statement[ids[neighbour]],
                "cosine": _to_hundredths(cosine) / 100,
                "opposed": is_negated(texts[neighbour]) != denies_statement,
            }
            for neighbour, cosine in find_nearest(
                rows, rows[number], MAX_SENT_STATEMENTS + 1, MIN_SIMILAR_COSINE
            )
            if neighbour != number and ids[neighbour] in self._row_by_statement
        ][:MAX_SENT_STATEMENTS]

    @cached_property
    def _number_by_id(self) -> dict[str | None, int]:
        """The number of each statement."""
        return {id: n for n, id in enumerate(self._meanings.ids)}
