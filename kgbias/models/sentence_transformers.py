"""Sentence vectors from any sentence-transformers model (Reimers and Gurevych 2019)."""

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kgbias.errors import MissingExtra, ModelError, first_line
from kgbias.models.base import ModelInfo
from kgbias.models.load import find_device
from kgbias.models.pretrained import empty_stdin, quiet_transformers
from kgbias.models.spec import ModelFiles, parse_spec, resolve

_BATCH_TEXTS = 32


class SentenceModel:
    """A sentence-transformers model, loaded when its vectors are first asked for.

    It defines its own pooling and what comes after; a model that does not (any encoder of
    transformers) is pooled by the mean over its tokens. A model's own code is not run.
    """

    def __init__(self, files: ModelFiles, device: str = "auto") -> None:
        self.info: ModelInfo = files.info
        self._files = files
        self._device = device

    def embed(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """One row per text, [n, d], of length 1, rounded to six decimals. Texts are cut at the
        model's own limit.

        Raises MissingExtra without sentence-transformers, ModelError if it cannot load the
        model."""
        if not texts:
            return np.zeros((0, 0))
        distinct = sorted(set(texts))  # a batch must depend only on the set of texts
        rows = self._model.encode(
            distinct,
            batch_size=_BATCH_TEXTS,
            normalize_embeddings=True,
            convert_to_numpy=True,
            show_progress_bar=False,
        )
        row_by_text = {text: n for n, text in enumerate(distinct)}
        wanted_rows = np.asarray(rows, dtype=np.float64)[[row_by_text[text] for text in texts]]
        return np.asarray(wanted_rows.round(6))

    @cached_property
    def _model(self) -> Any:
        try:
            from sentence_transformers import SentenceTransformer
        except ModuleNotFoundError as error:
            raise MissingExtra(error.name or "sentence-transformers", extra="topics") from error
        with quiet_transformers(), empty_stdin():
            try:
                return SentenceTransformer(
                    self._files.location(lambda _: None),
                    revision=self._files.commit,
                    device=find_device(self._device),
                    trust_remote_code=False,
                    model_kwargs={"dtype": "float32"},  # as everywhere, not as stored
                )
            except Exception as error:  # whatever a broken folder raises
                raise ModelError(
                    f"{self.info.name} is not a sentence-transformers model: {first_line(error)}"
                ) from error


def open_sentence_model(spec: str, *, device: str = "auto") -> SentenceModel | None:
    """The model of an hf: spec; None for any other spec, which sentence-transformers does not know.

    Raises UsageError for an invalid spec, ModelError for a model that does not exist."""
    parsed = parse_spec(spec)
    if parsed.kind != "hf" or parsed.file:
        return None
    return SentenceModel(resolve(parsed), device)
