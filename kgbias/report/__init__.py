"""The HTML report of a run or of several, and their figures and tables as files."""

from kgbias.report.page import write_report
from kgbias.report.several import write_several
from kgbias.report.style import Section

__all__ = ["Section", "write_report", "write_several"]
