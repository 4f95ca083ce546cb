"""Variance components by hand, by other people's code, and without bias where cells are unequal."""

import math

import numpy as np
import pytest

from kgbias.variance import Components, components, nested


def test_a_nested_table_by_hand() -> None:
    """Two groups of two wordings of two values. Mean squares: groups 8 x 2^2 = 32 on 1 degree of
    freedom; wordings (1 + 1) x 4 / 2 on 2, so 4 / ... = 2 x (1^2 + 1^2) x 2 / 2 = 4; within 4 x 0.5
    / 4 = 0.5. So wordings (4 - 0.5) / 2 = 1.75, and groups (32 - 4) / 4 = 7."""
    groups = np.array([0, 0, 0, 0, 1, 1, 1, 1])
    wordings = np.array([0, 0, 1, 1, 0, 0, 1, 1])
    centre = np.array([-2.0, -2, -2, -2, 2, 2, 2, 2]) + np.array([-1.0, -1, 1, 1] * 2)
    values = centre + np.array([-0.5, 0.5] * 4)
    found = components(values, {"groups": groups, "wordings": nested(groups, wordings)})
    assert found == pytest.approx({"groups": 7.0, "wordings": 1.75, "within": 0.5})
    twice = components(
        np.append(values, 3.0), {"groups": np.append(groups, 1), "one": np.zeros(9, dtype=int)}
    )
    assert math.isnan(twice["one"])  # one level: nothing to tell
    counted = components(values, {"groups": groups}, counts=np.full(8, 3.0))
    assert counted == pytest.approx(
        components(np.repeat(values, 3), {"groups": np.repeat(groups, 3)})
    )


def test_equal_cells_agree_with_reml() -> None:
    mixed = pytest.importorskip("statsmodels.regression.mixed_linear_model")
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(12), 20)
    values = rng.normal(0, 1, 12)[groups] + rng.normal(0, 0.7, 240)
    fit = mixed.MixedLM(values, np.ones((240, 1)), groups).fit()
    found = components(values, {"groups": groups})
    assert found["groups"] == pytest.approx(fit.cov_re[0, 0], rel=1e-3)
    assert found["within"] == pytest.approx(fit.scale, rel=1e-3)


def test_unequal_crossed_cells_have_no_bias() -> None:
    """Wordings and recrawls of a group, crossed, with cells of one to nine values."""
    rng = np.random.default_rng(1)
    sums = np.zeros(4)
    for _ in range(150):
        size = rng.integers(1, 10, (8, 3, 4))
        groups, wordings, crawls = (np.repeat(x, size.ravel()) for x in
                                    (axis.ravel() for axis in np.indices(size.shape)))  # fmt: skip
        w, c = nested(groups, wordings), nested(groups, crawls)
        values = (
            rng.normal(0, 1.0, 8)[groups] + rng.normal(0, 0.8, 24)[w]
            + rng.normal(0, 0.6, 32)[c] + rng.normal(0, 1.0, len(groups))
        )  # fmt: skip
        found = components(values, {"groups": groups, "wordings": w, "recrawls": c})
        sums += [found[name] for name in ("groups", "wordings", "recrawls", "within")]
    assert sums / 150 == pytest.approx([1.0, 0.64, 0.36, 1.0], rel=0.12)


def test_no_effect_is_no_variance_and_words_say_what_is_larger() -> None:
    values = np.tile([0.0, 1.0], 20)
    assert components(values, {"groups": np.repeat([0, 1], 20)})["groups"] == 0
    assert math.isnan(components(np.array([1.0]), {"groups": np.array([0])})["within"])
    c = Components("regard", "gender", "", 0.01, 0.09, math.nan, 0.5, 100)
    assert c.verdict == (
        "the wording moves a group's regard more (sd 0.30) than the groups of gender differ "
        "(sd 0.10)"
    )
    assert not Components("regard", "gender", "", 0.09, 0.01, 0.02, 0.5, 100).verdict
