"""Triples from a table of any form (`kgbias.io.tables`): a statement in each row, with columns by
name and line numbers."""

import codecs
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from kgbias.errors import DataError, list_columns
from kgbias.graph.types import Triple
from kgbias.io.reading import (
    assumed_encoding,
    decode_text,
    not_text_error,
    parse_json,
    read_bytes,
    read_error,
)
from kgbias.io.tables import (
    COMMENT_STARTS,
    MARKDOWN_RULE,
    PYTHON_OBJECT_START,
    TableFormat,
    find_delimiter,
    parse_literal,
    parse_table,
    read_sheet,
    refuse_other_formats,
)
from kgbias.io.text import is_plain
from kgbias.io.unsupported_sets import advise_on_columns

# How pandas, R and databases write a cell without a value. Lower-case "nan" is also a grandmother,
# but a table that says so of people is rarer than one with pandas' empty cells.
_MISSING_CELLS = {"NULL", "null", "NaN", "nan", "NA", "N/A", "None", "<NA>", "#N/A"}


@dataclass(frozen=True, slots=True)
class TableRecord:
    """A row by column name, and the line of the file where it begins."""

    line: int
    cells: Mapping[str, Any]

    def cell_text(self, column: str) -> str:
        """The cell as text with single spaces; "" if it is empty or missing."""
        value = self.cells.get(column)
        if value is None or isinstance(value, (list, dict)):
            return ""
        return " ".join(str(value).split())

    def read_part(self, column: str) -> str:
        """The cell as a part of a triple: "" too if it stands for no value."""
        text = self.cell_text(column)
        return "" if text in _MISSING_CELLS else text

    def read_parts(self, column: str) -> list[str]:
        """The cell as parts of triples: each of a list, which may be written as text."""
        value = self.cells.get(column)
        if isinstance(value, str) and value.lstrip()[:1] == "[":
            value = parse_literal(value)
        if isinstance(value, list):
            return [TableRecord(self.line, {column: item}).read_part(column) for item in value]
        return [self.read_part(column)]


def detect_format(path: Path) -> str:
    """The format of a table, by what its first bytes hold: csv, tsv or jsonl, which are read row by
    row, or table, which is read whole (JSON, Parquet, Excel, what gzip packed, other encodings)."""
    try:
        with path.open("rb") as file:
            start = file.read(_HEAD_BYTES)
    except OSError as error:
        raise read_error(path, error) from error
    refuse_other_formats(path, start)
    text = start.removeprefix(codecs.BOM_UTF8).lstrip()
    first_line, _, remainder = text.partition(b"\n")
    if text.startswith(PYTHON_OBJECT_START.encode()):
        return "table"
    if text[:1] == b"{" and first_line.rstrip()[-1:] == b"}" and remainder.strip():
        return "jsonl"
    if (
        assumed_encoding()
        or start.startswith(_WHOLE_FILE_STARTS)
        or b"\0" in start
        or start.removeprefix(codecs.BOM_UTF8)[:1].isspace()
        or text.startswith((b"{", b"[", b"|", *_COMMENT_STARTS))
        or MARKDOWN_RULE.match(start.decode("utf-8", "replace"))
    ):
        return "table"
    return "tsv" if find_delimiter(first_line.decode("utf-8", "replace")) == "\t" else "csv"


