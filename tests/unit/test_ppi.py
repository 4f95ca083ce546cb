"""Prediction-powered figures, against published formulas and by simulation."""

import math
from collections.abc import Hashable

import numpy as np
import pytest

from kgbias.stats.designs import Design
from kgbias.stats.inference import Sample
from kgbias.stats.poststratification import StratifiedSample
from kgbias.stats.ppi import (
    CorrectedFigure,
    RectifierCell,
    ScoredStatements,
    correct_figure,
    tune_weight,
    wilson_by_variance,
)


def once(scores: np.ndarray, labels: np.ndarray) -> ScoredStatements:
    """Statements that were each said once, all with one label of the scorer."""
    k = len(scores)
    sample = Sample.from_values(np.arange(k, dtype=np.float64))
    return ScoredStatements(StratifiedSample(sample), scores, labels, ["all"] * k)


def test_one_cell_is_ppi_plus_plus() -> None:
    """The estimate and standard error of PPI++ for a mean (Angelopoulos, Duchi and Zrnic 2023,
    section 2 and example 1), with n labelled and N unlabelled statements:

    theta = lam mean_N(f) + mean_n(y) - lam mean_n(f), lam = cov_n(y, f) / ((1 + n / N) var_n(f)),
    variance lam^2 var_N(f) / N + var_n(y - lam f) / n.
    """
    rng = np.random.default_rng(0)
    n, more = 400, 1600
    y = rng.normal(size=n + more)
    f = 0.7 * y + rng.normal(size=n + more)
    labels = np.where(np.arange(n + more) < n, y, np.nan)
    read = once(f, labels)
    found = correct_figure(read, read.build_cells("g"), draws=20_000)
    assert found is not None
    cov = np.cov(y[:n], f[:n], ddof=0)
    lam = cov[0, 1] / cov[1, 1] / (1 + n / more)
    theta = lam * f[n:].mean() + y[:n].mean() - lam * f[:n].mean()
    variance = lam**2 * f.var() / more + (y[:n] - lam * f[:n]).var() / n
    assert found.value == pytest.approx(theta, abs=1e-12)
    assert found.scorer_weight / (1 + n / more) == pytest.approx(lam)
    assert found.resamples.std() == pytest.approx(np.sqrt(variance), rel=0.04)
    assert found.n == n


def test_classes_are_post_stratified() -> None:
    """By hand: 6 of 10 statements were scored 1, of which raters gave 1, 1, 0 to three; 4 were
    scored 0, of which raters gave 0, 1 to two: 0.6 * 2/3 + 0.4 * 1/2 = 0.6."""
    scores = np.array([1.0] * 6 + [0.0] * 4)
    labels = np.array([1, 1, 0, np.nan, np.nan, np.nan, 0, 1, np.nan, np.nan])
    read = ScoredStatements(
        StratifiedSample(Sample.from_values(np.arange(10.0))),
        scores,
        labels,
        [str(s) for s in scores],
    )
    found = correct_figure(read, read.build_cells("g"), bounds=(0, 1))
    assert found is not None and found.value == pytest.approx(0.6) and found.n == 5


def test_counts_are_weights() -> None:
    """By hand: of one cell, a statement said 3 times is labelled 1, one said once is labelled 0;
    the one without a label is taken for their weighted mean."""
    sample = Sample(np.arange(3.0), np.array([3, 1, 4]))
    read = ScoredStatements(
        StratifiedSample(sample), np.ones(3), np.array([1.0, 0.0, np.nan]), ["x"] * 3
    )
    found = correct_figure(read, read.build_cells("g"))
    assert found is not None and found.value == pytest.approx(0.75)


def test_all_labelled_leaves_the_crawl() -> None:
    """With a label for every statement, the scorer does not matter, and what is left is the
    sampling of the crawl, by its clusters."""
    rng = np.random.default_rng(1)
    y = np.repeat(rng.integers(0, 2, 50), 4).astype(np.float64)
    design = Design(np.repeat(np.arange(50), 4), np.zeros(50, dtype=np.int64))
    sample = Sample(np.arange(200.0), np.ones(200, dtype=np.int64), design, np.arange(200))
    read = ScoredStatements(StratifiedSample(sample), rng.normal(size=200), y, ["x"] * 200)
    found = correct_figure(read, read.build_cells("g"), draws=10_000)
    assert found is not None and found.value == pytest.approx(y.mean())
    assert found.resamples.std() == pytest.approx(y[::4].std(ddof=1) / np.sqrt(50), rel=0.04)


def test_a_useless_scorer_is_left_out() -> None:
    rng = np.random.default_rng(2)
    labels, scores = rng.normal(size=(2, 5000))
    cell = RectifierCell("x", labels, scores, np.ones(5000))
    assert tune_weight([(1.0, cell)]) < 0.05


def test_no_error_found_is_not_no_error() -> None:
    """30 labels that all agree: the interval reaches about as far as Wilson's for 0 of 30."""
    scores, labels = np.zeros(1000), np.full(1000, np.nan)
    labels[:30] = 0
    found = correct_figure(
        once(scores, labels), once(scores, labels).build_cells("g"), bounds=(0, 1)
    )
    assert found is not None and found.value == 0
    e = found.estimate
    assert e.low == 0 and 0.09 < e.high < 0.14
    assert wilson_by_variance(0.0, (1 / 32) * (31 / 32) / 30, 30)[1] == pytest.approx(
        0.1135, abs=1e-3
    )


