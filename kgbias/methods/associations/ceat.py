"""CEAT: a distribution of WEAT effect sizes over the contexts in which words occur.

Guo and Caliskan (2021), "Detecting emergent intersectional biases": each of N draws picks one
context per word and computes WEAT on those vectors; a random-effects model (DerSimonian and Laird
1986, as in Borenstein et al. 2007) combines the N effect sizes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import NormalDist
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kgbias.errors import UsageError
from kgbias.methods.associations.effect import EQUALITY_TOLERANCE, Array, effect_size, scale_to_unit
from kgbias.methods.associations.permutation import PValue, Tails, permutation_test
from kgbias.methods.associations.result import (
    Association,
    ContextVectors,
    SetUsage,
    Statistics,
    check_words,
    statistics_settings,
)
from kgbias.methods.associations.sets import ROLES, AssociationTest
from kgbias.models.base import ModelInfo
from kgbias.stats.estimate import Estimate

Variance = Literal["published", "cohen"]
Indices = NDArray[np.intp]

DEFAULT_CEAT_DRAWS = 10_000
_MAX_TABLE_COSINES = 1 << 22  # cosines between contexts held in memory at once (32 MB)
_CHUNK_DRAWS = 64  # draws computed at once: few enough for their directions to stay in the cache


@dataclass(frozen=True, slots=True)
class RandomEffects:
    """A random-effects summary: the combined effect size, its standard error, the two-tailed or
    one-tailed p of z = value / error, tau squared (the variance between draws) and Cochran's Q."""

    value: float
    error: float
    p_value: float
    tau_squared: float
    cochran_q: float


def ceat(
    test: AssociationTest,
    contexts: Mapping[str, ContextVectors],
    model: ModelInfo,
    statistics: Statistics | None = None,
    *,
    draws: int = DEFAULT_CEAT_DRAWS,
    variance: Variance = "published",
    settings: Mapping[str, Any] | None = None,
) -> Association:
    """The contextualised embedding association test, from each word's vectors in its contexts
    (`contexts` by role x, y, a, b).

    The combined effect size and `p` are Guo and Caliskan's. That p asks whether the mean over
    *these words'* contexts is exactly 0, and counts every draw as an independent study although all
    draws share the same words and contexts: with N = 10,000 it is near 0 for almost anything, even
    without any association. `permutation_p_value` is the permutation p-value of the words' expected
    associations (the mean over all contexts), which keeps its level; the interval is the 2.5% to
    97.5% range of the draws.

    `draws` is N. `variance` is the in-sample variance of a draw that weights it: "published", that
    of its associations, or "cohen" (see `cohen_variance`). Raises UsageError for fewer than 2
    draws, DataError if a set has no word with a context.
    """
    statistics = statistics or Statistics()
    if draws < 2:
        raise UsageError("CEAT needs at least 2 draws")
    sets = {role: SetUsage(contexts[role].words, contexts[role].missing) for role in ROLES}
    check_words(test, sets, model)
    tables = [contexts[role].tables for role in ROLES]
    effects, spreads = draw_effects(
        *tables, draws=draws, seed=statistics.seed, ddof=variance_ddof(statistics)
    )
    if variance == "cohen":
        spreads = cohen_variance(effects, len(tables[0]), len(tables[1]))
    return combine_draws(
        test,
        "ceat",
        model,
        effects,
        spreads,
        expected_associations(*tables),
        sets,
        statistics,
        settings={"variance": variance, **dict(settings or {})},
        contexts=sum(len(table) for set_tables in tables for table in set_tables),
    )


