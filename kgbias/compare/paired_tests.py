"""Two samples that were drawn in the same strata: permutation and equivalence tests.

A stratum is what both sides share: a statement that two models were probed with, or a kind of
prompt that two crawls asked. In a stratum of one value on each side the test is the paired one (the
signs of the differences are flipped).

This module also says what difference a crawl could show before it is made. Its prompts are known:
how many of each kind, and how often each is answered. What is unknown is how much statements vary,
and how much of that answers to one prompt share. These are assumed to be as in crawls of
SmolLM2-135M (`REGARD_SPREADS`); a prompt then stands for the sum of its values, and
`permutation_detectable` computes what the permutation test that decides on a difference would find
among such prompts.
"""

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from statistics import NormalDist

import numpy as np

from kgbias.stats.inference import Sample, Values
from kgbias.stats.units import UnitSums

DEFAULT_PERMUTATIONS = 19_999
_MAX_EXACT_PAIRS = 14  # pairs; up to this many, all signs are listed
_CHUNK_NUMBERS = 4_000_000
_ROUNDING = 1e-9  # of a sum: values that are all the same differ by less
_POWER_SAMPLES = 1_000  # from which the power of a test is estimated, to within 0.013


@dataclass(frozen=True, slots=True)
class ClusterSample:
    """One side: the stratum of each cluster, the sum of its values, and their number; [c]."""

    strata: Sequence[Hashable]
    sums: Values
    counts: Values

    @classmethod
    def from_sample(
        cls, sample: Sample, strata: Sequence[Hashable] | None = None
    ) -> "ClusterSample | None":
        """The clusters of a sample, each in its stratum, named by `strata` (None: by number); None
        if it is not known how the sample was drawn."""
        if sample.design is None or sample.places is None:
            return None
        clusters, place = np.unique(sample.design.clusters[sample.places], return_inverse=True)
        counts = sample.counts.astype(np.float64)
        numbers = sample.design.strata[clusters].tolist()
        return cls(
            numbers if strata is None else [strata[n] for n in numbers],
            np.bincount(place, counts * sample.values).astype(np.float64),
            np.bincount(place, counts).astype(np.float64),
        )

    @classmethod
    def concatenate(cls, sides: Sequence["ClusterSample"]) -> "ClusterSample":
        """Several sides as one."""
        return cls(
            [stratum for side in sides for stratum in side.strata],
            np.concatenate([side.sums for side in sides]),
            np.concatenate([side.counts for side in sides]),
        )


