"""Checks of whose file a path is: nothing is written to one that is not a kgbias store."""

import errno
import os
import re
import sqlite3
import struct
import time
from contextlib import closing, suppress
from pathlib import Path

from kgbias.errors import StoreError
from kgbias.io.text import shorten

APPLICATION_ID = int.from_bytes(b"kgbs", "big")  # PRAGMA application_id of every store
_MAX_LOOKS = 5
_MARKER_TABLES = {
    "run",
    "triple",
    "generation",
    "answer",
}  # these mark a store whose id `.dump` left out


def is_store(path: str) -> bool:
    """Whether there is a store at `path`; False if there is nothing, or an empty file.

    Raises StoreError for a file that is something else, which is left unchanged."""
    file = Path(path)
    try:
        if not file.exists():
            return False
        if not file.is_file():
            raise StoreError(f"cannot open {path} as a store: it is not a file")
        if not file.stat().st_size:
            return False
        if not os.access(path, os.R_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    except OSError as error:
        raise StoreError(f"cannot open {path}: {error.strerror}") from error
    application = _read_application_id(path)
    for _ in range(_MAX_LOOKS):  # another process may be moving its log into the file
        if application == APPLICATION_ID or (application == 0 and _has_our_tables(path)):
            break
        time.sleep(0.05)
        with suppress(StoreError):
            application = _read_application_id(path)
    else:
        raise StoreError(f"cannot open {path}: it is another program's database, left as it is")
    if application == APPLICATION_ID and _is_foreign_log(Path(f"{path}-wal")):
        raise StoreError(
            f"cannot open {path}: {path}-wal beside it is the log of another database, which "
            "SQLite would write over this one: move it away"
        )
    return True


# The format of a log: https://www.sqlite.org/fileformat2.html#walformat
_LOG_MAGIC = (0x377F0682, 0x377F0683)
_LOG_HEADER_BYTES, _FRAME_HEADER_BYTES = 32, 24  # bytes
_ID_OFFSET = 68  # of the application id in the first page of a database, in bytes
_MAX_FRAMES = 10_000  # frames of a log that are looked at: 40 MB of pages


def _is_foreign_log(log: Path) -> bool:
    """Whether a log of changes holds another database's first page. One that lacks a first page
    cannot be told from a store's own."""
    with suppress(OSError, struct.error), log.open("rb") as file:
        magic, _, page_size, _, *salts = struct.unpack(">6I8x", file.read(_LOG_HEADER_BYTES))
        for _ in range(_MAX_FRAMES if magic in _LOG_MAGIC else 0):
            page, _, *frame_salts = struct.unpack(">4I8x", file.read(_FRAME_HEADER_BYTES))
            if frame_salts != salts:  # left over from before the log began anew
                return False
            if page == 1:
                file.seek(_ID_OFFSET, os.SEEK_CUR)
                return file.read(4) != APPLICATION_ID.to_bytes(4, "big")
            file.seek(page_size, os.SEEK_CUR)
    return False


def _read_application_id(path: str) -> int:
    """The application id in the file's header.

    It is read through SQLite: if the file were opened and closed here, POSIX would drop the locks
    that other connections of this process hold (sqlite.org/howtocorrupt.html, section 2.2)."""
    # `immutable`: without locks, and without a look at the log.
    url = Path(path).absolute().as_uri() + "?mode=ro&immutable=1"
    try:
        with closing(sqlite3.connect(url, uri=True)) as db:
            return int(db.execute("PRAGMA application_id").fetchone()[0])
    except sqlite3.DatabaseError as error:
        if error.sqlite_errorcode == sqlite3.SQLITE_NOTADB:
            raise StoreError(f"cannot open {path}: it is not a kgbias store") from error
        return APPLICATION_ID  # damaged: reading it will say what is wrong


def read_only_url(path: str) -> str:
    """A URL that opens the file for reading. Unless a log of changes is beside it, nothing is
    written, not even beside it."""
    url = Path(path).absolute().as_uri() + "?mode=ro"
    # With a log, part of the content is in it: `immutable` would read the file without.
    return url if Path(f"{path}-wal").exists() else url + "&immutable=1"


# What acts by itself in a database, by kind and name. A function is called only with a parenthesis.
_ACTIVE_OBJECTS = """
SELECT type, name FROM sqlite_master WHERE type IN ('view', 'trigger')
UNION ALL
SELECT 'virtual table', name FROM sqlite_master WHERE sql LIKE 'CREATE VIRTUAL%'
UNION ALL
SELECT CASE WHEN c.hidden THEN 'computed column' ELSE 'computed default of' END, c.name
FROM sqlite_master AS t, pragma_table_xinfo(t.name) AS c
WHERE t.type = 'table' AND (c.hidden <> 0 OR c.dflt_value LIKE '%(%')
UNION ALL
SELECT 'computed index', i.name
FROM sqlite_master AS t, pragma_index_list(t.name) AS i, pragma_index_xinfo(i.name) AS c
WHERE t.type = 'table' AND (i.partial OR c.cid = -2 OR c.coll <> 'BINARY')
"""
_CONSTRAINT_PATTERN = re.compile(r"\b(CHECK|CONFLICT)\b", re.IGNORECASE)
_HARMLESS_REMARK = (
    "SQLite's integrity check wants"  # in a comment that SQLite keeps of a table of schema 100
)


def check_only_tables(db: sqlite3.Connection, path: str) -> None:
    """Raise StoreError for a file that contains anything that acts by itself: a trigger or a
    constraint, which decides what is written; a view, a virtual table, or a computed column,
    default or index, which may take any time and memory."""
    active_object = db.execute(_ACTIVE_OBJECTS).fetchone() or next(
        (
            ("constraint of the table", name)
            for name, sql in db.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table'")
            if _CONSTRAINT_PATTERN.search(sql.replace(_HARMLESS_REMARK, ""))
        ),
        None,
    )
    if active_object is not None:
        raise active_object_error(path, *active_object)


def active_object_error(path: str, kind: str, name: str) -> StoreError:
    """The error for a file that contains something that acts by itself."""
    return StoreError(
        f"cannot open {path}: it holds the {kind} {shorten(str(name), 50)!r}, which is not "
        "kgbias's and could change what is read or written: remove it with sqlite3, or restore a "
        "copy"
    )


def _has_our_tables(path: str) -> bool:
    """Whether the file has a store's tables, or none yet: another process may be creating it, or a
    full disk may have prevented that."""
    try:
        with closing(sqlite3.connect(read_only_url(path), uri=True)) as db:
            rows = db.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
    except (sqlite3.Error, UnicodeDecodeError):
        return True  # damaged: reading it will say what is wrong
    table_names = {name for (name,) in rows}
    return not table_names or table_names >= _MARKER_TABLES
