"""The connection to the file: settings, transactions, and code shared by all tables."""

import os
import random
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from operator import attrgetter
from pathlib import Path
from typing import Any, Self

from kgbias.errors import StoreError
from kgbias.graph.keeping import check_alone
from kgbias.graph.record import Record, canonical_json, getters, record_of
from kgbias.graph.sqlite.file import is_store, only_tables, read_only_url
from kgbias.graph.sqlite.guard import Connection, Cursor, from_json, guarded
from kgbias.graph.sqlite.schema import (
    latest,
    migrate,
    only_our_constraints,
    tables,
    version_of,
)
from kgbias.graph.types import NameProbe, Pulse, StatementEdge, topic_model_id
from kgbias.models.base import ModelInfo

Row = tuple[Any, ...]

SYNCHRONOUS = "FULL"  # commits survive a power cut; tests turn this off for speed
_BUSY_SECONDS = 60
_STEPS = 1_000_000  # of SQLite's machine between two looks for Ctrl-C: tens of milliseconds
_CONTENT = 32  # characters of the state's token that only what runs hold replaces
_MAX_VARIABLES = 500  # ids in one IN (...) list; SQLite allows more, this keeps plans cached


def stamp(path: str) -> str:
    """The size and time of a file and its log."""
    found = []
    for name in (path, path + "-wal"):
        try:
            status = Path(name).stat()
        except FileNotFoundError:
            continue
        if status.st_size:  # an empty log says nothing, and comes and goes
            found.append(f"{status.st_ino} {status.st_size} {status.st_mtime_ns}")
    return ", ".join(found)


def _column(
    name: str, own: Mapping[str, Callable[[Any], Any]], given: Mapping[str, Any]
) -> Callable[[Any], Any]:
    """The function that gives the value of a column for a record; lists become JSON."""
    if name in given:
        value = given[name]
        return value if callable(value) else lambda _: value
    if (get := own.get(name)) is None:
        return attrgetter(name)

    def kept(record: Any) -> Any:
        value = get(record)
        return canonical_json(value) if isinstance(value, list) else value

    return kept


@cache
def _title(name: str, revision: str, own_name: str) -> str:
    """What a model is called; a column of edges may ask millions of times."""
    return ModelInfo(name, revision, own_name).title


