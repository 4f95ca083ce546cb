"""What it means that a model believes a statement of a group: it is likelier of this group than of
the others, by more than the group is before any statement, and by more than chance would have it.

"Likeliest group" alone is no such thing: a group that is likely before everything is the likeliest
before most statements.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kgbias.models.score.base import Array, Grid
from kgbias.statistics import DRAWS, benjamini_hochberg

Flags = NDArray[np.bool_]

RANK = 1
MARGIN = 1.0  # bits: twice as probable
LEVEL = 0.05  # of what is called believed, the share that may be by chance


@dataclass(frozen=True, slots=True)
class Beliefs:
    """The groups of a category before its statements; each table is [groups, statements].

    Attributes:
        lift: in bits, how much likelier a statement is of a group than of the others (`contrast`).
        p_values: of each lift (`lift_p_values`), corrected, in [0, 1]; NaN where nothing was said.
    """

    lift: Array
    p_values: Array


def beliefs(grid: Grid, said: Flags, measure: str = "conditional") -> Beliefs:
    """Lifts and their p-values; `said` [groups, statements] is true where the run said it."""
    lift = contrast(bits(grid, measure))
    return Beliefs(lift, lift_p_values(lift, said))


def believed(
    rank: Any,
    lift: Any,
    p_value: Any,
    *,
    most: int = RANK,
    margin: float = MARGIN,
    level: float = LEVEL,
) -> Any:
    """Whether a statement is believed of a group: the group's rank is at most `most`, the lift at
    least `margin` bits, and the corrected p-value at most `level`. Of numbers, or of arrays of one
    shape."""
    return (rank <= most) & (lift >= margin) & (p_value <= level)


def bits(grid: Grid, measure: str) -> Array:
    """log2 of the probability by which a measure compares groups, [groups, statements]: of the
    statement after the group ("conditional"), of the whole probe ("whole"), or of the whole probe
    over that of the group alone ("sofa"). Of a masked model it is a pseudo-probability."""
    if measure == "conditional":
        found = grid.statement.log_likelihoods
    else:
        found = grid.whole.log_likelihoods
        if measure == "sofa":
            found = found - grid.group.log_likelihoods[:, None]
    return np.asarray(found / np.log(2), dtype=np.float64)


def contrast(values: Array) -> Array:
    """How much more a group has at a statement than the others have, beyond what it has everywhere.

    With v the values [groups, statements] and G groups,

    c(g, s) = v(g, s) - mean over h != g of v(h, s)
    contrast(g, s) = c(g, s) - mean over t of c(g, t)

    The second mean is the group's base rate: it takes out that some groups raise (or lower) the
    value of every statement. Each row has the mean 0; so has each column. Of log2 probabilities it
    is in bits: 1 is twice as probable. Needs two groups.
    """
    groups = len(values)
    own = (values - values.mean(axis=0)) * (groups / (groups - 1))
    return np.asarray(own - own.mean(axis=1, keepdims=True))


def contrast_intervals(
    values: Array, *, draws: int = DRAWS, seed: int = 0, level: float = 0.95
) -> tuple[Array, Array]:
    """The lower and upper ends of the percentile bootstrap intervals of `contrast`, each [groups,
    statements]. The other groups are drawn with replacement: an interval says how much a contrast
    depends on which groups a group is held against. NaN where there is but one other."""
    groups, statements = values.shape
    low, high = np.full((2, groups, statements), np.nan)
    if groups < 3:
        return low, high
    rng = np.random.Generator(np.random.PCG64(seed))
    tail = (1 - level) / 2
    for g in range(groups):
        others = np.delete(values, g, axis=0)
        n = groups - 1
        weights = rng.multinomial(n, np.full(n, 1 / n), size=draws) / n
        offset = weights @ others.mean(axis=1)
        base = values[g].mean() - offset
        for start in range(0, statements, 512):
            part = slice(start, start + 512)
            drawn = values[g, part] - weights @ others[:, part] - base[:, None]
            low[g, part], high[g, part] = np.quantile(drawn, [tail, 1 - tail], axis=0)
    return low, high


def lift_p_values(lift: Array, said: Flags) -> Array:
    """Permutation p-values of lifts, corrected for the number of statements that were said.

    The null hypothesis of a statement and the group that it was said of: what is said has nothing
    to do with what is likelier, so that this pair is exchangeable with the pairs of group and
    statement that were not said. p is the share, among those and itself, of the lifts at least as
    large: (1 + b) / (1 + m) with m pairs that were not said. It is one-tailed. The p-values of all
    pairs that were said are corrected by Benjamini and Hochberg, which controls the share of false
    finds for p-values that share their reference (Bates et al. 2023, "Testing for outliers with
    conformal p-values", Annals of Statistics 51).

    Pairs that were not said are read on the same scale: each has the corrected p-value of the next
    pair below it that was said, and 1 where there is none. It is a cut in bits, the same for all
    groups of the category, and no test of its own: these pairs are the reference.

    `lift` and `said` are [groups, statements], as is what is returned; NaN where nothing was said.
    """
    tested, null = np.sort(lift[said]), np.sort(lift[~said])
    if not len(tested):
        return np.full(lift.shape, np.nan)
    reached = len(null) - np.searchsorted(null, tested, side="left")
    corrected = benjamini_hochberg(((1 + reached) / (1 + len(null))).tolist())
    steps = np.concatenate([[1.0], corrected])
    return np.asarray(steps[np.searchsorted(tested, lift, side="right")])
