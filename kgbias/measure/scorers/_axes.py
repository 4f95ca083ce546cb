"""Warmth and competence: where a statement lies on the axes of the Stereotype Content Model."""

import hashlib
import tomllib
from collections.abc import Sequence
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np

from kgbias.errors import DataError, UsageError, no_such
from kgbias.measure.embedding import MiniLM, TextVectors, Vectors, load_vectors
from kgbias.measure.scorers import _masking
from kgbias.measure.scorers._base import Judgement
from kgbias.measure.scorers._offline import neutralise_text
from kgbias.measures import MEASURES
from kgbias.parallel.local import using_threads

SEEDS_FILE = Path(__file__).with_name("axes.toml")
SEED_FRAME = "They are {}."  # seed words take the place of a statement's words
_RECIPE_VERSION = "1"
_MIN_DIRECTION = 1e-6  # of vectors of length 1, in all directions of the axes
AXES = tuple(measure.name for measure in MEASURES.own_entries.values() if measure.in_vectors)


class AxisScorer:
    """The position of a statement on one axis, from the vectors of sentences.

    Each axis runs from the mean vector of its low seed words to that of its high ones, each word in
    "They are ...". The two directions are not at right angles, because good traits go together, so
    a statement's position is its pair of coordinates along both: moving along one axis, from the
    low seeds' mean (-1) to the high seeds' (+1), does not move it along the other. Most statements
    lie between -1 and 1; it is a position in a space of meanings, not a probability. A statement is
    read with the group's mention replaced ("They love food."), so that the group's name does not
    affect its position.

    Args:
        measure: one of `AXES`: "warmth" or "competence".
        embedding: the vectors' spec, see `kgbias.measure.embedding.load_vectors`.
        device: "auto" (CUDA, else MPS, else the CPU) or the name of a torch device.
    """

    language = "en"  # whatever the vectors: the seed words are English

    def __init__(self, measure: str, embedding: str = "minilm", device: str = "auto") -> None:
        if measure not in AXES:
            raise UsageError(no_such("axis", measure, AXES))
        self.measure = measure
        self._embedding, self.device = embedding, device
        self.vectors = load_vectors(embedding, device)
        self.name = f"axis:{self.vectors.name}"
        digest = hashlib.sha256(f"{_RECIPE_VERSION} {self.vectors.version}".encode())
        for path in (SEEDS_FILE, Path(_masking.__file__)):
            digest.update(path.read_bytes())
        self.version = digest.hexdigest()[:16]

    @cached_property
    def axis_and_offset(self) -> tuple[Vectors, float]:
        """The vector and the offset that turn a text's vector into its position."""
        if not isinstance(self.vectors, MiniLM):
            return _compute_axis(self.measure, self.vectors)
        # The same to the last bit in every process that opens it: floating-point sums depend on
        # the number of threads and on the batch, so what was read before must not matter.
        self.vectors.forget()
        with using_threads(1):
            return _compute_axis(self.measure, self.vectors)

    def open(self) -> None:
        """Read the seed words, which the first text would otherwise do."""
        _ = self.axis_and_offset

    def masked_form(self, text: str) -> str:
        """The text as it is read."""
        return neutralise_text(text)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles so that another process opens it again."""
        return AxisScorer, (self.measure, self._embedding, self.device)

    def score(self, texts: Sequence[str]) -> list[Judgement]:
        """Place each text; one answer per text, in order."""
        axis, middle = self.axis_and_offset
        rows = self.vectors.embed([self.masked_form(text) for text in texts])
        values = (rows @ axis - middle).round(5)
        high, low = MEASURES[self.measure].labels
        return [Judgement(float(v), high if v > 0 else low, {}) for v in values]


@cache
def seed_words(measure: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The words of the low end and of the high end."""
    words = tomllib.loads(SEEDS_FILE.read_text("utf-8"))[measure]
    return tuple(words["low"]), tuple(words["high"])


def _compute_axis(measure: str, vectors: TextVectors) -> tuple[Vectors, float]:
    ends = {
        axis: [
            vectors.embed([SEED_FRAME.format(word) for word in words]).mean(axis=0)
            for words in seed_words(axis)
        ]
        for axis in AXES
    }
    directions = np.stack([(high - low) / 2 for low, high in ends.values()])
    if np.linalg.matrix_rank(directions, tol=_MIN_DIRECTION) < len(AXES):
        raise DataError(
            f"these vectors have no axes of {' and '.join(AXES)}: they lack the seed words, or do "
            "not tell them apart"
        )
    # The dual basis: along one axis the other's seeds do not move.
    dual = np.linalg.pinv(directions).T[AXES.index(measure)]
    low, high = ends[measure]
    return np.asarray(dual), float(dual @ (high + low)) / 2
