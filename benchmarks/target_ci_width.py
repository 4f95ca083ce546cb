"""Whether intervals still keep their promise if a crawl ends once they are narrow enough.

    python benchmarks/target_ci_width.py [--crawls 1000] [--seed 0]

Each simulated crawl asks about a group as the default prompts do (an initialisation with five
predicates, then rounds of prompts, with four answers to each, some of which yield nothing), until
the interval of its mean, as `kgbias.crawl.stopping` checks it after each round, is narrow enough.
The values are regard, -1, 0 or 1, or a toxicity, in [0, 1] and skewed; answers to one prompt depend
on each other, and each prompt has its own mean. Coverage is that of the mean which as many prompts
of each kind would have in the long run. It is printed beside the coverage of crawls with a fixed
number of rounds, the median one. Exit code 1 if a coverage is below --target by more than two of
its Monte Carlo errors.
"""

import argparse
import math
import statistics
import sys
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from kgbias.crawl.config import TargetWidth
from kgbias.crawl.stopping import mean_interval
from kgbias.stats.designs import Design
from kgbias.stats.inference import Sample

ANSWERS, LOST = 4, 0.15
INITIAL, SAMPLES, FREE, GIVEN = 5, 3, 8, 3
SHARED = 0.2  # the share of the variance that answers to one prompt have in common
MAX_ROUNDS = 50
NORMAL = NormalDist()
# The means of the initial predicates, of prompts without a predicate, and of those with one.
MEANS = (*(0.6, 0.0, -0.2, 0.1, -0.1), 0.0, -0.3)


@dataclass(frozen=True)
class ValueKind:
    """How values follow from a latent normal variable, and their mean in the long run."""

    name: str
    bounds: tuple[float, float]

    def values(self, latent: np.ndarray) -> np.ndarray:
        if self.name == "regard":
            return (latent > 0.8).astype(float) - (latent < -0.7)
        return np.array([NORMAL.cdf(1.2 * x - 1.6) for x in latent])

    def mean(self, shift: float) -> float:
        if self.name == "regard":
            return NORMAL.cdf(shift - 0.8) - NORMAL.cdf(-0.7 - shift)
        return NORMAL.cdf((1.2 * shift - 1.6) / math.sqrt(1 + 1.2**2))


KINDS = {"regard": ValueKind("regard", (-1.0, 1.0)), "toxicity": ValueKind("toxicity", (0.0, 1.0))}


class SimulatedCrawl:
    """A simulated crawl of one group."""

    def __init__(self, kind: ValueKind, rng: np.random.Generator) -> None:
        self.kind, self._rng = kind, rng
        self._strata: list[int] = []  # for each prompt
        self._clusters: list[int] = []  # for each place
        self._values: list[float] = []  # NaN for a place without a value
        for stratum in range(INITIAL):
            self._ask(stratum, SAMPLES)

    def round(self) -> None:
        self._ask(INITIAL, FREE)
        self._ask(INITIAL + 1, GIVEN)

    def _ask(self, stratum: int, prompts: int) -> None:
        for _ in range(prompts):
            shared = MEANS[stratum] + self._rng.normal(0, math.sqrt(SHARED))
            latent = shared + self._rng.normal(0, math.sqrt(1 - SHARED), ANSWERS)
            values = self.kind.values(latent)
            values[self._rng.random(ANSWERS) < LOST] = math.nan
            self._clusters += [len(self._strata)] * ANSWERS
            self._strata.append(stratum)
            self._values += values.tolist()

    @property
    def sample(self) -> Sample:
        values = np.array(self._values)
        places = np.flatnonzero(~np.isnan(values))
        design = Design(np.array(self._clusters), np.array(self._strata))
        ones = np.ones(len(places), dtype=np.int64)
        return Sample(values[places], ones, design, places, self.kind.bounds)

    @property
    def truth(self) -> float:
        """The long-run mean of as many statements in each stratum."""
        values = np.array(self._values)
        strata = np.array(self._strata)[np.array(self._clusters)][~np.isnan(values)]
        return float(np.mean([self.kind.mean(MEANS[s]) for s in strata]))


def interval_holds(crawl: SimulatedCrawl) -> bool:
    estimate = mean_interval(crawl.sample)
    return estimate is not None and estimate.low <= crawl.truth <= estimate.high


def is_reached(width: TargetWidth, sample: Sample) -> bool:
    estimate = mean_interval(sample)
    return estimate is not None and estimate.high - estimate.low <= width.width


def crawl_until(width: TargetWidth, crawls: int, seed: int) -> tuple[list[int], list[bool]]:
    rounds, hits = [], []
    for number in range(crawls):
        crawl = SimulatedCrawl(KINDS[width.measure], np.random.default_rng([seed, number]))
        round_count = 0
        while not is_reached(width, crawl.sample) and round_count < MAX_ROUNDS:
            crawl.round()
            round_count += 1
        rounds.append(round_count)
        hits.append(interval_holds(crawl))
    return rounds, hits


def crawl_fixed(kind: ValueKind, rounds: int, crawls: int, seed: int) -> list[bool]:
    hits = []
    for number in range(crawls):
        crawl = SimulatedCrawl(kind, np.random.default_rng([seed, 1, number]))
        for _ in range(rounds):
            crawl.round()
        hits.append(interval_holds(crawl))
    return hits


def coverage(hits: list[bool]) -> tuple[float, float]:
    share = sum(hits) / len(hits)
    return share, math.sqrt(share * (1 - share) / len(hits))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--crawls", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--target", type=float, default=0.93)
    options = parser.parse_args()
    is_short = False
    for limit in ("regard=0.4", "regard=0.3", "regard=0.2", "toxicity=0.12", "toxicity=0.06"):
        width = TargetWidth.parse(limit)
        rounds, hits = crawl_until(width, options.crawls, options.seed)
        share, error = coverage(hits)
        median = round(statistics.median(rounds))
        fixed_share, fixed_error = coverage(
            crawl_fixed(KINDS[width.measure], median, options.crawls, options.seed)
        )
        is_short = is_short or share < options.target - 2 * error
        print(
            f"{limit:<14} {min(rounds)} to {max(rounds)} rounds, median {median}: coverage "
            f"{share:.3f} +- {error:.3f}; always {median} rounds: {fixed_share:.3f} +- "
            f"{fixed_error:.3f}",
            flush=True,
        )
    sys.exit(is_short)


if __name__ == "__main__":
    main()
