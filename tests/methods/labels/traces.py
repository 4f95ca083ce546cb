"""What calls of this method leave behind (tests/traces.py)."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from kgbias.methods import labels
from tests.traces import TraceWorld


def fill_sheet(world: TraceWorld) -> Path:
    sheet = world.folder / "labels.csv"
    labels.begin_labelling(world.run(), "regard").write_sheet(sheet)
    return sheet


def calls(world: TraceWorld) -> dict[str, Callable[[], Any]]:
    return {
        "labels.begin_labelling": lambda: labels.begin_labelling(world.run()),
        "labels.list_labels": lambda: labels.list_labels(world.run()),
        "labels.expect_figures": lambda: labels.expect_figures(world.run(), 10),
        "labels.compare_raters": lambda: labels.compare_raters(world.run()),
        "labels.read_sheet": lambda: labels.read_sheet(world.run(), fill_sheet(world), by="me"),
    }
