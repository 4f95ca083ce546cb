"""Permutation of whole prompts: do groups differ at all, and which of them from the others?

If groups do not differ, a prompt and its answers could just as well have belonged to another group
that was asked in the same way. So whole prompts (`kgbias.stats.designs.Design.clusters`)
are dealt anew to the groups, each group getting as many as it has, within each block (a strategy,
and what its prompts supply), and the standardised means (`kgbias.stats.poststratification`) are computed
again. The observed deal is one of them, so p is never 0 (Phipson and Smyth 2010).

With very many observations, whose means are normal to many digits, p-values are those of the normal
approximation instead.
"""

import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from kgbias.compare.paired import Drawn
from kgbias.stats.inference import Values
from kgbias.stats.poststratification import StratifiedSample, StandardWeights, weighted_means

PERMUTATIONS = 9_999
MOST_DEALT = 50_000  # clusters dealt; with more, means are normal to many digits
_MOST_DRAWN = 5_000  # clusters that new samples are drawn from, to see what a test finds
_CHUNK = 4_000_000  # numbers in memory at once
_WORK = 400_000_000  # clusters dealt in total; beyond this, there are fewer deals
_FEWEST = 1999  # deals, at any cost


@dataclass(frozen=True, slots=True)
class Dealt:
    """The result of dealing prompts anew for several groups.

    Attributes:
        means: the standardised mean of each group, [g].
        rest: that of all the others, for each group, [g].
        p: of no difference between the groups at all: the statistic is the sum of squares of their
            means about the common one, each weighted by its number of statements.
        against_rest: the same for each group and all others, on the difference of their means, [g].
    """

    means: Values
    rest: Values
    p: float
    against_rest: Values


@dataclass(frozen=True, eq=False, slots=True)
class _Clusters:
    """The clusters of all groups: the group of each, its block and form, the sum of its values, and
    their number; [c]."""

    group: Values
    block: Values
    form: Values
    sums: Values
    sizes: Values


