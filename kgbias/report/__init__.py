"""The HTML report and the figures of a run."""

from kgbias.report.page import Section, write_report

__all__ = ["Section", "write_report"]
