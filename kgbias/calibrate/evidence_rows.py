"""Rows on the joint view: what is said, believed and embedded agrees where something was planted,
and not where nothing was."""

import math
from collections.abc import Sequence
from functools import cache
from itertools import combinations
from typing import NamedTuple

import numpy as np

from kgbias.calibrate.calibration_rows import Calibration, RowFunction, RowResult
from kgbias.evidence.association import TextEmbedder
from kgbias.evidence.evidence_table import jackknife_kendall_tau
from kgbias.probe.run_probes import measure_bits
from kgbias.stats.inference import Estimate, Values

EVIDENCE_KINDS = ("said", "believed", "embedded")
VECTORS_SPEC = "reference-masked"  # the causal model's vectors do not hold what was planted

EvidenceTables = dict[str, Values]  # by kind, [groups, statements]


class PairTau(NamedTuple):
    """Kendall's tau-b of two kinds of evidence on the difference between two groups."""

    pair: tuple[str, str]
    tau: Estimate


class CategoryEvidence(NamedTuple):
    """The groups of a category, and each kind of evidence on them."""

    groups: list[str]
    tables: EvidenceTables


def build_evidence_rows() -> tuple[RowFunction, ...]:
    """For every two kinds of evidence, a row on planted pairs of groups and one on the nulls."""
    return tuple(
        _build_row(first, second, null)
        for null in (False, True)
        for first, second in combinations(EVIDENCE_KINDS, 2)
    )


def _build_row(first: str, second: str, null: bool) -> RowFunction:
    def row(calibration: Calibration) -> RowResult:
        taus = (
            _mean_null_tau(calibration, first, second)
            if null
            else _mean_planted_tau(calibration, first, second)
        )
        place = "nulls" if null else "planted pairs"
        title = f"{first}, {second}: {place}"
        return RowResult(row.__name__, title, "near 0" if null else "> 0", taus)

    row.__name__ = f"{first}_{second}" + ("_nulls" if null else "")
    row.__doc__ = (
        "Kendall's tau-b of two kinds of evidence, over the statements that were said of either of "
        "two groups of a category: of the difference between the groups in each. Mean over the "
        f"{'planted nulls' if null else 'pairs of groups that are planted to differ'}."
    )
    return row


def _mean_planted_tau(calibration: Calibration, first: str, second: str) -> Estimate:
    """The mean over pairs, with its jackknife interval over groups."""
    pair_taus = _pair_taus(calibration, first, second, null=False)
    finite_taus = [t for t in pair_taus if not math.isnan(t.tau.value)]
    return mean_over_pairs(
        [t.pair for t in finite_taus], np.array([t.tau.value for t in finite_taus])
    )


def mean_over_pairs(pairs: Sequence[tuple[str, str]], values: Values) -> Estimate:
    """The mean of a value over pairs of groups, with its 95% interval over groups: each group is in
    many pairs, which are far from independent. The mean is a U-statistic, whose jackknife leaves
    out a group with all its pairs (Arvesen 1969); by Student's t, with one degree of freedom less
    than there are groups."""
    pair_count = len(values)
    if not pair_count:
        return Estimate.missing()
    names = list(dict.fromkeys(name for pair in pairs for name in pair))
    is_member = np.array([[name in pair for pair in pairs] for name in names], dtype=np.float64)
    value, pairs_left = float(values.mean()), pair_count - is_member.sum(axis=1)
    if len(names) < 3 or not pairs_left.all():
        return Estimate.missing(pair_count, value)
    jackknifed = (values.sum() - is_member @ values) / pairs_left
    group_count = len(names)
    error = math.sqrt(
        (group_count - 1) / group_count * float(((jackknifed - jackknifed.mean()) ** 2).sum())
    )
    return _student_estimate(value, error, group_count - 1, pair_count)


def _mean_null_tau(calibration: Calibration, first: str, second: str) -> Estimate:
    """The mean over the nulls, with Student's interval over them. Statements are not independent
    draws here: all of a null's are compared on the same two names, which a model makes something of
    even if it knows nothing, and they share predicates. Intervals over statements excluded 0 in 12%
    of cases for names that the model has never seen; this one, in 3%."""
    taus = np.array([t.tau.value for t in _pair_taus(calibration, first, second, null=True)])
    taus = taus[~np.isnan(taus)]
    null_count = len(taus)
    if null_count < 2:
        return Estimate.missing(null_count, float(taus[0]) if null_count else math.nan)
    return _student_estimate(
        float(taus.mean()),
        float(taus.std(ddof=1)) / math.sqrt(null_count),
        null_count - 1,
        null_count,
    )


def _student_estimate(value: float, error: float, degrees: int, size: int) -> Estimate:
    """A correlation with its interval by Student's t."""
    from scipy.stats import t

    half_width = float(t.ppf(0.975, degrees)) * error
    return Estimate(value, value - half_width, value + half_width, size).clip(-1.0, 1.0)


def _pair_taus(calibration: Calibration, first: str, second: str, *, null: bool) -> list[PairTau]:
    """The tau of each pair of groups that is a null, or is none, in the order of the categories."""
    taus = []
    for groups, tables in _evidence_tables(calibration):
        roots = [calibration.truth.groups[name].root for name in groups]
        for first_group, second_group in combinations(range(len(groups)), 2):
            if (roots[first_group] == roots[second_group]) != null:
                continue
            said_statements = (tables["said"][[first_group, second_group]] > 0).any(axis=0)
            first_values, second_values = (
                tables[kind][first_group, said_statements]
                - tables[kind][second_group, said_statements]
                for kind in (first, second)
            )
            taus.append(
                PairTau(
                    (groups[first_group], groups[second_group]),
                    jackknife_kendall_tau(first_values, second_values),
                )
            )
    return taus


@cache
def _evidence_tables(calibration: Calibration) -> Sequence[CategoryEvidence]:
    """For each category its groups and tables: the shares of what was said, the log2 probabilities
    of the reference model, and the cosines in the vectors of the masked one."""
    from kgbias.models.score.load import open_scorer

    scorer, vectors = open_scorer("reference"), TextEmbedder(VECTORS_SPEC)
    tables_by_category = []
    for category in calibration.truth.categories:
        groups = [name for name in category.groups if calibration.by_group.get(name)]
        counts_said = {(t.group, f"{t.predicate} {t.object}"): t.count for t in calibration.triples}
        statements = list(dict.fromkeys(text for group, text in counts_said if group in groups))
        if len(groups) < 2:
            continue
        counts = np.array(
            [[counts_said.get((g, s), 0) for s in statements] for g in groups], dtype=float
        )
        cosines = vectors.embed(groups) @ vectors.embed(statements).T
        tables_by_category.append(
            CategoryEvidence(
                groups,
                {
                    "said": counts / counts.sum(axis=1, keepdims=True),
                    "believed": measure_bits(scorer.grid(groups, statements), "conditional"),
                    "embedded": cosines,
                },
            )
        )
    return tables_by_category
