"""The network of all offline scorers: a small trained reader of MiniLM's layers, which stay frozen.

    token ids (T)
      three layers of MiniLM, frozen                ->  three states for each token (T x 3 x 384)
      a linear map                                  ->  T x RECURRENT_WIDTH
      a recurrent layer in both directions          ->  T x 2 RECURRENT_WIDTH
      mean, maximum and learned attention           ->  6 RECURRENT_WIDTH
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

LOWER_LAYERS = 3  # the layers that all readers need
LOWER_LAYER_NUMBERS = (1, 2, 3)
STATE_WIDTH = 3 * 384
RECURRENT_WIDTH = 64
HIDDEN_WIDTH = 64
DROPOUT = 0.3


def split_encoder(model: Any) -> tuple[Any, Any]:
    """Split a BertModel into its lower half, ids -> states, and its upper layers."""
    upper = copy.deepcopy(model.encoder)
    upper.layer = upper.layer[LOWER_LAYERS:]
    model.encoder.layer = model.encoder.layer[:LOWER_LAYERS]
    return model.requires_grad_(False), upper.requires_grad_(False)


class LayerReader(nn.Module):
    """From token states (batch, tokens, STATES) and the texts' lengths, None if all are equal, to
    logits: (batch), or (batch, outputs) for several outputs."""

    def __init__(self, outputs: int = 1) -> None:
        super().__init__()
        self.narrow = nn.Linear(STATE_WIDTH, RECURRENT_WIDTH)
        self.recurrent = nn.GRU(
            RECURRENT_WIDTH, RECURRENT_WIDTH, batch_first=True, bidirectional=True
        )
        self.query = nn.Linear(2 * RECURRENT_WIDTH, 1)
        self.hidden = nn.Linear(6 * RECURRENT_WIDTH, HIDDEN_WIDTH)
        self.out = nn.Linear(HIDDEN_WIDTH, outputs)
        self.dropout = nn.Dropout(DROPOUT)

    def forward(self, states: Tensor, lengths: Tensor | None = None) -> Tensor:
        narrow = self.dropout(functional.gelu(self.narrow(states)))
        if lengths is None:
            recurrent_states, _ = self.recurrent(narrow)
            is_token = torch.ones(
                (*recurrent_states.shape[:2], 1), dtype=torch.bool, device=recurrent_states.device
            )
        else:
            packed_states = pack_padded_sequence(
                narrow, lengths, batch_first=True, enforce_sorted=False
            )
            recurrent_states, _ = pad_packed_sequence(
                self.recurrent(packed_states)[0], batch_first=True
            )
            is_token = (
                (torch.arange(recurrent_states.shape[1]) < lengths[:, None])
                .to(recurrent_states.device)
                .unsqueeze(-1)
            )
        mean = (recurrent_states * is_token).sum(1) / is_token.sum(1)
        # Padding must win no maximum, and below gets no attention.
        largest = recurrent_states.masked_fill(~is_token, -torch.inf).amax(1)
        weights = self.query(recurrent_states).masked_fill(~is_token, -torch.inf).softmax(1)
        pooled = torch.cat([mean, largest, (weights * recurrent_states).sum(1)], dim=1)
        logits: Tensor = self.out(self.dropout(torch.tanh(self.hidden(self.dropout(pooled)))))
        return logits.squeeze(1)


class CalibratedReader(nn.Module):
    """A reader from the shipped weights, or the mean of several, with calibrated logits.

    `trained` holds the reader's weights, or those of several, one after the other; as
    "calibration", the slope and the offset that turn its logits into those of probabilities (Platt
    1999); and, if they are not 1 to 3, as "layers" the numbers of MiniLM's layers that it reads.
    `upper` are the layers that `split_encoder` gives.
    """

    calibration: Tensor

    def __init__(self, trained_weights: Mapping[str, Tensor], upper: Any) -> None:
        super().__init__()
        weights = {name: value.float() for name, value in trained_weights.items()}
        self.register_buffer("calibration", weights.pop("calibration"))
        self._layers = [int(layer) for layer in weights.pop("layers", LOWER_LAYER_NUMBERS)]
        self.highest = max(self._layers)
        self.upper = upper
        # Several readers are stacked along a first axis.
        has_several = weights["out.bias"].dim() > 1
        outputs = weights["out.bias"].shape[-1]
        self.readers = nn.ModuleList()
        for number in range(len(weights["out.bias"]) if has_several else 1):
            reader_weights = (
                {k: value[number] for k, value in weights.items()} if has_several else weights
            )
            self.readers.append(reader := LayerReader(outputs))
            reader.load_state_dict(reader_weights)
        # Without dropout: answers must repeat.
        self.eval()

    def forward(self, layers: tuple[Tensor, ...]) -> Tensor:
        """Logits (batch, outputs) of the hidden states of the frozen half, texts of one length."""
        return self.calibrated_logits(self.states(layers))

    def states(self, layers: tuple[Tensor, ...]) -> Tensor:
        """The token states (batch, tokens, STATES) that the reader reads."""
        read_states = list(layers)
        read_states += read_upper_layers(self.upper, read_states, self.highest)
        return join_states(read_states, self._layers)

    def calibrated_logits(self, states: Tensor) -> Tensor:
        """Logits (batch, outputs) of those states."""
        slope, offset = self.calibration
        mean_logits = torch.stack([reader(states) for reader in self.readers]).mean(0)
        logits: Tensor = slope * mean_logits + offset
        return logits.reshape(len(logits), -1)


def read_upper_layers(upper: Any, read_states: Sequence[Tensor], highest: int) -> list[Tensor]:
    """The states of the encoder's own layers up to `highest` that have not been read yet."""
    states = list(read_states)
    # The first state is the embeddings', so n layers have n + 1 states.
    for layer in upper.layer[len(read_states) - 1 - LOWER_LAYERS : max(0, highest - LOWER_LAYERS)]:
        states.append(layer(states[-1]))
    return states[len(read_states) :]


def join_states(states: Sequence[Any], layers: Sequence[int] = LOWER_LAYER_NUMBERS) -> Tensor:
    """The encoder's hidden states that a reader reads (the first are the embeddings): those of
    three layers, side by side, (batch, tokens, STATES)."""
    return torch.cat([states[layer] for layer in layers], dim=-1)
