"""The explorer: runs to look around in, in a browser."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from kgbias.graph.selection import Selecting, Selection
from kgbias.graph.store import StoredRun
from kgbias.study.context import OfStudy, PathLike
from kgbias.study.view import RunView

if TYPE_CHECKING:
    from kgbias.explore import Explorer


class ExploringRuns(OfStudy):
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

        stored = self._named(runs)
        with self.working(whole=True) as progress:
            write_explorer(stored, Path(path), selection=Selection(**selection), progress=progress)
        return Path(path)

    def serve(
        self,
        runs: str | RunView | Sequence[str | RunView] = (),
        *,
        host: str = "127.0.0.1",
        port: int = 8765,
        token: str | None = None,
        listening: Callable[[str], None] | None = None,
        **selection: Unpack[Selecting],
    ) -> None:
        """Serve the explorer of the runs, as they are now, until Ctrl-C: the page of `explore`, for
        graphs that are too large for a file, and for a team. It only reads.

        Args:
            runs: as in `explore`.
            host: the address to listen on; others than this machine's own need a token.
            port: the port; 0 for any that is free.
            token: what a browser must show once (`?token=...`) to be answered, at least 16
                characters. None: that of the environment variable KGBIAS_SERVE_TOKEN, and without
                one requests of this machine alone.
            listening: called with the address as soon as it answers. Until the statements are read
                it answers that they are.
            selection: as in `explore`. Of more than 50,000 statements echoes are found only with
                `without_echoes`.

        Raises UsageError where it cannot listen, or must not without a token.
        """
        from kgbias.explore.server import Server

        stored = self._named(runs)
        with Server(host=host, port=port, token=token) as server, suppress(KeyboardInterrupt):
            if listening is not None:
                listening(server.url)
            with self.working() as progress:
                server.show(stored, selection=Selection(**selection), progress=progress)
            server.work()

    def _named(self, runs: str | RunView | Sequence[str | RunView]) -> list[StoredRun]:
        """The runs, or the newest where none is named."""
        named: Sequence[str | RunView | None] = (
            [runs] if isinstance(runs, str | RunView) else list(runs)
        )
        return [
            run.stored if isinstance(run, RunView) else StoredRun.find(self._context.graph, run)
            for run in named or [None]
        ]


class Exploring(RunView):
    """The explorer of a run in a notebook; a part of `Run`."""

    def explore(self, **selection: Unpack[Selecting]) -> "Explorer":
        """The explorer of this run, which shows itself in a notebook, and can be saved
        (`explore().save("explorer.html")`). `Study.explore` writes one of several runs, and says
        what `selection` does."""
        from kgbias.explore import Explorer, render

        with self._context.working() as progress:
            page, picture = render(
                [self.stored], selection=Selection(**selection), progress=progress
            )
        return Explorer(page, picture)
