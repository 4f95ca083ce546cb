"""The table of measures: an entry is all that a new measure takes."""

import math

import pytest

from kgbias import measures
from kgbias.cli.measure import _figure_cell
from kgbias.graph.types import Group, Run, Score, TripleView
from kgbias.measure.figures import group_figures
from kgbias.measures import MEASURES, Figure, Measure
from kgbias.models.base import ModelInfo
from kgbias.stats.estimate import Estimate, nan_to_none
from kgbias.stats.inference import STATISTICS
from kgbias.study.records import Figure as StoredFigure
from tests.texts import Texts

LENGTH = Measure(
    "length",
    range=None,
    direction="higher is longer",
    labels={},
    form=".0f",
    figures=(Figure("length_mean", "mean length", ".1f", "higher is longer", "mean"),),
    worst="lowest",
)


def test_every_entry_says_what_it_is() -> None:
    for name, measure in MEASURES.items():
        assert measure.name == name and measure.direction and measure.labels and measure.figures
        assert any(figure.column for figure in measure.figures)
        assert measure.range is None or measure.range[0] < measure.range[1]
        for figure in measure.figures:
            of_statements = not figure.name.endswith("_name_effect")
            assert (figure.statistic in STATISTICS) == of_statements and figure.direction
            assert format(0.5, figure.form)
    names = [figure.name for measure in MEASURES.values() for figure in measure.figures]
    assert len(set(names)) == len(names) and set(names) < set(measures.figures_by_name())
    axes = [name for name, measure in MEASURES.items() if measure.in_vectors]
    assert axes == ["warmth", "competence"]
    assert {*axes, "regard", "toxicity", "identity_attack", "acceptability"} == set(MEASURES)


def test_the_sign_of_regard() -> None:
    read = MEASURES["regard"].read
    assert [read(Score("t", 0.9, label)) for label in ("positive", "neutral", "negative")] == [
        1.0,
        0.0,
        -1.0,
    ]
    assert read(Score("t", 0.9, "other")) == 0
    assert MEASURES["toxicity"].read(Score("t", 0.9, "toxic")) == 0.9
    assert measures.get_measure("new").read(Score("t", 0.25)) == 0.25


def test_columns_are_those_of_the_run_in_the_order_of_the_table() -> None:
    names = lambda present: [m.name for m in measures.column_measures(present)]  # noqa: E731
    assert names([]) == ["regard", "toxicity"]
    assert names(["zeta", "warmth", "toxicity"]) == ["regard", "toxicity", "warmth", "zeta"]


def test_a_new_measure_has_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(MEASURES, "length", LENGTH)
    group = Group("Women", "gender")
    run = Run("r", ModelInfo("m"), {}, (group,))
    triples = [
        TripleView(str(n), group.id, "Women", "are", "x", 2, {"length": Score(str(n), n)})
        for n in (0, 1)
    ]
    (figure,) = group_figures(run, triples)
    assert (figure.measure, figure.value, figure.n) == ("length_mean", 0.5, 4)


def test_what_an_estimate_says(texts: Texts) -> None:
    e = Estimate(0.42, 0.31, 0.55, 120)
    texts.check(str(e))
    texts.check(e._repr_html_())
    alone = Estimate.missing(1, 2.0)
    assert str(alone) == "2, n = 1" and alone._repr_html_() == "<b>2</b>, n = 1"
    assert alone.format_interval() == "-" and e.format_interval("+.1f") == "+0.3 to +0.6"
    assert alone.as_dict() == {"value": 2.0, "low": None, "high": None, "n": 1}
    assert str(Estimate.missing()) == "undefined, n = 0"
    assert nan_to_none({"a": [math.nan, 1.0, (math.inf,)]}) == {"a": [None, 1.0, [None]]}


def test_a_mean_that_could_be_anything_is_shown_without_an_interval() -> None:
    overall = measures.figures_by_name()["overall_regard"]
    for high, shown in ((30.0, "-"), (9.5, "-1.00 to +0.50")):
        cell = _figure_cell(overall, StoredFigure(5.0, -30.0, high, 19, "Nurses", overall.name))
        assert cell.value.value == pytest.approx(5 / 19)
        assert cell.value.format_interval("+.2f") == shown
