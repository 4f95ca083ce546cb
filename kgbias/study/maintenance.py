"""Care of a store: delete runs, check, shrink and copy it, and copy its runs."""

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from kgbias.errors import UsageError, no_such
from kgbias.graph.integrity import Fault
from kgbias.graph.leases import check_idle
from kgbias.graph.store import StoredRun
from kgbias.graph.stores import open_store
from kgbias.io.rows import Rows
from kgbias.io.wording import pluralise
from kgbias.models.spec import with_display_name
from kgbias.parameters import Names, PathLike, as_names
from kgbias.study.calls import PublicCalls
from kgbias.study.context import Context
from kgbias.study.run import Run


@dataclass(frozen=True, slots=True)
class CompactionResult:
    """The result of `StoreMaintenance.compact`: the file's bytes before and after."""

    before: int
    after: int


class StoreMaintenance(PublicCalls):
    """The care of a study's store: `study.store`."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def __repr__(self) -> str:
        calls = "backup, compact, delete, push, rename_model, verify"
        return f"<Store {self._context.url}: {calls}>"

    def delete(self, run: str | Run, *, dry_run: bool = False) -> dict[str, int]:
        """Delete a run and everything that only it holds.

        Its generations go, and the answers, triples, scores, topics, tests, probes, groups and
        models that no other run holds; what is left is the graph of a store that never had it.
        Answers that a language model gave outside a crawl, for example as a judge, stay in the
        answer log. The space is reused; `compact` gives it back to the disk. If a deletion on a
        server is interrupted, the same call finishes it; in a file it is atomic.

        Args:
            run: the run, or its name.
            dry_run: delete nothing.

        Returns:
            How many nodes are, or would be, deleted, by graph label.

        Raises:
            RunNotFound: no run of that name; the message lists the runs.
            RunConflict: a process is still asking for the run.
        """
        stored_run = self._context.find(run.name if isinstance(run, Run) else run)
        if not dry_run:
            check_idle(stored_run.store.lease(stored_run.id), stored_run.name)
        return self._context.graph.delete(stored_run.id, dry_run=dry_run)

    def rename_model(self, model: str, name: str) -> str:
        """Give a model a name of your own, under which titles, tables, pages, exports and answers
        show it from now on. No id and no answer depends on it. Returns the name it had.

        Args:
            model: the model in the store, by its spec or the name it goes by.
            name: the name; "" takes yours away.

        Raises:
            UsageError: no such model, or a name that another model has or that is a spec.
        """
        models = self._context.graph.models()
        matches = [m for m in models if m.goes_by(model)]
        if not matches:
            raise UsageError(
                no_such("model", model, (m.title for m in models), f" in {self._context.url}")
            )
        if len(matches) > 1:
            revisions = ", ".join(m.revision or "none" for m in matches)
            raise UsageError(
                f"{pluralise(len(matches), 'model')} of {self._context.url} go by {model!r} "
                f"(revisions "
                f"{revisions}): "
                "crawl the one you mean again with `model_name`"
            )
        self._context.graph.set_display_name(with_display_name(matches[0], name))
        return matches[0].title

    def verify(self) -> Rows[Fault]:
        """What is wrong with the store; no rows if nothing is.

        Checks for damage to the file (SQLite's own integrity check), dangling ids, and ids that do
        not follow from their content: every id is a checksum of what it stands for, so a changed
        text is found. A file written by `backup` is also checked against its SHA-256. Reads all of
        the store.

        Frame columns: kind ("file", "checksum", "value", "id" or "reference"), what, count,
        example. If SQLite finds the file damaged, nothing else is looked at.
        """
        with self._context.working() as progress:
            faults = self._context.graph.find_faults(progress)
        return Rows(faults, Fault)

    def compact(self) -> CompactionResult:
        """Shrink the file to the size of its content: remove nodes that nothing refers to any more
        (left by rounds recorded again and topics found again), and give free space back to the
        disk. Needs as much free disk space as the store takes.

        Raises:
            StoreError: the file is damaged.
            UsageError: the store is a server, which does this itself.
        """
        with self._context.working() as progress:
            return CompactionResult(*self._context.graph.compact(progress))

    def backup(self, path: PathLike) -> Path:
        """Copy the store to a file as it is at one moment, even while others write to it. Also
        writes the SHA-256 beside it (`path` with .sha256 appended), for `sha256sum --check` and
        `verify`. Returns the path.

        Args:
            path: the copy; an earlier one is replaced as a whole.

        Raises:
            UsageError: the store is a server, or `path` is the store itself or a store in use.
            StoreError: another program's file is at `path`.
        """
        with self._context.working() as progress:
            self._context.graph.backup(Path(path), progress)
        return Path(path)

    def push(self, target: PathLike, *, run: Names = ()) -> dict[str, int]:
        """Copy runs, all or those named, to another store, with their answers, scores and tests.
        Returns how many generations of each run were new there. What the target already has stays
        as it is; to finish an interrupted copy, repeat it.

        Args:
            target: the path or URL of the other store.
            run: only these runs (default: all).
        """
        from kgbias.graph.push import push_run

        url, source = self._context.url, self._context.graph
        is_same = str(target) == url
        with suppress(OSError):  # a server, or a file that is not there yet
            is_same |= Path(target).samefile(url)
        if is_same:
            raise UsageError("a push copies to another store: source and target are the same")
        runs = [StoredRun.find(source, name) for name in as_names(run)]
        runs = runs or [StoredRun(source, record) for record in source.runs()]
        if not runs:
            raise UsageError(f"there are no runs in {url}")
        with (
            self._context.working() as progress,
            open_store(str(target), notify=progress.note) as target_store,
        ):
            return {
                stored_run.name: push_run(stored_run, target_store, progress) for stored_run in runs
            }
