"""Figures corrected by labels: prediction-powered inference for statements that a crawl drew.

A scorer reads every statement, people read a random sample of them. What the scorer says of all
statements is corrected by what people say otherwise of the sampled ones (the rectifier), so that
the figure is about people's labels, however wrong the scorer is: Angelopoulos et al. 2023 (Science
382), with the weight of the scorer tuned to the labels, so that in large samples it is never less
certain than the labels alone (PPI++: Angelopoulos, Duchi and Zrnic 2023, arXiv:2311.01453).

Here the sample is stratified, and the rectifier is taken within each label of the scorer (a cell).
For a share W_c of the statements in cell c, scores f, labels y, and the scorer's weight t:

    figure = sum over c of W_c (t mean_all(f) + mean_labelled(y - t f))

Where scores are classes, f is constant within a cell, t cancels, and this is the mean of the labels
in each cell, weighted by how many statements the scorer put there (post-stratification).

Its variance has two parts (two-phase sampling; Saerndal, Swensson and Wretman 1992, chapter 9): the
crawl's, of labels known for all statements, resampled by its design; and that of having labels for
a sample only, W_c^2 (1 - n_c / N_c) s_c^2 / n_c, added as Student's t. A difference is tested by
these two parts, with degrees of freedom by Satterthwaite (1946).
"""

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kgbias.ids import content_id
from kgbias.stats.designs import SUBTRACTED_NOISE_SHARE, Places, percentile_interval
from kgbias.stats.estimate import Interval, nan_to_none
from kgbias.stats.inference import (
    DEFAULT_DRAWS,
    Estimate,
    Statistic,
    Values,
    mean,
    resample_statistic,
)
from kgbias.stats.poststratification import StandardWeights, StratifiedSample

MIN_CELL_LABELS = 2
"""The fewest labels of a cell from which its rectifier is known."""
MIN_GROUPS = 3
"""The fewest groups from whose labels another's rectifier is known."""
_PRIOR_LABELS = 2.0  # how many labels a cell's prior variance counts for
_SIGNIFICANCE_LEVEL = 0.05
_NORMAL_95 = NormalDist().inv_cdf(0.975)


class ScoreProducts(NamedTuple):
    """What labels and scores, and scores alone, add to the variance of a mean."""

    labels_and_scores: float
    scores: float


