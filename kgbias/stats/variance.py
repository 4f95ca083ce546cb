"""Where the variance of a measure lies: between groups, wordings, recrawls, or within them."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kgbias.io.text import spoken
from kgbias.stats.designs import Design, Places
from kgbias.stats.estimate import Estimate
from kgbias.stats.inference import Sample, Values

DRAWS = 2_000
_NONE = Estimate.missing()


@dataclass(frozen=True, slots=True)
class Crossed:
    """The variances of a measure in a table of groups by wordings (or by recrawls), in its units
    squared and at least 0. `n` of each is the number of units that it lies between.

    Attributes:
        groups: between the groups' means over all wordings.
        common: what a wording moves all groups by alike, which changes no comparison of groups.
        own: what a wording moves a group by beyond that: the interaction.
        excess: `own` minus `groups`, which may be below 0.
    """

    groups: Estimate = _NONE
    common: Estimate = _NONE
    own: Estimate = _NONE
    excess: Estimate = _NONE


@dataclass(frozen=True, slots=True)
class Components:
    """The variance components of a measure, with 95% intervals; missing if there is only one unit.

    Attributes:
        measure: the measure; regard counts as 1, 0 and -1.
        category: the category of the groups.
        arm: the arm, "" in a run of one.
        wordings: between groups, and between the wordings of their prompts.
        recrawls: between groups, and between the crawls.
        within: between the statements of one group, wording and crawl.
        n: statements.
    """

    measure: str
    category: str
    arm: str
    wordings: Crossed
    recrawls: Crossed
    within: float
    n: int

    @property
    def groups(self) -> Estimate:
        """Between groups, over all wordings; with a single wording, over all crawls."""
        whole = self.wordings.own.has_interval or not self.recrawls.own.has_interval
        return (self.wordings if whole else self.recrawls).groups

    def as_dict(self) -> dict[str, Any]:
        """As a row of a table: each variance with the ends of its interval, NaN if missing."""
        parts = {
            "groups": self.groups, "wordings": self.wordings.common,
            "groups_by_wordings": self.wordings.own, "recrawls": self.recrawls.common,
            "groups_by_recrawls": self.recrawls.own,
        }  # fmt: skip
        row: dict[str, Any] = {"measure": self.measure, "category": self.category, "arm": self.arm}
        row["n"] = self.n
        for name, e in parts.items():
            row |= {name: e.value, f"{name}_low": e.low, f"{name}_high": e.high}
        return row | {"within": self.within, "verdict": self.verdict}

    @property
    def verdict(self) -> str:
        """What they say, in words, if the interval of a difference of variances leaves out 0;
        otherwise ""."""
        of = (("the wording", self.wordings), ("crawling again", self.recrawls))
        return "; ".join(filter(None, (self.said(*each) for each in of)))

    def said(self, what: str, c: Crossed) -> str:
        """The same for one factor."""
        if not c.excess.has_interval or c.excess.low <= 0 <= c.excess.high:
            return ""
        own, groups = (f"(sd {math.sqrt(e.value):.2f})" for e in (c.own, c.groups))
        if c.excess.low > 0:
            return (
                f"{what} moves a group's {spoken(self.measure)}, apart from the others', "
                f"more {own} than the groups of {self.category} differ {groups}"
            )
        return (
            f"the groups of {self.category} differ more in {spoken(self.measure)} {groups} than "
            f"{what} moves one of them apart from the others {own}"
        )


def too_narrow(found: Iterable[Components]) -> str:
    """What to know about intervals of differences if prompts had several wordings, or there were
    several crawls: a sentence without its capital and full stop; "" for one of each."""
    found = list(found)
    few = [
        name
        for name, several in (
            ("wordings", any(c.wordings.own.has_interval for c in found)),
            ("crawls", any(c.recrawls.own.has_interval for c in found)),
        )
        if several
    ]
    if not few:
        return ""
    return (
        f"intervals of differences resample only the few {' and '.join(few)} at hand: where these "
        "matter, the intervals are too narrow"
    )


@dataclass(frozen=True, slots=True)
class Cells:
    """The means of a group's statements in each of k wordings (or recrawls), [k], and the
    covariance of their sampling, [k, k]; `free` is how many clusters that is known from."""

    means: Values
    noise: Values
    free: int


def cells(samples: Sequence[Sample], labels: Sequence[Places], k: int) -> Cells | None:
    """The cells of a group, given its statements in separately drawn parts (crawls), and which of
    the k units each of their values belongs to. None if a unit has statements of fewer than two
    clusters.

    Answers to one prompt depend on each other, whatever their wording: the covariance is that of
    linearised means over clusters, within strata.
    """
    above, below, clusters = np.zeros(k), np.zeros(k), np.zeros(k)
    parts = []
    for sample, own in zip(samples, labels, strict=True):
        counts = sample.counts.astype(np.float64)
        design, places = sample.design, sample.places
        if design is None or places is None:
            alone = np.arange(len(counts))
            design, places = Design(alone, np.zeros(len(counts), dtype=np.int64)), alone
        size, cluster = len(design.strata), design.clusters[places]
        held, sums = (
            np.bincount(cluster * k + own, w, size * k).reshape(size, k).astype(np.float64)
            for w in (counts, counts * sample.values)
        )
        above, below = above + sums.sum(axis=0), below + held.sum(axis=0)
        clusters += (held > 0).sum(axis=0)
        parts.append((design, held, sums))
    if (clusters < 2).any():
        return None
    means = above / below
    noise, free = np.zeros((k, k)), 0
    for design, held, sums in parts:
        # with few clusters, deviations from their own mean are too small
        off = (sums - held * means) / below * np.sqrt(clusters / (clusters - 1))
        for members in design.together():
            n = len(members)
            apart = off[members] - off[members].mean(axis=0)
            noise += apart.T @ apart * (n / (n - 1))
            free += n - 1
    return Cells(means, noise, max(1, free))


def crossed(rows: Sequence[Cells], *, draws: int = DRAWS, seed: int = 0) -> Crossed:
    """The variances in a table of groups, each a row of cells, by wordings, with 95% intervals.

    The groups are fixed; the wordings are a sample of those that might have been, and each moves
    all groups by something and each group by something more. With unweighted cell means and C the
    matrix that takes their mean off k wordings, the mean square of the interaction has (g - 1)(k -
    1) degrees of freedom and an expectation of own + tr(C noise) / (k - 1), the variance of the
    groups' means is noncentral chi-squared around an error of own / k plus their noise (the
    unweighted-means analysis of variance; Searle, Casella and McCulloch 1992). Degrees of freedom
    are Satterthwaite's (1946) where rows have unequal noise. Intervals are those of generalised
    pivots (Weerahandi 1993): each mean square is solved for its variance with its chi-squared
    drawn, the noise with its own.
    """
    g, k = len(rows), len(rows[0].means) if rows else 0
    if g < 2:
        return Crossed()
    means = np.array([row.means for row in rows])
    trace = np.array([np.trace(row.noise) - row.noise.sum() / k for row in rows])
    over = np.array([row.noise.sum() / k**2 for row in rows])
    free, rng = sum(row.free for row in rows), np.random.Generator(np.random.PCG64(seed))
    noisy = free / rng.chisquare(free, draws)
    own_drawn, own = np.zeros(draws), 0.0
    if k > 1:
        left = means - means.mean(axis=1, keepdims=True) - means.mean(axis=0) + means.mean()
        square = float((left**2).sum()) / ((g - 1) * (k - 1))
        noise = float(trace.mean()) / (k - 1)
        own = max(0.0, square - noise)
        freedom = (k - 1) * _freedom(own + trace / (k - 1))
        pivot = square * freedom / rng.chisquare(freedom, draws)
        own_drawn = np.maximum(0.0, pivot - noise * noisy)
    error = own_drawn / k + float(over.mean()) * noisy
    between = float(means.mean(axis=1).var(ddof=1))
    groups = max(0.0, between - own / k - float(over.mean()))
    groups_drawn = _noncentral(between, error, _freedom(own / k + over), rng)
    if k < 2:
        return Crossed(_estimate(groups, groups_drawn, g))
    columns = float(means.mean(axis=0).var(ddof=1))
    rest = float(trace.mean()) / (k - 1) / g
    common = max(0.0, columns - own / g - rest)
    pivot = columns * (k - 1) / rng.chisquare(k - 1, draws)
    common_drawn = np.maximum(0.0, pivot - own_drawn / g - rest * noisy)
    return Crossed(
        _estimate(groups, groups_drawn, g),
        _estimate(common, common_drawn, k),
        _estimate(own, own_drawn, g * k),
        _estimate(own - groups, own_drawn - groups_drawn, g * k),
    )


def deviation(variance: Estimate, none: str = "") -> str:
    """A variance as a standard deviation with its interval: "0.12 (0.03 to 0.25)"."""
    if not variance.has_interval:
        return none
    value, low, high = (math.sqrt(x) for x in (variance.value, variance.low, variance.high))
    return f"{value:.2f} ({low:.2f} to {high:.2f})"


def _freedom(variances: Values) -> float:
    """The degrees of freedom of the mean square of g values with unequal variances."""
    g = len(variances)
    squares = float((variances**2).sum())
    return (g - 1) / g * float(variances.sum()) ** 2 / squares if squares else float(g - 1)


def _noncentral(square: float, error: Values, freedom: float, rng: np.random.Generator) -> Values:
    """Variances of fixed means, [draws], by the confidence distribution given their observed mean
    square, with errors of these variances, [draws]: the noncentrality, at least 0, at which a
    chi-squared is at most the observed value as often as a standard normal is at most what is drawn
    (the cumulative distribution by Sankaran 1963)."""
    drawn = rng.standard_normal(len(error))
    if not error.any():
        return np.full(len(error), square)
    scale = np.maximum(error, float(error.max()) * 1e-12)
    seen = freedom * square / scale
    low, high = np.zeros(len(error)), (np.sqrt(seen) + 6) ** 2
    for _ in range(30):
        middle = (low + high) / 2
        above = _sankaran(seen, freedom, middle) > drawn
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    return np.asarray(low * scale / freedom, dtype=np.float64)


def _sankaran(x: Values, freedom: float, away: Values) -> Values:
    """The standard normal quantile of x under the chi-squared with this noncentrality."""
    mean = freedom + away
    h = 1 - 2 * mean * (freedom + 3 * away) / (3 * (freedom + 2 * away) ** 2)
    p = (freedom + 2 * away) / mean**2
    m = (h - 1) * (1 - 3 * h)
    middle = 1 + h * p * (h - 1 - 0.5 * (2 - h) * m * p)
    return np.asarray(((x / mean) ** h - middle) / (h * np.sqrt(2 * p) * (1 + 0.5 * m * p)))


def _estimate(value: float, drawn: NDArray[np.float64], n: int) -> Estimate:
    low, high = np.quantile(drawn, [0.025, 0.975])
    return Estimate(value, float(low), float(high), n)
