"""Files that are made from a store and take long to make: kept in the cache folder until the store
changes.

For each store, only what was made from its newest state is kept; over all stores, what was used
most recently, up to a bound. Nothing here is authoritative: a missing or damaged file is made
again.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

from kgbias.errors import DataError
from kgbias.io.files import replace_file
from kgbias.models.gguf import cache_folder

_DIGEST_BYTES = 32  # bytes


@dataclass(frozen=True, slots=True)
class CacheEntry:
    """Where something made from a store is kept.

    Attributes:
        kind: the name of its folder, and the file's ending.
        store: the path of the store.
        version: a text that changes with every write to the store.
        contents: what the file holds, and in which version.
    """

    kind: tuple[str, str]
    store: str
    version: str
    contents: str

    @property
    def file(self) -> Path:
        folder, end = self.kind
        return cache_folder() / folder / f"{self._version_prefix}-{_hash(self.contents)}.{end}"

    @property
    def _version_prefix(self) -> str:
        return f"{_hash(self.store)}-{_hash(self.version)}"

    def read(self) -> bytes | None:
        """What `write` kept there; None if nothing was, or not whole."""
        try:
            with self.file.open("rb") as file:
                digest, body = file.read(_DIGEST_BYTES), file.read()
            if digest != _digest(body):
                return None
            self.touch()
        except OSError:
            return None
        return body

    def write(self, body: bytes, newest: Callable[[], bool], max_bytes: int) -> None:
        """Keep it, under its digest, and make room. If it cannot be written, it is simply not
        kept."""
        try:
            self.file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with replace_file(self.file) as partial:
                partial.write_bytes(_digest(body) + body)
            self.make_room(newest, max_bytes)
        except (DataError, OSError):
            return

    def make_room(self, newest: Callable[[], bool], max_bytes: int) -> None:
        """Remove what was made from older states of the store, then the least recently used files
        of the whole folder, down to `max_bytes` bytes.

        Processes may do this at the same time, each with another state. One whose state is no
        longer the store's removes its own file; one whose state still is (`newest`) removes the
        files that it saw before it checked, which can only be older. So what was made from the
        newest state stays.
        """
        folder = self.file.parent
        other_versions = set(folder.glob(f"{_hash(self.store)}-*"))
        other_versions -= set(folder.glob(f"{self._version_prefix}-*"))
        for stale in other_versions if newest() else (self.file,):
            stale.unlink(missing_ok=True)
        by_last_use = sorted(
            ((f.stat(), f) for f in folder.iterdir()), key=lambda x: -x[0].st_mtime_ns
        )
        total = 0
        for status, cached_file in by_last_use:
            total += status.st_size
            if total > max_bytes:
                cached_file.unlink(missing_ok=True)

    def touch(self) -> None:
        """Mark the file as used now."""
        os.utime(self.file)


def _digest(body: bytes) -> bytes:
    return blake2b(body, digest_size=_DIGEST_BYTES).digest()


def _hash(text: str) -> str:
    # A path that is not UTF-8 comes as lone surrogates.
    return blake2b(text.encode(errors="surrogatepass"), digest_size=8).hexdigest()
