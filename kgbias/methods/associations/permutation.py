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

from kgbias.errors import UsageError, no_such
from kgbias.methods.associations.effect import EQUALITY_TOLERANCE, Array

Tails = Literal["one", "two"]
PermutationMethod = Literal["auto", "exact", "sampled", "normal"]

DEFAULT_SAMPLES = 99_999
_MAX_EXACT_SUMS = 1 << 25  # subset sums of one half that an exact count may list: 25 + 25 words
_CHUNK_VALUES = 4_000_000  # values shuffled at once


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
    how: PermutationMethod = "auto",
    samples: int = DEFAULT_SAMPLES,
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

    Sums that differ by less than `EQUALITY_TOLERANCE` per word count as equal, so a tie broken by
    floating point does not change the count.
    """
    for name, value, kind in (("tails", tails, Tails), ("how", how, PermutationMethod)):
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
    tolerance = EQUALITY_TOLERANCE * len(values)
    # The smallest sum that counts as "at least the observed one".
    bound = (observed if tails == "one" else abs(observed)) + (tolerance if strict else -tolerance)
    all_partitions = comb(len(values), len(x))
    is_feasible = _count_listed_sums(len(values), len(x)) <= _MAX_EXACT_SUMS
    if how == "exact" and not is_feasible:
        raise UsageError(
            f"{len(x)} + {len(y)} words are too many for an exact p-value (at most 25 + 25): "
            "use a sampled one"
        )
    if (
        how == "exact"
        or (how == "auto" and is_feasible)
        # Of most of all partitions, new ones are found ever more rarely; to count all is sooner
        # done.
        or (how == "sampled" and is_feasible and 2 * samples >= all_partitions)
    ):
        count = count_sums(values, len(x), bound)
        if tails == "two":
            # With a bound at or below 0, every partition counts once.
            count = all_partitions if bound <= 0 else count + count_sums(-values, len(x), bound)
        return PValue(count / all_partitions, "exact", tails, all_partitions, count)
    drawn_sums = _draw_sums(values, len(x), samples, seed, distinct=how != "normal")
    if how == "normal":
        return PValue(
            _normal_p_value(drawn_sums, observed, tails), "normal", tails, len(drawn_sums), -1, seed
        )
    count = int(((drawn_sums if tails == "one" else np.abs(drawn_sums)) >= bound).sum())
    # The observed partition is one of them; under `strict` it does not exceed itself.
    count += 0 if strict else 1
    return PValue(count / (len(drawn_sums) + 1), "sampled", tails, len(drawn_sums) + 1, count, seed)


def count_sums(values: Array, size: int, bound: float) -> int:
    """How many subsets of `size` of the values have a sum >= `bound`, exactly.

    Meet in the middle (Horowitz and Sahni 1974): a subset is one part from each half of the values.
    For each split of `size`, the sums of both halves are listed and sorted, and one pass counts the
    pairs that reach the bound. 25 + 25 words, 1.3e14 subsets, list 2 x 2^25 sums, at
    most 5.2 million at a time.
    """
    half = len(values) // 2
    left, right = _sums_by_size(values[:half], size), _sums_by_size(values[half:], size)
    total = 0
    for left_size in range(max(0, size - (len(values) - half)), min(half, size) + 1):
        left_sums, right_sums = (
            _combine_sums(left, left_size),
            _combine_sums(right, size - left_size),
        )
        if len(left_sums) > len(right_sums):
            left_sums, right_sums = right_sums, left_sums
        left_sums.sort()
        right_sums.sort()
        # Sorted queries hit neighbouring places, which keeps the search in the cache.
        below_counts = np.searchsorted(right_sums, bound - left_sums, side="left")
        total += len(left_sums) * len(right_sums) - int(below_counts.sum(dtype=np.int64))
    return total


def _count_listed_sums(n: int, size: int) -> int:
    """The number of subset sums that `count_sums` lists in the larger half."""
    half = n - n // 2
    return sum(comb(half, k) for k in range(min(half, size) + 1))


Quarters = tuple[list[Array], list[Array]]


def _sums_by_size(values: Array, largest: int) -> Quarters:
    """The sums of the subsets of each size, for each of two quarters."""

    def sums(quarter: Array) -> list[Array]:
        sums_by_size = [np.zeros(1)]
        for value in quarter:
            longer = [subset_sums + value for subset_sums in sums_by_size]
            sums_by_size = [
                np.concatenate(
                    [sums_by_size[k] if k < len(sums_by_size) else [], longer[k - 1] if k else []]
                )
                for k in range(min(len(sums_by_size), largest) + 1)
            ]
        return sums_by_size

    return sums(values[: len(values) // 2]), sums(values[len(values) // 2 :])


def _combine_sums(quarters: Quarters, size: int) -> Array:
    """The sums of all subsets of `size` of a half, from its quarters."""
    first_quarter, second_quarter = quarters
    return np.concatenate(
        [
            np.add.outer(first_quarter[k], second_quarter[size - k]).ravel()
            for k in range(
                max(0, size - len(second_quarter) + 1), min(size, len(first_quarter) - 1) + 1
            )
        ]
    )


def _draw_sums(values: Array, size: int, samples: int, seed: int, *, distinct: bool) -> Array:
    """The sums of `samples` random subsets of `size`; with `distinct` they differ from each other
    and from the first `size` values (the observed partition)."""
    rng = np.random.default_rng(seed)
    value_count = len(values)
    step = max(1, _CHUNK_VALUES // value_count)
    # As bits, in an eighth of the memory.
    partitions_seen = {np.packbits(np.arange(value_count) < size).tobytes()} if distinct else set()
    sums_kept: list[Array] = []
    missing = samples
    while missing:
        memberships = np.zeros((min(step, missing), value_count), dtype=bool)
        order = rng.permuted(np.tile(np.arange(value_count), (len(memberships), 1)), axis=1)[
            :, :size
        ]
        np.put_along_axis(memberships, order, True, axis=1)
        if distinct:
            keys = [row.tobytes() for row in np.packbits(memberships, axis=1)]
            # `add` returns None: a new key is remembered while it is looked up.
            is_new = [not (key in partitions_seen or partitions_seen.add(key)) for key in keys]  # type: ignore[func-returns-value]
            memberships = memberships[is_new]
        sums_kept.append(memberships @ values)
        missing -= len(memberships)
    return np.concatenate(sums_kept)


def _normal_p_value(drawn_sums: Array, observed: float, tails: Tails) -> float:
    from statistics import NormalDist

    std = float(drawn_sums.std(ddof=1)) if len(drawn_sums) > 1 else 0.0
    if std <= EQUALITY_TOLERANCE:
        return 1.0
    curve = NormalDist(float(drawn_sums.mean()), std)
    upper = curve.cdf(2 * curve.mean - observed)  # the upper tail, without 1 - cdf's cancellation
    return upper if tails == "one" else min(1.0, 2 * min(upper, curve.cdf(observed)))
