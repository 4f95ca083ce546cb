"""Pseudo-perplexity under a masked model (Salazar et al. 2020): each token is masked in turn, and
read from all others. With `words`, the later pieces of its word are masked too (Kauf and Ivanova
2023, PLL-word-l2r): else a word of several pieces is easy to guess from the rest of itself."""

from collections.abc import Callable, Sequence
from itertools import groupby, islice
from typing import Any

import numpy as np

from kgbias.errors import ModelError
from kgbias.models.base import ModelInfo
from kgbias.models.load import float64
from kgbias.models.score.base import Array, Convention, Encoded, Ids, TextScorer, context

_BATCH = {"cpu": 2048, "other": 65536}  # tokens of one forward pass
_TOLERANCE = 1e-4  # nats; a head that depends on the positions it is given is off by far more

Copy = tuple[Ids, int]  # a text with one token masked, and where


class MaskedScorer(TextScorer):
    """A masked language model. A masked copy shared by several texts (which differ only in that
    token) is read once; copies of one length make a batch, without padding; only the masked
    positions go through the output layer, if the model allows it."""

    def __init__(
        self, info: ModelInfo, tokenizer: Any, model: Any, dtype: str = "", *, words: bool = False
    ) -> None:
        if tokenizer.mask_token_id is None:
            raise ModelError(f"{info.name} has no mask token")
        self._model = model
        self._mask = int(tokenizer.mask_token_id)
        place = "cpu" if model.device.type == "cpu" else "other"
        self._batch = _BATCH[place]
        dtype = dtype or str(model.dtype).removeprefix("torch.")
        convention = Convention("masked", "special", dtype, masked="word" if words else "")
        self._words = words
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
        raise ModelError(f"{self.info.name} tokenises a text differently beside its special tokens")

    def _values(
        self,
        encoded: Sequence[Encoded],
        stems: Sequence[int] | None,
        advance: Callable[[int], None],
    ) -> list[Array]:
        import torch

        found = [np.empty(len(one.scored)) for one in encoded]
        left = [len(one.scored) for one in encoded]
        asked: dict[Copy, list[tuple[int, int]]] = {}  # each copy, with the texts that it is of
        for n, one in enumerate(encoded):
            ends = self._ends(one)
            for column, place in enumerate(one.scored):
                end = ends[column]
                hidden = (self._mask,) * (end - place)
                copy = (*one.ids[:place], *hidden, *one.ids[end:]), place
                asked.setdefault(copy, []).append((n, column))
        with torch.inference_mode():
            for length, equal in groupby(sorted(asked, key=_length), key=_length):
                while batch := list(islice(equal, max(1, self._batch // length))):
                    of = [(row, *text) for row, copy in enumerate(batch) for text in asked[copy]]
                    tokens = [encoded[n].ids[encoded[n].scored[column]] for _, n, column in of]
                    values = self._read(batch, [row for row, *_ in of], tokens)
                    for (_, n, column), value in zip(of, values, strict=True):
                        found[n][column] = value
                        left[n] -= 1
                    advance(len({n for _, n, _ in of if not left[n]}))
        return found

    def _ends(self, one: Encoded) -> list[int]:
        """Up to where a text is masked to predict each scored token: behind the token itself, or
        its word."""
        if not self._words:
            return [place + 1 for place in one.scored]
        pieces = self._tokenizer.convert_ids_to_tokens([one.ids[place] for place in one.scored])
        joined = any(piece.startswith("##") for piece in self._tokenizer.get_vocab())
        ends = [place + 1 for place in one.scored]
        for n in range(len(pieces) - 2, -1, -1):
            if _continues(pieces[n + 1], joined) and one.scored[n + 1] == one.scored[n] + 1:
                ends[n] = ends[n + 1]
        return ends

    def _read(
        self, batch: Sequence[Copy], rows: Sequence[int], tokens: Sequence[int]
    ) -> list[float]:
        """log p(token | the copy) of each token, of the copy in that row; copies of one length."""
        import torch

        device = self._model.device
        ids = torch.tensor([copy for copy, _ in batch], device=device)
        places = torch.tensor([place for _, place in batch], device=device)
        every = torch.arange(len(batch), device=device)
        if not self._selects:
            logits = self._model(input_ids=ids).logits[every, places]
        else:
            with _only(self._model.base_model, every, places):
                logits = self._model(input_ids=ids).logits[0]
        logits = logits.float()
        less = logits.amax(-1, keepdim=True)
        own = float64(logits.sub_(less)[rows, tokens])
        # float32 is exact enough for a sum of exponentials of which the largest is 1
        values: list[float] = (own - float64(logits.exp_().sum(-1)).log()[rows]).tolist()
        return values

    def _agrees(self) -> bool:
        """Whether the output layer may be given only the masked positions."""
        import torch

        text = (*self._before, *self._plain("a b c d"), *self._after)
        first, end = len(self._before), len(text) - len(self._after)
        batch = [
            ((*text[:place], self._mask, *text[place + 1 :]), place) for place in range(first, end)
        ]
        asked = list(range(len(batch))), list(text[first:end])
        with torch.inference_mode():
            try:
                few = self._read(batch, *asked)
            except Exception:  # an architecture may build its output layer in any way
                return False
            self._selects = False
            return bool(np.allclose(few, self._read(batch, *asked), rtol=0, atol=_TOLERANCE))


class _only:
    """Inside this context, a base model returns the states of only one position per row,
    [1, rows, width], for the model's output layer."""

    def __init__(self, base: Any, rows: Any, places: Any) -> None:
        self._base, self._rows, self._places = base, rows, places

    def __enter__(self) -> None:
        def cut(_: Any, __: Any, output: Any) -> Any:
            output["last_hidden_state"] = output.last_hidden_state[self._rows, self._places][None]
            return output

        self._hook = self._base.register_forward_hook(cut)

    def __exit__(self, *_: object) -> None:
        self._hook.remove()


def _continues(piece: str, joined: bool) -> bool:
    """Whether a piece goes on with the word before it: in WordPiece by its mark (`joined`), in
    other vocabularies because no space begins it; punctuation is a word of its own."""
    if joined:
        return piece.startswith("##")
    return not piece.startswith(("Ġ", "▁", " ")) and any(c.isalnum() for c in piece)


def _length(copy: Copy) -> int:
    return len(copy[0])
