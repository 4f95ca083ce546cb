"""The effect size of the association tests, on plain arrays.

Notation of Caliskan, Bryson and Narayanan (2017): X and Y are two sets of target words, A and B two
sets of attribute words; s(w, A, B) is how much closer word w is to A than to B.
"""

import math
from statistics import NormalDist
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from kgbias.errors import DataError, UsageError, no_such
from kgbias.stats.estimate import Estimate

Array = NDArray[np.float64]

Spread = Literal["sample", "population", "pooled"]

NOISE = 1e-12
"""Associations that differ by less count as equal: cosines are accurate to about 1e-15,
log-probabilities in float64 to about 1e-14."""

DRAWS = 2000


def unit(vectors: Array, what: str = "vectors") -> Array:
    """The rows of `vectors` [n, d] scaled to length 1, in float64.

    Raises DataError for a row without a direction: zero, infinite or not a number.
    """
    rows = np.asarray(vectors, dtype=np.float64)
    if rows.ndim != 2 or not rows.size:
        raise DataError(f"{what}: need a table of vectors, got shape {rows.shape}")
    if not np.isfinite(rows).all():
        bad = int((~np.isfinite(rows).all(axis=1)).sum())
        raise DataError(f"{what}: {bad} of {len(rows)} vectors hold NaN or infinity")
    # Dividing by the largest entry first keeps the squares from underflowing or overflowing.
    largest = np.abs(rows).max(axis=1, keepdims=True)
    if not largest.all():
        raise DataError(f"{what}: {int((largest == 0).sum())} of {len(rows)} vectors are zero")
    rows = rows / largest
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))


def associations(targets: Array, a: Array, b: Array) -> Array:
    """s(w, A, B) = mean over a in A of cos(w, a) - mean over b in B of cos(w, b), for each row w of
    `targets` (Caliskan et al. 2017, "WEAT").

    Shapes [n, d], [n_a, d], [n_b, d] give [n], each in [-2, 2]; positive is closer to A. A mean of
    cosines is one dot product with the mean of the unit vectors, so the cost is linear in the
    number of words.
    """
    direction = unit(a, "attribute A").mean(axis=0) - unit(b, "attribute B").mean(axis=0)
    return np.asarray(unit(targets, "targets") @ direction)


def effect_size(x: Array, y: Array, spread: Spread = "sample") -> float:
    """d = (mean of x - mean of y) / std, from the associations x [n_x] and y [n_y] of the targets.

    Positive: X is closer to A and Y to B. `spread` selects the standard deviation:

    - "sample": of all n_x + n_y associations, divided by n - 1 (ddof=1; May et al. 2019, Guo and
      Caliskan 2021). With n words in each set, |d| is at most 2 sqrt((2n - 1) / 2n).
    - "population": the same divided by n (ddof=0; WEFE); |d| is at most 2 for sets of equal size.
    - "pooled": within X and Y (Cohen 1988): sqrt((SS_x + SS_y) / (n_x + n_y - 2)). d has no bound.

    0 if all associations are equal within `NOISE`; for "pooled", infinity with the sign of the
    difference if the sets differ and neither varies.
    """
    if spread not in get_args(Spread):
        raise UsageError(no_such("spread", spread, get_args(Spread)))
    return float(effect_sizes(x[None], y[None], spread)[0])


def effect_sizes(x: Array, y: Array, spread: Spread = "sample") -> Array:
    """`effect_size` of each row: shapes [m, n_x] and [m, n_y] give [m]."""
    difference = x.mean(axis=1) - y.mean(axis=1)
    if spread == "pooled":
        n = x.shape[1] + y.shape[1] - 2
        squares = x.var(axis=1) * x.shape[1] + y.var(axis=1) * y.shape[1]
        std = np.sqrt(squares / n) if n else np.zeros(len(x))
    else:
        std = np.concatenate([x, y], axis=1).std(axis=1, ddof=1 if spread == "sample" else 0)
    difference = np.where(np.abs(difference) <= NOISE, 0.0, difference)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(difference == 0, 0.0, difference / np.where(std <= NOISE, 0.0, std))


def effect_estimate(
    x: Array, y: Array, spread: Spread = "sample", *, level: float = 0.95
) -> Estimate:
    """`effect_size` with its interval; n is the number of target words.

    The interval says how much d depends on which target words were chosen, given A and B, for
    associations that are normal around the means of X and of Y. Cohen's d with the spread within
    sets is then noncentral t, whose normal approximation (Abramowitz and Stegun 1972, 26.7.10) is
    solved for the noncentrality; with shares p and q of the words in X and Y, d over all words is
    d / sqrt(1 + p q d^2) of that. Resampling so few words falls short: percentile intervals
    contained the d of 6 + 6 words in 76 to 90 of 100 samples (benchmarks/crawl_coverage.py). With
    fewer than two words in a set, or no differences within either set, there is no interval.
    """
    d, n, m = effect_size(x, y, spread), len(x), len(y)
    free = n + m - 2
    within = math.sqrt((x.var() * n + y.var() * m) / free) if free else 0.0
    if min(n, m) < 2 or within <= NOISE:
        return Estimate.missing(n + m, d)
    scale = math.sqrt(1 / n + 1 / m)
    t = float(x.mean() - y.mean()) / within / scale
    half = NormalDist().inv_cdf((1 + level) / 2) * math.sqrt(1 + t * t / (2 * free))
    ends = [(t * (1 - 1 / (4 * free)) + step) * scale for step in (-half, half)]
    if spread != "pooled":
        ends = [end / math.sqrt(1 + n * m / (n + m) ** 2 * end**2) for end in ends]
    return Estimate(d, min(ends[0], d), max(ends[1], d), n + m)


def single_category(target: Array, a: Array, b: Array, spread: Spread = "sample") -> float:
    """The single-category test (WEFAT of Caliskan et al. 2017, SC-WEAT): for one vector w,

    d(w) = (mean over A of cos(w, a) - mean over B of cos(w, b)) / std over A u B of cos(w, .).

    `target` has shape [d], or [n, d] for a concept of several words, whose unit vectors are
    averaged first. Positive is closer to A.
    """
    words = unit(np.atleast_2d(target), "target")
    direction = words.mean(axis=0)
    length = np.linalg.norm(direction)
    if length <= NOISE:
        raise DataError("target: the vectors of the words cancel out")
    direction = direction / length
    return effect_size(
        unit(a, "attribute A") @ direction, unit(b, "attribute B") @ direction, spread
    )
