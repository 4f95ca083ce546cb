"""Permutation p-values: could the words have been divided into X and Y by chance?

Under the null hypothesis the targets' associations are exchangeable: every partition of the
n_x + n_y words into sets of these sizes is equally likely. The p-value is the share of partitions
whose statistic, mean(X_i) - mean(Y_i), is at least the observed one (Caliskan et al. 2017, with >=
as in May et al. 2019; the observed partition is one of them, so p is never 0). For sets of equal
size n this is the published statistic, sum(X_i) - sum(Y_i), divided by n; for unequal sizes, means
are the right comparison.
"""

from dataclasses import dataclass
from math import comb
from typing import Literal, get_args

import numpy as np

from kgbias.associate.effect import NOISE, Array
from kgbias.errors import UsageError, no_such

Tails = Literal["one", "two"]
How = Literal["auto", "exact", "sampled", "normal"]

SAMPLES = 99_999
_EXACT_SUMS = 1 << 25  # subset sums of one half that an exact count may list: 25 + 25 words
_CHUNK = 4_000_000  # values shuffled at once


@dataclass(frozen=True, slots=True)
class PValue:
    """A p-value and how it was computed.

    `method` is "exact" (all partitions counted), "sampled" (distinct partitions drawn, the observed
    one included in both counts), "normal" (a normal curve fitted to the drawn ones) or
    "random-effects" (CEAT). `at_least` of the `partitions` were as extreme as the observed one; -1
    if they were not counted.
    """

    value: float
    method: str
    tails: str
    partitions: int
    at_least: int
    seed: int | None = None


def permutation_test(
    x: Array,
    y: Array,
    *,
    tails: Tails = "one",
    how: How = "auto",
    samples: int = SAMPLES,
    seed: int = 0,
    strict: bool = False,
) -> PValue:
    """The permutation p-value of mean(x) - mean(y), from associations x [n_x] and y [n_y].

    `tails` "one" counts differences at least as large, "two" those at least as large in absolute
    value. `how` "auto" counts all partitions where that is feasible (up to 25 + 25 words) and
    otherwise draws `samples` of them without replacement, p = (b + 1) / (m + 1) (Phipson and Smyth
    2010). "normal" is the shortcut of Caliskan et al. (2017); it can return a p below any exact
    one. `strict` counts > instead of >= (Caliskan et al.'s formula; its p can be 0). Raises
    UsageError if an exact p-value is asked for but not feasible.

    Sums that differ by less than `NOISE` per word count as equal, so a tie broken by floating point
    does not change the count.
    """
    for name, value, kind in (("tails", tails, Tails), ("how", how, How)):
        if value not in get_args(kind):
            raise UsageError(no_such(name, value, get_args(kind)))
    if samples < 1:
        raise UsageError("a permutation test needs at least 1 sample")
    if not len(x) or not len(y):
        raise UsageError("a permutation test needs words in both sets")
    values = np.concatenate([x, y])
    values = values - values.mean()
    # With the mean at 0, the difference of the means is sum(X_i) times a positive constant.
    observed = float(values[: len(x)].sum())
    slack = NOISE * len(values)
    # The smallest sum that counts as "at least the observed one".
    bound = (observed if tails == "one" else abs(observed)) + (slack if strict else -slack)
    everything = comb(len(values), len(x))
    feasible = _listed(len(values), len(x)) <= _EXACT_SUMS
    if how == "exact" and not feasible:
        raise UsageError(
            f"{len(x)} + {len(y)} words are too many for an exact p-value (at most 25 + 25): "
            "use a sampled one"
        )
    if (
        how == "exact"
        or (how == "auto" and feasible)
        or (how == "sampled" and feasible and 2 * samples >= everything)
    ):
        count = count_sums(values, len(x), bound)
        if tails == "two":
            # With a bound at or below 0, every partition counts once.
            count = everything if bound <= 0 else count + count_sums(-values, len(x), bound)
        return PValue(count / everything, "exact", tails, everything, count)
    drawn = _draw_sums(values, len(x), samples, seed, distinct=how != "normal")
    if how == "normal":
        return PValue(_normal(drawn, observed, tails), "normal", tails, len(drawn), -1, seed)
    count = int(((drawn if tails == "one" else np.abs(drawn)) >= bound).sum())
    # The observed partition is one of them; under `strict` it does not exceed itself.
    count += 0 if strict else 1
    return PValue(count / (len(drawn) + 1), "sampled", tails, len(drawn) + 1, count, seed)