def combine_draws(
    test: AssociationTest,
    method: str,
    model: ModelInfo,
    effects: Array,
    spreads: Array,
    expected: tuple[Array, Array],
    sets: Mapping[str, SetUsage],
    statistics: Statistics,
    *,
    settings: Mapping[str, Any],
    contexts: int,
) -> Association:
    """The result from draws of contexts: their effect sizes [draws], combined by a random-effects
    model with their in-sample variances `spreads` [draws], and the permutation test of the
    `expected` association of each word or attribute on the two sides."""
    x, y = expected
    tails = statistics.tails or "two"
    summary = fit_random_effects(effects, spreads, tails)
    low, high = np.quantile(effects, [0.025, 0.975])
    return Association(
        test=test,
        method=method,
        model=model,
        effect=Estimate(summary.value, float(low), float(high), len(effects)),
        p_value=PValue(summary.p_value, "random-effects", tails, 0, -1, statistics.seed),
        statistic=float(x.mean() - y.mean()),
        sets=sets,
        settings=statistics_settings(statistics, tails)
        | {"ddof": variance_ddof(statistics), "ceat_draws": len(effects), **settings},
        details={
            "standard_error": summary.error,
            "tau_squared": summary.tau_squared,
            "q": summary.cochran_q,
            "expected_effect_size": effect_size(x, y, statistics.spread),
            "contexts": contexts,
            "quantiles": draw_quantiles(effects),
        },
        permutation_p_value=permutation_test(
            x,
            y,
            tails=tails,
            how="auto" if statistics.how == "normal" else statistics.how,
            samples=statistics.samples,
            seed=statistics.seed,
        ),
    )


def variance_ddof(statistics: Statistics) -> int:
    """The ddof of a variance, 0 or 1: how far its divisor is below the number of values."""
    return 0 if statistics.spread == "population" else 1


def fit_random_effects(effects: Array, variances: Array, tails: Tails = "two") -> RandomEffects:
    """The random-effects model of Guo and Caliskan (2021), equations 1 to 7 of their supplement.

    From effect sizes ES_i [N] and in-sample variances V_i [N], with W_i = 1 / V_i:
    Q = sum W_i ES_i^2 - (sum W_i ES_i)^2 / sum W_i; c = sum W_i - sum W_i^2 / sum W_i;
    tau^2 = max(0, (Q - (N - 1)) / c); v_i = 1 / (V_i + tau^2); CES = sum v_i ES_i / sum v_i;
    SE = sqrt(1 / sum v_i); p = 2 (1 - Phi(|CES / SE|)), or 1 - Phi(CES / SE) for one tail.
    """
    # A draw without spread would have infinite weight; the floor keeps it finite.
    weights = 1 / np.maximum(variances, EQUALITY_TOLERANCE**2)
    total = weights.sum()
    # Q about the weighted mean equals the formula above, without its cancellation.
    cochran_q = float((weights * (effects - (weights * effects).sum() / total) ** 2).sum())
    scale = float(total - (weights**2).sum() / total)
    excess = cochran_q - (len(effects) - 1)
    tau_squared = excess / scale if excess > 0 and scale > 0 else 0.0
    weights = 1 / (1 / weights + tau_squared)
    value = float((weights * effects).sum() / weights.sum())
    error = sqrt(1 / float(weights.sum()))
    z_value = value / error
    # The upper tail at z is the lower one at -z, which 1 - cdf would round to 0 for a large z.
    upper = NormalDist().cdf(-abs(z_value) if tails == "two" else -z_value)
    return RandomEffects(
        value, error, 2 * upper if tails == "two" else upper, tau_squared, cochran_q
    )


def draw_quantiles(effects: Array) -> list[float]:
    """The shape of a distribution of draws: its quantiles from 0% to 100% in steps of 2.5%."""
    return [float(value) for value in np.quantile(effects, np.linspace(0, 1, 41))]


def cohen_variance(effects: Array, n_x: int, n_y: int) -> Array:
    """The sampling variance of Cohen's d, (n_x + n_y) / (n_x n_y) + d^2 / (2 (n_x + n_y)) (Hedges
    and Olkin 1985), the usual weight in a meta-analysis. Guo and Caliskan's V_i is the variance of
    the associations, in units of s rather than of d."""
    return (n_x + n_y) / (n_x * n_y) + effects**2 / (2 * (n_x + n_y))


class ExpectedAssociations(NamedTuple):
    """The expected association of each target word."""

    x: Array
    y: Array


