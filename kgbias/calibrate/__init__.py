"""Calibration: what kgbias finds on the reference model, compared with what was planted."""

from kgbias.calibrate.calibration_rows import ROWS, Calibration, RowFunction, RowResult
from kgbias.calibrate.coverage import FalsePositives, FigureCoverage, measure_coverage
from kgbias.calibrate.run import calibrate

__all__ = [
    "ROWS",
    "Calibration",
    "FalsePositives",
    "FigureCoverage",
    "RowFunction",
    "RowResult",
    "calibrate",
    "measure_coverage",
]
