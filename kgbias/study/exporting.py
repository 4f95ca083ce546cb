"""What leaves a run: graphs, reports, figures and files."""

from pathlib import Path
from typing import Any, TextIO, Unpack

from kgbias.graph.selection import Selecting, Selection
from kgbias.parameters import Names, as_names
from kgbias.study.context import PathLike
from kgbias.study.view import RunView


class Exporting(RunView):
    """What leaves a run: graphs, reports, figures and files; a part of `Run`."""

    def to_networkx(self, **selection: Unpack[Selecting]) -> Any:
        """The statements that count (`counted`) as a `networkx.MultiDiGraph` from groups to objects
        (`kgbias.graph.to_networkx` says what its nodes and edges hold)."""
        from kgbias.graph.to_networkx import to_networkx

        category = {g.id: g.category for g in self._record.groups}
        return to_networkx(self._said(Selection(**selection)).triples, category)

    def report(self, path: PathLike = "report.html", **selection: Unpack[Selecting]) -> Path:
        """Write the report: figures, an interactive graph and every statement that counts
        (`counted`) in one HTML page that works offline. Returns its path."""
        from kgbias.report import write_report

        with self._context.working(whole=True) as progress:
            write_report(
                self.stored, Path(path), selection=Selection(**selection), progress=progress
            )
        return Path(path)

    def figures(
        self,
        folder: PathLike = "figures",
        *,
        correction: str = "holm",
        **selection: Unpack[Selecting],
    ) -> list[Path]:
        """Write every figure as SVG, PDF and PNG, one column wide, each with its numbers as a LaTeX
        table, and manifest.json, of the statements that count (`counted`). Returns the files."""
        from kgbias.report.save import save_figures

        with self._context.working(whole=True) as progress:
            return save_figures(
                self.stored,
                Path(folder),
                correction=correction,
                selection=Selection(**selection),
                progress=progress,
            )

    def export(
        self,
        path: PathLike | TextIO,
        *,
        format: str | None = None,
        group: Names = (),
        predicate: str | None = None,
        topic: str | None = None,
        min_count: int = 1,
        limit: int | None = None,
        per_group: int | None = None,
        merged: bool = False,
        **selection: Unpack[Selecting],
    ) -> int:
        """Write the statements that count (`counted`) with counts and scores, as a table, a graph
        or a picture; returns how many were written. Of a run of several arms, tables and graphs
        have a row or an edge for each arm; a picture is of one.

        Args:
            path: the file, for neo4j-admin the folder; or a stream of text (`sys.stdout`).
            format: jsonl, csv, graphml, svg ... (None: by the file's extension, jsonl in a stream).
            group: only these groups.
            predicate: only triples with this predicate.
            topic: only triples about a topic with this text in its name.
            min_count: only what was said at least this often.
            limit: only this many, those said most often; what was said equally often is dealt
                evenly over the groups.
            per_group: only this many of each group, those said most often. Pictures have as many
                as can be read, where neither this nor `limit` is given.
            merged: near-duplicates count as one.
            selection: which statements count, as in `counted`.
        """
        from kgbias.export import Filters, write_export

        filters = Filters(as_names(group), predicate, topic, min_count, limit, merged, per_group)
        output = Path(path) if isinstance(path, PathLike) else path
        with self._context.working(whole=True) as progress:
            return write_export(
                self.stored,
                output,
                format,
                filters,
                selection=Selection(**selection),
                progress=progress,
            )
