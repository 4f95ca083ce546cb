"""Pseudo-perplexity under a masked model (Salazar et al. 2020): each token is masked in turn, and
read from all others. With `words`, the later pieces of its word are masked too (Kauf and Ivanova
2023, PLL-word-l2r): else a word of several pieces is easy to guess from the rest of itself."""

from collections.abc import Callable, Sequence
from itertools import groupby, islice
from typing import Any, NamedTuple

import numpy as np

from kgbias.errors import ModelError
from kgbias.models.base import ModelInfo
from kgbias.models.load import to_float64
from kgbias.models.score.base import (
    Array,
    Convention,
    TextScorer,
    TokenIds,
    TokenisedText,
    context_length,
)

_MAX_BATCH_TOKENS = {"cpu": 2048, "other": 65536}  # tokens of one forward pass
_MAX_HEAD_GAP = 1e-4  # nats; a head that depends on the positions it is given is off by far more

MaskedCopy = tuple[TokenIds, int]  # a text with one token masked, and where


class _SpecialTokens(NamedTuple):
    """The special tokens before and after a text."""

    before: TokenIds
    after: TokenIds


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
        device_kind = "cpu" if model.device.type == "cpu" else "other"
        self._batch_tokens = _MAX_BATCH_TOKENS[device_kind]
        dtype = dtype or str(model.dtype).removeprefix("torch.")
        convention = Convention("masked", "special", dtype, masked="word" if words else "")
        self._words = words
        super().__init__(info, tokenizer, convention, context_length(model, tokenizer), 0)
        self._tokens_before, self._tokens_after = self._find_special_tokens()
        self._first_own_token = len(self._tokens_before)
        self._selects_positions = True
        self._selects_positions = self._check_selection()

    def _frame_tokens(self, ids: TokenIds, statement_tokens: int) -> TokenisedText:
        first_place = len(self._tokens_before)
        scored_places = tuple(range(first_place, first_place + len(ids)))
        return TokenisedText(
            (*self._tokens_before, *ids, *self._tokens_after), scored_places, statement_tokens
        )

    def _find_special_tokens(self) -> _SpecialTokens:
        """The special tokens before and after a text."""
        plain_tokens = self._tokenise("a b")
        whole_tokens = tuple(self._tokenizer("a b")["input_ids"])
        for start in range(len(whole_tokens) - len(plain_tokens) + 1):
            if whole_tokens[start : start + len(plain_tokens)] == plain_tokens:
                return _SpecialTokens(
                    whole_tokens[:start], whole_tokens[start + len(plain_tokens) :]
                )
        raise ModelError(f"{self.info.name} tokenises a text differently beside its special tokens")

    def _log_probabilities(
        self,
        tokenised: Sequence[TokenisedText],
        stems: Sequence[int] | None,
        advance: Callable[[int], None],
    ) -> list[Array]:
        import torch

        rows = [np.empty(len(one.scored)) for one in tokenised]
        remaining_counts = [len(one.scored) for one in tokenised]
        texts_by_copy: dict[
            MaskedCopy, list[tuple[int, int]]
        ] = {}  # each copy, with the texts that it is of
        for n, one in enumerate(tokenised):
            ends = self._mask_ends(one)
            for column, place in enumerate(one.scored):
                mask_end = ends[column]
                masks = (self._mask,) * (mask_end - place)
                copy = (*one.ids[:place], *masks, *one.ids[mask_end:]), place
                texts_by_copy.setdefault(copy, []).append((n, column))
        with torch.inference_mode():
            for length, equal in groupby(sorted(texts_by_copy, key=_copy_length), key=_copy_length):
                while batch := list(islice(equal, max(1, self._batch_tokens // length))):
                    queries = [
                        (row, *text)
                        for row, copy in enumerate(batch)
                        for text in texts_by_copy[copy]
                    ]
                    tokens = [
                        tokenised[n].ids[tokenised[n].scored[column]] for _, n, column in queries
                    ]
                    values = self._read_copies(batch, [row for row, *_ in queries], tokens)
                    for (_, n, column), value in zip(queries, values, strict=True):
                        rows[n][column] = value
                        remaining_counts[n] -= 1
                    advance(len({n for _, n, _ in queries if not remaining_counts[n]}))
        return rows

    def _mask_ends(self, tokenised: TokenisedText) -> list[int]:
        """Up to where a text is masked to predict each scored token: behind the token itself, or
        its word."""
        if not self._words:
            return [place + 1 for place in tokenised.scored]
        pieces = self._tokenizer.convert_ids_to_tokens(
            [tokenised.ids[place] for place in tokenised.scored]
        )
        is_wordpiece = any(piece.startswith("##") for piece in self._tokenizer.get_vocab())
        ends = [place + 1 for place in tokenised.scored]
        # From the end, so that a piece gets the end of its word from the next one.
        for n in range(len(pieces) - 2, -1, -1):
            if (
                _continues_word(pieces[n + 1], is_wordpiece)
                and tokenised.scored[n + 1] == tokenised.scored[n] + 1
            ):
                ends[n] = ends[n + 1]
        return ends

    def _read_copies(
        self, batch: Sequence[MaskedCopy], rows: Sequence[int], tokens: Sequence[int]
    ) -> list[float]:
        """log p(token | the copy) of each token, of the copy in that row; copies of one length."""
        import torch

        device = self._model.device
        ids = torch.tensor([copy for copy, _ in batch], device=device)
        places = torch.tensor([place for _, place in batch], device=device)
        row_numbers = torch.arange(len(batch), device=device)
        if not self._selects_positions:
            logits = self._model(input_ids=ids).logits[row_numbers, places]
        else:
            with _PositionHook(self._model.base_model, row_numbers, places):
                logits = self._model(input_ids=ids).logits[0]
        logits = logits.float()
        row_maxima = logits.amax(-1, keepdim=True)
        token_logits = to_float64(logits.sub_(row_maxima)[rows, tokens])
        # float32 is exact enough for a sum of exponentials of which the largest is 1
        values: list[float] = (
            token_logits - to_float64(logits.exp_().sum(-1)).log()[rows]
        ).tolist()
        return values

    def _check_selection(self) -> bool:
        """Whether the output layer may be given only the masked positions."""
        import torch

        text = (*self._tokens_before, *self._tokenise("a b c d"), *self._tokens_after)
        first_place, end_place = len(self._tokens_before), len(text) - len(self._tokens_after)
        batch = [
            ((*text[:place], self._mask, *text[place + 1 :]), place)
            for place in range(first_place, end_place)
        ]
        rows_and_tokens = list(range(len(batch))), list(text[first_place:end_place])
        with torch.inference_mode():
            try:
                selected_values = self._read_copies(batch, *rows_and_tokens)
            except Exception:  # an architecture may build its output layer in any way
                return False
            self._selects_positions = False
            return bool(
                np.allclose(
                    selected_values,
                    self._read_copies(batch, *rows_and_tokens),
                    rtol=0,
                    atol=_MAX_HEAD_GAP,
                )
            )


class _PositionHook:
    """Inside this context, a base model returns the states of only one position per row,
    [1, rows, width], for the model's output layer."""

    def __init__(self, base: Any, rows: Any, places: Any) -> None:
        self._base, self._rows, self._places = base, rows, places

    def __enter__(self) -> None:
        def keep_positions(_: Any, __: Any, output: Any) -> Any:
            output["last_hidden_state"] = output.last_hidden_state[self._rows, self._places][None]
            return output

        self._hook = self._base.register_forward_hook(keep_positions)

    def __exit__(self, *_: object) -> None:
        self._hook.remove()


def _continues_word(piece: str, is_wordpiece: bool) -> bool:
    """Whether a piece goes on with the word before it: in WordPiece by its mark (`is_wordpiece`),
    in other vocabularies because no space begins it; punctuation is a word of its own."""
    if is_wordpiece:
        return piece.startswith("##")
    return not piece.startswith(("Ġ", "▁", " ")) and any(c.isalnum() for c in piece)


def _copy_length(copy: MaskedCopy) -> int:
    return len(copy[0])
