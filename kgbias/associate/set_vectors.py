"""Vectors of word sets: static ones, or those of words in bleached sentences."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from kgbias.associate.effect import unit
from kgbias.associate.seat import Embedder, in_templates
from kgbias.associate.sets import WordSet
from kgbias.associate.weat import WordVectors
from kgbias.models.base import ModelInfo
from kgbias.models.embed import LAST, Encoding
from kgbias.models.vectors import Found


class SetVectors(Protocol):
    """Anything that has vectors for the words of a set."""

    @property
    def info(self) -> ModelInfo: ...

    def find_set(self, words: WordSet) -> Found: ...


@dataclass(frozen=True, slots=True)
class StaticSets:
    """Vectors that words have by themselves, whatever their set."""

    vectors: WordVectors

    @property
    def info(self) -> ModelInfo:
        return self.vectors.info

    def find_set(self, words: WordSet) -> Found:
        return self.vectors.find(words.words)


@dataclass(frozen=True, slots=True)
class WordsInTemplates:
    """A language model as a table of word vectors: the mean of each word over bleached sentences,
    those of its set's slot."""

    model: Embedder
    encoding: Encoding = "word-average"
    layer: int = LAST

    @property
    def info(self) -> ModelInfo:
        return self.model.info

    def find_set(self, words: WordSet) -> Found:
        """The vectors of all the words: a language model has one for any text."""
        spans = in_templates(words)
        flat = [span for row in spans for span in row]
        vectors = self.model.embed(flat, self.encoding, self.layer).astype(np.float64)
        rows = unit(vectors, self.info.name).reshape(len(spans), len(spans[0]), -1)
        return Found({word: word for word in words.words}, rows.mean(axis=1), ())
