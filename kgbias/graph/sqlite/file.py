"""Whose file a path is: nothing is written to one that is not a kgbias store."""

import sqlite3
from contextlib import closing
from pathlib import Path

from kgbias.errors import StoreError

APPLICATION = int.from_bytes(b"kgbs", "big")  # PRAGMA application_id of every store
_MAGIC = b"SQLite format 3\0"
_TABLES = {"run", "triple", "generation", "answer"}  # of stores from before they had an id


def is_store(path: str) -> bool:
    """Whether there is a store at `path`; False where there is nothing, or an empty file.

    Raises StoreError, without having changed it, for a file that is something else."""
    file = Path(path)
    try:
        if not file.exists():
            return False
        if not file.is_file():
            raise StoreError(f"cannot open {path} as a store: it is not a file")
        with file.open("rb") as opened:
            head = opened.read(100)
    except OSError as error:
        raise StoreError(f"cannot open {path}: {error.strerror}") from error
    if not head:
        return False
    if not head.startswith(_MAGIC) or len(head) < 100:
        raise StoreError(f"cannot open {path}: it is not a kgbias store")
    application = int.from_bytes(head[68:72], "big")
    if application != APPLICATION and (application or not _has_our_tables(path)):
        raise StoreError(f"cannot open {path}: it is another program's database, left as it is")
    return True


def read_only_url(path: str) -> str:
    """A URL that opens the file without writing anything, not even beside it, where no log of
    changes lies beside it."""
    url = Path(path).absolute().as_uri() + "?mode=ro"
    return url if Path(f"{path}-wal").exists() else url + "&immutable=1"


def _has_our_tables(path: str) -> bool:
    try:
        with closing(sqlite3.connect(read_only_url(path), uri=True)) as db:
            rows = db.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
    except (sqlite3.Error, UnicodeDecodeError):
        return True  # damaged: what is wrong is said as it is read
    return {name for (name,) in rows} >= _TABLES
