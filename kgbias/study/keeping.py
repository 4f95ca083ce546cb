"""Keeping a store: deleting runs, checking it, making it smaller, copying it and its runs."""

from dataclasses import dataclass
from pathlib import Path

from kgbias.errors import UsageError
from kgbias.graph.keeping import Fault
from kgbias.graph.store import StoredRun, open_store
from kgbias.parameters import Names, PathLike, as_names
from kgbias.study.context import Context
from kgbias.study.rows import Rows
from kgbias.study.run import Run


@dataclass(frozen=True, slots=True)
class Compacted:
    """What `Keeping.compact` did: the bytes of the file before and after."""

    before: int
    after: int


class Keeping:
    """The care of a study's store: `study.store`."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def delete(self, run: str | Run, *, dry_run: bool = False) -> dict[str, int]:
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
        found = self._context.find(run.name if isinstance(run, Run) else run)
        return self._context.graph.delete(found.id, dry_run=dry_run)

    def verify(self) -> Rows[Fault]:
        """What is wrong with the store; no rows where nothing is.

        Looked for are damage to the file (SQLite's own integrity check), ids that name nothing, and
        ids that do not follow from their content: every id is a checksum of what it stands for, so
        that a text that was changed is found. Beside a file that `backup` wrote, the file is held
        against its SHA-256. All of the store is read.

        Frame columns: kind ("file", "checksum", "id" or "reference"), what, count, example.
        """
        with self._context.working() as progress:
            found = self._context.graph.faults(progress)
        return Rows(found, columns=Fault.__dataclass_fields__)

    def compact(self) -> Compacted:
        """Make the file as small as its content: nodes that nothing refers to any more are removed
        (rounds that were recorded again and topics that were found again leave some), and free
        space is given back to the disk. Needs as much free disk as the store is large.

        Raises:
            UsageError: the store is a server, which does this itself.
        """
        with self._context.working() as progress:
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
        with self._context.working() as progress:
            self._context.graph.backup(Path(path), progress)
        return Path(path)

    def push(self, target: PathLike, *, run: Names = ()) -> dict[str, int]:
        """Copy runs, all or those of these names, to another store, with their answers, scores and
        tests. Returns for each run how many generations were new there. What is there already
        stays as it is, so a copy that was cut off is finished by repeating it."""
        from kgbias.graph.push import push

        url, source = self._context.url, self._context.graph
        if str(target) == url:
            raise UsageError("a push copies to another store: source and target are the same")
        found = [StoredRun.find(source, name) for name in as_names(run)]
        found = found or [StoredRun(source, s.run) for s in source.summaries()]
        if not found:
            raise UsageError(f"there is no run in {url}")
        with (
            self._context.working() as progress,
            open_store(str(target), notify=progress.note) as other,
        ):
            return {own.name: push(own, other, progress) for own in found}
