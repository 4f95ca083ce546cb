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
RISK_OF_FEW = 0.01
RISK_OF_MANY = 1e-4


class Simulation:
    """The worlds of one test. `times` of 1 are the suite's own."""

    def __init__(self, test: str, times: int) -> None:
        self.times = times
        self._name = test.partition("::")[2]
        self._seed = [crc32(test.encode()), date.today().toordinal() if times > 1 else 1]

    def worlds(self, few: int) -> Iterator[np.random.Generator]:
        """So many streams of random numbers, or `times` as many."""
        for stream in np.random.SeedSequence(self._seed).spawn(few * self.times):
            yield np.random.default_rng(stream)

    def check(self, what: str, found: int, tried: int, low: float, high: float) -> None:
        """Fails if `found` of `tried` says that the share is not between `low` and `high`."""
        risk = RISK_OF_MANY if self.times > 1 else RISK_OF_FEW
        share = found / tried
        least, most = _clopper_pearson(found, tried, 0.05)
        if self.times > 1:
            print(f"\n  {self._name}: {what} {share:.3f} [{least:.3f}, {most:.3f}] of {tried}")
        least, most = _clopper_pearson(found, tried, risk)
        expected = f"{what}: {found} of {tried}, where {low} to {high} is right"
        assert least <= high and low <= most, expected


def _clopper_pearson(found: int, tried: int, risk: float) -> tuple[float, float]:
    low = beta.ppf(risk / 2, found, tried - found + 1) if found else 0.0
    high = beta.isf(risk / 2, found + 1, tried - found) if found < tried else 1.0
    return float(low), float(high)
