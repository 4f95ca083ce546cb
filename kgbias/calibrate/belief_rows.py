"""Rows on beliefs by names: what is planted on groups is found, and what is planted on one name or
one root of a group is not called a belief about the group.

The reference model is probed by the groups' names like any other model. What a group's lift should
be follows from the world (`kgbias.reference.planted_names`).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from math import log

import numpy as np

from kgbias.calibrate.calibration_rows import Calibration, RowFunction, RowResult
from kgbias.evidence.indicators import shipped_indicators
from kgbias.evidence.names import group_names
from kgbias.evidence.probe_plan import MIN_CARRIERS, build_stem
from kgbias.graph.types import Group, GroupName
from kgbias.models.score.base import TextScorer
from kgbias.probe.belief import (
    MARGIN_BITS,
    Array,
    BeliefTest,
    Counts,
    Flags,
    NameDesign,
    carrier_phrase_variance,
    name_lifts,
    subtract_base_rates,
)
from kgbias.probe.group_figures import RHO, group_figures, name_figures
from kgbias.reference.planted_names import PlantedNames, load_names
from kgbias.stats.inference import Estimate, mean, proportion, student_quantile

LIFT_RANGES = ((1.0, 2.0), (2.0, 3.0), (3.0, 99.0))  # of planted lifts, in bits; 99: no end
NAME_COUNTS = (8, 5)  # names per group
SAMPLES_PER_CATEGORY = 50  # whose intervals of group figures are tested
_POPULATION_DRAWS = 200  # of names, whose mean stands for all possible names
_FALSE_BELIEFS_ROW = ("false_beliefs", "false share of a group's beliefs", "<= 0.05")
_COVERED_TITLE = "intervals of group figures that hold"
CARRIER_TEXTS = ("", "I think that", "People say that")  # carriers


@dataclass(frozen=True)
class ProbedCategory:
    """A category of the reference world, probed by names: tables are [groups, statements], except
    `bits`, [carriers, names, statements]; `lifts` are planted, in bits."""

    names: PlantedNames
    groups: Sequence[str]
    statements: Counts
    bits: Array
    lifts: Array
    probed_names: Sequence[GroupName]
    group_indices: Sequence[int]

    def run_test(self, count: int, *, seed: int = 0) -> BeliefTest:
        """The test with `count` names of each group."""
        rng = np.random.Generator(np.random.PCG64(seed))
        places = np.array(self.group_indices)
        name_indices = np.sort(
            np.concatenate(
                [
                    rng.permutation(np.flatnonzero(places == g))[:count]
                    for g in range(len(self.groups))
                ]
            )
        )
        return self.test_names(name_indices)

    def test_names(self, name_indices: Counts) -> BeliefTest:
        """The test with these names, of which every group has some."""
        return self._run_design_test(name_indices, np.array(self.group_indices)[name_indices])

    def _run_design_test(self, name_indices: Counts, places: Counts) -> BeliefTest:
        design = NameDesign(
            places.tolist(),
            [self.probed_names[n].root for n in name_indices],
            [self.probed_names[n].form for n in name_indices],
        )
        bits = self.bits[:, name_indices]
        return design.test(bits.mean(axis=0), shared=carrier_phrase_variance(design, bits))

    def believed_nulls(self) -> Flags:
        """What is called believed of groups with the same beliefs, tested against each other."""
        believed_tables = []
        for pair in self.names.truth.nulls:
            if set(pair) <= set(self.groups):
                pair_indices = [self.groups.index(name) for name in pair]
                name_indices = np.flatnonzero(np.isin(self.group_indices, pair_indices))
                places = np.array(
                    [pair_indices.index(self.group_indices[int(n)]) for n in name_indices]
                )
                believed_tables.append(self._run_design_test(name_indices, places).is_believed)
        if not believed_tables:
            return np.zeros((0, len(self.statements)), dtype=bool)
        return np.concatenate(believed_tables)

    def planted_cells(self, cells: Sequence[tuple[int, int]]) -> Flags:
        """Whether an association is planted on a name of the group, [groups, statements]."""
        planted = np.zeros(self.lifts.shape, dtype=bool)
        column_of_statement = {int(s): n for n, s in enumerate(self.statements)}
        for name, statement in cells:
            group = self.names.names[name].group
            if group in self.groups and statement in column_of_statement:
                planted[self.groups.index(group), column_of_statement[statement]] = True
        return planted


def probe_category(
    scorer: TextScorer, names: PlantedNames, groups: Sequence[str], statements: Counts
) -> ProbedCategory:
    """Probe the names of groups of one category, in the same way as any model's names."""
    probed_names: list[GroupName] = []
    group_indices: list[int] = []
    for place, group in enumerate(groups):
        names_of_group = group_names(Group(group, ""), shipped_indicators())
        probed_names += names_of_group
        group_indices += [place] * len(names_of_group)
    texts = [" ".join(names.statements[s]) for s in statements]
    stems = [
        build_stem(carrier, name)
        for carrier in CARRIER_TEXTS[:MIN_CARRIERS]
        for name in probed_names
    ]
    grid = scorer.grid(stems, texts)
    bits = grid.statement.log_likelihoods.reshape(
        MIN_CARRIERS, len(probed_names), len(texts)
    ) / log(2)
    rows = [names.groups.index(group) for group in groups]
    return ProbedCategory(
        names,
        list(groups),
        statements,
        bits,
        _planted_lifts(names.group_bits[rows][:, statements]),
        probed_names,
        group_indices,
    )


