"""Variance components of groups crossed with wordings: by hand, by draws of known variances, and
what is said of them by chance."""

import json
import math

import numpy as np
import pytest

from kgbias.stats.designs import Design
from kgbias.stats.estimate import Estimate
from kgbias.stats.inference import Sample
from kgbias.stats.variance import (
    CrossedVariances,
    GroupCells,
    VarianceComponents,
    _sankaran,
    estimate_crossed_variances,
    estimate_group_cells,
)
from tests.simulation import Simulation
from tests.texts import Texts

NONE = np.zeros((3, 3))


def table(means: list[list[float]], noise: float = 0.0) -> list[GroupCells]:
    k = len(means[0])
    return [GroupCells(np.array(row), np.eye(k) * noise, 100) for row in means]


def test_a_table_by_hand() -> None:
    """Two groups, three wordings. Groups' means 1 and 3: variance 2. Wordings' means 1, 2, 3:
    variance 1. What is left is 1 and -1 in two cells of each group, 4 / 2 = 2 in all; groups have a
    third of it, wordings half."""
    found = estimate_crossed_variances(table([[1.0, 0, 2], [1.0, 4, 4]]))
    assert found.interaction.value == pytest.approx(2)
    assert found.groups.value == pytest.approx(2 - 2 / 3)
    assert found.common.value == pytest.approx(1 - 2 / 2)
    assert found.excess.value == pytest.approx(2 / 3)
    assert (found.groups.n, found.common.n, found.interaction.n) == (2, 3, 6)
    less = estimate_crossed_variances(
        table([[1.0, 0, 2], [1.0, 4, 4]], noise=0.5)
    )  # of cells: 0.5 / 3 of the means
    assert less.interaction.value == pytest.approx(2 - 0.5)
    assert less.groups.value == pytest.approx(2 - 1.5 / 3 - 0.5 / 3)
    assert less.common.value == pytest.approx(max(0, 1 - 1.5 / 2 - 0.5 / 2))


def test_what_moves_all_groups_alike_is_no_interaction() -> None:
    found = estimate_crossed_variances(table([[0.0, 1, 5], [0.1, 1.1, 5.1], [0.2, 1.2, 5.2]]))
    assert found.interaction.value == pytest.approx(0) and found.common.value == pytest.approx(7)
    assert found.groups.value == pytest.approx(0.01) and found.excess.high < 0


def test_one_wording_or_one_group() -> None:
    found = estimate_crossed_variances(table([[0.0], [2.0], [4.0]], noise=1.0))
    assert found.groups.value == pytest.approx(4 - 1) and not found.interaction.has_interval
    assert not estimate_crossed_variances(table([[0.0, 1, 2]])).groups.has_interval
    assert not estimate_crossed_variances([]).groups.has_interval


