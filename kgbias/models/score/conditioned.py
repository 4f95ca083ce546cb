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
from kgbias.models.load import float64
from kgbias.models.score.base import (
    Array,
    Convention,
    Encoded,
    Grid,
    Ids,
    Scores,
    TextScorer,
    context,
    looks_ahead,
    sums,
)

GROUP = "{group}"
_BATCH = {"cpu": 512, "other": 8192}  # tokens of one forward pass of the decoder


@dataclass(frozen=True, slots=True)
class Conditioned(Encoded):
    """A text of the decoder, with what the encoder reads."""

    source: Ids = ()


class ConditionedScorer(TextScorer):
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
        self._start = (int(start),)
        self._batch = _BATCH["cpu" if model.device.type == "cpu" else "other"]
        convention = Convention("seq2seq", "start", dtype, "buckets", instruction)
        super().__init__(info, tokenizer, convention, context(model, tokenizer), 1)
        self._alone = self._source("")
        states = self._states([self._alone])[0][None]
        if looks_ahead(
            lambda ids: self._logits(states, ids),
            int(model.config.vocab_size),
            model.device,
            str(model.dtype).removeprefix("torch."),
        ):
            raise ModelError(
                f"{info.name} looks ahead in its decoder's text, so it has no perplexity"
            )

    def grid(
        self, groups: Sequence[str], statements: Sequence[str], progress: Progress | None = None
    ) -> Grid:
        if GROUP not in self._instruction:
            return super().grid(groups, statements, progress)
        alone = [self._encode(group) for group in groups]
        ends = [self._encode(statement) for statement in statements]
        probes = [
            Conditioned(end.ids, end.scored, len(end.scored), source)
            for source in map(self._source, groups)
            for end in ends
        ]
        for text, one in zip((*groups, *statements), (*alone, *ends), strict=True):
            self._check(text, one)
        for text, one in zip(groups, probes[:: len(statements)], strict=True):
            self._check(text, Conditioned(one.source, one.scored))
        values = self._run([*alone, *probes], None, progress)
        rows = values[len(alone) :]
        shape = len(groups), len(statements)
        group = sums(values[: len(alone)])
        statement = sums(rows).reshape(*shape)
        whole = Scores(
            statement.log_likelihoods + group.log_likelihoods[:, None],
            statement.tokens + group.tokens[:, None],
        )
        return Grid(
            whole,
            statement,
            group,
            lambda g, s: (
                self._in_bits(alone[g], values[g])
                + self._in_bits(ends[s], rows[g * len(statements) + s])
            ),
        )

    def _joined(self, ids: Ids, tail: int) -> Encoded:
        whole = (*self._start, *ids)
        return Conditioned(whole, tuple(range(1, len(whole))), tail, self._alone)

    def _source(self, group: str) -> Ids:
        """What the encoder reads, with its special tokens."""
        text = self._instruction.replace(GROUP, group).strip()
        return tuple(self._tokenizer(text)["input_ids"]) or self._start

    def _values(
        self,
        encoded: Sequence[Encoded],
        stems: Sequence[int] | None,
        advance: Callable[[int], None],
    ) -> list[Array]:
        import torch

        numbers: dict[tuple[Ids, Encoded], list[int]] = {}
        for n, one in enumerate(encoded):
            source = one.source if isinstance(one, Conditioned) else self._alone
            numbers.setdefault((source, one), []).append(n)
        found: list[Array] = [np.empty(0)] * len(encoded)
        order = sorted(numbers, key=_lengths)
        with torch.inference_mode():
            for (_, length), equal in groupby(order, key=_lengths):
                while batch := list(islice(equal, max(1, self._batch // length))):
                    for text, values in zip(batch, self._read(batch), strict=True):
                        for n in numbers[text]:
                            found[n] = values
                        advance(len(numbers[text]))
        return found

    def _read(self, batch: Sequence[tuple[Ids, Encoded]]) -> list[Array]:
        """log p of the scored tokens, of texts of one length after sources of one length."""
        import torch

        sources = list(dict.fromkeys(source for source, _ in batch))
        places = [sources.index(source) for source, _ in batch]
        states = self._states(sources)[places]
        ids = torch.tensor([one.ids for _, one in batch], device=self._model.device)
        logs = float64(self._logits(states, ids[:, :-1])).log_softmax(-1)
        values = logs.gather(-1, ids[:, 1:, None].to(logs.device))[..., 0].cpu().numpy()
        return [
            np.asarray(row[[place - 1 for place in one.scored]], dtype=np.float64)
            for row, (_, one) in zip(values, batch, strict=True)
        ]

    def _states(self, sources: Sequence[Ids]) -> Any:
        """The encoder's output for sources of one length, [sources, length, width]."""
        import torch

        with torch.inference_mode():
            ids = torch.tensor(sources, device=self._model.device)
            return self._model.get_encoder()(input_ids=ids).last_hidden_state

    def _logits(self, states: Any, ids: Any) -> Any:
        from transformers.modeling_outputs import BaseModelOutput

        return self._model(
            encoder_outputs=BaseModelOutput(last_hidden_state=states),
            decoder_input_ids=ids,
            use_cache=False,
        ).logits


def _lengths(text: tuple[Ids, Encoded]) -> tuple[int, int]:
    source, one = text
    return len(source), len(one.ids)
