"""WEAT on static vectors or a model's input embeddings; and s-SEAT and w-SEAT, the same test on
words in bleached sentences.

s-SEAT (May et al. 2019) takes the vector of the whole sentence, w-SEAT (Tan and Celis 2019) that of
the word in it.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from kgbias.methods.associations.effect import Array, measure_associations, scale_to_unit
from kgbias.methods.associations.result import (
    Association,
    ContextVectors,
    SetUsage,
    Statistics,
    build_association,
    check_words,
)
from kgbias.methods.associations.sets import (
    ROLES,
    AssociationTest,
    WordSet,
    fill_slot,
    slot_templates,
)
from kgbias.models.base import ModelInfo
from kgbias.models.embed import LAST_LAYER, Encoding, Span
from kgbias.models.vectors import VectorLookup
from kgbias.parameters import WrongValue


class WordVectors(Protocol):
    """Anything that has vectors for words."""

    @property
    def info(self) -> ModelInfo: ...

    def find(self, words: Iterable[str]) -> VectorLookup: ...


def weat(
    test: AssociationTest, vectors: WordVectors, statistics: Statistics | None = None
) -> Association:
    """The word embedding association test (Caliskan, Bryson and Narayanan 2017).

    s(w, A, B) = mean cos(w, a) - mean cos(w, b); d = (mean s(x) - mean s(y)) / std of s over X u Y.
    Words without a vector are left out and listed, so the sets may end up unequal in size. Raises
    DataError if a set is left empty or a vector has no direction (zero, NaN).
    """
    found_vectors = {role: vectors.find(words.words) for role, words in test.sets.items()}
    sets = {
        role: SetUsage(
            tuple(found_vectors[role].forms),
            found_vectors[role].missing,
            found_vectors[role].other_forms,
        )
        for role in ROLES
    }
    check_words(test, sets, vectors.info)
    a, b = found_vectors["a"].vectors, found_vectors["b"].vectors
    return build_association(
        test,
        "weat",
        vectors.info,
        measure_associations(found_vectors["x"].vectors, a, b),
        measure_associations(found_vectors["y"].vectors, a, b),
        sets,
        statistics or Statistics(),
    )


SeatMethod = Literal["s-seat", "w-seat"]
InContexts = Callable[[Encoding, int], tuple[dict[str, ContextVectors], dict[str, Any]]]


class Embedder(Protocol):
    """A model that embeds words and sentences."""

    @property
    def info(self) -> ModelInfo: ...

    @property
    def sentence_encoding(self) -> Encoding: ...

    def embed(
        self, spans: Sequence[Span], encoding: Encoding, layer: int = LAST_LAYER
    ) -> NDArray[np.float32]: ...


def seat(
    test: AssociationTest,
    model: Embedder,
    method: SeatMethod = "s-seat",
    statistics: Statistics | None = None,
    *,
    encoding: Encoding | None = None,
    layer: int = LAST_LAYER,
    in_contexts: InContexts | None = None,
) -> Association:
    """The sentence encoder association test.

    Each word is put into the templates of its set's slot. s(sentence, A, B) is the mean cosine to
    all sentences of A minus that to all of B; by default it is averaged over a word's sentences,
    and the permutations exchange words (`Statistics.unit`). `encoding` None is the model's own for
    s-SEAT and "word-average" for w-SEAT. `in_contexts` finds and embeds contexts other than
    templates, such as sentences of a corpus
    (`kgbias.methods.associations.contexts.embed_contexts`); a word without any is left out. Raises
    UsageError for an encoding of the other kind.
    """
    statistics = statistics or Statistics()
    encoding = encoding or (model.sentence_encoding if method == "s-seat" else "word-average")
    if encoding.startswith("word") != (method == "w-seat"):
        raise WrongValue(method, "encoding", encoding)
    if in_contexts is not None:
        return _seat_in_contexts(
            test, model.info, method, statistics, *in_contexts(encoding, layer)
        )
    spans = {role: fill_slot_templates(words) for role, words in test.sets.items()}
    flat = [span for role in ROLES for row in spans[role] for span in row]
    vectors = scale_to_unit(model.embed(flat, encoding, layer).astype(np.float64), model.info.name)
    tables = _split_by_role(vectors, spans)
    # A mean of cosines with unit vectors is the product with their mean.
    direction = tables["a"].mean(axis=(0, 1)) - tables["b"].mean(axis=(0, 1))
    x, y = (_reduce_units(tables[role] @ direction, statistics.unit) for role in "xy")
    return build_association(
        test,
        method,
        model.info,
        x,
        y,
        {role: SetUsage(test.sets[role].words) for role in ROLES},
        statistics,
        settings={
            "encoding": encoding,
            "layer": layer,
            "unit": statistics.unit,
            "templates": {role: len(spans[role][0]) for role in ROLES},
        },
    )


def _seat_in_contexts(
    test: AssociationTest,
    model: ModelInfo,
    method: SeatMethod,
    statistics: Statistics,
    contexts: Mapping[str, ContextVectors],
    settings: Mapping[str, Any],
) -> Association:
    """SEAT on words with any number of contexts each."""
    sets = {role: SetUsage(contexts[role].words, contexts[role].missing) for role in ROLES}
    check_words(test, sets, model)
    rows = {role: [scale_to_unit(table) for table in contexts[role].tables] for role in ROLES}
    a, b = (np.mean([table.mean(axis=0) for table in rows[role]], axis=0) for role in "ab")
    role_associations = {role: [table @ (a - b) for table in rows[role]] for role in "xy"}
    x, y = (
        np.array([row.mean() for row in role_associations[role]])
        if statistics.unit == "word"
        else np.concatenate(role_associations[role])
        for role in "xy"
    )
    used = {**settings, "unit": statistics.unit}
    return build_association(test, method, model, x, y, sets, statistics, settings=used)


def fill_slot_templates(words: WordSet) -> list[list[Span]]:
    """Each word in each template of its slot, as one list per word."""
    rows = []
    for word in words.words:
        filled = [fill_slot(template, word) for template in slot_templates(words.slot)]
        rows.append([Span(text, start, start + len(word)) for text, start in filled])
    return rows


def _split_by_role(vectors: Array, spans: Mapping[str, list[list[Span]]]) -> dict[str, Array]:
    """The rows as [words, templates, d] by role."""
    tables, start = {}, 0
    for role in ROLES:
        shape = (len(spans[role]), len(spans[role][0]))
        tables[role] = vectors[start : start + shape[0] * shape[1]].reshape(*shape, -1)
        start += shape[0] * shape[1]
    return tables


def _reduce_units(s: Array, unit: str) -> Array:
    return s.mean(axis=1) if unit == "word" else s.ravel()


class SetVectors(Protocol):
    """Anything that has vectors for the words of a set."""

    @property
    def info(self) -> ModelInfo: ...

    def find_set(self, words: WordSet) -> VectorLookup: ...


@dataclass(frozen=True, slots=True)
class StaticSetVectors:
    """Vectors that words have by themselves, whatever their set."""

    vectors: WordVectors

    @property
    def info(self) -> ModelInfo:
        return self.vectors.info

    def find_set(self, words: WordSet) -> VectorLookup:
        return self.vectors.find(words.words)


@dataclass(frozen=True, slots=True)
class TemplateSetVectors:
    """A language model as a table of word vectors: the mean of each word over bleached sentences,
    those of its set's slot."""

    model: Embedder
    encoding: Encoding = "word-average"
    layer: int = LAST_LAYER

    @property
    def info(self) -> ModelInfo:
        return self.model.info

    def find_set(self, words: WordSet) -> VectorLookup:
        """The vectors of all the words: a language model has one for any text."""
        spans = fill_slot_templates(words)
        flat = [span for row in spans for span in row]
        vectors = self.model.embed(flat, self.encoding, self.layer).astype(np.float64)
        rows = scale_to_unit(vectors, self.info.name).reshape(len(spans), len(spans[0]), -1)
        return VectorLookup({word: word for word in words.words}, rows.mean(axis=1), ())
