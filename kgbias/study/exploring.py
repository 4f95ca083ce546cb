"""The explorer: runs to look around in, in a browser."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from kgbias.graph.selection import Selecting, Selection
from kgbias.graph.stored import StoredRun
from kgbias.study.opened import OpenedStore
from kgbias.study.view import PathLike, RunView

if TYPE_CHECKING:
    from kgbias.explore import Explorer


class ExploringRuns(OpenedStore):
    """The explorer of several runs; a part of `Study`."""

    def explore(
        self,
        runs: str | RunView | Sequence[str | RunView] = (),
        path: PathLike = "explorer.html",
        **selection: Unpack[Selecting],
    ) -> Path:
        """Write the explorer: the whole graph of the runs with its provenance, in one HTML page
        that works from a file, offline. Returns its path.

        Args:
            runs: by name, or as they are; the newest where none is named. Of several, the page
                shows one at a time or what one says and another does not.
            path: the page.
            selection: `arm`: only this arm. The page holds all statements; `min_acceptability` and
                `without_echoes` are where its filters stand when it is opened, by default as in
                `Run.counted`.
        """
        from kgbias.explore import write_explorer

        named: Sequence[str | RunView | None] = (
            [runs] if isinstance(runs, str | RunView) else list(runs)
        )
        stored = [
            run.stored if isinstance(run, RunView) else StoredRun.find(self.store, run)
            for run in named or [None]
        ]
        with self.working() as progress:
            write_explorer(stored, Path(path), selection=Selection(**selection), progress=progress)
        return Path(path)


class Exploring(RunView):
    """The explorer of a run in a notebook; a part of `Run`."""

    def explore(self, **selection: Unpack[Selecting]) -> "Explorer":
        """The explorer of this run, which shows itself in a notebook, and can be saved
        (`explore().save("explorer.html")`). `Study.explore` writes one of several runs, and says
        what `selection` does."""
        from kgbias.explore import Explorer, render

        with self._study.working() as progress:
            page, picture = render(
                [self.stored], selection=Selection(**selection), progress=progress
            )
        return Explorer(page, picture)