def count_sums(values: Array, size: int, bound: float) -> int:
    """How many subsets of `size` of the values have a sum >= `bound`, exactly.

    Meet in the middle (Horowitz and Sahni 1974): a subset is one part from each half of the values.
    For each split of `size`, the sums of both halves are listed and sorted, and one pass counts the
    pairs that reach the bound. 25 + 25 words, 1.3e14 subsets, list 2 x 2^25 sums, at
    most 5.2 million at a time.
    """
    half = len(values) // 2
    left, right = _by_size(values[:half], size), _by_size(values[half:], size)
    total = 0
    for part in range(max(0, size - (len(values) - half)), min(half, size) + 1):
        ours, others = _sums(left, part), _sums(right, size - part)
        if len(ours) > len(others):
            ours, others = others, ours
        ours.sort()
        others.sort()
        # Sorted queries hit neighbouring places, which keeps the search in the cache.
        below = np.searchsorted(others, bound - ours, side="left")
        total += len(ours) * len(others) - int(below.sum(dtype=np.int64))
    return total


def _listed(n: int, size: int) -> int:
    """The number of subset sums that `count_sums` lists in the larger half."""
    half = n - n // 2
    return sum(comb(half, k) for k in range(min(half, size) + 1))


Quarters = tuple[list[Array], list[Array]]


def _by_size(values: Array, largest: int) -> Quarters:
    """The sums of the subsets of each size, for each of two quarters."""

    def sums(part: Array) -> list[Array]:
        found = [np.zeros(1)]
        for value in part:
            longer = [sums + value for sums in found]
            found = [
                np.concatenate([found[k] if k < len(found) else [], longer[k - 1] if k else []])
                for k in range(min(len(found), largest) + 1)
            ]
        return found

    return sums(values[: len(values) // 2]), sums(values[len(values) // 2 :])


def _sums(quarters: Quarters, size: int) -> Array:
    """The sums of all subsets of `size` of a half, from its quarters."""
    first, second = quarters
    return np.concatenate(
        [
            np.add.outer(first[k], second[size - k]).ravel()
            for k in range(max(0, size - len(second) + 1), min(size, len(first) - 1) + 1)
        ]
    )


def _draw_sums(values: Array, size: int, samples: int, seed: int, *, distinct: bool) -> Array:
    """The sums of `samples` random subsets of `size`; with `distinct` they differ from each other
    and from the first `size` values (the observed partition)."""
    rng = np.random.default_rng(seed)
    n = len(values)
    step = max(1, _CHUNK // n)
    seen = {np.packbits(np.arange(n) < size).tobytes()} if distinct else set()
    kept: list[Array] = []
    missing = samples
    while missing:
        chosen = np.zeros((min(step, missing), n), dtype=bool)
        order = rng.permuted(np.tile(np.arange(n), (len(chosen), 1)), axis=1)[:, :size]
        np.put_along_axis(chosen, order, True, axis=1)
        if distinct:
            keys = [row.tobytes() for row in np.packbits(chosen, axis=1)]
            new = [not (key in seen or seen.add(key)) for key in keys]  # type: ignore[func-returns-value]
            chosen = chosen[new]
        kept.append(chosen @ values)
        missing -= len(chosen)
    return np.concatenate(kept)


def _normal(drawn: Array, observed: float, tails: Tails) -> float:
    from statistics import NormalDist

    std = float(drawn.std(ddof=1)) if len(drawn) > 1 else 0.0
    if std <= NOISE:
        return 1.0
    curve = NormalDist(float(drawn.mean()), std)
    upper = curve.cdf(2 * curve.mean - observed)  # the upper tail, without 1 - cdf's cancellation
    return upper if tails == "one" else min(1.0, 2 * min(upper, curve.cdf(observed)))
