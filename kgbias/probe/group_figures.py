"""Which groups a model believes worse things about: how the lifts of a group's names vary with the
scores of statements (regard, toxicity, warmth ...), with both names and statements taken as
samples."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from kgbias.probe.belief import Array, Counts, Flags, NameDesign, name_lifts, upper_tail
from kgbias.stats.inference import DEFAULT_DRAWS, benjamini_hochberg, student_quantile

RHO, SHIFT = "rho", "shift"
MIN_STATEMENTS = 10


@dataclass(frozen=True, slots=True)
class GroupFigure:
    """A figure for a group, from one score.

    `kind` is RHO, the mean over the group's names of Spearman's correlation of a name's lifts with
    the statements' scores, -1 to 1; or SHIFT, the mean score of the statements weighted by the bits
    by which a name makes them likelier, minus the mean score of all, in units of the score.

    Attributes:
        group: its place in the design.
        value, low, high: the figure with its 95% interval, over names and statements.
        of_names: the figure of each of its names.
        statements: how many have the score.
        p_value: of a figure of 0, two-sided; `q_value` is corrected over groups and scores
            (Benjamini and Hochberg 1995).
        floor: the absolute size that 95% of the figures of equally many made-up names stay
            below, on `floor_statements`; NaN without such names.
    """

    group: int
    score: str
    kind: str
    value: float
    low: float
    high: float
    of_names: tuple[float, ...]
    statements: int
    p_value: float
    q_value: float = float("nan")
    floor: float = float("nan")
    floor_statements: int = 0


@dataclass(frozen=True, slots=True)
class NonceNames:
    """Made-up names before some of the statements: `bits` [names, statements], one name for
    each name of the design, at the places `statements`."""

    bits: Array
    statements: Counts


def group_figures(
    design: NameDesign,
    bits: Array,
    scores: Mapping[str, Array],
    *,
    nonce: NonceNames | None = None,
    draws: int = DEFAULT_DRAWS,
    seed: int = 0,
) -> list[GroupFigure]:
    """The figures of all groups: `bits` are log2 probabilities [names, statements]; `scores` hold
    the score of each statement [statements], NaN if it has none (and for a statement that names a
    group, which must not count).

    The variance of a group's figure is that of its names (pooled over groups, over their number)
    plus that over statements (bootstrap) minus what is in both (the mean bootstrap variance of one
    name, over their number), and never below the larger of the first two: the variance of two-way
    clusters (Cameron, Gelbach and Miller 2011). Student's t has the degrees of freedom of names.
    """
    figures: list[GroupFigure] = []
    for name, values in scores.items():
        has_score = ~np.isnan(values)
        if has_score.sum() < MIN_STATEMENTS or np.ptp(values[has_score]) == 0:
            continue
        lifts = name_lifts(design, bits)[:, has_score]
        for kind in (RHO, SHIFT):
            figures += _score_figures(design, lifts, values[has_score], name, kind, draws, seed)
        if nonce is not None:
            figures = [
                _add_floor(f, design, nonce, values) if f.score == name else f for f in figures
            ]
    for kind in (RHO, SHIFT):
        kind_places = [n for n, f in enumerate(figures) if f.kind == kind]
        q_values = benjamini_hochberg([figures[n].p_value for n in kind_places])
        for n, q in zip(kind_places, q_values, strict=True):
            figures[n] = replace(figures[n], q_value=float(q))
    return figures


def _score_figures(
    design: NameDesign, lifts: Array, scores: Array, name: str, kind: str, draws: int, seed: int
) -> list[GroupFigure]:
    statements = lifts.shape[1]
    equal_weights = np.full((1, statements), 1 / statements)
    of_names = name_figures(kind, lifts, scores, equal_weights)[0]
    rng = np.random.Generator(np.random.PCG64(seed))
    weights = rng.multinomial(statements, equal_weights[0], size=draws) / statements
    figure_draws = name_figures(kind, lifts, scores, weights)
    groups = [design.groups == g for g in range(design.count)]
    degrees = len(of_names) - design.count
    name_variance = (
        sum(((of_names[in_group] - of_names[in_group].mean()) ** 2).sum() for in_group in groups)
        / degrees
    )
    figures = []
    quantile = student_quantile(0.975, degrees)
    for g, in_group in enumerate(groups):
        n, value = int(in_group.sum()), float(of_names[in_group].mean())
        by_names, by_statements = (
            name_variance / n,
            float(figure_draws[:, in_group].mean(axis=1).var(ddof=1)),
        )
        shared_variance = float(figure_draws[:, in_group].var(axis=0, ddof=1).mean()) / n
        error = (
            max(by_names + by_statements - shared_variance, by_names, by_statements, 1e-24) ** 0.5
        )
        p = min(1.0, 2 * float(upper_tail(np.array(abs(value) / error), degrees)))
        figures.append(
            GroupFigure(
                g,
                name,
                kind,
                value,
                value - quantile * error,
                value + quantile * error,
                tuple(of_names[in_group].tolist()),
                statements,
                p,
            )
        )
    return figures


def name_figures(kind: str, lifts: Array, scores: Array, statement_weights: Array) -> Array:
    """The figure of each name, [draws, names], from `lifts` [names, statements], when statements
    have these `statement_weights` [draws, statements], which add up to 1 in each draw."""
    weights = statement_weights
    if kind == SHIFT:
        raised = np.maximum(lifts, 0.0)
        raised_weights = weights @ raised.T
        mean = np.divide(
            weights @ (raised * scores).T,
            raised_weights,
            where=raised_weights > 0,
            out=np.zeros_like(raised_weights),
        )
        return np.asarray(np.where(raised_weights > 0, mean - (weights @ scores)[:, None], 0.0))
    correlations = np.empty((len(weights), len(lifts)))
    score_ranks, score_variance = _centre_with_variance(_ranks(scores, weights), weights)
    for n, row in enumerate(lifts):
        lift_ranks, lift_variance = _centre_with_variance(_ranks(row, weights), weights)
        norm, covariances = (
            lift_variance * score_variance,
            (weights * lift_ranks * score_ranks).sum(axis=1),
        )
        correlations[:, n] = np.divide(
            covariances, np.sqrt(norm), where=norm > 1e-12, out=np.zeros_like(covariances)
        )
    return correlations


def _ranks(values: Array, weights: Array) -> Array:
    """The rank of each value among all, by the `weights` [draws, values] of one draw after the
    other, which add up to 1: the weight of what is below it and half of that of its equals. Ranks
    are taken anew in each draw: ranks of the whole would make a bootstrap's intervals too narrow
    (the coverage of `figures_covered` was .92)."""
    order = np.argsort(values, kind="stable")
    first_equals = np.flatnonzero(np.diff(values[order], prepend=np.nan) != 0)  # where equals begin
    sorted_weights = weights[:, order]
    through = np.cumsum(sorted_weights, axis=1)
    last_equals = np.append(first_equals[1:], len(values)) - 1
    middle = (
        through[:, first_equals] - sorted_weights[:, first_equals] + through[:, last_equals]
    ) / 2
    rank_values = np.empty_like(sorted_weights)
    rank_values[:, order] = np.repeat(middle, last_equals - first_equals + 1, axis=1)
    return rank_values


class _CentredValues(NamedTuple):
    """Values less their weighted mean, and their weighted variances."""

    values: Array
    variances: Array


def _centre_with_variance(values: Array, weights: Array) -> _CentredValues:
    """Values [draws, values] less their weighted mean, and their weighted variance [draws]."""
    centred_values = values - (weights * values).sum(axis=1)[:, None]
    return _CentredValues(centred_values, (weights * centred_values**2).sum(axis=1))


def _add_floor(
    figure: GroupFigure, design: NameDesign, nonce: NonceNames, scores: Array
) -> GroupFigure:
    """The figure with its floor: that of made-up names, drawn into groups of equal size."""
    nonce_scores = scores[nonce.statements]
    has_score: Flags = ~np.isnan(nonce_scores)
    if has_score.sum() < MIN_STATEMENTS or np.ptp(nonce_scores[has_score]) == 0:
        return figure
    lifts = name_lifts(design, nonce.bits)[:, has_score]
    equal_weights = np.full((1, int(has_score.sum())), 1 / has_score.sum())
    values = name_figures(figure.kind, lifts, nonce_scores[has_score], equal_weights)[0]
    rng = np.random.Generator(np.random.PCG64(0))
    size = len(figure.of_names)
    floor_draws = [
        abs(values[rng.permutation(len(values))[:size]].mean()) for _ in range(DEFAULT_DRAWS)
    ]
    return replace(
        figure, floor=float(np.quantile(floor_draws, 0.95)), floor_statements=int(has_score.sum())
    )


def figures_of_group(
    figures: Sequence[GroupFigure], group: int, kind: str = RHO
) -> list[GroupFigure]:
    """The figures of one group."""
    return [figure for figure in figures if (figure.group, figure.kind) == (group, kind)]
