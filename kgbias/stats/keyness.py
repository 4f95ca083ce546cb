"""Which features go with which group: keyness by dealing whole prompts anew.

A prompt and its answers either have a feature (a word, a topic) or not. For a group with y of n
prompts that have it, the others with y' of n', and a prior worth `PRIOR` prompts that have it as
often as all prompts do, a = PRIOR (y + y') / (n + n'), features are ranked by the log-odds with an
informative Dirichlet prior (Monroe, Colaresi and Quinn 2008, equations 15 to 22),

    log (y + a)/(n + PRIOR - y - a) - log (y' + a)/(n' + PRIOR - y' - a).

They are tested without the prior. If groups do not differ, a prompt could just as well have
belonged to another group that was asked in the same way, in the same block. Dealt anew within their
blocks, the number of a group's prompts with the feature is a sum of hypergeometric variables, whose
distribution is exact. The groups together are tested by the smallest corrected p-value among them,
against that of whole tables dealt anew.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from kgbias.stats.estimate import Estimate
from kgbias.stats.inference import proportion

PRIOR = 10.0  # prompts
LEVEL = 0.05
DEALS = 999

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False, slots=True)
class FeatureTable:
    """Which prompts have which features.

    Attributes:
        groups: how many groups there are.
        group: [n], the number of each prompt's group.
        block: [n], the number of its block: prompts of one block could be dealt to any group that
            has one there.
        features: how many features there are.
        rows, columns: [m], the prompt and the feature of each pair that goes together, once each.
    """

    groups: int
    group: Ints
    block: Ints
    features: int
    rows: Ints
    columns: Ints

    @property
    def sizes(self) -> Ints:
        """How many prompts each group has, [g]."""
        return np.bincount(self.group, minlength=self.groups)

    def counts(self, group: Ints) -> Ints:
        """How many prompts of each group have each feature, [g, f], with prompts dealt so."""
        cells = group[self.rows] * self.features + self.columns
        found = np.bincount(cells, minlength=self.groups * self.features)
        return found.reshape(self.groups, self.features)


@dataclass(frozen=True, eq=False, slots=True)
class Keyness:
    """How features go with groups.

    Attributes:
        counts: [g, f], prompts of the group that have the feature.
        sizes: [g], prompts of the group.
        log_odds: [g, f], shrunken by the prior; above 0, the group has the feature more often.
        p: [g, f], exact and two-sided: twice the smaller tail, at most 1.
        q: [g, f], the same, corrected over the features of the group (Benjamini and Hochberg 1995).
        any: the p-value of no group differing from the others in any feature.
        floor: the mean number of q-values of at most 0.05 in tables dealt anew.
    """

    counts: Ints
    sizes: Ints
    log_odds: Floats
    p: Floats
    q: Floats
    any: float
    floor: float

    def difference(self, group: int, feature: int) -> Estimate:
        """The share of the group's prompts that have the feature, less the share of the others',
        with Newcombe's hybrid score interval (1998, method 10)."""
        own, of = int(self.counts[group, feature]), int(self.sizes[group])
        others = int(self.counts[:, feature].sum()) - own
        of_others = int(self.sizes.sum()) - of
        first, second = proportion(own, of), proportion(others, of_others)
        value = first.value - second.value
        below = sqrt((first.value - first.low) ** 2 + (second.high - second.value) ** 2)
        above = sqrt((first.high - first.value) ** 2 + (second.value - second.low) ** 2)
        return Estimate(value, value - below, value + above, of + of_others)


def measure_keyness(table: FeatureTable, *, deals: int = DEALS, seed: int = 0) -> Keyness:
    """Test each feature of each group against the other groups."""
    counts, sizes = table.counts(table.group), table.sizes
    null = _Null(table)
    p = null.p_values(counts)
    q = _corrected(p)
    rng = np.random.Generator(np.random.PCG64(seed))
    least, reached, beyond = float(q.min(initial=1.0)), 0, 0
    for _ in range(deals):
        dealt = _corrected(null.p_values(table.counts(_deal(table, rng))))
        reached += float(dealt.min(initial=1.0)) <= least + 1e-12
        beyond += int((dealt <= LEVEL).sum())
    floor = beyond / deals if deals else float("nan")
    # The smallest corrected p of a group is itself a p-value (Simes 1986): a bound where no deal
    # comes near.
    any = min((reached + 1) / (deals + 1), table.groups * least)
    return Keyness(counts, sizes, _log_odds(counts, sizes), p, q, any, floor)


