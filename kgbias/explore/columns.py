"""Columns for a page: typed arrays and texts, compressed, as text that HTML can hold.

Scores are kept as 16-bit whole numbers, and names as numbers in a dictionary. Columns are packed by
zlib in blocks, as base64, which the browser's `DecompressionStream` unpacks.
"""

import base64
import zlib
from collections.abc import Hashable, Iterable, Sequence
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import ArrayLike

KeyT = TypeVar("KeyT", bound=Hashable)

_UNSIGNED = (("u8", np.uint8), ("u16", np.uint16), ("u32", np.uint32))
_SIGNED = {"i16": np.int16, "i32": np.int32}


class ColumnBlock:
    """Named columns in one compressed block. The page's data.js reads it.

    A column of numbers starts at a multiple of 4 bytes, in little-endian order. A column of texts
    is one UTF-8 text of them all, plus a column NAME/lengths with the length of each in UTF-16
    units (as JavaScript counts).
    """

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0
        self.columns: dict[str, list[Any]] = {}

    def add_numbers(self, name: str, values: ArrayLike, kind: str | None = None) -> None:
        """Add a column of numbers: unsigned, in the smallest type that holds them, or of `kind`
        (i16, i32)."""
        array = np.asarray(values)
        if kind is not None:
            self._add(name, kind, array.astype(_SIGNED[kind]).tobytes(), len(array))
            return
        highest = int(array.max()) if len(array) else 0
        kind, dtype = next(k for k in _UNSIGNED if highest <= np.iinfo(k[1]).max)
        self._add(name, kind, array.astype(dtype).tobytes(), len(array))

    def add_texts(self, name: str, values: Sequence[str]) -> None:
        """Add a column of texts. They hold no lone surrogates (`kgbias.io.text.storable`)."""
        data = "".join(values).encode("utf-8")
        self._add(name, "text", data, len(data))
        self.add_numbers(f"{name}/lengths", [len(v.encode("utf-16-le")) // 2 for v in values])

    def add_bytes(self, name: str, data: bytes) -> None:
        """Add bytes."""
        self._add(name, "u8", data, len(data))

    def add_lists(self, name: str, values: Sequence[Sequence[int]]) -> None:
        """Add a column of lists of numbers: NAME, all of them one after another, and
        NAME/lengths."""
        self.add_numbers(name, [number for row in values for number in row])
        self.add_numbers(f"{name}/lengths", [len(row) for row in values])

    def _add(self, name: str, kind: str, data: bytes, length: int) -> None:
        self.columns[name] = [kind, self._size, length]
        data += b"\0" * (-len(data) % 4)
        self._parts.append(data)
        self._size += len(data)

    @property
    def size(self) -> int:
        """Bytes before compression."""
        return self._size

    def compress(self) -> bytes:
        """The block as a zlib stream: the browser's DecompressionStream reads it."""
        return zlib.compress(b"".join(self._parts), 6)

    def encode(self) -> str:
        """The block as base64 of its zlib stream."""
        return base64.b64encode(self.compress()).decode("ascii")


class KeyNumbers(Generic[KeyT]):
    """Numbers for keys, in the order first seen, each with a text."""

    def __init__(self) -> None:
        self._places: dict[KeyT, int] = {}
        self.texts: list[str] = []

    def add(self, key: KeyT, text: str) -> int:
        """The number of the key; `text` is stored if the key is new."""
        place = self._places.setdefault(key, len(self.texts))
        if place == len(self.texts):
            self.texts.append(text)
        return place

    def find(self, key: KeyT, default: int = -1) -> int:
        """The number of the key, or `default`."""
        return self._places.get(key, default)

    def items(self) -> Iterable[tuple[KeyT, int]]:
        """Each key with its number."""
        return self._places.items()

    def __len__(self) -> int:
        return len(self.texts)


class LineTexts:
    """Long texts kept as lists of lines: prompts repeat their lines, far apart."""

    def __init__(self) -> None:
        self._lines: KeyNumbers[str] = KeyNumbers()
        self._texts: dict[str, int] = {}
        self._lists: list[list[int]] = []
        self.characters = 0

    def add(self, text: str) -> int:
        """The number of the text."""
        place = self._texts.get(text)
        if place is None:
            place = self._texts[text] = len(self._lists)
            lines_before = len(self._lines)
            self._lists.append([self._lines.add(line, line) for line in text.split("\n")])
            self.characters += sum(map(len, self._lines.texts[lines_before:]))
        return place

    def write_to(self, block: ColumnBlock, name: str) -> None:
        """Add them as the columns NAME (lists of lines) and NAME/line (texts)."""
        block.add_lists(name, self._lists)
        block.add_texts(f"{name}/line", self._lines.texts)


def quantise(values: ArrayLike, scale: int) -> "np.ndarray[Any, np.dtype[np.int16]]":
    """Numbers as whole multiples of 1 / scale in 16 bits, -32768 for NaN; values out of range are
    clipped."""
    array = np.asarray(values, dtype=np.float64)
    multiples = np.clip(np.round(np.nan_to_num(array) * scale), -32767, 32767)
    return np.where(np.isnan(array), -32768, multiples).astype(np.int16)
