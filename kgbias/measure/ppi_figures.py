"""A run's figures, corrected by labels for what the scorer gets wrong.

Only labels of the random sample (`kgbias.measure.sampling`) correct figures. The label of a
statement that several raters labelled is their mean: the figure is what raters say on average. What
people say and what models say is never mixed: if people labelled any of the sample, only they
count. Statements that raters skipped are taken to be like the others of their stratum.

A group with enough labels is corrected by its own. Another is corrected by those of all groups,
and its interval takes in how far the scorer's errors differ between groups: the group is taken for
one like the others. `LabelCorrections.equal_error_p_value` tests whether they differ at all.

Labels correct figures when they are read (by `kgbias.stats.ppi`), because labels may be newer than
what is stored; measuring stores both figures. A corrected figure is named as the raw one with
`_corrected`, and never takes its place.
"""

from collections import Counter, defaultdict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from kgbias.graph.cross_mentions import exclude_cross_mentions
from kgbias.graph.draws import Draws
from kgbias.graph.labels import SKIPPED_LABEL, Label, RaterKind, describe_raters, labels_in_effect
from kgbias.graph.selection import SelectedStatements, Selection
from kgbias.graph.store import StoredRun
from kgbias.graph.types import GroupScore, Metric, TripleView
from kgbias.io.wording import pluralise
from kgbias.measure.precision import read_precision
from kgbias.measure.sampling import draw_selected_sample
from kgbias.measures import (
    BY_ALL_LABELS,
    CORRECTED_PREFIX,
    Figure,
    Measure,
    ScoreLike,
    corrected_figure,
    get_measure,
)
from kgbias.stats.estimate import COVERS_WORD, Estimate
from kgbias.stats.inference import DEFAULT_DRAWS, STATISTICS, Values, mean
from kgbias.stats.poststratification import (
    MIN_COMPARED_VALUES,
    MODEL_CHOSEN_FORM,
    StandardWeights,
    StratifiedSample,
)
from kgbias.stats.ppi import (
    NO_CORRECTED_DIFFERENCE,
    CorrectedDifference,
    CorrectedFigure,
    RectifierCell,
    ScoredStatements,
    correct_figure,
)

MIN_OWN_LABELS = 20
"""The fewest labels of a group's statements from which it is corrected by them alone: from there on
the corrected interval is no wider than that of the labels alone, whatever the scorer's errors
(docs/methods/how-well.md)."""
_PERMUTATION_DRAWS = 999  # with the order seen, 1,000: p is never 0 (Phipson and Smyth 2010)


@dataclass(frozen=True, slots=True)
class SampleLabels:
    """The labels of the random sample of a run and measure.

    Attributes:
        measure: the measure.
        kind: whether people or models gave them.
        raters: their names.
        guides: the guides that they had.
        shares: for each labelled statement, the share of its raters for each label.
        skipped: how many statements of the sample got no label.
    """

    measure: str
    kind: RaterKind
    raters: tuple[str, ...]
    guides: tuple[str, ...]
    shares: Mapping[str, Mapping[str, float]]
    skipped: int

    @property
    def labelled_by(self) -> str:
        """Who labelled, in words."""
        return f"by {describe_raters(self.kind, self.raters)}"


def read_sample_labels(
    run: StoredRun,
    measure: str,
    selected: SelectedStatements,
    selection: Selection,
    labels: Sequence[Label] | None = None,
) -> SampleLabels | None:
    """The labels by which figures of these statements, as they count between groups
    (`exclude_cross_mentions`), are corrected; None without any. `labels` are the store's of this
    measure, if they were read already."""
    current = labels_in_effect(run.store.labels(measure) if labels is None else labels)
    if not current:
        return None
    sample = draw_selected_sample(run, measure, selected, selection)
    # Raters work through the sample of the default selection, whatever selection is read later.
    ids = {sample.id, draw_selected_sample(run, measure, selected, Selection()).id}
    for kind in ("person", "model"):
        kind_labels = [x for x in current if x.kind == kind]
        drawn_ids = {x.triple_id for x in kind_labels if x.sample in ids}
        reached_ids = sample.find_reached({x.triple_id for x in kind_labels}, drawn_ids)
        reached_labels = [x for x in kind_labels if x.triple_id in reached_ids]
        given_labels = [x for x in reached_labels if x.label != SKIPPED_LABEL]
        if given_labels:
            return SampleLabels(
                measure,
                given_labels[0].kind,
                tuple(dict.fromkeys(x.rater for x in given_labels)),
                tuple(dict.fromkeys(x.guide for x in given_labels if x.guide)),
                _label_shares(given_labels),
                len({x.triple_id for x in reached_labels} - {x.triple_id for x in given_labels}),
            )
    return None