def test_too_few_labels_give_no_figure() -> None:
    labels = np.full(10, np.nan)
    labels[0] = 1
    assert (
        correct_figure(once(np.ones(10), labels), once(np.ones(10), labels).build_cells("g"))
        is None
    )


def test_what_is_borrowed_takes_in_how_far_groups_differ() -> None:
    """Groups whose mean errors are -1 and 1, ten labels each: between them lies a variance of about
    1, and a group that borrows may be as far from their mean."""

    def cell(error: float) -> RectifierCell:
        noise = np.tile([-0.1, 0.1], 5)
        return RectifierCell("g", error + noise, np.zeros(10), np.ones(10), unlabelled_share=0.5)

    far = RectifierCell.from_groups("all", [cell(e) for e in (-1.0, 1.0) * 5])
    near = RectifierCell.from_groups("all", [cell(0.0)] * 10)
    assert far is not None and near is not None
    assert far.between_variance == pytest.approx(10 / 9, rel=0.05) and near.between_variance == 0
    assert far.n == near.n == 100 and far.groups == 10
    assert RectifierCell.from_groups("all", [cell(0.0)] * 2) is None
    rng = np.random.default_rng(4)
    assert far.draw_errors(1.0, 20_000, rng).std() > 10 * near.draw_errors(1.0, 20_000, rng).std()


def test_figures_that_share_a_cell_share_its_error() -> None:
    """Two groups corrected by the same labels, with the same shares of scores: what the labels
    leave open cancels in their difference."""
    rng = np.random.default_rng(3)
    scores = np.array([0.0, 1.0] * 500)
    reads = [once(scores, np.full(1000, np.nan)) for _ in range(2)]
    pool: dict[Hashable, RectifierCell] = {
        "all": RectifierCell(
            "all", rng.integers(0, 2, 40).astype(np.float64), np.zeros(40), np.ones(40)
        )
    }
    a, b = (correct_figure(r, pool, seed=n) for n, r in enumerate(reads))
    assert a is not None and b is not None
    assert a.subtract(b).high - a.subtract(b).low < 0.7 * (a.estimate.high - a.estimate.low)


def test_a_difference_is_tested_by_hand() -> None:
    """By hand: variances 0.02 (crawl, 38 degrees of freedom), 0.01 (9) and 0.02 (19), 0.03 (4) give
    t = 0.5 / sqrt(0.08) = 1.76777 with 0.0064 / (0.0004/38 + 0.0001/9 + 0.0004/19 + 0.0009/4) =
    23.90 degrees of freedom, and p = 0.0899 (R: 2 * pt(-1.76777, 23.9031))."""
    pytest.importorskip("scipy")
    none = np.zeros(1)
    one = CorrectedFigure(0.2, none, 10, 1.0, variance_parts=((0.02, 38.0), (0.01, 9.0)))
    two = CorrectedFigure(-0.3, none, 10, 1.0, variance_parts=((0.02, 19.0), (0.03, 4.0)))
    assert one.test(two) == pytest.approx(0.08986, abs=2e-4) == two.test(one)
    assert math.isnan(CorrectedFigure(0.2, none, 9, 1.0).test(CorrectedFigure(0.1, none, 9, 1.0)))


def test_prompts_have_freedom_within_their_stratum() -> None:
    """Two prompts of one wording, 1, and three of another, 2; never less than 1."""
    prompts = np.array([0, 0, 1, 2, 3, 4])
    places = np.arange(6)
    values = places.astype(np.float64)
    design = Design(prompts, np.array([0, 0, 1, 1, 1]))

    def freedom(kept: np.ndarray) -> float:
        sample = Sample(values, kept.astype(np.int64), design, places)
        read = ScoredStatements(StratifiedSample(sample), values, values, ["all"] * 6)
        return read.freedom(None)

    assert freedom(prompts >= 0) == 3 and freedom(prompts < 2) == 1 and freedom(prompts < 1) == 1


def test_the_variance_of_a_test_is_that_of_its_interval() -> None:
    rng = np.random.default_rng(4)
    scores = rng.integers(0, 2, 400).astype(np.float64)
    labels = np.where(
        np.arange(400) < 80, np.where(rng.random(400) < 0.8, scores, 1 - scores), np.nan
    )
    read = ScoredStatements(
        StratifiedSample(Sample.from_values(np.arange(400.0))),
        scores,
        labels,
        [str(s) for s in scores],
    )
    found = correct_figure(read, read.build_cells("g"), draws=20_000)
    assert found is not None and len(found.variance_parts) == 3
    (_, crawl), *cells = found.variance_parts
    assert crawl == 399 and sum(freedom for _, freedom in cells) == 78
    total = sum(v * d / (d - 2) for v, d in found.variance_parts)  # of Student's t
    assert found.resamples.var() == pytest.approx(total, rel=0.06)
