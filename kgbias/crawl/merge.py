"""Near-duplicates: objects and predicates that say the same in other words ("swim", "swimming").

They are linked, never merged: nodes, triples, generations and scores stay as they are, and removing
the links leaves no trace. `merged` counts linked triples as one.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from kgbias.errors import UsageError
from kgbias.graph.store import StoredRun
from kgbias.graph.types import NearDuplicate, TripleView, node_id, triple_id
from kgbias.language.words import negated
from kgbias.models.embed import Encoder, Span
from kgbias.models.sentence_transformers import Sentences

KINDS = ("object", "predicate")

# Sentence embeddings put "be trusted" and "not be trusted" close together (cosine 0.91), as they do
# "better than men" and "better than women" (0.92), and "every 2 years" and "every 10 years" (0.92).
# So texts are linked only if both or neither are negated, and if they have the same numbers,
# opposites, words in capitals and words for men and women.
_NAMING = re.compile(
    r"\d[\d,.]*|\b[A-Z]\w+|\b(?:good|bad|black|white|"
    r"wom[ae]n|m[ae]n|(?:fe)?males?|girls?|boys?|wife|wives|husbands?)\b"
)


def links(
    texts: Sequence[tuple[str, int]],
    vectors: NDArray[np.float32],
    threshold: float,
    *,
    kind: str = "object",
    method: str = "",
) -> list[NearDuplicate]:
    """Link each text to the most similar one that is not itself linked, if their cosine is at least
    `threshold`.

    `texts` are (text, how often it was said), [n]; `vectors` their embeddings, [n, d]. Texts are
    taken from the most to the least frequent: a rarer text is linked to a more frequent one, and
    no chains of links arise. The order of the input does not matter.
    """
    order = sorted(range(len(texts)), key=lambda i: (-texts[i][1], texts[i][0]))
    unit = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    kept = [_kept(text) for text, _ in texts]
    number = {each: n for n, each in enumerate(dict.fromkeys(kept))}
    kinds = np.array([number[each] for each in kept], dtype=int)
    heads: list[int] = []
    of_heads = np.empty_like(unit)  # the first len(heads) rows are the heads' vectors
    found: list[NearDuplicate] = []
    for place in order:
        alike = of_heads[: len(heads)] @ unit[place]
        alike[kinds[np.array(heads, dtype=int)] != kinds[place]] = -1.0
        if heads and alike.max() >= threshold:
            text, head = texts[place][0], texts[heads[int(alike.argmax())]][0]
            ids = (node_id(kind, text), node_id(kind, head))
            similarity = round(float(alike.max()), 6)
            found.append(NearDuplicate(kind, *ids, text, head, similarity, method))
        else:
            of_heads[len(heads)] = unit[place]
            heads.append(place)
    return found


def _kept(text: str) -> tuple[bool, tuple[str, ...]]:
    """What two texts must have in common to be linked."""
    return negated(text), tuple(sorted(_NAMING.findall(text)))


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


def merge_run(
    run: StoredRun, *, threshold: float, encoder: str, undo: bool, device: str = "auto"
) -> Merged:
    """Link a run's near-duplicates with this spec's encoder, or remove the links."""
    if undo:
        run.save_near_duplicates([])
        links = []
    else:
        links = link_run(run, open_texts(encoder, device=device), threshold)
    views = run.triples()
    return Merged(tuple(links), len(views), len(merged(views, links)))


def open_texts(spec: str, *, device: str = "auto") -> Encoder | Sentences:
    """The model of a spec that embeds short texts."""
    from kgbias.models.embed import open_encoder
    from kgbias.models.sentence_transformers import open_sentences

    return open_sentences(spec, device=device) or open_encoder(spec, device=device)


def link_run(
    run: StoredRun, encoder: Encoder | Sentences, threshold: float, kinds: Sequence[str] = KINDS
) -> list[NearDuplicate]:
    """Link a run's near-duplicate objects and predicates in the store; earlier links are replaced.
    Each text is embedded as it is: by a sentence-transformers model with its own pooling, by any
    other encoder with the mean over its tokens."""
    found = near_duplicates(run.triples(), encoder, threshold, kinds)
    run.save_near_duplicates(found)
    return found


def near_duplicates(
    views: Sequence[TripleView],
    encoder: Encoder | Sentences,
    threshold: float,
    kinds: Sequence[str] = KINDS,
) -> list[NearDuplicate]:
    """The links between the objects and predicates of these triples, which may come from several
    runs; as `link_run`, but nothing is written."""
    if not 0 < threshold <= 1:
        raise UsageError("`threshold` is a cosine similarity: it must be above 0 and at most 1")
    found: list[NearDuplicate] = []
    pooled = "sentence" if isinstance(encoder, Sentences) else "mean"
    method = f"{encoder.info.public} {encoder.info.revision} {pooled} cosine>={threshold:g}"
    for kind in kinds:
        counts: Counter[str] = Counter()
        for view in views:
            counts[view.object if kind == "object" else view.predicate] += view.count
        texts = sorted(counts.items())
        if texts:
            words = [text for text, _ in texts]
            if isinstance(encoder, Sentences):
                vectors = encoder.embed(words).astype(np.float32)
            else:
                vectors = encoder.embed([Span(text) for text in words], "mean")
            found += links(texts, vectors, threshold, kind=kind, method=method)
    return found


def merged(views: Sequence[TripleView], found: Sequence[NearDuplicate]) -> list[TripleView]:
    """The triples with every linked text replaced by the one it is linked to. Triples of an arm
    that become equal are combined: their counts are added, and the scores are those of the triple
    said in these words (else of the most frequent one)."""
    stands = {(link.kind, link.node_id): link.head_text for link in found}
    together: dict[tuple[str, str], list[tuple[bool, TripleView]]] = {}
    for view in views:
        predicate = stands.get(("predicate", node_id("predicate", view.predicate)), view.predicate)
        object = stands.get(("object", node_id("object", view.object)), view.object)
        id = triple_id(view.group_id, node_id("predicate", predicate), node_id("object", object))
        as_said = id == view.id
        changed = replace(view, id=id, predicate=predicate, object=object)
        together.setdefault((view.arm, id), []).append((as_said, changed))
    kept = []
    for rows in together.values():
        _, best = max(rows, key=lambda row: (row[0], row[1].count))
        kept.append(replace(best, count=sum(view.count for _, view in rows)))
    return kept