def _label_shares(labels: Sequence[Label]) -> dict[str, dict[str, float]]:
    by_triple: dict[str, list[str]] = defaultdict(list)
    for x in labels:
        by_triple[x.triple_id].append(x.label)
    return {
        id: {label: n / len(given_labels) for label, n in Counter(given_labels).items()}
        for id, given_labels in by_triple.items()
    }


@dataclass(frozen=True, slots=True)
class LabelValues:
    """What labels count as in a figure.

    Attributes:
        values: the number that each label counts as.
        bounds: the least and the greatest number.
        counts: for a figure that counts the statements of one class, that class.
    """

    values: Mapping[str, float]
    bounds: tuple[float, float]
    measure: Measure
    counts: float | None = None

    @classmethod
    def from_measure(cls, measure: Measure, figure: Figure | None = None) -> "LabelValues | None":
        """None for a measure whose labels have no order between two ends: an axis of vectors."""
        counts = None if figure is None else figure.counts
        if measure.signs:
            signs = {name: measure.signs.get(name, 0.0) for name in measure.labels}
            if counts is not None:
                label_values = {name: float(sign == counts) for name, sign in signs.items()}
                return cls(label_values, (0.0, 1.0), measure, counts)
            return cls(signs, (min(signs.values()), max(signs.values())), measure)
        if measure.sides is None or counts is not None:
            return None
        positive_label, negative_label = measure.sides
        return cls({positive_label: 1.0, negative_label: 0.0}, (0.0, 1.0), measure)

    def score_value(self, score: ScoreLike) -> float:
        """What the scorer says."""
        scorer_value = self.measure.read(score)
        return scorer_value if self.counts is None else float(scorer_value == self.counts)

    def label_value(self, shares: Mapping[str, float]) -> float:
        """What raters say."""
        return sum(self.values.get(label, 0.0) * share for label, share in shares.items())


@dataclass(frozen=True, eq=False, slots=True)
class _DifferenceSide:
    """One side of a difference: its corrected mean, the labels behind it, and whether each group is
    corrected by its own."""

    mean: CorrectedFigure
    labels: set[tuple[str, str]]
    by_own: bool


class _ChosenCells(NamedTuple):
    """The cells by which a group is corrected, and whether they are its own."""

    cells: Mapping[Hashable, RectifierCell]
    are_own: bool


