"""Two samples that were drawn in the same strata: permutation and equivalence tests.

A stratum is what both sides share: a statement that two models were probed with, or a kind of
prompt that two crawls asked. In a stratum of one value on each side the test is the paired one (the
signs of the differences are flipped).

This module also says what difference a crawl could show before it is made. Its prompts are known:
how many of each kind, and how often each is answered. What is unknown is how much statements vary,
and how much of that answers to one prompt share. These are assumed to be as in crawls of
SmolLM2-135M (`PLANNED`); a prompt then stands for the sum of its values, and `detectable` computes
what the permutation test that decides on a difference would find among such prompts.
"""

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from statistics import NormalDist

import numpy as np

from kgbias.stats.inference import Sample, Values
from kgbias.stats.units import UnitSums

PERMUTATIONS = 19_999
_EXACT = 14  # pairs; up to this many, all signs are listed
_CHUNK = 4_000_000
_SAMPLES = 1_000  # from which the power of a test is estimated, to within 0.013


@dataclass(frozen=True, slots=True)
class Drawn:
    """One side: the stratum of each cluster, the sum of its values, and their number; [c]."""

    strata: Sequence[Hashable]
    sums: Values
    counts: Values

    @classmethod
    def of(cls, sample: Sample, strata: Sequence[Hashable] | None = None) -> "Drawn | None":
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
    def joined(cls, sides: Sequence["Drawn"]) -> "Drawn":
        """Several sides as one."""
        return cls(
            [stratum for side in sides for stratum in side.strata],
            np.concatenate([side.sums for side in sides]),
            np.concatenate([side.counts for side in sides]),
        )


