"""Sentences, marks and lists that state a difference, a rank or a belief, against made-up cases
that try to make each of them say more than was tested. Those of `compare` and the first screen are
in test_permuted.py and test_findings.py."""

import math

import numpy as np
import pytest

from kgbias.cli.compare import _print_group_tests, _print_variance, _print_verdicts
from kgbias.cli.evidence import _describe_way, _print_groups
from kgbias.compare.families import GroupTest
from kgbias.compare.model_contrasts import ModelContrast
from kgbias.evidence import ReplicationRate
from kgbias.evidence.replication import _summarise_retries
from kgbias.report.beliefs import draw_lift_score_correlations
from kgbias.report.multi_run import draw_forest, draw_rank_lines
from kgbias.report.multi_run_statements import draw_panels
from kgbias.stats.inference import Estimate
from kgbias.stats.variance import CrossedVariances, VarianceComponents, note_narrow_intervals
from tests.conftest import require_modules
from tests.texts import Texts

require_modules("matplotlib", "scipy")


# Figures: levels and ranks have one colour, differences the colour of their decision


def colours(figure: object) -> set[object]:
    from matplotlib.colors import to_hex

    return {
        to_hex(line.get_color())
        for axes in figure.axes  # type: ignore[attr-defined]
        for line in axes.lines
        if line.get_marker() == "o"
    }


def contrast(value: float, low: float, high: float, p: float) -> ModelContrast:
    d = Estimate(value, low, high, 20)
    return ModelContrast("regard", "G", "a", "b", (9, 9), (0.0, 0.0), d, p, 1.0, 0.1, "prompts", p)


def test_levels_and_ranks_are_not_coloured() -> None:
    levels = [Estimate(0.5, 0.2, 0.8, 9), Estimate(-0.1, -0.4, 0.2, 9), Estimate(-0.5, -1, -0.1, 9)]
    rows = [(f"G{n}", [e, e]) for n, e in enumerate(levels)]
    assert len(colours(draw_panels(rows, ["a", "b"], "x"))) == 1
    ranks = [
        [Estimate(1, 1, 1, 9), Estimate(3, 3, 3, 9)],
        [Estimate(3, 3, 3, 9)] * 2,
        [Estimate(3, 2, 3, 9), Estimate(1, 1, 1, 9)],
    ]
    assert len(colours(draw_rank_lines(["A", "B", "C"], ranks, ["a", "b"], "x"))) == 1


def test_a_difference_is_grey_unless_it_was_shown() -> None:
    grey = colours(draw_forest([contrast(0.1, -0.1, 0.3, 0.001)], "x"))  # its interval holds 0
    assert grey == colours(draw_forest([contrast(0.2, 0.1, 0.3, 0.2)], "x"))
    assert grey == colours(draw_forest([contrast(-0.2, 0.1, 0.3, 0.001)], "x"))  # the other side
    assert grey.isdisjoint(colours(draw_forest([contrast(0.2, 0.1, 0.3, 0.001)], "x")))


# Beliefs


def figure_of(group: str, value: float, low: float, high: float, q: float) -> dict[str, object]:
    return {
        "group": group,
        "score": "regard",
        "value": value,
        "low": low,
        "high": high,
        "kind": "rho",
        "q_value": q,
        "p_value": q,
        "floor": 0.2,
        "names": {"a": value},
        "statements": 9,
    }


def test_a_believed_figure_is_shown_by_p_and_interval(
    capsys: pytest.CaptureFixture[str], texts: Texts
) -> None:
    made = [
        figure_of("Sure", 0.4, 0.1, 0.7, 0.01),
        figure_of("Held", 0.4, -0.1, 0.9, 0.01),
        figure_of("Likely", 0.4, 0.1, 0.7, 0.2),
        figure_of("None", -0.1, -0.4, 0.2, 0.6),
    ]
    _print_groups(made)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[1:-1]] == ["Sure"]
    _print_groups(made[1:])
    texts.check_lines(lines[0], "corrected p")
    assert capsys.readouterr().out == ""
    figure = draw_lift_score_correlations(made)
    marks = [m for axes in figure.axes for m in axes.collections if m.get_linewidths()[0] == 0.8]
    filled = [m for m in marks if tuple(m.get_facecolors()[0][:3]) != (1.0, 1.0, 1.0)]
    assert len(marks) == 4 and len(filled) == 1


