"""Runs from files: stereotype triples and character profiles made elsewhere."""

from kgbias.ingest.profiles import ProfileColumns, read_profiles
from kgbias.ingest.run import Imported, import_file, whole
from kgbias.ingest.tables import Columns, Statement, read_triples

__all__ = [
    "Columns",
    "Imported",
    "ProfileColumns",
    "Statement",
    "import_file",
    "read_profiles",
    "read_triples",
    "whole",
]