def expected_associations(
    x: Sequence[Array], y: Sequence[Array], a: Sequence[Array], b: Sequence[Array]
) -> ExpectedAssociations:
    """The expected association of each target word over all choices of contexts, [n_x] and [n_y].
    A cosine is bilinear in the unit vectors, so the expectation is that of their means."""

    def means(tables: Sequence[Array]) -> Array:
        return np.array([scale_to_unit(table).mean(axis=0) for table in tables])

    direction = means(a).mean(axis=0) - means(b).mean(axis=0)
    return ExpectedAssociations(means(x) @ direction, means(y) @ direction)


class DrawnEffects(NamedTuple):
    """Effect sizes of drawn contexts, and their variances."""

    effects: Array
    variances: Array


def draw_effects(
    x: Sequence[Array],
    y: Sequence[Array],
    a: Sequence[Array],
    b: Sequence[Array],
    *,
    draws: int = DEFAULT_CEAT_DRAWS,
    seed: int = 0,
    ddof: int = 1,
) -> DrawnEffects:
    """Effect sizes [draws] and V_i [draws], the variances of s over X u Y, for WEAT on one context
    per word. Contexts are drawn uniformly, independently between words and draws.

    All vectors are normalised once. With few contexts, the cosines between all of them are computed
    once and looked up by the draws; with many, each draw projects its targets onto the mean of its
    unit attribute vectors. Draws are computed in small chunks, so memory is bounded by the
    contexts.
    """
    targets, attributes = [*x, *y], [*a, *b]
    rows, columns = (scale_to_unit(np.concatenate(tables)) for tables in (targets, attributes))
    # Weights with which a sum over all attributes is the mean over A minus that over B.
    sign = np.repeat([1 / len(a), -1 / len(b)], [len(a), len(b)])
    table = columns @ rows.T if len(rows) * len(columns) <= _MAX_TABLE_COSINES else None
    # One random stream each, so the chunk size does not change the result.
    target_stream, attribute_stream = (np.random.default_rng((seed, stream)) for stream in (0, 1))
    effects, variances = np.empty(draws), np.empty(draws)
    for start in range(0, draws, _CHUNK_DRAWS):
        chunk = slice(start, min(start + _CHUNK_DRAWS, draws))
        size = chunk.stop - start
        target_rows = _choose_rows(target_stream, targets, size)
        attribute_rows = _choose_rows(attribute_stream, attributes, size)
        if table is None:
            s = _project(rows, columns, target_rows, attribute_rows, sign)
        else:
            s = _look_up(table, target_rows, attribute_rows, sign)
        difference = s[:, : len(x)].mean(axis=1) - s[:, len(x) :].mean(axis=1)
        variances[chunk] = s.var(axis=1, ddof=ddof)
        std = np.sqrt(variances[chunk])
        flat = (std <= EQUALITY_TOLERANCE) | (np.abs(difference) <= EQUALITY_TOLERANCE)
        effects[chunk] = np.where(flat, 0.0, difference / np.where(flat, 1.0, std))
    return DrawnEffects(effects, variances)


def _choose_rows(rng: np.random.Generator, tables: Sequence[Array], size: int) -> Indices:
    """One row number per draw and word, [size, words], into the concatenated tables."""
    counts = np.array([len(table) for table in tables])
    return np.asarray(
        rng.integers(0, counts, size=(size, len(tables))) + counts.cumsum() - counts, dtype=np.intp
    )


def _look_up(table: Array, target_rows: Indices, attribute_rows: Indices, sign: Array) -> Array:
    """s [size, targets] from the cosines [attribute contexts, target contexts]."""
    s = np.zeros(target_rows.shape)
    flat, starts = table.ravel(), attribute_rows * table.shape[1]
    for start, weight in zip(starts.T, sign, strict=True):
        s += weight * flat.take(target_rows + start[:, None])
    return s


def _project(
    rows: Array, columns: Array, target_rows: Indices, attribute_rows: Indices, sign: Array
) -> Array:
    """s [size, targets] by projection on each draw's direction, mean A - mean B."""
    direction = np.zeros((len(target_rows), rows.shape[1]))
    for column, weight in zip(attribute_rows.T, sign, strict=True):
        direction += weight * columns.take(column, axis=0)
    return np.stack(
        [np.einsum("nd,nd->n", rows.take(row, axis=0), direction) for row in target_rows.T], axis=1
    )