def permutation_p(
    first: Drawn, second: Drawn, *, permutations: int = PERMUTATIONS, seed: int = 0
) -> float:
    """The two-sided p-value of a difference of means: the share of ways of exchanging clusters
    between the sides, within each stratum, in which the difference is at least as large; the
    observed one is among them, so p is never 0 (Phipson and Smyth 2010). Up to 14 pairs, all ways
    are listed. NaN if no stratum has clusters of both sides.

    The statistic is the sum, over the first side's clusters, of how far their values exceed the
    mean of their stratum.
    """
    strata = _exceedances(first, second)
    if not strata:
        return math.nan
    observed = abs(sum(float(e[:n].sum()) for e, n in strata))
    close = observed - 1e-9 * max(1.0, observed)
    pairs = [e for e, n in strata if len(e) == 2]
    rest = [(e, n) for e, n in strata if len(e) > 2]
    differences = np.array([(a - b) / 2 for a, b in pairs])
    if not rest and len(pairs) <= _EXACT:
        signs = np.array(list(product((1.0, -1.0), repeat=len(pairs))))
        return float((np.abs(signs @ differences) >= close).mean())
    rng = np.random.Generator(np.random.PCG64(seed))
    reached = 0
    widest = max([len(pairs), *(len(e) for e, _ in rest)])
    step = max(1, _CHUNK // widest)
    for start in range(0, permutations, step):
        rows = min(step, permutations - start)
        found = rng.choice((1.0, -1.0), size=(rows, len(pairs))) @ differences
        for e, n in rest:
            chosen = rng.random((rows, len(e))).argpartition(n - 1, axis=1)[:, :n]
            found = found + e[chosen].sum(axis=1)
        reached += int((np.abs(found) >= close).sum())
    return (reached + 1) / (permutations + 1)


def least_p(pairs: int) -> float:
    """The smallest p-value that exchanging this many pairs can give (`permutation_p`,
    `swapped_p`)."""
    return 2.0 ** (1 - pairs) if pairs <= _EXACT else 1 / (PERMUTATIONS + 1)


def _exceedances(first: Drawn, second: Drawn) -> list[tuple[Values, int]]:
    """For each stratum that both sides have, how far the values of each cluster exceed the
    stratum's mean, the first side's clusters first, and how many those are."""
    return [
        (sums - counts * (sums.sum() / counts.sum()), n)
        for sums, counts, n in _shared(first, second)
    ]


def _shared(first: Drawn, second: Drawn) -> list[tuple[Values, Values, int]]:
    """For each stratum that both sides have, the sums and counts of its clusters, the first side's
    clusters first, and how many those are."""
    places: list[dict[Hashable, list[int]]] = [{}, {}]
    for side, found in zip((first, second), places, strict=True):
        for n, stratum in enumerate(side.strata):
            found.setdefault(stratum, []).append(n)
    strata = []
    for stratum, own in places[0].items():
        other = places[1].get(stratum)
        if other is not None:
            sums = np.concatenate([first.sums[own], second.sums[other]])
            counts = np.concatenate([first.counts[own], second.counts[other]])
            strata.append((sums, counts, len(own)))
    return strata


def swapped_p(
    first: UnitSums, second: UnitSums, *, permutations: int = PERMUTATIONS, seed: int = 0
) -> float:
    """The two-sided p-value of a difference between a figure of two models over the same units: the
    share of ways of exchanging the models, unit by unit, in which the difference is at least as
    large; the observed one is among them. Up to 14 units that differ, all ways are listed. NaN if
    the figure is undefined. For a mean this is the test of `permutation_p` on pairs."""
    difference = first.columns - second.columns
    differing = difference[np.any(difference != 0, axis=1)]
    low = second.columns.sum(axis=0)
    both = first.columns.sum(axis=0) + low

    def reached(swaps: Values) -> Values:
        one = low + swaps @ differing
        return np.abs(first.figure(one) - second.figure(both - one))

    observed = abs(first.value - second.value)
    if math.isnan(observed):
        return math.nan
    if not len(differing):
        return 1.0
    close = observed - 1e-9 * max(1.0, observed)
    if len(differing) <= _EXACT:
        found = reached(np.array(list(product((0.0, 1.0), repeat=len(differing)))))
        return float((found >= close).sum() / max(1, (~np.isnan(found)).sum()))
    rng = np.random.Generator(np.random.PCG64(seed))
    step = max(1, _CHUNK // len(differing))
    count = 0
    for start in range(0, permutations, step):
        rows = min(step, permutations - start)
        swaps = rng.integers(0, 2, size=(rows, len(differing))).astype(np.float64)
        count += int((reached(swaps) >= close).sum())
    return (count + 1) / (permutations + 1)


def detectable(
    first: Drawn, second: Drawn, *, level: float, power: float = 0.8, seed: int = 0
) -> float:
    """The smallest true difference of means that `permutation_p` finds at this level in this share
    of samples drawn as these were; in units of the measure, above 0. NaN if no difference would be
    found that often: no stratum has clusters of both sides, or there are too few ways of exchanging
    them for so low a p-value.

    The samples are drawn from the observed clusters, minus the difference between their sides:
    within each side of a stratum or, if a side has a single cluster, shuffled among the stratum's.
    Every value of the first side is then raised by the difference. The spread of the values is
    itself known only from that many clusters: each sample's spread is that of the observed ones
    over a chi of Satterthwaite's (1946) degrees of freedom. Statistic and permutation variance of
    each sample are exact (the variance grows with the difference, which counts as spread); the
    tails of the permutation distribution are those of a symmetric Pearson distribution of its
    kurtosis. `benchmarks/crawl_coverage.py` checks by simulation that the power is as stated.
    """
    strata = _sides(first, second)
    if not strata:
        return math.nan
    ways = sum(
        math.lgamma(len(s.sums) + 1) - math.lgamma(s.n + 1) - math.lgamma(len(s.sums) - s.n + 1)
        for s in strata
    )
    if level < max(2 * math.exp(-ways), 1 / (PERMUTATIONS + 1)):
        return math.nan
    rng = np.random.Generator(np.random.PCG64(seed))
    parts = [_moments(s, rng) for s in strata]
    drawn = np.sum(parts, axis=0)
    own = np.array([part[2].mean() for part in parts])
    if not own.any():
        return math.nan
    free = np.array([len(s.sums) - 1.0 for s in strata])
    # the square of a variance from few is too large by 1 + 2 / free
    freedom = max(1.0, float(own.sum() ** 2 / (own**2 / (free + 2)).sum()) - 1)
    spread = np.sqrt(freedom / rng.chisquare(freedom, _SAMPLES) * (freedom + 1) / freedom)
    drawn[[0, 3]] *= spread
    drawn[2] *= spread**2
    reached = _critical([(s.apart, s.n) for s in strata], level) ** 2

    def found(difference: float) -> float:
        statistic = drawn[0] + difference * drawn[1]
        variance = drawn[2] + difference * drawn[3] + difference**2 * drawn[4]
        return float((statistic**2 >= reached * variance).mean())

    highest = float(np.sqrt(drawn[2].mean()) / drawn[1].mean())
    lowest, limit = 0.0, highest * 1e6
    while found(highest) < power:
        lowest, highest = highest, 2 * highest
        if highest > limit:
            return math.nan
    for _ in range(30):
        middle = (lowest + highest) / 2
        lowest, highest = (lowest, middle) if found(middle) >= power else (middle, highest)
    return highest


@dataclass(frozen=True, slots=True)
class _Stratum:
    """The clusters of a stratum, [c], the first side's n first: how many values each has, how far
    they exceed the mean of their own side of the stratum, and how far they exceed that of the
    stratum once the sides' common difference is taken off."""

    n: int
    counts: Values
    sums: Values
    apart: Values


def _sides(first: Drawn, second: Drawn) -> list[_Stratum]:
    read = _shared(first, second)
    weights = [a * (b / (a + b)) for _, c, n in read for a, b in [(c[:n].sum(), c[n:].sum())]]
    apart = [s[:n].sum() / c[:n].sum() - s[n:].sum() / c[n:].sum() for s, c, n in read]
    difference = float(np.dot(weights, apart) / np.sum(weights)) if read else 0.0
    found = []
    for sums, counts, n in read:
        even = sums.copy()
        even[:n] -= difference * counts[:n]
        even -= counts * (even.sum() / counts.sum())
        own = sums.copy()
        for side in (slice(0, n), slice(n, None)):
            own[side] -= counts[side] * (sums[side].sum() / counts[side].sum())
        found.append(_Stratum(n, counts, own, even))
    return found


def _moments(stratum: _Stratum, rng: np.random.Generator) -> Values:
    """The moments of samples drawn like the clusters of a stratum, [5, samples]: the statistic is
    the first row plus the difference times the second; its permutation variance is the third plus
    the difference times the fourth plus its square times the fifth."""
    n, size = stratum.n, len(stratum.sums)
    if min(n, size - n) > 1:
        parts = []
        for start, stop in ((0, n), (n, size)):
            own = rng.integers(start, stop, (_SAMPLES, stop - start))
            parts.append((own, np.full(own.shape, math.sqrt((stop - start) / (stop - start - 1)))))
        places, scale = (np.concatenate(x, axis=1) for x in zip(*parts, strict=True))
        sums = stratum.sums[places] * scale
    else:
        places = rng.permuted(np.tile(np.arange(size), (_SAMPLES, 1)), axis=1)
        sums = stratum.apart[places]
    counts = stratum.counts[places]
    total, own = counts.sum(axis=1), counts[:, :n].sum(axis=1)
    sums -= counts * (sums.sum(axis=1) / total)[:, None]
    raised = -counts * (own / total)[:, None]
    raised[:, :n] += counts[:, :n]
    share = n * (size - n) / (size * (size - 1))
    return np.array(
        [
            sums[:, :n].sum(axis=1),
            raised[:, :n].sum(axis=1),
            share * (sums**2).sum(axis=1),
            2 * share * (sums * raised).sum(axis=1),
            share * (raised**2).sum(axis=1),
        ]
    )


def _critical(strata: Sequence[tuple[Values, int]], level: float) -> float:
    """How many standard deviations from 0 the permutation distribution's two tails begin that
    together hold this level: those of the symmetric Pearson distribution (types II and VII) with
    its kurtosis, which is exact for the sum of n of N values drawn without replacement."""
    from scipy.stats import beta, norm, t

    variance = fourth = 0.0
    for e, n in strata:
        size = len(e)
        p = np.cumprod([(n - k) / (size - k) if size > k else 0.0 for k in range(4)])
        two, four = float((e**2).sum()), float((e**4).sum())
        own = n * (size - n) / (size * (size - 1)) * two
        moment = (
            p[0] * four + p[1] * (3 * two**2 - 7 * four) + 6 * p[2] * (2 * four - two**2)
            + 3 * p[3] * (two**2 - 2 * four)
        )  # fmt: skip
        variance += own
        fourth += moment - 3 * own**2
    excess = fourth / variance**2 if variance else 0.0
    if excess < -1e-3:  # Z^2 / m is Beta(1/2, (m - 1) / 2), of kurtosis 3 m / (m + 2)
        m = max(1.0 + 1e-9, 2 * (3 + excess) / -excess)
        return math.sqrt(m * float(beta.isf(level, 0.5, (m - 1) / 2)))
    if excess > 1e-3:
        m = 4 + 6 / excess
        return float(t.isf(level / 2, m)) * math.sqrt((m - 2) / m)
    return float(norm.isf(level / 2))


def equivalence_p(difference: float, error: float, margin: float, freedom: float) -> float:
    """The p-value of two one-sided t-tests (Schuirmann 1987): small if the true difference lies
    between -margin and margin. `error` is the standard error, `freedom` its degrees of freedom
    (infinite: normal). NaN if they are undefined."""
    from scipy.stats import norm, t

    if math.isnan(difference) or math.isnan(error) or freedom <= 0:
        return math.nan
    if error == 0:
        return 0.0 if abs(difference) < margin else 1.0
    above = (margin - abs(difference)) / error
    return float(norm.sf(above) if math.isinf(freedom) else t.sf(above, freedom))


def rank_probabilities(replicates: Mapping[str, Values]) -> dict[str, list[float]]:
    """The probability of each rank (1 is the highest), [k], of each of k figures, given the values
    of each over the same resamples, [draws]: the share of resamples in which it has that rank. Ties
    share their ranks."""
    values = np.array(list(replicates.values()))
    k = len(values)
    above = (values[None, :, :] > values[:, None, :]).sum(axis=1)
    tied = (values[None, :, :] == values[:, None, :]).sum(axis=1)
    found = {}
    for n, name in enumerate(replicates):
        shares = [((above[n] <= rank) & (rank < above[n] + tied[n])) / tied[n] for rank in range(k)]
        found[name] = [float(share.mean()) for share in shares]
    return found


LEVEL, POWER = 0.05, 0.8
_MOST_OTHERS = 30  # groups; the mean of more is hardly more precise


@dataclass(frozen=True, slots=True)
class Spread:
    """How regard varies among the statements of one kind of prompt: its variance, the share of it
    that statements of one prompt have in common, and how many of the wanted answers arrive and make
    sense."""

    variance: float
    shared: float
    filled: float


PLANNED: Mapping[str, Spread] = {
    "initialise": Spread(0.41, 0.19, 0.91),
    "predicate": Spread(0.44, 0.12, 0.91),
    "object": Spread(0.38, 0.48, 0.65),
}
"""Regard by strategy in the crawl of the demo (SmolLM2-135M, ten groups, the prompts `sentences` as
they are): 548, 1,168 and 310 statements that make sense, of 600, 1,280 and 480 answers that were
wanted. Variances and shares are by one-way analysis of variance over prompts: of the initialisation
the means over its five predicates, of "object" over the prompts that ask for one predicate in a
round, which count as one."""


@dataclass(frozen=True, slots=True)
class Asked:
    """The prompts of one kind that a crawl asks about a group: the strategy whose spread they have,
    how many there are, and how often each is answered."""

    strategy: str
    prompts: int
    answers: int


def planned(asked: Mapping[Hashable, Asked], groups: int) -> float:
    """The smallest difference in mean regard between one of this many groups and all others that
    their test would find in 80% of such crawls (`kgbias.compare.families`), at a level that the
    groups share; for several groups by that test alone, provided that the test of all together
    finds one too. NaN for fewer than two groups; infinite if no difference would be found that
    often."""
    if groups < 2:
        return math.nan
    tests = 1 if groups == 2 else groups
    others = Drawn.joined([_prompts(asked)] * min(groups - 1, _MOST_OTHERS))
    return detectable(_prompts(asked), others, level=LEVEL / tests, power=POWER)


def _prompts(asked: Mapping[Hashable, Asked]) -> Drawn:
    """The prompts of a group, with sums of values spread as planned."""
    strata: list[Hashable] = []
    sums: list[Values] = []
    counts: list[Values] = []
    for kind, own in asked.items():
        spread = PLANNED.get(own.strategy, PLANNED["predicate"])  # others: the nearest known
        size = own.answers * spread.filled
        common, alone = spread.shared * spread.variance, (1 - spread.shared) * spread.variance
        deviation = math.sqrt(size**2 * common + size * alone)
        strata += [kind] * own.prompts
        sums.append(_apart(own.prompts) * deviation)
        counts.append(np.full(own.prompts, size))
    return Drawn(strata, np.concatenate(sums), np.concatenate(counts))


def _apart(n: int) -> Values:
    """The given number of normally spaced values with mean 0 and variance 1; for one, 1."""
    if n == 1:
        return np.ones(1)
    normal = NormalDist()
    found = np.array([normal.inv_cdf((place + 0.5) / n) for place in range(n)])
    return np.asarray(found / found.std(ddof=1))
