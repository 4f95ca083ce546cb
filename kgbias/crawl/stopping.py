"""When a crawl has asked enough: how much of what the model says has been seen (`target_coverage`),
or how well a group's mean is known (`target_ci_width`).

Coverage: in the terms of ecology, the statements about a group are a sample and its distinct
triples are the species. The estimators use how many triples were seen once or twice, so they need
no model of the answers; but they take the prompts as given. The examples in the prompts change from
round to round, so the figures describe what the model says when it is asked *in this way*, and are
a lower bound on all that it could say.

Width: an interval that is checked again and again until it is narrow tends, by luck, to be last
checked when it seems narrower than it is. `benchmarks/target_ci_width.py` simulates how much
coverage this costs, and how many prompts are needed for it to cost little.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from kgbias.crawl.config import TargetWidth
from kgbias.graph.draws import Draws
from kgbias.graph.row_types import DrawRow
from kgbias.graph.types import Generation, Group, Score, TripleView
from kgbias.io.wording import pluralise
from kgbias.stats.inference import STATISTICS, Estimate, Sample, bootstrap

MIN_INTERVAL_PROMPTS = 30  # of a group, before its interval is believed


def mean_interval(sample: Sample) -> Estimate | None:
    """The mean of a sample with its interval; None if too few prompts were asked to believe it."""
    if sample.design is None or len(sample.design.strata) < MIN_INTERVAL_PROMPTS:
        return None
    estimate = bootstrap(sample, STATISTICS["mean"])
    return estimate if estimate.has_interval else None


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
class IntervalWidths:
    """The crawl's statements so far, scored, and the intervals that follow, all determined by the
    answers."""

    target: TargetWidth
    gauge: Gauge
    _draw_rows: list[DrawRow] = field(default_factory=list)
    _triples_by_group: dict[tuple[str, str], dict[str, TripleView]] = field(
        default_factory=lambda: defaultdict(dict)
    )
    _scores: dict[str, Score | None] = field(default_factory=dict)
    _narrow_groups: set[tuple[str, str]] = field(default_factory=set)
    _widths: dict[tuple[str, str], float] = field(default_factory=dict)

    def add(self, generations: Sequence[Sequence[Generation]]) -> None:
        """Add a round's attempts."""
        for generation in (generation for attempts in generations for generation in attempts):
            triple = generation.triple
            self._draw_rows.append(
                DrawRow(
                    generation.id,
                    generation.path,
                    generation.group_id,
                    generation.arm,
                    generation.strategy,
                    generation.iteration,
                    generation.attempt,
                    generation.template,
                    generation.prompt,
                    triple.id if triple else None,
                    triple.predicate_id if triple else None,
                    generation.count,
                )
            )
            if triple is not None:
                self._triples_by_group[generation.arm, generation.group_id].setdefault(
                    triple.id,
                    TripleView(
                        triple.id,
                        generation.group_id,
                        triple.group,
                        triple.predicate,
                        triple.object,
                        1,
                        arm=generation.arm,
                    ),
                )
        self._update_widths()

    def is_narrow(self, arm: str, group: Group) -> bool:
        """Whether the interval of a group's mean is narrow enough; once it is, it stays so."""
        return (arm, group.id) in self._narrow_groups

    def describe(self, groups: Sequence[Group]) -> str:
        """How wide the intervals are, in one line."""
        if not self._widths:
            return f"{self.target.measure}: too few prompts yet to say how wide intervals are"
        # By key too, so that ties do not depend on the order of the groups.
        (_, group), widest = max(self._widths.items(), key=lambda entry: (entry[1], entry[0]))
        name = next(g.name for g in groups if g.id == group)
        return (
            f"{self.target.measure}: intervals at most {widest:.2g} wide ({name}), "
            f"{len(self._narrow_groups)} of {len(self._triples_by_group)} narrow enough"
        )

    def _update_widths(self) -> None:
        self._score_new()
        draws = Draws.from_rows(self._draw_rows)
        for key, group_views in self._triples_by_group.items():
            if key in self._narrow_groups:
                continue
            views = [view for view in group_views.values() if view.scores]
            estimate = mean_interval(draws.sample(views, self.target.measure))
            if estimate is not None:
                self._widths[key] = estimate.high - estimate.low
                if self._widths[key] <= self.target.width:
                    self._narrow_groups.add(key)

    def _score_new(self) -> None:
        """Score statements that are new."""
        new: dict[str, str] = {}
        for group_views in self._triples_by_group.values():
            new |= {id: view.sentence for id, view in group_views.items() if id not in self._scores}
        self._scores |= zip(new, self.gauge.score(list(new.values())), strict=True)
        for group_views in self._triples_by_group.values():
            for id, view in group_views.items():
                score = self._scores[id]
                if score is not None and not view.scores:
                    group_views[id] = replace(view, scores={self.target.measure: score})


def good_turing_coverage(counts: Iterable[int]) -> float:
    """The estimated probability, in [0, 1], that the next statement was seen before: 1 - f1 / n,
    for n statements of which f1 were said only once. NaN without statements.

    `counts` says how often each distinct statement was said.
    Source: Good 1953, "The population frequencies of species and the estimation of population
    parameters", Biometrika 40 (there with credit to Turing).
    """
    frequencies = Counter(counts)
    total = sum(count * number for count, number in frequencies.items())
    return 1 - frequencies[1] / total if total else float("nan")


def chao1_richness(counts: Iterable[int]) -> float:
    """A lower bound on the number of distinct statements, seen or not, never below the number seen:
    S + (n-1)/n * f1^2 / (2 f2), or S + (n-1)/n * f1 (f1-1) / 2 if f2 is 0; f1 and f2 of the S
    distinct statements were said once and twice.

    Source: Chao 1984, "Nonparametric estimation of the number of classes in a population",
    Scandinavian Journal of Statistics 11; with the factor (n-1)/n and the bias-corrected form for
    f2 = 0 as in Chao and Chiu 2016, "Species richness: estimation and comparison".
    """
    frequencies = Counter(counts)
    total = sum(count * number for count, number in frequencies.items())
    if not total:
        return 0.0
    singletons, doubletons = frequencies[1], frequencies[2]
    unseen = singletons**2 / (2 * doubletons) if doubletons else singletons * (singletons - 1) / 2
    return frequencies.total() + (total - 1) / total * unseen


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
        return chao1_richness(self.triples.values())

    def has_reached(self, target: float | None) -> bool:
        """Whether the coverage has reached the target; False without a target or a statement."""
        return target is not None and self.statements > 0 and self.coverage >= target


def describe_coverage(groups: Iterable[GroupProgress]) -> str:
    """The mean and lowest coverage of the groups with statements, in one line."""
    with_statements = [g for g in groups if g.statements]
    if not with_statements:
        return "no statement yet"
    lowest = min(with_statements, key=lambda g: (g.coverage, g.group))
    mean = sum(g.coverage for g in with_statements) / len(with_statements)
    return (
        f"coverage {mean:.0%} on average, lowest {lowest.coverage:.0%} ({lowest.group}: "
        f"{pluralise(lowest.distinct, 'statement')} seen, of an estimated {lowest.richness:.0f} "
        f"or more)"
    )
