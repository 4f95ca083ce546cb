"""Reading a file of statements by its format and columns."""

import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import file_digest
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from kgbias.errors import DataError, UsageError, no_such
from kgbias.ingest.profiles import ProfileColumns, read_profiles
from kgbias.ingest.tables import Columns, Statement, format_of, read_triples
from kgbias.parameters import Names, as_names

TABLES = ("csv", "tsv", "jsonl", "table", "profiles")
CORPORA = ("ragas", "documents")  # read by `kgbias.ingest.corpora`
STORIES = "stereotales"  # read by `kgbias.stories.stereotales`
FORMATS = (*TABLES, *CORPORA, STORIES)


@dataclass(frozen=True, slots=True)
class Read:
    """The content of a file: its statements, how many rows were left out because they lacked a
    part, and the settings it was read with, which are stored with the run."""

    statements: list[Statement]
    left_out: int
    settings: dict[str, Any]
    sha256: str


def read_file(
    path: Path,
    *,
    format: str | None = None,
    group: str | None = None,
    predicate: str = Columns().predicate,
    object: str = Columns().object,
    category: str | None = None,
    count: str | None = None,
    arm: str | None = None,
    attribute: Names = (),
    say: Mapping[str, str] | None = None,
    notify: Callable[[str], None] = lambda _: None,
) -> Read:
    """Read the whole file, before anything is written.

    `format` is csv, tsv, jsonl or profiles (None: by what the file holds). `notify` is told which
    columns were read, and which were not. `group` to `arm` name
    columns. `attribute` and `say` are for profiles: the columns to read, and the predicates to use
    instead of their names.

    Raises UsageError for parameters that do not go together, DataError for a file that cannot be
    read this way.
    """
    name = format or ""
    if name and name not in TABLES:
        raise UsageError(no_such("format", name, FORMATS))
    columns = {"group": group, "predicate": predicate, "object": object, "category": category,
               "count": count, "arm": arm}  # fmt: skip
    attributes = as_names(attribute)
    said_as = {column: text.strip() for column, text in (say or {}).items()}
    if not all(said_as.values()):
        raise UsageError("`say` takes a predicate for each column, and one is empty")
    if name != "profiles" and (attributes or said_as):
        raise UsageError("`attribute` and `say` apply to profiles: set `format` to profiles")
    with spooled(path) as file:
        layout = name if name and name != "profiles" else format_of(file)
        rows: Iterator[Statement | None]
        if name == "profiles":
            profile = ProfileColumns(group or ProfileColumns().group, attributes, said_as, category)
            rows = read_profiles(file, layout, profile, notify)
            settings = {
                "format": name,
                "group": profile.group,
                "attributes": list(attributes),
                "say": said_as,
            }
        else:
            named = {key: value for key, value in columns.items() if value}
            rows = read_triples(file, layout, Columns(**named), notify)
            settings = {"format": layout, "columns": named}
        statements, left_out = whole(file, rows)
        return Read(statements, left_out, settings, _sha256(file))


@contextmanager
def spooled(path: Path) -> Iterator[Path]:
    """The file, or a copy if it can be read only once, such as a pipe: it is read twice, for its
    rows and for its hash."""
    if path.is_file() or not path.exists() or path.is_dir():
        yield path
        return
    with TemporaryDirectory(prefix="kgbias-") as folder:
        copy = Path(folder) / path.name
        try:
            with path.open("rb") as source, copy.open("wb") as sink:
                shutil.copyfileobj(source, sink)
            yield copy
        except OSError as error:
            raise DataError(f"cannot read {path}: {error.strerror or error}") from error
        except DataError as error:
            raise DataError(str(error).replace(str(copy), str(path))) from error


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


def whole(path: Path, rows: Iterable[Statement | None]) -> tuple[list[Statement], int]:
    """The statements, and the number of rows that lacked a part. Raises DataError if no row is
    complete."""
    statements: list[Statement] = []
    left_out = 0
    for row in rows:
        if row is None:
            left_out += 1
        else:
            statements.append(row)
    if not statements:
        raise DataError(
            f"{path} has no triples: all {left_out} rows lack a group, a predicate or an object"
        )
    return statements, left_out
