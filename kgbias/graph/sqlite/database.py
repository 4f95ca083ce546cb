"""The connection to the file: settings, transactions, and code shared by all tables.

A store that is removed while it is written to is missed at the next write
(tests/unit/test_damaged_store.py).
"""

import json
import os
import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple, Self

from kgbias.errors import StoreError
from kgbias.graph.integrity import check_name_unique
from kgbias.graph.record import (
    PropertyType,
    Record,
    build_record,
    canonical_json,
    property_getters,
)
from kgbias.graph.sqlite.connection import (
    MAX_BUSY_SECONDS,
    Connection,
    Cursor,
    is_busy,
    read_json,
    sqlite_error_name,
    translate_errors,
)
from kgbias.graph.sqlite.file_check import check_only_tables, is_store, read_only_url
from kgbias.graph.sqlite.filesystem import FileSystem, file_system_of, try_folder
from kgbias.graph.sqlite.leases import StoreInUse, hold_store
from kgbias.graph.sqlite.schema import (
    check_constraints,
    latest_tables,
    latest_version,
    migrate,
    schema_version,
)
from kgbias.graph.sqlite.selects import EDGE_SELECTS, NODE_SELECTS
from kgbias.graph.types import ChangeToken, NameProbe, StatementEdge, topic_model_id
from kgbias.models.base import ModelInfo

Row = tuple[Any, ...]

SYNCHRONOUS = "FULL"  # commits survive a power cut; tests turn this off for speed
_LOCK_WAIT_SECONDS = (
    1  # for which SQLite waits for a lock at a time: it is deaf to Ctrl-C meanwhile
)
# What SQLite says where it cannot lock a file, or cannot share memory.
_FILE_SYSTEM_ERRORS = (
    "SQLITE_BUSY",
    "SQLITE_IOERR",
    "SQLITE_PROTOCOL",
    "SQLITE_CANTOPEN",
    "SQLITE_NOLFS",
)
_STEPS_PER_CHECK = (
    1_000_000  # of SQLite's machine between two looks for Ctrl-C: tens of milliseconds
)
MIN_LARGE_FILE_BYTES = 32 << 20  # bytes of a file that takes seconds to read
_CONTENT_CHARACTERS = 32  # characters of the state's token that only what runs hold replaces
_MAX_VARIABLES = 500  # ids in one IN (...) list; SQLite allows more, this keeps plans cached


def file_stamp(path: str) -> str:
    """The size and time of a file and its log."""
    stamps = []
    for name in (path, path + "-wal"):
        try:
            status = Path(name).stat()
        except FileNotFoundError:
            continue
        if status.st_size:  # an empty log says nothing, and comes and goes
            stamps.append(f"{status.st_ino} {status.st_size} {status.st_mtime_ns}")
    return ", ".join(stamps)


def _end_log(db: Connection) -> None:
    """Turn a file with a log into one with a journal. Where memory cannot be shared, a log can only
    be read by a connection that locks the file for itself before it looks."""
    db.execute("PRAGMA locking_mode = EXCLUSIVE")
    db.execute("PRAGMA journal_mode = DELETE").fetchall()
    db.execute("PRAGMA locking_mode = NORMAL")
    db.execute("SELECT count(*) FROM sqlite_master").fetchall()  # lets go of the lock


def _look_for_ctrl_c(db: Connection) -> None:
    """Be back in Python now and then, which looks for Ctrl-C."""
    db.set_progress_handler(lambda: None, _STEPS_PER_CHECK)


def _json_array(name: str, kind: PropertyType) -> str:
    """A column of the table `t` as a JSON array, without loss."""
    column = f't."{name}"'
    if kind in ("texts", "numbers"):  # JSON, which would become a part of the array
        column += " || ''"
    if kind != "number":
        return f"json_group_array({column})"
    # There, numbers would get 15 digits. Those of 17 by SQLite are exact for numbers of this size.
    digits = f"""CASE WHEN typeof({column}) <> 'real' THEN coalesce({column}, 'null')
        WHEN {column} = 0 OR abs({column}) BETWEEN 1e-10 AND 1e10 THEN printf('%!.17g', {column})
        ELSE json_number({column}) END"""
    return f"'[' || coalesce(group_concat({digits}), '') || ']'"  # NULL without rows


