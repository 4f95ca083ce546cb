"""How far two kinds of evidence put the statements about a group in the same order."""

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from kgbias.estimate import Estimate
from kgbias.statistics import Values, student_quantile

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


def kendall(
    first: Values, second: Values, clusters: Sequence[Hashable] = (), *, level: float = 0.95
) -> Estimate:
    """Kendall's tau-b of two orders of n things [n], with ties (Kendall 1945): the number of pairs
    in the same order minus that in the opposite one, over the geometric mean of the pairs that
    either side does not tie.

    The interval is that of the jackknife over the things, on Fisher's z scale, where it cannot
    leave [-1, 1] (Arvesen 1969, "Jackknifing U-statistics"), by Student's t. Things of one of the
    `clusters` depend on each other and are left out together: statements of one predicate share
    how often it is said and how probable it is. NaN where a side is constant; no interval for fewer
    than four clusters or at -1 and 1.
    """
    n = len(first)
    _, of = np.unique([str(c) for c in clusters], return_inverse=True)
    of = np.asarray(of if len(clusters) else np.arange(n))
    count = int(of.max(initial=-1)) + 1
    # Of pairs whose order is the same less the opposite, and of those that either side does not
    # tie: how many have one thing in each cluster, and how many have both.
    held, inside = np.zeros((3, count)), np.zeros((3, count))
    for start in range(0, n, _ROWS):
        part = slice(start, start + _ROWS)
        a, b = (np.sign(x[part, None] - x[None, :]) for x in (first, second))
        own = of[part, None] == of[None, :]
        for place, pairs in enumerate((a * b, np.abs(a), np.abs(b))):
            held[place] += np.bincount(of[part], pairs.sum(axis=1), count)
            inside[place] += np.bincount(of[part], (pairs * own).sum(axis=1), count)
    same, one, other = held.sum(axis=1)
    norm = math.sqrt(one * other)
    if not norm:
        return Estimate.missing(n)
    tau = float(same / norm)
    if count < 4 or abs(tau) > 1 - 1e-9:
        return Estimate.missing(n, tau)
    # Without a cluster, its rows and columns are gone.
    left = held.sum(axis=1)[:, None] - 2 * held + inside
    if not (left[1:] > 0).all():
        return Estimate.missing(n, tau)
    without = left[0] / np.sqrt(left[1] * left[2])
    error = math.sqrt((count - 1) / count * float(((without - without.mean()) ** 2).sum()))
    half = student_quantile((1 + level) / 2, count - 1) * error / (1 - tau**2)
    low, high = (math.tanh(math.atanh(tau) + step) for step in (-half, half))
    return Estimate(tau, low, high, n)
