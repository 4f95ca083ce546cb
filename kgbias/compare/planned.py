"""What difference a crawl could show, before it is made.

The prompts of a crawl are known before it asks: how many of each kind, and how often each is
answered. What is not known is how far what is said varies, and how much of that answers to one
prompt share. These are taken as they were in crawls of SmolLM2-135M (`PLANNED`); a prompt then
stands for the sum of its values, and the permutation test that decides of a difference is asked
what it would find among such prompts (`kgbias.compare.paired.detectable`).
"""

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from kgbias.compare.paired import Drawn, detectable
from kgbias.stats.inference import Values

LEVEL, POWER = 0.05, 0.8
_MOST_OTHERS = 30  # groups; the mean of more is hardly known better


@dataclass(frozen=True, slots=True)
class Spread:
    """How regard varies among the statements of prompts of a kind: its variance, the share of it
    that statements of one prompt have in common, and how many of the answers that are wanted come
    and make sense."""

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
    """The prompts of one kind that a crawl asks of a group: the strategy whose spread they have,
    how many they are, and how often each is answered."""

    strategy: str
    prompts: int
    answers: int


def planned(asked: Mapping[Hashable, Asked], groups: int) -> float:
    """The smallest difference in mean regard between one of so many groups and all others that
    their test would find in 80% of crawls that ask so (`kgbias.compare.families`), at a level that
    is shared by the groups; of several groups by that test alone, where the test of all together
    lets it speak. NaN for fewer than two groups; infinite where no difference would be
    found as often."""
    if groups < 2:
        return math.nan
    tests = 1 if groups == 2 else groups
    others = Drawn.joined([_prompts(asked)] * min(groups - 1, _MOST_OTHERS))
    return detectable(_prompts(asked), others, level=LEVEL / tests, power=POWER)


def _prompts(asked: Mapping[Hashable, Asked]) -> Drawn:
    """The prompts of a group, with sums of values as far apart as they are planned to be."""
    strata: list[Hashable] = []
    sums: list[Values] = []
    counts: list[Values] = []
    for kind, own in asked.items():
        spread = PLANNED.get(own.strategy, PLANNED["predicate"])  # of another, the nearest known
        size = own.answers * spread.filled
        common, alone = spread.shared * spread.variance, (1 - spread.shared) * spread.variance
        deviation = math.sqrt(size**2 * common + size * alone)
        strata += [kind] * own.prompts
        sums.append(_apart(own.prompts) * deviation)
        counts.append(np.full(own.prompts, size))
    return Drawn(strata, np.concatenate(sums), np.concatenate(counts))


def _apart(n: int) -> Values:
    """So many numbers of mean 0 and variance 1 that lie as normal ones do; of one, 1."""
    if n == 1:
        return np.ones(1)
    normal = NormalDist()
    found = np.array([normal.inv_cdf((place + 0.5) / n) for place in range(n)])
    return np.asarray(found / found.std(ddof=1))
