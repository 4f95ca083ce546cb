"""Tables of a run in a real LaTeX article: none is wider than what it stands in."""

import shutil
import subprocess
from pathlib import Path

import pytest

from kgbias.io.columns import Column
from kgbias.report.tables import COUNT_COLUMN, GROUP_COLUMN, Table, table_latex
from kgbias.stats.estimate import Estimate
from tests.waiting import DEADLINE_SECONDS

pytestmark = pytest.mark.integration
NARROW = Table(
    "01-regard",
    "Regard of people.",
    (GROUP_COLUMN, COUNT_COLUMN, Column("overall", "+.2f", interval=True)),
    [["Women", 40, Estimate(-0.12, -0.2, 0.05, 40)]],
)


@pytest.mark.parametrize("layout", ["onecolumn", "twocolumn"])
def test_no_table_is_too_wide(tmp_path: Path, layout: str) -> None:
    if not shutil.which("pdflatex"):
        pytest.skip("pdflatex is not installed")
    columns = [
        Column("Measure"),
        Column("First"),
        Column("Second"),
        COUNT_COLUMN,
        Column("difference", "+.3f", interval=True),
        Column("delta", "+.2f"),
        Column("D", ".2f"),
        Column("p", ".4f"),
    ]
    difference = Estimate(-0.044, -0.119, 0.034, 92)
    names = ["identity_attack", "Middle Eastern people", "the other groups"]
    rows = [[*names, (92, 535), difference, -0.13, 0.16, 0.4447]] * 3
    topics = [[n, "law; order; " * 4, "going to work; " * 12, 0.31] for n in range(3)]
    topic_columns = (Column("ID", ".0f"), Column("Name"), Column("Words"), Column("NPMI", ".2f"))
    tables = [
        NARROW,
        Table("wide", "Groups compared.", columns, rows),
        Table("topics", "Topics.", topic_columns, topics),
    ]
    text = "".join(table_latex(t, "w", "demo") for t in tables)
    assert text.count(r"\begin{table*}") == 2
    (tmp_path / "a.tex").write_text(
        rf"\documentclass[{layout}]{{article}}\usepackage{{booktabs,graphicx}}"
        rf"\usepackage[T1]{{fontenc}}\begin{{document}}x{text}\end{{document}}"
    )
    done = subprocess.run(
        ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "a.tex"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=DEADLINE_SECONDS,
    )
    assert done.returncode == 0, done.stdout[-1500:]
    assert "Overfull \\hbox" not in done.stdout
