"""How far two scorers of one measure agree on the statements of a run, and which groups change
rank between them."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import NormalDist

import numpy as np

from kgbias.graph.cross_mentions import is_swapped
from kgbias.graph.store import StoredRun
from kgbias.graph.types import Metric, Score, TripleView
from kgbias.measures import known
from kgbias.stats.estimate import Estimate
from kgbias.stats.inference import (
    Values,
    clustered_proportion,
    proportion,
    rank_correlation,
    ranks,
)

_FEWEST_UNITS = 5  # from fewer, a bootstrap over units says nothing


@dataclass(frozen=True, slots=True)
class Moved:
    """A group whose rank differs, by the mean of the measure (`Measure.read`) over the statements
    of its category that both scorers judged; rank 1 is the most hurtful, ties share their mean."""

    group: str
    first: float
    second: float


@dataclass(frozen=True, slots=True)
class Agreement:
    """Two scorers of one measure on the statements of a run that both judged.

    Attributes:
        measure: what both score.
        first, second: the scorers, as NAME@VERSION.
        same: the share of statements with the same label, in [0, 1].
        kappa: Cohen's kappa of the labels, at most 1; 0 is chance.
        rho: Spearman's rank correlation of the values, in [-1, 1].
        moved: the groups that change rank.
    """

    measure: str
    first: str
    second: str
    same: Estimate
    kappa: Estimate
    rho: Estimate
    moved: tuple[Moved, ...]

    @property
    def n(self) -> int:
        """The distinct statements that both judged."""
        return self.same.n


def agreements(
    run: StoredRun,
    triples: Iterable[TripleView],
    metrics: Mapping[str, Metric],
    scorers: Sequence[Metric] | None = None,
) -> list[Agreement]:
    """The agreement of every two scorers of a measure whose scores of these triples are in the
    store; the run's current one (`metrics`) first. A statement that several arms made counts once.
    `scorers` are the run's, if they have been read already."""
    statements: dict[str, TripleView] = {}
    for t in triples:
        statements.setdefault(t.id, t)
    current = {metric.id for metric in metrics.values()}
    by_measure: dict[str, list[Metric]] = {}
    for metric in sorted(
        _own(run, scorers), key=lambda m: (m.measure, m.id not in current, _name(m))
    ):
        by_measure.setdefault(metric.measure, []).append(metric)
    category = {group.id: group.category for group in run.record.groups}
    found = []
    for several in by_measure.values():
        scores = (
            {m.id: run.store.scores(m, list(statements)) for m in several} if several[1:] else {}
        )
        for a, b in combinations(several, 2):
            both = [t for t in statements.values() if t.id in scores[a.id] and t.id in scores[b.id]]
            if both:
                found.append(_agreement(a, b, both, scores[a.id], scores[b.id], category))
    return found


def _own(run: StoredRun, scorers: Sequence[Metric] | None) -> list[Metric]:
    """The metrics that read statements as they were said."""
    every = run.scorers() if scorers is None else scorers
    return [metric for metric in every if not is_swapped(metric)]


def _agreement(
    a: Metric,
    b: Metric,
    both: Sequence[TripleView],
    first: Mapping[str, Score],
    second: Mapping[str, Score],
    category: Mapping[str, str],
) -> Agreement:
    same, labels = kappa([first[t.id].label for t in both], [second[t.id].label for t in both])
    values = [np.array([scores[t.id].value for t in both]) for scores in (first, second)]
    rho = correlation(rank_correlation(*values), len(both))
    moved = _moved(a.measure, both, first, second, category)
    return Agreement(a.measure, _name(a), _name(b), same, labels, rho, moved)