def _planted_lifts(base: Array) -> Array:
    """The lift of each group over the mean of the others, [groups, statements], in bits."""
    centred = base - base.mean(axis=1, keepdims=True)
    # The mean of all holds the group itself: the factor makes it the mean of the others.
    return np.asarray((centred - centred.mean(axis=0)) * len(centred) / (len(centred) - 1))


@cache  # several rows, and every crawl, ask for the same
def _probe_group_lists(groups: tuple[tuple[str, ...], ...]) -> Sequence[ProbedCategory]:
    from kgbias.models.score.load import open_scorer

    scorer, names = open_scorer("reference"), load_names()
    return [
        probe_category(scorer, names, category_groups, np.arange(len(names.statements)))
        for category_groups in groups
    ]


def probe_categories(calibration: Calibration) -> Sequence[ProbedCategory]:
    """The categories of which the run has at least two groups, with those groups."""
    groups_by_category = [
        tuple(g for g in k.groups if g in calibration.by_group)
        for k in calibration.truth.categories
    ]
    return _probe_group_lists(tuple(groups for groups in groups_by_category if len(groups) > 1))


def build_belief_rows() -> tuple[RowFunction, ...]:
    """Rows on power by size and number of names, and on what is wrongly called a belief."""
    power = [_power_row(low, high, count) for count in NAME_COUNTS for low, high in LIFT_RANGES]
    return (
        *power,
        single_names_believed,
        roots_believed,
        nulls_believed,
        false_beliefs,
        figures_covered,
    )


def _model_row(key: str, title: str, target: str, estimate: Estimate) -> RowResult:
    return RowResult(key, title, target, estimate, of_model=True)


def _power_row(low: float, high: float, count: int) -> RowFunction:
    def row(calibration: Calibration) -> RowResult:
        found_count = tried_count = 0
        for category in probe_categories(calibration):
            planted = (category.lifts >= low) & (category.lifts < high)
            tried_count += int(planted.sum())
            found_count += int((category.run_test(count).is_believed & planted).sum())
        return _model_row(row.__name__, title, "", proportion(found_count, tried_count))

    bits = f"{low:.0f} to {high:.0f}" if high < 99 else f"over {low:.0f}"
    title = f"beliefs of {bits} bits found, {count} names"
    row.__name__ = f"beliefs_{low:.0f}_bits_{count}_names"
    row.__doc__ = f"The share of planted lifts of {bits} bits called believed with {count} names."
    return row


def _false_belief_row(
    key: str,
    title: str,
    cells: Callable[[PlantedNames], Sequence[tuple[int, int]]],
    calibration: Calibration,
) -> RowResult:
    found_count = tried_count = 0
    for category in probe_categories(calibration):
        # What the group itself believes would be no false belief.
        planted = category.planted_cells(cells(category.names)) & (category.lifts <= MARGIN_BITS)
        believed = category.run_test(NAME_COUNTS[0]).is_believed
        tried_count += int(planted.sum())
        found_count += int((believed & planted).sum())
    return _model_row(key, title, "<= 0.05", proportion(found_count, tried_count))


def single_names_believed(calibration: Calibration) -> RowResult:
    """The share of associations of a single name that are called beliefs about its group."""
    title = "one name's associations called beliefs"
    return _false_belief_row(
        "single_names_believed", title, lambda names: names.name_associations, calibration
    )


