"""How much of what a model says about a group the crawl has seen, and when to stop.

In the terms of ecology, the statements about a group are a sample and its distinct triples are the
species. The estimators use how many triples were seen once or twice, so they need no model of the
answers; but they take the prompts as given. The examples in the prompts change from round to round,
so the figures describe what the model says when it is asked *in this way*, and are a lower bound on
all that it could say.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from kgbias.graph.types import Generation


def good_turing_coverage(counts: Iterable[int]) -> float:
    """The estimated probability, in [0, 1], that the next statement is one that was seen before:
    1 - f1 / n, for n statements of which f1 were said only once. NaN without any statement.

    `counts` says how often each distinct statement was said.
    Source: Good 1953, "The population frequencies of species and the estimation of population
    parameters", Biometrika 40 (there with credit to Turing).
    """
    seen = Counter(counts)
    n = sum(count * number for count, number in seen.items())
    return 1 - seen[1] / n if n else float("nan")


def chao1(counts: Iterable[int]) -> float:
    """A lower bound on the number of distinct statements, seen or not, at least as many as were
    seen: S + (n-1)/n * f1^2 / (2 f2), and S + (n-1)/n * f1 (f1-1) / 2 where f2 is 0; f1 and f2 of
    the S distinct statements were said once and twice.

    Source: Chao 1984, "Nonparametric estimation of the number of classes in a population",
    Scandinavian Journal of Statistics 11; with the factor (n-1)/n and the bias-corrected form for
    f2 = 0 as in Chao and Chiu 2016, "Species richness: estimation and comparison".
    """
    seen = Counter(counts)
    n = sum(count * number for count, number in seen.items())
    if not n:
        return 0.0
    once, twice = seen[1], seen[2]
    unseen = once**2 / (2 * twice) if twice else once * (once - 1) / 2
    return seen.total() + (n - 1) / n * unseen


@dataclass
class GroupProgress:
    """What came of one group in one arm: how its prompts ended, repeated attempts included, and how
    often each triple was said."""

    arm: str
    group: str
    outcomes: Counter[str] = field(default_factory=Counter)
    triples: Counter[str] = field(default_factory=Counter)

    def add(self, generation: Generation) -> None:
        self.outcomes[generation.outcome] += 1
        if generation.triple is not None:
            self.triples[generation.triple.id] += 1

    @property
    def statements(self) -> int:
        return self.triples.total()

    @property
    def distinct(self) -> int:
        return len(self.triples)

    @property
    def coverage(self) -> float:
        return good_turing_coverage(self.triples.values())

    @property
    def richness(self) -> float:
        return chao1(self.triples.values())

    def covered(self, target: float | None) -> bool:
        """Whether the coverage has reached the target; False without a target or a statement."""
        return target is not None and self.statements > 0 and self.coverage >= target


def described(board: Iterable[GroupProgress]) -> str:
    """One line: the mean and the lowest coverage of the groups that have statements."""
    spoken = [g for g in board if g.statements]
    if not spoken:
        return "no statement yet"
    lowest = min(spoken, key=lambda g: (g.coverage, g.group))
    mean = sum(g.coverage for g in spoken) / len(spoken)
    return (
        f"coverage {mean:.0%} on average, lowest {lowest.coverage:.0%} ({lowest.group}: "
        f"{lowest.distinct} statements seen, of an estimated {lowest.richness:.0f} or more)"
    )
