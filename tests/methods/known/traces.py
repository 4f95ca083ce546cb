"""What calls of this method leave behind (tests/traces.py)."""

from collections.abc import Callable
from typing import Any

from kgbias.methods import known
from tests.traces import PEOPLES, REFERENCE, TraceWorld

RECORDED = [
    {"group": group, "attribute": attribute}
    for group, attribute in (
        ("German", "punctual"),
        ("Dutch", "punctual"),
        ("Italian", "lazy"),
        ("Spanish", "lazy"),
    )
]


def calls(world: TraceWorld) -> dict[str, Callable[[], Any]]:
    return {
        "known.match_stereotypes": lambda: known.match_stereotypes(
            world.run(), [{"group": PEOPLES[0], "attribute": "amber scarves"}]
        ),
        "known.recorded_agreement": lambda: known.recorded_agreement(
            world.study, REFERENCE, RECORDED
        ),
    }
