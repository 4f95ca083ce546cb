"""Permutation of whole prompts: do groups differ at all, and which of them from the others?

If groups do not differ, a prompt and its answers could just as well have belonged to another group
that was asked in the same way. So whole prompts (`kgbias.stats.designs.Design.clusters`)
are dealt anew to the groups, each group getting as many as it has, within each block (a strategy,
and what its prompts supply), and the standardised means (`kgbias.stats.poststratification`) are
computed again. The observed deal is one of them, so p is never 0 (Phipson and Smyth 2010).

With very many observations, whose means are normal to many digits, p-values are those of the normal
approximation instead.
"""

import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from kgbias.compare.paired_tests import ClusterSample
from kgbias.stats.inference import Values
from kgbias.stats.poststratification import (
    FormSums,
    StandardWeights,
    StratifiedSample,
    weighted_means,
)

DEFAULT_PERMUTATIONS = 9_999
MAX_PERMUTED_CLUSTERS = 50_000  # clusters dealt; with more, means are normal to many digits
# More clusters than samples are drawn from, to see what a test finds.
_MAX_SIMULATED_CLUSTERS = 5_000
_CHUNK_NUMBERS = 4_000_000  # numbers in memory at once
_MAX_DEALT_IN_TOTAL = 400_000_000  # clusters dealt in total; beyond this, there are fewer deals
_MIN_PERMUTATIONS = 1999  # deals, at any cost


@dataclass(frozen=True, slots=True)
class PermutationResult:
    """The result of dealing prompts anew for several groups.

    Attributes:
        means: the standardised mean of each group, [g].
        rest_means: that of all the others, for each group, [g].
        p_value: of no difference between the groups at all: the statistic is the sum of squares of
            their means about the common one, each weighted by its number of statements.
        rest_p_values: the same for each group and all others, on the difference of their means,
            [g].
    """

    means: Values
    rest_means: Values
    p_value: float
    rest_p_values: Values


@dataclass(frozen=True, eq=False, slots=True)
class _Clusters:
    """The clusters of all groups: the group of each, its block and form, the sum of its values, and
    their number; [c]."""

    group: Values
    block: Values
    form: Values
    sums: Values
    sizes: Values


