"""Similar statements, for the page: in a file, the nearest of each; on a server, what is near any
text."""

from collections import Counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kgbias.explore.columns import Block
from kgbias.explore.statements import Placed, Statements
from kgbias.graph.types import node_id, statement_id
from kgbias.graph.vectors import nearest, neighbours
from kgbias.io.progress import Progress
from kgbias.language.words import negated
from kgbias.measure.meaning import SHIPPED, SIMILAR, Meanings

MOST = 10  # statements near one, or near a text
AMONG = 20_000  # of more statements, each is compared with this many that were said most
_OPPOSED = 128  # added to a cosine, in hundredths, if only one of the two is negated


def block(found: Statements, progress: Progress) -> Block:
    """The statements that are similar to each (`SIMILAR`), at most `MOST`, among the `AMONG` that
    were said most: `to` has their numbers, `cosine` hundredths. Of those whose vectors the store
    keeps; empty if it keeps none."""
    progress.stage("similar statements", 1)
    vectors: dict[tuple[int, int], NDArray[np.float32]] = {}
    for run in found.runs:
        kept = run.vectors(SHIPPED)
        for (predicate, object), vector in zip(kept.statements, kept.rows, strict=True):
            place = (found.predicates.get(predicate), found.objects.get(object))
            if min(place) >= 0:
                vectors.setdefault(place, vector)
    places = sorted(vectors)
    rows = np.array([vectors[place] for place in places], dtype=np.float32)
    denies = [negated(f"{found.predicates.texts[p]} {found.objects.texts[o]}") for p, o in places]
    told = (found.predicate, found.object, found.count)
    said: Counter[tuple[int, int]] = Counter()
    for predicate, object, count in zip(*map(np.ndarray.tolist, told), strict=True):
        said[predicate, object] += count
    order = np.argsort([-said[place] for place in places], kind="stable")
    near = neighbours(rows, MOST, SIMILAR, np.sort(order[:AMONG]))
    block = Block()
    block.numbers("predicate", [p for p, _ in places])
    block.numbers("object", [o for _, o in places])
    block.lists("to", [[other for other, _ in own] for own in near])
    block.numbers("cosine", [
        round(100 * cosine) + _OPPOSED * (denies[n] != denies[other])
        for n, own in enumerate(near)
        for other, cosine in own
    ])  # fmt: skip
    progress.advance()
    return block


class Nearby:
    """What is near, for a server: read when it is first asked for. Statements are given as
    {"row": a row that says it, "cosine": ..., "opposed": whether only one of the two is negated},
    the nearest first; none if the store keeps no vectors of the run's statements.

    Its methods raise MissingExtra if the encoder is not installed."""

    def __init__(self, placed: Placed) -> None:
        self._placed = placed
        self._of_run: dict[str, tuple[Meanings, dict[str, int]]] = {}

    def text(self, text: str, source: int) -> list[dict[str, Any]]:
        """The statements of a source's run that a text finds by meaning."""
        if (read := self._read(source)) is None:
            return []
        meanings, rows = read
        return [
            {"row": rows[hit.id], "cosine": hit.cosine, "opposed": hit.opposed}
            for hit in meanings.search(text, MOST)
            if not hit.words and hit.id in rows
        ]

    def statement(self, row: int) -> list[dict[str, Any]]:
        """The statements that are similar to that of a row, as `block` has them."""
        at = self._placed.sources.index(self._placed.source(row))
        if (read := self._read(at)) is None:
            return []
        meanings, rows = read
        triple = self._placed.triple_id(row)
        own = next(
            (statement_id(node_id("predicate", p), node_id("object", o))
             for id, _, p, o in self._placed.sources[at].run.said() if id == triple),
            "",
        )  # fmt: skip
        if own not in meanings.ids:
            return []
        n = meanings.ids.index(own)
        denies = negated(meanings.texts[n])
        return [
            {
                "row": rows[meanings.ids[other]],
                "cosine": cosine,
                "opposed": negated(meanings.texts[other]) != denies,
            }
            for other, cosine in nearest(meanings.rows, meanings.rows[n], MOST + 1, SIMILAR)
            if other != n and meanings.ids[other] in rows
        ][:MOST]

    def _read(self, source: int) -> tuple[Meanings, dict[str, int]] | None:
        """The statements of a source's run, and a row of each."""
        run = self._placed.sources[source].run
        if run.id not in self._of_run:
            if not run.vectors(SHIPPED).statements:
                return None
            row = {
                self._placed.triple_id(n): n
                for s in self._placed.sources
                if s.run.id == run.id
                for n in range(s.start, s.end)
            }
            rows = {
                statement_id(node_id("predicate", p), node_id("object", o)): row[id]
                for id, _, p, o in run.said()
                if id in row
            }
            self._of_run[run.id] = Meanings.of(run), rows
        return self._of_run[run.id]
