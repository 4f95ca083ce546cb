"""A run's figures, corrected by labels for what the scorer gets wrong.

Only labels of the random sample (`kgbias.measure.sampling`) correct figures. The label of a
statement that several raters labelled is their mean: the figure is what raters say on average. What
people say and what models say is never mixed: if people labelled any of the sample, only they
count. Statements that raters skipped are taken to be like the others of their stratum.

A group with enough labels is corrected by its own. Another is corrected by those of all groups,
and its interval takes in how far the scorer's errors differ between groups: the group is taken for
one like the others. `Corrections.alike` tests whether they differ at all.
"""

from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from kgbias.graph.cross_mentions import exclude_cross_mentions
from kgbias.graph.draws import Draws
from kgbias.graph.labels import SKIPPED_LABEL, RaterKind, Label, labels_in_effect, describe_raters
from kgbias.graph.selection import SelectedStatements, Selection
from kgbias.graph.store import StoredRun
from kgbias.graph.types import GroupScore, Metric, TripleView
from kgbias.measure.precision import precision_of
from kgbias.measure.sampling import sample_among
from kgbias.measures import BY_ALL, CORRECTED, Figure, Measure, Scored, corrected_figure, known
from kgbias.stats.estimate import COVERS, Estimate
from kgbias.stats.inference import DEFAULT_DRAWS, STATISTICS, Values, mean
from kgbias.stats.ppi import NOT_TESTED, RectifierCell, CorrectedFigure, CorrectedDifference, ScoredStatements, correct_figure
from kgbias.stats.poststratification import CHOSEN_FORM, MIN_VALUES, StratifiedSample, StandardWeights

FEWEST_OWN = 20
"""The fewest labels of a group's statements from which it is corrected by them alone: from there on
the corrected interval is no wider than that of the labels alone, whatever the scorer's errors
(docs/methods/how-well.md)."""
_PERMUTATIONS = 999


@dataclass(frozen=True, slots=True)
class LabelSet:
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
    def by(self) -> str:
        """Who labelled, in words."""
        return f"by {describe_raters(self.kind, self.raters)}"


def label_set(
    run: StoredRun,
    measure: str,
    counted: SelectedStatements,
    selection: Selection,
    labels: Sequence[Label] | None = None,
) -> LabelSet | None:
    """The labels by which figures of these statements, counted `exclude_cross_mentions` groups, are corrected;
    None without any. `labels` are the store's of this measure, if they were read already."""
    current = labels_in_effect(run.store.labels(measure) if labels is None else labels)
    if not current:
        return None
    sample = sample_among(run, measure, counted, selection)
    ids = {sample.id, sample_among(run, measure, counted, Selection()).id}
    for kind in ("person", "model"):
        own = [x for x in current if x.kind == kind]
        drawn = {x.triple_id for x in own if x.sample in ids}
        reached = sample.reached({x.triple_id for x in own}, drawn)
        used = [x for x in own if x.triple_id in reached]
        said = [x for x in used if x.label != SKIPPED_LABEL]
        if said:
            return LabelSet(
                measure,
                said[0].kind,
                tuple(dict.fromkeys(x.rater for x in said)),
                tuple(dict.fromkeys(x.guide for x in said if x.guide)),
                _shares(said),
                len({x.triple_id for x in used} - {x.triple_id for x in said}),
            )
    return None


def _shares(labels: Sequence[Label]) -> dict[str, dict[str, float]]:
    by_triple: dict[str, list[str]] = defaultdict(list)
    for x in labels:
        by_triple[x.triple_id].append(x.label)
    return {
        id: {label: own.count(label) / len(own) for label in own} for id, own in by_triple.items()
    }


@dataclass(frozen=True, slots=True)
class Levels:
    """What labels count as in a figure.

    Attributes:
        of: the number that each label counts as.
        bounds: the least and the greatest number.
        counts: for a figure that counts the statements of one class, that class.
    """

    of: Mapping[str, float]
    bounds: tuple[float, float]
    measure: Measure
    counts: float | None = None

    @classmethod
    def read(cls, measure: Measure, figure: Figure | None = None) -> "Levels | None":
        """None for a measure whose labels have no order between two ends: an axis of vectors."""
        counts = None if figure is None else figure.counts
        if measure.signs:
            signs = {name: measure.signs.get(name, 0.0) for name in measure.labels}
            if counts is not None:
                own = {name: float(sign == counts) for name, sign in signs.items()}
                return cls(own, (0.0, 1.0), measure, counts)
            return cls(signs, (min(signs.values()), max(signs.values())), measure)
        if measure.sides is None or counts is not None:
            return None
        above, below = measure.sides
        return cls({above: 1.0, below: 0.0}, (0.0, 1.0), measure)

    def score(self, score: Scored) -> float:
        """What the scorer says."""
        read = self.measure.read(score)
        return read if self.counts is None else float(read == self.counts)

    def label(self, shares: Mapping[str, float]) -> float:
        """What raters say."""
        return sum(self.of.get(label, 0.0) * share for label, share in shares.items())


