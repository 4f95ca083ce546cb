"""Formats of files that become a run by a function of their own, beside the tables of statements
whose columns a person names (`kgbias.ingest.statement_file`).

A method or another package adds one by an entry point of the group "kgbias.imports".
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from kgbias.graph.store import Store
from kgbias.ingest.corpus import import_folder
from kgbias.ingest.import_run import ImportResult
from kgbias.ingest.statement_file import TABLE_FORMATS
from kgbias.io.plugins import PluginTable
from kgbias.io.progress import Progress

FOLDER_FORMAT = "documents"


class ImportFile(Protocol):
    """Makes a run of a file. Raises DataError if the file cannot be read that way."""

    def __call__(
        self, store: Store, path: Path, *, name: str | None, model: str, progress: Progress
    ) -> ImportResult:
        """`name` is the name of the run (None: a descriptive one), `model` the source of its
        statements, `progress` is told of long work."""


@dataclass(frozen=True, slots=True)
class ImportFormat:
    """A format of files to import.

    Attributes:
        read: makes a run of a file.
        about: what such a file holds, for the help of `kgbias import`.
        run_kind: the kind of run that it makes.
    """

    read: ImportFile
    about: str
    run_kind: str = "import"


IMPORT_FORMATS: PluginTable[ImportFormat] = PluginTable(
    "import", ImportFormat, {FOLDER_FORMAT: ImportFormat(import_folder, "a folder of text files")}
)
"""Every such format, by name."""


def format_names() -> list[str]:
    """The names of all formats, tables first. Imports none of other packages."""
    return [*TABLE_FORMATS, *IMPORT_FORMATS]


def describe_formats() -> Iterator[str]:
    """A line for each format of the core and the methods that is no table of statements."""
    for name, format in IMPORT_FORMATS.own_entries.items():
        yield f"{name}: {format.about}."
