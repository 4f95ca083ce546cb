"""Simulated worlds, over which a share is known: a test errs at its level, an interval holds.

`make test` and `make test-all` try a few worlds, the same each time, which shows that the code runs
and errs no more than by much. `make levels` tries forty times as many, other ones each day, and
prints each share with its Monte Carlo interval.
"""

from collections.abc import Iterator
from datetime import date
from zlib import crc32

import numpy as np
from scipy.stats import beta

# How often a share that is as it should be may fail its check. The few worlds of the suite are
# always the same, so that it fails always or never; those of `make levels` are new each day.
SUITE_RISK = 0.01
LEVELS_RISK = 1e-4


class Simulation:
    """The worlds of one test. `times` of 1 are the suite's own."""

    def __init__(self, test: str, times: int) -> None:
        self.times = times
        self._name = test.partition("::")[2]
        self._seed = [crc32(test.encode()), date.today().toordinal() if times > 1 else 1]

    def worlds(self, count: int) -> Iterator[np.random.Generator]:
        """So many streams of random numbers, or `times` as many."""
        for stream in np.random.SeedSequence(self._seed).spawn(count * self.times):
            yield np.random.default_rng(stream)

    def check(self, what: str, hits: int, trials: int, low: float, high: float) -> None:
        """Fails if `hits` of `trials` says that the share is not between `low` and `high`."""
        risk = LEVELS_RISK if self.times > 1 else SUITE_RISK
        share = hits / trials
        lower, upper = _clopper_pearson(hits, trials, 0.05)
        if self.times > 1:
            print(f"\n  {self._name}: {what} {share:.3f} [{lower:.3f}, {upper:.3f}] of {trials}")
        lower, upper = _clopper_pearson(hits, trials, risk)
        expected = f"{what}: {hits} of {trials}, where {low} to {high} is right"
        assert lower <= high and low <= upper, expected


def _clopper_pearson(hits: int, trials: int, risk: float) -> tuple[float, float]:
    low = beta.ppf(risk / 2, hits, trials - hits + 1) if hits else 0.0
    high = beta.isf(risk / 2, hits + 1, trials - hits) if hits < trials else 1.0
    return float(low), float(high)