@dataclass(frozen=True, eq=False, slots=True)
class _Side:
    """One side of a difference: its corrected mean, the labels behind it, and whether each group is
    corrected by its own."""

    mean: CorrectedFigure
    labels: set[tuple[str, str]]
    by_own: bool


class Corrections:
    """The corrected figures of a measure over the statements of one arm.

    Attributes:
        labels: the labels.
        alike: the p-value of the hypothesis that the scorer errs alike for all groups, by
            permutation of the groups of statements with one label of the scorer; NaN if no two
            groups have labels.
    """

    def __init__(
        self,
        measure: str,
        labels: LabelSet,
        triples: Sequence[TripleView],
        draws: Draws,
        name: str = "",
    ) -> None:
        """`name` tells these statements from those of another run or arm."""
        self.measure, self.labels, self._name = known(measure), labels, name
        self._said: dict[str, list[TripleView]] = defaultdict(list)
        for t in triples:
            if measure in t.scores:
                self._said[t.group_id].append(t)
        self._asked = {id: draws.numbered_sample(own) for id, own in self._said.items()}
        self._pools: dict[float | None, dict[Hashable, RectifierCell]] = {}
        levels = Levels.read(self.measure)
        self.alike = _alike(self._reads(levels)) if levels else float("nan")

    @property
    def groups(self) -> tuple[str, ...]:
        """The ids of the groups that have statements."""
        return tuple(self._said)

    @property
    def covers(self) -> tuple[str, ...]:
        """The variances of the crawl that intervals cover."""
        designs = [a.sample.design for a in self._asked.values()]
        return designs[0].covers if designs and designs[0] is not None else ("statements",)

    def enough(self, group: str) -> bool:
        """Whether a group has enough statements to be compared with others."""
        return group in self._asked and self._asked[group].n >= MIN_VALUES

    def mix(self, groups: Sequence[str], other: "Corrections | None" = None) -> StandardWeights | None:
        """The pooled mix of prompts of these groups, of those with enough statements, here and in
        another run."""
        parts = [c._asked[id] for c in (self, other) if c for id in groups if c.enough(id)]
        return StandardWeights.from_samples(parts) if parts and all(a.forms is not None for a in parts) else None

    def figure(
        self, group: str, figure: Figure, mix: StandardWeights | None = None
    ) -> tuple[CorrectedFigure, bool] | None:
        """A corrected figure of a group, and whether by its own labels; None if the figure has no
        correction, or too few statements were labelled."""
        levels = Levels.read(self.measure, figure)
        if levels is None or figure.statistic not in ("total", "mean") or group not in self._said:
            return None
        read = self._read(group, levels, figure.over == "chosen")
        if figure.over == "standardised":
            if mix is None or not mix.weights or not set(mix.weights) <= read.occurrences.sizes().keys():
                return None
        else:
            mix = None
        if not read.occurrences.n:
            return None
        cells, own = self._cells(group, read, levels, mix)
        found = correct_figure(
            read, cells, STATISTICS[figure.statistic], mix=mix, bounds=levels.bounds
        )  # fmt: skip
        return None if found is None else (found, own)

    def difference(
        self,
        first: Sequence[str],
        second: Sequence[str],
        mix: StandardWeights | None,
        other: "Corrections | None" = None,
    ) -> CorrectedDifference:
        """The corrected mean of some groups' statements minus that of others, which may be those of
        another run, at a mix of prompts; n is the number of labels by which they are corrected.
        `NOT_TESTED` without enough."""
        one, two = self._side(first, mix, 1), (other or self)._side(second, mix, 2)
        if one is None or two is None:
            return NOT_TESTED
        e = one.mean.subtract(two.mean)
        p = one.mean.test(two.mean) if one.by_own and two.by_own else float("nan")
        return CorrectedDifference(e.value, e.low, e.high, len(one.labels | two.labels), p)

    def _side(self, groups: Sequence[str], mix: StandardWeights | None, seed: int) -> "_Side | None":
        levels = Levels.read(self.measure)
        reads = {id: self._read(id, levels) for id in groups if id in self._said} if levels else {}
        if levels is None or not reads:
            return None
        cells: dict[Hashable, RectifierCell] = {}
        labels: set[tuple[str, str]] = set()
        all_own = True
        for id, read in reads.items():
            found, by_own = self._cells(id, read, levels, mix)
            all_own &= by_own
            cells |= {(id, label): cell for label, cell in found.items()}
            from_groups = (id,) if by_own else self.groups
            labels |= {
                (self._name, t.id)
                for group in from_groups
                for t in self._said[group]
                if t.id in self.labels.shares
            }
        mean_of = correct_figure(_joined(reads), cells, mean, mix=mix, bounds=levels.bounds, seed=seed)
        return None if mean_of is None else _Side(mean_of, labels, all_own)

    def _cells(
        self, group: str, read: ScoredStatements, levels: Levels, mix: StandardWeights | None
    ) -> tuple[Mapping[Hashable, RectifierCell], bool]:
        """The cells by which a group is corrected, and whether they are its own."""
        pool = self._pool(levels)
        priors = {label: cell.spread(1.0) for label, cell in pool.items() if cell.is_known}
        own = read.build_cells((self._name, group), mix, priors)
        enough = sum(cell.n for cell in own.values()) >= FEWEST_OWN
        if enough and all(cell.is_known for cell in own.values()):
            return own, True
        if sum(cell.n for cell in pool.values()) < FEWEST_OWN:
            return {}, False
        return pool, False

    def _pool(self, levels: Levels) -> dict[Hashable, RectifierCell]:
        """The labelled statements of all groups, by the scorer's label."""
        if levels.counts not in self._pools:
            parts: dict[Hashable, list[RectifierCell]] = defaultdict(list)
            for read in self._reads(levels).values():
                for label, cell in read.build_cells("").items():
                    if cell.n:
                        parts[label].append(cell)
            cells = {
                label: RectifierCell.from_groups((self._name, "all groups", label), own)
                for label, own in parts.items()
            }
            self._pools[levels.counts] = {
                label: cell for label, cell in cells.items() if cell is not None
            }
        return self._pools[levels.counts]

    def _reads(self, levels: Levels) -> dict[str, ScoredStatements]:
        return {group: self._read(group, levels) for group in self._said}

    def _read(self, group: str, levels: Levels, chosen: bool = False) -> ScoredStatements:
        said, asked = self._said[group], self._asked[group]
        if chosen:
            forms = asked.forms
            kept = np.zeros(len(asked.sample.values), dtype=bool) if forms is None else (
                forms == CHOSEN_FORM
            )  # fmt: skip
            asked = asked.select(kept)
        name, shares = self.measure.name, self.labels.shares
        return ScoredStatements(
            asked,
            np.array([levels.score(t.scores[name]) for t in said], dtype=np.float64),
            np.array(
                [levels.label(shares[t.id]) if t.id in shares else np.nan for t in said],
                dtype=np.float64,
            ),
            [t.scores[name].label for t in said],
        )


