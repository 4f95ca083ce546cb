"""A model for many tests: each text is embedded once, each prediction made once, and a corpus is
searched once for a word."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kgbias.associate.contexts import CorpusContexts, Spans
from kgbias.associate.lpbs import Predictor
from kgbias.associate.sets import AssociationTest
from kgbias.models.base import ModelInfo
from kgbias.models.embed import LAST, Encoder, Encoding, Place, Span
from kgbias.models.predict import Filled, Prediction


class EmbeddedOnce:
    """An encoder that keeps the vectors it was asked for until they are forgotten."""

    def __init__(self, encoder: Encoder) -> None:
        self.info = encoder.info
        self._encoder = encoder
        self._vectors: dict[tuple[Span, Place], NDArray[np.float32]] = {}

    @property
    def sentence_encoding(self) -> Encoding:
        return self._encoder.sentence_encoding

    @property
    def sentence_encodings(self) -> tuple[Encoding, ...]:
        return self._encoder.sentence_encodings

    @property
    def layers(self) -> int:
        return self._encoder.layers

    def prepare(self, spans: Sequence[Span], places: Sequence[Place]) -> None:
        """Compute the vectors in all encodings at once."""
        for place, table in self._encoder.embed_many(spans, places).items():
            self._vectors |= {(span, place): row for span, row in zip(spans, table, strict=True)}

    def embed(
        self, spans: Sequence[Span], encoding: Encoding, layer: int = LAST
    ) -> NDArray[np.float32]:
        return self.embed_many(spans, [(encoding, layer)])[encoding, layer]

    def embed_many(
        self, spans: Sequence[Span], wanted: Iterable[Place]
    ) -> dict[Place, NDArray[np.float32]]:
        """As `Encoder.embed_many`; what is kept is not computed again."""
        places = list(dict.fromkeys(wanted))
        new = [
            span
            for span in dict.fromkeys(spans)
            if any((span, place) not in self._vectors for place in places)
        ]
        if new:
            self.prepare(new, places)
        return {place: np.array([self._vectors[s, place] for s in spans]) for place in places}

    def forget(self) -> None:
        """Free the memory."""
        self._vectors.clear()


class PredictedOnce:
    """A predictor that makes each prediction once."""

    def __init__(self, predictor: Predictor) -> None:
        self.info, self.kind = predictor.info, predictor.kind
        self._predictor = predictor
        self._said: dict[Filled, Prediction] = {}

    def known(self, word: str) -> bool:
        return self._predictor.known(word)

    def predict(self, sentences: Sequence[Filled]) -> list[Prediction]:
        new = [each for each in dict.fromkeys(sentences) if each not in self._said]
        self._said |= dict(zip(new, self._predictor.predict(new), strict=True))
        return [self._said[each] for each in sentences]


@dataclass(frozen=True)
class SearchedOnce:
    """A corpus whose contexts of a word are looked for once."""

    corpus: CorpusContexts
    _found: dict[str, list[Span]] = field(default_factory=dict)

    def spans(self, test: AssociationTest, model: ModelInfo) -> Spans:
        words = {word for each in test.sets.values() for word in each.words}
        if new := words - self._found.keys():
            self._found.update(self.corpus.search(new))
        return {
            role: {word: self._found[word] for word in each.words}
            for role, each in test.sets.items()
        }

    def describe(self) -> dict[str, Any]:
        return self.corpus.describe()
