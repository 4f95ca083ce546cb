"""Pseudo-perplexity under a masked model (Salazar et al. 2020): each token is masked in turn, and
read from all others."""

from collections.abc import Callable, Sequence
from itertools import groupby, islice
from typing import Any

import numpy as np

from kgbias.errors import ModelError
from kgbias.models.base import ModelInfo
from kgbias.models.load import float64
from kgbias.models.score.base import Array, Convention, Encoded, Ids, TextScorer, context

_BATCH = {"cpu": 2048, "other": 65536}  # tokens of one forward pass
_TOLERANCE = 1e-4  # nats; a head that minds which positions it is given is off by far more


class MaskedScorer(TextScorer):
    """A masked language model. Copies of one length make a batch, so that nothing is padded; only
    the masked positions go through the output layer, where the model allows it."""

    def __init__(self, info: ModelInfo, tokenizer: Any, model: Any, dtype: str = "") -> None:
        if tokenizer.mask_token_id is None:
            raise ModelError(f"{info.name} has no mask token")
        self._model = model
        self._mask = int(tokenizer.mask_token_id)
        place = "cpu" if model.device.type == "cpu" else "other"
        self._batch = _BATCH[place]
        dtype = dtype or str(model.dtype).removeprefix("torch.")
        convention = Convention("masked", "special", dtype)
        super().__init__(info, tokenizer, convention, context(model, tokenizer), 0)
        self._before, self._after = self._around()
        self._first = len(self._before)
        self._selects = True
        self._selects = self._agrees()

    def _joined(self, ids: Ids, tail: int) -> Encoded:
        first = len(self._before)
        scored = tuple(range(first, first + len(ids)))
        return Encoded((*self._before, *ids, *self._after), scored, tail)

    def _around(self) -> tuple[Ids, Ids]:
        """The special tokens before and after a text."""
        plain = self._plain("a b")
        whole = tuple(self._tokenizer("a b")["input_ids"])
        for start in range(len(whole) - len(plain) + 1):
            if whole[start : start + len(plain)] == plain:
                return whole[:start], whole[start + len(plain) :]
        raise ModelError(f"{self.info.name} tokenises a text differently with its special tokens")

    def _values(
        self,
        encoded: Sequence[Encoded],
        stems: Sequence[int] | None,
        advance: Callable[[int], None],
    ) -> list[Array]:
        import torch

        numbers: dict[tuple[Ids, Ids], list[int]] = {}
        for n, one in enumerate(encoded):
            numbers.setdefault((one.ids, one.scored), []).append(n)
        found: list[Array] = [np.empty(0)] * len(encoded)
        order = sorted(numbers, key=lambda text: len(text[0]))
        with torch.inference_mode():
            for length, equal in groupby(order, key=lambda text: len(text[0])):
                copies = ((text, place) for text in equal for place in text[1])
                gathered: dict[tuple[Ids, Ids], list[float]] = {}
                while batch := list(islice(copies, max(1, self._batch // length))):
                    values = self._read([(text[0], place) for text, place in batch])
                    for (text, _), value in zip(batch, values, strict=True):
                        row = gathered.setdefault(text, [])
                        row.append(value)
                        if len(row) == len(text[1]):
                            for n in numbers[text]:
                                found[n] = np.array(row, dtype=np.float64)
                            advance(len(numbers[text]))
        return found

    def _read(self, batch: Sequence[tuple[Ids, int]]) -> list[float]:
        """log p(token | the text with it masked), of copies of one length."""
        import torch

        device = self._model.device
        ids = torch.tensor([sequence for sequence, _ in batch], device=device)
        places = torch.tensor([place for _, place in batch], device=device)
        rows = torch.arange(len(batch), device=device)
        tokens = ids[rows, places]
        ids[rows, places] = self._mask
        if not self._selects:
            logits = self._model(input_ids=ids).logits[rows, places]
        else:
            with _only(self._model.base_model, rows, places):
                logits = self._model(input_ids=ids).logits[0]
        logits = float64(logits)
        rows, tokens = rows.to(logits.device), tokens.to(logits.device)
        values: list[float] = logits.log_softmax(-1)[rows, tokens].tolist()
        return values

    def _agrees(self) -> bool:
        """Whether the output layer may be given the masked positions alone."""
        import torch

        text = (*self._before, *self._plain("a b c d"), *self._after)
        batch = [(text, place) for place in range(len(self._before), len(text) - len(self._after))]
        with torch.inference_mode():
            try:
                few = self._read(batch)
            except Exception:  # an architecture may build its output layer in any way
                return False
            self._selects = False
            return bool(np.allclose(few, self._read(batch), rtol=0, atol=_TOLERANCE))


class _only:
    """While it lasts, a base model returns the states of one position per row, [1, rows, width], so
    that the model's output layer sees nothing else."""

    def __init__(self, base: Any, rows: Any, places: Any) -> None:
        self._base, self._rows, self._places = base, rows, places

    def __enter__(self) -> None:
        def cut(_: Any, __: Any, output: Any) -> Any:
            output["last_hidden_state"] = output.last_hidden_state[self._rows, self._places][None]
            return output

        self._hook = self._base.register_forward_hook(cut)

    def __exit__(self, *_: object) -> None:
        self._hook.remove()