def permute_clusters(
    sides: Sequence[StratifiedSample],
    mix: StandardWeights,
    *,
    permutations: int = DEFAULT_PERMUTATIONS,
    seed: int = 0,
) -> PermutationResult:
    """Test two or more samples against each other at a mix of forms that all of them have. NaN if
    the mix is empty."""
    group_count = len(sides)
    weights = np.array(list(mix.weights.values()), dtype=np.float64)
    if not len(weights):
        nan = np.full(group_count, math.nan)
        return PermutationResult(nan, nan, math.nan, nan)
    mixed_samples = [mix.restrict(sample) for sample in sides]
    size = sum(_count_clusters(sample) for sample in mixed_samples)
    if size > MAX_PERMUTED_CLUSTERS:
        return _test_by_normal(mixed_samples, mix, weights)
    clusters = _build_clusters(mixed_samples, list(mix.weights))
    rng = np.random.Generator(np.random.PCG64(seed))
    sums, sizes = _sum_forms(clusters, group_count, len(weights))
    means, rest_means = _group_means(sums[None], sizes[None], weights)
    group_sizes = sizes.sum(axis=1)
    observed_between, observed_apart = (
        _between_squares(means, group_sizes)[0],
        np.abs(means - rest_means)[0],
    )
    reached_count, reached_apart = 0, np.zeros(group_count)
    permutation_count = min(
        permutations, max(_MIN_PERMUTATIONS, _MAX_DEALT_IN_TOTAL // max(1, len(clusters.sums)))
    )
    for drawn_sums, drawn_sizes in _iter_permutations(
        clusters, group_count, len(weights), permutation_count, rng
    ):
        permuted_means, permuted_rest = _group_means(drawn_sums, drawn_sizes, weights)
        reached_count += int(
            (
                _between_squares(permuted_means, group_sizes) >= _reach_threshold(observed_between)
            ).sum()
        )
        reached_apart += (
            np.abs(permuted_means - permuted_rest) >= _reach_threshold(observed_apart)
        ).sum(axis=0)
    return PermutationResult(
        means[0],
        rest_means[0],
        (reached_count + 1) / (permutation_count + 1),
        (reached_apart + 1) / (permutation_count + 1),
    )


def build_permutation_clusters(
    sides: Mapping[str, StratifiedSample], mix: StandardWeights
) -> dict[str, ClusterSample] | None:
    """The prompts that are dealt, each in its block; None if there are so many that the normal
    approximation says what a test would find."""
    mixed_samples = {name: mix.restrict(sample) for name, sample in sides.items()}
    if (
        not mix.weights
        or sum(_count_clusters(sample) for sample in mixed_samples.values())
        > _MAX_SIMULATED_CLUSTERS
    ):
        return None
    clusters = _build_clusters(list(mixed_samples.values()), list(mix.weights))
    units = {}
    for n, name in enumerate(mixed_samples):
        in_group = clusters.group == n
        units[name] = ClusterSample(
            clusters.block[in_group].tolist(), clusters.sums[in_group], clusters.sizes[in_group]
        )
    return units


def _reach_threshold(observed: Values | float) -> Values | float:
    """The threshold for reaching an observed statistic, whatever the order of summation."""
    return observed - 1e-9 * np.maximum(1e-6, observed)


def _between_squares(means: Values, sizes: Values) -> Values:
    """The sum of squares between groups, [...], from their means, [..., g], each over n values."""
    middle = means @ sizes / sizes.sum()
    return np.asarray((means - middle[..., None]) ** 2 @ sizes, dtype=np.float64)


class _GroupMeans(NamedTuple):
    """The standardised mean of each group, and of all others, [..., g]."""

    own: Values
    rest: Values


def _group_means(sums: Values, sizes: Values, weights: Values) -> _GroupMeans:
    """The means from the sums and sizes of the groups' forms, [..., g, f]."""
    all_sums, all_sizes = sums.sum(axis=-2, keepdims=True), sizes.sum(axis=-2, keepdims=True)
    return _GroupMeans(
        weighted_means(sums, sizes, weights),
        weighted_means(all_sums - sums, all_sizes - sizes, weights),
    )


def _count_clusters(sample: StratifiedSample) -> int:
    """The number of clusters in a sample, or of observations if its draws are unknown."""
    design, places = sample.sample.design, sample.sample.places
    if design is None or places is None:
        return sample.n
    return len(np.unique(design.clusters[places]))


def _build_clusters(samples: Sequence[StratifiedSample], forms: Sequence[Hashable]) -> _Clusters:
    number = {form: n for n, form in enumerate(forms)}
    blocks: dict[Hashable, int] = {}
    cluster_columns: list[tuple[Values, ...]] = []
    for group_index, stratified in enumerate(samples):
        sample = stratified.sample
        counts = sample.counts.astype(np.float64)
        if (
            stratified.forms is None
            or stratified.blocks is None
            or sample.design is None
            or sample.places is None
        ):
            # How it was drawn is not known: each observation is taken as a cluster of its own.
            values = np.repeat(sample.values, sample.counts)
            zeros = np.zeros(len(values))
            cluster_columns.append((zeros + group_index, zeros, zeros, values, zeros + 1))
            continue
        _, first_places, place = np.unique(
            sample.design.clusters[sample.places], return_index=True, return_inverse=True
        )
        block = [blocks.setdefault(stratified.blocks[n], len(blocks)) for n in first_places]
        form = [number[stratified.forms[n]] for n in first_places]
        cluster_columns.append(
            (
                np.full(len(first_places), group_index),
                np.array(block),
                np.array(form),
                np.bincount(place, counts * sample.values).astype(np.float64),
                np.bincount(place, counts).astype(np.float64),
            )
        )
    return _Clusters(
        *(
            np.concatenate(column).astype(np.float64)
            for column in zip(*cluster_columns, strict=True)
        )
    )


def _sum_forms(clusters: _Clusters, groups: int, forms: int) -> FormSums:
    """The sums and sizes of each form of each group, [g, f]."""
    place = (clusters.group * forms + clusters.form).astype(np.int64)
    sums, sizes = (
        np.bincount(place, x, groups * forms).astype(np.float64).reshape(groups, forms)
        for x in (clusters.sums, clusters.sizes)
    )
    return FormSums(sums, sizes)


def _iter_permutations(
    clusters: _Clusters, groups: int, forms: int, permutation_count: int, rng: np.random.Generator
) -> Iterator[FormSums]:
    """The same for clusters dealt anew within their blocks, [some deals, g, f], until there are
    enough deals."""
    blocks = []
    for block in np.unique(clusters.block):
        block_clusters = np.flatnonzero(clusters.block == block)
        # Group by group, so that after shuffling the first n places stand for the first group, and
        # one `reduceat` adds up each group's.
        block_clusters = block_clusters[np.argsort(clusters.group[block_clusters], kind="stable")]
        group_numbers, starts = np.unique(
            clusters.group[block_clusters].astype(np.int64), return_index=True
        )
        blocks.append(
            (block_clusters, group_numbers, starts, int(clusters.form[block_clusters[0]]))
        )
    widest = max(len(block_clusters) for block_clusters, *_ in blocks)
    step = max(1, _CHUNK_NUMBERS // max(widest, groups * forms))
    for start in range(0, permutation_count, step):
        rows = min(step, permutation_count - start)
        sums, sizes = np.zeros((rows, groups, forms)), np.zeros((rows, groups, forms))
        for block_clusters, group_numbers, starts, form in blocks:
            permuted = block_clusters[None, :].repeat(rows, axis=0)
            # A block of one group stays as it is, however it is dealt.
            if len(group_numbers) > 1:
                permuted = rng.permuted(permuted, axis=1)
            sums[:, group_numbers, form] += np.add.reduceat(clusters.sums[permuted], starts, axis=1)
            sizes[:, group_numbers, form] += np.add.reduceat(
                clusters.sizes[permuted], starts, axis=1
            )
        yield FormSums(sums, sizes)


def _test_by_normal(
    samples: Sequence[StratifiedSample], mix: StandardWeights, weights: Values
) -> PermutationResult:
    """The same by the normal approximation: standard errors of linearised means of clusters; the
    test of all groups is that of Welch and James, as chi-squared."""
    from scipy.special import chdtrc

    moments = [_form_moments(sample, list(mix.weights)) for sample in samples]
    sums = np.array([moment.sums for moment in moments])
    sizes = np.array([moment.sizes for moment in moments])
    group_means = _group_means(sums[None], sizes[None], weights)
    means, rest_means = group_means.own[0], group_means.rest[0]
    # Of clusters about the mean of their own group, which without a difference is also the rest's.
    squares = np.array([moment.squares for moment in moments])
    with np.errstate(invalid="ignore", divide="ignore"):
        errors = squares / sizes**2 @ weights**2
        rest_errors = (
            (squares.sum(axis=0) - squares) / (sizes.sum(axis=0) - sizes) ** 2 @ weights**2
        )
        statistics = np.abs(means - rest_means) / np.sqrt(errors + rest_errors)
        inverse = 1 / errors
        middle = inverse @ means / inverse.sum()
        statistic = float(inverse @ (means - middle) ** 2)
    p_values = np.array(
        [math.erfc(x / math.sqrt(2)) if not math.isnan(x) else 1.0 for x in statistics]
    )
    omnibus = 1.0 if math.isnan(statistic) else float(chdtrc(len(samples) - 1, statistic))
    return PermutationResult(means, rest_means, omnibus, p_values)


class _FormMoments(NamedTuple):
    """For each form, the sum of the values, their number, and the sum over clusters of the square
    of how far their values exceed the mean, [f]."""

    sums: Values
    sizes: Values
    squares: Values


def _form_moments(stratified: StratifiedSample, forms: Sequence[Hashable]) -> _FormMoments:
    sample = stratified.sample
    if stratified.forms is None or sample.design is None or sample.places is None:
        values, counts = sample.distinct_values()
        size = counts.sum()
        deviations = values - counts @ values / size
        return _FormMoments(
            np.array([counts @ values]), np.array([size]), np.array([counts @ deviations**2])
        )
    number = {form: number for number, form in enumerate(forms)}
    form = np.array([number[f] for f in stratified.forms], dtype=np.int64)
    counts = sample.counts.astype(np.float64)
    sums, sizes = (np.bincount(form, x, len(forms)) for x in (counts * sample.values, counts))
    deviations = counts * (sample.values - (sums / np.maximum(sizes, 1))[form])
    _, cluster = np.unique(sample.design.clusters[sample.places], return_inverse=True)
    cluster_forms = np.zeros(int(cluster.max()) + 1, dtype=np.int64)
    cluster_forms[cluster] = form
    squares = np.bincount(cluster_forms, np.bincount(cluster, deviations) ** 2, len(forms))
    return _FormMoments(
        sums.astype(np.float64), sizes.astype(np.float64), squares.astype(np.float64)
    )
