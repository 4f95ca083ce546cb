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

SpreadKind = Literal["sample", "population", "pooled"]

EQUALITY_TOLERANCE = 1e-12
"""Associations that differ by less count as equal: cosines are accurate to about 1e-15,
log-probabilities in float64 to about 1e-14."""


def scale_to_unit(vectors: Array, label: str = "vectors") -> Array:
    """The rows of `vectors` [n, d] scaled to length 1, in float64.

    Raises DataError for a row without a direction: zero, infinite or not a number.
    """
    rows = np.asarray(vectors, dtype=np.float64)
    if rows.ndim != 2 or not rows.size:
        raise DataError(f"{label}: need a table of vectors, got shape {rows.shape}")
    if not np.isfinite(rows).all():
        bad_count = int((~np.isfinite(rows).all(axis=1)).sum())
        raise DataError(f"{label}: {bad_count} of {len(rows)} vectors hold NaN or infinity")
    # Dividing by the largest entry first keeps the squares from underflowing or overflowing.
    largest = np.abs(rows).max(axis=1, keepdims=True)
    if not largest.all():
        raise DataError(f"{label}: {int((largest == 0).sum())} of {len(rows)} vectors are zero")
    rows = rows / largest
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))


def measure_associations(targets: Array, a: Array, b: Array) -> Array:
    """s(w, A, B) = mean over a in A of cos(w, a) - mean over b in B of cos(w, b), for each row w of
    `targets` (Caliskan et al. 2017, "WEAT").

    Shapes [n, d], [n_a, d], [n_b, d] give [n], each in [-2, 2]; positive is closer to A. A mean of
    cosines is one dot product with the mean of the unit vectors, so the cost is linear in the
    number of words.
    """
    direction = scale_to_unit(a, "attribute A").mean(axis=0) - scale_to_unit(b, "attribute B").mean(
        axis=0
    )
    return np.asarray(scale_to_unit(targets, "targets") @ direction)


def effect_size(x: Array, y: Array, spread: SpreadKind = "sample") -> float:
    """d = (mean of x - mean of y) / std, from the associations x [n_x] and y [n_y] of the targets.

    Positive: X is closer to A and Y to B. `spread` selects the standard deviation:

    - "sample": of all n_x + n_y associations, divided by n - 1 (ddof=1; May et al. 2019, Guo and
      Caliskan 2021). With n words in each set, |d| is at most 2 sqrt((2n - 1) / 2n).
    - "population": the same divided by n (ddof=0; WEFE); |d| is at most 2 for sets of equal size.
    - "pooled": within X and Y (Cohen 1988): sqrt((SS_x + SS_y) / (n_x + n_y - 2)). d has no bound.

    0 if all associations are equal within `EQUALITY_TOLERANCE`; for "pooled", infinity with the
    sign of the difference if the sets differ and neither varies.
    """
    if spread not in get_args(SpreadKind):
        raise UsageError(no_such("spread", spread, get_args(SpreadKind)))
    return float(effect_sizes(x[None], y[None], spread)[0])


def effect_sizes(x: Array, y: Array, spread: SpreadKind = "sample") -> Array:
    """`effect_size` of each row: shapes [m, n_x] and [m, n_y] give [m]."""
    difference = x.mean(axis=1) - y.mean(axis=1)
    if spread == "pooled":
        n = x.shape[1] + y.shape[1] - 2
        squares = x.var(axis=1) * x.shape[1] + y.var(axis=1) * y.shape[1]
        std = np.sqrt(squares / n) if n else np.zeros(len(x))
    else:
        std = np.concatenate([x, y], axis=1).std(axis=1, ddof=1 if spread == "sample" else 0)
    difference = np.where(np.abs(difference) <= EQUALITY_TOLERANCE, 0.0, difference)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(
            difference == 0, 0.0, difference / np.where(std <= EQUALITY_TOLERANCE, 0.0, std)
        )


def effect_estimate(
    x: Array, y: Array, spread: SpreadKind = "sample", *, level: float = 0.95
) -> Estimate:
    """`effect_size` with its interval; n is the number of target words.

    The interval says how much d depends on which target words were chosen, given A and B, for
    associations that are normal around the means of X and of Y. Their spreads may differ, so the
    degrees of freedom are Welch's (1947). Cohen's d with the spread within sets is noncentral t,
    whose normal approximation (Abramowitz and Stegun 1972, 26.7.10) is solved for the
    noncentrality; with shares p and q of the words in X and Y, d over all words is
    d / sqrt(1 + p q d^2) of that. Resampling so few words falls short: percentile intervals
    contained the d of 6 + 6 words in 76 to 90 of 100 samples (benchmarks/crawl_coverage.py). With
    fewer than two words in a set, or no differences within either set, there is no interval.
    """
    effect, n_x, n_y = effect_size(x, y, spread), len(x), len(y)
    degrees = n_x + n_y - 2
    pooled_std = math.sqrt((x.var() * n_x + y.var() * n_y) / degrees) if degrees else 0.0
    if min(n_x, n_y) < 2 or pooled_std <= EQUALITY_TOLERANCE:
        return Estimate.missing(n_x + n_y, effect)
    scale = math.sqrt(1 / n_x + 1 / n_y)
    noncentrality = float(x.mean() - y.mean()) / pooled_std / scale
    # As one set may vary more than the other.
    parts = np.array([x.var(ddof=1) / n_x, y.var(ddof=1) / n_y])
    welch_degrees = float(parts.sum() ** 2 / (parts**2 / np.array([n_x - 1, n_y - 1])).sum())
    half_width = NormalDist().inv_cdf((1 + level) / 2) * math.sqrt(
        1 + noncentrality * noncentrality / (2 * welch_degrees)
    )
    ends = [
        # 1 - 1 / (4 degrees) corrects the bias of t in few degrees of freedom (the same 26.7.10).
        (noncentrality * (1 - 1 / (4 * welch_degrees)) + step) * scale
        for step in (-half_width, half_width)
    ]
    if spread != "pooled":
        ends = [end / math.sqrt(1 + n_x * n_y / (n_x + n_y) ** 2 * end**2) for end in ends]
    return Estimate(effect, min(ends[0], effect), max(ends[1], effect), n_x + n_y)


def single_category_effect(
    target: Array, a: Array, b: Array, spread: SpreadKind = "sample"
) -> float:
    """The single-category test (WEFAT of Caliskan et al. 2017, SC-WEAT): for one vector w,

    d(w) = (mean over A of cos(w, a) - mean over B of cos(w, b)) / std over A u B of cos(w, .).

    `target` has shape [d], or [n, d] for a concept of several words, whose unit vectors are
    averaged first. Positive is closer to A.
    """
    words = scale_to_unit(np.atleast_2d(target), "target")
    direction = words.mean(axis=0)
    norm = np.linalg.norm(direction)
    if norm <= EQUALITY_TOLERANCE:
        raise DataError("target: the vectors of the words cancel out")
    direction = direction / norm
    return effect_size(
        scale_to_unit(a, "attribute A") @ direction,
        scale_to_unit(b, "attribute B") @ direction,
        spread,
    )
