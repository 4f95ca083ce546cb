"""Calibration: what kgbias finds on the reference model, compared with what was planted."""

from kgbias.calibrate.calibration_rows import ROWS, Calibration, RowFunction, RowResult
from kgbias.calibrate.coverage import Coverage, FalsePositives, measure_coverage
from kgbias.calibrate.run import calibrate

__all__ = [
    "ROWS",
    "Calibration",
    "Coverage",
    "FalsePositives",
    "RowFunction",
    "RowResult",
    "calibrate",
    "measure_coverage",
]