@dataclass(frozen=True, eq=False, slots=True)
class RectifierCell:
    """The labelled statements to which a scorer gave one label.

    Attributes:
        key: what the cell is called: figures that share a cell share its error.
        labels: [n], what people say.
        scores: [n], what the scorer says.
        weights: [n], how often each was said, over the chance of its being labelled.
        unlabelled_share: the share of the cell's statements that have no label: the finite
            population correction. 1 for a cell that was borrowed from other statements.
        step: the least distance between two labels.
        prior: a variance of labels minus scores, known from elsewhere; NaN if none is.
        between_variance: for a borrowed cell, how much the mean of labels minus scores varies
            between the groups that it was borrowed from; it varies as much from them to the group
            that borrows.
        groups: from how many groups it was borrowed.
    """

    key: Hashable
    labels: Values
    scores: Values
    weights: Values
    unlabelled_share: float = 1.0
    step: float = 1.0
    prior: float = math.nan
    between_variance: float = 0.0
    groups: int = 0

    @classmethod
    def from_groups(cls, key: Hashable, parts: Sequence["RectifierCell"]) -> "RectifierCell | None":
        """The cell of several groups as one; None for fewer than three, which do not tell how far
        groups differ. The variance between groups is that of their means, weighted by their labels,
        minus 0.6 of what sampling adds to it (DerSimonian and Laird 1986 take off all of it, after
        which intervals fall short: `kgbias.stats.designs.draw_mean_effects`)."""
        parts = [part for part in parts if part.n]
        if len(parts) < MIN_GROUPS:
            return None
        pooled = cls(
            key,
            np.concatenate([part.labels for part in parts]),
            np.concatenate([part.scores for part in parts]),
            # Within a group all statements of a cell had the same chance of a label, which cancels;
            # between groups it differs.
            np.concatenate([part.weights / (1 - part.unlabelled_share) for part in parts]),
        )
        means = np.array([part.rectifier(1.0) for part in parts])
        shares = np.array([part.n for part in parts]) / pooled.n
        within = sum(part.n * part._variance(1.0) for part in parts) / max(1, pooled.n - len(parts))
        noise = within * np.array([part._inverse_size for part in parts])
        deviations = (means - shares @ means) ** 2 - SUBTRACTED_NOISE_SHARE * (1 - shares) * noise
        # Squares about a mean of their own fall short by the sum of the squared shares.
        variance = float(shares @ deviations) / (1 - float(shares @ shares))
        return replace(pooled, between_variance=max(0.0, variance), groups=len(parts))

    @property
    def n(self) -> int:
        return len(self.labels)

    @property
    def is_known(self) -> bool:
        """Whether its rectifier is known: by two labels, or by those of all its statements."""
        return self.n >= MIN_CELL_LABELS or (self.n > 0 and self.unlabelled_share <= 0)

    @property
    def _inverse_size(self) -> float:
        """The sum of the squared shares of the weights: 1 / n if they are all the same."""
        shares = self.weights / self.weights.sum()
        return float(shares @ shares)

    def rectifier(self, tuned: float) -> float:
        """The mean of labels minus `tuned` times the scores."""
        return float(np.average(self.labels - tuned * self.scores, weights=self.weights))

    def products(self) -> "ScoreProducts":
        """What labels and scores, and scores alone, add to the variance of the mean: the tuned
        weight follows from them."""
        label_deviations = self.labels - np.average(self.labels, weights=self.weights)
        score_deviations = self.scores - np.average(self.scores, weights=self.weights)
        factor = self.unlabelled_share * self._inverse_size
        label_product = float(np.average(label_deviations * score_deviations, weights=self.weights))
        score_product = float(np.average(score_deviations * score_deviations, weights=self.weights))
        return ScoreProducts(label_product * factor, score_product * factor)

    def spread(self, tuned: float) -> float:
        """The variance of labels minus scores. Never below that of one wrong label among two more
        than there are: that all labels agree with the scorer does not mean that all would."""
        n = self.n
        degrees, total = n - 1.0, n * self._variance(tuned)
        if not math.isnan(self.prior):
            degrees, total = degrees + _PRIOR_LABELS, total + _PRIOR_LABELS * self.prior
        wrong = 1 / (n + 2)
        return max(total / max(degrees, 1.0), wrong * (1 - wrong) * self.step**2)

    def _variance(self, tuned: float) -> float:
        residuals = self.labels - tuned * self.scores - self.rectifier(tuned)
        return float(np.average(residuals**2, weights=self.weights))

    def error(self, tuned: float) -> float:
        """The standard error of the rectifier."""
        return math.sqrt(max(0.0, self.unlabelled_share) * self.spread(tuned) * self._inverse_size)

    @property
    def freedom(self) -> float:
        """The degrees of freedom of its spread."""
        return max(1.0, self.n - 1 + (0.0 if math.isnan(self.prior) else _PRIOR_LABELS))

    def draw_errors(self, tuned: float, draws: int, rng: np.random.Generator) -> Values:
        """Plausible errors of the rectifier, [draws], as Student's t: the error of its mean is the
        same in all figures that share the cell; a borrower's distance from it comes from `rng`."""
        # Seeded by the cell, not by the figure: two figures that share a cell get the same errors,
        # which cancel in their difference.
        shared_rng = np.random.Generator(
            np.random.PCG64(int(content_id("cell", repr(self.key))[:12], 16))
        )
        errors = self.error(tuned) * shared_rng.standard_t(self.freedom, draws)
        if self.between_variance:
            errors = errors + math.sqrt(self.between_variance) * rng.standard_t(
                self.groups - 1, draws
            )
        return np.asarray(errors, dtype=np.float64)


