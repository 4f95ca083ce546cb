"""Static word vectors from files, read by gensim: word2vec (text, binary), GloVe (text) and
fastText (text, binary)."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kgbias.errors import DataError, MissingExtra, UsageError, no_such
from kgbias.models.base import ModelInfo

FORMATS = ("word2vec", "word2vec-binary", "glove", "fasttext-binary")
_FASTTEXT_MAGIC = (793712314).to_bytes(4, "little")  # the first bytes of fastText's binary format
_MOST_PACKED = 50  # times: vectors are packed to a third or so of their size
_SLACK = 64 << 20  # bytes
_SAMPLE = 1 << 20  # bytes read from each end of the file for its revision


@dataclass(frozen=True, slots=True)
class Found:
    """The words found in a vocabulary: `forms` maps each to the entry that was used; `vectors`
    [len(forms), d] are their rows, in that order; the other words are `missing`."""

    forms: dict[str, str]
    vectors: NDArray[np.float64]
    missing: tuple[str, ...]

    @property
    def other_forms(self) -> dict[str, str]:
        """The words found under another spelling."""
        return {word: form for word, form in self.forms.items() if word != form}


class StaticVectors:
    """A table of word vectors. `fold` lets a word be found in another case (Amy as amy)."""

    def __init__(self, keyed: Any, info: ModelInfo, *, fold: bool = True) -> None:
        self.info = info
        self._keyed = keyed
        self._fold = fold

    def find(self, words: Iterable[str]) -> Found:
        """The vectors of the words found, each word once.

        A word is looked up as it is, then with underscores for spaces, and if `fold` is set in
        lower case and with a capital. No vector is made up: fastText's subwords are not used.
        """
        forms: dict[str, str] = {}
        missing: list[str] = []
        for word in dict.fromkeys(words):
            if form := next(filter(self._keyed.key_to_index.__contains__, self._forms(word)), None):
                forms[word] = form
            else:
                missing.append(word)
        rows = [self._keyed[form] for form in forms.values()]
        table = np.array(rows, dtype=np.float64).reshape(len(rows), self._keyed.vector_size)
        return Found(forms, table, tuple(missing))

    def _forms(self, word: str) -> list[str]:
        forms = [word, word.replace(" ", "_")]
        if self._fold:
            forms += [form.lower() for form in forms] + [form.capitalize() for form in forms]
        return forms


FORMS = (
    "a file, a dict of words to vectors, words and a matrix, a frame with words as its index, or "
    "gensim's KeyedVectors"
)
Given = Any
"""Word vectors in memory: a dict of words to vectors, words and a matrix, a frame with words as its
index, or gensim's KeyedVectors."""


class _Table:
    """A matrix of vectors by word, in the form of gensim's KeyedVectors."""

    def __init__(self, words: Sequence[str], matrix: NDArray[np.float64]) -> None:
        self.key_to_index = {word: place for place, word in enumerate(words)}
        self.vectors, self.vector_size = matrix, matrix.shape[1]

    def __getitem__(self, word: str) -> NDArray[np.float64]:
        row: NDArray[np.float64] = self.vectors[self.key_to_index[word]]
        return row


def vectors_in_memory(given: Given, *, fold: bool = True) -> StaticVectors:
    """Word vectors that a program holds: a dict of words to vectors; words and a matrix with a row
    for each; a pandas frame with the words as its index; or gensim's KeyedVectors, or a model that
    has them. They are known by a digest of their words and numbers.

    Raises DataError for anything else, and for vectors of different lengths."""
    given = getattr(given, "wv", given)
    if hasattr(given, "key_to_index") and hasattr(given, "vectors"):
        words = sorted(given.key_to_index, key=given.key_to_index.__getitem__)
        table = _Table(words, np.asarray(given.vectors, dtype=np.float64))
    else:
        table = _table(*_words_and_rows(given))
    hasher = sha256("\0".join(table.key_to_index).encode("utf-8", "backslashreplace"))
    hasher.update(np.ascontiguousarray(table.vectors).tobytes())
    info = ModelInfo("vectors:in memory", f"sha256:{hasher.hexdigest()[:16]}")
    return StaticVectors(table, info, fold=fold)


def _words_and_rows(given: Any) -> tuple[list[Any], Any]:
    if isinstance(given, Mapping):
        return list(given), list(given.values())
    if hasattr(given, "index") and hasattr(given, "to_numpy"):  # a frame
        return list(given.index), given.to_numpy()
    if isinstance(given, tuple | list) and len(given) == 2:
        one, other = given
        return (list(one), other) if _are_words(one) else (list(other), one)
    raise _no_vectors(f"a {type(given).__name__}")


def _are_words(values: Any) -> bool:
    return all(isinstance(value, str) for value in values)


