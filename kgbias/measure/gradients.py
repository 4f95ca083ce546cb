"""The effect of each word of a sentence on its score, from the gradients of the scorer's network.

All methods take a token's part as the sum over dimensions of a vector times a gradient. The parts
of a word's tokens are added up. Tokens of no word ([CLS], [SEP]) keep theirs.
"""

from collections.abc import Callable
from typing import Any

from kgbias.errors import MissingExtra
from kgbias.measure.scorers._reading import Reading

_STEPS = (32, 128, 512)
_BATCH = 32  # of them at once
_CLOSE = 0.005  # how far the effects may miss adding up, in units of the score


def gradient_times_input(reading: Reading) -> list[float]:
    """The effect of each word by gradient x input (Shrikumar et al. 2016): its embedding times the
    gradient of the evidence (`Value.evidence`), in log-odds. A first-order estimate."""
    slope = _slope(lambda inputs: reading.value.evidence(reading.logits(inputs)), reading.inputs)
    return _by_word(reading, slope * reading.inputs)


def class_activation(reading: Reading) -> list[float]:
    """The effect of each word by its class activation: the final states of its tokens times the
    gradient of the evidence there, in log-odds. That is Grad-CAM (Selvaraju et al. 2017) without
    its ReLU, so that words against the score are kept, and with the gradient of each position
    instead of their mean."""
    import torch

    assert reading.halves is not None
    below, above = reading.halves
    with torch.no_grad():
        states = below(reading.inputs)
    return _by_word(reading, _slope(lambda x: reading.value.evidence(above(x)), states) * states)


def integrated_gradients(reading: Reading) -> list[float]:
    """The effect of each word by integrated gradients (Sundararajan et al. 2017, as in captum),
    in units of the score: the path from padding tokens in place of every word to the sentence,
    times the mean gradient of the score along it (Gauss-Legendre). Effects add up to the score
    minus that of the blank sentence; steps are added until they do so within 0.005, up to 512."""
    try:
        from captum.attr import IntegratedGradients
    except ImportError as error:
        raise MissingExtra("captum", extra="attribution") from error
    from torch.backends import cudnn

    integrated = IntegratedGradients(lambda x: reading.value.score(reading.logits(x)))
    for steps in _STEPS:
        with cudnn.flags(enabled=False):
            parts, off = integrated.attribute(
                reading.inputs,
                baselines=reading.blank,
                n_steps=steps,
                method="gausslegendre",
                internal_batch_size=_BATCH,
                return_convergence_delta=True,
            )
        if abs(float(off)) <= _CLOSE:
            break
    return _by_word(reading, parts.detach())


def _slope(of: Callable[[Any], Any], at: Any) -> Any:
    """The gradient of a value (batch) at a batch of vectors, one for each."""
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
