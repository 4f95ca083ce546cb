"""What a study and its runs share: the store, opened when needed, the display of long work, and the
remarks made so far."""

import logging
import math
import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import get_ident
from typing import TYPE_CHECKING, Any, NoReturn, Self, TypeVar

from kgbias.errors import StoreError, UsageError, other_thread_error
from kgbias.graph.selection import SelectedStatements, Selection, select_statements
from kgbias.graph.store import DEFAULT_STORE, Store, StoredRun
from kgbias.graph.stores import open_store
from kgbias.graph.types import Run as Record
from kgbias.io.progress import Progress, SilentProgress, show_progress
from kgbias.io.text import type_with_article
from kgbias.models.base import ModelInfo
from kgbias.study.calls import PublicCalls

if TYPE_CHECKING:
    from kgbias.crawl.crawler import CrawlResult
    from kgbias.graph.generation_run import GenerationSummary
    from kgbias.ingest.import_run import ImportResult


Opened = TypeVar("Opened")

_LOG = logging.getLogger("kgbias")


class Context:
    """The store of a study, and how to show work on it.

    Attributes:
        url: the path or URL of the store.
        closed: whether it was closed.
    """

    def __init__(
        self,
        store: str | Path | None = DEFAULT_STORE,
        *,
        progress: Progress | bool | None = None,
        query_timeout: float | None = None,
    ) -> None:
        if query_timeout is not None and not (math.isfinite(query_timeout) and query_timeout > 0):
            raise UsageError("query_timeout must be a positive number of seconds")
        self._query_timeout = query_timeout
        self._thread = get_ident()
        self._resources = ExitStack()
        self._progress = progress
        self._current_progress: Progress | None = None
        self._shown_remarks: set[str] = set()
        self._store: Store | None = None
        self.closed = False
        if store is None:
            folder = self._resources.enter_context(TemporaryDirectory(prefix="kgbias-"))
            store = Path(folder) / "kgbias.db"
        if not isinstance(store, str | os.PathLike):
            what = type_with_article(store)
            raise UsageError(
                f"a store is a path, an address or None (for a temporary one), not {what}"
            )
        store = str(store)
        self.url = store if "://" in store else str(Path(store).expanduser())
        # What is there is opened now: a file that is no store is refused at the start.
        if "://" in self.url or Path(self.url).exists():
            self._open(create=True)

    @property
    def graph(self) -> Store:
        """The open store. Raises StoreError if there is none yet, or it was closed."""
        return self._open(create=False)

    def writable(self) -> Store:
        """The open store, created if there is none yet."""
        return self._open(create=True)

    def _open(self, *, create: bool) -> Store:
        if (store := self.existing_store) is None:
            store = self._store = self._resources.enter_context(
                open_store(self.url, create=create, notify=self._show_line)
            )
            store.query_timeout = self._query_timeout
        return store

    @property
    def existing_store(self) -> Store | None:
        """The open store, or None if there is none yet. Raises StoreError if it was closed, or
        belongs to another thread."""
        if self.closed:
            raise StoreError(f"the study {self.url} is closed")
        self._check_thread()
        return self._store

    def _check_thread(self) -> None:
        # A connection to SQLite belongs to the thread that opened it.
        if "://" not in self.url and get_ident() != self._thread:
            raise other_thread_error(self.url)

    def find(self, run: "str | RunPart | None" = None) -> StoredRun:
        """The run itself, the run of that name, or the newest. Raises RunNotFound, which lists the
        runs."""
        return run.stored if isinstance(run, RunPart) else StoredRun.find(self.graph, run)

    def series(self, name: str) -> list[StoredRun]:
        """The crawls of a series, by the name of any of them, in the order they were begun; a crawl
        that was not repeated is a series of one. Raises RunNotFound."""
        series_name = _series_name(self.graph.find_run(name)) or name
        matching = [r for r in self.graph.runs() if series_name in (r.name, _series_name(r))]
        return [StoredRun(self.graph, record) for record in matching]

    def models(self) -> list[ModelInfo]:
        """The models that the store knows."""
        return [] if self.existing_store is None else list(self.existing_store.models())

    def apply_display_name(self, opened: Opened) -> Opened:
        """The open model, under the name that a person gave it in the store, if any."""
        model: Any = opened
        for stored_model in self.models():
            if stored_model.display_name and stored_model == model.info:
                model.info = stored_model
        return opened

    @contextmanager
    def working(self, *, whole: bool = False) -> Iterator[Progress]:
        """Show a method's progress as the study was opened to (`kgbias.io.progress`), and that of a
        method inside it in the same place."""
        if self._current_progress is not None:
            # A method that another one calls shows its work in the same place.
            yield self._current_progress
            return
        with show_progress(self._progress, all_or_nothing=whole) as progress:
            self._current_progress = progress
            try:
                yield progress
            finally:
                self._current_progress = None

    def remark(self, text: str) -> None:
        """Show a line, but only the first time, and never an empty one."""
        if text and text not in self._shown_remarks:
            self._shown_remarks.add(text)
            self._show_line(text)

    def _show_line(self, text: str) -> None:
        """Show a remark, or a message of the store while it waits for its server. A script whose
        progress nobody sees gets it as a warning of the logger "kgbias": by default a line on
        stderr."""
        with (
            nullcontext(self._current_progress)
            if self._current_progress
            else show_progress(self._progress) as progress
        ):
            if self._progress is None and isinstance(progress, SilentProgress):
                _LOG.warning("%s", text)
            else:
                progress.note(text)

    def close(self) -> None:
        """Close the store. It cannot be read afterwards."""
        self.__exit__(None, None, None)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: Any) -> None:
        if not self.closed:
            self._check_thread()
        self.closed = True
        self._resources.__exit__(*error)  # the store may know why


