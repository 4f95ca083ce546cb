"""How far two scorers of one measure agree on the statements of a run, and which groups change
rank between them."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from kgbias.graph.cross_mentions import is_swapped
from kgbias.graph.store import StoredRun
from kgbias.graph.types import Metric, Score, TripleView
from kgbias.measures import get_measure
from kgbias.stats.estimate import Estimate, Interval
from kgbias.stats.inference import (
    Values,
    clustered_proportion,
    proportion,
    rank_correlation,
    ranks,
)

_MIN_UNITS = 5  # from fewer, a bootstrap over units says nothing


@dataclass(frozen=True, slots=True)
class RankChange:
    """A group whose rank differs, by the mean of the measure (`Measure.read`) over the statements
    of its category that both scorers judged; rank 1 is the most hurtful, ties share their mean."""

    group: str
    first: float
    second: float


@dataclass(frozen=True, slots=True)
class ScorerAgreement:
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
    moved: tuple[RankChange, ...]

    @property
    def n(self) -> int:
        """The distinct statements that both judged."""
        return self.same.n


def compare_scorers(
    run: StoredRun,
    triples: Iterable[TripleView],
    metrics: Mapping[str, Metric],
    scorers: Sequence[Metric] | None = None,
) -> list[ScorerAgreement]:
    """The agreement of every two scorers of a measure whose scores of these triples are in the
    store; the run's current one (`metrics`) first. A statement that several arms made counts once.
    `scorers` are the run's, if they have been read already."""
    statements: dict[str, TripleView] = {}
    for triple in triples:
        statements.setdefault(triple.id, triple)
    current = {metric.id for metric in metrics.values()}
    by_measure: dict[str, list[Metric]] = {}
    for metric in sorted(
        _own_metrics(run, scorers), key=lambda m: (m.measure, m.id not in current, _scorer_name(m))
    ):
        by_measure.setdefault(metric.measure, []).append(metric)
    category = {group.id: group.category for group in run.record.groups}
    agreements_found = []
    for measure_metrics in by_measure.values():
        scores = (
            {m.id: run.store.scores(m, list(statements)) for m in measure_metrics}
            if measure_metrics[1:]
            else {}
        )
        for first, second in combinations(measure_metrics, 2):
            judged_by_both = [
                triple
                for triple in statements.values()
                if triple.id in scores[first.id] and triple.id in scores[second.id]
            ]
            if judged_by_both:
                agreements_found.append(
                    _compare_two(
                        first, second, judged_by_both, scores[first.id], scores[second.id], category
                    )
                )
    return agreements_found


def _own_metrics(run: StoredRun, scorers: Sequence[Metric] | None) -> list[Metric]:
    """The metrics that read statements as they were said."""
    all_metrics = run.scorers() if scorers is None else scorers
    return [metric for metric in all_metrics if not is_swapped(metric)]


def _compare_two(
    first_metric: Metric,
    second_metric: Metric,
    judged_by_both: Sequence[TripleView],
    first_scores: Mapping[str, Score],
    second_scores: Mapping[str, Score],
    category: Mapping[str, str],
) -> ScorerAgreement:
    same_share, label_kappa = cohens_kappa(
        [first_scores[t.id].label for t in judged_by_both],
        [second_scores[t.id].label for t in judged_by_both],
    )
    values = [
        np.array([scores[t.id].value for t in judged_by_both])
        for scores in (first_scores, second_scores)
    ]
    rho = correlation_estimate(rank_correlation(*values), len(judged_by_both))
    changes = _rank_changes(
        first_metric.measure, judged_by_both, first_scores, second_scores, category
    )
    return ScorerAgreement(
        first_metric.measure,
        _scorer_name(first_metric),
        _scorer_name(second_metric),
        same_share,
        label_kappa,
        rho,
        changes,
    )


class Agreement(NamedTuple):
    """The share of labels that two judges have in common, and their kappa."""

    same: Estimate
    kappa: Estimate


def cohens_kappa(
    first: Sequence[str], second: Sequence[str], units: Sequence[str] = ()
) -> Agreement:
    """The share of labels that two judges have in common, and their kappa, (share - chance) /
    (1 - chance), where chance is what their own label frequencies would give (Cohen 1960).

    The interval of kappa holds 95% of the kappas that a prior makes of the table (Basu, Banerjee
    and Sen 2000): as if two statements had been seen before, whose labels are equally frequent and
    on which the judges agreed a third beyond chance. Kappa's variance (Fleiss, Cohen and Everitt
    1969) knows nothing of labels that are rare and that a sample happens to lack. Below thirty
    statements there is no interval. Kappa is undefined if both give only one and the same label. If
    statements come in `units` (the templates that they were made from), one for each statement,
    both intervals are those of as many independent statements as vary as much as the units do;
    below five units there is none."""
    n = len(first)
    if not n:
        return Agreement(Estimate.missing(), Estimate.missing())
    labels = sorted({*first, *second})
    label_numbers = {label: i for i, label in enumerate(labels)}
    table = np.zeros((len(labels), len(labels)))
    for x, y in zip(first, second, strict=True):
        table[label_numbers[x], label_numbers[y]] += 1
    value, agreements_seen = (
        _table_kappa(table),
        [float(x == y) for x, y in zip(first, second, strict=True)],
    )
    if units:
        if len(set(units)) < _MIN_UNITS:
            return Agreement(
                Estimate.missing(n, float(np.mean(agreements_seen))), Estimate.missing(n, value)
            )
        same_share, independent = (
            clustered_proportion(units, agreements_seen),
            proportion(sum(agreements_seen), n),
        )
        # Widths go with 1 / sqrt(n): their squared ratio is the share that is independent.
        table = table * min(1.0, _interval_width(independent) / _interval_width(same_share)) ** 2
    else:
        same_share = proportion(sum(agreements_seen), n)
    if math.isnan(value) or n < MIN_KAPPA_STATEMENTS:
        return Agreement(same_share, Estimate.missing(n, value))
    return Agreement(same_share, Estimate(value, *_kappa_interval(table, value), n))


