"""What training the readers has in common: the states that they read, and the fit."""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import utils
from torch.nn.utils.rnn import pad_sequence

from kgbias.measure.scorers import _minilm
from kgbias.measure.scorers._reader import LayerReader, join_states

LAYERS = (3, 5, 6)  # read for regard and attacks
SEEDS = (0, 1, 2)  # of the readers whose logits are averaged
WEIGHT_DECAY = 0.02
WARM_UP = 0.1
_Batch = TypeVar("_Batch")
Halves = Mapping[str, NDArray[np.float16]]


class States:
    """The states of texts in some of MiniLM's layers, computed once for each text."""

    def __init__(self, layers: Sequence[int]) -> None:
        self._layers = layers
        self._tokenizer = _minilm.load_tokenizer()
        self._encoder = _minilm.load_encoder()
        del self._encoder.encoder.layer[max(layers) :]
        self._known: dict[str, Tensor] = {}

    def __call__(self, texts: Sequence[str]) -> tuple[Tensor, Tensor]:
        """Return states (texts, tokens, STATES), zero where padded, and the texts' lengths."""
        missing = sorted(set(texts) - self._known.keys(), key=len)
        if missing:
            encoded = self._tokenizer(
                missing,
                padding=True,
                truncation=True,
                max_length=_minilm.MAX_TOKENS,
                return_tensors="pt",
            )
            with torch.no_grad():
                layers = self._encoder(**encoded, output_hidden_states=True).hidden_states
            lengths = encoded["attention_mask"].sum(1).tolist()
            for text, row, length in zip(
                missing, join_states(layers, self._layers), lengths, strict=True
            ):
                self._known[text] = row[:length].half()  # a gigabyte and a half for all of regard's
        rows = [self._known[text] for text in texts]
        return pad_sequence(rows, batch_first=True).float(), torch.tensor([len(r) for r in rows])


def fit(
    outputs: int,
    batches: Sequence[_Batch],
    loss: Callable[[LayerReader, _Batch], Tensor],
    rate: float,
    seed: int,
) -> LayerReader:
    """Train a reader on the batches, in order, with AdamW at a rate that warms up and then falls to
    0; return it in evaluation mode. The same batches and seed give the same weights."""
    steps = len(batches)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        reader = LayerReader(outputs).train()
        optimizer = torch.optim.AdamW(reader.parameters(), lr=rate, weight_decay=WEIGHT_DECAY)
        schedule = torch.optim.lr_scheduler.LambdaLR(
            optimizer, lambda step: min(1.0, step / (WARM_UP * steps)) * max(0.0, 1 - step / steps)
        )
        for batch in batches:
            optimizer.zero_grad()
            loss(reader, batch).backward()  # type: ignore[no-untyped-call]
            utils.clip_grad_norm_(reader.parameters(), 1.0)
            optimizer.step()
            schedule.step()
    return reader.eval()


def predict(reader: LayerReader, states: States, texts: Sequence[str]) -> Tensor:
    """The reader's logits, before calibration: (texts), or (texts, outputs) for several outputs."""
    with torch.no_grad():
        rows = [reader(*states(texts[i : i + 64])) for i in range(0, len(texts), 64)]
    return torch.cat(rows).double()


def halves(reader: LayerReader) -> dict[str, NDArray[np.float16]]:
    """A reader's weights in half precision, which can be passed between processes."""
    return {name: value.half().numpy() for name, value in reader.state_dict().items()}


def together(readers: Sequence[Halves]) -> dict[str, Tensor]:
    """The shipped weights of several readers, whose mean counts, in the form `Calibrated` takes."""
    stacked = {name: np.stack([each[name] for each in readers]) for name in readers[0]}
    return {
        **{name: torch.from_numpy(values) for name, values in stacked.items()},
        "calibration": torch.tensor([1.0, 0.0]),  # its logits are those of probabilities
        "layers": torch.tensor(LAYERS),
    }
