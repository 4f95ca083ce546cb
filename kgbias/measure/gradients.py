"""What each word of a sentence does to its score, read from the gradients of the scorer's network.

All methods share a token's part over its numbers: the sum over dimensions of a vector times a
gradient. Parts of a word's tokens are added up. Tokens of no word ([CLS], [SEP]) keep theirs.
"""

from collections.abc import Callable
from typing import Any

from kgbias.measure.scorers._reading import Reading

_STEPS = (32, 128, 512)
_CLOSE = 0.005  # how far the effects may be from adding up, in units of the score


def gradient_times_input(reading: Reading) -> list[float]:
    """The effect of each word by gradient x input (Shrikumar et al. 2016): its embedding times the
    gradient of the evidence (`Value.evidence`), in log-odds. A first-order estimate."""
    slope = _slope(lambda inputs: reading.value.evidence(reading.logits(inputs)), reading.inputs)
    return _by_word(reading, slope * reading.inputs)


def class_activation(reading: Reading) -> list[float]:
    """The effect of each word by its class activation: the final states of its tokens times the
    gradient of the evidence there, in log-odds. That is Grad-CAM (Selvaraju et al. 2017) without
    its ReLU, so that words that speak against the score are kept, and with each place's own
    gradient instead of their mean."""
    import torch

    assert reading.halves is not None
    below, above = reading.halves
    with torch.no_grad():
        states = below(reading.inputs)
    return _by_word(reading, _slope(lambda x: reading.value.evidence(above(x)), states) * states)


def integrated_gradients(reading: Reading) -> list[float]:
    """The effect of each word by integrated gradients (Sundararajan et al. 2017), in units of the
    score: the way from the padding token in the place of every word to the sentence, times the mean
    gradient of the score along it (Gauss-Legendre). Effects add up to the score minus that of the
    blank sentence; steps are added until they do to within 0.005, up to 512."""
    import numpy as np
    import torch

    way = reading.inputs - reading.blank

    def score(inputs: Any) -> Any:
        return reading.value.score(reading.logits(inputs))

    with torch.no_grad():
        change = float(score(reading.inputs) - score(reading.blank))
    for steps in _STEPS:
        places, weights = np.polynomial.legendre.leggauss(steps)
        total = torch.zeros_like(way)
        for chunk in np.array_split(np.arange(steps), steps // 32):
            at = torch.tensor((places[chunk] + 1) / 2, dtype=way.dtype, device=way.device)
            share = torch.tensor(weights[chunk] / 2, dtype=way.dtype, device=way.device)
            slopes = _slope(score, reading.blank + at[:, None, None] * way)
            total += (share[:, None, None] * slopes).sum(0, keepdim=True)
        if abs(float((total * way).sum()) - change) <= _CLOSE:
            break
    return _by_word(reading, total * way)


def _slope(of: Callable[[Any], Any], at: Any) -> Any:
    """The gradient of a value (batch) at a batch of vectors, each by its own."""
    import torch

    at = at.detach().clone().requires_grad_(True)
    with torch.enable_grad(), torch.backends.cudnn.flags(enabled=False):  # its GRU has no gradient
        (slope,) = torch.autograd.grad(of(at).sum(), at)
    return slope


def _by_word(reading: Reading, parts: Any) -> list[float]:
    effects = [0.0] * len(reading.words)
    for owner, part in zip(reading.owners, parts[0].sum(-1).tolist(), strict=True):
        if owner is not None:
            effects[owner] += part
    return [round(effect, 6) for effect in effects]
