"""Tables of a run in a real LaTeX article: none is wider than what it stands in."""

import shutil
import subprocess
from pathlib import Path

import pytest

from kgbias.report.tables import Table, table_latex
from tests.waiting import DEADLINE_SECONDS

pytestmark = pytest.mark.integration
NARROW = Table(
    "01-regard",
    "Regard of people.",
    ("Group", "n", "overall", "95% interval"),
    [["Women", "40", "-0.12", "-0.20 to +0.05"]],
)


@pytest.mark.parametrize("columns", ["onecolumn", "twocolumn"])
def test_no_table_is_too_wide(tmp_path: Path, columns: str) -> None:
    if not shutil.which("pdflatex"):
        pytest.skip("pdflatex is not installed")
    heads = ["Measure", "First", "Second", "n", "difference", "95% interval", "delta", "D", "p"]
    rows = [
        [
            "identity_attack",
            "Middle Eastern people",
            "the other groups",
            "92, 535",
            "-0.044",
            "-0.119 to +0.034",
            "-0.13",
            "0.16",
            "0.4447",
        ]
    ] * 3
    topics = [[str(n), "law; order; " * 4, "going to work; " * 12, "0.31"] for n in range(3)]
    tables = [
        NARROW,
        Table("wide", "Groups compared.", heads, rows),
        Table("topics", "Topics.", ("ID", "Name", "Words", "NPMI"), topics),
    ]
    text = "".join(table_latex(t, "w", "demo") for t in tables)
    assert text.count(r"\begin{table*}") == 2
    (tmp_path / "a.tex").write_text(
        rf"\documentclass[{columns}]{{article}}\usepackage{{booktabs,graphicx}}"
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
