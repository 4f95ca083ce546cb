"""Runs from files: stereotype triples and character profiles collected elsewhere."""

from kgbias.ingest.formats import IMPORT_FORMATS, ImportFormat
from kgbias.ingest.import_run import ImportResult, import_file
from kgbias.ingest.profiles import ProfileColumns, read_profiles
from kgbias.ingest.statement_file import (
    StatementFile,
    read_file,
    require_complete_rows,
)
from kgbias.ingest.statement_table import ImportedStatement, TripleColumns, read_triples

__all__ = [
    "IMPORT_FORMATS",
    "ImportFormat",
    "ImportResult",
    "ImportedStatement",
    "ProfileColumns",
    "StatementFile",
    "TripleColumns",
    "import_file",
    "read_file",
    "read_profiles",
    "read_triples",
    "require_complete_rows",
]
