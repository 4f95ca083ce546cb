"""The HTML report of a run, and its figures and tables as files."""

from kgbias.report.page import write_report
from kgbias.report.types import Section

__all__ = ["Section", "write_report"]
