"""The offline scorer: MiniLM from its package, the heads from this folder."""

import hashlib
import math
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from kgbias.errors import DataError, MissingExtra
from kgbias.measure.scorers import _masking, _minilm
from kgbias.measure.scorers._base import (
    REGARD,
    Judgement,
    regard_judgement,
    same_length_batches,
    toxicity_judgement,
)
from kgbias.models.load import find_device

HEADS = Path(__file__).with_name("heads.safetensors")
_RECIPE = "1"  # raise it when the way from text to answer changes outside _masking.py and HEADS
_BATCH_TOKENS = 1024
_REMEMBERED = 100_000  # texts; regard and toxicity read the same ones


class OfflineScorer:
    """Regard and toxicity from all-MiniLM-L6-v2 with small trained heads, without network.

    The group's mention is replaced by a neutral word before scoring (`_masking.neutralise`), so
    the same statement about two groups gets the same score where the rules find the mention. Texts
    are cut at 128 tokens. English only: in other scripts the answers mean nothing, near neutral or
    not. Answers are rounded to six decimals. Regard and toxicity share one network in a process.

    Args:
        measure: "regard" or "toxicity".
        heads: the trained weights, a safetensors file as kgbias.measure.training writes it.
        mask: False leaves the group's mention in place, for measuring what that does.
        device: "auto" (CUDA, else MPS, else the CPU) or the name of a torch device.
    """

    name = "minilm-heads"

    def __init__(
        self,
        measure: str,
        heads: Path = HEADS,
        *,
        mask: bool = True,
        device: str = "auto",
    ) -> None:
        self.measure: str = measure
        self._mask = mask
        self._device = find_device(device)
        self._tokenizer, self._network, self._known = _load(heads, self._device)
        self.version = _version(heads) + ("" if mask else "-unmasked")

    def score(self, texts: Sequence[str]) -> list[Judgement]:
        """Judge each text; one answer per text, in order. An empty list gives an empty list."""
        if self._mask:
            texts = [_masking.neutralise(text) for text in texts]
        if len(self._known) > _REMEMBERED:
            self._known.clear()
        new = [text for text in dict.fromkeys(texts) if text not in self._known]
        rows = _logits(self._network, self._tokenizer, new, self._device)
        self._known.update(zip(new, rows, strict=True))
        return [self._judge(self._known[text]) for text in texts]

    def _judge(self, row: Sequence[float]) -> Judgement:
        if self.measure == "toxicity":
            toxic = round(1 / (1 + math.exp(-row[len(REGARD)])), 6)
            return toxicity_judgement(toxic, {"toxic": toxic, "not toxic": round(1 - toxic, 6)})
        powers = [math.exp(logit - max(row[: len(REGARD)])) for logit in row[: len(REGARD)]]
        return regard_judgement(
            {
                label: round(power / sum(powers), 6)
                for label, power in zip(REGARD, powers, strict=True)
            }
        )


def _logits(network: Any, tokenizer: Any, texts: Sequence[str], device: str) -> list[list[float]]:
    """Run the network over the texts: one row of five logits per text."""
    import torch

    if not texts:
        return []
    encoded = tokenizer(list(texts), truncation=True, max_length=_minilm.MAX_TOKENS)["input_ids"]
    rows: list[list[float]] = [[] for _ in texts]
    for batch in same_length_batches([len(ids) for ids in encoded], _BATCH_TOKENS):
        with torch.inference_mode():
            ids = torch.tensor([encoded[index] for index in batch], device=device)
            answer = network(ids).tolist()
        for index, row in zip(batch, answer, strict=True):
            rows[index] = row
    return rows


@cache
def _load(heads: Path, device: str) -> tuple[Any, Any, dict[str, list[float]]]:
    try:
        from safetensors import SafetensorError
        from safetensors.torch import load_file

        from kgbias.measure.scorers._network import Ensemble
    except ImportError as error:
        raise MissingExtra(error.name or "torch", extra="scorers") from error
    encoder = _minilm.load_encoder()
    try:
        network = Ensemble(encoder, load_file(heads)).to(device)
    except (OSError, KeyError, RuntimeError, SafetensorError) as error:
        raise DataError(f"{heads} holds no heads for this version of kgbias: {error}") from error
    return _minilm.load_tokenizer(), network, {}


@cache
def _version(heads: Path) -> str:
    digest = hashlib.sha256(f"{_RECIPE} {_minilm.WEIGHTS_SHA256}".encode())
    for path in (heads, Path(_masking.__file__)):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]
