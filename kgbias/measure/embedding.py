"""Vectors of short texts, for topics and the axes of warmth and competence."""

from collections.abc import Sequence
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from kgbias.errors import DataError, UsageError
from kgbias.models.sentence_transformers import SentenceModel, open_sentence_model

if TYPE_CHECKING:
    from kgbias.models.load import LoadedModel

Vectors = NDArray[np.float64]
_MAX_BATCH_TOKENS = 1024
_MAX_KEPT_TEXTS = 20_000  # texts whose vectors are kept, 60 MB
_MARKS = ".,;:!?…()[]\"'“”‘’«»"
_MAX_CHARACTERS = 400  # characters given to other encoders, far below their token limits


class TextVectors(Protocol):
    """Turns texts into unit vectors. `name` and `version` cover all that can change an answer."""

    name: str
    version: str

    def embed(self, texts: Sequence[str]) -> Vectors:
        """One row per text, [n, d], of length 1 (0 for a text without a vector in the model). A row
        does not depend on the other texts."""
        ...


@cache
def load_vectors(spec: str = "minilm", device: str = "auto") -> TextVectors:
    """The text vectors that a spec names: "minilm" (all-MiniLM-L6-v2 from its package, the mean
    over tokens), "vectors:FILE" (word2vec, GloVe or fastText, the mean over words),
    "hf:ID-or-PATH" (any model of sentence-transformers), or the spec of any other model (its usual
    sentence vector). `device` is where a model computes them.

    Raises UsageError for any other spec, MissingExtra if a package is missing, DataError for a file
    that holds no vectors."""
    if spec == "minilm":
        return MiniLM(device)
    if spec.startswith("vectors:"):
        if device != "auto":
            raise UsageError(f"`device` does not apply to {spec}: leave it out")
        return WordMeans(Path(spec.removeprefix("vectors:")))
    sentences = open_sentence_model(spec, device=device)
    return ModelVectors(spec, device) if sentences is None else SentenceModelVectors(sentences)


class MiniLM:
    """all-MiniLM-L6-v2 as it was trained: the mean over all tokens, cut at 128."""

    name = "all-MiniLM-L6-v2"

    def __init__(self, device: str = "auto") -> None:
        from kgbias.measure.scorers import _minilm

        _minilm.check_available(device)
        self.version = _minilm.WEIGHTS_SHA256[:16]
        self._device, self._limit = device, _minilm.MAX_TOKENS
        self._kept_vectors: dict[str, Vectors] = {}  # both axes read the same texts

    @cached_property
    def _loaded_model(self) -> "LoadedModel":
        from kgbias.measure.scorers._minilm import load_minilm

        return load_minilm(self._device)

    def embed(self, texts: Sequence[str]) -> Vectors:
        if len(self._kept_vectors) > _MAX_KEPT_TEXTS and any(
            text not in self._kept_vectors for text in texts
        ):
            self._kept_vectors.clear()
        new_texts = [text for text in dict.fromkeys(texts) if text not in self._kept_vectors]
        self._kept_vectors |= dict(zip(new_texts, self._compute(new_texts), strict=True))
        return np.array([self._kept_vectors[text] for text in texts]).reshape(len(texts), 384)

    def forget(self) -> None:
        """Forget the vectors that are kept."""
        self._kept_vectors.clear()

    def remember_vectors(self, texts_and_means: Sequence[tuple[str, Vectors]]) -> None:
        """Take in what was read elsewhere: texts with the mean of their tokens' states."""
        if texts_and_means:
            texts, rows = zip(*texts_and_means, strict=True)
            self._kept_vectors |= dict(zip(texts, _round_units(np.array(rows)), strict=True))

    def _compute(self, texts: Sequence[str]) -> Vectors:
        import torch

        from kgbias.measure.scorers._base import same_length_batches

        if not texts:
            return np.zeros((0, 384))
        tokenizer, encoder = self._loaded_model.tokenizer, self._loaded_model.model
        token_ids = tokenizer(list(texts), truncation=True, max_length=self._limit)["input_ids"]
        rows = np.zeros((len(texts), 384))
        for batch in same_length_batches([len(ids) for ids in token_ids], _MAX_BATCH_TOKENS):
            with torch.inference_mode():
                ids = torch.tensor([token_ids[i] for i in batch], device=encoder.device)
                states = encoder(ids).last_hidden_state
            rows[batch] = states.mean(dim=1).cpu().double().numpy()
        return _round_units(rows)


class WordMeans:
    """The mean of static word vectors; words that are not in the table are left out. A word is
    looked for as it stands, then without the marks around it."""

    def __init__(self, path: Path) -> None:
        from kgbias.models.vectors import load_static_vectors as read

        self._table = read(path)
        self.name, self.version = self._table.info.name, self._table.info.revision

    def embed(self, texts: Sequence[str]) -> Vectors:
        words = [text.split() for text in texts]
        forms = {word: word.strip(_MARKS) for row in words for word in row}
        lookup = self._table.find(sorted({*forms, *forms.values()} - {""}))
        place = {word: n for n, word in enumerate(lookup.forms)}
        rows = np.zeros((len(texts), lookup.vectors.shape[1]))
        for row, text_words in zip(rows, words, strict=True):
            found = [word if word in place else forms[word] for word in text_words]
            word_rows = [place[word] for word in found if word in place]
            if word_rows:
                row[:] = lookup.vectors[word_rows].mean(axis=0)
        return normalise_rows(rows)


class SentenceModelVectors:
    """The vectors of a model of sentence-transformers."""

    def __init__(self, sentences: SentenceModel) -> None:
        self._sentences = sentences
        self.name, self.version = sentences.info.public_name, sentences.info.revision

    def embed(self, texts: Sequence[str]) -> Vectors:
        # An empty text has no token in some encoders, and so no vector.
        return _need_numbers(
            self._sentences.embed([text[:_MAX_CHARACTERS] or "." for text in texts])
        )


class ModelVectors:
    """The sentence vectors of a local model that is not from sentence-transformers."""

    def __init__(self, spec: str, device: str = "auto") -> None:
        from kgbias.models.embed import open_encoder

        self._encoder = open_encoder(spec, cache=False, device=device)
        self.name, self.version = self._encoder.info.public_name, self._encoder.info.revision

    def embed(self, texts: Sequence[str]) -> Vectors:
        from kgbias.models.embed import Span

        spans = [Span(text[:_MAX_CHARACTERS] or ".") for text in texts]
        order = sorted(set(spans), key=lambda span: span.text)  # batches depend only on the set
        rows = self._encoder.embed(order, self._encoder.sentence_encoding)
        place = {span: n for n, span in enumerate(order)}
        return normalise_rows(rows[[place[span] for span in spans]].astype(np.float64))


def _round_units(rows: Vectors) -> Vectors:
    # Floating-point sums depend on the batch; six decimals do not.
    return np.asarray(normalise_rows(rows).round(6), dtype=np.float64)


def normalise_rows(rows: Vectors) -> Vectors:
    """The rows scaled to length 1; a row of zeros stays. Raises DataError for values that are no
    numbers."""
    _need_numbers(rows)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.where(lengths > 0, lengths, 1), dtype=np.float64)


def _need_numbers(rows: Vectors) -> Vectors:
    """The rows. Raises DataError for values that are no numbers, of which a position or a topic
    would be made."""
    if not np.isfinite(rows).all():
        raise DataError("a text's vector holds a value that is no number, or infinite")
    return rows
