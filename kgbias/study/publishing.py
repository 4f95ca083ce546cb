"""A run as a data set for others."""

from pathlib import Path
from typing import Unpack

from kgbias.graph.selection import Selecting, Selection
from kgbias.parameters import Names, as_names
from kgbias.study.context import PathLike
from kgbias.study.view import RunView


class Publishing(RunView):
    """A run as a data set for others; a part of `Run`."""

    def publish(
        self,
        folder: PathLike = "published",
        *,
        license: str = "",
        author: Names = (),
        figures: bool = False,
        **selection: Unpack[Selecting],
    ) -> list[Path]:
        """Write the statements that count (`counted`) as a data set that others can load, cite and
        make again: Parquet and JSON lines, a dataset card with its data statement, Croissant
        metadata, the figures of groups in the schema of Every Eval Ever, a citation, the
        configuration and checksums. Returns the files.

        The folder is written whole or not at all. `kgbias.reproduce` makes the data again from it.

        Args:
            folder: a new or empty folder.
            license: the licence of the model's outputs, as an SPDX identifier, an address or in
                words. It is yours to know: nothing is assumed.
            author: who publishes, as the citation names them; several as a list.
            figures: also write the figures and tables of the run (as `figures` does).
            selection: which statements count, as in `counted`.
        """
        from kgbias.publish import publish

        with self._context.working(whole=True) as progress:
            return publish(
                self.stored,
                Path(folder),
                license=license,
                authors=as_names(author),
                figures=figures,
                selection=Selection(**selection),
                progress=progress,
            )
