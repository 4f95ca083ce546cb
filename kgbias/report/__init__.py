"""The HTML report of a run or of several, and their figures and tables as files."""

from kgbias.report.multi_run import write_multi_run
from kgbias.report.page import write_report
from kgbias.report.style import Section
from kgbias.report.two_languages import write_two_languages

__all__ = ["Section", "write_multi_run", "write_report", "write_two_languages"]
