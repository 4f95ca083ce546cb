"""Exports: a run's triples in the formats of other tools, with a manifest beside each file."""

from kgbias.export.tables import FORMATS, write_export

__all__ = ["FORMATS", "write_export"]
