"""Runs from files: stereotype triples and character profiles collected elsewhere."""

from kgbias.ingest.corpus import import_passages
from kgbias.ingest.import_run import ImportResult, import_file
from kgbias.ingest.profiles import ProfileColumns, read_profiles
from kgbias.ingest.statement_file import (
    CORPUS_FORMATS,
    FORMATS,
    STORY_FORMAT,
    StatementFile,
    need_complete_rows,
    read_file,
)
from kgbias.ingest.statement_table import ImportedStatement, TripleColumns, read_triples

__all__ = [
    "CORPUS_FORMATS",
    "FORMATS",
    "STORY_FORMAT",
    "ImportResult",
    "ImportedStatement",
    "ProfileColumns",
    "StatementFile",
    "TripleColumns",
    "import_file",
    "import_passages",
    "need_complete_rows",
    "read_file",
    "read_profiles",
    "read_triples",
]
