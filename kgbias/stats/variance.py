"""Where the variance of a measure lies: between groups, wordings, recrawls, or within them."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kgbias.io.text import spoken_name
from kgbias.stats.designs import Design, Places
from kgbias.stats.estimate import Estimate
from kgbias.stats.inference import Sample, Values

DEFAULT_DRAWS = 2_000
_MISSING = Estimate.missing()


@dataclass(frozen=True, slots=True)
class CrossedVariances:
    """The variances of a measure in a table of groups by wordings (or by recrawls), in its units
    squared and at least 0. `n` of each is the number of units that it lies between.

    Attributes:
        groups: between the groups' means over all wordings.
        common: what a wording moves all groups by alike, which changes no comparison of groups.
        interaction: what a wording moves a group by beyond that: the interaction.
        excess: `interaction` minus `groups`, which may be below 0.
    """

    groups: Estimate = _MISSING
    common: Estimate = _MISSING
    interaction: Estimate = _MISSING
    excess: Estimate = _MISSING


@dataclass(frozen=True, slots=True)
class VarianceComponents:
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
    wordings: CrossedVariances
    recrawls: CrossedVariances
    within: float
    n: int

    @property
    def groups(self) -> Estimate:
        """Between groups, over all wordings; with a single wording, over all crawls."""
        by_wordings = (
            self.wordings.interaction.has_interval or not self.recrawls.interaction.has_interval
        )
        return (self.wordings if by_wordings else self.recrawls).groups

    def as_dict(self) -> dict[str, Any]:
        """As a row of a table: each variance with the ends of its interval, NaN if missing."""
        components = {
            "groups": self.groups,
            "wordings": self.wordings.common,
            "groups_by_wordings": self.wordings.interaction,
            "recrawls": self.recrawls.common,
            "groups_by_recrawls": self.recrawls.interaction,
        }
        row: dict[str, Any] = {"measure": self.measure, "category": self.category, "arm": self.arm}
        row["n"] = self.n
        for name, e in components.items():
            row |= {name: e.value, f"{name}_low": e.low, f"{name}_high": e.high}
        return row | {"within": self.within, "verdict": self.verdict}

    @property
    def verdict(self) -> str:
        """What they say, in words, if the interval of a difference of variances leaves out 0;
        otherwise ""."""
        factors = (("the wording", self.wordings), ("crawling again", self.recrawls))
        return "; ".join(filter(None, (self.factor_verdict(*each) for each in factors)))

    def factor_verdict(self, factor: str, variances: CrossedVariances) -> str:
        """The same for one factor."""
        if not variances.excess.has_interval or variances.excess.low <= 0 <= variances.excess.high:
            return ""
        own_sd, groups_sd = (
            f"(sd {math.sqrt(e.value):.2f})" for e in (variances.interaction, variances.groups)
        )
        if variances.excess.low > 0:
            return (
                f"{factor} moves a group's {spoken_name(self.measure)}, apart from the others', "
                f"more {own_sd} than the groups of {self.category} differ {groups_sd}"
            )
        return (
            f"the groups of {self.category} differ more in {spoken_name(self.measure)} "
            f"{groups_sd} than "
            f"{factor} moves one of them apart from the others {own_sd}"
        )


def note_narrow_intervals(components: Iterable[VarianceComponents]) -> str:
    """What to know about intervals of differences if prompts had several wordings, or there were
    several crawls: a sentence without its capital and full stop; "" for one of each."""
    components = list(components)
    few_units = [
        name
        for name, has_several in (
            ("wordings", any(c.wordings.interaction.has_interval for c in components)),
            ("crawls", any(c.recrawls.interaction.has_interval for c in components)),
        )
        if has_several
    ]
    if not few_units:
        return ""
    return (
        f"intervals of differences resample only the few {' and '.join(few_units)} at hand: where "
        f"these "
        "matter, the intervals are too narrow"
    )


@dataclass(frozen=True, slots=True)
class GroupCells:
    """The means of a group's statements in each of k wordings (or recrawls), [k], and the
    covariance of their sampling, [k, k]; `freedom` is how many clusters that is known from."""

    means: Values
    noise: Values
    freedom: int


def estimate_group_cells(
    samples: Sequence[Sample], labels: Sequence[Places], k: int
) -> GroupCells | None:
    """The cells of a group, given its statements in separately drawn parts (crawls), and which of
    the k units each of their values belongs to. None if a unit has statements of fewer than two
    clusters.

    Answers to one prompt depend on each other, whatever their wording: the covariance is that of
    linearised means over clusters, within strata.
    """
    above, below, clusters = np.zeros(k), np.zeros(k), np.zeros(k)
    crawls = []
    for sample, unit_places in zip(samples, labels, strict=True):
        counts = sample.counts.astype(np.float64)
        design, places = sample.design, sample.places
        if design is None or places is None:
            alone = np.arange(len(counts))
            design, places = Design(alone, np.zeros(len(counts), dtype=np.int64)), alone
        size, cluster = len(design.strata), design.clusters[places]
        sizes, sums = (
            np.bincount(cluster * k + unit_places, w, size * k).reshape(size, k).astype(np.float64)
            for w in (counts, counts * sample.values)
        )
        above, below = above + sums.sum(axis=0), below + sizes.sum(axis=0)
        clusters += (sizes > 0).sum(axis=0)
        crawls.append((design, sizes, sums))
    if (clusters < 2).any():
        return None
    means = above / below
    noise, free = np.zeros((k, k)), 0
    for design, sizes, sums in crawls:
        # with few clusters, deviations from their own mean are too small
        residuals = (sums - sizes * means) / below * np.sqrt(clusters / (clusters - 1))
        for members in design.resampling_strata():
            n = len(members)
            deviations = residuals[members] - residuals[members].mean(axis=0)
            noise += deviations.T @ deviations * (n / (n - 1))
            free += n - 1
    return GroupCells(means, noise, max(1, free))


def estimate_crossed_variances(
    rows: Sequence[GroupCells], *, draws: int = DEFAULT_DRAWS, seed: int = 0
) -> CrossedVariances:
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
        return CrossedVariances()
    means = np.array([row.means for row in rows])
    trace = np.array([np.trace(row.noise) - row.noise.sum() / k for row in rows])
    mean_noise = np.array([row.noise.sum() / k**2 for row in rows])
    free, rng = sum(row.freedom for row in rows), np.random.Generator(np.random.PCG64(seed))
    noise_factor = free / rng.chisquare(free, draws)
    interaction_draws, interaction = np.zeros(draws), 0.0
    if k > 1:
        residuals = means - means.mean(axis=1, keepdims=True) - means.mean(axis=0) + means.mean()
        square = float((residuals**2).sum()) / ((g - 1) * (k - 1))
        noise = float(trace.mean()) / (k - 1)
        interaction = max(0.0, square - noise)
        freedom = (k - 1) * _satterthwaite_freedom(interaction + trace / (k - 1))
        pivot = square * freedom / rng.chisquare(freedom, draws)
        interaction_draws = np.maximum(0.0, pivot - noise * noise_factor)
    error = interaction_draws / k + float(mean_noise.mean()) * noise_factor
    group_variance = float(means.mean(axis=1).var(ddof=1))
    groups = max(0.0, group_variance - interaction / k - float(mean_noise.mean()))
    group_draws = _draw_fixed_mean_variances(
        group_variance, error, _satterthwaite_freedom(interaction / k + mean_noise), rng
    )
    if k < 2:
        return CrossedVariances(_estimate(groups, group_draws, g))
    columns = float(means.mean(axis=0).var(ddof=1))
    column_noise = float(trace.mean()) / (k - 1) / g
    common = max(0.0, columns - interaction / g - column_noise)
    pivot = columns * (k - 1) / rng.chisquare(k - 1, draws)
    common_draws = np.maximum(0.0, pivot - interaction_draws / g - column_noise * noise_factor)
    return CrossedVariances(
        _estimate(groups, group_draws, g),
        _estimate(common, common_draws, k),
        _estimate(interaction, interaction_draws, g * k),
        _estimate(interaction - groups, interaction_draws - group_draws, g * k),
    )


def deviation(variance: Estimate) -> Estimate | None:
    """A variance as a standard deviation, with its interval; None if it has none."""
    if not variance.has_interval:
        return None
    value, low, high = (math.sqrt(x) for x in (variance.value, variance.low, variance.high))
    return Estimate(value, low, high, variance.n)


def _satterthwaite_freedom(variances: Values) -> float:
    """The degrees of freedom of the mean square of g values with unequal variances."""
    g = len(variances)
    squares = float((variances**2).sum())
    return (g - 1) / g * float(variances.sum()) ** 2 / squares if squares else float(g - 1)


def _draw_fixed_mean_variances(
    square: float, error: Values, freedom: float, rng: np.random.Generator
) -> Values:
    """Variances of fixed means, [draws], by the confidence distribution given their observed mean
    square, with errors of these variances, [draws]: the noncentrality, at least 0, at which a
    chi-squared is at most the observed value as often as a standard normal is at most what is drawn
    (the cumulative distribution by Sankaran 1963)."""
    normal_draws = rng.standard_normal(len(error))
    if not error.any():
        return np.full(len(error), square)
    # A drawn error of 0 would divide by 0.
    scale = np.maximum(error, float(error.max()) * 1e-12)
    observed = freedom * square / scale
    # With a noncentrality beyond, the observed value would lie 6 standard deviations below.
    low, high = np.zeros(len(error)), (np.sqrt(observed) + 6) ** 2
    for _ in range(30):
        middle = (low + high) / 2
        above = _sankaran(observed, freedom, middle) > normal_draws
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    return np.asarray(low * scale / freedom, dtype=np.float64)


def _sankaran(x: Values, freedom: float, away: Values) -> Values:
    """The standard normal quantile of x under the chi-squared with this noncentrality."""
    mean = freedom + away
    # A power of x / mean is nearly normal. This power, and its mean and variance to the second
    # order, are Sankaran's (1963, Biometrika 50).
    h = 1 - 2 * mean * (freedom + 3 * away) / (3 * (freedom + 2 * away) ** 2)
    p = (freedom + 2 * away) / mean**2
    m = (h - 1) * (1 - 3 * h)
    middle = 1 + h * p * (h - 1 - 0.5 * (2 - h) * m * p)
    return np.asarray(((x / mean) ** h - middle) / (h * np.sqrt(2 * p) * (1 + 0.5 * m * p)))


def _estimate(value: float, draws: NDArray[np.float64], n: int) -> Estimate:
    low, high = np.quantile(draws, [0.025, 0.975])
    return Estimate(value, float(low), float(high), n)
