"""Beliefs by groups' names: the test of lifts, its floor, and the figures of groups."""

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from kgbias.probe.belief import (
    BELIEVED,
    BOUND,
    LEANING,
    NameDesign,
    _inverse_trigamma,
    _trigamma,
    carrier_phrase_variance,
    deal_names,
    estimate_shrinkage,
    find_names_like_other_groups,
    lifts_by_root,
    name_lifts,
    regress_out_covariates,
    subtract_base_rates,
    upper_tail,
)
from kgbias.probe.group_figures import RHO, SHIFT, NonceNames, group_figures, name_figures
from kgbias.stats.inference import rank_correlation, student_quantile

GROUPS = np.repeat(np.arange(4), 6)
ROOTS = [f"{g}-{n % 2}" for g in range(4) for n in range(6)]
STATEMENTS = 60


def noise(seed: int = 0, spread: float = 0.7, names: int = 24) -> NDArray[np.float64]:
    """Names that differ by chance before statements that differ, and names with base rates."""
    rng = np.random.default_rng(seed)
    apart = rng.normal(0, spread, (names, STATEMENTS))
    return apart + rng.normal(-30, 5, STATEMENTS) + rng.normal(0, 3, (names, 1))


def test_a_lift_by_hand() -> None:
    """Names of 0 and 2 bits after the first statement and of 4 and 2 after the second: less their
    base rates -2, 0 and 2, 0, a mean of -1 and 1; the other two groups have 0 and 1, -1."""
    bits = np.array([[0.0, 4.0], [2.0, 2.0], [5.0, 5.0], [3.0, 1.0]])
    design = NameDesign([0, 0, 1, 2])
    found = design.test(bits)
    assert subtract_base_rates(bits)[0] == pytest.approx([-2, 2])
    assert found.lift[0] == pytest.approx([-1 - 0.5, 1 + 0.5])
    assert found.lift[1] == pytest.approx([0 - 0, 0.0])
    assert name_lifts(design, bits)[0] == pytest.approx([-2.5, 2.5])
    assert (found.most_influential[1:] == -1).all()  # no name can be left out of one
    # One degree of freedom within groups, the squares of both statements 2.
    assert found.variances == pytest.approx([2, 2])


def test_what_is_equally_probable_after_every_name_is_not_believed() -> None:
    """As after a hook that gives a word the same probability everywhere."""
    for statements in (1, 3):
        with np.errstate(all="raise"):
            found = NameDesign(GROUPS).test(np.full((24, statements), -15.0))
        assert (found.lift == 0).all() and not found.is_believed.any()


def test_students_distribution_is_that_of_tables() -> None:
    t = np.array([1.812461, 2.228139, -2.228139, 0.0])
    assert upper_tail(t, 10) == pytest.approx([0.05, 0.025, 0.975, 0.5], abs=1e-6)
    assert upper_tail(np.array([1.959964]), math.inf) == pytest.approx([0.025], abs=1e-6)
    assert upper_tail(np.array([6.313752]), 1) == pytest.approx([0.05], abs=1e-6)
    assert student_quantile(0.975, 10) == pytest.approx(2.228139, abs=1e-5)
    assert student_quantile(0.95, 1) == pytest.approx(6.313752, abs=1e-5)
    assert student_quantile(0.975, math.inf) == pytest.approx(1.959964, abs=1e-5)


def test_variances_are_shrunk_by_the_moments_of_their_logarithms() -> None:
    rng = np.random.default_rng(0)
    true = 2.0 * 6 / rng.chisquare(6, 20_000)  # a prior of 6 degrees of freedom around 2
    prior, usual = estimate_shrinkage(true * rng.chisquare(10, 20_000) / 10, 10)
    assert (prior, usual) == pytest.approx((6, 2), rel=0.05)
    prior, usual = estimate_shrinkage(3.0 * rng.chisquare(10, 20_000) / 10, 10)
    assert prior > 200 and usual == pytest.approx(3, rel=0.05)


