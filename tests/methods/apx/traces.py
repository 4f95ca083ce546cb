"""What calls of this method leave behind (tests/traces.py)."""

from collections.abc import Callable
from typing import Any

from kgbias.methods import apx
from tests.traces import REFERENCE, TraceWorld

NAMES = [{"name": n, "group": g} for n, g in (("Ann", "a"), ("Bob", "b"), ("Eve", "a"))]


def calls(world: TraceWorld) -> dict[str, Callable[[], Any]]:
    return {
        "apx.probe_names": lambda: apx.probe_names(
            world.study,
            REFERENCE,
            NAMES,
            [{"descriptor": "kind", "axis": "x"}, {"descriptor": "rude", "axis": "x"}],
            output=world.folder / "apx.csv",
        ),
        "apx.flag_table": lambda: apx.flag_table(world.study, world.folder / "apx.csv"),
        "apx.list_flags": lambda: apx.list_flags(world.study),
    }