class LabelCorrections:
    """The corrected figures of a measure over the statements of one arm.

    Attributes:
        labels: the labels.
        equal_error_p_value: the p-value of the hypothesis that the scorer errs alike for all
            groups, by permutation of the groups of statements with one label of the scorer; NaN if
            no two groups have labels.
    """

    def __init__(
        self,
        measure: str,
        labels: SampleLabels,
        triples: Sequence[TripleView],
        draws: Draws,
        name: str = "",
    ) -> None:
        """`name` tells these statements from those of another run or arm."""
        self.measure, self.labels, self._name = get_measure(measure), labels, name
        self._triples_by_group: dict[str, list[TripleView]] = defaultdict(list)
        for t in triples:
            if measure in t.scores:
                self._triples_by_group[t.group_id].append(t)
        self._samples_by_group = {
            id: draws.numbered_sample(group_triples)
            for id, group_triples in self._triples_by_group.items()
        }
        self._pools: dict[float | None, dict[Hashable, RectifierCell]] = {}
        levels = LabelValues.from_measure(self.measure)
        self.equal_error_p_value = (
            _equal_error_test(self._read_all_groups(levels)) if levels else float("nan")
        )

    @property
    def groups(self) -> tuple[str, ...]:
        """The ids of the groups that have statements."""
        return tuple(self._triples_by_group)

    @property
    def covers(self) -> tuple[str, ...]:
        """The variances of the crawl that intervals cover."""
        designs = [a.sample.design for a in self._samples_by_group.values()]
        return designs[0].covers if designs and designs[0] is not None else ("statements",)

    def has_enough_statements(self, group: str) -> bool:
        """Whether a group has enough statements to be compared with others."""
        return (
            group in self._samples_by_group
            and self._samples_by_group[group].n >= MIN_COMPARED_VALUES
        )

    def pooled_mix(
        self, groups: Sequence[str], other: "LabelCorrections | None" = None
    ) -> StandardWeights | None:
        """The pooled mix of prompts of these groups, of those with enough statements, here and in
        another run."""
        samples = [
            c._samples_by_group[id]
            for c in (self, other)
            if c
            for id in groups
            if c.has_enough_statements(id)
        ]
        return (
            StandardWeights.from_samples(samples)
            if samples and all(a.forms is not None for a in samples)
            else None
        )

    def corrected_figure_of(
        self, group: str, figure: Figure, mix: StandardWeights | None = None
    ) -> tuple[CorrectedFigure, bool] | None:
        """A corrected figure of a group, and whether by its own labels; None if the figure has no
        correction, or too few statements were labelled."""
        levels = LabelValues.from_measure(self.measure, figure)
        if (
            levels is None
            or figure.statistic not in ("total", "mean")
            or group not in self._triples_by_group
        ):
            return None
        group_read = self._read_group(group, levels, figure.over == "chosen")
        if figure.over == "standardised":
            if (
                mix is None
                or not mix.weights
                or not set(mix.weights) <= group_read.occurrences.sizes().keys()
            ):
                return None
        else:
            mix = None
        if not group_read.occurrences.n:
            return None
        cells, by_own_labels = self._choose_cells(group, group_read, levels, mix)
        corrected = correct_figure(
            group_read, cells, STATISTICS[figure.statistic], mix=mix, bounds=levels.bounds
        )
        return None if corrected is None else (corrected, by_own_labels)

    def corrected_difference(
        self,
        first: Sequence[str],
        second: Sequence[str],
        mix: StandardWeights | None,
        other: "LabelCorrections | None" = None,
    ) -> CorrectedDifference:
        """The corrected mean of some groups' statements minus that of others, which may be those of
        another run, at a mix of prompts; n is the number of labels by which they are corrected.
        `NO_CORRECTED_DIFFERENCE` without enough."""
        first_side, second_side = (
            self._make_side(first, mix, 1),
            (other or self)._make_side(second, mix, 2),
        )
        if first_side is None or second_side is None:
            return NO_CORRECTED_DIFFERENCE
        e = first_side.mean.subtract(second_side.mean)
        p = (
            first_side.mean.test(second_side.mean)
            if first_side.by_own and second_side.by_own
            else float("nan")
        )
        return CorrectedDifference(
            e.value, e.low, e.high, len(first_side.labels | second_side.labels), p
        )

    def _make_side(
        self, groups: Sequence[str], mix: StandardWeights | None, seed: int
    ) -> "_DifferenceSide | None":
        levels = LabelValues.from_measure(self.measure)
        reads_by_group = (
            {
                group_id: self._read_group(group_id, levels)
                for group_id in groups
                if group_id in self._triples_by_group
            }
            if levels
            else {}
        )
        if levels is None or not reads_by_group:
            return None
        cells: dict[Hashable, RectifierCell] = {}
        labels: set[tuple[str, str]] = set()
        all_own = True
        for group_id, group_read in reads_by_group.items():
            group_cells, by_own = self._choose_cells(group_id, group_read, levels, mix)
            all_own &= by_own
            cells |= {(group_id, label): cell for label, cell in group_cells.items()}
            from_groups = (group_id,) if by_own else self.groups
            labels |= {
                (self._name, triple.id)
                for group in from_groups
                for triple in self._triples_by_group[group]
                if triple.id in self.labels.shares
            }
        mean_of = correct_figure(
            _join_reads(reads_by_group), cells, mean, mix=mix, bounds=levels.bounds, seed=seed
        )
        return None if mean_of is None else _DifferenceSide(mean_of, labels, all_own)

    def _choose_cells(
        self,
        group: str,
        group_read: ScoredStatements,
        levels: LabelValues,
        mix: StandardWeights | None,
    ) -> _ChosenCells:
        """The cells by which a group is corrected, and whether they are its own."""
        pool = self._pooled_cells(levels)
        # A group with few labels of a kind leans on how much the labels of all groups spread.
        priors = {label: cell.spread(1.0) for label, cell in pool.items() if cell.is_known}
        own_cells = group_read.build_cells((self._name, group), mix, priors)
        has_enough = sum(cell.n for cell in own_cells.values()) >= MIN_OWN_LABELS
        if has_enough and all(cell.is_known for cell in own_cells.values()):
            return _ChosenCells(own_cells, True)
        if sum(cell.n for cell in pool.values()) < MIN_OWN_LABELS:
            return _ChosenCells({}, False)
        return _ChosenCells(pool, False)

    def _pooled_cells(self, levels: LabelValues) -> dict[Hashable, RectifierCell]:
        """The labelled statements of all groups, by the scorer's label."""
        if levels.counts not in self._pools:
            cells_by_label: dict[Hashable, list[RectifierCell]] = defaultdict(list)
            for group_read in self._read_all_groups(levels).values():
                for label, cell in group_read.build_cells("").items():
                    if cell.n:
                        cells_by_label[label].append(cell)
            cells = {
                label: RectifierCell.from_groups((self._name, "all groups", label), label_cells)
                for label, label_cells in cells_by_label.items()
            }
            self._pools[levels.counts] = {
                label: cell for label, cell in cells.items() if cell is not None
            }
        return self._pools[levels.counts]

    def _read_all_groups(self, levels: LabelValues) -> dict[str, ScoredStatements]:
        return {group: self._read_group(group, levels) for group in self._triples_by_group}

    def _read_group(
        self, group: str, levels: LabelValues, chosen_only: bool = False
    ) -> ScoredStatements:
        group_triples, sample = self._triples_by_group[group], self._samples_by_group[group]
        if chosen_only:
            forms = sample.forms
            is_chosen = (
                np.zeros(len(sample.sample.values), dtype=bool)
                if forms is None
                else (forms == MODEL_CHOSEN_FORM)
            )
            sample = sample.select(is_chosen)
        name, shares = self.measure.name, self.labels.shares
        return ScoredStatements(
            sample,
            np.array(
                [levels.score_value(triple.scores[name]) for triple in group_triples],
                dtype=np.float64,
            ),
            np.array(
                [
                    levels.label_value(shares[triple.id]) if triple.id in shares else np.nan
                    for triple in group_triples
                ],
                dtype=np.float64,
            ),
            [triple.scores[name].label for triple in group_triples],
        )