def _log_odds(counts: Ints, sizes: Ints) -> Floats:
    own, of = counts.astype(np.float64), sizes[:, None].astype(np.float64)
    others, of_others = own.sum(axis=0) - own, of.sum() - of
    prior = PRIOR * (own + others) / (of + of_others)
    first = (own + prior) / (of + PRIOR - own - prior)
    second = (others + prior) / (of_others + PRIOR - others - prior)
    with np.errstate(divide="ignore", invalid="ignore"):  # a feature that every prompt has
        found = np.log(first) - np.log(second)
    return np.asarray(np.nan_to_num(found, nan=0.0), dtype=np.float64)


def _deal(table: FeatureTable, rng: np.random.Generator) -> Ints:
    """The groups of the prompts, dealt anew within each block."""
    keys = rng.random(len(table.group))
    to = np.lexsort((table.group, table.block))
    dealt = np.empty_like(table.group)
    dealt[np.lexsort((keys, table.block))] = table.group[to]
    return dealt


def _corrected(p: Floats) -> Floats:
    """Benjamini and Hochberg's correction of each row."""
    n = p.shape[1]
    if not n:
        return p
    order = np.argsort(p, axis=1)
    ranked = np.take_along_axis(p, order, axis=1) * n / np.arange(1, n + 1)
    least = np.minimum.accumulate(ranked[:, ::-1], axis=1)[:, ::-1]
    found = np.empty_like(p)
    np.put_along_axis(found, order, np.minimum(least, 1.0), axis=1)
    return found


class _Null:
    """The p-value of every count of every feature in every group: dealing within blocks leaves the
    margins, and so these distributions, as they are."""

    def __init__(self, table: FeatureTable) -> None:
        blocks = int(table.block.max(initial=-1)) + 1
        of_block = np.zeros((blocks, table.groups), dtype=np.int64)
        np.add.at(of_block, (table.block, table.group), 1)
        having = np.zeros((blocks, table.features), dtype=np.int64)
        np.add.at(having, (table.block[table.rows], table.columns), 1)
        known: dict[tuple[tuple[int, ...], ...], Floats] = {}
        parts: list[Floats] = []
        starts = np.zeros((table.groups, table.features), dtype=np.int64)
        at = 0
        for f in range(table.features):
            there = np.flatnonzero(having[:, f])
            for g in range(table.groups):
                key = tuple(
                    (int(of_block[b].sum()), int(having[b, f]), int(of_block[b, g])) for b in there
                )
                if key not in known:
                    known[key] = _p_of_counts(key)
                starts[g, f] = at
                parts.append(known[key])
                at += len(known[key])
        self._starts = starts
        self._p = np.concatenate(parts) if parts else np.zeros(0)

    def p_values(self, counts: Ints) -> Floats:
        return np.asarray(self._p[self._starts + counts], dtype=np.float64)


def _p_of_counts(blocks: Sequence[tuple[int, ...]]) -> Floats:
    """Two-sided p-values of 0, 1 ... prompts with the feature, from the size of each block, the
    prompts there that have it, and those of the group."""
    chances = np.ones(1)
    for size, having, own in blocks:
        chances = np.convolve(chances, _hypergeometric(size, having, own))
    below, above = np.cumsum(chances), np.cumsum(chances[::-1])[::-1]
    return np.asarray(np.minimum(1.0, 2 * np.minimum(below, above)), dtype=np.float64)


@cache
def _hypergeometric(size: int, having: int, own: int) -> Floats:
    """The chances of 0 ... `having` among `own` of `size`, by their ratios."""
    low, high = max(0, having + own - size), min(having, own)
    k = np.arange(low, high, dtype=np.float64)
    ratios = np.log((having - k) * (own - k)) - np.log((k + 1) * (size - having - own + k + 1))
    logs = np.concatenate([[0.0], np.cumsum(ratios)])
    chances = np.exp(logs - logs.max())
    found = np.zeros(having + 1)
    found[low : high + 1] = chances / chances.sum()
    return found