def _column_getter(
    name: str, getters_by_name: Mapping[str, Callable[[Any], Any]], given_values: Mapping[str, Any]
) -> Callable[[Any], Any]:
    """The function that gives the value of a column for a record; lists become JSON."""
    if name in given_values:
        value = given_values[name]
        return value if callable(value) else lambda _: value
    if (get := getters_by_name.get(name)) is None:
        return attrgetter(name)

    def stored_value(record: Any) -> Any:
        field_value = get(record)
        return canonical_json(field_value) if isinstance(field_value, list) else field_value

    return stored_value


@cache
def _model_title(name: str, revision: str, display_name: str) -> str:
    """What a model is called; a column of edges may ask millions of times."""
    return ModelInfo(name, revision, display_name).title


class _OpenedFile(NamedTuple):
    """A connection that has read from the file, and the file's schema version."""

    connection: Connection
    version: int


class Database:
    """One SQLite file: its connection, transactions, and methods shared by all tables."""

    def __init__(
        self, path: str, *, create: bool = True, notify: Callable[[str], None] | None = None
    ) -> None:
        self.url = path
        self._file = None if path == ":memory:" else Path(os.path.realpath(path))
        self._notify = notify or (lambda _: None)
        self._writable = False  # until the first write
        self._exclusive: ExitStack | None = None  # where only one process may use the file
        if not is_store(path) and not create:
            raise StoreError(
                f"no store at {path}: the file does not exist; crawl into it first, or name another"
            )
        try:
            self._db, version = self._open()
            if version != latest_version():
                self._prepare_writing()
            else:
                self._db.execute("PRAGMA query_only = ON")
        except BaseException:
            Database.close(self)
            raise

    _db: Connection

    def _open(self) -> _OpenedFile:
        """A connection that has read from the file, in the way that its file system allows, and the
        file's schema version."""
        system = file_system_of(self.url)
        try:
            if system.access == "shared":
                try:
                    # Without waiting: what looks like a lock may be a lack of locks.
                    return self._connect(self.url, patience=0)
                except StoreError as error:
                    if not sqlite_error_name(error).startswith(_FILE_SYSTEM_ERRORS):
                        raise
                    with suppress(OSError):  # nothing can be written there
                        system = try_folder(self._folder)
            if system.access == "shared":
                return self._connect(self.url)
            self._announce(system)
            if system.access == "alone":
                self._exclusive = ExitStack()
                self._exclusive.enter_context(hold_store(os.path.realpath(self.url), system.reason))
            return self._connect(self.url, lacking=system.access)
        except StoreInUse:
            raise
        except StoreError as error:  # its folder is read-only and cannot hold a log
            if is_busy(error) or not is_store(self.url):
                raise
            return self._connect(read_only_url(self.url), uri=True)

    @property
    def _folder(self) -> Path:
        return Path(os.path.realpath(self.url)).parent

    def _announce(self, system: FileSystem) -> None:
        restriction = "one process at a time can use it"
        if system.access == "journal":
            restriction = (
                "it is kept without a log, so that readers and writers wait for each other"
            )
        self._notify(f"{self.url} is on {system.reason}: {restriction}")

    def _connect(
        self,
        address: str,
        *,
        uri: bool = False,
        patience: float = MAX_BUSY_SECONDS,
        lacking: str = "",
    ) -> _OpenedFile:
        """A connection that has read from the file, and the file's schema version."""
        if lacking == "alone":
            # SQLite locks nothing: `hold_store` keeps others out.
            address, uri = Path(self.url).absolute().as_uri() + "?vfs=unix-none", True
        with translate_errors(self.url):
            db = sqlite3.connect(
                # Transactions begin and end here, not where Python would.
                address,
                timeout=0,
                isolation_level=None,
                factory=Connection,
                uri=uri,
            )
        try:
            db.path, db.patience, db.notify = self.url, patience, self._notify
            if lacking:
                _end_log(db)
            _look_for_ctrl_c(db)
            db.execute("PRAGMA cache_size = -262144")  # 256 MB: random keys in bulk
            db.execute("PRAGMA temp_store = MEMORY")
            db.create_function("topic_model_id", 2, topic_model_id, deterministic=True)
            db.create_function("model_title", 3, _model_title, deterministic=True)
            db.create_function("json_number", 1, json.dumps, deterministic=True)
            # A stranger's file must not call functions from its schema.
            db.execute("PRAGMA trusted_schema = OFF")
            check_only_tables(db, self.url)
            version = schema_version(db)
            check_constraints(db, self.url, version)
            db.patience = MAX_BUSY_SECONDS
            db.execute(f"PRAGMA busy_timeout = {_LOCK_WAIT_SECONDS * 1000}")
            return _OpenedFile(db, version)
        except BaseException:
            db.close()
            raise

    def _prepare_writing(self) -> None:
        """Prepare the file for writing. A store that is only read stays the same, byte for byte."""
        if not self._writable:
            self._db.execute("PRAGMA query_only = OFF")
            self._use_write_ahead_log()
            self._db.execute(f"PRAGMA synchronous = {SYNCHRONOUS}")
            with translate_errors(self.url):
                migrate(self._db)
            self._writable = True

    def _use_write_ahead_log(self) -> None:
        """Have writes go to a log first, where the file system allows it."""
        if self._exclusive or file_system_of(self.url).access != "shared":
            return
        (mode,) = self._db.execute("PRAGMA journal_mode").fetchone()
        if mode == "wal":
            return
        with suppress(OSError):  # a folder that cannot be written: the next line says so
            if (system := try_folder(self._folder)).access != "shared":
                return self._announce(system)
        self._db.execute("PRAGMA journal_mode = WAL")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        if hasattr(self, "_db"):
            self._db.close()
        if self._exclusive:
            self._exclusive.close()

    def models(self) -> list[ModelInfo]:
        rows = self._db.execute(
            "SELECT name, revision, display_name FROM model ORDER BY name, revision"
        )
        return [ModelInfo(*row) for row in rows]

    def _models_by_id(self) -> dict[str, ModelInfo]:
        return {model.id: model for model in self.models()}

    def set_display_name(self, model: ModelInfo) -> None:
        with self._transaction():
            self._add_model(model)
            models = self.models()
            check_name_unique(model, models)
            for known_title in (m.title for m in models if m == model):
                self._db.execute(
                    "UPDATE flagged SET model = ? WHERE revision = ? AND model IN (?, ?, ?)",
                    (model.title, model.revision, model.name, model.public_name, known_title),
                )
            self._db.execute(
                "UPDATE model SET display_name = ? WHERE id = ?", (model.display_name, model.id)
            )

    def _add_model(self, model: ModelInfo) -> None:
        row = (model.id, model.name, model.revision, model.display_name)
        added = self._db.execute(
            "INSERT OR IGNORE INTO model (id, name, revision, display_name) VALUES (?, ?, ?, ?)",
            row,
        )
        if added.rowcount:
            check_name_unique(model, self.models())

    @contextmanager
    def _transaction(self, *, outside_runs: bool = False) -> Iterator[None]:
        """Write everything inside or nothing, and replace the token of the store's state: what is
        written `outside_runs` changes nothing of the runs, and leaves its first
        `_CONTENT_CHARACTERS` characters."""
        self._prepare_writing()
        self._db.execute("BEGIN IMMEDIATE")  # a lock that is taken later can fail in the middle
        try:
            if self._file is not None and not self._file.exists():
                # The system keeps what is open until it is closed, and then nothing of it.
                raise StoreError(
                    f"{self.url} was removed or moved while it was in use: nothing more is kept"
                )
            yield
            new_token = "lower(hex(randomblob(16)))"
            kept_part = f"substr(token, 1, {_CONTENT_CHARACTERS}) || " if outside_runs else ""
            self._db.execute(f"UPDATE state SET token = {kept_part}{new_token}")
            self._db.execute("COMMIT")
        except BaseException:
            if self._db.in_transaction:  # a full disk ends the transaction by itself
                self._db.execute("ROLLBACK")
            raise

    @contextmanager
    def read_snapshot(self) -> Iterator[None]:
        """All reads inside see the file at one moment, whatever others write meanwhile."""
        self._db.execute("BEGIN")
        try:
            yield
        finally:
            if self._db.in_transaction:
                self._db.execute("COMMIT")

    @property
    def is_large(self) -> bool:
        """Whether it takes seconds to read all that the file holds."""
        (pages,) = self._db.execute("PRAGMA page_count").fetchone()
        (page_bytes,) = self._db.execute("PRAGMA page_size").fetchone()
        return bool(pages * page_bytes >= MIN_LARGE_FILE_BYTES)

    def token(self) -> str:
        """A text that every write by kgbias replaces: the same token means the same content."""
        return str(self._db.execute("SELECT token FROM state").fetchone()[0])

    def change_token(self) -> ChangeToken:
        (last_answer,) = self._db.execute("SELECT coalesce(max(rowid), 0) FROM answer").fetchone()
        return ChangeToken(self.token()[:_CONTENT_CHARACTERS], last_answer)

    def content_version(self) -> str:
        """A text that changes with every write, even by another program: the token, with the size
        and time of the file and its log."""
        self.checkpoint()  # so that closing the file later does not look like a write
        return f"{self.token()} {file_stamp(os.path.realpath(self.url))}"

    def checkpoint(self) -> None:
        """Move the write-ahead log into the file, unless another connection is in the way."""
        self._db.execute("PRAGMA busy_timeout = 0")
        self._db.patience = 0
        with suppress(StoreError):  # a read-only file
            self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        self._db.patience = MAX_BUSY_SECONDS
        self._db.execute(f"PRAGMA busy_timeout = {_LOCK_WAIT_SECONDS * 1000}")

    def _json(self, text: str) -> Any:
        return read_json(text, self.url)

    def _write_records(
        self,
        table: str,
        records: Iterable[object],
        how: str = "INSERT OR REPLACE",
        then: str = "",
        **given_values: Any,
    ) -> None:
        """Write records as rows of a table. A column takes the value given for it (one for all, or
        a function of the record), else the record's property or attribute of that name."""
        rows = list(records)
        if not rows:
            return
        kind: type = type(rows[0])
        names, property_values = latest_tables()[table], property_getters(kind)
        columns = [_column_getter(name, property_values, given_values) for name in names]
        self._db.executemany(
            f'{how} INTO "{table}" ({", ".join(names)}) '
            f"VALUES ({', '.join('?' * len(names))}) {then}",
            [[column(record) for column in columns] for record in rows],
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
        return build_record(kind, row, self._json)

    def _node_rows(self, label: str, ids: Collection[str] | None = None) -> list[dict[str, Any]]:
        return self._graph_rows(NODE_SELECTS[label], {} if ids is None else {"uid": ids})

    def _edge_rows(
        self, type: str, ends: tuple[str, str], wanted: Mapping[str, Collection[str]]
    ) -> list[dict[str, Any]]:
        return self._graph_rows(EDGE_SELECTS[type, *ends], wanted)

    def _graph_rows(
        self, select: str, wanted: Mapping[str, Collection[str]]
    ) -> list[dict[str, Any]]:
        """The rows of a SELECT in which each of these columns has one of its values."""
        # A list of any length as one parameter.
        values = {name: canonical_json(list(wanted[name])) for name in wanted}
        conditions = [f"{name} IN (SELECT value FROM json_each(:{name}))" for name in wanted]
        where = " AND ".join(conditions) or "TRUE"
        return list(self._rows(f"SELECT * FROM ({select}) WHERE {where}", values))

    def select_columns(self, query: str, types: Mapping[str, PropertyType]) -> dict[str, str]:
        """The columns of a query that `types` names, each as a JSON array. SQLite makes these while
        other threads of Python run; for rows, it would wait for the others at each."""
        arrays = ", ".join(_json_array(*column) for column in types.items())
        self._db.set_progress_handler(None, 0)  # it would wait for them there, too
        try:
            (texts,) = self._db.execute(f"SELECT {arrays} FROM ({query}) AS t")
            return dict(zip(types, texts, strict=True))
        except StoreError as error:
            if sqlite_error_name(error) != "SQLITE_TOOBIG":  # a gigabyte
                raise
        finally:
            _look_for_ctrl_c(self._db)
        columns = ", ".join(f't."{name}"' for name in types)
        rows = self._db.execute(f"SELECT {columns} FROM ({query}) AS t").fetchall()
        return {
            name: json.dumps(values, ensure_ascii=False)
            for name, values in zip(types, zip(*rows, strict=True), strict=True)
        }

    def _select_sorted(self, query: str, values: Row | Mapping[str, Any]) -> Cursor:
        """The rows of a query that sorts a whole run: what does not fit in 256 MB (the cache) is
        kept in temporary files meanwhile."""
        self._db.execute("PRAGMA temp_store = FILE")
        try:
            return self._db.execute(query, values)  # sorts, and reads the first row
        finally:
            self._db.execute("PRAGMA temp_store = MEMORY")

    def _select_in(self, query: str, ids: Sequence[str], *first_values: str) -> Iterator[Row]:
        for start in range(0, len(ids), _MAX_VARIABLES):
            chunk = ids[start : start + _MAX_VARIABLES]
            yield from self._db.execute(
                query.format(", ".join("?" * len(chunk))), (*first_values, *chunk)
            )
