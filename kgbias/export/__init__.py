"""Exports: a run's triples in the formats of other tools, with a manifest beside each file."""

from kgbias.export.content import Content, Filters
from kgbias.export.tables import rows
from kgbias.export.write import FORMATS, Format, chosen_format, write_export

__all__ = ["FORMATS", "Content", "Filters", "Format", "chosen_format", "rows", "write_export"]