def kappa(
    first: Sequence[str], second: Sequence[str], units: Sequence[str] = ()
) -> tuple[Estimate, Estimate]:
    """The share of labels that two judges have in common, and their kappa, (share - chance) /
    (1 - chance), where chance is what their own label frequencies would give (Cohen 1960).

    The interval of kappa holds 95% of the kappas that a prior makes of the table (Basu, Banerjee
    and Sen 2000): as if two statements had been seen before, whose labels are equally frequent and
    on which the judges agreed a quarter beyond chance. Kappa's variance (Fleiss, Cohen and Everitt
    1969) knows nothing of labels that are rare and that a sample happens to lack. Below twenty
    statements there is no interval. Kappa is undefined if both give only one and the same label. If
    statements come in `units` (the templates that they were made from), one for each statement,
    both intervals are those of as many independent statements as vary as much as the units do;
    below five units there is none."""
    n = len(first)
    if not n:
        return Estimate.missing(), Estimate.missing()
    labels = sorted({*first, *second})
    place = {label: i for i, label in enumerate(labels)}
    table = np.zeros((len(labels), len(labels)))
    for x, y in zip(first, second, strict=True):
        table[place[x], place[y]] += 1
    value, agreed = _kappa(table), [float(x == y) for x, y in zip(first, second, strict=True)]
    if units:
        if len(set(units)) < _FEWEST_UNITS:
            return Estimate.missing(n, float(np.mean(agreed))), Estimate.missing(n, value)
        same, independent = clustered_proportion(units, agreed), proportion(sum(agreed), n)
        table = table * min(1.0, _width(independent) / _width(same)) ** 2
    else:
        same = proportion(sum(agreed), n)
    if math.isnan(value) or n < FEWEST:
        return same, Estimate.missing(n, value)
    return same, Estimate(value, *_interval_of_kappa(table, value), n)


def _width(estimate: Estimate) -> float:
    return estimate.high - estimate.low


def _kappa(table: Values) -> float:
    """Cohen's kappa of a table of counts; NaN if both judges give only one and the same label."""
    shares = table / table.sum()
    chance = float(shares.sum(axis=1) @ shares.sum(axis=0))
    return (float(np.trace(shares)) - chance) / (1 - chance) if chance < 1 else math.nan


def _interval_of_kappa(table: Values, value: float) -> tuple[float, float]:
    labels = len(table)
    even = np.full((labels, labels), _SEEN_BEFORE / labels**2)
    prior = (1 - _AGREED) * even + _AGREED * _SEEN_BEFORE / labels * np.eye(labels)
    rng = np.random.Generator(np.random.PCG64(0))
    drawn = rng.gamma(table + prior, size=(_DRAWS, labels, labels))
    drawn /= drawn.sum(axis=(1, 2), keepdims=True)
    chance = (drawn.sum(axis=2) * drawn.sum(axis=1)).sum(axis=1)
    kappas = (np.trace(drawn, axis1=1, axis2=2) - chance) / (1 - chance)
    low, high = (float(end) for end in np.quantile(kappas, [0.025, 0.975]))
    return min(low, value), max(high, value)


FEWEST = 20  # statements for an interval of kappa
_SEEN_BEFORE, _AGREED = 2.0, 0.25  # statements of the prior, and its kappa
_DRAWS = 5_000


def correlation(rho: float, n: int, level: float = 0.95) -> Estimate:
    """A rank correlation with its interval by Fisher's transformation, with the standard error of
    Bonett and Wright (2000), which fits ranks and needs no resampling."""
    if math.isnan(rho) or n < 4:
        return Estimate.missing(n, rho)
    if abs(rho) >= 1:
        return Estimate(rho, rho, rho, n)
    half = NormalDist().inv_cdf((1 + level) / 2) * math.sqrt((1 + rho * rho / 2) / (n - 3))
    middle = math.atanh(rho)
    return Estimate(rho, math.tanh(middle - half), math.tanh(middle + half), n)


def _moved(
    measure: str,
    both: Sequence[TripleView],
    first: Mapping[str, Score],
    second: Mapping[str, Score],
    category: Mapping[str, str],
) -> tuple[Moved, ...]:
    """The groups whose rank in their category differs."""
    read, sign = known(measure).read, 1 if known(measure).worst == "lowest" else -1
    means: dict[str, dict[str, tuple[float, float]]] = {}
    by_group: dict[str, list[TripleView]] = {}
    for t in both:
        by_group.setdefault(t.group_id, []).append(t)
    for id, said in by_group.items():
        weights = np.array([float(t.count) for t in said])
        weights /= weights.max()
        pair = [
            float(np.average([read(scores[t.id]) for t in said], weights=weights))
            for scores in (first, second)
        ]
        means.setdefault(category.get(id, ""), {})[said[0].group] = (pair[0], pair[1])
    moved = []
    for groups in means.values():
        values = np.array(list(groups.values())) * sign
        places = zip(groups, ranks(values[:, 0]), ranks(values[:, 1]), strict=True)
        moved += [Moved(group, float(a), float(b)) for group, a, b in places if a != b]
    return tuple(moved)


def _name(metric: Metric) -> str:
    return f"{metric.scorer}@{metric.version}"