def _join_reads(reads_by_group: Mapping[str, ScoredStatements]) -> ScoredStatements:
    """The statements of several groups as those of one."""
    samples, start = [], 0
    for group_read in reads_by_group.values():
        samples.append(
            group_read.occurrence_values(
                np.arange(start, start + len(group_read.scores), dtype=np.float64)
            )
        )
        start += len(group_read.scores)
    return ScoredStatements(
        StratifiedSample.pool(samples),
        np.concatenate([r.scores for r in reads_by_group.values()]),
        np.concatenate([r.labels for r in reads_by_group.values()]),
        [(id, cell) for id, r in reads_by_group.items() for cell in r.cells],
    )


def _equal_error_test(reads_by_group: Mapping[str, ScoredStatements]) -> float:
    """See `LabelCorrections.equal_error_p_value`. The statistic is the sum over groups and labels
    of the scorer of n times the squared distance of the mean error from that of all groups."""
    cells: dict[Hashable, tuple[list[Values], list[int]]] = defaultdict(lambda: ([], []))
    for number, group_read in enumerate(reads_by_group.values()):
        for label, cell in group_read.build_cells("").items():
            if cell.n:
                errors, groups = cells[label]
                errors.append(cell.labels - cell.scores)
                groups += [number] * cell.n
    rng = np.random.Generator(np.random.PCG64(0))
    total, has_several_groups = np.zeros(_PERMUTATION_DRAWS + 1), False
    for errors, groups in cells.values():
        all_errors, all_groups = np.concatenate(errors), np.array(groups)
        has_several_groups |= len(set(groups)) > 1
        # Within one label of the scorer, so that groups with other labels are not taken for groups
        # that it errs about differently.
        all_errors = all_errors - all_errors.mean()
        rows = np.vstack(
            [all_errors, rng.permuted(np.tile(all_errors, (_PERMUTATION_DRAWS, 1)), axis=1)]
        )
        for group in set(groups):
            sums = rows[:, all_groups == group].sum(axis=1)
            total += sums**2 / (all_groups == group).sum()
    if not has_several_groups:
        return float("nan")
    # Orders that tie exactly are summed differently, and differ in their last bits.
    return float((total >= total[0] - 1e-9).mean())


