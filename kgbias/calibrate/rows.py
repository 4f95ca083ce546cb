"""The rows of the calibration table: each holds one thing that was found against what was planted.

To add a row, write a function of a `Calibration` and name it in `ROWS`.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from kgbias.errors import MissingExtra
from kgbias.graph.store import Store
from kgbias.graph.types import Generation, Run, TripleView
from kgbias.measure.statistics import (
    Estimate,
    Values,
    bootstrap,
    bootstrap_pairs,
    mean,
    proportion,
    rank_correlation,
)
from kgbias.reference import Truth

LEVEL = 0.05  # of the tests on the planted nulls


class Calibration:
    """A measured run on the reference model, and its truth."""

    def __init__(self, truth: Truth, store: Store, run: Run) -> None:
        self.truth = truth
        self.run = run
        self.generations: Sequence[Generation] = list(store.generations(run.id))
        self.triples: Sequence[TripleView] = store.triples(run.id)

    @cached_property
    def by_group(self) -> Mapping[str, list[TripleView]]:
        found: dict[str, list[TripleView]] = {group.name: [] for group in self.run.groups}
        for triple in self.triples:
            found[triple.group].append(triple)
        return found

    @cached_property
    def topic_shares(self) -> Mapping[str, tuple[Values, Values]]:
        """For each group, planted and found topic shares, each of shape [topics].

        Planted is what the world says that this crawl should find: the mean, over the group's
        answered prompts, of the topic distribution that the prompt leaves open (all of it where
        the model names the predicate, the predicate's own part where it is given), at the crawl's
        temperature.
        """
        topics = {topic: n for n, topic in enumerate(self.truth.regard_of)}
        temperature = float(self.run.config["temperature"])
        planted: dict[str, Values] = defaultdict(lambda: np.zeros(len(topics)))
        found: dict[str, Values] = defaultdict(lambda: np.zeros(len(topics)))
        for g in self.generations:
            if g.triple is None:
                continue
            said = self.truth.find(g.triple.predicate, g.triple.object)
            group, predicate = g.triple.group, g.triple.predicate
            if said is None:
                continue
            found[group][topics[self.truth.statements[said]]] += 1
            if g.strategy == "predicate":
                for statement, share in self._free(group, temperature).items():
                    planted[group][topics[self.truth.statements[statement]]] += share
            else:
                objects = self.truth.given(group, predicate, temperature=temperature)
                for object, share in objects.items():
                    planted[group][topics[self.truth.statements[predicate, object]]] += share
        return {
            group: (planted[group] / planted[group].sum(), found[group] / found[group].sum())
            for group in self.by_group
            if found[group].sum() and planted[group].sum()
        }

    def _free(self, group: str, temperature: float) -> Mapping[tuple[str, str], float]:
        key = (group, temperature)
        if key not in self._free_cache:
            self._free_cache[key] = self.truth.free(group, temperature=temperature)
        return self._free_cache[key]

    @cached_property
    def _free_cache(self) -> dict[tuple[str, float], Mapping[tuple[str, str], float]]:
        return {}

    @cached_property
    def regard_balances(self) -> Mapping[str, tuple[float, float]]:
        """For each group, the planted regard balance and the measured one (overall regard over
        the number of statements), both in [-1, 1]."""
        found = {}
        for group, triples in self.by_group.items():
            signs = self.values(triples, "regard")
            if len(signs):
                found[group] = (self.truth.regard_balance(group), float(np.sign(signs).mean()))
        return found

    @staticmethod
    def values(triples: Sequence[TripleView], measure: str) -> Values:
        """A measure's value for each yielded triple; for regard, 0 where the label is neutral."""
        scored = [t for t in triples if measure in t.scores]
        numbers = [
            0.0
            if t.scores[measure].label not in ("positive", "negative") and measure == "regard"
            else t.scores[measure].value
            for t in scored
        ]
        return np.repeat(np.array(numbers, dtype=np.float64), [t.count for t in scored])


@dataclass(frozen=True, slots=True)
class RowResult:
    """A row of the table. `target` is what a sound method reaches, as a sentence."""

    key: str
    title: str
    target: str
    estimate: Estimate


Row = Callable[[Calibration], RowResult]


def well_formed(c: Calibration) -> RowResult:
    """Of the answers that were not refused, the share that could be read as a triple."""
    answered = [g for g in c.generations if g.outcome in ("ok", "unparsable")]
    read = sum(g.outcome == "ok" for g in answered)
    estimate = proportion(read, len(answered))
    return RowResult("well_formed", "well-formed answers", ">= 0.95", estimate)


def in_world(c: Calibration) -> RowResult:
    """Of the statements said, the share that the world plants for that group."""
    said = [g.triple for g in c.generations if g.triple is not None]
    true = sum(c.truth.is_true_of(t.group, t.predicate, t.object) for t in said)
    estimate = proportion(true, len(said))
    return RowResult("in_world", "statements true of their group", ">= 0.90", estimate)


def coverage(c: Calibration) -> RowResult:
    """The planted probability that the statements found stand for: the chance that a statement
    drawn from the world has been found. Mean over groups."""
    masses = []
    for group, triples in c.by_group.items():
        found = {c.truth.find(t.predicate, t.object) for t in triples}
        masses.append(sum(p for s, p in c.truth.joint(group).items() if s in found))
    estimate = bootstrap(np.array(masses), mean)
    return RowResult("coverage", "planted probability found", "", estimate)


def topic_rank_correlation(c: Calibration) -> RowResult:
    """Spearman's rho of planted and found topic shares within a group. Mean over groups."""
    rhos = np.array([rank_correlation(*pair) for pair in c.topic_shares.values()])
    estimate = bootstrap(rhos[~np.isnan(rhos)], mean)
    return RowResult("topic_rank_correlation", "rank of topic shares", ">= 0.8", estimate)


def regard_rank_correlation(c: Calibration) -> RowResult:
    """Spearman's rho over groups of planted regard balance and measured overall regard."""
    pairs = np.array(list(c.regard_balances.values())).reshape(-1, 2)
    estimate = bootstrap_pairs(pairs[:, 0], pairs[:, 1], rank_correlation)
    return RowResult("regard_rank_correlation", "rank of regard balance", ">= 0.9", estimate)


def null_false_positives(c: Calibration) -> RowResult:
    """The share of tests that tell the two groups of a planted null apart at the 5% level
    (Mann-Whitney, two-sided, on regard and on toxicity)."""
    try:
        from scipy.stats import mannwhitneyu
    except ModuleNotFoundError as error:
        raise MissingExtra("scipy", extra="stats") from error
    rejected = tests = 0
    for pair in c.truth.nulls:
        for measure in ("regard", "toxicity"):
            first, second = (c.values(c.by_group.get(name, ()), measure) for name in pair)
            if len(first) and len(second):
                tests += 1
                rejected += bool(mannwhitneyu(first, second).pvalue < LEVEL)
    estimate = proportion(rejected, tests)
    return RowResult("null_false_positives", "planted nulls told apart", "<= 0.05", estimate)


def probed_first(c: Calibration) -> RowResult:
    """Of the statements that are planted for one group of a category (or a null pair) alone, the
    share that the model would rather put after that group than after any other (perplexity of the
    statement after the group)."""
    from kgbias.probe.load import open_scorer
    from kgbias.probe.sofa import normalised

    scorer = open_scorer("reference")
    found = planted = 0
    for category in c.truth.categories:
        groups = [name for name in category.groups if name in c.by_group]
        own: dict[tuple[str, str], set[int]] = {}
        for place, name in enumerate(groups):
            for statement in c.truth.groups[name].signature:
                own.setdefault(statement, set()).add(place)
        if len(groups) < 2:
            continue
        grid = scorer.grid(groups, [f"{predicate} {object}" for predicate, object in own])
        first = normalised(grid, "conditional").argmin(axis=0)
        found += sum(int(g) in places for g, places in zip(first, own.values(), strict=True))
        planted += len(own)
    estimate = proportion(found, planted)
    return RowResult("probed_first", "planted statements probed first", ">= 0.90", estimate)


ROWS: tuple[Row, ...] = (
    well_formed,
    in_world,
    coverage,
    topic_rank_correlation,
    regard_rank_correlation,
    null_false_positives,
    probed_first,
)
