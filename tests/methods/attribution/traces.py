"""What calls of this method leave behind (tests/traces.py)."""

from collections.abc import Callable
from typing import Any

from kgbias.methods import attribution
from tests.traces import TraceWorld


def calls(world: TraceWorld) -> dict[str, Callable[[], Any]]:
    return {
        "attribution.attribute": lambda: attribution.attribute(world.run(), "toxicity", top=1),
        "attribution.rank_words": lambda: attribution.rank_words(world.run()),
        "attribution.list_attributions": lambda: attribution.list_attributions(world.run()),
        "attribution.measure_deletion": lambda: attribution.measure_deletion(
            world.run(), "toxicity", method="occlusion", top=1, removed=1
        ),
    }
