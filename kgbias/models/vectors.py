"""Static word vectors from files, read by gensim: word2vec (text, binary), GloVe (text) and
fastText (text, binary)."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kgbias.errors import DataError, MissingExtra, UsageError, no_such
from kgbias.io.reading import read_error
from kgbias.io.text import type_with_article
from kgbias.io.wording import pluralise
from kgbias.models.base import ModelInfo

VECTOR_FORMATS = ("word2vec", "word2vec-binary", "glove", "fasttext-binary")
_FASTTEXT_MAGIC = (793712314).to_bytes(4, "little")  # the first bytes of fastText's binary format
_MAX_PACKING = 50  # times: vectors are packed to a third or so of their size
_MAX_EXTRA_BYTES = 64 << 20  # bytes
_SAMPLE_BYTES = 1 << 20  # bytes read from each end of the file for its revision


@dataclass(frozen=True, slots=True)
class VectorLookup:
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
        self._keyed_vectors = keyed
        self._fold = fold

    def find(self, words: Iterable[str]) -> VectorLookup:
        """The vectors of the words found, each word once.

        A word is looked up as it is, then with underscores for spaces, and if `fold` is set in
        lower case and with a capital. No vector is made up: fastText's subwords are not used.
        """
        forms: dict[str, str] = {}
        missing_words: list[str] = []
        for word in dict.fromkeys(words):
            if form := next(
                filter(self._keyed_vectors.key_to_index.__contains__, self._spellings(word)), None
            ):
                forms[word] = form
            else:
                missing_words.append(word)
        rows = [self._keyed_vectors[form] for form in forms.values()]
        # Without any row, numpy would not know how long one is.
        table = np.array(rows, dtype=np.float64).reshape(len(rows), self._keyed_vectors.vector_size)
        return VectorLookup(forms, table, tuple(missing_words))

    def _spellings(self, word: str) -> list[str]:
        forms = [word, word.replace(" ", "_")]
        if self._fold:
            forms += [form.lower() for form in forms] + [form.capitalize() for form in forms]
        return forms


FORMS = (
    "a file, a dict of words to vectors, words and a matrix, a frame with words as its index, or "
    "gensim's KeyedVectors"
)
VectorInput = Any
"""Word vectors in memory: a dict of words to vectors, words and a matrix, a frame with words as its
index, or gensim's KeyedVectors."""


class _VectorTable:
    """A matrix of vectors by word, in the form of gensim's KeyedVectors."""

    def __init__(self, words: Sequence[str], matrix: NDArray[np.float64]) -> None:
        self.key_to_index = {word: place for place, word in enumerate(words)}
        self.vectors, self.vector_size = matrix, matrix.shape[1]

    def __getitem__(self, word: str) -> NDArray[np.float64]:
        row: NDArray[np.float64] = self.vectors[self.key_to_index[word]]
        return row


def vectors_in_memory(vector_input: VectorInput, *, fold: bool = True) -> StaticVectors:
    """Word vectors that a program holds: a dict of words to vectors; words and a matrix with a row
    for each; a pandas frame with the words as its index; or gensim's KeyedVectors, or a model that
    has them. They are known by a digest of their words and numbers.

    Raises DataError for anything else, and for vectors of different lengths."""
    # Gensim's models have their vectors there.
    vector_input = getattr(vector_input, "wv", vector_input)
    if hasattr(vector_input, "key_to_index") and hasattr(vector_input, "vectors"):
        words = sorted(vector_input.key_to_index, key=vector_input.key_to_index.__getitem__)
        table = _VectorTable(words, np.asarray(vector_input.vectors, dtype=np.float64))
    else:
        table = _build_table(*_split_words_and_rows(vector_input))
    hasher = sha256("\0".join(table.key_to_index).encode("utf-8", "backslashreplace"))
    hasher.update(np.ascontiguousarray(table.vectors).tobytes())
    info = ModelInfo("vectors:in memory", f"sha256:{hasher.hexdigest()[:16]}")
    return StaticVectors(table, info, fold=fold)


class _WordsAndRows(NamedTuple):
    """Words, and a row of numbers for each."""

    words: list[Any]
    rows: Any


def _split_words_and_rows(vector_input: Any) -> _WordsAndRows:
    if isinstance(vector_input, Mapping):
        return _WordsAndRows(list(vector_input), list(vector_input.values()))
    if hasattr(vector_input, "index") and hasattr(vector_input, "to_numpy"):  # a frame
        return _WordsAndRows(list(vector_input.index), vector_input.to_numpy())
    if isinstance(vector_input, tuple | list) and len(vector_input) == 2:
        first_part, second_part = vector_input
        return (
            _WordsAndRows(list(first_part), second_part)
            if _are_texts(first_part)
            else _WordsAndRows(list(second_part), first_part)
        )
    raise _no_vectors_error(type_with_article(vector_input))


def _are_texts(values: Any) -> bool:
    return all(isinstance(value, str) for value in values)


def _build_table(words: list[Any], rows: Any) -> _VectorTable:
    if not words or not _are_texts(words):
        raise _no_vectors_error(
            "what has no words" if not words else "what has words that are no text"
        )
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
    return _VectorTable(words, matrix)


def _no_vectors_error(description: str) -> DataError:
    return DataError(f"{description} holds no word vectors: give {FORMS}")


