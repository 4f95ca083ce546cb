"""Calibration: what kgbias finds on the reference model, compared with what was planted."""

from kgbias.calibrate.coverage import Coverage, FalsePositives, coverage
from kgbias.calibrate.rows import ROWS, Calibration, Row, RowResult
from kgbias.calibrate.run import calibrate

__all__ = [
    "ROWS",
    "Calibration",
    "Coverage",
    "FalsePositives",
    "Row",
    "RowResult",
    "calibrate",
    "coverage",
]
