"""How much more a group has at a statement than the others, beyond its base rate."""

import numpy as np
import pytest

from kgbias.probe.run_probes import contrast_intervals, lifts_over_others

# three groups before four statements, log2 probabilities; the second is 2 bits up everywhere
VALUES = np.array([[-4.0, -8, -8, -8], [-6.0, -6, -3, -6], [-8.0, -8, -8, -5]])


def test_the_lift_by_hand() -> None:
    """c(0, 0) = -4 - (-6 - 8) / 2 = 3; the others of its row are -8 + 7, -8 + 5.5, -8 + 5.5. Their
    mean is (3 - 1 - 2.5 - 2.5) / 4 = -0.75, so the lift is 3.75."""
    lift = lifts_over_others(VALUES)
    assert lift[0].tolist() == pytest.approx([3.75, -0.25, -1.75, -1.75])
    assert lift.mean(axis=0) == pytest.approx(0) and lift.mean(axis=1) == pytest.approx(0)


def test_a_group_that_is_likely_before_everything_has_no_lift() -> None:
    values = np.tile([[0.0], [-5], [-9]], (1, 50))
    assert lifts_over_others(values) == pytest.approx(0)


def test_two_groups_mirror_each_other() -> None:
    lift = lifts_over_others(np.array([[-1.0, -3, -2], [-2.0, -2, -2]]))
    assert lift[0].tolist() == [1, -1, 0] and lift[1].tolist() == [-1, 1, 0]


def test_the_interval_is_over_the_other_groups() -> None:
    low, high = contrast_intervals(VALUES)
    lift = lifts_over_others(VALUES)
    assert (low <= lift + 1e-9).all() and (lift <= high + 1e-9).all()
    # Beyond their own means, the others have -0.75, -0.75, 2.25, -0.75 and -0.75, -0.75, -0.75,
    # 2.25: Student's half width of two is 12.706 times half their difference.
    assert high[0] - lift[0] == pytest.approx([0, 0, 12.7062 * 1.5, 12.7062 * 1.5], rel=1e-5)
    assert lift[0] - low[0] == pytest.approx(high[0] - lift[0])
    assert np.isnan(contrast_intervals(VALUES[:2])).all()
