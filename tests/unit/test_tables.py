"""Tables as a page, a paper and a spreadsheet have them."""

import csv
import io

from kgbias.report.cards import TableCard, sample_sizes
from kgbias.report.tables import (
    Table,
    as_csv,
    merge_intervals,
    numeric_columns,
    run_label,
    table_latex,
)

TABLE = Table(
    "01-regard",
    "Regard of <people>.",
    ("Group", "n", "overall", "95% interval", "p"),
    [["=SUM(1)", "40", "-0.12", "-0.20 to +0.05", "<0.0001"], ["B-C", "7", "+1", "-", "0.5000"]],
    "Values from -1 to 1.",
)


def test_an_interval_stands_with_its_figure() -> None:
    found = merge_intervals(TABLE)
    assert found.columns == ["Group", "n", "overall", "p"]
    assert [row[2] for row in found.rows] == ["-0.12 [-0.20, +0.05]", "+1"]
    assert numeric_columns(found) == [False, True, True, True]
    shown = TableCard(TABLE)
    assert [c.name for c in shown.columns] == ["Group", "n", "overall", "p"]
    assert (shown.rows[0][2].text, shown.rows[0][2].interval) == ("−0.12", "−0.20 to +0.05")
    assert shown.rows[1][0].text == "B-C"  # a hyphen in words stays one
    assert sample_sizes(TABLE) == "n = 7 to 40"


def test_csv_has_both_ends_and_no_formula() -> None:
    rows = list(csv.reader(io.StringIO(as_csv(TABLE))))
    assert rows == [
        ["Group", "n", "overall", "overall, 95% low", "overall, 95% high", "p"],
        ["'=SUM(1)", "40", "-0.12", "-0.20", "+0.05", "<0.0001"],
        ["B-C", "7", "+1", "", "", "0.5000"],
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
    assert run_label("demo") == "demo-" and run_label("") == ""
    assert run_label("a b") != run_label("a_b") and run_label("a b").startswith("a-b-")
