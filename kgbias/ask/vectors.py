"""How near statements are to what a question is about: an index of sentence embeddings."""

from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np

from kgbias.graph.types import TripleView
from kgbias.measure.embedding import unit
from kgbias.models import open_encoder
from kgbias.models.embed import Encoder, Span

ENCODER = "minilm"


class Index(Protocol):
    """Statements by what they say. `method` says in one line how it finds them."""

    @property
    def method(self) -> str: ...

    def nearest(self, topic: str, triples: Sequence[TripleView]) -> Mapping[str, float]:
        """The cosine in [-1, 1] of the topic with what statements say of their groups, by triple
        id; an index may leave out those that are far."""
        ...


class Embedder:
    """Texts as unit vectors of a sentence encoder, each computed once and kept on disk."""

    def __init__(self, spec: str = ENCODER, device: str = "auto") -> None:
        self._encoder: Encoder = open_encoder(spec, device=device)
        self.name = self._encoder.info.name
        self.revision = self._encoder.info.revision

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        """One row of length 1 for each text, [n, d]."""
        spans = [Span(text or ".") for text in texts]
        rows = self._encoder.embed(spans, self._encoder.sentence_encoding)
        return unit(rows.astype(np.float64))


class InMemory:
    """Every statement compared with the question, in memory."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self.method = f"cosine of {embedder.name} embeddings, in memory"

    def nearest(self, topic: str, triples: Sequence[TripleView]) -> Mapping[str, float]:
        said = {t.id: said_of(t) for t in triples}
        if not said:
            return {}
        texts = sorted(set(said.values()))
        question, rows = self._embedder.embed([topic])[0], self._embedder.embed(texts)
        near = dict(zip(texts, (rows @ question).tolist(), strict=True))
        return {id: near[text] for id, text in said.items()}


def said_of(triple: TripleView) -> str:
    """What a statement says of its group, whichever that is."""
    return f"{triple.predicate} {triple.object}"
