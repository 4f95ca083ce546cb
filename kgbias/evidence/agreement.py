"""How far two kinds of evidence put the statements about a group in the same order."""

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from kgbias.estimate import Estimate
from kgbias.statistics import Values

_ROWS = 256  # of the table of pairs, held at once


@dataclass(frozen=True, slots=True)
class GroupAgreement:
    """Kendall's tau-b, -1 to 1, over the statements about the groups of a category: of how often
    the run said each of this group, of its lift, and of its association. NaN where one of the two
    is missing or does not vary."""

    category: str
    group: str
    arm: str
    said_believed: Estimate
    said_embedded: Estimate
    believed_embedded: Estimate


def kendall(first: Values, second: Values, *, level: float = 0.95) -> Estimate:
    """Kendall's tau-b of two orders of n things [n], with ties (Kendall 1945): the number of pairs
    in the same order minus that in the opposite one, over the geometric mean of the pairs that
    either side does not tie.

    The interval is that of the jackknife over the things, on Fisher's z scale, where it cannot
    leave [-1, 1] (Arvesen 1969, "Jackknifing U-statistics"). NaN where a side is constant; no
    interval for fewer than four things or at -1 and 1.
    """
    n = len(first)
    same, one, other = (np.zeros(n) for _ in range(3))
    for start in range(0, n, _ROWS):
        part = slice(start, start + _ROWS)
        a, b = (np.sign(x[part, None] - x[None, :]) for x in (first, second))
        same[part] = (a * b).sum(axis=1)
        one[part], other[part] = np.abs(a).sum(axis=1), np.abs(b).sum(axis=1)
    norm = math.sqrt(one.sum() * other.sum())
    if not norm:
        return Estimate.missing(n)
    tau = float(same.sum() / norm)
    if n < 4 or abs(tau) > 1 - 1e-9:
        return Estimate.missing(n, tau)
    # Without one thing, its row and column are gone.
    left = (one.sum() - 2 * one) * (other.sum() - 2 * other)
    if not (left > 0).all():
        return Estimate.missing(n, tau)
    without = (same.sum() - 2 * same) / np.sqrt(left)
    error = math.sqrt((n - 1) / n * float(((without - without.mean()) ** 2).sum()))
    half = NormalDist().inv_cdf((1 + level) / 2) * error / (1 - tau**2)
    low, high = (math.tanh(math.atanh(tau) + step) for step in (-half, half))
    return Estimate(tau, low, high, n)
