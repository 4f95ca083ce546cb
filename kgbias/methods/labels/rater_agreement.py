"""How far raters agree about statements, and where they do not.

People are compared with people and models with models: what a model says is no reference for what a
person says.
"""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from kgbias.graph.labels import SKIPPED_LABEL, Label, RaterKind
from kgbias.graph.types import TripleView
from kgbias.measure.scorer_agreement import MIN_KAPPA_STATEMENTS, agreement_prior
from kgbias.measures import Measure, get_measure
from kgbias.stats.designs import percentile_interval
from kgbias.stats.estimate import Interval
from kgbias.stats.inference import DEFAULT_DRAWS, Estimate, Values


@dataclass(frozen=True, slots=True)
class DisputedStatement:
    """A statement that raters labelled differently, with each one's label."""

    triple_id: str
    group: str
    sentence: str
    labels: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class RaterAgreement:
    """How far the raters of a measure agree on the statements that at least two of them labelled.

    Attributes:
        measure: the measure.
        group: the group that the statements are about; "" for all.
        kind: whether the raters are people or models.
        raters: their names.
        alpha: Krippendorff's alpha, at most 1; 0 is chance. Its interval is over statements; n is
            how many there are.
        level: "ordinal" if the measure's labels are ordered and only these were given; else
            "nominal".
        confusion: for each two labels, of how many pairs of raters of a statement one gave the
            first and the other the second, in the order of the measure's labels.
        disputed: the statements on which raters differ, the most divided first.
    """

    measure: str
    group: str
    kind: RaterKind
    raters: tuple[str, ...]
    alpha: Estimate
    level: str
    confusion: Mapping[tuple[str, str], int]
    disputed: tuple[DisputedStatement, ...]


def compare_raters(labels: Sequence[Label], triples: Sequence[TripleView]) -> list[RaterAgreement]:
    """The agreement of the raters of each kind and measure on these statements, over all of them
    and by group; `labels` are those in effect. Skipped statements are left out."""
    triples_by_id = {t.id: t for t in triples}
    labels_by_statement: dict[tuple[str, RaterKind], dict[str, dict[str, str]]] = defaultdict(dict)
    for x in labels:
        if x.label != SKIPPED_LABEL and x.triple_id in triples_by_id:
            labels_by_statement[x.measure, x.kind].setdefault(x.triple_id, {})[x.rater] = x.label
    agreements = []
    for (measure, kind), units_of_kind in sorted(labels_by_statement.items()):
        shared_units = {
            triple_id: statement_labels
            for triple_id, statement_labels in units_of_kind.items()
            if len(statement_labels) > 1
        }
        groups: dict[str, dict[str, dict[str, str]]] = {"": shared_units}
        for triple_id, statement_labels in shared_units.items():
            groups.setdefault(triples_by_id[triple_id].group, {})[triple_id] = statement_labels
        agreements += [
            _compare_measure_raters(get_measure(measure), group, kind, units, triples_by_id)
            for group, units in groups.items()
            if units
        ]
    return agreements


def _compare_measure_raters(
    measure: Measure,
    group: str,
    kind: RaterKind,
    units: Mapping[str, Mapping[str, str]],
    triples_by_id: Mapping[str, TripleView],
) -> RaterAgreement:
    given_labels = {
        label for statement_labels in units.values() for label in statement_labels.values()
    }
    ordered_labels = _ordered_labels(measure)
    level = "ordinal" if ordered_labels and given_labels <= set(ordered_labels) else "nominal"
    order = (
        ordered_labels
        if level == "ordinal"
        else [*measure.labels, *sorted(given_labels - set(measure.labels))]
    )
    alpha = krippendorff_alpha(
        [list(statement_labels.values()) for statement_labels in units.values()], order, level
    )
    confusion: dict[tuple[str, str], int] = defaultdict(int)
    for statement_labels in units.values():
        for pair in combinations(statement_labels.values(), 2):
            first, second = sorted(pair, key=order.index)
            confusion[first, second] += 1
    disputed = [
        DisputedStatement(id, triples_by_id[id].group, triples_by_id[id].sentence, statement_labels)
        for id, statement_labels in units.items()
        if len(set(statement_labels.values())) > 1
    ]
    disputed.sort(key=lambda d: (-len(set(d.labels.values())), d.sentence))
    raters = tuple(
        sorted({name for statement_labels in units.values() for name in statement_labels})
    )
    return RaterAgreement(
        measure.name, group, kind, raters, alpha, level, dict(confusion), tuple(disputed)
    )


