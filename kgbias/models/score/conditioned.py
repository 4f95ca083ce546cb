"""Texts under an encoder-decoder: the encoder reads an instruction, the decoder's text is scored.

This is how Siddique et al. 2024 (section 4.1) score Flan-UL2: the encoder reads the beginning of a
sentence, and the decoder is scored on the rest.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby, islice
from typing import Any

import numpy as np

from kgbias.errors import ModelError
from kgbias.io.progress import Progress
from kgbias.models.base import ModelInfo
from kgbias.models.load import to_float64
from kgbias.models.score.base import (
    Array,
    Convention,
    ProbeGrid,
    Scores,
    TextScorer,
    TokenIds,
    TokenisedText,
    context_length,
    looks_ahead,
    sum_scores,
)

GROUP_PLACEHOLDER = "{group}"
_MAX_BATCH_TOKENS = {"cpu": 512, "other": 8192}  # tokens of one forward pass of the decoder


@dataclass(frozen=True, slots=True)
class DecoderText(TokenisedText):
    """A text of the decoder, with what the encoder reads."""

    source: TokenIds = ()


class EncoderDecoderScorer(TextScorer):
    """An encoder-decoder. `instruction` is what the encoder reads.

    Where it holds "{group}", that stands for the group of a probe: the decoder then begins with the
    statement. log p of a whole probe is log p(group) + log p(statement | group), as it is for a
    causal model, with the group's own from an encoder that read the instruction without it.
    Otherwise the decoder reads the whole probe. A text alone is read after the instruction without
    a group. The decoder's start token is given, its end-of-text token is not scored.
    """

    def __init__(
        self, info: ModelInfo, tokenizer: Any, model: Any, instruction: str, dtype: str
    ) -> None:
        self._model, self._instruction = model, instruction
        start = getattr(model.config, "decoder_start_token_id", None)
        if start is None:
            start = model.generation_config.decoder_start_token_id
        if start is None:
            raise ModelError(f"{info.name} does not say which token its decoder starts with")
        self._start_tokens = (int(start),)
        self._batch = _MAX_BATCH_TOKENS["cpu" if model.device.type == "cpu" else "other"]
        convention = Convention("seq2seq", "start", dtype, "buckets", instruction)
        super().__init__(info, tokenizer, convention, context_length(model, tokenizer), 1)
        self._plain_source = self._tokenise_source("")
        states = self._encode_sources([self._plain_source])[0][None]
        if looks_ahead(
            lambda ids: self._decoder_logits(states, ids),
            int(model.config.vocab_size),
            model.device,
            str(model.dtype).removeprefix("torch."),
        ):
            raise ModelError(
                f"{info.name} looks ahead in its decoder's text, so it has no perplexity"
            )

    def grid(
        self, groups: Sequence[str], statements: Sequence[str], progress: Progress | None = None
    ) -> ProbeGrid:
        if GROUP_PLACEHOLDER not in self._instruction:
            return super().grid(groups, statements, progress)
        group_texts = [self._encode(group) for group in groups]
        statement_texts = [self._encode(statement) for statement in statements]
        probes = [
            DecoderText(
                statement_text.ids, statement_text.scored, len(statement_text.scored), source
            )
            for source in map(self._tokenise_source, groups)
            for statement_text in statement_texts
        ]
        for text, one in zip((*groups, *statements), (*group_texts, *statement_texts), strict=True):
            self._check_text(text, one)
        # The first of each group: its others have the same source.
        for text, one in zip(groups, probes[:: len(statements)], strict=True):
            self._check_text(text, DecoderText(one.source, one.scored))
        values = self._compute_values([*group_texts, *probes], None, progress)
        probe_rows = values[len(group_texts) :]
        shape = len(groups), len(statements)
        group = sum_scores(values[: len(group_texts)])
        statement = sum_scores(probe_rows).reshape(*shape)
        probe_scores = Scores(
            statement.log_likelihoods + group.log_likelihoods[:, None],
            statement.tokens + group.tokens[:, None],
        )
        return ProbeGrid(
            probe_scores,
            statement,
            group,
            lambda g, s: (
                self._to_surprisals(group_texts[g], values[g])
                + self._to_surprisals(statement_texts[s], probe_rows[g * len(statements) + s])
            ),
        )

    def _frame_tokens(self, ids: TokenIds, statement_tokens: int) -> TokenisedText:
        framed_ids = (*self._start_tokens, *ids)
        return DecoderText(
            framed_ids, tuple(range(1, len(framed_ids))), statement_tokens, self._plain_source
        )

    def _tokenise_source(self, group: str) -> TokenIds:
        """What the encoder reads, with its special tokens."""
        text = self._instruction.replace(GROUP_PLACEHOLDER, group).strip()
        return tuple(self._tokenizer(text)["input_ids"]) or self._start_tokens

    def _log_probabilities(
        self,
        tokenised: Sequence[TokenisedText],
        stems: Sequence[int] | None,
        advance: Callable[[int], None],
    ) -> list[Array]:
        import torch

        numbers_by_text: dict[tuple[TokenIds, TokenisedText], list[int]] = {}
        for n, one in enumerate(tokenised):
            source = one.source if isinstance(one, DecoderText) else self._plain_source
            numbers_by_text.setdefault((source, one), []).append(n)
        rows: list[Array] = [np.empty(0)] * len(tokenised)
        order = sorted(numbers_by_text, key=_text_lengths)
        with torch.inference_mode():
            for (_, length), equal in groupby(order, key=_text_lengths):
                while batch := list(islice(equal, max(1, self._batch // length))):
                    for text, values in zip(batch, self._read_batch(batch), strict=True):
                        for n in numbers_by_text[text]:
                            rows[n] = values
                        advance(len(numbers_by_text[text]))
        return rows

    def _read_batch(self, batch: Sequence[tuple[TokenIds, TokenisedText]]) -> list[Array]:
        """log p of the scored tokens, of texts of one length after sources of one length."""
        import torch

        sources = list(dict.fromkeys(source for source, _ in batch))
        places = [sources.index(source) for source, _ in batch]
        states = self._encode_sources(sources)[places]
        ids = torch.tensor([one.ids for _, one in batch], device=self._model.device)
        logs = to_float64(self._decoder_logits(states, ids[:, :-1])).log_softmax(-1)
        values = logs.gather(-1, ids[:, 1:, None].to(logs.device))[..., 0].cpu().numpy()
        return [
            np.asarray(row[[place - 1 for place in one.scored]], dtype=np.float64)
            for row, (_, one) in zip(values, batch, strict=True)
        ]

    def _encode_sources(self, sources: Sequence[TokenIds]) -> Any:
        """The encoder's output for sources of one length, [sources, length, width]."""
        import torch

        with torch.inference_mode():
            ids = torch.tensor(sources, device=self._model.device)
            return self._model.get_encoder()(input_ids=ids).last_hidden_state

    def _decoder_logits(self, states: Any, ids: Any) -> Any:
        from transformers.modeling_outputs import BaseModelOutput

        return self._model(
            encoder_outputs=BaseModelOutput(last_hidden_state=states),
            decoder_input_ids=ids,
            use_cache=False,
        ).logits


def _text_lengths(text: tuple[TokenIds, TokenisedText]) -> tuple[int, int]:
    source, one = text
    return len(source), len(one.ids)