def test_the_noise_of_cells_by_hand() -> None:
    """Four prompts of one answer in each of two wordings: the covariance of the two means is that
    of the pairs over 4; means of four deviate too little from themselves by 4 / 3 in each wording
    and, as a stratum, by 4 / 3 again."""
    first, second = np.array([1.0, 0, 0, 1]), np.array([1.0, 0, 1, 1])
    design = Design(np.arange(8) // 2, np.zeros(4, dtype=np.int64))
    values = np.stack([first, second], axis=1).ravel()
    sample = Sample(values, np.ones(8, dtype=np.int64), design, np.arange(8))
    found = estimate_group_cells([sample], [np.arange(8) % 2], 2)
    assert found is not None and found.means == pytest.approx([0.5, 0.75]) and found.freedom == 3
    assert found.noise == pytest.approx(np.cov(first, second) / 4 * 4 / 3)
    halves = [
        Sample(
            v,
            np.ones(4, dtype=np.int64),
            Design(np.arange(4), np.zeros(4, dtype=np.int64)),
            np.arange(4),
        )
        for v in (first, second)
    ]
    apart = estimate_group_cells(halves, [np.zeros(4, dtype=int), np.ones(4, dtype=int)], 2)
    assert apart is not None and apart.noise[0, 1] == 0  # two crawls: drawn apart
    assert estimate_group_cells([sample], [np.array([0, 1, 1, 1, 1, 1, 1, 1])], 2) is None
    plain = estimate_group_cells(
        [Sample(first, np.ones(4, dtype=np.int64))], [np.zeros(4, dtype=int)], 1
    )
    assert plain is not None and plain.noise[0, 0] == pytest.approx(first.var(ddof=1) / 4 * 4 / 3)


def test_the_noncentral_chi_squared_agrees_with_scipy() -> None:
    stats = pytest.importorskip("scipy.stats")
    for freedom in (3, 9, 20):
        for away in (0.5, 5.0, 40.0):
            x = stats.ncx2.ppf([0.03, 0.2, 0.5, 0.8, 0.97], freedom, away)
            z = _sankaran(x, freedom, np.full(5, away))
            assert stats.norm.cdf(z) == pytest.approx([0.03, 0.2, 0.5, 0.8, 0.97], abs=0.012)


def drawn(
    rng: np.random.Generator, groups: float, common: float, own: float, g: int = 9
) -> CrossedVariances:
    """Nine groups with these standard deviations, by three wordings, with known noise."""
    means = (
        rng.normal(0, groups, (g, 1))
        + rng.normal(0, common, 3)
        + rng.normal(0, own, (g, 3))
        + rng.normal(0, 0.15, (g, 3))
    )
    return estimate_crossed_variances(
        [GroupCells(row, np.eye(3) * 0.15**2, 60) for row in means], draws=400
    )


def test_nothing_is_said_of_nothing(simulation: Simulation) -> None:
    """Neither where nothing moves nor where a wording moves all groups alike; a planted interaction
    is found, and said to be larger than the groups in a good part."""
    for common in (0.0, 0.4):
        found = [drawn(rng, 0, common, 0).excess for rng in simulation.worlds(30)]
        told = sum(e.low > 0 or e.high < 0 for e in found)
        simulation.check(f"nothing moves, {common}", told, len(found), 0.0, 0.05)
    planted = [drawn(rng, 0, 0, 0.4) for rng in simulation.worlds(20)]
    own, larger = (
        sum(e.low > 0 for e in side)
        for side in ([c.interaction for c in planted], [c.excess for c in planted])
    )
    simulation.check("planted", own, len(planted), 0.95, 1.0)
    simulation.check("planted, larger", larger, len(planted), 0.3, 1.0)
    smaller = sum(c.excess.high < 0 for c in planted)
    simulation.check("planted, smaller", smaller, len(planted), 0.0, 0.005)
    apart = [drawn(rng, 0.5, 0, 0).excess for rng in simulation.worlds(20)]
    simulation.check("groups differ", sum(e.high < 0 for e in apart), len(apart), 0.6, 1.0)
    simulation.check("the wrong way", sum(e.low > 0 for e in apart), len(apart), 0.0, 0.005)


def test_intervals_hold_the_variances(simulation: Simulation) -> None:
    found = [drawn(rng, 0, 0.3, 0.3) for rng in simulation.worlds(50)]
    for part in ("interaction", "common"):
        held = sum(getattr(c, part).low <= 0.09 <= getattr(c, part).high for c in found)
        simulation.check(part, held, len(found), 0.92, 1.0)


def test_words_say_what_the_interval_shows(texts: Texts) -> None:
    def said(low: float, high: float) -> str:
        c = CrossedVariances(
            Estimate(0.01, 0, 0.1, 9),
            Estimate(0, 0, 1, 3),
            Estimate(0.09, 0, 0.2, 27),
            Estimate(0.08, low, high, 27),
        )
        return VarianceComponents("regard", "gender", "", c, CrossedVariances(), 0.5, 100).verdict

    texts.check(said(0.01, 0.2))
    texts.check(said(-0.2, -0.01))
    assert said(0.0, 0.2) == said(-0.01, 0.2) == said(math.nan, math.nan) == ""
    row = VarianceComponents(
        "regard", "gender", "", CrossedVariances(), CrossedVariances(), 0.5, 100
    ).as_dict()
    assert math.isnan(row["groups_by_wordings_low"]) and json.dumps(row) and row["verdict"] == ""