def corrections_by_measure(
    run: StoredRun,
    selected: SelectedStatements,
    selection: Selection,
    arm: str,
    draws: Draws | None = None,
) -> dict[str, LabelCorrections]:
    """By measure, the corrections of an arm of the statements that count `exclude_cross_mentions`
    groups; empty without labels."""
    labels: dict[str, list[Label]] = defaultdict(list)
    for x in run.store.labels():
        labels[x.measure].append(x)
    corrections = {}
    for measure, measure_labels in labels.items():
        if (
            sample_labels := read_sample_labels(run, measure, selected, selection, measure_labels)
        ) is not None:
            considered = (
                selected.including_unacceptable if measure == "acceptability" else selected.triples
            )
            arm_triples = [t for t in considered if t.arm == arm]
            known_draws = draws or Draws.from_run(run, selected)
            corrections[measure] = LabelCorrections(
                measure, sample_labels, arm_triples, known_draws, f"{run.id}/{arm}"
            )
    return corrections


class CorrectedDifferences:
    """The corrected differences between the groups of a run.

    Args:
        compared_names: the names of the groups that are compared; none: all of a category.
    """

    def __init__(
        self,
        run: StoredRun,
        selected: SelectedStatements,
        selection: Selection,
        compared_names: Sequence[str] = (),
    ) -> None:
        self._ids: dict[str, dict[str, str]] = {}
        for group in run.groups:
            self._ids.setdefault(group.category, {})[group.name] = group.id
        self._by_arm = {
            arm: corrections_by_measure(run, selected, selection, arm) for arm in selected.arms
        }
        self._compared_names = compared_names

    def difference(
        self, arm: str, measure: str, category: str, first: str, second: str
    ) -> CorrectedDifference:
        """The difference between a group and another, or, if none is called `second`, all others of
        the category."""
        corrections = self._by_arm.get(arm, {}).get(measure)
        if corrections is None:
            return NO_CORRECTED_DIFFERENCE
        ids = self._ids[category]
        compared_ids = (
            [ids[n] for n in self._compared_names if n in ids]
            if len(self._compared_names) > 1
            else []
        )
        mix = corrections.pooled_mix(compared_ids or list(ids.values()))
        other_ids = [ids[second]] if second in ids else [id for n, id in ids.items() if n != first]
        return corrections.corrected_difference(
            [ids[first]], [id for id in other_ids if corrections.has_enough_statements(id)], mix
        )


