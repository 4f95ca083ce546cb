"""Similar statements, for the page: in a file, the nearest of each; on a server, what is near any
text."""

from collections import Counter
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kgbias.explore.columns import Block
from kgbias.explore.statements import Placed, Statements
from kgbias.graph.types import node_id, statement_id
from kgbias.graph.vectors import find_nearest, find_neighbours
from kgbias.io.progress import Progress
from kgbias.language.words import is_negated
from kgbias.measure.embedding import load_vectors
from kgbias.measure.semantic_search import MIN_SEARCH_COSINE, SHIPPED_ENCODER, MIN_SIMILAR_COSINE, StatementIndex

MOST = 10  # statements that a file holds as near one
SENT = 1_000  # that a server sends: the page shows the first that pass its filters
AMONG = 20_000  # of more statements, each is compared with this many that were said most
_OPPOSED = 128  # added to a cosine, in hundredths, if only one of the two is negated


def block(found: Statements, progress: Progress) -> Block:
    """The statements that are similar to each (`MIN_SIMILAR_COSINE`), at most `MOST`, among the `AMONG` that
    were said most: `to` has their numbers, `cosine` hundredths. Of those whose vectors the store
    keeps; empty if it keeps none."""
    progress.stage("similar statements", 1)
    vectors: dict[tuple[int, int], NDArray[np.float32]] = {}
    for run in found.runs:
        kept = run.vectors(SHIPPED_ENCODER)
        for (predicate, object), vector in zip(kept.statements, kept.rows, strict=True):
            place = (found.predicates.get(predicate), found.objects.get(object))
            if min(place) >= 0:
                vectors.setdefault(place, vector)
    places = sorted(vectors)
    rows = np.array([vectors[place] for place in places], dtype=np.float32)
    denies = [is_negated(f"{found.predicates.texts[p]} {found.objects.texts[o]}") for p, o in places]
    told = (found.predicate, found.object, found.count)
    said: Counter[tuple[int, int]] = Counter()
    for predicate, object, count in zip(*map(np.ndarray.tolist, told), strict=True):
        said[predicate, object] += count
    order = np.argsort([-said[place] for place in places], kind="stable")
    near = find_neighbours(rows, MOST, MIN_SIMILAR_COSINE, np.sort(order[:AMONG]))
    block = Block()
    block.numbers("predicate", [p for p, _ in places])
    block.numbers("object", [o for _, o in places])
    block.lists("to", [[other for other, _ in own] for own in near])
    block.numbers("cosine", [
        _hundredths(cosine) + _OPPOSED * (denies[n] != denies[other])
        for n, own in enumerate(near)
        for other, cosine in own
    ])  # fmt: skip
    progress.advance()
    return block


def _hundredths(cosine: float) -> int:
    return round(100 * cosine)


class Nearby:
    """What is near in the run of one source, for a server: of the statements whose vectors the
    store keeps, and none if it keeps none. To make one reads the store, which may only be done in
    the thread that opened it; to ask it reads nothing there.

    Its methods give {"row": a row of the run that says it, "cosine": ..., "opposed": whether only
    one of the two is negated}, the nearest first: at most `SENT`, of a text twice as many.

    Raises MissingExtra if the encoder is not installed."""

    def __init__(self, placed: Placed, source: int) -> None:
        run = placed.sources[source].run
        # One encoder for the process: it is loaded when it first reads words.
        self._meanings = StatementIndex.from_stored(run, load_vectors("minilm"))
        rows = {
            placed.triple_id(n): n
            for s in placed.sources
            if s.run.id == run.id
            for n in range(s.start, s.end)
        }
        self._row: dict[str, int] = {}  # of each statement
        self._said: dict[str, str] = {}  # the statement of each triple
        for triple, _, predicate, object in run.distinct_triples():
            if triple in rows:
                id = statement_id(node_id("predicate", predicate), node_id("object", object))
                self._row[id], self._said[triple] = rows[triple], id

    def text(self, text: str) -> list[dict[str, Any]]:
        """The statements that are about the same as a text (`MIN_SEARCH_COSINE`), those that share its words
        too: the page knows which of them hold the words as they were typed."""
        if not self._meanings.ids:
            return []
        hits = sorted(self._meanings.search(text, SENT), key=lambda hit: -hit.cosine)
        return [
            {
                "row": self._row[hit.id],
                "cosine": _hundredths(hit.cosine) / 100,
                "opposed": hit.opposed,
            }
            for hit in hits
            if hit.cosine >= MIN_SEARCH_COSINE and hit.id in self._row
        ]

    def statement(self, triple: str) -> list[dict[str, Any]]:
        """The statements that are similar to that of a triple (its id), as `block` has them."""
        ids, texts, rows = self._meanings.ids, self._meanings.texts, self._meanings.rows
        if (own := self._said.get(triple)) not in self._number:
            return []
        n = self._number[own]
        denies = is_negated(texts[n])
        return [
            {
                "row": self._row[ids[other]],
                "cosine": _hundredths(cosine) / 100,
                "opposed": is_negated(texts[other]) != denies,
            }
            for other, cosine in find_nearest(rows, rows[n], SENT + 1, MIN_SIMILAR_COSINE)
            if other != n and ids[other] in self._row
        ][:SENT]

    @cached_property
    def _number(self) -> dict[str | None, int]:
        """The number of each statement."""
        return {id: n for n, id in enumerate(self._meanings.ids)}