def _table(words: list[Any], rows: Any) -> _Table:
    if not words or not _are_words(words):
        raise _no_vectors("what has no words" if not words else "what has words that are no text")
    try:
        matrix = np.asarray(rows, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError("the vectors are of different lengths, or no numbers") from error
    if matrix.ndim != 2 or len(matrix) != len(words) or not matrix.shape[1]:
        raise DataError(
            f"{len(words)} words need a matrix with a row for each, and not one of {matrix.shape}"
        )
    if len(set(words)) < len(words):
        raise DataError("a word has two vectors")
    return _Table(words, matrix)


def _no_vectors(what: str) -> DataError:
    return DataError(f"{what} holds no word vectors: give {FORMS}")


def load_vectors(path: Path, format: str = "auto", *, fold: bool = True) -> StaticVectors:
    """Read a file of word vectors. `format` is one of `FORMATS`, or "auto": fastText's binary is
    recognised by its first bytes, word2vec by its header line (binary if the file ends in .bin or
    .bin.gz), and a file without a header is GloVe.

    Raises a one-line DataError if the file cannot be read in that format.
    """
    try:
        from gensim.models import KeyedVectors
        from gensim.models.fasttext import load_facebook_vectors
    except ModuleNotFoundError as error:
        raise MissingExtra("gensim", extra="vectors") from error
    if format != "auto" and format not in FORMATS:
        raise UsageError(no_such("vector format", format, ("auto", *FORMATS)))
    kind = format
    try:
        size = _unpacked(path)
        if format == "auto":
            kind = _detect(path)
        if kind == "fasttext-binary":
            _check_fasttext(path, size)
            keyed = load_facebook_vectors(str(path))
        else:
            if kind != "glove":
                _check_header(path, size, 4 if kind == "word2vec-binary" else 2)
            keyed = KeyedVectors.load_word2vec_format(
                str(path),
                binary=kind == "word2vec-binary",
                no_header=kind == "glove",
                unicode_errors="replace",
            )
    except DataError:
        raise
    except FileNotFoundError as error:
        raise DataError(f"cannot read {path}: {error.strerror}") from error
    except Exception as error:  # whatever gensim and the unpackers make of a stranger's file
        what = " ".join(str(error).split())[:120] or type(error).__name__
        as_what = "word" if kind == "auto" else kind
        raise DataError(f"{path} cannot be read as {as_what} vectors: {what}") from error
    if not len(keyed.key_to_index):
        raise DataError(f"{path} holds no vectors")
    return StaticVectors(keyed, ModelInfo(f"vectors:{path.name}", _revision(path)), fold=fold)


def _unpacked(path: Path) -> int:
    """A file's size in bytes when unpacked. Raises DataError for a packed file that unpacks to far
    more than vectors do, before more than a part of it is in memory."""
    from gensim import utils

    packed = path.stat().st_size
    if path.suffix.lower() not in (".gz", ".bz2", ".xz", ".zst"):
        return packed
    size = 0
    with utils.open(str(path), "rb") as file:
        while part := file.read(_SAMPLE):
            size += len(part)
            if size > _SLACK + _MOST_PACKED * packed:
                raise DataError(
                    f"{path} unpacks to more than {_MOST_PACKED} times its size: it contains no "
                    "vectors"
                )
    return size


def _check_header(path: Path, size: int, least: int) -> None:
    """Raise DataError for a word2vec file whose first line claims more numbers than its bytes can
    hold: gensim allocates memory for all of them before it reads the first."""
    from gensim import utils

    with utils.open(str(path), "rb") as file:
        words, length = (int(part) for part in file.readline(1000).split())
    _check_claim(path, size, words, length, least)


def _check_claim(path: Path, size: int, rows: int, length: int, least: int) -> None:
    if min(rows, length) < 0 or rows * length * least > size:
        raise DataError(
            f"{path} claims {rows} vectors of {length} numbers, more than its {size} bytes can hold"
        )


def _check_fasttext(path: Path, size: int) -> None:
    """Raise DataError for a fastText file that ends within its list of words, where gensim would
    search for the end for ever, or that claims more vectors than it can hold. A word ends in a zero
    byte, followed by nine bytes."""
    from gensim import utils

    with utils.open(str(path), "rb") as file:
        new = file.read(4) == _FASTTEXT_MAGIC
        header = file.read(88 if new else 72)  # older versions have neither a name nor pruned words
        words = int.from_bytes(header[60:64] if new else header[52:56], "little", signed=True)
        part, at = b"", 0
        for _ in range(words):
            while (end := part.find(b"\0", at)) < 0 or len(part) < end + 10:
                more = file.read(_SAMPLE)
                if not more or len(part) - at > _SAMPLE:
                    raise DataError(f"{path} is not a complete fastText model: a word does not end")
                part, at = part[at:] + more, 0
            at = end + 10
        pruned = int.from_bytes(header[80:88], "little", signed=True) if new else 0
        after = 8 * max(pruned, 0) + (1 if new else 0)  # pairs of numbers, and whether quantised
        part = (part[at:] + file.read(min(after, size) + 16))[after : after + 16]
        rows, length = (int.from_bytes(part[n : n + 8], "little", signed=True) for n in (0, 8))
        _check_claim(path, size, rows, length, 4)


def _detect(path: Path) -> str:
    from gensim import utils

    with utils.open(str(path), "rb") as file:
        first = file.readline(1000)
    if first.startswith(_FASTTEXT_MAGIC):
        return "fasttext-binary"
    if len(first.split()) == 2 and all(part.isdigit() for part in first.split()):
        return "word2vec-binary" if ".bin" in path.suffixes else "word2vec"
    return "glove"


def _revision(path: Path) -> str:
    """A digest of the file's size and both ends."""
    size = path.stat().st_size
    hasher = sha256(str(size).encode())
    with path.open("rb") as file:
        hasher.update(file.read(_SAMPLE))
        if size > _SAMPLE:
            file.seek(-_SAMPLE, 2)
            hasher.update(file.read())
    return f"sha256:{hasher.hexdigest()[:16]}"
