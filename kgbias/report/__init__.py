"""The HTML report and the figures of a run."""

from kgbias.report.page import write_report
from kgbias.report.types import Section

__all__ = ["Section", "write_report"]
