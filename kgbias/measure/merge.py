"""The same thing said differently: statements with nearly the same meaning ("can't be happy",
"can't even be happy").

They are linked, never merged: nodes, triples, generations and scores stay as they are, and removing
the links leaves no trace. `merge_triples` counts linked statements as one. A statement is a
predicate and an object, of whichever group, and its vector is the one by which it is found by what
it means (`kgbias.measure.semantic_search`), so nothing is read again if the store keeps it.

Links are rows of their own, replaced as a whole, and count only on request (`merged`).
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
from kgbias.io.columns import Column
from kgbias.io.progress import Progress
from kgbias.io.rows import Result, Rows
from kgbias.io.wording import how, pluralise
from kgbias.language.words import is_negated
from kgbias.measure.embedding import load_vectors
from kgbias.measure.semantic_search import (
    SHIPPED_ENCODER,
    read_vectors,
    statement_texts,
    store_vectors,
)

_BLOCK_STATEMENTS = 256  # statements compared with all earlier ones at once

# Sentence embeddings put "be trusted" and "not be trusted" close together (cosine 0.91), as they do
# "better than men" and "better than women" (0.92), and "every 2 years" and "every 10 years" (0.92).
# So statements are linked only if both or neither are negated, and if they have the same numbers,
# opposites, words in capitals and words for men and women.
_DISTINGUISHING_PATTERN = re.compile(
    r"\d[\d,.]*|\b[A-Z]\w+|\b(?:good|bad|black|white|"
    r"wom[ae]n|m[ae]n|(?:fe)?males?|girls?|boys?|wife|wives|husbands?)\b"
)


def explain_no_links() -> str:
    """What to say if linked statements are to count as one, and none are linked."""
    links = how("run.merge()", "kgbias merge")
    return f"nothing is merged: no statements are linked ({links} links them)"


StatementWords = tuple[str, str]  # a predicate and an object


@dataclass(frozen=True)
class EmbeddedStatements:
    """Vectors of statements, by their ids, and the name of what made them."""

    rows: Mapping[str, NDArray[Any]]
    method: str

    @classmethod
    def from_runs(
        cls, runs: Sequence[StoredRun], encoder: str, device: str = "auto"
    ) -> "EmbeddedStatements":
        """Those of what the runs say: for "minilm", those that the store keeps; what has none there
        is read now, and not kept. Raises MissingExtra if a package is missing."""
        if encoder == "minilm":
            vectors_by_run = [read_vectors(run, device) for run in runs]
            method = SHIPPED_ENCODER
        else:
            vectors = load_vectors(encoder, device)
            texts = [statement_texts(run) for run in runs]
            vectors_by_run = [
                dict(zip(run_texts, vectors.embed([*run_texts.values()]), strict=True))
                for run_texts in texts
            ]
            method = f"{vectors.name} {vectors.version}"
        return cls(
            {
                statement_id(*ends): row
                for run_texts in vectors_by_run
                for ends, row in run_texts.items()
            },
            method,
        )


def link_near_duplicates(
    counts: Mapping[StatementWords, int], embedded: EmbeddedStatements, threshold: float
) -> list[NearDuplicate]:
    """Link each statement to the most similar one that is not itself linked, if their cosine is at
    least `threshold`.

    `counts` is how often each was said. Statements are taken from the most to the least frequent: a
    rarer one is linked to a more frequent one, and no chains of links arise. The order of the input
    does not matter. Raises UsageError for a threshold that is no such cosine.
    """
    _check_threshold(threshold)
    order = sorted(counts, key=lambda statement: (-counts[statement], statement))
    if not order:
        return []
    unit_vectors = np.array(
        [embedded.rows[_statement_id(*statement)] for statement in order], dtype=np.float32
    )
    # A statement without a vector in the table has zeros, and stays near nothing.
    unit_vectors /= np.maximum(np.linalg.norm(unit_vectors, axis=1, keepdims=True), 1e-12)
    link_keys = [_link_key(" ".join(statement)) for statement in order]
    key_numbers = {key: n for n, key in enumerate(dict.fromkeys(link_keys))}
    kinds = np.array([key_numbers[key] for key in link_keys])
    method = f"{embedded.method} cosine>={threshold:g}"
    is_head = np.zeros(len(order), dtype=bool)
    near_duplicates_found: list[NearDuplicate] = []
    for start in range(0, len(order), _BLOCK_STATEMENTS):
        cosines = (
            unit_vectors[start : start + _BLOCK_STATEMENTS]
            @ unit_vectors[: start + _BLOCK_STATEMENTS].T
            # A cosine at the threshold must fall on the same side wherever the product is computed.
        ).round(6)
        # Only earlier, that is more frequent, statements can be the head of this one.
        for place, row in enumerate(cosines, start):
            near_heads = np.flatnonzero(row[:place] >= threshold)
            near_heads = near_heads[is_head[near_heads] & (kinds[near_heads] == kinds[place])]
            if len(near_heads):
                head = int(near_heads[row[near_heads].argmax()])
                # Sums in float32 may come out just above 1.
                similarity = min(1.0, round(float(row[head]), 6))
                near_duplicates_found.append(
                    NearDuplicate(order[place], order[head], similarity, method)
                )
            else:
                is_head[place] = True
    return near_duplicates_found


def _statement_id(predicate: str, object: str) -> str:
    return statement_id(node_id("predicate", predicate), node_id("object", object))


def _link_key(text: str) -> tuple[bool, tuple[str, ...]]:
    """What two statements must have in common to be linked."""
    return is_negated(text), tuple(sorted(_DISTINGUISHING_PATTERN.findall(text)))


@dataclass(frozen=True, slots=True, repr=False)
class MergeResult(Result):
    """The links of a run, and how many distinct triples it has as said, and with linked ones
    counted as one. Its rows are the links: predicate, object, and those of the statement that was
    said more often."""

    links: tuple[NearDuplicate, ...]
    triples: int
    triples_merged: int

    def as_rows(self) -> Rows[NearDuplicate]:
        """The links."""
        return Rows(self.links, _LINK_COLUMNS)

    def heading(self) -> str:
        return (
            f"links: {len(self.links)}; "
            f"{pluralise(self.triples, 'triple')} as said, {self.triples_merged} when "
            "linked ones count as one"
        )


_LINK_COLUMNS = (
    Column("predicate", get=lambda link: link.said[0]),
    Column("object", get=lambda link: link.said[1]),
    Column("head_predicate", get=lambda link: link.head[0]),
    Column("head_object", get=lambda link: link.head[1]),
    Column("similarity", ".2f"),
    Column("method"),
)


def _check_threshold(threshold: float) -> None:
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
) -> MergeResult:
    """Link a run's near-duplicates by this encoder's vectors, or remove the links. Vectors that the
    store lacks are made and kept, if they are of the kind that it keeps."""
    _check_threshold(threshold)
    if encoder == "minilm" and not undo:
        store_vectors(run, progress, device=device)
    views = run.triples()
    near_duplicate_links = (
        []
        if undo
        else find_near_duplicates(
            views, EmbeddedStatements.from_runs([run], encoder, device), threshold
        )
    )
    run.save_near_duplicates(near_duplicate_links)
    return MergeResult(
        tuple(near_duplicate_links), len(views), len(merge_triples(views, near_duplicate_links))
    )


def find_near_duplicates(
    views: Sequence[TripleView], embedded: EmbeddedStatements, threshold: float
) -> list[NearDuplicate]:
    """The links between what these triples say, which may come from several runs."""
    counts: Counter[str] = Counter()
    words: dict[str, StatementWords] = {}
    for view in views:
        counts[view.statement_id] += view.count
        # Runs may write the same statement in other letters: the first form stands for all.
        words.setdefault(view.statement_id, (view.predicate, view.object))
    return link_near_duplicates(
        {words[id]: count for id, count in counts.items()}, embedded, threshold
    )


def merge_triples(
    views: Sequence[TripleView], near_duplicate_links: Sequence[NearDuplicate]
) -> list[TripleView]:
    """The triples with every linked statement replaced by the one it is linked to. Triples of an
    arm that become equal are combined: their counts are added, and the scores are those of the
    triple said in these words (else of the most frequent one)."""
    heads = {link.statement_id: link.head for link in near_duplicate_links}
    triples_by_id: dict[tuple[str, str], list[tuple[bool, TripleView]]] = {}
    for view in views:
        predicate, object = heads.get(view.statement_id, (view.predicate, view.object))
        merged_id = triple_id(
            view.group_id, node_id("predicate", predicate), node_id("object", object)
        )
        as_said = merged_id == view.id
        merged_triple = replace(view, id=merged_id, predicate=predicate, object=object)
        triples_by_id.setdefault((view.arm, merged_id), []).append((as_said, merged_triple))
    merged_triples = []
    for rows in triples_by_id.values():
        _, best = max(rows, key=lambda row: (row[0], row[1].count))
        merged_triples.append(replace(best, count=sum(view.count for _, view in rows)))
    return merged_triples
