"""Tables as a page, a paper and a spreadsheet have them."""

import csv
import io
import math

from kgbias.io.columns import CellWithForm, Column
from kgbias.io.text import format_p_value
from kgbias.report.cards import TableCard, sample_size_words
from kgbias.report.tables import Table, as_csv, latex_label_prefix, table_latex
from kgbias.stats.estimate import Estimate
from tests.texts import Texts

TABLE = Table(
    "01-regard",
    "Regard of <people>.",
    (
        Column("Group"),
        Column("n", ".0f"),
        Column("overall", "+.2f", interval=True),
        Column("p", format_p_value),
    ),
    [
        ["=SUM(1)", 40, Estimate(-0.12, -0.2, 0.05, 40), 1e-9],
        ["B-C", 7, Estimate.missing(7, 1.0), 0.5],
    ],
    "Values from -1 to 1.",
)


def test_an_interval_stands_with_its_figure(texts: Texts) -> None:
    shown = TableCard(TABLE)
    assert [c.name for c in shown.columns] == ["Group", "n", "overall", "p"]
    assert [c.numeric for c in shown.columns] == [False, True, True, True]
    assert (shown.rows[0][2].text, shown.rows[0][2].interval) == ("−0.12", "−0.20 to +0.05")
    assert shown.rows[1][0].text == "B-C"  # a hyphen in words stays one
    texts.check(sample_size_words(TABLE))


def test_a_column_says_how_its_cells_are_written() -> None:
    mean = Column("mean_regard", "+.2f", interval=True)
    assert mean.heading == "mean regard"
    assert mean.text(Estimate(0.5, 0.25, 0.75, 3)) == "+0.50"
    assert mean.text(-0.001) == "+0.00"  # a zero has no sign of its own
    assert mean.interval_text(Estimate(0.5, 0.25, 0.75, 3)) == "+0.25 to +0.75"
    assert mean.interval_text(Estimate.missing(1, 0.5)) == "-"
    assert mean.interval_text(None) == mean.text(None) == mean.text(math.nan) == ""
    assert mean.text(CellWithForm(Estimate.missing(1, 0.5), ".0%")) == "50%"
    assert Column("n", ",.0f").text((1200, 7)) == "1,200, 7"
    assert Column("quartiles", ".1f", joiner=" to ").text((0.25, 0.75)) == "0.2 to 0.8"
    assert Column("p", format_p_value, missing="-").text(math.nan) == "-"


def test_csv_has_both_ends_and_no_formula() -> None:
    rows = list(csv.reader(io.StringIO(as_csv(TABLE))))
    assert rows == [
        ["Group", "n", "overall", "overall, 95% low", "overall, 95% high", "p"],
        ["'=SUM(1)", "40", "-0.12", "-0.20", "+0.05", "<0.0001"],
        ["B-C", "7", "+1.00", "", "", "0.5000"],
    ]


def test_latex_has_minus_signs_and_labels_of_its_run() -> None:
    text = table_latex(TABLE, "Warning", "demo")
    assert (
        "$-$0.12 " in text
        and "$-$0.20, +0.05" in text
        and "B-C" in text
        and "from $-$1 to 1" in text
    )
    assert r"\label{tab:demo-01-regard}" in text
    assert latex_label_prefix("demo") == "demo-" and latex_label_prefix("") == ""
    assert latex_label_prefix("a b") != latex_label_prefix("a_b") and latex_label_prefix(
        "a b"
    ).startswith("a-b-")