@pytest.mark.parametrize("value", [1e-8, 1e-3, 1.0, 50.0, 1e9])
def test_the_inverse_of_the_trigamma_function(value: float) -> None:
    assert _trigamma(_inverse_trigamma(value)) == pytest.approx(value, rel=1e-6)


def test_leaving_a_name_out_is_fitting_without_it() -> None:
    bits = noise()
    forms = [f"form {n % 3}" for n in range(24)]
    design = NameDesign(GROUPS.tolist(), forms=forms)
    for name in (0, 7, 23):
        rest = np.delete(np.arange(24), name)
        without = NameDesign(GROUPS[rest].tolist(), forms=[forms[n] for n in rest])
        lifts = without.weights[GROUPS[name]] @ subtract_base_rates(bits)[rest]
        assert design.weights_without_name[name] @ subtract_base_rates(bits) == pytest.approx(lifts)


def test_what_all_names_of_a_group_share_is_believed() -> None:
    bits = noise()
    bits[GROUPS == 1, :3] += 4
    found = NameDesign(GROUPS.tolist(), ROOTS).test(bits)
    assert found.verdicts[1, :3].tolist() == [BELIEVED] * 3
    assert found.is_believed.sum() == 3
    assert (NameDesign(GROUPS.tolist(), ROOTS).find_believed(bits) == found.is_believed).all()
    assert (found.low <= found.lift).all() and (found.lift[1, :3] > 3).all()
    assert (found.q_values >= found.p_values).all() and (found.p_zeros <= found.p_values).all()
    assert (found.min_loo_lift <= found.lift).all() and (
        GROUPS[found.most_influential[1]] == 1
    ).all()


def test_what_is_shown_but_small_is_leaning() -> None:
    bits = noise(spread=0.2)
    bits[GROUPS == 1, 0] += 0.8
    found = NameDesign(GROUPS.tolist(), ROOTS).test(bits)
    assert found.verdicts[1, 0] == LEANING and not found.is_believed.any()


def test_an_association_of_one_name_is_no_belief() -> None:
    """Even one so strong that the group's mean is beyond 1 bit."""
    bits = noise(spread=0.3)
    bits[6, 0] += 12
    found = NameDesign(GROUPS.tolist(), ROOTS).test(bits)
    assert found.lift[1, 0] > 1.5 and found.verdicts[1, 0] != BELIEVED
    assert found.most_influential[1, 0] == 6 and found.min_loo_lift[1, 0] < 0.5


def test_what_only_the_names_of_one_root_show_is_bound_to_a_word() -> None:
    bits = noise(spread=0.3)
    bits[[6, 8, 10], 0] += 9  # half of the second group's names, all of one root
    bits[GROUPS == 2, 1] += 4
    design = NameDesign(GROUPS.tolist(), ROOTS)
    found = design.test(bits)
    assert found.verdicts[1, 0] == BOUND and found.verdicts[2, 1] == BELIEVED
    assert found.min_root_lift[1, 0] < 0.5 < found.min_root_lift[2, 1]
    lifts = lifts_by_root(design, bits, 1)
    assert lifts["1-0"][0] > 3 and abs(lifts["1-1"][0]) < 1
    one = NameDesign(GROUPS.tolist(), ["the same"] * 24).test(bits)  # roots that cannot disagree
    assert one.verdicts[1, 0] == BELIEVED and np.isnan(one.min_root_lift).all()


def test_a_noisy_group_pays_for_its_noise_and_a_quiet_one_gains_nothing() -> None:
    bits = noise()
    bits[GROUPS == 0] += np.random.default_rng(5).normal(0, 2, (6, STATEMENTS))
    bits[GROUPS == 3] = subtract_base_rates(noise(1, spread=0.01))[18:] - 30
    found = NameDesign(GROUPS.tolist()).test(bits)
    assert found.noise[0] > 2 and found.noise[1:].tolist() == [1, 1, 1]
    widths = (found.high - found.low).mean(axis=1)
    assert widths[0] > 1.3 * widths[1]


