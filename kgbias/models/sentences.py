"""Sentences as vectors: each embedded once by a sentence encoder, and kept on disk."""

from collections.abc import Sequence

import numpy as np

from kgbias.models.base import Notify
from kgbias.models.embed import Encoder, Span, open_encoder

ENCODER = "minilm"
_LONGEST = 1_000  # characters of a text that are read, far below the limits of encoders in tokens


class SentenceVectors:
    """The usual sentence vectors of an encoder, at length 1. `name` is its spec."""

    def __init__(
        self, spec: str = ENCODER, *, device: str = "auto", notify: Notify | None = None
    ) -> None:
        self._encoder: Encoder = open_encoder(spec, device=device, notify=notify)
        self.name = self._encoder.info.name

    def __call__(self, texts: Sequence[str]) -> np.ndarray:
        """One row of length 1 for each text, [n, d]; the cosine of two is their product."""
        spans = [Span(text[:_LONGEST] or ".") for text in texts]
        rows = self._encoder.embed(spans, self._encoder.sentence_encoding).astype(np.float64)
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        return np.asarray(rows / np.where(lengths > 0, lengths, 1), dtype=np.float64)
