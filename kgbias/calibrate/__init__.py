"""Calibration: the tool on the reference model, planted truth beside what was found."""

from kgbias.calibrate.rows import ROWS, Calibration, Row, RowResult
from kgbias.calibrate.run import calibrate

__all__ = ["ROWS", "Calibration", "Row", "RowResult", "calibrate"]
