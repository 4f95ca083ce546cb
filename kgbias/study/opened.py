"""The store of a study, opened when it is needed, and how long work on it is shown."""

import math
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Self

from kgbias.errors import StoreError, UsageError
from kgbias.graph.store import DEFAULT_STORE, Store, open_store
from kgbias.io.progress import Progress, working


class OpenedStore:
    """What a study is opened by; the base of `Study`."""

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
        self._opened = ExitStack()
        self._progress = progress
        self._current: Progress | None = None
        self._remarked: set[str] = set()
        self._store: Store | None = None
        self._closed = False
        if store is None:
            folder = self._opened.enter_context(TemporaryDirectory(prefix="kgbias-"))
            store = Path(folder) / "kgbias.db"
        self.url = str(store)
        if "://" in self.url or Path(self.url).exists():
            self._open(create=True)

    @property
    def store(self) -> Store:
        """The open store, for work below this layer. Raises StoreError if there is no store yet, or
        the study is closed."""
        return self._open(create=False)

    def _writable(self) -> Store:
        return self._open(create=True)

    def _open(self, *, create: bool) -> Store:
        if self._closed:
            raise StoreError(f"the study of {self.url} is closed")
        if self._store is None:
            self._store = self._opened.enter_context(
                open_store(self.url, create=create, notify=self._notify)
            )
            self._store.query_timeout = self._query_timeout
        return self._store

    @contextmanager
    def working(self, *, whole: bool = False) -> Iterator[Progress]:
        """Show the progress of a method the way the study was opened to (`kgbias.io.progress`)."""
        with working(self._progress, whole=whole) as progress:
            self._current = progress
            try:
                yield progress
            finally:
                self._current = None

    def _remark(self, text: str) -> None:
        """Show a line once, however often it is remarked; an empty one never."""
        if text and text not in self._remarked:
            self._remarked.add(text)
            self._notify(text)

    def _notify(self, text: str) -> None:
        """Show what the store says while it waits for its server."""
        if self._current is not None:
            self._current.note(text)
            return
        with working(self._progress) as progress:
            progress.note(text)

    def close(self) -> None:
        """Close the store. A study cannot be used afterwards."""
        self._closed = True
        self._opened.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: Any) -> None:
        self._closed = True
        self._opened.__exit__(*error)  # the store may know why
