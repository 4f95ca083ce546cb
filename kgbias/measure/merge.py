"""The same thing said differently: statements with nearly the same meaning ("can't be happy",
"can't even be happy").

They are linked, never merged: nodes, triples, generations and scores stay as they are, and removing
the links leaves no trace. `merged` counts linked statements as one. A statement is a predicate and
an object, of whichever group, and its vector is the one by which it is found by what it means
(`kgbias.measure.meaning`), so nothing is read again if the store keeps it.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kgbias.errors import UsageError
from kgbias.graph.store import StoredRun
from kgbias.graph.types import NearDuplicate, TripleView, node_id, statement_id, triple_id
from kgbias.io.progress import Progress
from kgbias.io.wording import how
from kgbias.language.words import is_negated
from kgbias.measure.embedding import load_vectors
from kgbias.measure.meaning import SHIPPED, keep_vectors, texts_of, vectors_of

_BLOCK = 256  # statements compared with all earlier ones at once

# Sentence embeddings put "be trusted" and "not be trusted" close together (cosine 0.91), as they do
# "better than men" and "better than women" (0.92), and "every 2 years" and "every 10 years" (0.92).
# So statements are linked only if both or neither are negated, and if they have the same numbers,
# opposites, words in capitals and words for men and women.
_NAMING = re.compile(
    r"\d[\d,.]*|\b[A-Z]\w+|\b(?:good|bad|black|white|"
    r"wom[ae]n|m[ae]n|(?:fe)?males?|girls?|boys?|wife|wives|husbands?)\b"
)


def unlinked() -> str:
    """What to say if linked statements are to count as one, and none are linked."""
    links = how("run.merge()", "kgbias merge")
    return f"nothing is merged: no statements are linked ({links} links them)"


Said = tuple[str, str]  # a predicate and an object


@dataclass(frozen=True)
class Placed:
    """Vectors of statements, by their ids, and the name of what made them."""

    rows: Mapping[str, NDArray[Any]]
    method: str

    @classmethod
    def of(cls, runs: Sequence[StoredRun], encoder: str, device: str = "auto") -> "Placed":
        """Those of what the runs say: for "minilm", those that the store keeps; what has none there
        is read now, and not kept. Raises MissingExtra if a package is missing."""
        if encoder == "minilm":
            found = [vectors_of(run, device) for run in runs]
            method = SHIPPED
        else:
            vectors = load_vectors(encoder, device)
            texts = [texts_of(run) for run in runs]
            found = [dict(zip(own, vectors.embed([*own.values()]), strict=True)) for own in texts]
            method = f"{vectors.name} {vectors.version}"
        return cls({statement_id(*ends): row for own in found for ends, row in own.items()}, method)


def links(said: Mapping[Said, int], placed: Placed, threshold: float) -> list[NearDuplicate]:
    """Link each statement to the most similar one that is not itself linked, if their cosine is at
    least `threshold`.

    `said` is how often each was said. Statements are taken from the most to the least frequent: a
    rarer one is linked to a more frequent one, and no chains of links arise. The order of the input
    does not matter. Raises UsageError for a threshold that is no such cosine.
    """
    _check(threshold)
    order = sorted(said, key=lambda each: (-said[each], each))
    if not order:
        return []
    unit = np.array([placed.rows[_id(*each)] for each in order], dtype=np.float32)
    unit /= np.maximum(np.linalg.norm(unit, axis=1, keepdims=True), 1e-12)
    kept = [_kept(" ".join(each)) for each in order]
    number = {each: n for n, each in enumerate(dict.fromkeys(kept))}
    kinds = np.array([number[each] for each in kept])
    method = f"{placed.method} cosine>={threshold:g}"
    is_head = np.zeros(len(order), dtype=bool)
    found: list[NearDuplicate] = []
    for start in range(0, len(order), _BLOCK):
        cosines = (unit[start : start + _BLOCK] @ unit[: start + _BLOCK].T).round(6)
        for place, row in enumerate(cosines, start):
            near = np.flatnonzero(row[:place] >= threshold)
            near = near[is_head[near] & (kinds[near] == kinds[place])]
            if len(near):
                head = int(near[row[near].argmax()])
                similarity = min(1.0, round(float(row[head]), 6))
                found.append(NearDuplicate(order[place], order[head], similarity, method))
            else:
                is_head[place] = True
    return found


def _id(predicate: str, object: str) -> str:
    return statement_id(node_id("predicate", predicate), node_id("object", object))


def _kept(text: str) -> tuple[bool, tuple[str, ...]]:
    """What two statements must have in common to be linked."""
    return is_negated(text), tuple(sorted(_NAMING.findall(text)))


@dataclass(frozen=True, slots=True)
class Merged:
    """The links of a run, and how many distinct triples it has as said, and with linked ones
    counted as one."""

    links: tuple[NearDuplicate, ...]
    triples: int
    triples_merged: int

    def __repr__(self) -> str:
        return (
            f"<Merged: {len(self.links)} links; {self.triples} triples as said, "
            f"{self.triples_merged} when linked ones count as one>"
        )


def _check(threshold: float) -> None:
    if not 0 < threshold <= 1:
        raise UsageError("`threshold` is a cosine similarity: it must be above 0 and at most 1")


def merge_run(
    run: StoredRun,
    *,
    threshold: float,
    encoder: str,
    undo: bool,
    device: str = "auto",
    progress: Progress | None = None,
) -> Merged:
    """Link a run's near-duplicates by this encoder's vectors, or remove the links. Vectors that the
    store lacks are made and kept, if they are of the kind that it keeps."""
    _check(threshold)
    if encoder == "minilm" and not undo:
        keep_vectors(run, progress, device=device)
    views = run.triples()
    found = [] if undo else near_duplicates(views, Placed.of([run], encoder, device), threshold)
    run.save_near_duplicates(found)
    return Merged(tuple(found), len(views), len(merged(views, found)))


def near_duplicates(
    views: Sequence[TripleView], placed: Placed, threshold: float
) -> list[NearDuplicate]:
    """The links between what these triples say, which may come from several runs."""
    counts: Counter[str] = Counter()
    words: dict[str, Said] = {}
    for view in views:
        counts[view.statement_id] += view.count
        words.setdefault(view.statement_id, (view.predicate, view.object))
    return links({words[id]: count for id, count in counts.items()}, placed, threshold)


def merged(views: Sequence[TripleView], found: Sequence[NearDuplicate]) -> list[TripleView]:
    """The triples with every linked statement replaced by the one it is linked to. Triples of an
    arm that become equal are combined: their counts are added, and the scores are those of the
    triple said in these words (else of the most frequent one)."""
    stands = {link.statement_id: link.head for link in found}
    together: dict[tuple[str, str], list[tuple[bool, TripleView]]] = {}
    for view in views:
        predicate, object = stands.get(view.statement_id, (view.predicate, view.object))
        id = triple_id(view.group_id, node_id("predicate", predicate), node_id("object", object))
        as_said = id == view.id
        changed = replace(view, id=id, predicate=predicate, object=object)
        together.setdefault((view.arm, id), []).append((as_said, changed))
    kept = []
    for rows in together.values():
        _, best = max(rows, key=lambda row: (row[0], row[1].count))
        kept.append(replace(best, count=sum(view.count for _, view in rows)))
    return kept
