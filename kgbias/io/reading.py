"""Reading strangers' files of every kind: whole, within bounds, and as what they claim to be.

A file that cannot be read is a DataError of one line. Text is UTF-8; a lone surrogate, which JSON
can write but no store can hold, is replaced; deep nesting and numbers of thousands of digits are
refused.

Every file of somebody else is read here, every output is written in `kgbias.io.files`, and every
server's answer passes through `kgbias.models.http`.
"""

import codecs
import gzip
import io
import json
import os
import queue
import threading
import tomllib
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from kgbias.errors import DataError, UsageError
from kgbias.io.wording import how

_MAX_INTEGER_BITS = 4096  # of a whole number; Python itself writes at most 4,300 digits
_MAX_TRIED_BRACKETS = 20  # brackets that may begin an object in a text
MAX_FILE_BYTES = 1 << 30  # bytes of a file that is read whole
_CHUNK_BYTES = 1 << 20  # bytes at once
_MAX_WRITER_SECONDS = 10.0  # for somebody to write to a pipe


def read_error(path: Path, error: OSError) -> DataError:
    """The error for a file that the system does not let us read."""
    # A `Path` makes one slash of the two.
    is_address = path.parts[:1] in (("http:",), ("https:",))
    advice = "; an address is not fetched: download it first, and name the file" * is_address
    advice += "; name a file in it" * isinstance(error, IsADirectoryError)
    return DataError(f"cannot read {path}: {error.strerror or error}{advice}")


def read_bytes(path: Path) -> bytes:
    """The content of a file of at most a gigabyte."""
    try:
        with open_with_pipe_timeout(path) as file:
            data = _read_bounded(file)
    except OSError as error:
        raise read_error(path, error) from error
    except ValueError as error:  # a name with a NUL
        raise DataError(f"cannot read {path}: {error}") from error
    if len(data) > MAX_FILE_BYTES:
        raise DataError(f"{path} is larger than {MAX_FILE_BYTES >> 30} GB")
    return data


def open_with_pipe_timeout(path: Path) -> IO[bytes]:
    """A file, open to be read. Raises DataError for a pipe that nobody opens to write to it within
    ten seconds, which the system would wait for without a word."""
    if not path.is_fifo():
        return path.open("rb")
    opened: queue.SimpleQueue[IO[bytes] | OSError] = queue.SimpleQueue()

    def wait_for_writer() -> None:
        try:
            opened.put(path.open("rb"))
        except OSError as error:
            opened.put(error)

    threading.Thread(target=wait_for_writer, daemon=True).start()
    try:
        file = opened.get(timeout=_MAX_WRITER_SECONDS)
    except queue.Empty:
        # Lets the thread end.
        with suppress(OSError):
            os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK))
        raise DataError(
            f"{path} is a pipe, and nobody wrote to it within {_MAX_WRITER_SECONDS:.0f} s"
        ) from None
    if isinstance(file, OSError):
        raise file
    return file


def _read_bounded(file: IO[bytes] | gzip.GzipFile) -> bytes:
    """All of it, or one byte more than is read. Asked for all at once, Python sets a gigabyte aside
    for a file of any size, which fails where a process may not have so much."""
    parts: list[bytes] = []
    left = MAX_FILE_BYTES + 1
    while part := file.read(min(left, _CHUNK_BYTES)):
        parts.append(part)
        left -= len(part)
    return b"".join(parts)


def read_head(path: Path, max_bytes: int) -> bytes:
    """How a file's content begins: unpacked, if gzip packed it; nothing of what is no file."""
    if not path.is_file():
        return b""
    try:
        with path.open("rb") as file:
            head = file.read(max_bytes)
        if not head.startswith(_GZIP_MAGIC):
            return head
        with gzip.open(path) as file:
            return file.read(max_bytes)
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"cannot read {path}: {error}") from error


def need_regular_files(folder: Path) -> None:
    """Raise DataError if a stranger's folder holds a pipe, a socket or a device, or a link to one:
    reading it could wait forever."""
    for path in folder.rglob("*"):
        try:
            is_other = path.exists() and not (path.is_file() or path.is_dir())
        except OSError:
            is_other = True
        if is_other:
            raise DataError(f"{path} is not a regular file")


def read_text(path: Path) -> str:
    """The text of a file."""
    return decode_text(unpack(read_bytes(path), path), path)


def unpack(data: bytes, path: Path) -> bytes:
    """The content of a file that gzip packed, of at most a gigabyte; any other as it is."""
    if not data.startswith(_GZIP_MAGIC):
        return data
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
            content = _read_bounded(file)
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{path} cannot be unpacked: {error}") from error
    if len(content) > MAX_FILE_BYTES:
        raise DataError(f"{path} is larger than {MAX_FILE_BYTES >> 30} GB when unpacked")
    return content


