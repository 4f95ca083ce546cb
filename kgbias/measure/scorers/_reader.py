"""The network of all offline scorers: a small trained reader of MiniLM's layers, which stay frozen.

    token ids (T)
      three layers of MiniLM, frozen                ->  three states for each token (T x 3 x 384)
      a linear map                                  ->  T x WIDTH
      a recurrent layer in both directions          ->  T x 2 WIDTH
      mean, maximum and learned attention           ->  6 WIDTH
      tanh layer, logits, calibrated

Acceptability reads layers 1 to 3, which know the forms of words and their order better than the
upper ones; the other measures pass through them anyway. Regard and attacks are read in layers 3, 5
and 6, since the upper ones were trained to say what a sentence is about.
"""

import copy
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

HALF = 3  # the layers that all readers need
LOWER = (1, 2, 3)
STATES = 3 * 384
WIDTH = 64
HIDDEN = 64
DROPOUT = 0.3


def split(model: Any) -> tuple[Any, Any]:
    """Split a BertModel into its lower half, ids -> states, and its upper layers."""
    upper = copy.deepcopy(model.encoder)
    upper.layer = upper.layer[HALF:]
    model.encoder.layer = model.encoder.layer[:HALF]
    return model.requires_grad_(False), upper.requires_grad_(False)


class Reader(nn.Module):
    """From token states (batch, tokens, STATES) and the texts' lengths, None if all are equal, to
    logits: (batch), or (batch, outputs) for several outputs."""

    def __init__(self, outputs: int = 1) -> None:
        super().__init__()
        self.narrow = nn.Linear(STATES, WIDTH)
        self.recurrent = nn.GRU(WIDTH, WIDTH, batch_first=True, bidirectional=True)
        self.query = nn.Linear(2 * WIDTH, 1)
        self.hidden = nn.Linear(6 * WIDTH, HIDDEN)
        self.out = nn.Linear(HIDDEN, outputs)
        self.dropout = nn.Dropout(DROPOUT)

    def forward(self, states: Tensor, lengths: Tensor | None = None) -> Tensor:
        narrow = self.dropout(functional.gelu(self.narrow(states)))
        if lengths is None:
            read, _ = self.recurrent(narrow)
            kept = torch.ones((*read.shape[:2], 1), dtype=torch.bool, device=read.device)
        else:
            packed = pack_padded_sequence(narrow, lengths, batch_first=True, enforce_sorted=False)
            read, _ = pad_packed_sequence(self.recurrent(packed)[0], batch_first=True)
            kept = (torch.arange(read.shape[1]) < lengths[:, None]).to(read.device).unsqueeze(-1)
        mean = (read * kept).sum(1) / kept.sum(1)
        largest = read.masked_fill(~kept, -torch.inf).amax(1)
        weights = self.query(read).masked_fill(~kept, -torch.inf).softmax(1)
        pooled = torch.cat([mean, largest, (weights * read).sum(1)], dim=1)
        logits: Tensor = self.out(self.dropout(torch.tanh(self.hidden(self.dropout(pooled)))))
        return logits.squeeze(1)


class Calibrated(nn.Module):
    """A reader from the shipped weights, or the mean of several, with calibrated logits.

    `trained` holds the reader's weights, or those of several, one after the other; as
    "calibration", the slope and the offset that turn its logits into those of probabilities (Platt
    1999); and, if they are not 1 to 3, as "layers" the numbers of MiniLM's layers that it reads.
    `upper` are the layers that `split` gives.
    """

    calibration: Tensor

    def __init__(self, trained: Mapping[str, Tensor], upper: Any) -> None:
        super().__init__()
        weights = {name: value.float() for name, value in trained.items()}
        self.register_buffer("calibration", weights.pop("calibration"))
        self._layers = [int(layer) for layer in weights.pop("layers", LOWER)]
        self.highest = max(self._layers)
        self.upper = upper
        several = weights["out.bias"].dim() > 1
        outputs = weights["out.bias"].shape[-1]
        self.readers = nn.ModuleList()
        for number in range(len(weights["out.bias"]) if several else 1):
            own = {k: value[number] for k, value in weights.items()} if several else weights
            self.readers.append(reader := Reader(outputs))
            reader.load_state_dict(own)
        self.eval()

    def forward(self, layers: tuple[Tensor, ...]) -> Tensor:
        """Logits (batch, outputs) of the hidden states of the frozen half, texts of one length."""
        return self.judge(self.states(layers))

    def states(self, layers: tuple[Tensor, ...]) -> Tensor:
        """The token states (batch, tokens, STATES) that the reader reads."""
        read = list(layers)
        read += above(self.upper, read, self.highest)
        return join(read, self._layers)

    def judge(self, states: Tensor) -> Tensor:
        """Logits (batch, outputs) of those states."""
        slope, offset = self.calibration
        read = torch.stack([reader(states) for reader in self.readers]).mean(0)
        logits: Tensor = slope * read + offset
        return logits.reshape(len(logits), -1)


def above(upper: Any, read: Sequence[Tensor], highest: int) -> list[Tensor]:
    """The states of the encoder's own layers up to `highest` that have not been read yet."""
    states = list(read)
    for layer in upper.layer[len(read) - 1 - HALF : max(0, highest - HALF)]:
        states.append(layer(states[-1]))
    return states[len(read) :]


def join(states: Sequence[Any], layers: Sequence[int] = LOWER) -> Tensor:
    """The encoder's hidden states that a reader reads (the first are the embeddings): those of
    three layers, side by side, (batch, tokens, STATES)."""
    return torch.cat([states[layer] for layer in layers], dim=-1)