class CorrectedRunDifferences:
    """The corrected differences of a group between runs, in the first arm of each: of statements
    that name no other group, as everywhere that labels correct.

    Args:
        sides: the runs, each with its statements that count.
    """

    def __init__(
        self, sides: Sequence[tuple[StoredRun, SelectedStatements]], selection: Selection
    ) -> None:
        self._corrections_by_run = {}
        for run, selected in sides:
            comparable = exclude_cross_mentions(run, selected)
            self._corrections_by_run[run.name] = corrections_by_measure(
                run, comparable, selection, comparable.arms[0]
            )
        self._ids = {g.name: g.id for run, _ in sides for g in run.groups}

    def difference(self, measure: str, group: str, first: str, second: str) -> CorrectedDifference:
        """The difference of a group between two runs, by name."""
        first_corrections, second_corrections = (
            self._corrections_by_run.get(name, {}).get(measure) for name in (first, second)
        )
        if first_corrections is None or second_corrections is None:
            return NO_CORRECTED_DIFFERENCE
        ids = [self._ids[group]]
        return first_corrections.corrected_difference(
            ids, ids, first_corrections.pooled_mix(ids, second_corrections), second_corrections
        )


def corrected_figures(
    run: StoredRun, selected: SelectedStatements, selection: Selection, draws: Draws
) -> list[GroupScore]:
    """The corrected figures of each group in each arm, named as the figures with "_corrected"; n is
    the number of labels. Empty without labels."""
    scores = []
    for arm in selected.arms:
        for corrections in corrections_by_measure(run, selected, selection, arm, draws).values():
            for category in dict.fromkeys(g.category for g in run.groups):
                ids = [g.id for g in run.groups if g.category == category]
                mix = corrections.pooled_mix(ids)
                for group_id in ids:
                    for figure in corrections.measure.figures:
                        if (
                            corrected := corrections.corrected_figure_of(group_id, figure, mix)
                        ) is None:
                            continue
                        corrected_value, by_own = corrected
                        method = _describe_method(corrections, corrected_value, by_own)
                        name = corrected_figure(figure).name
                        estimate, min_value = (
                            corrected_value.estimate,
                            0.0 if figure.counts is not None else -np.inf,
                        )
                        scores.append(
                            GroupScore.from_estimate(
                                group_id,
                                name,
                                # Correction may take a count below 0; a regard may be there.
                                estimate.clip(min_value, np.inf),
                                method,
                                selected.arm_label(arm),
                            )
                        )
    return scores


def _describe_method(
    corrections: LabelCorrections, corrected: CorrectedFigure, by_own: bool
) -> str:
    by_all = f"{BY_ALL_LABELS}, among which this one is taken for one like the others"
    label_source = "of the group's statements" if by_own else by_all
    p_value = corrections.equal_error_p_value
    has_test = not by_own and not np.isnan(p_value)
    test_text = f" (that the scorer errs alike for all: p = {p_value:.2g})" if has_test else ""
    return (
        f"{CORRECTED_PREFIX}by {pluralise(corrected.n, 'label')} {corrections.labels.labelled_by}, "
        f"{label_source}{test_text}; prediction-powered, "
        f"{DEFAULT_DRAWS} draws; {COVERS_WORD} {', '.join(corrections.covers)}, the scorer's errors"
    )


@dataclass(frozen=True, slots=True)
class ExpectedFigure(Estimate):
    """A figure as labels would make it: `value`, `low` and `high` as expected, `n` labels that
    correct it.

    Attributes:
        measure, figure, group, arm: which figure.
        raw: the figure without labels.
        by_own: whether the labels of the group's own statements correct it, or those of all groups.
        basis: what the scorer is taken to get wrong.
    """

    measure: str
    figure: str
    group: str
    arm: str
    raw: Estimate
    by_own: bool
    basis: str

    @property
    def width(self) -> float:
        """The expected width of its interval."""
        return self.high - self.low