def deal(
    sides: Sequence[StratifiedSample], mix: StandardWeights, *, permutations: int = PERMUTATIONS, seed: int = 0
) -> Dealt:
    """Test two or more samples against each other at a mix of forms that all of them have. NaN if
    the mix is empty."""
    g = len(sides)
    weights = np.array(list(mix.weights.values()), dtype=np.float64)
    if not len(weights):
        nan = np.full(g, math.nan)
        return Dealt(nan, nan, math.nan, nan)
    own = [mix.restrict(a) for a in sides]
    size = sum(_size(a) for a in own)
    if size > MOST_DEALT:
        return _by_normal(own, mix, weights)
    clusters = _clusters(own, list(mix.weights))
    rng = np.random.Generator(np.random.PCG64(seed))
    sums, sizes = _totals(clusters, g, len(weights))
    means, rest = _means(sums[None], sizes[None], weights)
    n = sizes.sum(axis=1)
    between, apart = _between(means, n)[0], np.abs(means - rest)[0]
    reached, reached_apart = 0, np.zeros(g)
    often = min(permutations, max(_FEWEST, _WORK // max(1, len(clusters.sums))))
    for drawn_sums, drawn_sizes in _deals(clusters, g, len(weights), often, rng):
        drawn, others = _means(drawn_sums, drawn_sizes, weights)
        reached += int((_between(drawn, n) >= _just(between)).sum())
        reached_apart += (np.abs(drawn - others) >= _just(apart)).sum(axis=0)
    return Dealt(means[0], rest[0], (reached + 1) / (often + 1), (reached_apart + 1) / (often + 1))


def drawn(sides: Mapping[str, StratifiedSample], mix: StandardWeights) -> dict[str, Drawn] | None:
    """The prompts that are dealt, each in its block; None if there are so many that the normal
    approximation says what a test would find."""
    own = {name: mix.restrict(a) for name, a in sides.items()}
    if not mix.weights or sum(_size(a) for a in own.values()) > _MOST_DRAWN:
        return None
    c = _clusters(list(own.values()), list(mix.weights))
    found = {}
    for n, name in enumerate(own):
        there = c.group == n
        found[name] = Drawn(c.block[there].tolist(), c.sums[there], c.sizes[there])
    return found


def _just(observed: Values | float) -> Values | float:
    """The threshold for reaching an observed statistic, whatever the order of summation."""
    return observed - 1e-9 * np.maximum(1e-6, observed)


def _between(means: Values, n: Values) -> Values:
    """The sum of squares between groups, [...], from their means, [..., g], each over n values."""
    middle = means @ n / n.sum()
    return np.asarray((means - middle[..., None]) ** 2 @ n, dtype=np.float64)


def _means(sums: Values, sizes: Values, weights: Values) -> tuple[Values, Values]:
    """The standardised mean of each group and of all others, [..., g], from the sums and sizes of
    its forms, [..., g, f]."""
    every, all_sizes = sums.sum(axis=-2, keepdims=True), sizes.sum(axis=-2, keepdims=True)
    return weighted_means(sums, sizes, weights), weighted_means(every - sums, all_sizes - sizes, weights)


def _size(asked: StratifiedSample) -> int:
    """The number of clusters in a sample, or of observations if its draws are unknown."""
    design, places = asked.sample.design, asked.sample.places
    if design is None or places is None:
        return asked.n
    return len(np.unique(design.clusters[places]))


def _clusters(own: Sequence[StratifiedSample], forms: Sequence[Hashable]) -> _Clusters:
    number = {form: n for n, form in enumerate(forms)}
    blocks: dict[Hashable, int] = {}
    parts: list[tuple[Values, ...]] = []
    for g, asked in enumerate(own):
        s = asked.sample
        counts = s.counts.astype(np.float64)
        if asked.forms is None or asked.blocks is None or s.design is None or s.places is None:
            values = np.repeat(s.values, s.counts)
            zeros = np.zeros(len(values))
            parts.append((zeros + g, zeros, zeros, values, zeros + 1))
            continue
        _, first, place = np.unique(
            s.design.clusters[s.places], return_index=True, return_inverse=True
        )
        block = [blocks.setdefault(asked.blocks[n], len(blocks)) for n in first]
        form = [number[asked.forms[n]] for n in first]
        parts.append(
            (np.full(len(first), g), np.array(block), np.array(form),
             np.bincount(place, counts * s.values).astype(np.float64),
             np.bincount(place, counts).astype(np.float64))
        )  # fmt: skip
    return _Clusters(
        *(np.concatenate(column).astype(np.float64) for column in zip(*parts, strict=True))
    )


def _totals(c: _Clusters, groups: int, forms: int) -> tuple[Values, Values]:
    """The sums and sizes of each form of each group, [g, f]."""
    place = (c.group * forms + c.form).astype(np.int64)
    sums, sizes = (
        np.bincount(place, x, groups * forms).astype(np.float64).reshape(groups, forms)
        for x in (c.sums, c.sizes)
    )
    return sums, sizes


def _deals(
    c: _Clusters, groups: int, forms: int, often: int, rng: np.random.Generator
) -> Iterator[tuple[Values, Values]]:
    """The same for clusters dealt anew within their blocks, [some deals, g, f], until there are
    enough deals."""
    blocks = []
    for block in np.unique(c.block):
        own = np.flatnonzero(c.block == block)
        own = own[np.argsort(c.group[own], kind="stable")]
        there, starts = np.unique(c.group[own].astype(np.int64), return_index=True)
        blocks.append((own, there, starts, int(c.form[own[0]])))
    widest = max(len(own) for own, *_ in blocks)
    step = max(1, _CHUNK // max(widest, groups * forms))
    for start in range(0, often, step):
        rows = min(step, often - start)
        sums, sizes = np.zeros((rows, groups, forms)), np.zeros((rows, groups, forms))
        for own, there, starts, form in blocks:
            dealt = own[None, :].repeat(rows, axis=0)
            if len(there) > 1:
                dealt = rng.permuted(dealt, axis=1)
            sums[:, there, form] += np.add.reduceat(c.sums[dealt], starts, axis=1)
            sizes[:, there, form] += np.add.reduceat(c.sizes[dealt], starts, axis=1)
        yield sums, sizes


def _by_normal(own: Sequence[StratifiedSample], mix: StandardWeights, weights: Values) -> Dealt:
    """The same by the normal approximation: standard errors of linearised means of clusters; the
    test of all groups is that of Welch and James, as chi-squared."""
    from scipy.special import chdtrc

    moments = [_moments(a, list(mix.weights)) for a in own]
    sums, sizes = (np.array([m[n] for m in moments]) for n in (0, 1))
    means, rest = (found[0] for found in _means(sums[None], sizes[None], weights))
    # Of clusters about the mean of their own group, which without a difference is also the rest's.
    squares = np.array([m[2] for m in moments])
    with np.errstate(invalid="ignore", divide="ignore"):
        errors = squares / sizes**2 @ weights**2
        others = (squares.sum(axis=0) - squares) / (sizes.sum(axis=0) - sizes) ** 2 @ weights**2
        z = np.abs(means - rest) / np.sqrt(errors + others)
        inverse = 1 / errors
        middle = inverse @ means / inverse.sum()
        between = float(inverse @ (means - middle) ** 2)
    p = np.array([math.erfc(x / math.sqrt(2)) if not math.isnan(x) else 1.0 for x in z])
    omnibus = 1.0 if math.isnan(between) else float(chdtrc(len(own) - 1, between))
    return Dealt(means, rest, omnibus, p)


def _moments(asked: StratifiedSample, forms: Sequence[Hashable]) -> tuple[Values, Values, Values]:
    """For each form, the sum of the values, their number, and the sum over clusters of the square
    of how far their values exceed the mean."""
    s = asked.sample
    if asked.forms is None or s.design is None or s.places is None:
        values, counts = s.distinct_values()
        n = counts.sum()
        about = values - counts @ values / n
        return np.array([counts @ values]), np.array([n]), np.array([counts @ about**2])
    number = {form: n for n, form in enumerate(forms)}
    form = np.array([number[f] for f in asked.forms], dtype=np.int64)
    counts = s.counts.astype(np.float64)
    sums, sizes = (np.bincount(form, x, len(forms)) for x in (counts * s.values, counts))
    about = counts * (s.values - (sums / np.maximum(sizes, 1))[form])
    _, cluster = np.unique(s.design.clusters[s.places], return_inverse=True)
    of_cluster = np.zeros(int(cluster.max()) + 1, dtype=np.int64)
    of_cluster[cluster] = form
    squares = np.bincount(of_cluster, np.bincount(cluster, about) ** 2, len(forms))
    return sums.astype(np.float64), sizes.astype(np.float64), squares.astype(np.float64)
