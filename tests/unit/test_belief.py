"""Believed: likelier of this group than of the others, beyond the base rate and beyond chance."""

import math

import numpy as np
import pytest

from kgbias.probe.belief import believed, contrast, contrast_intervals, lift_p_values

# three groups before four statements, log2 probabilities; the second is 2 bits up everywhere
VALUES = np.array([[-4.0, -8, -8, -8], [-6.0, -6, -3, -6], [-8.0, -8, -8, -5]])


def test_the_lift_by_hand() -> None:
    """c(0, 0) = -4 - (-6 - 8) / 2 = 3; the others of its row are -8 + 7, -8 + 5.5, -8 + 5.5. Their
    mean is (3 - 1 - 2.5 - 2.5) / 4 = -0.75, so the lift is 3.75."""
    lift = contrast(VALUES)
    assert lift[0].tolist() == pytest.approx([3.75, -0.25, -1.75, -1.75])
    assert lift.mean(axis=0) == pytest.approx(0) and lift.mean(axis=1) == pytest.approx(0)


def test_a_group_that_is_likely_before_everything_has_no_lift() -> None:
    values = np.tile([[0.0], [-5], [-9]], (1, 50))
    assert contrast(values) == pytest.approx(0)


def test_two_groups_mirror_each_other() -> None:
    lift = contrast(np.array([[-1.0, -3, -2], [-2.0, -2, -2]]))
    assert lift[0].tolist() == [1, -1, 0] and lift[1].tolist() == [-1, 1, 0]


def test_the_interval_is_over_the_other_groups() -> None:
    low, high = contrast_intervals(VALUES)
    lift = contrast(VALUES)
    assert (low <= lift + 1e-9).all() and (lift <= high + 1e-9).all()
    # Held against the third group alone: 4 - mean(4, 0, 0, -3); against the second alone: 2 less
    # the mean of (2, -2, -5, -2).
    assert (low[0, 0], high[0, 0]) == pytest.approx((3.75, 3.75))
    assert (low[0, 1], high[0, 1]) == pytest.approx((-0.25, -0.25))
    assert (low[0, 2], high[0, 2]) == pytest.approx((-3.25, -0.25))
    assert np.isnan(contrast_intervals(VALUES[:2])).all()


def test_the_p_value_by_hand() -> None:
    """Lifts that were said: 5, 3 and -1; that were not: 4, 0 and -2. Of 1 + 3, as large as each
    are 1, 2 and 3: p = 1/4, 2/4, 3/4. Corrected: 3 p / place = 3/4 each."""
    lift = np.array([[5.0, 3, -1], [4.0, 0, -2]])
    said = np.array([[True, True, True], [False, False, False]])
    assert lift_p_values(lift, said) == pytest.approx(np.array([[0.75] * 3, [0.75, 0.75, 1]]))


def test_what_nothing_was_said_of_has_no_p_value() -> None:
    assert np.isnan(lift_p_values(np.ones((2, 3)), np.zeros((2, 3), dtype=bool))).all()


def test_what_is_said_where_it_is_likely_is_found() -> None:
    rng = np.random.default_rng(0)
    values = rng.normal(size=(5, 100))
    own = rng.integers(5, size=100)
    said = np.arange(5)[:, None] == own
    lift = contrast(values + 8 * said)
    p = lift_p_values(lift, said)
    assert (p[said] <= 0.05).mean() > 0.95
    assert (p[~said] <= 0.05).mean() < 0.05


def test_what_is_said_at_random_is_not_believed() -> None:
    """Of 100 worlds in which what is said has nothing to do with what is likely, at most about one
    in twenty has any finding (5 and two standard errors of 2.2)."""
    rng = np.random.default_rng(1)
    wrong = 0
    for _ in range(100):
        lift = contrast(rng.standard_t(3, size=(4, 60)))
        said = np.arange(4)[:, None] == rng.integers(4, size=60)
        wrong += bool((lift_p_values(lift, said)[said] <= 0.05).any())
    assert wrong <= 9


def test_all_three_are_needed() -> None:
    assert believed(1, 1.0, 0.05)
    assert not believed(2, 3.0, 0.001) and believed(2, 3.0, 0.001, most=2)
    assert not believed(1, 0.99, 0.001) and believed(1, 0.6, 0.001, margin=0.5)
    assert believed(1, 3.0, 0.2, level=0.2)
    assert not believed(1, 3.0, 0.051) and not believed(1, 3.0, math.nan)
