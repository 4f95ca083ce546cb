"""Runs from files: stereotype triples and character profiles that were collected elsewhere."""

from kgbias.ingest.profiles import ProfileColumns, read_profiles
from kgbias.ingest.read import FORMATS, Read, read_file, whole
from kgbias.ingest.run import Imported, import_file
from kgbias.ingest.tables import Columns, Statement, read_triples

__all__ = [
    "FORMATS",
    "Columns",
    "Imported",
    "ProfileColumns",
    "Read",
    "Statement",
    "import_file",
    "read_file",
    "read_profiles",
    "read_triples",
    "whole",
]