def _ordered_labels(measure: Measure) -> list[str]:
    """The labels of a measure from one end to the other, without those that stand outside this
    order; empty if there is no order."""
    if measure.sides is not None:
        return list(reversed(measure.sides))
    if measure.ends is None:
        return []
    high, low = measure.ends
    middle_labels = [label for label in measure.labels if label == "neutral"]
    return [low, *middle_labels, high]


def krippendorff_alpha(
    units: Sequence[Sequence[str]], order: Sequence[str], level: str = "nominal"
) -> Estimate:
    """Krippendorff's alpha of the labels that units got, each from any number of raters, with its
    interval over units, from thirty on (`_alpha_interval`); units with one label are left out.

    alpha = 1 - (n - 1) sum o_ck d_ck / sum n_c n_k d_ck, with coincidences o of pairs of labels of
    a unit, each pair of a unit of m labels counting 1 / (m - 1), their margins n_c and their sum n
    (Krippendorff 2011, Computing Krippendorff's Alpha-Reliability). d is 1 for "nominal" labels
    that differ; (sum of n_g from c to k - (n_c + n_k) / 2)^2 for "ordinal" ones, in the order
    given; for "interval" ones, which are numbers, (c - k)^2. NaN if all labels are the same.
    """
    label_numbers = {label: n for n, label in enumerate(order)}
    tables = []
    for unit in units:
        if len(unit) > 1:
            counts = (
                np.bincount([label_numbers[label] for label in unit], minlength=len(order)) * 1.0
            )
            # Ordered pairs of different raters: no rater is paired with itself.
            tables.append((np.outer(counts, counts) - np.diag(counts)) / (len(unit) - 1))
    if not tables:
        return Estimate.missing()
    all_tables = np.array(tables)
    values = np.array([float(x) for x in order]) if level == "interval" else None
    alpha = float(_table_alphas(all_tables.sum(axis=0)[None], level, values)[0])
    n = len(tables)
    if n < MIN_KAPPA_STATEMENTS or math.isnan(alpha):
        return Estimate.missing(n, alpha)
    low, high = _alpha_interval(all_tables, level, values)
    return Estimate(alpha, min(low, alpha), max(high, alpha), n)


def _alpha_interval(tables: Values, level: str, values: Values | None) -> Interval:
    """The interval of alpha from the coincidences of each unit, [n, labels, labels]: 95% of the
    alphas where each unit counts as an exponential variable (the Bayesian bootstrap: Rubin 1981),
    beside those of the prior that kappa has, over the labels that were given. It holds what the
    prior says and what one of twice the weight says (Berger 1994): where few units have a rare
    label, either alone is too narrow on one side."""
    given = np.flatnonzero(tables.sum(axis=(0, 1)))
    prior = np.zeros(tables.shape[1:])
    prior[np.ix_(given, given)] = agreement_prior(len(given))
    rng = np.random.Generator(np.random.PCG64(0))
    size = (DEFAULT_DRAWS, *prior.shape)
    # How often each unit counts: sums of tables follow by one product.
    counts = rng.exponential(size=(DEFAULT_DRAWS, len(tables)))
    drawn_tables = np.tensordot(counts, tables, axes=1)
    ends = []
    for weight in _PRIOR_WEIGHTS:
        drawn_prior = rng.gamma(weight * prior, size=size)
        drawn = drawn_tables + drawn_prior + drawn_prior.swapaxes(1, 2)
        ends.append(percentile_interval(_table_alphas(drawn, level, values), 0.95))
    return Interval(min(low for low, _ in ends), max(high for _, high in ends))


_PRIOR_WEIGHTS = (1.0, 2.0)


def _table_alphas(tables: Values, level: str, values: Values | None) -> Values:
    """Alpha of tables of coincidences, [draws, labels, labels]."""
    margins = tables.sum(axis=2)
    if level == "ordinal":
        # The sum from c to k less half of both ends is the distance of these mid-ranks.
        middle = np.cumsum(margins, axis=1) - margins / 2
        squared_distances = (middle[:, :, None] - middle[:, None, :]) ** 2
    elif values is not None:
        squared_distances = np.subtract.outer(values, values)[None] ** 2
    else:
        squared_distances = 1.0 - np.eye(margins.shape[1])[None]
    observed = (tables * squared_distances).sum(axis=(1, 2))
    expected = (margins[:, :, None] * margins[:, None, :] * squared_distances).sum(axis=(1, 2))
    with np.errstate(invalid="ignore", divide="ignore"):
        alphas = 1 - (margins.sum(axis=1) - 1) * observed / expected
    return np.asarray(np.where(expected > 0, alphas, np.nan), dtype=np.float64)
