"""Keeping a store: deleting runs, checking it, making it smaller, copying it."""

from dataclasses import dataclass
from pathlib import Path

from kgbias.graph.keeping import Fault
from kgbias.study.context import OfStudy, PathLike
from kgbias.study.rows import Rows
from kgbias.study.view import RunView


@dataclass(frozen=True, slots=True)
class Compacted:
    """What `Study.compact` did: the bytes of the file before and after."""

    before: int
    after: int


class Keeping(OfStudy):
    """The care of a store; a part of `Study`."""

    def delete(self, run: str | RunView, *, dry_run: bool = False) -> dict[str, int]:
        """Delete a run and what only it holds.

        Its generations go, and the answers, triples, scores, topics, tests, probes, groups and
        models that no other run holds; what is left is the graph of a store that never had it.
        What a language model answered outside a crawl, as a judge say, stays in the answer log.
        The space is used again; `compact` gives it back to the disk. End a crawl that is still
        writing the run first. Stopped in between, a deletion on a server is finished by the same
        call; in a file it happens at once or not at all.

        Args:
            run: the run, by name or as it is.
            dry_run: delete nothing.

        Returns:
            How many nodes of each label of the graph that is or would be.

        Raises:
            RunNotFound: no run of that name, naming those there are.
        """
        name = run.name if isinstance(run, RunView) else run
        return self._context.graph.delete(self._context.graph.find_run(name).id, dry_run=dry_run)

    def verify(self) -> Rows[Fault]:
        """What is wrong with the store; no rows where nothing is.

        Looked for are damage to the file (SQLite's own integrity check), ids that name nothing, and
        ids that do not follow from their content: every id is a checksum of what it stands for, so
        that a text that was changed is found. Beside a file that `backup` wrote, the file is held
        against its SHA-256. All of the store is read.

        Frame columns: kind ("file", "checksum", "id" or "reference"), what, count, example.
        """
        with self.working() as progress:
            found = self._context.graph.faults(progress)
        return Rows(found, columns=Fault.__dataclass_fields__)

    def compact(self) -> Compacted:
        """Make the file as small as its content: nodes that nothing refers to any more are removed
        (rounds that were recorded again and topics that were found again leave some), and free
        space is given back to the disk. Needs as much free disk as the store is large.

        Raises:
            UsageError: the store is a server, which does this itself.
        """
        with self.working() as progress:
            return Compacted(*self._context.graph.compact(progress))

    def backup(self, path: PathLike) -> Path:
        """Copy the store to a file, as it is at one moment, while others may go on writing to it.
        Beside it comes its SHA-256 (`path` with .sha256 behind it), which `sha256sum --check` and
        `verify` read. Returns the path.

        Args:
            path: the copy; an earlier one is replaced as a whole.

        Raises:
            UsageError: the store is a server, `path` is the store itself, or a store in use.
            StoreError: there is another program's file at `path`.
        """
        with self.working() as progress:
            self._context.graph.backup(Path(path), progress)
        return Path(path)