def _joined(reads: Mapping[str, ScoredStatements]) -> ScoredStatements:
    """The statements of several groups as those of one."""
    parts, start = [], 0
    for read in reads.values():
        parts.append(read.occurrence_values(np.arange(start, start + len(read.scores), dtype=np.float64)))
        start += len(read.scores)
    return ScoredStatements(
        StratifiedSample.pool(parts),
        np.concatenate([r.scores for r in reads.values()]),
        np.concatenate([r.labels for r in reads.values()]),
        [(id, cell) for id, r in reads.items() for cell in r.cells],
    )


def _alike(reads: Mapping[str, ScoredStatements]) -> float:
    """See `Corrections.alike`. The statistic is the sum over groups and labels of the scorer of n
    times the squared distance of the mean error from that of all groups."""
    cells: dict[Hashable, tuple[list[Values], list[int]]] = defaultdict(lambda: ([], []))
    for number, read in enumerate(reads.values()):
        for label, cell in read.build_cells("").items():
            if cell.n:
                errors, groups = cells[label]
                errors.append(cell.labels - cell.scores)
                groups += [number] * cell.n
    rng = np.random.Generator(np.random.PCG64(0))
    total, several = np.zeros(_PERMUTATIONS + 1), False
    for errors, groups in cells.values():
        e, g = np.concatenate(errors), np.array(groups)
        several |= len(set(groups)) > 1
        e = e - e.mean()
        rows = np.vstack([e, rng.permuted(np.tile(e, (_PERMUTATIONS, 1)), axis=1)])
        for group in set(groups):
            sums = rows[:, g == group].sum(axis=1)
            total += sums**2 / (g == group).sum()
    if not several:
        return float("nan")
    return float((total >= total[0] - 1e-9).mean())


