"""What calls of this method leave behind (tests/traces.py)."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from kgbias.methods import labels
from tests.traces import TraceWorld


def fill_sheet(world: TraceWorld) -> Path:
    sheet = world.folder / "labels.csv"
    labels.begin(world.run(), "regard").write_sheet(sheet)
    return sheet


def calls(world: TraceWorld) -> dict[str, Callable[[], Any]]:
    return {
        "labels.begin": lambda: labels.begin(world.run()),
        "labels.in_effect": lambda: labels.in_effect(world.run()),
        "labels.plan": lambda: labels.plan(world.run(), 10),
        "labels.raters": lambda: labels.raters(world.run()),
        "labels.read": lambda: labels.read(world.run(), fill_sheet(world), by="me"),
    }
