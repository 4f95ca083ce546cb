"""Which groups a model believes worse things about: how the lifts of a group's names vary with the
scores of statements (regard, toxicity, warmth ...), with both names and statements taken as
samples."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from kgbias.probe.belief import Array, Counts, Design, Flags, name_lifts, upper
from kgbias.stats.inference import DEFAULT_DRAWS, benjamini_hochberg, student_quantile

RHO, SHIFT = "rho", "shift"
FEWEST_STATEMENTS = 10


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
class Nonce:
    """Made-up names before some of the statements: `bits` [names, statements], one name for
    each name of the design, at the places `statements`."""

    bits: Array
    statements: Counts


def group_figures(
    design: Design,
    bits: Array,
    scores: Mapping[str, Array],
    *,
    nonce: Nonce | None = None,
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
    found: list[GroupFigure] = []
    for name, values in scores.items():
        kept = ~np.isnan(values)
        if kept.sum() < FEWEST_STATEMENTS or np.ptp(values[kept]) == 0:
            continue
        lifts = name_lifts(design, bits)[:, kept]
        for kind in (RHO, SHIFT):
            found += _of_score(design, lifts, values[kept], name, kind, draws, seed)
        if nonce is not None:
            found = [_floored(f, design, nonce, values) if f.score == name else f for f in found]
    for kind in (RHO, SHIFT):
        own = [n for n, f in enumerate(found) if f.kind == kind]
        corrected = benjamini_hochberg([found[n].p_value for n in own])
        for n, q in zip(own, corrected, strict=True):
            found[n] = replace(found[n], q_value=float(q))
    return found


def _of_score(
    design: Design, lifts: Array, scores: Array, name: str, kind: str, draws: int, seed: int
) -> list[GroupFigure]:
    statements = lifts.shape[1]
    whole = np.full((1, statements), 1 / statements)
    of_names = of_each(kind, lifts, scores, whole)[0]
    rng = np.random.Generator(np.random.PCG64(seed))
    weights = rng.multinomial(statements, whole[0], size=draws) / statements
    drawn = of_each(kind, lifts, scores, weights)
    groups = [design.groups == g for g in range(design.count)]
    degrees = len(of_names) - design.count
    within = sum(((of_names[own] - of_names[own].mean()) ** 2).sum() for own in groups) / degrees
    found = []
    cut = student_quantile(0.975, degrees)
    for g, own in enumerate(groups):
        n, value = int(own.sum()), float(of_names[own].mean())
        by_names, by_statements = within / n, float(drawn[:, own].mean(axis=1).var(ddof=1))
        both = float(drawn[:, own].var(axis=0, ddof=1).mean()) / n
        error = max(by_names + by_statements - both, by_names, by_statements, 1e-24) ** 0.5
        p = min(1.0, 2 * float(upper(np.array(abs(value) / error), degrees)))
        found.append(
            GroupFigure(
                g, name, kind, value, value - cut * error, value + cut * error,
                tuple(of_names[own].tolist()), statements, p,
            )
        )  # fmt: skip
    return found


def of_each(kind: str, lifts: Array, scores: Array, weights: Array) -> Array:
    """The figure of each name, [draws, names], from `lifts` [names, statements], when statements
    have these `weights` [draws, statements], which add up to 1."""
    if kind == SHIFT:
        raised = np.maximum(lifts, 0.0)
        more = weights @ raised.T
        mean = np.divide(
            weights @ (raised * scores).T, more, where=more > 0, out=np.zeros_like(more)
        )
        return np.asarray(np.where(more > 0, mean - (weights @ scores)[:, None], 0.0))
    found = np.empty((len(weights), len(lifts)))
    second, spread = _centred(_ranks(scores, weights), weights)
    for n, row in enumerate(lifts):
        first, own = _centred(_ranks(row, weights), weights)
        norm, both = own * spread, (weights * first * second).sum(axis=1)
        found[:, n] = np.divide(both, np.sqrt(norm), where=norm > 1e-12, out=np.zeros_like(both))
    return found


def _ranks(values: Array, weights: Array) -> Array:
    """The rank of each value among all, by the `weights` [draws, values] of one draw after the
    other, which add up to 1: the weight of what is below it and half of that of its equals. Ranks
    are taken anew in each draw: ranks of the whole would make a bootstrap's intervals too narrow
    (the coverage of `figures_covered` was .92)."""
    order = np.argsort(values, kind="stable")
    ahead = np.flatnonzero(np.diff(values[order], prepend=np.nan) != 0)  # where equals begin
    drawn = weights[:, order]
    through = np.cumsum(drawn, axis=1)
    last = np.append(ahead[1:], len(values)) - 1
    middle = (through[:, ahead] - drawn[:, ahead] + through[:, last]) / 2
    found = np.empty_like(drawn)
    found[:, order] = np.repeat(middle, last - ahead + 1, axis=1)
    return found


def _centred(values: Array, weights: Array) -> tuple[Array, Array]:
    """Values [draws, values] less their weighted mean, and their weighted variance [draws]."""
    less = values - (weights * values).sum(axis=1)[:, None]
    return less, (weights * less**2).sum(axis=1)


def _floored(figure: GroupFigure, design: Design, nonce: Nonce, scores: Array) -> GroupFigure:
    """The figure with its floor: that of made-up names, drawn into groups of equal size."""
    own = scores[nonce.statements]
    kept: Flags = ~np.isnan(own)
    if kept.sum() < FEWEST_STATEMENTS or np.ptp(own[kept]) == 0:
        return figure
    lifts = name_lifts(design, nonce.bits)[:, kept]
    whole = np.full((1, int(kept.sum())), 1 / kept.sum())
    values = of_each(figure.kind, lifts, own[kept], whole)[0]
    rng = np.random.Generator(np.random.PCG64(0))
    size = len(figure.of_names)
    drawn = [abs(values[rng.permutation(len(values))[:size]].mean()) for _ in range(DEFAULT_DRAWS)]
    return replace(figure, floor=float(np.quantile(drawn, 0.95)), floor_statements=int(kept.sum()))


def figures_of(found: Sequence[GroupFigure], group: int, kind: str = RHO) -> list[GroupFigure]:
    """The figures of one group."""
    return [figure for figure in found if (figure.group, figure.kind) == (group, kind)]
