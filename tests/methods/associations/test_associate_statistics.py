"""The statistics of the association tests: golden values by hand and by listing every case."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kgbias.errors import DataError, UsageError
from kgbias.methods.associations.effect import (
    effect_estimate,
    effect_size,
    measure_associations,
    scale_to_unit,
    single_category_effect,
)
from kgbias.methods.associations.permutation import count_sums, permutation_test
from kgbias.stats.inference import benjamini_hochberg, holm

Floats = np.ndarray


def brute(x: Floats, y: Floats, tails: str, strict: bool = False) -> tuple[int, int]:
    """The permutation test as it is defined: every partition, the means compared."""
    values = np.concatenate([x, y])
    observed = x.mean() - y.mean()
    count = total = 0
    for chosen in itertools.combinations(range(len(values)), len(x)):
        inside = np.isin(np.arange(len(values)), chosen)
        difference = values[inside].mean() - values[~inside].mean()
        if tails == "two":
            difference, bound = abs(difference), abs(observed)
        else:
            bound = observed
        count += difference > bound + 1e-9 if strict else difference >= bound - 1e-9
        total += 1
    return int(count), total


def test_effect_size_by_hand() -> None:
    x, y = np.array([3.0, 5.0]), np.array([1.0, 1.0])
    # mean 4 and 1; all four: mean 2.5, squares 0.25 + 6.25 + 2.25 + 2.25 = 11
    assert effect_size(x, y) == pytest.approx(3 / math.sqrt(11 / 3))
    assert effect_size(x, y, "population") == pytest.approx(3 / math.sqrt(11 / 4))
    # within: squares 1 + 1 + 0 + 0 = 2 over 2 degrees of freedom
    assert effect_size(x, y, "pooled") == pytest.approx(3.0)
    assert effect_size(np.array([1.0]), np.array([0.0]), "pooled") == math.inf


def test_associations_by_hand() -> None:
    a, b = np.array([[2.0, 0.0], [0.0, 3.0]]), np.array([[-1.0, 0.0]])
    w = np.array([[5.0, 0.0], [1.0, 1.0]])
    # (1 + 0) / 2 - (-1), and (r + r) / 2 - (-r) with r = 1 / sqrt 2
    assert measure_associations(w, a, b) == pytest.approx([1.5, 2 / math.sqrt(2)])


def test_single_category_by_hand() -> None:
    a, b = np.array([[1.0, 0.0], [1.0, 0.0]]), np.array([[0.0, 1.0], [-1.0, 0.0]])
    # cosines with (1, 0): 1, 1 against 0, -1; squares about 0.25: 0.5625 x 2 + 0.0625 + 1.5625
    assert single_category_effect(np.array([7.0, 0.0]), a, b) == pytest.approx(
        1.5 / math.sqrt(2.75 / 3)
    )
    with pytest.raises(DataError, match="cancel"):
        single_category_effect(np.array([[1.0, 0.0], [-1.0, 0.0]]), a, b)


@pytest.mark.parametrize("tails", ["one", "two"])
@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("sizes", [(1, 1), (1, 6), (2, 3), (5, 4), (6, 6)])
def test_exact_p_value_is_what_listing_every_partition_gives(
    sizes: tuple[int, int], tails: str, strict: bool
) -> None:
    rng = np.random.default_rng(sum(sizes))
    for digits in (0, 1, 9):  # coarse values have many ties
        values = rng.normal(size=sum(sizes)).round(digits)
        x, y = values[: sizes[0]], values[sizes[0] :]
        p = permutation_test(x, y, tails=tails, strict=strict)  # type: ignore[arg-type]
        assert (p.at_least, p.partitions) == brute(x, y, tails, strict)
        assert p.method == "exact"


def test_p_value_by_hand() -> None:
    # X = {3, 4}, Y = {1, 2}: of 6 partitions one has a sum >= 7; in size, {1, 2} as well.
    x, y = np.array([3.0, 4.0]), np.array([1.0, 2.0])
    assert permutation_test(x, y).value == 1 / 6
    assert permutation_test(x, y, tails="two").value == 2 / 6
    assert permutation_test(x, y, strict=True).value == 0
    assert permutation_test(y, x).value == 1


def test_a_tie_that_rounding_breaks_is_a_tie() -> None:
    # 0.1 + 0.2 and 0.3 + 0 are equal, though not in floating point: {0.1, 0.2} ties with {0, 0.3}.
    x, y = np.array([0.0, 0.3]), np.array([0.1, 0.2])
    assert permutation_test(x, y).at_least == brute(x * 10, y * 10, "one")[0] == 4
    assert permutation_test(y, x).at_least == 4
    nothing = np.array([1e-17, -1e-17, 2e-17])
    assert permutation_test(nothing, nothing[::-1]).value == 1


def test_meeting_in_the_middle_on_sets_that_can_be_counted_otherwise() -> None:
    """n + n zeros and ones: how many of the C(2n, n) partitions give X at least k ones follows from
    the hypergeometric distribution."""
    for n, ones, ks in ((25, 20, (10,)), (20, 16, (0, 7, 8, 16))):
        values = np.array([1.0] * ones + [0.0] * (2 * n - ones))
        for k in ks:
            expected = sum(
                math.comb(ones, j) * math.comb(2 * n - ones, n - j) for j in range(k, ones + 1)
            )
            assert count_sums(values, n, k - 0.5) == expected


def test_too_many_words_are_sampled_and_say_so() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(0.4, 1, 40), rng.normal(0, 1, 40)
    p = permutation_test(x, y, samples=999)
    assert (p.method, p.partitions) == ("sampled", 1000)
    assert p == permutation_test(x, y, samples=999)
    assert p != permutation_test(x, y, samples=999, seed=1)
    with pytest.raises(UsageError, match="too many"):
        permutation_test(x, y, how="exact")


def test_sampled_p_value_is_near_the_exact_one_and_never_zero() -> None:
    rng = np.random.default_rng(3)
    x, y = rng.normal(1, 1, 9), rng.normal(0, 1, 9)
    exact = permutation_test(x, y).value
    sampled = permutation_test(x, y, how="sampled", samples=20_000)
    assert sampled.value == pytest.approx(exact, abs=4 * math.sqrt(exact / 20_000))
    far = permutation_test(x + 100, y, how="sampled", samples=99)
    assert far.value == 1 / 100  # the observed partition alone
    normal = permutation_test(x, y, how="normal", samples=20_000)
    assert normal.value == pytest.approx(exact, rel=0.5)


def test_sampling_is_without_replacement() -> None:
    """Of 70 partitions 34 distinct ones are drawn, beside the observed one: the largest of all is
    never counted twice."""
    x, y = np.arange(8.0)[4:], np.arange(8.0)[:4]
    p = permutation_test(x, y, how="sampled", samples=34)
    assert (p.partitions, p.at_least) == (35, 1)
    assert permutation_test(x, y, how="sampled", samples=40).method == "exact"


def test_false_positives_keep_their_level() -> None:
    """Under the null the exact p-value is at most 5% in at most 5% of cases, sizes unequal."""
    rng = np.random.default_rng(7)
    p = [
        permutation_test(*np.split(rng.exponential(size=13), [5]), tails="two").value
        for _ in range(600)
    ]
    assert np.mean(np.array(p) <= 0.05) <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 600)


def test_the_interval_is_that_of_the_noncentral_t() -> None:
    stats = pytest.importorskip("scipy.stats")
    x, y = np.array([1.0, 2.0, 4.0, 3.0, 2.5, 3.5]), np.array([0.0, 1.0, 3.0, 0.5, 2.0, 2.5])
    found = effect_estimate(x, y, "pooled")
    t, scale = stats.ttest_ind(x, y).statistic, math.sqrt(1 / 6 + 1 / 6)
    for end, tail in ((found.low, 0.975), (found.high, 0.025)):
        assert stats.nct.cdf(t, 10, end / scale) == pytest.approx(tail, abs=0.004)
    whole = effect_estimate(x, y)
    assert whole.low == pytest.approx(found.low / math.sqrt(1 + found.low**2 / 4))
    assert whole.low < whole.value < whole.high < 2
    assert math.isnan(effect_estimate(x[:1], y).low)
    assert math.isnan(effect_estimate(np.ones(3), np.zeros(3)).low)  # nothing differs within


def test_the_interval_holds_the_d_of_few_words() -> None:
    """Of 6 + 6 words, whose d over all words is 1 / sqrt(1 + 1 / 4)."""
    rng, true, held = np.random.default_rng(5), 1 / math.sqrt(1.25), 0
    for _ in range(600):
        e = effect_estimate(rng.normal(1, 1, 6), rng.normal(0, 1, 6))
        held += e.low <= true <= e.high
    assert 0.93 <= held / 600 <= 0.97


def test_corrections_by_hand() -> None:
    p = [0.01, 0.04, 0.03, 0.005]
    assert holm(p) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert benjamini_hochberg(p) == pytest.approx([0.02, 0.04, 0.04, 0.02])
    assert holm([0.6, 0.7]) == pytest.approx([1, 1])
    assert len(holm([])) == len(benjamini_hochberg([])) == 0
    with pytest.raises(ValueError):
        holm([float("nan")])


def test_benjamini_hochberg_agrees_with_scipy() -> None:
    stats = pytest.importorskip("scipy.stats")
    p = np.random.default_rng(0).uniform(size=40) ** 2
    assert benjamini_hochberg(p.tolist()) == pytest.approx(stats.false_discovery_control(p))


def test_vectors_without_a_direction_are_refused() -> None:
    good = np.ones((2, 3))
    for bad, message in ((np.nan, "NaN"), (np.inf, "NaN or infinity"), (0.0, "zero")):
        rows = good.copy()
        rows[1] = bad
        with pytest.raises(DataError, match=message):
            scale_to_unit(rows)
    # tiny and huge entries have a direction all the same
    assert np.linalg.norm(scale_to_unit(good * 1e-300), axis=1) == pytest.approx([1, 1])
    assert np.linalg.norm(scale_to_unit(good * 1e300), axis=1) == pytest.approx([1, 1])


vectors = st.integers(0, 2**32 - 1).map(
    lambda seed: [
        np.random.default_rng((seed, part)).normal(size=(n, 6))
        for part, n in enumerate((5, 4, 3, 4))
    ]
)


@settings(max_examples=40, deadline=None)
@given(vectors, st.sampled_from(["sample", "population", "pooled"]))
def test_swapping_flips_the_sign(sets: list[Floats], spread: str) -> None:
    def d(x: Floats, y: Floats, a: Floats, b: Floats) -> float:
        return effect_size(measure_associations(x, a, b), measure_associations(y, a, b), spread)  # type: ignore[arg-type]

    x, y, a, b = sets
    assert d(y, x, a, b) == pytest.approx(-d(x, y, a, b))
    assert d(x, y, b, a) == pytest.approx(-d(x, y, a, b))
    assert d(y, x, b, a) == pytest.approx(d(x, y, a, b))


@settings(max_examples=40, deadline=None)
@given(vectors)
def test_identical_sets_give_nothing(sets: list[Floats]) -> None:
    x, y, a, b = sets
    s, t = measure_associations(x, a, b), measure_associations(y, a, b)
    assert effect_size(s, s) == 0
    assert permutation_test(s, s, tails="two").value == 1
    # A and B the same words in another order: rounding must not become an effect
    same = measure_associations(x, a, a[::-1]), measure_associations(y, a, a[::-1])
    assert effect_size(*same) == 0 and effect_size(*same, "pooled") == 0
    assert permutation_test(*same).value == 1
    assert effect_size(s, t) != 0


@settings(max_examples=40, deadline=None)
@given(vectors, st.floats(1e-6, 1e6))
def test_scaling_vectors_changes_nothing(sets: list[Floats], factor: float) -> None:
    x, y, a, b = sets
    scaled = (
        measure_associations(x * factor, a, b * factor),
        measure_associations(y / factor, a, b * factor),
    )
    plain = measure_associations(x, a, b), measure_associations(y, a, b)
    assert effect_size(*scaled) == pytest.approx(effect_size(*plain))
    assert permutation_test(*scaled).at_least == permutation_test(*plain).at_least


def test_rnsb_of_what_is_no_number_is_one_line() -> None:
    pytest.importorskip("sklearn")
    from kgbias.errors import DataError
    from kgbias.methods.associations.methods import rnsb

    own = np.ones((2, 3))
    with pytest.raises(DataError, match="no number"):
        rnsb(own, own, own, np.full((2, 3), np.nan))