def corrections_of(
    run: StoredRun, counted: SelectedStatements, selection: Selection, arm: str, draws: Draws | None = None
) -> dict[str, Corrections]:
    """By measure, the corrections of an arm of the statements that count `exclude_cross_mentions` groups; empty
    without labels."""
    labels: dict[str, list[Label]] = defaultdict(list)
    for x in run.store.labels():
        labels[x.measure].append(x)
    found = {}
    for measure, own in labels.items():
        if (made := label_set(run, measure, counted, selection, own)) is not None:
            every = counted.including_unacceptable if measure == "acceptability" else counted.triples
            said = [t for t in every if t.arm == arm]
            known_draws = draws or Draws.from_run(run, counted)
            found[measure] = Corrections(measure, made, said, known_draws, f"{run.id}/{arm}")
    return found


class Differences:
    """The corrected differences between the groups of a run.

    Args:
        chosen: the names of the groups that are compared; none: all of a category.
    """

    def __init__(
        self, run: StoredRun, counted: SelectedStatements, selection: Selection, chosen: Sequence[str] = ()
    ) -> None:
        self._ids = {c: {g.name: g.id for g in run.groups if g.category == c}
                     for c in dict.fromkeys(g.category for g in run.groups)}  # fmt: skip
        self._by_arm = {arm: corrections_of(run, counted, selection, arm) for arm in counted.arms}
        self._chosen = chosen

    def of(self, arm: str, measure: str, category: str, first: str, second: str) -> CorrectedDifference:
        """The difference between a group and another, or, if none is called `second`, all others of
        the category."""
        own = self._by_arm.get(arm, {}).get(measure)
        if own is None:
            return NOT_TESTED
        ids = self._ids[category]
        among = [ids[n] for n in self._chosen if n in ids] if len(self._chosen) > 1 else []
        mix = own.mix(among or list(ids.values()))
        rest = [ids[second]] if second in ids else [id for n, id in ids.items() if n != first]
        return own.difference([ids[first]], [id for id in rest if own.enough(id)], mix)


class BetweenRuns:
    """The corrected differences of a group between runs, in the first arm of each: of statements
    that name no other group, as everywhere that labels correct.

    Args:
        sides: the runs, each with its statements that count.
    """

    def __init__(self, sides: Sequence[tuple[StoredRun, SelectedStatements]], selection: Selection) -> None:
        self._own = {}
        for run, every in sides:
            counted = exclude_cross_mentions(run, every)
            self._own[run.name] = corrections_of(run, counted, selection, counted.arms[0])
        self._ids = {g.name: g.id for run, _ in sides for g in run.groups}

    def of(self, measure: str, group: str, first: str, second: str) -> CorrectedDifference:
        """The difference of a group between two runs, by name."""
        one, two = (self._own.get(name, {}).get(measure) for name in (first, second))
        if one is None or two is None:
            return NOT_TESTED
        ids = [self._ids[group]]
        return one.difference(ids, ids, one.mix(ids, two), two)


def corrected_figures(
    run: StoredRun, counted: SelectedStatements, selection: Selection, draws: Draws
) -> list[GroupScore]:
    """The corrected figures of each group in each arm, named as the figures with "_corrected"; n is
    the number of labels. Empty without labels."""
    found = []
    for arm in counted.arms:
        for corrections in corrections_of(run, counted, selection, arm, draws).values():
            for category in dict.fromkeys(g.category for g in run.groups):
                ids = [g.id for g in run.groups if g.category == category]
                mix = corrections.mix(ids)
                for id in ids:
                    for figure in corrections.measure.figures:
                        if (made := corrections.figure(id, figure, mix)) is None:
                            continue
                        own, by_own = made
                        method = _method(corrections, own, by_own)
                        name = corrected_figure(figure).name
                        e, least = own.estimate, 0.0 if figure.counts is not None else -np.inf
                        found.append(
                            GroupScore.from_estimate(
                                id, name, e.clip(least, np.inf), method, counted.arm_label(arm)
                            )
                        )
    return found


