"""Reading strangers' files of every kind: whole, within bounds, and as what they claim to be.

A file that cannot be read is a DataError of one line. Text is UTF-8; a lone surrogate, which JSON
can write but no store can hold, is replaced; deep nesting and numbers of thousands of digits are
refused.
"""

import csv
import io
import json
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from kgbias.errors import DataError, no_such

LONGEST_CELL = 16 << 20  # characters of one cell of a table; the csv module alone stops at 128 kB
_MOST_BITS = 4096  # of a whole number; Python itself writes at most 4,300 digits
_TRIED = 20  # brackets that may begin an object in a text
LARGEST = 1 << 30  # bytes of a file that is read whole


def read_bytes(path: Path) -> bytes:
    """The content of a file of at most a gigabyte."""
    try:
        with path.open("rb") as file:
            data = file.read(LARGEST + 1)
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror or error}") from error
    except ValueError as error:  # a name with a NUL
        raise DataError(f"cannot read {path}: {error}") from error
    if len(data) > LARGEST:
        raise DataError(f"{path} is larger than {LARGEST >> 30} GB")
    return data


def only_files(folder: Path) -> None:
    """Raise DataError if a stranger's folder holds a pipe, a socket or a device, or a link to one:
    reading it could wait forever."""
    for path in folder.rglob("*"):
        try:
            other = path.exists() and not (path.is_file() or path.is_dir())
        except OSError:
            other = True
        if other:
            raise DataError(f"{path} is not a regular file")


def read_text(path: Path) -> str:
    """The text of a file."""
    try:
        return read_bytes(path).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is not UTF-8 text: {error.reason}") from error


def read_json(path: Path) -> Any:
    """The value in a JSON file."""
    return json_value(read_text(path), str(path))


def json_value(text: str, where: str) -> Any:
    """A value written as JSON, with its texts made storable; `where` names it in errors."""
    try:
        return _storable(json.loads(text))
    except RecursionError:
        raise DataError(f"{where} is nested too deep") from None
    except json.JSONDecodeError as error:
        raise DataError(f"{where} is not JSON: {error.msg}") from error
    except ValueError as error:
        raise DataError(f"{where} cannot be read: a number has too many digits") from error


def first_object(text: str) -> Any:
    """The first JSON object in a text, even inside a list."""
    starts = [place for place, c in enumerate(text) if c in "{["]
    for start in starts[:_TRIED]:
        try:
            found, _ = json.JSONDecoder().raw_decode(text, start)
        except (ValueError, RecursionError):
            if text[start] == "{":  # an object inside a broken one is not the object
                return None
            continue
        if isinstance(found, list) and found:
            found = found[0]
        if isinstance(found, dict):
            return found
    return None


def read_toml(path: Path) -> dict[str, Any]:
    """The tables of a TOML file."""
    text = read_text(path)
    try:
        tables: dict[str, Any] = _storable(tomllib.loads(text))
        return tables
    except RecursionError:
        raise DataError(f"{path} is nested too deep") from None
    except tomllib.TOMLDecodeError as error:
        raise DataError(f"{path} is not TOML: {error}") from error
    except ValueError as error:
        raise DataError(f"{path} cannot be read: a number or a date is out of range") from error


def read_table(
    path: Path, needed: Sequence[str] = (), delimiter: str = ","
) -> tuple[list[str], Iterator[tuple[int, dict[str, str]]]]:
    """The columns of a table and its rows, each with the line it ends on; a short row is filled
    with empty cells. Raises DataError for a missing or repeated column and, while reading, for a
    row that is too long."""
    return table(io.StringIO(read_text(path), newline=""), str(path), needed, delimiter)


def filled_rows(path: Path, columns: Sequence[str]) -> Iterator[tuple[int, tuple[str, ...]]]:
    """The cells of these columns of a CSV file, row by row with the line, white space made one
    space. Raises DataError, while reading, for an empty cell or a file without rows."""
    line = 0
    for line, row in read_table(path, columns)[1]:
        cells = tuple(" ".join(row[column].split()) for column in columns)
        if not all(cells):
            *most, last = columns
            raise DataError(f"{path}, line {line}: a {', '.join(most)} or {last} is empty")
        yield line, cells
    if not line:
        raise DataError(f"{path} has a header but no rows")


def read_saved_table(
    path: Path, needed: Sequence[str] = ()
) -> tuple[list[str], Iterator[tuple[int, dict[str, str]]]]:
    """As `read_table`, for a CSV file as a spreadsheet saved it: some languages' separate cells by
    semicolons or tabs."""
    text = read_text(path)
    delimiter = max(",;\t", key=text.partition("\n")[0].count)
    return table(io.StringIO(text, newline=""), str(path), needed, delimiter)


def table(
    lines: Iterable[str], where: str, needed: Sequence[str] = (), delimiter: str = ","
) -> tuple[list[str], Iterator[tuple[int, dict[str, str]]]]:
    """As `read_table`, for lines in memory."""
    csv.field_size_limit(LONGEST_CELL)
    reader = csv.reader(lines, delimiter=delimiter)
    try:
        header = next(reader, [])
    except csv.Error as error:
        raise DataError(f"cannot read {where}: {error}") from error
    check_header(header, where)
    if missing := [name for name in needed if name not in header]:
        raise DataError(no_such("column", missing[0], header, f" in {where}"))
    return header, _rows(reader, header, where)


def is_missing(cell: str) -> bool:
    """Whether a cell of a published table stands for no rating."""
    return cell.strip().upper() in ("", "NA", "NAN")


def check_header(header: Sequence[str], where: str) -> None:
    """Raise DataError if two columns have the same name: one of them would be lost."""
    seen: set[str] = set()
    for name in header:
        if name and name in seen:
            raise DataError(f"{where} has the column {name!r} twice")
        seen.add(name)


def _rows(reader: Any, header: Sequence[str], where: str) -> Iterator[tuple[int, dict[str, str]]]:
    try:
        for cells in reader:
            if not cells:
                continue
            if len(cells) > len(header):
                raise DataError(
                    f"{where}, line {reader.line_num}: {len(cells)} cells, but the header has "
                    f"{len(header)}"
                )
            padded = [*cells, *[""] * (len(header) - len(cells))]
            yield reader.line_num, dict(zip(header, padded, strict=True))
    except csv.Error as error:
        raise DataError(f"{where}, after line {reader.line_num}: {error}") from error


def _storable(value: Any) -> Any:
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, list):
        return [_storable(item) for item in value]
    if isinstance(value, dict):
        return {_storable(key): _storable(item) for key, item in value.items()}
    if isinstance(value, int) and value.bit_length() > _MOST_BITS:
        raise ValueError("a number has too many digits")
    return value
