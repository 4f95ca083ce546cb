"""Reading a file of statements by its format and columns."""

import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import file_digest
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from kgbias.errors import DataError, UsageError, no_such
from kgbias.ingest.profiles import ProfileColumns, read_profiles
from kgbias.ingest.statement_table import (
    ImportedStatement,
    TripleColumns,
    detect_format,
    read_triples,
)
from kgbias.io.reading import open_with_pipe_timeout, read_error
from kgbias.parameters import Names, as_names

TABLE_FORMATS = ("csv", "tsv", "jsonl", "table", "profiles")


@dataclass(frozen=True, slots=True)
class StatementFile:
    """The content of a file: its statements, how many rows were left out because they lacked a
    part, and the settings it was read with, which are stored with the run."""

    statements: list[ImportedStatement]
    incomplete_rows: int
    settings: dict[str, Any]
    sha256: str


def read_file(
    path: Path,
    *,
    format: str | None = None,
    group: str | None = None,
    predicate: str = TripleColumns().predicate,
    object: str = TripleColumns().object,
    category: str | None = None,
    count: str | None = None,
    arm: str | None = None,
    attribute: Names = (),
    attribute_predicates: Mapping[str, str] | None = None,
    notify: Callable[[str], None] = lambda _: None,
) -> StatementFile:
    """Read the whole file, before anything is written.

    `format` is csv, tsv, jsonl or profiles (None: by what the file holds). `notify` is told which
    columns were read, and which were not. `group` to `arm` name
    columns. `attribute` and `attribute_predicates` are for profiles: the columns to read, and the
    predicates to use instead of their names.

    Raises UsageError for parameters that do not go together, DataError for a file that cannot be
    read this way.
    """
    name = format or ""
    if name and name not in TABLE_FORMATS:
        raise UsageError(no_such("format", name, TABLE_FORMATS))
    columns = {
        "group": group,
        "predicate": predicate,
        "object": object,
        "category": category,
        "count": count,
        "arm": arm,
    }
    attributes = as_names(attribute)
    predicates = {column: text.strip() for column, text in (attribute_predicates or {}).items()}
    if not all(predicates.values()):
        raise UsageError(
            "`attribute_predicates` takes a predicate for each column, and one is empty"
        )
    if name != "profiles" and (attributes or predicates):
        raise UsageError(
            "`attribute` and `attribute_predicates` apply to profiles: set `format` to profiles"
        )
    with open_rereadable(path) as file:
        layout = name if name and name != "profiles" else detect_format(file)
        statement_rows: Iterator[ImportedStatement | None]
        if name == "profiles":
            profile = ProfileColumns(
                group or ProfileColumns().group, attributes, predicates, category
            )
            statement_rows = read_profiles(file, layout, profile, notify)
            settings = {
                "format": name,
                "group": profile.group,
                "attributes": list(attributes),
                "attribute_predicates": predicates,
            }
        else:
            named_columns = {key: value for key, value in columns.items() if value}
            statement_rows = read_triples(file, layout, TripleColumns(**named_columns), notify)
            settings = {"format": layout, "columns": named_columns}
        statements, left_out = require_complete_rows(file, statement_rows)
        return StatementFile(statements, left_out, settings, _hash_file(file))


@contextmanager
def open_rereadable(path: Path) -> Iterator[Path]:
    """The path of the file, or of a copy if it can be read only once, such as a pipe: it is read
    twice, for its rows and for its hash."""
    if path.is_file() or not path.exists() or path.is_dir():
        yield path
        return
    with TemporaryDirectory(prefix="kgbias-") as folder:
        copy = Path(folder) / path.name
        try:
            with open_with_pipe_timeout(path) as source, copy.open("wb") as sink:
                shutil.copyfileobj(source, sink)
            yield copy
        except OSError as error:
            raise read_error(path, error) from error
        except DataError as error:
            raise DataError(str(error).replace(str(copy), str(path))) from error


def _hash_file(path: Path) -> str:
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


class CompleteRows(NamedTuple):
    """The statements, and how many rows lacked a part."""

    statements: list[ImportedStatement]
    incomplete: int


def require_complete_rows(path: Path, rows: Iterable[ImportedStatement | None]) -> CompleteRows:
    """The statements, and the number of rows that lacked a part. Raises DataError if no row is
    complete."""
    statements: list[ImportedStatement] = []
    incomplete_rows = 0
    for row in rows:
        if row is None:
            incomplete_rows += 1
        else:
            statements.append(row)
    if not statements:
        raise DataError(
            f"{path} has no triples: all {incomplete_rows} rows lack a group, a predicate or an "
            "object, or have a group that is no plain text"
        )
    return CompleteRows(statements, incomplete_rows)
