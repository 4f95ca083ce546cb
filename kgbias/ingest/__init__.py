"""Runs from files: stereotype triples and character profiles collected elsewhere."""

from kgbias.ingest.corpora import import_passages
from kgbias.ingest.profiles import ProfileColumns, read_profiles
from kgbias.ingest.read import CORPORA, FORMATS, STORIES, Read, read_file, whole
from kgbias.ingest.run import Imported, import_file
from kgbias.ingest.tables import Columns, Statement, read_triples

__all__ = [
    "CORPORA",
    "FORMATS",
    "STORIES",
    "Columns",
    "Imported",
    "ProfileColumns",
    "Read",
    "Statement",
    "import_file",
    "import_passages",
    "read_file",
    "read_profiles",
    "read_triples",
    "whole",
]
