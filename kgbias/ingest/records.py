"""Rows of a CSV, TSV or JSON-lines file, with their line numbers."""

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kgbias.errors import DataError, UsageError
from kgbias.io.reading import LONGEST_CELL, check_header, json_value

FORMATS = {".csv": "csv", ".tsv": "tsv", ".tab": "tsv", ".jsonl": "jsonl", ".ndjson": "jsonl"}


@dataclass(frozen=True, slots=True)
class Record:
    """A row by column name, and the line of the file on which it begins."""

    line: int
    cells: Mapping[str, Any]

    def text(self, column: str) -> str:
        """The cell as text with single spaces; "" if it is empty or missing."""
        value = self.cells.get(column)
        if value is None or isinstance(value, (list, dict)):
            return ""
        return " ".join(str(value).split())


def format_of(path: Path) -> str:
    """csv, tsv or jsonl, by the file's extension."""
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
    """Raise DataError for the first column that the file lacks of those wanted, by parameter."""
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
                raise ValueError(f"a row has {len(cells)} cells, the header {len(header)}")
            padded = [*cells, *[""] * (len(header) - len(cells))]
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
