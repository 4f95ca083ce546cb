"""Uncertainty: bootstrap intervals over triples.

The unit of resampling is one yielded triple (a triple that a model said three times counts three
times), drawn with replacement within its group; intervals are percentile intervals.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]

DRAWS = 2000
_CHUNK = 4_000_000  # resampled values held at once


@dataclass(frozen=True, slots=True)
class Estimate:
    """A figure with its interval. `low` and `high` are NaN below two values; `value` is NaN for
    none."""

    value: float
    low: float
    high: float
    n: int


def bootstrap(
    values: Values,
    statistic: Callable[[Values], Values],
    *,
    draws: int = DRAWS,
    level: float = 0.95,
    seed: int = 0,
) -> Estimate:
    """The percentile bootstrap interval of a statistic (Efron 1979).

    `values` has shape [n]; `statistic` maps an array of shape [draws, n] to shape [draws], working
    along the last axis. The same values, draws and seed give the same interval.
    """
    n = len(values)
    if n == 0:
        return Estimate(float("nan"), float("nan"), float("nan"), 0)
    value = float(statistic(values[None, :])[0])
    if n == 1:
        return Estimate(value, float("nan"), float("nan"), 1)
    rng = np.random.Generator(np.random.PCG64(seed))
    step = max(1, _CHUNK // n)
    replicates = [
        statistic(values[rng.integers(0, n, size=(min(step, draws - start), n))])
        for start in range(0, draws, step)
    ]
    tail = (1 - level) / 2
    low, high = np.quantile(np.concatenate(replicates), [tail, 1 - tail])
    return Estimate(value, float(low), float(high), n)


def total(rows: Values) -> Values:
    """Sum over the last axis."""
    return np.asarray(rows.sum(axis=-1), dtype=np.float64)


def mean(rows: Values) -> Values:
    return np.asarray(rows.mean(axis=-1), dtype=np.float64)


def quantile(q: float) -> Callable[[Values], Values]:
    """The q-quantile over the last axis, linearly interpolated."""

    def statistic(rows: Values) -> Values:
        return np.asarray(np.quantile(rows, q, axis=-1), dtype=np.float64)

    return statistic