@dataclass(frozen=True, eq=False, slots=True)
class ScoredStatements:
    """The statements of a figure.

    Attributes:
        occurrences: each time that one was said, at its place; the values are the numbers of the
            statements, from 0.
        scores: [k], what the scorer says of each.
        labels: [k], what people say; NaN without a label.
        cells: [k], the scorer's label of each.
    """

    occurrences: StratifiedSample
    scores: Values
    labels: Values
    cells: Sequence[Hashable]

    def weights(self, mix: StandardWeights | None = None) -> Values:
        """How much each statement counts, [k], summing to 1."""
        occurrence_weights = self.occurrence_weights(mix)
        weights = np.bincount(self._numbers, occurrence_weights, len(self.scores))
        return np.asarray(weights / weights.sum(), dtype=np.float64)

    def occurrence_weights(self, mix: StandardWeights | None) -> Values:
        """How much each time counts."""
        counts = self.occurrences.sample.counts.astype(np.float64)
        if mix is None or self.occurrences.forms is None:
            return counts
        sizes = self.occurrences.sizes()
        weight_each = {f: mix.weights.get(f, 0.0) / size for f, size in sizes.items()}
        of_form = np.array([weight_each[f] for f in self.occurrences.forms], dtype=np.float64)
        return np.asarray(counts * of_form, dtype=np.float64)

    @property
    def _numbers(self) -> Places:
        return self.occurrences.sample.values.astype(np.int64)

    def members(self) -> dict[Hashable, NDArray[np.bool_]]:
        """Which statements are in each cell."""
        masks = {}
        for cell in dict.fromkeys(self.cells):
            masks[cell] = np.array([label == cell for label in self.cells], dtype=bool)
        return masks

    def build_cells(
        self,
        name: Hashable,
        mix: StandardWeights | None = None,
        priors: Mapping[Hashable, float] | None = None,
        step: float = 1.0,
    ) -> dict[Hashable, RectifierCell]:
        """The cells of these statements alone."""
        weights, cells = self.weights(mix), {}
        for cell, members in self.members().items():
            members = members & (weights > 0)
            if not members.any():
                continue
            labelled = members & ~np.isnan(self.labels)
            unlabelled_share = 1 - labelled.sum() / members.sum()
            cells[cell] = RectifierCell(
                (name, cell),
                self.labels[labelled],
                self.scores[labelled],
                weights[labelled],
                float(unlabelled_share),
                step,
                (priors or {}).get(cell, math.nan),
            )
        return cells

    def occurrence_values(
        self, values: Values, bounds: tuple[float, float] | None = None
    ) -> StratifiedSample:
        """Values of the statements, [k], each time they were said."""
        sample = replace(self.occurrences.sample, values=values[self._numbers], bounds=bounds)
        return replace(self.occurrences, sample=sample)

    def freedom(self, mix: StandardWeights | None) -> float:
        """The degrees of freedom of the crawl's variance: clusters that count, less one for each
        stratum that they are drawn in; at least 1."""
        sample, counting = self.occurrences.sample, self.occurrence_weights(mix) > 0
        design, places = sample.design, sample.places
        if design is None or places is None:
            return max(1.0, float(sample.counts[counting].sum() - 1))
        clusters_used = np.isin(np.arange(len(design.strata)), design.clusters[places[counting]])
        return max(
            1.0,
            float(
                sum(
                    max(0, clusters_used[members].sum() - 1)
                    for members in design.resampling_strata()
                )
            ),
        )

    def repeat_variance(self, values: Values, mix: StandardWeights | None) -> float:
        """The variance of a mean over crawls from values of the statements that are independent
        draws with these variances, [k]."""
        occurrence_weights, sample = self.occurrence_weights(mix), self.occurrences.sample
        places = (
            np.arange(len(occurrence_weights))
            if sample.design is None or sample.places is None
            else sample.design.clusters[sample.places]
        )
        k = len(values)
        # A number for each pair of cluster and statement: said twice in one cluster, a statement is
        # wrong twice or not at all.
        _, pair = np.unique(places * k + self._numbers, return_inverse=True)
        sums, squares = (
            np.bincount(pair, occurrence_weights),
            np.zeros(int(pair.max(initial=-1)) + 1),
        )
        squares[pair] = values[self._numbers]
        if sample.design is None:  # each time is an independent draw
            return float(
                (occurrence_weights * values[self._numbers]).sum() / occurrence_weights.sum() ** 2
            )
        return float((sums**2 * squares).sum() / occurrence_weights.sum() ** 2)


