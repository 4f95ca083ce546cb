"""The HTML report of a run or of several, and their figures and tables as files."""

from kgbias.report.page import write_report
from kgbias.report.several_page import write_several
from kgbias.report.types import Section

__all__ = ["Section", "write_report", "write_several"]
