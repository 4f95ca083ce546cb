"""Gumbel noise by number: that of one token at one step of one request, without that of others.

It is made of the output of SplitMix64 (Steele, Lea and Flood 2014), whose n-th number is a function
of n: a request's seed and the step give the state, and the token is n. So a sampler draws noise for
the tokens that can be chosen alone, and a token has the same noise whichever others there are.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Keys = NDArray[np.uint64]

# The numbers of SplitMix64: 2**64 divided by the golden ratio, and the factors of Stafford's mix
# 13.
_INCREMENT = 0x9E3779B97F4A7C15
_FACTORS = (0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
_WORD = (1 << 64) - 1


def noise_keys(draws: Sequence[tuple[int, int]]) -> Keys:
    """The key of each draw, given as the request's seed and the number of tokens before it."""
    keys = []
    for seed, step in draws:
        (state,) = _mix(np.array([seed & _WORD], np.uint64))
        keys.append((int(state) + step * _INCREMENT) & _WORD)
    return _mix(np.array(keys, np.uint64))


def gumbel_noise(keys: Keys, tokens: NDArray[np.int64]) -> NDArray[np.float64]:
    """Standard Gumbel noise of each token under its key; the arrays have one shape, or are
    broadcast."""
    import torch

    numbers = tokens.astype(np.uint64)
    # SplitMix64 counts from 1.
    numbers += np.uint64(1)
    numbers *= np.uint64(_INCREMENT)
    bits = _mix(numbers + keys)
    # 52 bits are left: with the half, each is a double exactly, and none is 0 or 1.
    bits >>= np.uint64(12)
    noise = bits.astype(np.float64)
    noise += 0.5
    noise *= 2.0**-52  # uniform, above 0 and below 1
    torch.from_numpy(noise).log_().neg_().log_().neg_()  # twice as fast as NumPy's
    return noise


def _mix(words: Keys) -> Keys:
    """The words, mixed in place: each bit of a result depends on all bits of its word."""
    for shift, factor in zip((30, 27), _FACTORS, strict=True):
        words ^= words >> np.uint64(shift)
        words *= np.uint64(factor)
    words ^= words >> np.uint64(31)
    return words
