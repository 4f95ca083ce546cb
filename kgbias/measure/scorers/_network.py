"""The network: MiniLM with low-rank deltas, pooled by attention, and two small heads.

    token states (T x 384)                       MiniLM, frozen, W + B A on every linear map
      mean over tokens + learned attention  ->   384 * (1 + QUERIES)
      tanh layer                            ->   HIDDEN
      regard logits (3), toxicity logit (1), and in training a word's valence (1)

Only the deltas and the heads are trained and shipped; at scoring the deltas are added into the
encoder's weights once, so that they cost nothing. Deltas: Hu et al. 2021, "LoRA".
"""

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from kgbias.measure.scorers._base import REGARD

WIDTH = 384
RANK = 4
SCALE = 2.0
QUERIES = 2
HIDDEN = 64
DROPOUT = 0.2
_LINEAR_MAPS = (
    "attention.self.query",
    "attention.self.key",
    "attention.self.value",
    "attention.output.dense",
    "intermediate.dense",
    "output.dense",
)


class LowRank(nn.Module):
    """A frozen linear map plus a trainable delta of rank RANK, zero at the start."""

    def __init__(self, base: nn.Linear, generator: torch.Generator) -> None:
        super().__init__()
        self.base = base
        start = torch.randn(RANK, base.in_features, generator=generator)
        self.down = nn.Parameter(start / math.sqrt(base.in_features))
        self.up = nn.Parameter(torch.zeros(base.out_features, RANK))

    def forward(self, states: Tensor) -> Tensor:
        low = functional.linear(functional.linear(states, self.down), self.up)
        out: Tensor = self.base(states)
        return out + SCALE * low


class Heads(nn.Module):
    """From token states (batch, tokens, 384) and their mask to logits (batch, 5).

    Columns 0-2 are regard in the order of REGARD, column 3 toxicity, column 4 valence.
    """

    def __init__(self, generator: torch.Generator) -> None:
        super().__init__()
        self.queries = nn.Parameter(torch.randn(WIDTH, QUERIES, generator=generator) / 20)
        self.hidden = nn.Linear(WIDTH * (1 + QUERIES), HIDDEN)
        self.out = nn.Linear(HIDDEN, len(REGARD) + 2)
        self.dropout = nn.Dropout(DROPOUT)

    def forward(self, states: Tensor, mask: Tensor) -> Tensor:
        kept = mask.unsqueeze(-1).to(states.dtype)
        mean = (states * kept).sum(1) / kept.sum(1)
        weights = (states @ self.queries + (kept - 1) * 1e4).softmax(1)
        attended = torch.einsum("btq,btd->bqd", weights, states).flatten(1)
        pooled = self.dropout(torch.cat([mean, attended], dim=1))
        logits: Tensor = self.out(self.dropout(torch.tanh(self.hidden(pooled))))
        return logits


class Network(nn.Module):
    """The encoder with its deltas, and the heads."""

    def __init__(self, encoder: Any, seed: int = 0) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(seed)
        self.encoder = encoder.requires_grad_(False)
        for layer in encoder.encoder.layer:
            for path in _LINEAR_MAPS:
                parent, _, name = path.rpartition(".")
                owner = layer.get_submodule(parent)
                setattr(owner, name, LowRank(getattr(owner, name), generator))
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            self.heads = Heads(generator)

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        states = self.encoder(input_ids=ids, attention_mask=mask).last_hidden_state
        logits: Tensor = self.heads(states, mask)
        return logits

    def trained(self) -> dict[str, Tensor]:
        """Return what is shipped, in half precision: the deltas and the heads."""
        return {
            name: parameter.detach().half().contiguous()
            for name, parameter in self.named_parameters()
            if parameter.requires_grad
        }


class MergedNetwork(nn.Module):
    """A network for scoring only: shipped weights added into a fresh encoder."""

    def __init__(self, encoder: Any, trained: Mapping[str, Tensor]) -> None:
        super().__init__()
        self.encoder = encoder.requires_grad_(False)
        self.heads = Heads(torch.Generator().manual_seed(0))
        heads = {k.removeprefix("heads."): v for k, v in trained.items() if k.startswith("heads.")}
        self.heads.load_state_dict({name: tensor.float() for name, tensor in heads.items()})
        with torch.no_grad():
            for name in trained:
                if name.endswith(".up"):
                    stem = name.removesuffix(".up")
                    up, down = trained[name].float(), trained[f"{stem}.down"].float()
                    self.get_submodule(stem).weight += SCALE * up @ down  # type: ignore[operator]
        self.eval()

    def forward(self, ids: Tensor) -> Tensor:
        """Logits (batch, 5) of token ids (batch, tokens) that are all of one length."""
        mask = torch.ones_like(ids)
        states = self.encoder(input_ids=ids, attention_mask=mask).last_hidden_state
        logits: Tensor = self.heads(states, mask)
        return logits
