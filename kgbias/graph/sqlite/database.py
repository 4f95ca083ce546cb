"""The connection to the file: settings, transactions, and what all tables share."""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

from kgbias.errors import StoreError
from kgbias.graph.sqlite.schema import migrate
from kgbias.models.base import ModelInfo

Row = tuple[Any, ...]

_BUSY_SECONDS = 60
_MAX_VARIABLES = 500  # ids in one IN (...) list; SQLite allows more, this keeps plans cached


class Database:
    """One SQLite file. The tables' methods are in the mixins beside this."""

    def __init__(self, path: str, *, create: bool = True) -> None:
        self.url = path
        if not create and not Path(path).is_file():
            raise StoreError(
                f"no store at {path}: there is no such file, and nothing was crawled into it yet"
            )
        try:
            self._db = sqlite3.connect(path, timeout=_BUSY_SECONDS, isolation_level=None)
            self._db.execute("PRAGMA journal_mode = WAL")
            self._db.execute("PRAGMA synchronous = FULL")
            self._db.execute("PRAGMA cache_size = -262144")  # 256 MB: random keys in bulk loads
            self._db.execute("PRAGMA temp_store = MEMORY")
            migrate(self._db)
        except sqlite3.Error as error:
            raise StoreError(f"cannot open {path} as a kgbias store: {error}") from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._db.close()

    def _add_model(self, model: ModelInfo) -> None:
        self._db.execute(
            "INSERT OR IGNORE INTO model VALUES (?, ?, ?)", (model.id, model.name, model.revision)
        )

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        try:
            self._db.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as error:
            raise StoreError(f"cannot write to {self.url}: {error}") from error
        try:
            yield
        except BaseException:
            self._db.execute("ROLLBACK")
            raise
        self._db.execute("COMMIT")

    @contextmanager
    def one_moment(self) -> Iterator[None]:
        """What is read inside is the file at one moment, whoever writes meanwhile."""
        self._db.execute("BEGIN")
        try:
            yield
        finally:
            self._db.execute("COMMIT")

    def select(self, query: str) -> tuple[list[str], list[Row]]:
        """The names of a query's columns, and its rows."""
        cursor = self._db.execute(query)
        return [column[0] for column in cursor.description], cursor.fetchall()

    def _select_in(self, query: str, ids: Sequence[str], *before: str) -> Iterator[Row]:
        for start in range(0, len(ids), _MAX_VARIABLES):
            chunk = ids[start : start + _MAX_VARIABLES]
            yield from self._db.execute(
                query.format(", ".join("?" * len(chunk))), (*before, *chunk)
            )
