"""Two samples that were drawn in the same strata: permutation and equivalence tests.

A stratum is what both sides share: a statement that two models were probed with, or a kind of
prompt that two crawls asked. In a stratum of one value on each side the test is the paired one (the
signs of the differences are flipped).
"""

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from kgbias.errors import MissingExtra
from kgbias.statistics import Sample, Values
from kgbias.units import Units

PERMUTATIONS = 19_999
_EXACT = 14  # pairs, up to which all signs are listed
_CHUNK = 4_000_000


@dataclass(frozen=True, slots=True)
class Drawn:
    """One side: of each cluster its stratum, the sum of its values, and how many they are; [c]."""

    strata: Sequence[Hashable]
    sums: Values
    counts: Values

    @classmethod
    def of(cls, sample: Sample, strata: Sequence[Hashable] | None = None) -> "Drawn | None":
        """The clusters of a sample, each in its stratum, which `strata` names (None: by number);
        None where it is not known how the sample was drawn."""
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


def permutation_p(
    first: Drawn, second: Drawn, *, permutations: int = PERMUTATIONS, seed: int = 0
) -> float:
    """The two-sided p-value of a difference of means: the share of ways of exchanging clusters
    between the sides, within each stratum, in which the difference is at least as large; the
    observed one is among them, so p is never 0 (Phipson and Smyth 2010). Up to 14 pairs all are
    listed. NaN where no stratum has clusters of both sides.

    The statistic is the sum over the first side's clusters of what their values exceed the mean of
    their stratum by.
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


def _exceedances(first: Drawn, second: Drawn) -> list[tuple[Values, int]]:
    """For each stratum of both sides what the values of each cluster exceed the stratum's mean by,
    the first side's clusters first, and how many those are."""
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
            strata.append((sums - counts * (sums.sum() / counts.sum()), len(own)))
    return strata


def swapped_p(
    first: Units, second: Units, *, permutations: int = PERMUTATIONS, seed: int = 0
) -> float:
    """The two-sided p-value of a difference between a figure of two models over the same units: the
    share of ways of exchanging the models, unit by unit, in which the difference is at least as
    large; the observed one is among them. Up to 14 units that differ all are listed. NaN where the
    figure is not defined. For a mean this is the test of `permutation_p` on pairs."""
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


def equivalence_p(difference: float, error: float, margin: float, freedom: float) -> float:
    """The p-value of two one-sided t-tests (Schuirmann 1987): small where the true difference lies
    between -margin and margin. `error` is the standard error, `freedom` its degrees of freedom
    (infinite: normal). NaN where they are not defined."""
    if math.isnan(difference) or math.isnan(error) or freedom <= 0:
        return math.nan
    if error == 0:
        return 0.0 if abs(difference) < margin else 1.0
    try:
        from scipy.stats import norm, t
    except ModuleNotFoundError as missing:
        raise MissingExtra("scipy", extra="stats") from missing
    above = (margin - abs(difference)) / error
    return float(norm.sf(above) if math.isinf(freedom) else t.sf(above, freedom))


def rank_probabilities(replicates: Mapping[str, Values]) -> dict[str, list[float]]:
    """The probability of each rank (1 is the highest), [k], of each of k figures, given each one's
    values over the same resamples, [draws]: the share of the resamples in which it has that rank.
    Ties share their ranks."""
    values = np.array(list(replicates.values()))
    k = len(values)
    above = (values[None, :, :] > values[:, None, :]).sum(axis=1)
    tied = (values[None, :, :] == values[:, None, :]).sum(axis=1)
    found = {}
    for n, name in enumerate(replicates):
        shares = [((above[n] <= rank) & (rank < above[n] + tied[n])) / tied[n] for rank in range(k)]
        found[name] = [float(share.mean()) for share in shares]
    return found