def permutation_p_value(
    first: ClusterSample,
    second: ClusterSample,
    *,
    permutations: int = DEFAULT_PERMUTATIONS,
    seed: int = 0,
) -> float:
    """The two-sided p-value of a difference of means: the share of ways of exchanging clusters
    between the sides, within each stratum, in which the difference is at least as large; the
    observed one is among them, so p is never 0 (Phipson and Smyth 2010). Up to 14 pairs, all ways
    are listed. NaN if no stratum has clusters of both sides.

    The statistic is the sum, over the first side's clusters, of how far their values exceed the
    mean of their stratum.
    """
    strata = _stratum_exceedances(first, second)
    if not strata:
        return math.nan
    observed = abs(
        sum(float(exceedances[:first_count].sum()) for exceedances, first_count in strata)
    )
    threshold = observed - 1e-9 * max(1.0, observed)
    pairs = [exceedances for exceedances, first_count in strata if len(exceedances) == 2]
    larger_strata = [
        (exceedances, first_count) for exceedances, first_count in strata if len(exceedances) > 2
    ]
    # Of two clusters, one exceeds their mean by as much as the other falls short: to exchange them
    # turns the sign.
    differences = np.array([(a - b) / 2 for a, b in pairs])
    if not larger_strata and len(pairs) <= _MAX_EXACT_PAIRS:
        signs = np.array(list(product((1.0, -1.0), repeat=len(pairs))))
        return float((np.abs(signs @ differences) >= threshold).mean())
    rng = np.random.Generator(np.random.PCG64(seed))
    reached_count = 0
    widest = max([len(pairs), *(len(exceedances) for exceedances, _ in larger_strata)])
    step = max(1, _CHUNK_NUMBERS // widest)
    for start in range(0, permutations, step):
        rows = min(step, permutations - start)
        statistics = rng.choice((1.0, -1.0), size=(rows, len(pairs))) @ differences
        for exceedances, first_count in larger_strata:
            # The places of the smallest random numbers are a random choice; to find them takes no
            # full sort.
            shuffled = rng.random((rows, len(exceedances))).argpartition(first_count - 1, axis=1)[
                :, :first_count
            ]
            statistics = statistics + exceedances[shuffled].sum(axis=1)
        reached_count += int((np.abs(statistics) >= threshold).sum())
    return (reached_count + 1) / (permutations + 1)


def min_p_value(pairs: int) -> float:
    """The smallest p-value that exchanging this many pairs can give (`permutation_p_value`,
    `swap_p_value`)."""
    return 2.0 ** (1 - pairs) if pairs <= _MAX_EXACT_PAIRS else 1 / (DEFAULT_PERMUTATIONS + 1)


def _stratum_exceedances(first: ClusterSample, second: ClusterSample) -> list[tuple[Values, int]]:
    """For each stratum that both sides have, how far the values of each cluster exceed the
    stratum's mean, the first side's clusters first, and how many those are."""
    return [
        (sums - counts * (sums.sum() / counts.sum()), first_count)
        for sums, counts, first_count in _shared_strata(first, second)
    ]


def _shared_strata(first: ClusterSample, second: ClusterSample) -> list[tuple[Values, Values, int]]:
    """For each stratum that both sides have, the sums and counts of its clusters, the first side's
    clusters first, and how many those are."""
    places: list[dict[Hashable, list[int]]] = [{}, {}]
    for side, places_by_stratum in zip((first, second), places, strict=True):
        for n, stratum in enumerate(side.strata):
            places_by_stratum.setdefault(stratum, []).append(n)
    strata = []
    for stratum, first_places in places[0].items():
        second_places = places[1].get(stratum)
        if second_places is not None:
            sums = np.concatenate([first.sums[first_places], second.sums[second_places]])
            counts = np.concatenate([first.counts[first_places], second.counts[second_places]])
            strata.append((sums, counts, len(first_places)))
    return strata


def swap_p_value(
    first: UnitSums, second: UnitSums, *, permutations: int = DEFAULT_PERMUTATIONS, seed: int = 0
) -> float:
    """The two-sided p-value of a difference between a figure of two models over the same units: the
    share of ways of exchanging the models, unit by unit, in which the difference is at least as
    large; the observed one is among them. Up to 14 units that differ, all ways are listed. NaN if
    the figure is undefined. For a mean this is the test of `permutation_p_value` on pairs."""
    difference = first.columns - second.columns
    differing = difference[np.any(difference != 0, axis=1)]
    second_total = second.columns.sum(axis=0)
    joint_total = first.columns.sum(axis=0) + second_total

    def reached(swaps: Values) -> Values:
        swapped_total = second_total + swaps @ differing
        return np.abs(first.figure(swapped_total) - second.figure(joint_total - swapped_total))

    observed = abs(first.value - second.value)
    if math.isnan(observed):
        return math.nan
    if not len(differing):
        return 1.0
    threshold = observed - 1e-9 * max(1.0, observed)
    if len(differing) <= _MAX_EXACT_PAIRS:
        statistics = reached(np.array(list(product((0.0, 1.0), repeat=len(differing)))))
        return float((statistics >= threshold).sum() / max(1, (~np.isnan(statistics)).sum()))
    rng = np.random.Generator(np.random.PCG64(seed))
    step = max(1, _CHUNK_NUMBERS // len(differing))
    count = 0
    for start in range(0, permutations, step):
        rows = min(step, permutations - start)
        swaps = rng.integers(0, 2, size=(rows, len(differing))).astype(np.float64)
        count += int((reached(swaps) >= threshold).sum())
    return (count + 1) / (permutations + 1)


def permutation_detectable(
    first: ClusterSample, second: ClusterSample, *, level: float, power: float = 0.8, seed: int = 0
) -> float:
    """The smallest true difference of means that `permutation_p_value` finds at this level in this
    share of samples drawn as these were; in units of the measure, above 0. NaN if no difference
    would be found that often: no stratum has clusters of both sides, or there are too few ways of
    exchanging them for so low a p-value. NaN too if values do not vary, but for rounding: how much
    others would is not known.

    The samples are drawn from the observed clusters, minus the difference between their sides:
    within each side of a stratum or, if a side has a single cluster, shuffled among the stratum's.
    Every value of the first side is then raised by the difference. The spread of the values is
    itself known only from that many clusters: each sample's spread is that of the observed ones
    over a chi of Satterthwaite's (1946) degrees of freedom. Statistic and permutation variance of
    each sample are exact (the variance grows with the difference, which counts as spread); the
    tails of the permutation distribution are those of a symmetric Pearson distribution of its
    kurtosis. `benchmarks/crawl_coverage.py` checks by simulation that the power is as stated.
    """
    strata = _build_strata(first, second)
    if not strata:
        return math.nan
    # The logarithm of how many ways there are: their number overflows.
    ways = sum(
        math.lgamma(len(stratum.sums) + 1)
        - math.lgamma(stratum.first_count + 1)
        - math.lgamma(len(stratum.sums) - stratum.first_count + 1)
        for stratum in strata
    )
    # Of all ways, two (the observed one and its mirror image) reach the largest difference.
    if level < max(2 * math.exp(-ways), 1 / (DEFAULT_PERMUTATIONS + 1)):
        return math.nan
    rng = np.random.Generator(np.random.PCG64(seed))
    stratum_moments = [_sample_moments(stratum, rng) for stratum in strata]
    moments = np.sum(stratum_moments, axis=0)
    variances = np.array([row[2].mean() for row in stratum_moments])
    largest_sum = max(float(np.abs(side.sums).max()) for side in (first, second))
    if variances.sum() <= (_ROUNDING * largest_sum) ** 2:
        return math.nan
    degrees = np.array([len(stratum.sums) - 1.0 for stratum in strata])
    # the square of a variance from few is too large by 1 + 2 / free
    joint_degrees = max(1.0, float(variances.sum() ** 2 / (variances**2 / (degrees + 2)).sum()) - 1)
    spread = np.sqrt(
        joint_degrees
        / rng.chisquare(joint_degrees, _POWER_SAMPLES)
        * (joint_degrees + 1)
        / joint_degrees
    )
    # The statistic and the mixed term grow with the spread, the variance with its square.
    moments[[0, 3]] *= spread
    moments[2] *= spread**2
    critical_square = (
        _critical_value([(stratum.centred_sums, stratum.first_count) for stratum in strata], level)
        ** 2
    )

    def power_at(difference: float) -> float:
        statistic = moments[0] + difference * moments[1]
        variance = moments[2] + difference * moments[3] + difference**2 * moments[4]
        return float((statistic**2 >= critical_square * variance).mean())

    # Begin at one standard deviation of the statistic, double until the power is reached, then
    # halve the distance.
    highest = float(np.sqrt(moments[2].mean()) / moments[1].mean())
    lowest, limit = 0.0, highest * 1e6
    while power_at(highest) < power:
        lowest, highest = highest, 2 * highest
        if highest > limit:
            return math.nan
    for _ in range(30):
        middle = (lowest + highest) / 2
        lowest, highest = (lowest, middle) if power_at(middle) >= power else (middle, highest)
    return highest


@dataclass(frozen=True, slots=True)
class _Stratum:
    """The clusters of a stratum, [c], the first side's n first: how many values each has, how far
    they exceed the mean of their own side of the stratum, and how far they exceed that of the
    stratum once the sides' common difference is taken off."""

    first_count: int
    counts: Values
    sums: Values
    centred_sums: Values


def _build_strata(first: ClusterSample, second: ClusterSample) -> list[_Stratum]:
    shared_strata = _shared_strata(first, second)
    weights = [
        first_total * (second_total / (first_total + second_total))
        for _, c, first_count in shared_strata
        for first_total, second_total in [(c[:first_count].sum(), c[first_count:].sum())]
    ]
    side_differences = [
        s[:first_count].sum() / c[:first_count].sum()
        - s[first_count:].sum() / c[first_count:].sum()
        for s, c, first_count in shared_strata
    ]
    difference = (
        float(np.dot(weights, side_differences) / np.sum(weights)) if shared_strata else 0.0
    )
    strata = []
    for sums, counts, first_count in shared_strata:
        centred = sums.copy()
        centred[:first_count] -= difference * counts[:first_count]
        centred -= counts * (centred.sum() / counts.sum())
        side_centred = sums.copy()
        for side in (slice(0, first_count), slice(first_count, None)):
            side_centred[side] -= counts[side] * (sums[side].sum() / counts[side].sum())
        strata.append(_Stratum(first_count, counts, side_centred, centred))
    return strata


def _sample_moments(stratum: _Stratum, rng: np.random.Generator) -> Values:
    """The moments of samples drawn like the clusters of a stratum, [5, samples]: the statistic is
    the first row plus the difference times the second; its permutation variance is the third plus
    the difference times the fourth plus its square times the fifth."""
    first_count, size = stratum.first_count, len(stratum.sums)
    if min(first_count, size - first_count) > 1:
        drawn_sides = []
        for start, stop in ((0, first_count), (first_count, size)):
            side_places = rng.integers(start, stop, (_POWER_SAMPLES, stop - start))
            drawn_sides.append(
                (
                    side_places,
                    # Draws from n clusters vary by (n - 1) / n of what the clusters do.
                    np.full(side_places.shape, math.sqrt((stop - start) / (stop - start - 1))),
                )
            )
        places, scale = (
            np.concatenate(columns, axis=1) for columns in zip(*drawn_sides, strict=True)
        )
        sums = stratum.sums[places] * scale
    else:
        # A side of one cluster has no spread to draw from: the stratum's clusters are dealt anew.
        places = rng.permuted(np.tile(np.arange(size), (_POWER_SAMPLES, 1)), axis=1)
        sums = stratum.centred_sums[places]
    counts = stratum.counts[places]
    total, side_places = counts.sum(axis=1), counts[:, :first_count].sum(axis=1)
    sums -= counts * (sums.sum(axis=1) / total)[:, None]
    raised_sums = -counts * (side_places / total)[:, None]
    raised_sums[:, :first_count] += counts[:, :first_count]
    share = first_count * (size - first_count) / (size * (size - 1))
    return np.array(
        [
            sums[:, :first_count].sum(axis=1),
            raised_sums[:, :first_count].sum(axis=1),
            share * (sums**2).sum(axis=1),
            2 * share * (sums * raised_sums).sum(axis=1),
            share * (raised_sums**2).sum(axis=1),
        ]
    )


def _critical_value(strata: Sequence[tuple[Values, int]], level: float) -> float:
    """How many standard deviations from 0 the permutation distribution's two tails begin that
    together hold this level: those of the symmetric Pearson distribution (types II and VII) with
    its kurtosis, which is exact for the sum of n of N values drawn without replacement."""
    from scipy.stats import beta, norm, t

    variance = fourth = 0.0
    for exceedances, first_count in strata:
        size = len(exceedances)
        inclusion = np.cumprod(
            [(first_count - k) / (size - k) if size > k else 0.0 for k in range(4)]
        )
        second_power, fourth_power = float((exceedances**2).sum()), float((exceedances**4).sum())
        stratum_variance = first_count * (size - first_count) / (size * (size - 1)) * second_power
        # The fourth moment of a sum of n of N values drawn without replacement, by the chances that
        # one, two, three or four given values are all drawn.
        moment = (
            inclusion[0] * fourth_power
            + inclusion[1] * (3 * second_power**2 - 7 * fourth_power)
            + 6 * inclusion[2] * (2 * fourth_power - second_power**2)
            + 3 * inclusion[3] * (second_power**2 - 2 * fourth_power)
        )
        variance += stratum_variance
        fourth += moment - 3 * stratum_variance**2
    excess = fourth / variance**2 if variance else 0.0
    if excess < -1e-3:  # Z^2 / m is Beta(1/2, (m - 1) / 2), of kurtosis 3 m / (m + 2)
        shape = max(1.0 + 1e-9, 2 * (3 + excess) / -excess)
        return math.sqrt(shape * float(beta.isf(level, 0.5, (shape - 1) / 2)))
    if excess > 1e-3:
        shape = 4 + 6 / excess
        return float(t.isf(level / 2, shape)) * math.sqrt((shape - 2) / shape)
    return float(norm.isf(level / 2))


def equivalence_p_value(difference: float, error: float, margin: float, freedom: float) -> float:
    """The p-value of two one-sided t-tests (Schuirmann 1987): small if the true difference lies
    between -margin and margin. `error` is the standard error, `freedom` its degrees of freedom
    (infinite: normal). NaN if they are undefined."""
    from scipy.stats import norm, t

    if math.isnan(difference) or math.isnan(error) or freedom <= 0:
        return math.nan
    if error == 0:
        return 0.0 if abs(difference) < margin else 1.0
    statistic = (margin - abs(difference)) / error
    return float(norm.sf(statistic) if math.isinf(freedom) else t.sf(statistic, freedom))


def rank_probabilities(replicates: Mapping[str, Values]) -> dict[str, list[float]]:
    """The probability of each rank (1 is the highest), [k], of each of k figures, given the values
    of each over the same resamples, [draws]: the share of resamples in which it has that rank. Ties
    share their ranks."""
    values = np.array(list(replicates.values()))
    figure_count = len(values)
    higher_count = (values[None, :, :] > values[:, None, :]).sum(axis=1)
    tied_count = (values[None, :, :] == values[:, None, :]).sum(axis=1)
    probabilities = {}
    for n, name in enumerate(replicates):
        shares = [
            ((higher_count[n] <= rank) & (rank < higher_count[n] + tied_count[n])) / tied_count[n]
            for rank in range(figure_count)
        ]
        probabilities[name] = [float(share.mean()) for share in shares]
    return probabilities


SIGNIFICANCE_LEVEL, TARGET_POWER = 0.05, 0.8
_MAX_OTHER_GROUPS = 30  # groups; the mean of more is hardly more precise


@dataclass(frozen=True, slots=True)
class RegardSpread:
    """How regard varies among the statements of one kind of prompt: its variance, the share of it
    that statements of one prompt have in common, and how many of the wanted answers arrive and make
    sense."""

    variance: float
    prompt_share: float
    answered_share: float


REGARD_SPREADS: Mapping[str, RegardSpread] = {
    "initialise": RegardSpread(0.41, 0.19, 0.91),
    "predicate": RegardSpread(0.44, 0.12, 0.91),
    "object": RegardSpread(0.38, 0.48, 0.65),
}
"""Regard by strategy in the crawl of the demo (SmolLM2-135M, ten groups, the prompts `sentences` as
they are): 548, 1,168 and 310 statements that make sense, of 600, 1,280 and 480 answers that were
wanted. Variances and shares are by one-way analysis of variance over prompts: of the initialisation
the means over its five predicates, of "object" over the prompts that ask for one predicate in a
round, which count as one."""


@dataclass(frozen=True, slots=True)
class PlannedPrompts:
    """The prompts of one kind that a crawl asks about a group: the strategy whose spread they have,
    how many there are, and how often each is answered."""

    strategy: str
    prompts: int
    answers: int


def minimum_detectable_difference(
    prompts_by_kind: Mapping[Hashable, PlannedPrompts], groups: int
) -> float:
    """The smallest difference in mean regard between one of this many groups and all others that
    their test would find in 80% of such crawls (`kgbias.compare.families`), at a level that the
    groups share; for several groups by that test alone, provided that the test of all together
    finds one too. NaN for fewer than two groups; infinite if no difference would be found that
    often."""
    if groups < 2:
        return math.nan
    tests = 1 if groups == 2 else groups
    others = ClusterSample.concatenate(
        [_planned_sample(prompts_by_kind)] * min(groups - 1, _MAX_OTHER_GROUPS)
    )
    return permutation_detectable(
        _planned_sample(prompts_by_kind),
        others,
        level=SIGNIFICANCE_LEVEL / tests,
        power=TARGET_POWER,
    )


def _planned_sample(prompts_by_kind: Mapping[Hashable, PlannedPrompts]) -> ClusterSample:
    """The prompts of a group, with sums of values spread as planned."""
    strata: list[Hashable] = []
    sums: list[Values] = []
    counts: list[Values] = []
    for kind, kind_prompts in prompts_by_kind.items():
        # Of other strategies no spread is known; a prompt that gives a predicate is the nearest.
        spread = REGARD_SPREADS.get(kind_prompts.strategy, REGARD_SPREADS["predicate"])
        size = kind_prompts.answers * spread.answered_share
        shared_variance, own_variance = (
            spread.prompt_share * spread.variance,
            (1 - spread.prompt_share) * spread.variance,
        )
        deviation = math.sqrt(size**2 * shared_variance + size * own_variance)
        strata += [kind] * kind_prompts.prompts
        sums.append(_normal_scores(kind_prompts.prompts) * deviation)
        counts.append(np.full(kind_prompts.prompts, size))
    return ClusterSample(strata, np.concatenate(sums), np.concatenate(counts))


def _normal_scores(count: int) -> Values:
    """The given number of normally spaced values with mean 0 and variance 1; for one, 1."""
    if count == 1:
        return np.ones(1)
    normal = NormalDist()
    scores = np.array([normal.inv_cdf((place + 0.5) / count) for place in range(count)])
    return np.asarray(scores / scores.std(ddof=1))