def roots_believed(calibration: Calibration) -> RowResult:
    """The share of associations of one root of a group that are called beliefs about the group."""
    title = "one root's associations called beliefs"
    return _false_belief_row(
        "roots_believed", title, lambda names: names.root_associations, calibration
    )


def nulls_believed(calibration: Calibration) -> RowResult:
    """The share of statements believed of one of the two groups of a planted null, tested against
    each other."""
    categories = probe_categories(calibration)
    believed = np.concatenate([category.believed_nulls().ravel() for category in categories])
    estimate = proportion(int(believed.sum()), len(believed))
    return _model_row("nulls_believed", "beliefs of planted nulls", "<= 0.05", estimate)


def false_beliefs(calibration: Calibration) -> RowResult:
    """The share of a group's beliefs whose planted lift is at most the margin. Mean over groups, 0
    for a group without beliefs."""
    shares = []
    for category in probe_categories(calibration):
        believed = category.run_test(NAME_COUNTS[0]).is_believed
        wrong = (believed & (category.lifts <= MARGIN_BITS)).sum(axis=1)
        shares += (wrong / np.maximum(believed.sum(axis=1), 1)).tolist()
    values = np.array(shares)
    value = float(mean(values)) if len(values) else float("nan")
    if len(values) < 2:
        return _model_row(*_FALSE_BELIEFS_ROW, Estimate.missing(len(values), value))
    error = float(values.std(ddof=1)) / len(values) ** 0.5
    half_width = student_quantile(0.975, len(values) - 1) * error
    estimate = Estimate(value, value - half_width, value + half_width, len(values)).clip(0.0, 1.0)
    return _model_row(*_FALSE_BELIEFS_ROW, estimate)


def figures_covered(calibration: Calibration) -> RowResult:
    """The share of 95% intervals of group figures (the correlation of lifts with the regard of
    statements) that contain the figure for all possible names and statements: samples are drawn
    with names made from a group's mean and residuals of the model's own names, and with statements
    drawn with replacement. The interval is Student's, over samples."""
    categories = probe_categories(calibration)
    values = np.array([share for category in categories for share in _covered_shares(category)])
    sample_count = len(values)
    if sample_count < 2:
        return _model_row(
            "figures_covered", _COVERED_TITLE, "0.93 to 0.97", Estimate.missing(sample_count)
        )
    value, error = float(values.mean()), float(values.std(ddof=1)) / sample_count**0.5
    half_width = student_quantile(0.975, sample_count - 1) * error
    estimate = Estimate(value, value - half_width, value + half_width, sample_count).clip(0.0, 1.0)
    return _model_row("figures_covered", _COVERED_TITLE, "0.93 to 0.97", estimate)


def _covered_shares(category: ProbedCategory) -> list[float]:
    """For each sample, the share of groups whose interval contains the figure."""
    sign = {"positive": 1.0, "negative": -1.0, "neutral": 0.0}
    truth, names = category.names.truth, category.names
    topics = [truth.statements[names.statements[s]] for s in category.statements]
    scores = np.array([sign[truth.regard_of[topic]] for topic in topics])
    design = NameDesign(category.group_indices, forms=[name.form for name in category.probed_names])
    bits = subtract_base_rates(category.bits.mean(axis=0))
    fitted, residuals = design.hat @ bits, design.residuals(bits)
    rng = np.random.Generator(np.random.PCG64(0))
    places = np.array(category.group_indices)

    def draw_names() -> Array:
        return np.asarray(fitted + residuals[rng.integers(len(residuals), size=len(residuals))])

    uniform_weights = np.full((1, len(scores)), 1 / len(scores))
    population = [
        name_figures(RHO, name_lifts(design, draw_names()), scores, uniform_weights)[0]
        for _ in range(_POPULATION_DRAWS)
    ]
    mean_by_name = np.mean(population, axis=0)
    values = np.array([mean_by_name[places == g].mean() for g in range(design.count)])
    shares = []
    for _ in range(SAMPLES_PER_CATEGORY):
        columns = rng.integers(len(scores), size=len(scores))
        sample = draw_names()[:, columns]
        figures = group_figures(design, sample, {"regard": scores[columns]}, draws=200)
        covered = [
            figure.low <= values[figure.group] <= figure.high
            for figure in figures
            if figure.kind == RHO
        ]
        shares.append(float(np.mean(covered)))
    return shares