def test_what_a_form_makes_likelier_of_every_group_is_taken_out() -> None:
    """Each group has each form once, and forms differ by more than groups do."""
    groups, forms = np.repeat(np.arange(4), 3).tolist(), ["{}s", "{} people", "people from {}"] * 4
    rng = np.random.default_rng(2)
    of_form = rng.normal(0, 3, (3, STATEMENTS))
    bits = rng.normal(0, 0.1, (12, STATEMENTS)) + np.tile(of_form, (4, 1))
    bits[:3, 0] += 1.5
    plain, taken = NameDesign(groups), NameDesign(groups, forms=forms)
    assert plain.test(bits).lift == pytest.approx(taken.test(bits).lift)
    assert not plain.test(bits).is_believed.any()
    assert np.argwhere(taken.test(bits).is_believed).tolist() == [[0, 0]]


def test_names_dealt_anew_keep_their_forms() -> None:
    """Where every group has a form of its own, dealing changes nothing; where forms are mixed, what
    forms do is no longer found."""
    bits = noise(spread=0.3)
    bits[GROUPS == 1, :5] += 5
    own = deal_names(NameDesign(GROUPS.tolist()), bits, [f"form {g}" for g in GROUPS], deals=3)
    assert (own.tested, own.found, own.groups, own.deals) == (240, 5.0, 0.25, 3)
    mixed = deal_names(NameDesign(GROUPS.tolist()), bits, ["{}s"] * 24, deals=20)
    assert mixed.found < 1


def test_what_names_share_by_a_carrier_is_in_the_interval() -> None:
    rng = np.random.default_rng(3)
    design = NameDesign(GROUPS.tolist())
    own = rng.normal(0, 1, (3, 24, 2000))
    shared = rng.normal(0, 0.6, (3, 4, 2000))
    assert carrier_phrase_variance(design, own + shared[:, GROUPS]) == pytest.approx(
        0.36 / 3, rel=0.1
    )
    assert (
        carrier_phrase_variance(design, own) < 0.01
        and carrier_phrase_variance(design, own[:1]) == 0.0
    )
    narrow, wide = (design.test(own.mean(axis=0), shared=v) for v in (0.0, 0.5))
    assert (wide.high - wide.low > narrow.high - narrow.low).all()


def test_a_group_is_held_against_one_other_alone() -> None:
    """Two names of a trade against six that mean nothing."""
    bits = np.delete(noise(spread=0.3), np.s_[8:], axis=0)
    bits[6:, 0] += 5
    found = NameDesign([0] * 6 + [1, 1], against=0).test(bits)
    means = subtract_base_rates(bits)
    assert found.lift[1] == pytest.approx(means[6:].mean(axis=0) - means[:6].mean(axis=0))
    assert found.verdicts[1, 0] == BELIEVED


def test_a_name_that_goes_with_another_group_is_flagged() -> None:
    rng = np.random.default_rng(4)
    of_group = rng.normal(0, 1, (4, STATEMENTS))
    bits = noise(spread=0.5) + of_group[GROUPS]
    bits[7] += of_group[3] - of_group[1]
    assert find_names_like_other_groups(NameDesign(GROUPS.tolist()), bits) == {7: 3}


def test_a_name_that_is_another_over_again_is_no_stray() -> None:
    """The correlation of two names that behave the same is 1, which has no z."""
    bits = np.random.default_rng(0).normal(size=(6, 40))
    bits[1] = bits[0]
    assert find_names_like_other_groups(NameDesign([0, 0, 1, 1, 2, 2]), bits) == {}


def test_figures_of_statements_are_regressed_out_name_by_name() -> None:
    tokens = np.arange(STATEMENTS, dtype=float)
    bits = noise(spread=0.1) * 0 + np.arange(24)[:, None] * tokens
    assert regress_out_covariates(bits, tokens) == pytest.approx(np.zeros_like(bits), abs=1e-6)