class ProcessBound:
    """What an open store is behind: a copy is the thing itself, and it cannot be pickled."""

    def _reopen_hint(self) -> str:
        """How another process gets it."""
        raise NotImplementedError

    def __reduce__(self) -> NoReturn:
        raise UsageError(self._reopen_hint())

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, _: object) -> Self:
        return self


class StudyPart(PublicCalls, ProcessBound):
    """The base of the parts of `Study`."""

    def __init__(self, context: Context) -> None:
        self._context = context

    @property
    def context(self) -> Context:
        """The store, the progress and the remarks of the study, for methods that work on it."""
        return self._context

    def _reopen_hint(self) -> str:
        return (
            "a study stays in its process: in the other one, open it again with "
            f"kgbias.open({self._context.url!r})"
        )

    def working(self, *, whole: bool = False) -> AbstractContextManager[Progress]:
        """Show a method's progress as the study was opened to (`kgbias.io.progress`)."""
        return self._context.working(whole=whole)


class RunPart(PublicCalls, ProcessBound):
    """The base of the parts of `Run`."""

    def __init__(
        self,
        context: Context,
        record: Record,
        *,
        crawl_result: "CrawlResult | None" = None,
        import_result: "ImportResult | None" = None,
        generation_summary: "GenerationSummary | None" = None,
    ) -> None:
        self._context = context
        self._record = record
        self._crawl_result = crawl_result
        self._import_result = import_result
        self._generation_summary = generation_summary

    @property
    def context(self) -> Context:
        """The store, the progress and the remarks of its study, for methods that work on it."""
        return self._context

    def _reopen_hint(self) -> str:
        return (
            "a run stays with its study: in another process, open it again with "
            f"kgbias.open({self._context.url!r}).run({self.name!r})"
        )

    @property
    def name(self) -> str:
        """Its name, by which `Study.run` finds it."""
        return self._record.name

    @property
    def id(self) -> str:
        """Its id by content: the same configuration, model and settings give the same id."""
        return self._record.id

    @property
    def stored(self) -> StoredRun:
        """The run in its store, for work below this layer."""
        return StoredRun(self._context.graph, self._record)

    def _select_statements(
        self, selection: Selection, counted: SelectedStatements | None = None
    ) -> SelectedStatements:
        """The statements that count, with a remark if some do not."""
        counted = counted or select_statements(self.stored, selection)
        self._context.remark(counted.note)
        return counted


def _series_name(run: Record) -> str:
    """The name of the series that a run belongs to; "" for none."""
    return str(run.config.get("series", ""))
