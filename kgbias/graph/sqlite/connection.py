"""A SQLite connection whose errors are StoreErrors of one line that say what to do.

Another program that writes to the file is waited for a minute, which is said after five seconds
(tests/unit/test_damaged_store.py).
"""

import json
import os
import random
import re
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from kgbias.errors import StoreError, other_thread_error

_FETCH_ROWS = 1_000  # rows that iteration reads ahead
MAX_BUSY_SECONDS = 60.0  # for which another program that writes is waited for
_SILENT_WAIT_SECONDS = 5.0  # after which that is said
_PAGE_BYTES = 4096
_NO_LOCKS_MESSAGE = (
    "{path} cannot be locked ({error}): its file system has no locks, as some network drives: "
    "keep the store on a local disk"
)
_ADVICE = {
    "SQLITE_FULL": "the disk of {path} is full: free some space, then run the same command again",
    "SQLITE_READONLY": "{path} cannot be written: the file or its folder is read-only",
    "SQLITE_PERM": "{path} cannot be written: the file or its folder is read-only",
    "SQLITE_BUSY": "another program is writing to {path}: wait until it is done, then try again",
    "SQLITE_LOCKED": "another program is writing to {path}: wait until it is done, then try again",
    "SQLITE_IOERR_SHMMAP": "{path} cannot be opened ({error}): memory ran out (ulimit -v), or its "
    "file system has no shared memory, as some network drives: keep the store on a local disk",
    "SQLITE_IOERR_LOCK": _NO_LOCKS_MESSAGE,
    "SQLITE_IOERR_UNLOCK": _NO_LOCKS_MESSAGE,
    "SQLITE_IOERR_RDLOCK": _NO_LOCKS_MESSAGE,
    "SQLITE_IOERR": "{path} cannot be read or written ({error}): check the disk it is on, and "
    "limits (ulimit -f)",
    "SQLITE_CANTOPEN": "{path} cannot be opened: check that its folder exists and can be written",
}
# Errors that SQLite calls a mistake of ours, but that mean a damaged schema, header or value.
_DAMAGE_PATTERN = re.compile(
    r"no such table|no such column|unsupported file format|table .* has (no column|\d+ columns but)"
    r"|(table|index) .* already exists|duplicate column name"
    r"|integer overflow|malformed JSON"
)
_DAMAGED_MESSAGE = (
    "{path} is damaged ({error}): restore a copy, or save what can still be read with "
    "`sqlite3 {path} .recover | sqlite3 NEW.db`"
)

# Errors caused by a value that does not fit the schema: SQLite checks values only where it must.
WRONG_VALUE_ERRORS = (
    TypeError,
    ValueError,
    LookupError,
    AttributeError,
    ArithmeticError,
    RecursionError,
    MemoryError,
    sqlite3.IntegrityError,  # in another file, when copied there
)


class Connection(sqlite3.Connection):
    """Runs statements by `execute` and `executemany`; their rows are read by iteration, `fetchone`
    or `fetchall`."""

    path = ""
    patience = MAX_BUSY_SECONDS
    notify: Callable[[str], None] = staticmethod(lambda _: None)

    def execute(self, sql: str, parameters: Any = (), /) -> "Cursor":
        """Run a statement; while another program keeps it from being run, wait, and say so."""
        started, has_noted = time.monotonic(), False
        while True:
            try:
                with translate_errors(self.path):
                    return self.cursor(Cursor).execute(sql, parameters)
            except StoreError as error:
                waited_seconds = time.monotonic() - started
                if not is_busy(error) or waited_seconds >= self.patience:
                    raise
            if waited_seconds > _SILENT_WAIT_SECONDS and not has_noted:
                has_noted = True
                self.notify(
                    f"another program is writing to {self.path}: waiting up to "
                    f"{self.patience:.0f} s for it"
                )
            # At random, so that two that wait do not try in step.
            time.sleep(random.uniform(0.005, 0.05))

    def executemany(self, sql: str, parameters: Iterable[Any], /) -> "Cursor":
        with translate_errors(self.path):
            return self.cursor(Cursor).executemany(sql, parameters)


class Cursor(sqlite3.Cursor):
    """The rows of a statement."""

    connection: Connection

    def __iter__(self) -> Iterator[Any]:  # type: ignore[override]
        while True:
            with translate_errors(self.connection.path):
                # By the thousand, so that the guard is entered once for all of them.
                rows = self.fetchmany(_FETCH_ROWS)
            if not rows:
                return
            yield from rows

    def fetchone(self) -> Any:
        with translate_errors(self.connection.path):
            return super().fetchone()

    def fetchall(self) -> list[Any]:
        with translate_errors(self.connection.path):
            return super().fetchall()


def sqlite_error_name(error: StoreError) -> str:
    """SQLite's name of the error behind this one, such as "SQLITE_BUSY"; "" if it is another's."""
    return str(getattr(error.__cause__, "sqlite_errorname", ""))


def is_busy(error: StoreError) -> bool:
    """Whether the same statement may succeed later: a transaction that began with what others have
    changed since then never will."""
    code = sqlite_error_name(error)
    return code.startswith("SQLITE_BUSY") and code != "SQLITE_BUSY_SNAPSHOT"


@contextmanager
def translate_errors(path: str) -> Iterator[None]:
    """Turn SQLite errors inside into StoreErrors, except those that only a bug in kgbias causes;
    the one that Ctrl-C causes into KeyboardInterrupt."""
    try:
        yield
    except sqlite3.ProgrammingError as error:
        if "closed database" in str(error):
            raise StoreError(f"the study {path} is closed") from error
        if "created in a thread" in str(error):
            raise other_thread_error(path) from error
        raise
    except (sqlite3.InterfaceError, sqlite3.IntegrityError):
        raise
    except UnicodeDecodeError as error:  # an error's message, or a name, is not text
        raise StoreError(_DAMAGED_MESSAGE.format(path=path, error="a text is not UTF-8")) from error
    except sqlite3.Error as error:
        name = getattr(error, "sqlite_errorname", "")
        is_damage = _DAMAGE_PATTERN.match(str(error))
        if name == "SQLITE_INTERRUPT":
            raise KeyboardInterrupt from error
        if name == "SQLITE_ERROR" and not is_damage:
            raise
        advice = next(
            (text for code, text in _ADVICE.items() if name.startswith(code)), _DAMAGED_MESSAGE
        )
        # Leave out the text that could not be decoded: it is the model's, and may be of any length.
        reason = " ".join(str(error).partition(" with text ")[0].split())
        if advice == _ADVICE["SQLITE_IOERR"] and (system_reason := _try_disk(path)):
            reason += f": {system_reason}"
        raise StoreError(advice.format(path=path, error=reason)) from error


def _try_disk(path: str) -> str:
    """What the system says where a page is written beside a store's file, as a quota that is used
    up; "" if it can be. SQLite does not pass it on."""
    with suppress(ValueError):  # no path
        try:
            size = Path(path).stat().st_size
            with tempfile.TemporaryFile(dir=Path(path).parent) as file:
                file.seek(size)
                file.write(b"\0" * _PAGE_BYTES)
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            return error.strerror or str(error)
    return ""


def damage_error(path: str, what: str) -> StoreError:
    """The error for a damaged file."""
    return StoreError(_DAMAGED_MESSAGE.format(path=path, error=" ".join(what.split())))


def read_json(text: str, path: str) -> Any:
    """A value that a column keeps as JSON."""
    try:
        return json.loads(text)
    except (ValueError, TypeError, RecursionError) as error:
        raise StoreError(_DAMAGED_MESSAGE.format(path=path, error="a value is not JSON")) from error
