"""Rows of the calibration that methods add.

A method or another package adds rows by an entry point of the group "kgbias.calibrations".
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kgbias.calibrate.calibration_rows import RowFunction
from kgbias.io.plugins import PluginTable


@dataclass(frozen=True, slots=True)
class CalibrationRows:
    """Rows that hold a method against what is planted in the reference world.

    Attributes:
        build: makes them, in their order.
    """

    build: Callable[[], Sequence[RowFunction]]


CALIBRATION_ROWS: PluginTable[CalibrationRows] = PluginTable("calibration", CalibrationRows, {})
"""The rows of each method, by its name."""


def build_method_rows() -> list[RowFunction]:
    """The rows of all methods: what a broken package adds is left out."""
    return [row for rows in CALIBRATION_ROWS.usable_entries().values() for row in rows.build()]
