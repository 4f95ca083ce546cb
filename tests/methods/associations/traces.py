"""What calls of this method leave behind (tests/traces.py)."""

from collections.abc import Callable
from typing import Any

from kgbias.methods import associations
from tests.traces import REFERENCE, TraceWorld

SETS = {
    "warm": ["red", "amber"],
    "cool": ["green", "teal"],
    "clothes": ["scarves", "hats"],
    "food": ["soup", "bread"],
}
VECTORS = {
    word: [float(n), 1.0, n % 3] for n, word in enumerate(w for s in SETS.values() for w in s)
}


def calls(world: TraceWorld) -> dict[str, Callable[[], Any]]:
    return {
        "associations.associate": lambda: associations.associate(
            world.run(),
            tests=SETS,
            vectors=VECTORS,  # type: ignore[arg-type]
        ),
        "associations.list_associations": lambda: associations.list_associations(world.run()),
        "associations.grid_cost": lambda: associations.grid_cost(
            world.study, REFERENCE, "C6", "w-seat"
        ),
        "associations.associate_grid": lambda: associations.associate_grid(
            world.study, REFERENCE, "C6", "w-seat", encoding="word-average", cache=False
        ),
    }
