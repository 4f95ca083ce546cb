"""Until a figure is known well enough: how wide the interval of a group's mean is so far.

What is looked at again and again until it is narrow is, by luck, looked at last when it seems
narrower than it is. How much coverage that costs, and how many prompts there must be for it to cost
little, is simulated in `benchmarks/until_width.py`.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from kgbias.graph.draws import Draws
from kgbias.graph.said import Drawn
from kgbias.graph.types import Generation, Group, Score, TripleView
from kgbias.stats.inference import STATISTICS, Estimate, Sample, bootstrap

FEWEST_PROMPTS = 30  # of a group, before its interval is believed


def interval(sample: Sample) -> Estimate | None:
    """The mean of a sample with its interval; None where too few prompts were asked to believe
    it."""
    if sample.design is None or len(sample.design.strata) < FEWEST_PROMPTS:
        return None
    found = bootstrap(sample, STATISTICS["mean"])
    return found if found.has_interval else None


@dataclass(frozen=True, slots=True)
class Gauge:
    """What scores the statements of a crawl between its rounds.

    Attributes:
        label: the scorers and their versions; part of the run's configuration, so that a run is
            never continued by others.
        score: the score of each sentence, None for one that does not count; it may depend on
            nothing but the sentence.
    """

    label: str
    score: Callable[[Sequence[str]], Sequence[Score | None]]


@dataclass
class Widths:
    """The statements of a crawl so far, scored, and the intervals that follow: all of it from the
    answers alone."""

    until: Width
    gauge: Gauge
    _drawn: list[Drawn] = field(default_factory=list)
    _said: dict[tuple[str, str], dict[str, TripleView]] = field(
        default_factory=lambda: defaultdict(dict)
    )
    _scores: dict[str, Score | None] = field(default_factory=dict)
    _narrow: set[tuple[str, str]] = field(default_factory=set)
    _widths: dict[tuple[str, str], float] = field(default_factory=dict)

    def add(self, generations: Sequence[Sequence[Generation]]) -> None:
        """A round's attempts."""
        for g in (g for attempts in generations for g in attempts):
            said = g.triple
            self._drawn.append(
                Drawn(
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
        """Whether the interval of a group's mean is narrow enough; it then stays so."""
        return (arm, group.id) in self._narrow

    def described(self, groups: Sequence[Group]) -> str:
        """One line: how wide the intervals are."""
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
        draws = Draws.among(self._drawn)
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
        """Score what was not said before."""
        new: dict[str, str] = {}
        for own in self._said.values():
            new |= {id: view.sentence for id, view in own.items() if id not in self._scores}
        self._scores |= zip(new, self.gauge.score(list(new.values())), strict=True)
        for own in self._said.values():
            for id, view in own.items():
                if (score := self._scores[id]) is not None and not view.scores:
                    own[id] = replace(view, scores={self.until.measure: score})
