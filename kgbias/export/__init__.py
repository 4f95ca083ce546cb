"""Exports: a run's triples in the formats of other tools, with a manifest beside each file."""

from kgbias.export.content import Filters
from kgbias.export.write import FORMATS, chosen_format, write_export

__all__ = ["FORMATS", "Filters", "chosen_format", "write_export"]
