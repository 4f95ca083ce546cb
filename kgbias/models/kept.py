"""Embeddings kept on disk, so that none is computed twice."""

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager

import numpy as np
from numpy.typing import NDArray

from kgbias.errors import ModelError
from kgbias.models.gguf import cache_folder


class Kept:
    """Vectors on disk by key, float32; in memory alone where there is no file."""

    def __init__(self, database: sqlite3.Connection | None) -> None:
        self._database = database

    def read(self, keys: Iterable[str]) -> dict[str, NDArray[np.float32]]:
        if self._database is None:
            return {}
        found: dict[str, NDArray[np.float32]] = {}
        for key in keys:
            row = self._database.execute("SELECT data FROM vector WHERE key = ?", (key,)).fetchone()
            if row:
                found[key] = np.frombuffer(row[0], dtype="<f4")
        return found

    def write(self, vectors: dict[str, NDArray[np.float32]]) -> None:
        if self._database is not None:
            rows = [(key, row.astype("<f4").tobytes()) for key, row in vectors.items()]
            self._database.executemany("INSERT OR IGNORE INTO vector VALUES (?, ?)", rows)
            self._database.commit()


@contextmanager
def kept_vectors(on: bool = True) -> Iterator[Kept]:
    """The embeddings in the user's cache folder; none are read or kept where `on` is false. Raises
    ModelError where the folder cannot be used."""
    if not on:
        yield Kept(None)
        return
    path = cache_folder() / "embeddings.db"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        database = sqlite3.connect(path, timeout=60)
        with closing(database):
            database.execute("PRAGMA journal_mode = WAL")
            database.execute("PRAGMA synchronous = OFF")  # a cache: losing it costs time alone
            database.execute(
                "CREATE TABLE IF NOT EXISTS vector (key TEXT PRIMARY KEY, data BLOB NOT NULL)"
            )
            yield Kept(database)
    except (OSError, sqlite3.Error) as error:
        raise ModelError(
            f"cannot use the cache {path}: {error}; set KGBIAS_CACHE to another folder"
        ) from error