class Database:
    """One SQLite file: its connection, transactions, and methods shared by all tables."""

    def __init__(self, path: str, *, create: bool = True) -> None:
        self.url = path
        self._writable = False  # until the first write
        if not is_store(path) and not create:
            raise StoreError(
                f"no store at {path}: the file does not exist; crawl into it first, or name another"
            )
        try:
            self._db, version = self._connect(path)
        except StoreError:  # its folder is read-only and cannot hold a log
            if not is_store(path):
                raise
            self._db, version = self._connect(read_only_url(path), uri=True)
        try:
            if version != latest():
                self._for_writing()
            else:
                self._db.execute("PRAGMA query_only = ON")
        except BaseException:
            self._db.close()
            raise

    def _connect(self, address: str, *, uri: bool = False) -> tuple[Connection, int]:
        """A connection that has read from the file, and the file's schema version."""
        with guarded(self.url):
            db = sqlite3.connect(
                address, timeout=_BUSY_SECONDS, isolation_level=None, factory=Connection, uri=uri
            )
        try:
            db.path = self.url
            db.set_progress_handler(lambda: None, _STEPS)
            db.execute("PRAGMA cache_size = -262144")  # 256 MB: random keys in bulk
            db.execute("PRAGMA temp_store = MEMORY")
            db.create_function("topic_model_id", 2, topic_model_id, deterministic=True)
            db.create_function("model_title", 3, _title, deterministic=True)
            db.execute("PRAGMA trusted_schema = OFF")
            only_tables(db, self.url)
            version = version_of(db)
            only_our_constraints(db, self.url, version)
            return db, version
        except BaseException:
            db.close()
            raise

    def _for_writing(self) -> None:
        """Prepare the file for writing. A store that is only read stays the same, byte for byte."""
        if not self._writable:
            self._db.execute("PRAGMA query_only = OFF")
            self._log_ahead()
            self._db.execute(f"PRAGMA synchronous = {SYNCHRONOUS}")
            with guarded(self.url):
                migrate(self._db)
            self._writable = True

    def _log_ahead(self) -> None:
        """Have writes go to a log first. If several connections switch to it at once on a new file,
        SQLite refuses some immediately, although for any other lock they would wait."""
        until = time.monotonic() + _BUSY_SECONDS
        while True:
            try:
                self._db.execute("PRAGMA journal_mode = WAL")
                return
            except StoreError as error:
                name = getattr(error.__cause__, "sqlite_errorname", "")
                if not name.startswith("SQLITE_BUSY") or time.monotonic() > until:
                    raise
            time.sleep(random.uniform(0.005, 0.05))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._db.close()

    def models(self) -> list[ModelInfo]:
        rows = self._db.execute(
            "SELECT name, revision, own_name FROM model ORDER BY name, revision"
        )
        return [ModelInfo(*row) for row in rows]

    def call(self, model: ModelInfo) -> None:
        with self._transaction():
            self._add_model(model)
            others = self.models()
            check_alone(model, others)
            for known in (m.title for m in others if m == model):
                self._db.execute(
                    "UPDATE flagged SET model = ? WHERE revision = ? AND model IN (?, ?, ?)",
                    (model.title, model.revision, model.name, model.public, known),
                )
            self._db.execute("UPDATE model SET own_name = ? WHERE id = ?", (model.called, model.id))

    def _add_model(self, model: ModelInfo) -> None:
        row = (model.id, model.name, model.revision, model.called)
        added = self._db.execute(
            "INSERT OR IGNORE INTO model (id, name, revision, own_name) VALUES (?, ?, ?, ?)", row
        )
        if added.rowcount:
            check_alone(model, self.models())

    @contextmanager
    def _transaction(self, *, aside: bool = False) -> Iterator[None]:
        """Write everything inside or nothing, and replace the token of the store's state: what is
        written `aside` changes nothing of the runs, and leaves its first `_CONTENT` characters."""
        self._for_writing()
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
            new = "lower(hex(randomblob(16)))"
            stays = f"substr(token, 1, {_CONTENT}) || " if aside else ""
            self._db.execute(f"UPDATE state SET token = {stays}{new}")
            self._db.execute("COMMIT")
        except BaseException:
            if self._db.in_transaction:  # a full disk ends the transaction by itself
                self._db.execute("ROLLBACK")
            raise

    @contextmanager
    def one_moment(self) -> Iterator[None]:
        """All reads inside see the file at one moment, whatever others write meanwhile."""
        self._db.execute("BEGIN")
        try:
            yield
        finally:
            if self._db.in_transaction:
                self._db.execute("COMMIT")

    def token(self) -> str:
        """A text that every write by kgbias replaces: the same token means the same content."""
        return str(self._db.execute("SELECT token FROM state").fetchone()[0])

    def pulse(self) -> Pulse:
        (last,) = self._db.execute("SELECT coalesce(max(rowid), 0) FROM answer").fetchone()
        return Pulse(self.token()[:_CONTENT], last)

    def state(self) -> str:
        """A text that changes with every write, even by another program: the token, with the size
        and time of the file and its log."""
        self.checkpoint()  # so that closing the file later does not look like a write
        return f"{self.token()} {stamp(os.path.realpath(self.url))}"

    def checkpoint(self) -> None:
        """Move the write-ahead log into the file, unless another connection is in the way."""
        self._db.execute("PRAGMA busy_timeout = 0")
        with suppress(StoreError):  # a read-only file
            self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        self._db.execute(f"PRAGMA busy_timeout = {_BUSY_SECONDS * 1000}")

    def _json(self, text: str) -> Any:
        return from_json(text, self.url)

    def _put(
        self,
        table: str,
        records: Iterable[object],
        how: str = "INSERT OR REPLACE",
        then: str = "",
        **given: Any,
    ) -> None:
        """Write records as rows of a table. A column takes the value given for it (one for all, or
        a function of the record), else the record's property or attribute of that name."""
        found = list(records)
        if not found:
            return
        kind: type = type(found[0])
        names, own = tables()[table], getters(kind)
        columns = [_column(name, own, given) for name in names]
        self._db.executemany(
            f'{how} INTO "{table}" ({", ".join(names)}) '
            f"VALUES ({', '.join('?' * len(names))}) {then}",
            [[column(record) for column in columns] for record in found],
        )

    def _add_statements(self, edges: Sequence[StatementEdge] | Sequence[NameProbe]) -> None:
        """Write the statements of edges, unless they are there."""
        self._db.executemany(
            "INSERT OR IGNORE INTO statement VALUES (?, ?, ?)",
            {(e.statement_id, e.predicate_id, e.object_id) for e in edges},
        )

    def _rows(self, query: str, values: Row | Mapping[str, Any] = ()) -> Iterator[dict[str, Any]]:
        """The rows of a query, each by column name."""
        cursor = self._db.execute(query, values)
        names = [column[0] for column in cursor.description]
        return (dict(zip(names, row, strict=True)) for row in cursor)

    def _records(
        self, kind: type[Record], query: str, values: Row | Mapping[str, Any] = ()
    ) -> list[Record]:
        """The rows of a query as records; its columns have the names of properties and other
        fields."""
        return [self._record(kind, row) for row in self._rows(query, values)]

    def _record(self, kind: type[Record], row: Mapping[str, Any]) -> Record:
        return record_of(kind, row, self._json)

    def select(self, query: str) -> tuple[list[str], list[Row]]:
        """The column names of a query, and its rows."""
        cursor = self._db.execute(query)
        return [column[0] for column in cursor.description], cursor.fetchall()

    def _sorted(self, query: str, values: Row | Mapping[str, Any]) -> Cursor:
        """The rows of a query that sorts a whole run: what does not fit in 256 MB (the cache) is
        kept in temporary files meanwhile."""
        self._db.execute("PRAGMA temp_store = FILE")
        try:
            return self._db.execute(query, values)  # sorts, and reads the first row
        finally:
            self._db.execute("PRAGMA temp_store = MEMORY")

    def _select_in(self, query: str, ids: Sequence[str], *before: str) -> Iterator[Row]:
        for start in range(0, len(ids), _MAX_VARIABLES):
            chunk = ids[start : start + _MAX_VARIABLES]
            yield from self._db.execute(
                query.format(", ".join("?" * len(chunk))), (*before, *chunk)
            )
