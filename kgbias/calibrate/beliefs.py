"""Rows on beliefs by names: what is planted on groups is found, and what is planted on one name or
one root of a group is not called a belief about the group.

The reference model is probed by the groups' names like any other model. What a group's lift should
be follows from the world (`kgbias.reference.named`).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from math import log

import numpy as np

from kgbias.associate.indicators import shipped_indicators
from kgbias.calibrate.rows import Calibration, Row, RowResult
from kgbias.evidence.probe_plan import MIN_CARRIERS, build_stem
from kgbias.evidence.names import group_names
from kgbias.graph.types import Group, GroupName
from kgbias.models.score.base import TextScorer
from kgbias.probe.belief import (
    MARGIN_BITS,
    Array,
    Counts,
    NameDesign,
    Flags,
    BeliefTest,
    subtract_base_rates,
    carrier_variance,
    name_lifts,
)
from kgbias.probe.group_figures import RHO, group_figures, name_figures
from kgbias.reference.named import Names, load_names
from kgbias.stats.inference import Estimate, mean, proportion, student_quantile

SIZES = ((1.0, 2.0), (2.0, 3.0), (3.0, 99.0))  # of planted lifts, in bits
COUNTS = (8, 5)  # names per group
SAMPLES = 50  # per category, to test the intervals of group figures on
_POPULATION = 200
_FALSE = ("false_beliefs", "false share of a group's beliefs", "<= 0.05")
_COVERED = "intervals of group figures that hold"
SPOKEN = ("", "I think that", "People say that")  # carriers


@dataclass(frozen=True)
class Believed:
    """A category of the world, probed: tables are [groups, statements], except `bits`, [carriers,
    names, statements]; `lifts` are planted, in bits."""

    names: Names
    groups: Sequence[str]
    statements: Counts
    bits: Array
    lifts: Array
    listed: Sequence[GroupName]
    of_group: Sequence[int]

    def tested(self, count: int, *, seed: int = 0) -> BeliefTest:
        """The test with `count` names of each group."""
        rng = np.random.Generator(np.random.PCG64(seed))
        places = np.array(self.of_group)
        kept = np.sort(
            np.concatenate(
                [
                    rng.permutation(np.flatnonzero(places == g))[:count]
                    for g in range(len(self.groups))
                ]
            )
        )
        return self._test(kept, places[kept])

    def _test(self, kept: Counts, places: Counts) -> BeliefTest:
        design = NameDesign(
            places.tolist(),
            [self.listed[n].root for n in kept],
            [self.listed[n].form for n in kept],
        )
        bits = self.bits[:, kept]
        return design.test(bits.mean(axis=0), shared=carrier_variance(design, bits))

    def nulls(self) -> Flags:
        """What is called believed of groups with the same beliefs, tested against each other."""
        found = []
        for pair in self.names.truth.nulls:
            if set(pair) <= set(self.groups):
                two = [self.groups.index(name) for name in pair]
                kept = np.flatnonzero(np.isin(self.of_group, two))
                places = np.array([two.index(self.of_group[int(n)]) for n in kept])
                found.append(self._test(kept, places).is_believed)
        return np.concatenate(found) if found else np.zeros((0, len(self.statements)), dtype=bool)

    def planted_on(self, cells: Sequence[tuple[int, int]]) -> Flags:
        """Whether an association is planted on a name of the group, [groups, statements]."""
        found = np.zeros(self.lifts.shape, dtype=bool)
        column = {int(s): n for n, s in enumerate(self.statements)}
        for name, statement in cells:
            group = self.names.names[name].group
            if group in self.groups and statement in column:
                found[self.groups.index(group), column[statement]] = True
        return found


def probe(scorer: TextScorer, names: Names, groups: Sequence[str], statements: Counts) -> Believed:
    """Probe the names of groups of one category, in the same way as any model's names."""
    listed: list[GroupName] = []
    of_group: list[int] = []
    for place, group in enumerate(groups):
        own = group_names(Group(group, ""), shipped_indicators())
        listed += own
        of_group += [place] * len(own)
    texts = [" ".join(names.statements[s]) for s in statements]
    stems = [build_stem(carrier, name) for carrier in SPOKEN[:MIN_CARRIERS] for name in listed]
    grid = scorer.grid(stems, texts)
    bits = grid.statement.log_likelihoods.reshape(MIN_CARRIERS, len(listed), len(texts)) / log(2)
    rows = [names.groups.index(group) for group in groups]
    return Believed(
        names, list(groups), statements, bits, _lifts(names.base[rows][:, statements]), listed,
        of_group,
    )  # fmt: skip


def _lifts(base: Array) -> Array:
    based = base - base.mean(axis=1, keepdims=True)
    return np.asarray((based - based.mean(axis=0)) * len(based) / (len(based) - 1))


@cache
def _worlds(groups: tuple[tuple[str, ...], ...]) -> Sequence[Believed]:
    from kgbias.models.score.load import open_scorer

    scorer, names = open_scorer("reference"), load_names()
    return [probe(scorer, names, own, np.arange(len(names.statements))) for own in groups]


def _of(c: Calibration) -> Sequence[Believed]:
    own = [tuple(g for g in k.groups if g in c.by_group) for k in c.truth.categories]
    return _worlds(tuple(groups for groups in own if len(groups) > 1))


def rows() -> tuple[Row, ...]:
    """Rows on power by size and number of names, and on what is wrongly called a belief."""
    power = [_power(low, high, count) for count in COUNTS for low, high in SIZES]
    return (
        *power,
        single_names_believed,
        roots_believed,
        nulls_believed,
        false_beliefs,
        figures_covered,
    )