_HEAD_BYTES = 1 << 16  # bytes
_COMMENT_STARTS = tuple(begin.encode() for begin in COMMENT_STARTS)
_WHOLE_FILE_STARTS = (b"\x1f\x8b", b"PAR1", b"PK\x03\x04", codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def read_records(
    path: Path, format: str, known_columns: Sequence[str] = ()
) -> Iterator[TableRecord]:
    """The rows of a file, some of whose columns are known. Raises DataError, naming the line, if it
    is not in this format."""
    if format == "table":
        for line, row in read_sheet(path, known_columns).rows:
            yield TableRecord(line, dict(row))
        return
    line = 0
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = (
                _iter_json_lines(path, file)
                if format == "jsonl"
                else _iter_table(path, file, format, known_columns)
            )
            for record in rows:
                line = record.line
                yield record
    except UnicodeDecodeError as error:
        decode_text(read_bytes(path), path)  # names the line and the byte, unless it is UTF-16
        raise not_text_error(path, error, line + 1) from error
    except OSError as error:
        raise read_error(path, error) from error
    except ValueError as error:
        position = f", after line {line}" if line else ""
        raise DataError(f"{path}{position}: {error}") from error


def require_columns(
    path: Path, columns_found: Sequence[str], column_by_parameter: Mapping[str, str]
) -> None:
    """Raise DataError for the first of the wanted columns, by parameter, that the file lacks."""
    for parameter, column in column_by_parameter.items():
        if column not in columns_found:
            raise DataError(
                f"{path} has no column {column!r}; its columns are {list_columns(columns_found)}. "
                f"Name the right one as `{parameter}`; if these are a row, put a line with the "
                f"names of the columns above it{advise_on_columns(columns_found)}"
            )


def report_columns(
    path: Path,
    columns_found: Sequence[str],
    used_columns: Sequence[str],
    notify: Callable[[str], None],
) -> None:
    """Say which columns of a file are read and which are not, in one line; nothing if all are."""
    unused_columns = [name for name in columns_found if name and name not in used_columns]
    if unused_columns:
        notify(
            f"{path.name}: read are {', '.join(used_columns)}; not read are "
            f"{', '.join(unused_columns)}"
        )


def _iter_table(
    path: Path, file: Any, format: str, known_columns: Sequence[str]
) -> Iterator[TableRecord]:
    first_line = next(file, None)
    if first_line is None:
        raise ValueError("the file is empty")
    delimiter = "\t" if format == "tsv" else find_delimiter(first_line, known_columns)
    lines = chain([first_line], file)
    _, rows = parse_table(lines, str(path), (), delimiter, known_columns)
    for line, row in rows:
        if any("\0" in cell for cell in row.values()):
            raise ValueError("a cell holds the byte 0x00, which no text has")
        yield TableRecord(line, row)


def _iter_json_lines(path: Path, file: Any) -> Iterator[TableRecord]:
    for number, text in enumerate(file, 1):
        if not text.strip():
            continue
        value = parse_json(text, f"{path}, line {number}")
        if not isinstance(value, dict):
            raise DataError(f"{path}, line {number} is not a JSON object")
        yield TableRecord(number, value)


@dataclass(frozen=True, slots=True)
class TripleColumns:
    """Which column holds what. `category`, `count` and `arm` may be missing from the file unless
    they are named here."""

    group: str = "group"
    predicate: str = "predicate"
    object: str = "object"
    category: str | None = None
    count: str | None = None
    arm: str | None = None


@dataclass(frozen=True, slots=True)
class ProfileCharacter:
    """The profile that a statement belongs to: the number of its row, the given name it was written
    for, and what the name stands for (group, ethnicity, gender)."""

    row: int
    name: str
    labels: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class ImportedStatement:
    """A triple as the file gives it, how often it was said, the category of its group (None if the
    file does not say), and the arm that it comes from; in a profile, also its character and
    attribute."""

    triple: Triple
    count: int = 1
    category: str | None = None
    arm: str = "none"
    character: ProfileCharacter | None = None
    attribute: str = ""


TRIPLE_TABLE = TableFormat(
    "triples: `kgbias import`",
    ((TripleColumns().group,), (TripleColumns().predicate,), (TripleColumns().object,)),
    ("category", "count", "arm"),
    "profiles, stories, RAGAS, a folder of texts",
)


def read_triples(
    path: Path, format: str, columns: TripleColumns, notify: Callable[[str], None] = lambda _: None
) -> Iterator[ImportedStatement | None]:
    """One statement per row; None for a row without a group, predicate or object, or whose group is
    no plain text. `notify` is told which columns are read.

    Raises DataError if the file cannot be read, a column is missing or a count is not a number."""
    known_columns = (
        columns.group,
        columns.predicate,
        columns.object,
        *TRIPLE_TABLE.optional_columns,
    )
    rows = read_records(path, format, known_columns)
    first_row = next(rows, None)
    if first_row is None:
        raise DataError(f"{path} has no rows")
    columns_found = list(first_row.cells)
    if format in ("jsonl", "table"):  # its objects need not have the same keys
        columns_found = list(
            dict.fromkeys(
                key for row in read_records(path, format, known_columns) for key in row.cells
            )
        )
    required_columns = {
        "group": columns.group,
        "predicate": columns.predicate,
        "object": columns.object,
    }
    optional = {"category": columns.category, "count": columns.count, "arm": columns.arm}
    require_columns(
        path, columns_found, required_columns | {k: v for k, v in optional.items() if v is not None}
    )
    category, count, arm = (
        given_name or (default_name if default_name in columns_found else None)
        for given_name, default_name in zip(
            optional.values(), TRIPLE_TABLE.optional_columns, strict=True
        )
    )
    used_columns = (columns.group, columns.predicate, columns.object, category, count, arm)
    report_columns(path, columns_found, [name for name in used_columns if name], notify)
    for row in chain([first_row], rows):
        for object_text in row.read_parts(columns.object):
            triple = Triple(
                read_plain_group(row.read_part(columns.group)),
                row.read_part(columns.predicate),
                object_text,
            )
            if not (triple.group and triple.predicate and triple.object):
                yield None
                continue
            yield ImportedStatement(
                triple,
                count=1 if count is None else _parse_count(path, row, count),
                category=(row.read_part(category) or None) if category else None,
                arm=(row.cell_text(arm) or "none") if arm else "none",
            )


def read_plain_group(text: str) -> str:
    """The name of a group; "" if it has characters that are not seen, which are refused wherever
    else a group is named."""
    return text if is_plain(text) else ""


_THOUSANDS_SEPARATOR = re.compile("[, ’']")
_GROUPED_NUMBER = re.compile(r"\d{1,3}(?:[, ’']\d{3})+")  # 1,234


def _parse_count(path: Path, row: TableRecord, column: str) -> int:
    text = row.read_part(column) or "1"
    digits = _THOUSANDS_SEPARATOR.sub("", text) if _GROUPED_NUMBER.fullmatch(text) else text
    try:
        number = float(digits)
    except ValueError:
        number = -1.0
    if not (1 <= number < 2**53 and number == int(number)):
        raise DataError(
            f"{path}, line {row.line}: count {text[:40]!r} is not a whole number of at least 1"
        )
    return int(number)
