"""What calls of this method leave behind (tests/traces.py)."""

from collections.abc import Callable
from typing import Any

from kgbias.methods import benchmarks
from tests.traces import PEOPLES, REFERENCE, TraceWorld

LEFT_OUT = {
    "benchmarks.run_benchmarks": "probes, as other methods do",
    **dict.fromkeys(
        (f"benchmarks.score_{name}" for name in ("bbq", "crows_pairs", "stereoset", "winogender")),
        "a scorer and a published file",
    ),
}


def calls(world: TraceWorld) -> dict[str, Callable[[], Any]]:
    return {
        "benchmarks.estimate_cost": lambda: benchmarks.estimate_cost(
            world.study, REFERENCE, statements=["love rain"], identities=PEOPLES
        ),
    }