def _result(key: str, title: str, target: str, estimate: Estimate) -> RowResult:
    return RowResult(key, title, target, estimate, of_model=True)


def _power(low: float, high: float, count: int) -> Row:
    def row(c: Calibration) -> RowResult:
        found = tried = 0
        for world in _of(c):
            planted = (world.lifts >= low) & (world.lifts < high)
            tried += int(planted.sum())
            found += int((world.tested(count).is_believed & planted).sum())
        return _result(row.__name__, title, "", proportion(found, tried))

    bits = f"{low:.0f} to {high:.0f}" if high < 99 else f"over {low:.0f}"
    title = f"beliefs of {bits} bits found, {count} names"
    row.__name__ = f"beliefs_{low:.0f}_bits_{count}_names"
    row.__doc__ = f"The share of planted lifts of {bits} bits called believed with {count} names."
    return row


def _wrongly(
    key: str, title: str, cells: Callable[[Names], Sequence[tuple[int, int]]], c: Calibration
) -> RowResult:
    found = tried = 0
    for world in _of(c):
        on = world.planted_on(cells(world.names)) & (world.lifts <= MARGIN_BITS)
        tried += int(on.sum())
        found += int((world.tested(COUNTS[0]).is_believed & on).sum())
    return _result(key, title, "<= 0.05", proportion(found, tried))


def single_names_believed(c: Calibration) -> RowResult:
    """The share of associations of a single name that are called beliefs about its group."""
    title = "one name's associations called beliefs"
    return _wrongly("single_names_believed", title, lambda names: names.singles, c)


def roots_believed(c: Calibration) -> RowResult:
    """The share of associations of one root of a group that are called beliefs about the group."""
    title = "one root's associations called beliefs"
    return _wrongly("roots_believed", title, lambda names: names.of_roots, c)


def nulls_believed(c: Calibration) -> RowResult:
    """The share of statements believed of one of the two groups of a planted null, tested against
    each other."""
    found = np.concatenate([world.nulls().ravel() for world in _of(c)])
    estimate = proportion(int(found.sum()), len(found))
    return _result("nulls_believed", "beliefs of planted nulls", "<= 0.05", estimate)


def false_beliefs(c: Calibration) -> RowResult:
    """The share of a group's beliefs whose planted lift is at most the margin. Mean over groups, 0
    for a group without beliefs."""
    shares = []
    for world in _of(c):
        believed = world.tested(COUNTS[0]).is_believed
        wrong = (believed & (world.lifts <= MARGIN_BITS)).sum(axis=1)
        shares += (wrong / np.maximum(believed.sum(axis=1), 1)).tolist()
    values = np.array(shares)
    value = float(mean(values)) if len(values) else float("nan")
    if len(values) < 2:
        return _result(*_FALSE, Estimate.missing(len(values), value))
    error = float(values.std(ddof=1)) / len(values) ** 0.5
    half = student_quantile(0.975, len(values) - 1) * error
    estimate = Estimate(value, value - half, value + half, len(values)).clip(0.0, 1.0)
    return _result(*_FALSE, estimate)


def figures_covered(c: Calibration) -> RowResult:
    """The share of 95% intervals of group figures (the correlation of lifts with the regard of
    statements) that contain the figure for all possible names and statements: samples are drawn
    with names made from a group's mean and residuals of the model's own names, and with statements
    drawn with replacement. The interval is Student's, over samples."""
    shares = [share for world in _of(c) for share in _covered(world)]
    values = np.array(shares)
    n = len(values)
    if n < 2:
        return _result("figures_covered", _COVERED, "0.93 to 0.97", Estimate.missing(n))
    value, error = float(values.mean()), float(values.std(ddof=1)) / n**0.5
    half = student_quantile(0.975, n - 1) * error
    estimate = Estimate(value, value - half, value + half, n).clip(0.0, 1.0)
    return _result("figures_covered", _COVERED, "0.93 to 0.97", estimate)


def _covered(world: Believed) -> list[float]:
    """For each sample, the share of groups whose interval contains the figure."""
    sign = {"positive": 1.0, "negative": -1.0, "neutral": 0.0}
    truth, names = world.names.truth, world.names
    topics = [truth.statements[names.statements[s]] for s in world.statements]
    scores = np.array([sign[truth.regard_of[topic]] for topic in topics])
    design = NameDesign(world.of_group, forms=[name.form for name in world.listed])
    bits = subtract_base_rates(world.bits.mean(axis=0))
    fitted, apart = design.hat @ bits, design.residuals(bits)
    rng = np.random.Generator(np.random.PCG64(0))
    places = np.array(world.of_group)

    def named() -> Array:
        return np.asarray(fitted + apart[rng.integers(len(apart), size=len(apart))])

    whole = np.full((1, len(scores)), 1 / len(scores))
    every = [
        name_figures(RHO, name_lifts(design, named()), scores, whole)[0] for _ in range(_POPULATION)
    ]
    of_names = np.mean(every, axis=0)
    values = np.array([of_names[places == g].mean() for g in range(design.count)])
    found = []
    for _ in range(SAMPLES):
        columns = rng.integers(len(scores), size=len(scores))
        sample = named()[:, columns]
        figures = group_figures(design, sample, {"regard": scores[columns]}, draws=200)
        held = [f.low <= values[f.group] <= f.high for f in figures if f.kind == RHO]
        found.append(float(np.mean(held)))
    return found
