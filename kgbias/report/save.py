"""Figures and tables as files, for a paper."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kgbias.errors import UsageError
from kgbias.graph.selection import Selection
from kgbias.graph.store import StoredRun
from kgbias.graph.types import CONTENT_WARNING
from kgbias.io.drawing import figure_style
from kgbias.io.files import make_manifest, write_into_folder, write_json
from kgbias.io.progress import Progress, SilentProgress
from kgbias.report.exhibits import run_exhibits
from kgbias.report.multi_run import multi_run_exhibits
from kgbias.report.multi_run_data import MultiRunData
from kgbias.report.run_data import RunData
from kgbias.report.style import remove_links
from kgbias.report.tables import Exhibit, as_csv, table_latex

FORMATS = ("svg", "pdf", "png")
_DPI = 300


def save_figures(
    run: StoredRun,
    folder: Path,
    *,
    correction: str = "holm",
    selection: Selection | None = None,
    progress: Progress | None = None,
) -> list[Path]:
    """Write every exhibit of a run to `folder`: each figure as SVG, PDF and PNG, its numbers as a
    LaTeX table of the same name, and manifest.json, which says what each is; a run of several arms
    gets a set of files for each. `selection` says which statements count. Returns the files,
    sorted.

    Raises UsageError if the run has nothing to show, DataError if files cannot be written."""
    progress = progress or SilentProgress()
    data = RunData(
        run,
        correction=correction,
        selection=selection,
        progress=progress,
        is_thorough=True,
    )
    exhibit_list = [exhibit for exhibit in run_exhibits(data) if not exhibit.empty]
    if not exhibit_list:
        raise UsageError(
            f"run {run.name!r} has nothing to show: measure it first, and see that it holds "
            "statements"
        )
    if data.counted.note:
        progress.note(data.counted.note)
    progress.stage("figures", len(exhibit_list))
    about = make_manifest(
        data.run, selection=data.counted.as_dict(), exhibits=manifest_rows(exhibit_list)
    )
    return save_exhibits(exhibit_list, folder, run.name, about, progress)


def save_multi_run(
    runs: Sequence[StoredRun],
    folder: Path,
    *,
    correction: str = "holm",
    selection: Selection | None = None,
    progress: Progress | None = None,
) -> list[Path]:
    """The same for two to six runs side by side (`multi_run_exhibits`)."""
    progress = progress or SilentProgress()
    data = MultiRunData(runs, correction=correction, selection=selection, progress=progress)
    exhibit_list = list(multi_run_exhibits(data))
    if not exhibit_list:
        raise UsageError(f"{', '.join(data.names)}: no two of them have a group in common")
    progress.stage("figures", len(exhibit_list))
    about = {
        "runs": [make_manifest(side.run, selection=side.counted.as_dict()) for side in data.sides],
        "exhibits": manifest_rows(exhibit_list),
    }
    return save_exhibits(exhibit_list, folder, "-".join(data.names), about, progress)


def save_exhibits(
    exhibit_list: Sequence[Exhibit],
    folder: Path,
    run: str,
    about: Any = None,
    progress: Progress | None = None,
    *,
    csv: bool = False,
) -> list[Path]:
    """Write exhibits to a folder, each figure as SVG, PDF and PNG and each table as LaTeX (and
    CSV), with what the manifest says `about` them. Returns the files, sorted."""
    with write_into_folder(folder) as partial:
        for exhibit in exhibit_list:
            save_exhibit(exhibit, partial, run)
            if csv:
                path = partial / f"{exhibit.key}.csv"
                path.write_text(as_csv(exhibit.table), encoding="utf-8", newline="")
            if progress is not None:
                progress.advance()
        if about is not None:
            write_json(partial / "manifest.json", about)
        names = sorted(file.name for file in partial.iterdir())
    return [folder / name for name in names]


def save_exhibit(exhibit: Exhibit, folder: Path, run: str) -> None:
    """Write the table of an exhibit as LaTeX and its figure as SVG, PDF and PNG."""
    table = table_latex(exhibit.table, CONTENT_WARNING, run)
    (folder / f"{exhibit.key}.tex").write_text(table, encoding="utf-8")
    if exhibit.draw is not None:
        with figure_style():
            figure = exhibit.draw()
            remove_links(figure)
            for form in FORMATS:
                path = folder / f"{exhibit.key}.{form}"
                figure.savefig(path, dpi=_DPI, metadata=_METADATA[form])
                # Laid out once: it takes as long as drawing, and the forms are to look alike.
                figure.set_layout_engine("none")


# No dates: the same run gives the same files.
_METADATA: dict[str, dict[str, Any]] = {
    "svg": {"Date": None},
    "pdf": {"CreationDate": None, "ModDate": None},
    "png": {"Software": "kgbias"},
}


def manifest_rows(exhibit_list: Sequence[Exhibit]) -> list[dict[str, Any]]:
    return [
        {
            "files": e.key,
            "category": e.category,
            "arm": e.arm,
            "title": e.title,
            "paper": e.paper,
            "figure": e.draw is not None,
        }
        for e in exhibit_list
    ]