def test_ranks_are_taken_anew_of_what_is_drawn() -> None:
    """Of each draw, Spearman's rho of the statements as often as they were drawn, ties included."""
    from scipy.stats import spearmanr

    rng = np.random.default_rng(0)
    lifts = rng.normal(size=(3, 20)).round(1)
    scores = rng.integers(-1, 2, 20).astype(float)
    times = rng.multinomial(20, np.full(20, 1 / 20), size=5)
    for draw, found in zip(times, name_figures(RHO, lifts, scores, times / 20), strict=True):
        drawn = np.repeat(np.arange(20), draw)
        by_scipy = [spearmanr(row[drawn], scores[drawn]).statistic for row in lifts]
        assert found == pytest.approx(by_scipy)


def test_the_figure_of_a_name_by_hand() -> None:
    """Lifts of 3, 1, -4 bits with scores 1, 0, -1: by bits (3 * 1 + 1 * 0) / 4 less 0."""
    lifts, scores = np.array([[3.0, 1.0, -4.0]]), np.array([1.0, 0.0, -1.0])
    whole = np.full((1, 3), 1 / 3)
    assert name_figures(SHIFT, lifts, scores, whole) == pytest.approx(np.array([[0.75]]))
    assert name_figures(RHO, lifts, scores, whole) == pytest.approx(np.array([[1.0]]))
    rng = np.random.default_rng(0)
    lifts, scores = rng.normal(size=(3, 40)), rng.integers(0, 5, 40).astype(float)
    values = name_figures(RHO, lifts, scores, np.full((1, 40), 1 / 40))[0]
    assert values == pytest.approx([rank_correlation(row, scores) for row in lifts])


def test_a_group_of_which_the_worse_is_believed() -> None:
    rng = np.random.default_rng(6)
    scores = rng.normal(0, 1, STATEMENTS)
    scores[:4] = np.nan
    bits = noise()
    bits[GROUPS == 2] -= np.nan_to_num(scores)
    empty = np.full(STATEMENTS, np.nan)
    nonce = NonceNames(noise(9)[:, ::2], np.arange(0, STATEMENTS, 2))
    found = group_figures(
        NameDesign(GROUPS.tolist()), bits, {"regard": scores, "none": empty}, nonce=nonce, draws=200
    )
    assert {f.score for f in found} == {"regard"} and len(found) == 8
    (rho,) = [f for f in found if (f.group, f.kind) == (2, RHO)]
    assert rho.high < 0 and rho.q_value < 0.05 and rho.statements == STATEMENTS - 4
    assert rho.value == pytest.approx(np.mean(rho.of_names)) and len(rho.of_names) == 6
    assert 0 < rho.floor < -rho.value and rho.floor_statements == 28
    (shift,) = [f for f in found if (f.group, f.kind) == (2, SHIFT)]
    assert shift.value < 0 and shift.q_value < 0.05


def test_one_name_makes_no_figure_of_a_group() -> None:
    """What one of six names does differs too much from the rest."""
    scores = np.random.default_rng(6).normal(0, 1, STATEMENTS)
    bits = noise()
    bits[12] -= 4 * scores
    found = group_figures(NameDesign(GROUPS.tolist()), bits, {"regard": scores}, draws=200)
    assert all(f.q_value > 0.05 for f in found if f.group == 2)


def test_two_names_a_group_in_forms_that_others_share_leave_little_to_tell() -> None:
    """Half of a group's names, as `replicate` tries: no group has much freedom by itself."""
    design = NameDesign([0, 0, 1, 1, 2, 2], forms=["a", "b", "a", "c", "a", "c"])
    assert design.degrees == pytest.approx(1)
    assert max(design.free[design.groups == g].sum() for g in range(3)) < 0.51
    found = design.test(noise(names=6))
    assert np.all((found.p_values >= 0) & (found.p_values <= 1))
