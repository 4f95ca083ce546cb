"""When a crawl has asked enough: how much of what the model says has been seen (`until_coverage`),
or how well a group's mean is known (`until_width`).

Coverage: in the terms of ecology, the statements about a group are a sample and its distinct
triples are the species. The estimators use how many triples were seen once or twice, so they need
no model of the answers; but they take the prompts as given. The examples in the prompts change from
round to round, so the figures describe what the model says when it is asked *in this way*, and are
a lower bound on all that it could say.

Width: an interval that is checked again and again until it is narrow tends, by luck, to be last
checked when it seems narrower than it is. `benchmarks/until_width.py` simulates how much coverage
this costs, and how many prompts are needed for it to cost little.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from kgbias.crawl.config import Width
from kgbias.graph.draws import Draws
from kgbias.graph.row_types import DrawRow
from kgbias.graph.types import Generation, Group, Score, TripleView
from kgbias.stats.inference import STATISTICS, Estimate, Sample, bootstrap

FEWEST_PROMPTS = 30  # of a group, before its interval is believed


def interval(sample: Sample) -> Estimate | None:
    """The mean of a sample with its interval; None if too few prompts were asked to believe it."""
    if sample.design is None or len(sample.design.strata) < FEWEST_PROMPTS:
        return None
    found = bootstrap(sample, STATISTICS["mean"])
    return found if found.has_interval else None


@dataclass(frozen=True, slots=True)
class Gauge:
    """What scores a crawl's statements between its rounds.

    Attributes:
        label: the scorers and their versions; part of the run's configuration, so a run is never
            continued with others.
        score: the score of each sentence, None for one that does not count; it must depend only on
            the sentence.
    """

    label: str
    score: Callable[[Sequence[str]], Sequence[Score | None]]


@dataclass
class Widths:
    """The crawl's statements so far, scored, and the intervals that follow, all determined by the
    answers."""

    until: Width
    gauge: Gauge
    _drawn: list[DrawRow] = field(default_factory=list)
    _said: dict[tuple[str, str], dict[str, TripleView]] = field(
        default_factory=lambda: defaultdict(dict)
    )
    _scores: dict[str, Score | None] = field(default_factory=dict)
    _narrow: set[tuple[str, str]] = field(default_factory=set)
    _widths: dict[tuple[str, str], float] = field(default_factory=dict)

    def add(self, generations: Sequence[Sequence[Generation]]) -> None:
        """Add a round's attempts."""
        for g in (g for attempts in generations for g in attempts):
            said = g.triple
            self._drawn.append(
                DrawRow(
                    g.id, g.path, g.group_id, g.arm, g.strategy, g.iteration, g.template, g.prompt,
                    said.id if said else None, said.predicate_id if said else None, g.count,
                )
            )  # fmt: skip
            if said is not None:
                self._said[g.arm, g.group_id].setdefault(
                    said.id,
                    TripleView(said.id, g.group_id, said.group, said.predicate, said.object, 1,
                               arm=g.arm),
                )  # fmt: skip
        self._look()

    def narrow(self, arm: str, group: Group) -> bool:
        """Whether the interval of a group's mean is narrow enough; once it is, it stays so."""
        return (arm, group.id) in self._narrow

    def described(self, groups: Sequence[Group]) -> str:
        """How wide the intervals are, in one line."""
        if not self._widths:
            return f"{self.until.measure}: too few prompts yet to say how wide intervals are"
        (_, group), widest = max(self._widths.items(), key=lambda own: (own[1], own[0]))
        name = next(g.name for g in groups if g.id == group)
        return (
            f"{self.until.measure}: intervals at most {widest:.2g} wide ({name}), "
            f"{len(self._narrow)} of {len(self._said)} narrow enough"
        )

    def _look(self) -> None:
        self._score()
        draws = Draws.from_rows(self._drawn)
        for key, own in self._said.items():
            if key in self._narrow:
                continue
            views = [view for view in own.values() if view.scores]
            found = interval(draws.sample(views, self.until.measure))
            if found is not None:
                self._widths[key] = found.high - found.low
                if self._widths[key] <= self.until.width:
                    self._narrow.add(key)

    def _score(self) -> None:
        """Score statements that are new."""
        new: dict[str, str] = {}
        for own in self._said.values():
            new |= {id: view.sentence for id, view in own.items() if id not in self._scores}
        self._scores |= zip(new, self.gauge.score(list(new.values())), strict=True)
        for own in self._said.values():
            for id, view in own.items():
                if (score := self._scores[id]) is not None and not view.scores:
                    own[id] = replace(view, scores={self.until.measure: score})


def good_turing_coverage(counts: Iterable[int]) -> float:
    """The estimated probability, in [0, 1], that the next statement was seen before: 1 - f1 / n,
    for n statements of which f1 were said only once. NaN without statements.

    `counts` says how often each distinct statement was said.
    Source: Good 1953, "The population frequencies of species and the estimation of population
    parameters", Biometrika 40 (there with credit to Turing).
    """
    seen = Counter(counts)
    n = sum(count * number for count, number in seen.items())
    return 1 - seen[1] / n if n else float("nan")


def chao1(counts: Iterable[int]) -> float:
    """A lower bound on the number of distinct statements, seen or not, never below the number seen:
    S + (n-1)/n * f1^2 / (2 f2), or S + (n-1)/n * f1 (f1-1) / 2 if f2 is 0; f1 and f2 of the S
    distinct statements were said once and twice.

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
    """The progress of one group in one arm: how its prompts ended, repeated attempts included, and
    how often each triple was said."""

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
    """The mean and lowest coverage of the groups with statements, in one line."""
    spoken = [g for g in board if g.statements]
    if not spoken:
        return "no statement yet"
    lowest = min(spoken, key=lambda g: (g.coverage, g.group))
    mean = sum(g.coverage for g in spoken) / len(spoken)
    return (
        f"coverage {mean:.0%} on average, lowest {lowest.coverage:.0%} ({lowest.group}: "
        f"{lowest.distinct} statements seen, of an estimated {lowest.richness:.0f} or more)"
    )
