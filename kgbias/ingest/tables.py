"""Triples from a table (CSV, TSV or JSON lines): one statement per row, with columns by name and
line numbers."""

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from kgbias.errors import DataError, UsageError
from kgbias.graph.types import Triple
from kgbias.io.reading import LONGEST_CELL, check_header, json_value
from kgbias.io.text import undefused

FORMATS = {".csv": "csv", ".tsv": "tsv", ".tab": "tsv", ".jsonl": "jsonl", ".ndjson": "jsonl"}


# How pandas, R and databases write a cell without a value. Lower-case "nan" is also a grandmother,
# but a table that says so of people is rarer than one with pandas' empty cells.
_MISSING = {"NULL", "null", "NaN", "nan", "<NA>", "#N/A"}


@dataclass(frozen=True, slots=True)
class Record:
    """A row by column name, and the line of the file where it begins."""

    line: int
    cells: Mapping[str, Any]

    def text(self, column: str) -> str:
        """The cell as text with single spaces; "" if it is empty or missing."""
        value = self.cells.get(column)
        if value is None or isinstance(value, (list, dict)):
            return ""
        return " ".join(str(value).split())

    def part(self, column: str) -> str:
        """The cell as a part of a triple: "" too if it stands for no value."""
        text = self.text(column)
        return "" if text in _MISSING else text


def format_of(path: Path) -> str:
    """The format, csv, tsv or jsonl, by the file's extension."""
    found = FORMATS.get(path.suffix.lower())
    if found is None:
        raise UsageError(f"{path.name}: name the `format`: csv, tsv or jsonl")
    return found


def read_records(path: Path, format: str) -> Iterator[Record]:
    """The rows of a file. Raises DataError, naming the line, if it is not in this format."""
    line = 0
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = _json_lines(file) if format == "jsonl" else _table(file, format)
            for record in rows:
                line = record.line
                yield record
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is not UTF-8 text: {error.reason} after line {line}") from error
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}") from error
    except (csv.Error, ValueError, DataError) as error:
        where = f", after line {line}" if line else ""
        raise DataError(f"{path}{where}: {error}") from error


def need_columns(path: Path, there: Sequence[str], wanted: Mapping[str, str]) -> None:
    """Raise DataError for the first of the wanted columns, by parameter, that the file lacks."""
    for parameter, column in wanted.items():
        if column not in there:
            listed = ", ".join(name or "(no name)" for name in there) or "none"
            raise DataError(
                f"{path} has no column {column!r}; its columns are: {listed}. "
                f"Name the right one as `{parameter}`"
            )


def _table(file: Any, format: str) -> Iterator[Record]:
    csv.field_size_limit(LONGEST_CELL)
    reader = csv.reader(file, delimiter="\t" if format == "tsv" else ",", strict=True)
    header = next(reader, None)
    if header is None:
        raise ValueError("the file is empty")
    check_header(header, "the file")
    line = reader.line_num
    for cells in reader:
        if cells:
            if len(cells) > len(header):
                raise ValueError(f"a row has {len(cells)} cells, but the header has {len(header)}")
            padded = [*map(undefused, cells), *[""] * (len(header) - len(cells))]
            yield Record(line + 1, dict(zip(header, padded, strict=True)))
        line = reader.line_num


def _json_lines(file: Any) -> Iterator[Record]:
    for number, text in enumerate(file, 1):
        if not text.strip():
            continue
        value = json_value(text, f"line {number}")
        if not isinstance(value, dict):
            raise ValueError(f"line {number} is not a JSON object")
        yield Record(number, value)


@dataclass(frozen=True, slots=True)
class Columns:
    """Which column holds what. `category`, `count` and `arm` may be missing from the file unless
    they are named here."""

    group: str = "group"
    predicate: str = "predicate"
    object: str = "object"
    category: str | None = None
    count: str | None = None
    arm: str | None = None


@dataclass(frozen=True, slots=True)
class Character:
    """The profile that a statement belongs to: the number of its row, the given name it was written
    for, and what the name stands for (group, ethnicity, gender)."""

    row: int
    name: str
    labels: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Statement:
    """A triple as the file gives it, how often it was said, the category of its group (None if the
    file does not say), and the arm that it comes from; in a profile, also its character and
    attribute."""

    triple: Triple
    count: int = 1
    category: str | None = None
    arm: str = "none"
    character: Character | None = None
    attribute: str = ""


def read_triples(path: Path, format: str, columns: Columns) -> Iterator[Statement | None]:
    """One statement per row; None for a row without a group, predicate or object.

    Raises DataError if the file cannot be read, a column is missing or a count is not a number."""
    rows = read_records(path, format)
    first = next(rows, None)
    if first is None:
        raise DataError(f"{path} has no rows")
    there = list(first.cells)
    if format == "jsonl":  # its objects need not have the same keys
        there = list(dict.fromkeys(key for row in read_records(path, format) for key in row.cells))
    wanted = {"group": columns.group, "predicate": columns.predicate, "object": columns.object}
    optional = {"category": columns.category, "count": columns.count, "arm": columns.arm}
    need_columns(path, there, wanted | {k: v for k, v in optional.items() if v is not None})
    category = columns.category or ("category" if "category" in there else None)
    count = columns.count or ("count" if "count" in there else None)
    arm = columns.arm or ("arm" if "arm" in there else None)
    for row in chain([first], rows):
        triple = Triple(
            row.part(columns.group), row.part(columns.predicate), row.part(columns.object)
        )
        if not (triple.group and triple.predicate and triple.object):
            yield None
            continue
        yield Statement(
            triple,
            1 if count is None else _count(path, row, count),
            (row.text(category) or None) if category else None,
            (row.text(arm) or "none") if arm else "none",
        )


def _count(path: Path, row: Record, column: str) -> int:
    text = row.text(column) or "1"
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not (1 <= number < 2**53 and number == int(number)):
        raise DataError(
            f"{path}, line {row.line}: count {text[:40]!r} is not a whole number of at least 1"
        )
    return int(number)
