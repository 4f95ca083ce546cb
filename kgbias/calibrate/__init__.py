"""Calibration: kgbias run on the reference model, comparing what was planted with what was found.
"""

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
