"""Where the variance of a measure lies: between groups, wordings, recrawls, or within them."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kgbias.statistics import Values

Labels = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Components:
    """The variance components of a measure, in its units squared, at least 0; NaN where there is
    one unit alone.

    Attributes:
        measure: the measure; regard is read as 1, 0 and -1.
        category: the category whose groups they are of.
        arm: the arm, "" in a run of one.
        groups: between groups.
        wordings: between the wordings of a group's prompts.
        recrawls: between the crawls of a group.
        within: between the statements of one group, wording and crawl.
        n: statements.
    """

    measure: str
    category: str
    arm: str
    groups: float
    wordings: float
    recrawls: float
    within: float
    n: int

    @property
    def verdict(self) -> str:
        """What they say, in words; "" where there is nothing to say."""
        said = [
            f"{name} moves a group's {self.measure} more (sd {math.sqrt(own):.2f}) than the groups "
            f"of {self.category} differ (sd {math.sqrt(self.groups):.2f})"
            for name, own in (("the wording", self.wordings), ("crawling again", self.recrawls))
            if own > self.groups
        ]
        return "; ".join(said)


def components(
    values: Values, factors: Mapping[str, Labels], *, counts: Values | None = None
) -> dict[str, float]:
    """The variance components of values, [k], under a model of random effects: for each factor, a
    label of each value, [k]; the rest is "within".

    Henderson's (1953) method 1, the analysis of variance for unbalanced data: for each factor the
    uncorrected sum of squares, T = sum over its levels of (sum of values)^2 / n, is set equal to
    what is expected of it, which is linear in the components (Searle, Casella and McCulloch 1992,
    section 5.2). With equal cells it is the ordinary ANOVA estimate. Estimates below 0 are given as
    0. A factor of one level, or one that cannot be told from another, is NaN and left out.

    `counts` says how often each value occurs (None: once).
    """
    counts = np.ones(len(values)) if counts is None else counts.astype(np.float64)
    total = float(counts.sum())
    found = {name: math.nan for name in (*factors, "within")}
    if total < 2:
        return found
    centred = values - float(counts @ values) / total  # the mean changes no component
    used = {name: _levels(labels) for name, labels in factors.items()}
    used = {name: labels for name, labels in used.items() if labels.max() > 0}
    names = [*used, "within"]
    rows = [*used.values(), np.arange(len(values)), np.zeros(len(values), dtype=np.int64)]
    left, right = [], []
    for at, own in enumerate(rows):
        n = np.bincount(own, counts)
        if at == len(used):  # every observation a level of its own
            squares = float(counts @ centred**2)
        else:
            squares = float((np.bincount(own, counts * centred) ** 2 / n).sum())
        coefficients = []
        for labels in used.values():
            if at == len(used):
                coefficients.append(total)
                continue
            _, cell = np.unique(own * (int(labels.max()) + 1) + labels, return_inverse=True)
            size = np.bincount(cell, counts)
            of = np.zeros(len(size), dtype=np.int64)
            of[cell] = own
            coefficients.append(float((size**2 / n[of]).sum()))
        coefficients.append(total if at == len(used) else float(len(n)))
        left.append(coefficients)
        right.append(squares)
    system = np.array(left[:-1]) - np.array(left[-1])  # less the correction for the mean
    against = np.array(right[:-1]) - right[-1]
    if np.linalg.matrix_rank(system) < len(names):
        return found
    for name, value in zip(names, np.linalg.solve(system, against), strict=True):
        found[name] = max(0.0, float(value))
    return found


def _levels(labels: Labels) -> Labels:
    return np.asarray(np.unique(labels, return_inverse=True)[1], dtype=np.int64)


def nested(outer: Labels, inner: Sequence[int] | Labels) -> Labels:
    """The labels of a factor within another: levels of both together."""
    own = np.asarray(inner, dtype=np.int64)
    return np.asarray(outer * (int(own.max(initial=0)) + 1) + own, dtype=np.int64)
