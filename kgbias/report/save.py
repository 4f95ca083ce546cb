"""Figures and tables as files, for a paper."""

import json
from pathlib import Path
from typing import Any

from kgbias.errors import DataError, UsageError
from kgbias.graph.stored import StoredRun
from kgbias.graph.types import CONTENT_WARNING, SAMPLE_STATEMENT, Run
from kgbias.progress import Progress, Silent
from kgbias.report.exhibits import exhibits
from kgbias.report.latex import latex
from kgbias.report.run_data import Exhibit, RunData
from kgbias.report.style import figure_style

FORMATS = ("svg", "pdf", "png")
_DPI = 300


def save_figures(
    run: StoredRun,
    folder: Path,
    *,
    correction: str = "holm",
    progress: Progress | None = None,
) -> list[Path]:
    """Write every exhibit of a run to `folder`: each figure as SVG, PDF and PNG, its numbers as a
    LaTeX table of the same name, and manifest.json saying what is what. Returns the files, sorted.

    Raises UsageError where the run has nothing to show, DataError where files cannot be written."""
    found = list(exhibits(RunData(run, correction=correction)))
    if not found:
        raise UsageError(
            f"run {run.name!r} has nothing to show: measure it first (kgbias measure), and see "
            "that it holds statements"
        )
    progress = progress or Silent()
    progress.stage("figures", len(found))
    files: list[Path] = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for exhibit in found:
            files += _save(exhibit, folder)
            progress.advance()
        manifest = folder / "manifest.json"
        manifest.write_text(json.dumps(_manifest(run.record, found), indent=2), encoding="utf-8")
    except OSError as error:
        raise DataError(f"cannot write to {folder}: {error.strerror}") from error
    return sorted([*files, manifest])


def _save(exhibit: Exhibit, folder: Path) -> list[Path]:
    files = [folder / f"{exhibit.key}.tex"]
    files[0].write_text(latex(exhibit.table, CONTENT_WARNING), encoding="utf-8")
    if exhibit.draw is not None:
        with figure_style() as plt:
            figure = exhibit.draw()
            for form in FORMATS:
                path = folder / f"{exhibit.key}.{form}"
                figure.savefig(path, dpi=_DPI, metadata=_METADATA[form])
                files.append(path)
            plt.close(figure)
    return files


# No dates: the same run gives the same files.
_METADATA: dict[str, dict[str, Any]] = {
    "svg": {"Date": None},
    "pdf": {"CreationDate": None, "ModDate": None},
    "png": {"Software": "kgbias"},
}


def _manifest(run: Run, found: list[Exhibit]) -> dict[str, Any]:
    return {
        "warning": CONTENT_WARNING,
        "statement": SAMPLE_STATEMENT,
        "run": run.name,
        "model": {"name": run.model.name, "revision": run.model.revision},
        "exhibits": [
            {
                "files": e.key,
                "category": e.category,
                "title": e.title,
                "paper": e.paper,
                "figure": e.draw is not None,
            }
            for e in found
        ],
    }
