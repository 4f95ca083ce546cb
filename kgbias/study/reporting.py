"""Reports and figures, of one run or of several beside each other."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Unpack
from urllib.parse import quote

from kgbias.errors import UsageError
from kgbias.graph.selection import Selecting, Selection
from kgbias.study.context import PathLike
from kgbias.study.exploring import ExploringRuns
from kgbias.study.view import RunView


class Reporting(ExploringRuns):
    """Reports and figures of runs; a part of `Study`."""

    def report(
        self,
        runs: str | RunView | Sequence[str | RunView] = (),
        path: PathLike = "report.html",
        *,
        explorer: PathLike | None = None,
        **selection: Unpack[Selecting],
    ) -> Path:
        """Write the report of a run, or of two to six beside each other, as one HTML page that
        works offline. Returns its path.

        Args:
            runs: by name, or as they are; the newest where none is named. One: what was found, its
                figures, graph and statements. Several: small multiples, ranks, overlap and
                differences.
            path: the page.
            explorer: also write the explorer of the runs there; the report links to its views.
            selection: which statements count, as for `Run.counted`.
        """
        from kgbias.report import write_report, write_several

        path, found, which = Path(path), self._named(runs), Selection(**selection)
        beside = ""
        if explorer is not None:
            if Path(explorer).resolve() == path.resolve():
                raise UsageError("the report and the explorer are two pages: name two files")
            self.explore(runs, explorer, **selection)
            relative = os.path.relpath(Path(explorer).resolve(), path.resolve().parent)
            beside = quote(Path(relative).as_posix())
        with self.working(whole=True) as progress:
            if len(found) == 1:
                write_report(found[0], path, selection=which, progress=progress, explorer=beside)
            else:
                write_several(found, path, selection=which, progress=progress, explorer=beside)
        return path

    def figures(
        self,
        runs: str | RunView | Sequence[str | RunView] = (),
        folder: PathLike = "figures",
        *,
        correction: str = "holm",
        **selection: Unpack[Selecting],
    ) -> list[Path]:
        """Write the figures of a run, or of two to six beside each other, as SVG, PDF and PNG, each
        with its numbers as a LaTeX table, and manifest.json. Returns the files.

        Args:
            runs: as for `report`.
            folder: the folder.
            correction: of the p-values over a family of tests, "holm" or "bh".
            selection: which statements count, as for `Run.counted`.
        """
        from kgbias.report.save import save_figures, save_several

        found, which = self._named(runs), Selection(**selection)
        with self.working(whole=True) as progress:
            if len(found) == 1:
                return save_figures(
                    found[0], Path(folder), correction=correction, selection=which,
                    progress=progress,
                )  # fmt: skip
            return save_several(
                found, Path(folder), correction=correction, selection=which, progress=progress
            )
