"""Exports: a run's triples in the formats of other tools, with a manifest beside each file."""

from kgbias.export.content import ExportContent, Filters
from kgbias.export.tables import iter_rows
from kgbias.export.write import FORMATS, Format, choose_format_name, write_export

__all__ = [
    "FORMATS",
    "ExportContent",
    "Filters",
    "Format",
    "choose_format_name",
    "iter_rows",
    "write_export",
]
