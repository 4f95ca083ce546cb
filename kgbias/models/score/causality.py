"""Whether a model reads a text from left to right alone: its perplexity means nothing otherwise."""

from collections.abc import Callable
from typing import Any

import numpy as np

_LENGTH = 8  # tokens of the text that is tried
_TOLERANCE = {"float32": 1e-5}  # of a log-probability, relative to 1 nat and more
_ROUGH = 1e-2  # of coarser types, where another expert may round otherwise


def looks_ahead(read: Callable[[Any], Any], vocabulary: int, device: Any, dtype: str) -> bool:
    """Whether the last token of a text moves the probability of any earlier one.

    Two texts that differ in their last token are read. `read` gives the logits of token ids [1, n],
    [1, n, vocabulary]; those before the last place must be equal up to rounding.
    """
    import torch

    draw = np.random.Generator(np.random.PCG64(0))
    ids = torch.from_numpy(draw.integers(0, vocabulary, (1, _LENGTH))).to(device)
    other = ids.clone()
    other[0, -1] = (ids[0, -1] + 1) % vocabulary
    with torch.inference_mode():
        one, two = (
            read(tokens)[0, : _LENGTH - 1].float().log_softmax(-1) for tokens in (ids, other)
        )
        gap = float(((one - two).abs() / (1 + one.abs())).max())
    return gap > _TOLERANCE.get(dtype, _ROUGH)