def test_splits_of_one_finding_make_no_interval() -> None:
    signs, shows = [True] * 90 + [False] * 10, [True] * 80 + [False] * 20
    for by in ("names", "roots"):
        found = _summarise_retries(by, signs, shows, [])
        assert (found.same_sign.value, found.tried) == (0.9, 100)
        assert not found.same_sign.has_interval and not found.replication_rate.has_interval
    assert _summarise_retries("crawl", signs, shows, []).replication_rate.has_interval


# Variance


def test_wordings_and_groups_are_ranked_only_by_the_interval_of_their_difference() -> None:
    rng = np.random.default_rng(1)
    for _ in range(200):
        value = float(rng.normal(0, 0.1))
        low, high = sorted(value + rng.normal(0, 0.1, 2))
        excess = Estimate(value, low, high, 6)
        c = CrossedVariances(
            Estimate(0.1, 0, 1, 3), Estimate(0.1, 0, 1, 3), Estimate(0.2, 0, 1, 9), excess
        )
        said = VarianceComponents("regard", "gender", "", c, CrossedVariances(), 0.5, 90).verdict
        if low <= 0 <= high:
            assert said == ""
        else:
            assert said.startswith(
                "the wording moves" if low > 0 else "the groups of gender differ"
            )
    assert (
        VarianceComponents(
            "regard", "g", "", CrossedVariances(), CrossedVariances(), 0.5, 9
        ).verdict
        == ""
    )


def test_intervals_over_few_wordings_are_said_to_be_narrow(
    capsys: pytest.CaptureFixture[str],
    texts: Texts,
) -> None:
    e = Estimate(0.1, 0.0, 0.2, 3)
    for own, warned in ((e, True), (Estimate.missing(), False)):
        one = VarianceComponents(
            "regard",
            "g",
            "",
            CrossedVariances(e, e, own, Estimate.missing()),
            CrossedVariances(),
            1,
            9,
        )
        _print_variance([one])
        assert (
            "where these matter, the intervals are too narrow" in capsys.readouterr().out
        ) == warned
        assert ("only the few wordings at hand" in note_narrow_intervals([one])) == warned
    crossed = CrossedVariances(e, e, e, Estimate.missing())
    both = VarianceComponents("regard", "g", "", crossed, crossed, 1, 9)
    texts.check_lines(note_narrow_intervals([both]), "few wordings")


def test_a_small_p_that_shows_nothing_is_explained_beside_the_rule(
    capsys: pytest.CaptureFixture[str],
    texts: Texts,
) -> None:
    d = Estimate(0.1, -0.01, 0.3, 18)
    test = GroupTest(
        "regard",
        "x",
        "A",
        "B",
        (9, 9),
        (0.1, 0.0),
        d,
        0.03,
        p_adjusted=0.03,
        family=1,
        omnibus_p=0.03,
        detectable=0.4,
    )
    _print_group_tests("r", [test], [])
    said = capsys.readouterr().out
    texts.check_lines(said, "interval contains")
    texts.check_lines(said, "together differ")


def test_what_one_of_several_tests_would_find_is_said_to_be_of_it_alone(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """All together have to differ too, which takes more: with ten groups by much."""
    d = Estimate(0.1, -0.1, 0.3, 18)
    for family, alone in ((3, True), (1, False)):
        test = GroupTest(
            "regard",
            "x",
            "A",
            "B",
            (9, 9),
            (0.1, 0.0),
            d,
            0.3,
            p_adjusted=0.3,
            family=family,
            omnibus_p=0.01,
            detectable=0.4,
        )
        assert test.verdict.endswith("in 80% of cases, by this test alone") == alone
        _print_verdicts([], [test] * family, "regard")
        assert ("by each test alone" in capsys.readouterr().out) == alone


def test_nearly_all_that_was_found_again_is_not_said_to_be_all(texts: Texts) -> None:
    nearly = Estimate(939 / 941, math.nan, math.nan, 941)
    (line,) = _describe_way(ReplicationRate("names", 941, nearly, Estimate(0.5, 0.4, 0.6, 941)), {})
    texts.check(line)