def load_static_vectors(path: Path, format: str = "auto", *, fold: bool = True) -> StaticVectors:
    """Read a file of word vectors. `format` is one of `VECTOR_FORMATS`, or "auto": fastText's
    binary is recognised by its first bytes, word2vec by its header line (binary if the file ends in
    .bin or .bin.gz), and a file without a header is GloVe.

    Raises a one-line DataError if the file cannot be read in that format.
    """
    try:
        from gensim.models import KeyedVectors
        from gensim.models.fasttext import load_facebook_vectors
    except ModuleNotFoundError as error:
        raise MissingExtra("gensim", extra="vectors") from error
    if format != "auto" and format not in VECTOR_FORMATS:
        raise UsageError(no_such("vector format", format, ("auto", *VECTOR_FORMATS)))
    kind = format
    try:
        size = _unpacked_size(path)
        if format == "auto":
            kind = _detect_format(path)
        if kind == "fasttext-binary":
            _check_fasttext(path, size)
            keyed = load_facebook_vectors(str(path))
        else:
            if kind != "glove":
                _check_word2vec_header(path, size, 4 if kind == "word2vec-binary" else 2)
            keyed = KeyedVectors.load_word2vec_format(
                str(path),
                binary=kind == "word2vec-binary",
                no_header=kind == "glove",
                unicode_errors="replace",
            )
    except DataError:
        raise
    except FileNotFoundError as error:
        raise read_error(path, error) from error
    except Exception as error:  # whatever gensim and the unpackers make of a stranger's file
        reason = " ".join(str(error).split())[:120] or type(error).__name__
        format_name = "word" if kind == "auto" else kind
        raise DataError(f"{path} cannot be read as {format_name} vectors: {reason}") from error
    if not len(keyed.key_to_index):
        raise DataError(f"{path} holds no vectors")
    return StaticVectors(keyed, ModelInfo(f"vectors:{path.name}", _file_revision(path)), fold=fold)


def _unpacked_size(path: Path) -> int:
    """A file's size in bytes when unpacked. Raises DataError for a packed file that unpacks to far
    more than vectors do, before more than a part of it is in memory."""
    from gensim import utils

    packed_size = path.stat().st_size
    if path.suffix.lower() not in (".gz", ".bz2", ".xz", ".zst"):
        return packed_size
    size = 0
    with utils.open(str(path), "rb") as file:
        while chunk := file.read(_SAMPLE_BYTES):
            size += len(chunk)
            if size > _MAX_EXTRA_BYTES + _MAX_PACKING * packed_size:
                raise DataError(
                    f"{path} unpacks to more than {_MAX_PACKING} times its size: it contains no "
                    "vectors"
                )
    return size


def _check_word2vec_header(path: Path, size: int, min_bytes: int) -> None:
    """Raise DataError for a word2vec file whose first line claims more numbers than its bytes can
    hold: gensim allocates memory for all of them before it reads the first."""
    from gensim import utils

    with utils.open(str(path), "rb") as file:
        words, length = (int(part) for part in file.readline(1000).split())
    _check_claim(path, size, words, length, min_bytes)


def _check_claim(path: Path, size: int, rows: int, length: int, min_bytes: int) -> None:
    if min(rows, length) < 0 or rows * length * min_bytes > size:
        raise DataError(
            f"{path} claims "
            f"{pluralise(rows, 'vector')} of {length} numbers, more than its {size} bytes can hold"
        )


def _check_fasttext(path: Path, size: int) -> None:
    """Raise DataError for a fastText file that ends within its list of words, where gensim would
    search for the end for ever, or that claims more vectors than it can hold. A word ends in a zero
    byte, followed by nine bytes."""
    from gensim import utils

    with utils.open(str(path), "rb") as file:
        is_new_version = file.read(4) == _FASTTEXT_MAGIC
        # After the magic number: the version (4 bytes), twelve settings of 4 bytes and one of 8,
        # then how many entries there are (at 60), words and labels, tokens, and pruned words (at
        # 80).
        header = file.read(
            88 if is_new_version else 72
        )  # older versions have neither a name nor pruned words
        words = int.from_bytes(
            header[60:64] if is_new_version else header[52:56], "little", signed=True
        )
        chunk, offset = b"", 0
        for _ in range(words):
            while (end := chunk.find(b"\0", offset)) < 0 or len(chunk) < end + 10:
                next_chunk = file.read(_SAMPLE_BYTES)
                if not next_chunk or len(chunk) - offset > _SAMPLE_BYTES:
                    raise DataError(f"{path} is not a complete fastText model: a word does not end")
                chunk, offset = chunk[offset:] + next_chunk, 0
            # Behind the zero byte stand how often the word occurs (8 bytes), and its kind (1).
            offset = end + 10
        pruned_words = int.from_bytes(header[80:88], "little", signed=True) if is_new_version else 0
        bytes_after = 8 * max(pruned_words, 0) + (
            1 if is_new_version else 0
        )  # pairs of numbers, and whether quantised
        chunk = (chunk[offset:] + file.read(min(bytes_after, size) + 16))[
            bytes_after : bytes_after + 16
        ]
        rows, length = (int.from_bytes(chunk[n : n + 8], "little", signed=True) for n in (0, 8))
        _check_claim(path, size, rows, length, 4)


def _detect_format(path: Path) -> str:
    from gensim import utils

    with utils.open(str(path), "rb") as file:
        first_line = file.readline(1000)
    if first_line.startswith(_FASTTEXT_MAGIC):
        return "fasttext-binary"
    if len(first_line.split()) == 2 and all(part.isdigit() for part in first_line.split()):
        return "word2vec-binary" if ".bin" in path.suffixes else "word2vec"
    return "glove"


def _file_revision(path: Path) -> str:
    """A digest of the file's size and both ends."""
    size = path.stat().st_size
    hasher = sha256(str(size).encode())
    with path.open("rb") as file:
        hasher.update(file.read(_SAMPLE_BYTES))
        if size > _SAMPLE_BYTES:
            file.seek(-_SAMPLE_BYTES, 2)
            hasher.update(file.read())
    return f"sha256:{hasher.hexdigest()[:16]}"
