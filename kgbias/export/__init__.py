"""Exports: a run's triples in the formats of other tools, with a manifest beside each file."""

from kgbias.export.content import Filters
from kgbias.export.write import FORMATS, write_export

__all__ = ["FORMATS", "Filters", "write_export"]