def expect_figures(
    run: StoredRun,
    selected: SelectedStatements,
    selection: Selection,
    measure: str,
    labels: int,
    raw: Mapping[tuple[str, str, str], Estimate],
    metric: Metric | None,
) -> list[ExpectedFigure]:
    """What figures of a measure would be if the first `labels` statements of the random sample were
    labelled. Labels that exist count; others are drawn at random, given the scorer's label of the
    statement, by how often labels so far have agreed with it; without labels, by how often its
    label `Measure.hurtful` was right or missing when crawls were read; else from all labels alike,
    the worst case.
    `raw` are figures as they are, by group, arm and name."""
    sample = draw_selected_sample(run, measure, selected, selection)
    sample_labels = read_sample_labels(run, measure, selected, selection)
    considered = selected.including_unacceptable if measure == "acceptability" else selected.triples
    scorer_labels = {
        triple.id: triple.scores[measure].label for triple in considered if measure in triple.scores
    }
    probabilities, basis = _label_probabilities(
        get_measure(measure), sample_labels, scorer_labels, metric
    )
    names = {g.id: g.name for g in run.groups}
    rng = np.random.Generator(np.random.PCG64(0))
    shares = dict(sample_labels.shares) if sample_labels else {}
    for id in sample.order[:labels]:
        if id not in shares and id in scorer_labels:
            names_of, p = zip(*probabilities[scorer_labels[id]].items(), strict=True)
            # `str`: NumPy returns a string type of its own.
            shares[id] = {str(rng.choice(names_of, p=p)): 1.0}
    drawn_labels = SampleLabels(measure, "person", (), (), shares, 0)
    expected_figures = []
    for arm in selected.arms:
        arm_triples = [triple for triple in considered if triple.arm == arm]
        corrections = LabelCorrections(
            measure, drawn_labels, arm_triples, Draws.from_run(run, selected)
        )
        for figure in corrections.measure.figures:
            for group in (
                corrections.groups if figure.column and figure.over != "standardised" else ()
            ):
                corrected = corrections.corrected_figure_of(group, figure)
                raw_figure = raw.get((group, selected.arm_label(arm), figure.name))
                if corrected is not None and raw_figure is not None:
                    estimate, by_own = corrected[0].estimate, corrected[1]
                    expected_figures.append(
                        ExpectedFigure(
                            estimate.value,
                            estimate.low,
                            estimate.high,
                            estimate.n,
                            measure,
                            figure.name,
                            names[group],
                            selected.arm_label(arm),
                            raw_figure,
                            by_own,
                            basis,
                        )
                    )
    return expected_figures


_PSEUDO_LABELS = (
    1.0  # labels of each kind that a scorer's label is taken to have had before any was given
)


class _LabelProbabilities(NamedTuple):
    """How likely each label of a rater is by the scorer's, and what that rests on."""

    by_label: dict[str, dict[str, float]]
    basis: str


def _label_probabilities(
    measure: Measure,
    labels: SampleLabels | None,
    scorer_labels: Mapping[str, str],
    metric: Metric | None,
) -> _LabelProbabilities:
    """For each label of the scorer, how likely each label of a rater is, and what that rests on."""
    end_labels = measure.sides or tuple(measure.signs) or tuple(measure.labels)
    names = [n for n in measure.labels if n in end_labels or n == "neutral"]
    counts = {label: dict.fromkeys(names, _PSEUDO_LABELS) for label in {*scorer_labels.values()}}
    basis = "the worst case: labels at random"
    if labels is not None:
        basis = f"the {len(labels.shares)} labels so far"
        for id, shares in labels.shares.items():
            if id not in scorer_labels:
                continue
            for name, share in shares.items():
                if name in counts[scorer_labels[id]]:
                    counts[scorer_labels[id]][name] += share
    elif (counted_precision := read_precision(metric)) is not None:
        basis = f'how often "{measure.hurtful}" was right or missing when crawls were read'
        # What deserved the label and did not get it, among all that did not get it.
        missed_share = (counted_precision.labels_wanted - counted_precision.labels_right) / max(
            1, counted_precision.read_statements - counted_precision.labels_given
        )
        other_labels = [name for name in names if name != measure.hurtful]
        for label in counts:
            if label == measure.hurtful:
                share = (1 - counted_precision.precision.value) / len(other_labels)
                counts[label] = dict.fromkeys(other_labels, share) | {
                    label: counted_precision.precision.value
                }
            else:
                counts[label] = dict.fromkeys(names, 0.0) | {label: 1 - missed_share}
                counts[label][measure.hurtful] = missed_share
    sums = {label: sum(label_counts.values()) for label, label_counts in counts.items()}
    chances: dict[str, dict[str, float]] = {}
    for label, label_counts in counts.items():
        chances[label] = {name: count / sums[label] for name, count in label_counts.items()}
    return _LabelProbabilities(chances, basis)
