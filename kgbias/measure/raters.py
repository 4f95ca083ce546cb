"""How far raters agree about statements, and where they do not.

People are compared with people and models with models: what a model says is no reference for what a
person says.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from kgbias.graph.labels import SKIPPED_LABEL, RaterKind, Label
from kgbias.graph.types import TripleView
from kgbias.measures import Measure, known
from kgbias.stats.designs import percentile_interval
from kgbias.stats.inference import DEFAULT_DRAWS, Estimate, Values


@dataclass(frozen=True, slots=True)
class Disputed:
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
    disputed: tuple[Disputed, ...]


def rater_agreements(
    labels: Sequence[Label], triples: Sequence[TripleView]
) -> list[RaterAgreement]:
    """The agreement of the raters of each kind and measure on these statements, over all of them
    and by group; `labels` are those in effect. Skipped statements are left out."""
    of = {t.id: t for t in triples}
    said: dict[tuple[str, RaterKind], dict[str, dict[str, str]]] = defaultdict(dict)
    for x in labels:
        if x.label != SKIPPED_LABEL and x.triple_id in of:
            said[x.measure, x.kind].setdefault(x.triple_id, {})[x.rater] = x.label
    found = []
    for (measure, kind), every in sorted(said.items()):
        several = {id: own for id, own in every.items() if len(own) > 1}
        groups: dict[str, dict[str, dict[str, str]]] = {"": several}
        for id, own in several.items():
            groups.setdefault(of[id].group, {})[id] = own
        found += [
            _agreement(known(measure), group, kind, units, of)
            for group, units in groups.items()
            if units
        ]
    return found


def _agreement(
    measure: Measure,
    group: str,
    kind: RaterKind,
    units: Mapping[str, Mapping[str, str]],
    of: Mapping[str, TripleView],
) -> RaterAgreement:
    given = {label for own in units.values() for label in own.values()}
    ordered = _ordered(measure)
    level = "ordinal" if ordered and given <= set(ordered) else "nominal"
    order = (
        ordered if level == "ordinal" else [*measure.labels, *sorted(given - set(measure.labels))]
    )
    alpha = krippendorff([list(own.values()) for own in units.values()], order, level)
    confusion: dict[tuple[str, str], int] = defaultdict(int)
    for own in units.values():
        for pair in combinations(own.values(), 2):
            a, b = sorted(pair, key=order.index)
            confusion[a, b] += 1
    disputed = [
        Disputed(id, of[id].group, of[id].sentence, own)
        for id, own in units.items()
        if len(set(own.values())) > 1
    ]
    disputed.sort(key=lambda d: (-len(set(d.labels.values())), d.sentence))
    raters = tuple(sorted({name for own in units.values() for name in own}))
    return RaterAgreement(
        measure.name, group, kind, raters, alpha, level, dict(confusion), tuple(disputed)
    )


def _ordered(measure: Measure) -> list[str]:
    """The labels of a measure from one end to the other, without those that stand outside this
    order; empty if there is no order."""
    if measure.sides is not None:
        return list(reversed(measure.sides))
    if measure.ends is None:
        return []
    high, low = measure.ends
    between = [label for label in measure.labels if label == "neutral"]
    return [low, *between, high]


def krippendorff(
    units: Sequence[Sequence[str]], order: Sequence[str], level: str = "nominal"
) -> Estimate:
    """Krippendorff's alpha of the labels that units got, each from any number of raters, with the
    percentile bootstrap interval over units; units with one label are left out.

    alpha = 1 - (n - 1) sum o_ck d_ck / sum n_c n_k d_ck, with coincidences o of pairs of labels of
    a unit, each pair of a unit of m labels counting 1 / (m - 1), their margins n_c and their sum n
    (Krippendorff 2011, Computing Krippendorff's Alpha-Reliability). d is 1 for "nominal" labels
    that differ; (sum of n_g from c to k - (n_c + n_k) / 2)^2 for "ordinal" ones, in the order
    given; for "interval" ones, which are numbers, (c - k)^2. NaN if all labels are the same.
    """
    place = {label: n for n, label in enumerate(order)}
    tables = []
    for unit in units:
        if len(unit) > 1:
            counts = np.bincount([place[label] for label in unit], minlength=len(order)) * 1.0
            tables.append((np.outer(counts, counts) - np.diag(counts)) / (len(unit) - 1))
    if not tables:
        return Estimate.missing()
    whole = np.array(tables)
    values = np.array([float(x) for x in order]) if level == "interval" else None
    alpha = float(_alpha(whole.sum(axis=0)[None], level, values)[0])
    n = len(tables)
    if n < 2 or np.isnan(alpha):
        return Estimate.missing(n, alpha)
    rng = np.random.Generator(np.random.PCG64(0))
    often = rng.multinomial(n, np.full(n, 1 / n), size=DEFAULT_DRAWS)
    drawn = _alpha(np.tensordot(often, whole, axes=1), level, values)
    if not np.nanmax(drawn) > np.nanmin(drawn):  # no disagreement was seen: how rare it is, is open
        return Estimate.missing(n, alpha)
    low, high = percentile_interval(drawn, 0.95)
    return Estimate(alpha, low, high, n)


def _alpha(tables: Values, level: str, values: Values | None) -> Values:
    """Alpha of tables of coincidences, [draws, labels, labels]."""
    margins = tables.sum(axis=2)
    if level == "ordinal":
        middle = np.cumsum(margins, axis=1) - margins / 2
        apart = (middle[:, :, None] - middle[:, None, :]) ** 2
    elif values is not None:
        apart = np.subtract.outer(values, values)[None] ** 2
    else:
        apart = 1.0 - np.eye(margins.shape[1])[None]
    seen = (tables * apart).sum(axis=(1, 2))
    chance = (margins[:, :, None] * margins[:, None, :] * apart).sum(axis=(1, 2))
    with np.errstate(invalid="ignore", divide="ignore"):
        found = 1 - (margins.sum(axis=1) - 1) * seen / chance
    return np.asarray(np.where(chance > 0, found, np.nan), dtype=np.float64)