@dataclass(frozen=True, eq=False, slots=True)
class CorrectedFigure:
    """A corrected figure: its value and resamples, [draws], with the number of labels and the tuned
    weight of the scorer; `bounds` are those of the labels, for a mean; `variance_parts` are the
    variances that it consists of, the crawl's and each cell's, with their degrees of freedom."""

    value: float
    resamples: Values
    n: int
    scorer_weight: float
    bounds: tuple[float, float] | None = None
    variance_parts: Sequence[tuple[float, float]] = ()

    @property
    def estimate(self) -> Estimate:
        """The figure with its 95% interval; n is the number of labels. For a mean of labels with
        bounds, the interval has the form of Wilson's (1927) at the sample size that has its
        variance, so that it keeps its level near the bounds."""
        low, high = percentile_interval(self.resamples, 0.95)
        if self.bounds is None:
            return Estimate(self.value, low, high, self.n)
        least, size = self.bounds[0], self.bounds[1] - self.bounds[0]
        share, half = (self.value - least) / size, (high - low) / 2 / size
        low, high = wilson_by_variance(share, (half / _NORMAL_95) ** 2, self.n)
        return Estimate(self.value, least + size * low, least + size * high, self.n)

    def subtract(self, other: "CorrectedFigure") -> Estimate:
        """The difference of two figures; n is the number of labels of both."""
        resamples = self.resamples - other.resamples
        return Estimate(
            self.value - other.value, *percentile_interval(resamples, 0.95), self.n + other.n
        )

    def test(self, other: "CorrectedFigure") -> float:
        """The two-sided p-value of no difference between two figures that share no cell, and whose
        cells are their own: t = difference / standard error, of the crawl and of the labels. The
        degrees of freedom are Satterthwaite's (1946, Biometrics Bulletin 2): the square of the sum
        of variances over the sum of their squares, each divided by its own. NaN if neither varies.
        """
        from scipy.special import stdtr

        terms = np.array([*self.variance_parts, *other.variance_parts], dtype=np.float64).reshape(
            -1, 2
        )
        variances, freedom = terms[terms[:, 0] > 0].T
        if not len(variances):
            return math.nan
        t = abs(self.value - other.value) / math.sqrt(variances.sum())
        degrees = variances.sum() ** 2 / (variances**2 / freedom).sum()
        return float(2 * stdtr(degrees, -t))


@dataclass(frozen=True, slots=True)
class CorrectedDifference(Estimate):
    """A difference of two figures corrected by labels; n is the number of labels.

    Attributes:
        p: of no difference, two-sided (`CorrectedFigure.test`); NaN if a side is corrected by
            labels of other groups, which assumes something that a test must not.
        p_adjusted: the same, corrected over the family.
    """

    p: float = math.nan
    p_adjusted: float = math.nan

    @property
    def is_tested(self) -> bool:
        return not math.isnan(self.p)

    @property
    def is_significant(self) -> bool:
        """Whether a difference was shown: it is significant after correction, and its interval
        leaves out 0."""
        return (
            self.p_adjusted <= _SIGNIFICANCE_LEVEL
            and self.has_interval
            and self.low * self.high > 0
        )

    def as_dict(self) -> dict[str, Any]:
        p = {"p": nan_to_none(self.p), "p_adjusted": nan_to_none(self.p_adjusted)}
        return Estimate.as_dict(self) | p


NO_CORRECTED_DIFFERENCE = CorrectedDifference(math.nan, math.nan, math.nan, 0)
"""What stands for the difference of two figures that labels did not correct."""


