"""The network of regard: MiniLM, its upper half adapted, and small heads above it.

    token ids (T)
      MiniLM's embeddings and layers 1-3, frozen      ->  token states (T x 384)
      MiniLM's layers 4-6, W + B A on every linear map
      mean over tokens + learned attention            ->  384 * (1 + QUERIES)
      tanh layer                                      ->  HIDDEN
      regard logits (3), and in training an attack logit (1) and a word's valence (1)

Only the deltas B A and the heads are trained and shipped; at scoring the deltas are added into the
encoder's weights once, so that they cost nothing. Deltas: Hu et al. 2021, "LoRA".
"""

import copy
import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from kgbias.measure.scorers._base import REGARD

WIDTH = 384
FROZEN_LAYERS = 3
RANK = 8
SCALE = 2.0
QUERIES = 1
HIDDEN = 64
DROPOUT = 0.2
ATTACK, VALENCE = len(REGARD), len(REGARD) + 1  # columns of the logits
_LINEAR_MAPS = (
    "attention.self.query",
    "attention.self.key",
    "attention.self.value",
    "attention.output.dense",
    "intermediate.dense",
    "output.dense",
)


def split(model: Any) -> tuple[Any, Any]:
    """Split a BertModel into a frozen lower one, ids -> states, and its upper layers."""
    upper = copy.deepcopy(model.encoder)
    upper.layer = upper.layer[FROZEN_LAYERS:]
    model.encoder.layer = model.encoder.layer[:FROZEN_LAYERS]
    return model.requires_grad_(False), upper.requires_grad_(False)


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

    def merged(self) -> nn.Linear:
        """Return one linear map that does the same."""
        with torch.no_grad():
            self.base.weight += SCALE * self.up @ self.down
        return self.base


class Heads(nn.Module):
    """From token states (batch, tokens, 384) and their mask to logits (batch, 5).

    Columns 0-2 are regard in the order of REGARD, then ATTACK and VALENCE.
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


class Member(nn.Module):
    """The upper layers with their deltas, and the heads: token states to logits.

    Args:
        upper: the upper layers that `split` gives; copied.
        seed: of the deltas' and heads' first values.
    """

    def __init__(self, upper: Any, seed: int = 0) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(seed)
        self.upper = copy.deepcopy(upper)
        for layer in self.upper.layer:
            for path in _LINEAR_MAPS:
                parent, _, name = path.rpartition(".")
                owner = layer.get_submodule(parent)
                setattr(owner, name, LowRank(getattr(owner, name), generator))
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            self.heads = Heads(generator)

    def forward(self, states: Tensor, mask: Tensor) -> Tensor:
        """Logits (batch, 5) of states (batch, tokens, 384); mask (batch, tokens) is 1 on tokens."""
        logits: Tensor = self.heads(self.final(states, mask), mask)
        return logits

    def final(self, states: Tensor, mask: Tensor) -> Tensor:
        """The states of the last layer, which the heads read."""
        bias = (1 - mask[:, None, None, :].to(states.dtype)) * torch.finfo(states.dtype).min
        final: Tensor = self.upper(states, attention_mask=bias).last_hidden_state
        return final

    def trained(self) -> dict[str, Tensor]:
        """Return what is shipped, in half precision: the deltas and the heads."""
        return {
            name: parameter.detach().half().contiguous()
            for name, parameter in self.named_parameters()
            if parameter.requires_grad
        }

    def load_trained(self, trained: Mapping[str, Tensor]) -> None:
        """Take shipped weights and add the deltas into the layers, for scoring only."""
        own = {name for name, parameter in self.named_parameters() if parameter.requires_grad}
        if own != trained.keys():
            raise KeyError("the weights are for another network")
        self.load_state_dict({k: v.float() for k, v in trained.items()}, strict=False)
        for name, module in list(self.named_modules()):
            if isinstance(module, LowRank):
                parent, _, last = name.rpartition(".")
                setattr(self.get_submodule(parent), last, module.merged())
        self.eval()


class Shipped(nn.Module):
    """The member that was shipped.

    Args:
        upper: the upper layers that `split` gives.
        trained: its weights (`Member.trained`).
    """

    def __init__(self, trained: Mapping[str, Tensor], upper: Any) -> None:
        super().__init__()
        self.member = Member(upper)
        self.member.load_trained(trained)
        self.eval()

    def forward(self, layers: tuple[Tensor, ...]) -> Tensor:
        """Logits (batch, 5) of the frozen half's hidden states, and whatever is above, of texts of
        one length."""
        return self.judge(self.states(layers))

    def states(self, layers: tuple[Tensor, ...]) -> Tensor:
        """The final token states (batch, tokens, 384), which the heads read."""
        lower = layers[FROZEN_LAYERS]
        return self.member.final(lower, _all(lower))

    def judge(self, states: Tensor) -> Tensor:
        """Logits of the final token states."""
        logits: Tensor = self.member.heads(states, _all(states))
        return logits


def _all(states: Tensor) -> Tensor:
    """The mask of texts of one length."""
    return torch.ones(states.shape[:2], dtype=torch.long, device=states.device)
