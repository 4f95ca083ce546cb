"""What is made from a store and takes long to make: kept in the cache folder as long as the store
stays as it is.

Of a store only what was made of its newest state is kept; of all stores what was used last, up to a
bound. Nothing here is ever the truth: a file that is missing or damaged is made again.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

from kgbias.models.gguf import cache_folder


@dataclass(frozen=True, slots=True)
class Place:
    """Where something made from a store is kept.

    Attributes:
        kind: what it is: the name of a folder, and how the file ends.
        store: the path of the store.
        state: what changes with every write to it.
        holds: what is in the file, and in which version.
    """

    kind: tuple[str, str]
    store: str
    state: str
    holds: str

    @property
    def file(self) -> Path:
        folder, end = self.kind
        return cache_folder() / folder / f"{self._of_state}-{_hash(self.holds)}.{end}"

    @property
    def _of_state(self) -> str:
        return f"{_hash(self.store)}-{_hash(self.state)}"

    def make_room(self, newest: Callable[[], bool], most: int) -> None:
        """Remove what was made of older states of the store, and of the whole folder what was used
        longest ago, down to `most` bytes.

        Processes may do this at once, each with another state. One whose state is no longer the
        store's removes its own file; one whose state still is it (`newest`) removes those that it
        saw before it looked, which can only be older. So what was made of the newest state stays.
        """
        folder = self.file.parent
        others = set(folder.glob(f"{_hash(self.store)}-*"))
        others -= set(folder.glob(f"{self._of_state}-*"))
        for old in others if newest() else (self.file,):
            old.unlink(missing_ok=True)
        found = sorted(((f.stat(), f) for f in folder.iterdir()), key=lambda x: -x[0].st_mtime_ns)
        total = 0
        for status, other in found:
            total += status.st_size
            if total > most:
                other.unlink(missing_ok=True)

    def used(self) -> None:
        """Note that the file was used now."""
        os.utime(self.file)


def _hash(text: str) -> str:
    return blake2b(text.encode(errors="surrogatepass"), digest_size=8).hexdigest()