def wilson_by_variance(share: float, variance: float, n: int) -> Interval:
    """Wilson's interval of a share that has this variance, as if it were counted among as many
    independent cases as have it (Korn and Graubard 1998 use the same size in another interval);
    `n` labels say how near to 0 or 1 it can be known to be."""
    share = min(max(share, 0.0), 1.0)
    plausible = min(max(share, 1 / (n + 2)), 1 - 1 / (n + 2))
    if variance <= 0:
        return Interval(share, share)
    size = plausible * (1 - plausible) / variance
    square = _NORMAL_95**2 / size
    middle = share + square / 2
    half = _NORMAL_95 * math.sqrt(share * (1 - share) / size + square / 4 / size)
    low, high = (middle - half) / (1 + square), (middle + half) / (1 + square)
    return Interval(max(0.0, low), min(1.0, high))


def correct_figure(
    statements: ScoredStatements,
    cells: Mapping[Hashable, RectifierCell],
    statistic: Statistic = mean,
    *,
    mix: StandardWeights | None = None,
    bounds: tuple[float, float] | None = None,
    draws: int = DEFAULT_DRAWS,
    seed: int = 0,
) -> CorrectedFigure | None:
    """A mean or total of what people would say of the statements, by the rectifiers of `cells`,
    which are the statements' own or borrowed; None if one that it needs is not known. `mix`: the
    mean at a mix of prompts. `bounds` are those of the labels."""
    weights = statements.weights(mix)
    members = {cell: m for cell, m in statements.members().items() if weights[m].sum() > 0}
    if any(cell not in cells or not cells[cell].is_known for cell in members):
        return None
    shares = {cell: float(weights[m].sum()) for cell, m in members.items()}
    tuned = tune_weight([(shares[cell], cells[cell]) for cell in members])
    predicted, variances = tuned * statements.scores, np.zeros(len(weights))
    for cell, member_mask in members.items():
        predicted[member_mask] += cells[cell].rectifier(tuned)
        variances[member_mask] = cells[cell].spread(tuned)
    labelled_mask = ~np.isnan(statements.labels)
    # What a person said of a statement is certain.
    predicted, variances = (
        np.where(labelled_mask, statements.labels, predicted),
        np.where(labelled_mask, 0.0, variances),
    )
    rng = np.random.Generator(np.random.PCG64(seed))
    occurrences = statements.occurrence_values(predicted)
    resamples = (
        resample_statistic(occurrences.sample, statistic, draws, rng)
        if mix is None
        else mix.resample_mean(occurrences, draws, rng)
    )
    scale = (
        float(statements.occurrences.sample.counts.sum(dtype=np.float64))
        if statistic.is_sum
        else 1.0
    )
    repeat_variance = statements.repeat_variance(variances, mix)
    # First the labels that nobody gave, which vary about the prediction; then the errors of the
    # rectifiers.
    noise = math.sqrt(repeat_variance) * rng.standard_normal(draws)
    crawled = resamples.replicates(rng)
    variance_parts = [
        (float(np.nanvar(crawled)) + scale**2 * repeat_variance, statements.freedom(mix))
    ]
    for cell in members:
        noise = noise + shares[cell] * cells[cell].draw_errors(tuned, draws, rng)
        variance_parts.append(
            ((scale * shares[cell] * cells[cell].error(tuned)) ** 2, cells[cell].freedom)
        )
    labelled = sum(cells[cell].n for cell in members)
    value = float(weights @ predicted) * scale
    figure_bounds = None if statistic.is_sum else bounds
    return CorrectedFigure(
        value, crawled + scale * noise, labelled, tuned, figure_bounds, variance_parts
    )


def tune_weight(cells: Sequence[tuple[float, RectifierCell]]) -> float:
    """The weight of the scorer, from 0 (labels alone) to 1, for which the variance of the sum of
    these cells' rectifiers, each with its share, is least; 1 if scores do not vary within cells."""
    covariance, variance = 0.0, 0.0
    for share, cell in cells:
        cross, square = cell.products()
        covariance, variance = covariance + share**2 * cross, variance + share**2 * square
    # The power tuning of PPI++: covariance over variance, kept between labels alone and full trust.
    return min(max(covariance / variance, 0.0), 1.0) if variance > 1e-12 else 1.0
