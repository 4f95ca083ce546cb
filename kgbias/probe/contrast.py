"""How much more a group has of something at a statement than the other groups of its category,
beyond what it has at every statement: of log2 probabilities, and of cosines."""

import numpy as np

from kgbias.models.score.base import Array, Grid
from kgbias.statistics import DRAWS


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
