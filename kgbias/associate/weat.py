"""WEAT on vectors that do not depend on context: static vectors, or a model's input embeddings."""

from collections.abc import Iterable
from typing import Protocol

from kgbias.associate.effect import associations
from kgbias.associate.result import Association, SetUse, Statistics, conclude, need_words
from kgbias.associate.sets import ROLES, AssociationTest
from kgbias.models.base import ModelInfo
from kgbias.models.vectors import Found


class WordVectors(Protocol):
    """Anything that has vectors for words."""

    @property
    def info(self) -> ModelInfo: ...

    def find(self, words: Iterable[str]) -> Found: ...


def weat(
    test: AssociationTest, vectors: WordVectors, statistics: Statistics | None = None
) -> Association:
    """The word embedding association test (Caliskan, Bryson and Narayanan 2017).

    s(w, A, B) = mean cos(w, a) - mean cos(w, b); d = (mean s(x) - mean s(y)) / std of s over X u Y.
    Words without a vector are left out and listed, so the sets may end up of unequal size. Raises
    DataError where a set is left empty or a vector has no direction (zero, NaN).
    """
    found = {role: vectors.find(words.words) for role, words in test.sets.items()}
    sets = {
        role: SetUse(tuple(found[role].forms), found[role].missing, found[role].other_forms)
        for role in ROLES
    }
    need_words(test, sets, vectors.info)
    a, b = found["a"].vectors, found["b"].vectors
    return conclude(
        test,
        "weat",
        vectors.info,
        associations(found["x"].vectors, a, b),
        associations(found["y"].vectors, a, b),
        sets,
        statistics or Statistics(),
    )