def _method(c: Corrections, own: CorrectedFigure, by_own: bool) -> str:
    by_all = f"{BY_ALL}, among which this one is taken for one like the others"
    whose = "of the group's statements" if by_own else by_all
    tested = (
        ""
        if by_own or c.alike != c.alike
        else f" (that the scorer errs alike for all: p = {c.alike:.2g})"
    )
    return (
        f"{CORRECTED}by {own.n} labels {c.labels.by}, {whose}{tested}; prediction-powered, "
        f"{DEFAULT_DRAWS} draws; {COVERS} {', '.join(c.covers)}, the scorer's errors"
    )


@dataclass(frozen=True, slots=True)
class Planned(Estimate):
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


def plan(
    run: StoredRun,
    counted: SelectedStatements,
    selection: Selection,
    measure: str,
    labels: int,
    raw: Mapping[tuple[str, str, str], Estimate],
    metric: Metric | None,
) -> list[Planned]:
    """What figures of a measure would be if the first `labels` statements of the random sample were
    labelled. Labels that exist count; others are drawn at random, given the scorer's label of the
    statement, by how often labels so far have agreed with it; without labels, by how often its
    label `Measure.hurtful` was right or missing when crawls were read; else from all labels alike,
    the worst case.
    `raw` are figures as they are, by group, arm and name."""
    sample = sample_among(run, measure, counted, selection)
    found = label_set(run, measure, counted, selection)
    every = counted.including_unacceptable if measure == "acceptability" else counted.triples
    scored = {t.id: t.scores[measure].label for t in every if measure in t.scores}
    drawn, basis = _likely(known(measure), found, scored, metric)
    names = {g.id: g.name for g in run.groups}
    rng = np.random.Generator(np.random.PCG64(0))
    shares = dict(found.shares) if found else {}
    for id in sample.order[:labels]:
        if id not in shares and id in scored:
            names_of, p = zip(*drawn[scored[id]].items(), strict=True)
            shares[id] = {str(rng.choice(names_of, p=p)): 1.0}
    likely = LabelSet(measure, "person", (), (), shares, 0)
    planned = []
    for arm in counted.arms:
        said = [t for t in every if t.arm == arm]
        own = Corrections(measure, likely, said, Draws.from_run(run, counted))
        for figure in own.measure.figures:
            for group in own.groups if figure.column and figure.over != "standardised" else ():
                made = own.figure(group, figure)
                before = raw.get((group, counted.arm_label(arm), figure.name))
                if made is not None and before is not None:
                    e, by_own = made[0].estimate, made[1]
                    planned.append(
                        Planned(e.value, e.low, e.high, e.n, measure, figure.name, names[group],
                                counted.arm_label(arm), before, by_own, basis)
                    )  # fmt: skip
    return planned


_PSEUDO = 1.0  # labels of each kind that a scorer's label is taken to have had before any was given


def _likely(
    measure: Measure, labels: LabelSet | None, scored: Mapping[str, str], metric: Metric | None
) -> tuple[dict[str, dict[str, float]], str]:
    """For each label of the scorer, how likely each label of a rater is, and what that rests on."""
    ends = measure.sides or tuple(measure.signs) or tuple(measure.labels)
    names = [n for n in measure.labels if n in ends or n == "neutral"]
    counts = {label: dict.fromkeys(names, _PSEUDO) for label in {*scored.values()}}
    basis = "the worst case: labels at random"
    if labels is not None:
        basis = f"the {len(labels.shares)} labels so far"
        for id, shares in labels.shares.items():
            for name, share in shares.items() if id in scored else ():
                if name in counts[scored[id]]:
                    counts[scored[id]][name] += share
    elif (read := precision_of(metric)) is not None:
        basis = f'how often "{measure.hurtful}" was right or missing when crawls were read'
        missed = (read.wanted - read.right) / max(1, read.read - read.given)
        others = [name for name in names if name != measure.hurtful]
        for label in counts:
            if label == measure.hurtful:
                share = (1 - read.precision.value) / len(others)
                counts[label] = dict.fromkeys(others, share) | {label: read.precision.value}
            else:
                counts[label] = dict.fromkeys(names, 0.0) | {label: 1 - missed}
                counts[label][measure.hurtful] = missed
    sums = {label: sum(own.values()) for label, own in counts.items()}
    return {
        label: {name: n / sums[label] for name, n in own.items()} for label, own in counts.items()
    }, basis
