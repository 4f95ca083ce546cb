"""Runs from files: stereotype triples and character profiles collected elsewhere."""

from kgbias.ingest.corpus import import_passages
from kgbias.ingest.profiles import ProfileColumns, read_profiles
from kgbias.ingest.statement_file import CORPUS_FORMATS, FORMATS, STORY_FORMAT, StatementFile, read_file, need_complete_rows
from kgbias.ingest.import_run import ImportResult, import_file
from kgbias.ingest.statement_table import TripleColumns, ImportedStatement, read_triples

__all__ = [
    "CORPUS_FORMATS",
    "FORMATS",
    "STORY_FORMAT",
    "TripleColumns",
    "ImportResult",
    "ProfileColumns",
    "StatementFile",
    "ImportedStatement",
    "import_file",
    "import_passages",
    "read_file",
    "read_profiles",
    "read_triples",
    "need_complete_rows",
]