_encodings: list[str] = []  # what a person says that files are written in; the last one counts


@contextmanager
def use_fallback_encoding(name: str) -> Iterator[None]:
    """Inside this context, files that are not UTF-8 are read in this encoding. Raises UsageError
    for one that Python does not know."""
    try:
        "a".encode(name).decode(name)
    except (LookupError, TypeError, ValueError) as error:
        raise UsageError(
            f"there is no encoding {name!r}; examples: {_ENCODING_EXAMPLES}"
        ) from error
    _encodings.append(name)
    try:
        yield
    finally:
        _encodings.pop()


def assumed_encoding() -> str:
    """The encoding that a person gave for files that are not UTF-8; "" for none."""
    return _encodings[-1] if _encodings else ""


def decode_text(data: bytes, path: Path) -> str:
    """The text in a file's bytes: UTF-8, else what a person says it is (`use_fallback_encoding`);
    UTF-16 where it begins with its mark. A DataError names the line, the byte and the remedy."""
    is_utf16 = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    for encoding in ("utf-16" if is_utf16 else "utf-8-sig", *_encodings[-1:]):
        try:
            text = data.decode(encoding)
        except UnicodeDecodeError as error:
            wrong = error
            wrong.encoding = encoding  # "charmap" says nothing
            continue
        if "\0" not in text:
            return text
        # No text has zeros, but UTF-16 without its mark would be read as one with many.
        place = data.index(b"\0")
        wrong = UnicodeDecodeError(encoding, data, place, place + 1, "no text has it")
    raise not_text_error(path, wrong, data.count(b"\n", 0, wrong.start) + 1)


def not_text_error(path: Path, wrong: UnicodeDecodeError, line: int) -> DataError:
    """What to say of a line that is not in the encoding that was tried."""
    encoding = "UTF-8" if wrong.encoding.startswith("utf-8") else wrong.encoding
    # Text without its mark, in which each second byte of Latin letters is zero.
    is_utf16 = wrong.object.count(b"\0") > len(wrong.object) / 3
    examples = "utf-16-le, utf-16-be ..." if is_utf16 else _ENCODING_EXAMPLES
    named = how(
        "read the file with its own encoding and hand over the table",
        f"name the file's encoding with --encoding ({examples})",
    )
    return DataError(
        f"{path}, line {line}: the byte 0x{wrong.object[wrong.start]:02x} is not {encoding} text; "
        f"{named}, or save it as UTF-8"
    )


_GZIP_MAGIC = b"\x1f\x8b"
_ENCODING_EXAMPLES = "cp1252, mac_roman, gbk ..."


def read_json(path: Path) -> Any:
    """The value in a JSON file."""
    return parse_json(read_text(path), str(path))


def parse_json(text: str, source: str) -> Any:
    """A value written as JSON, with its texts made storable; `source` names it in errors."""
    try:
        return _make_storable(json.loads(text))
    except RecursionError:
        raise DataError(f"{source} is nested too deep") from None
    except json.JSONDecodeError as error:
        raise DataError(f"{source} is not JSON: {error.msg}") from error
    except ValueError as error:
        raise DataError(f"{source} cannot be read: a number has too many digits") from error


def find_object(text: str) -> Any:
    """The first JSON object in a text, even inside a list."""
    starts = [position for position, character in enumerate(text) if character in "{["]
    # Each try may go through the whole text.
    for start in starts[:_MAX_TRIED_BRACKETS]:
        try:
            value, _ = json.JSONDecoder().raw_decode(text, start)
        except (ValueError, RecursionError):
            if text[start] == "{":  # an object inside a broken one is not the object
                return None
            continue
        if isinstance(value, list) and value:
            value = value[0]
        if isinstance(value, dict):
            return value
    return None


def read_toml(path: Path) -> dict[str, Any]:
    """The tables of a TOML file."""
    text = read_text(path)
    try:
        tables: dict[str, Any] = _make_storable(tomllib.loads(text))
        return tables
    except RecursionError:
        raise DataError(f"{path} is nested too deep") from None
    except tomllib.TOMLDecodeError as error:
        raise DataError(f"{path} is not TOML: {error}") from error
    except ValueError as error:
        raise DataError(f"{path} cannot be read: a number or a date is out of range") from error


def _make_storable(value: Any) -> Any:
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, list):
        return [_make_storable(item) for item in value]
    if isinstance(value, dict):
        return {_make_storable(key): _make_storable(item) for key, item in value.items()}
    if isinstance(value, int) and value.bit_length() > _MAX_INTEGER_BITS:
        raise ValueError("a number has too many digits")
    return value