def format_kappa_interval(kappa: Estimate) -> str:
    """The interval of a kappa, or from how many statements on there would be one."""
    return kappa.format_interval(".2f", f"no interval below {MIN_KAPPA_STATEMENTS} statements")


def _interval_width(estimate: Estimate) -> float:
    return estimate.high - estimate.low


def _table_kappa(table: Values) -> float:
    """Cohen's kappa of a table of counts; NaN if both judges give only one and the same label."""
    shares = table / table.sum()
    chance = float(shares.sum(axis=1) @ shares.sum(axis=0))
    return (float(np.trace(shares)) - chance) / (1 - chance) if chance < 1 else math.nan


def _kappa_interval(table: Values, value: float) -> Interval:
    labels = len(table)
    rng = np.random.Generator(np.random.PCG64(0))
    # Gamma draws divided by their sum are a Dirichlet draw, here of whole tables at once.
    drawn_tables = rng.gamma(table + agreement_prior(labels), size=(_DRAWS, labels, labels))
    drawn_tables /= drawn_tables.sum(axis=(1, 2), keepdims=True)
    chance = (drawn_tables.sum(axis=2) * drawn_tables.sum(axis=1)).sum(axis=1)
    kappas = (np.trace(drawn_tables, axis1=1, axis2=2) - chance) / (1 - chance)
    low, high = (float(end) for end in np.quantile(kappas, [0.025, 0.975]))
    # The prior pulls to its own kappa: the interval still holds the kappa that was counted.
    return Interval(min(low, value), max(high, value))


def agreement_prior(labels: int) -> Values:
    """The prior of a table of two judges' labels, [labels, labels]: two statements, whose labels
    are equally frequent and on which they agree a third beyond chance."""
    even = np.full((labels, labels), 1 / labels**2)
    return np.asarray(
        _PRIOR_STATEMENTS * ((1 - _PRIOR_KAPPA) * even + _PRIOR_KAPPA / labels * np.eye(labels))
    )


MIN_KAPPA_STATEMENTS = 30  # statements for an interval of kappa
_PRIOR_STATEMENTS, _PRIOR_KAPPA = 2.0, 0.35  # statements of the prior, and its kappa
_DRAWS = 5_000


_MIN_RANKED = 10  # statements for an interval of a rank correlation


def correlation_estimate(rho: float, n: int, level: float = 0.95) -> Estimate:
    """A rank correlation with its interval by Fisher's transformation, with the standard error of
    Bonett and Wright (2000), which fits ranks and needs no resampling. Without an interval below
    ten statements, and for orders that are the same or opposite."""
    if math.isnan(rho) or n < _MIN_RANKED or abs(rho) >= 1:
        return Estimate.missing(n, rho)
    half_width = NormalDist().inv_cdf((1 + level) / 2) * math.sqrt((1 + rho * rho / 2) / (n - 3))
    transformed = math.atanh(rho)
    return Estimate(
        rho, math.tanh(transformed - half_width), math.tanh(transformed + half_width), n
    )


def _rank_changes(
    measure: str,
    judged_by_both: Sequence[TripleView],
    first_scores: Mapping[str, Score],
    second_scores: Mapping[str, Score],
    category: Mapping[str, str],
) -> tuple[RankChange, ...]:
    """The groups whose rank in their category differs."""
    read_value, sign = (
        get_measure(measure).read,
        1 if get_measure(measure).worst == "lowest" else -1,
    )
    means: dict[str, dict[str, tuple[float, float]]] = {}
    by_group: dict[str, list[TripleView]] = {}
    for triple in judged_by_both:
        by_group.setdefault(triple.group_id, []).append(triple)
    for group_id, group_triples in by_group.items():
        weights = np.array([float(triple.count) for triple in group_triples])
        weights /= weights.max()
        group_means = [
            float(
                np.average(
                    [read_value(scores[triple.id]) for triple in group_triples], weights=weights
                )
            )
            for scores in (first_scores, second_scores)
        ]
        means.setdefault(category.get(group_id, ""), {})[group_triples[0].group] = (
            group_means[0],
            group_means[1],
        )
    changes = []
    for means_by_group in means.values():
        values = np.array(list(means_by_group.values())) * sign
        places = zip(means_by_group, ranks(values[:, 0]), ranks(values[:, 1]), strict=True)
        changes += [RankChange(group, float(a), float(b)) for group, a, b in places if a != b]
    return tuple(changes)


def _scorer_name(metric: Metric) -> str:
    return f"{metric.scorer}@{metric.version}"
