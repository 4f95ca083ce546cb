"""What calls of this method leave behind (tests/traces.py)."""

from collections.abc import Callable
from typing import Any

from kgbias.methods import sofa
from tests.traces import TraceWorld

LEFT_OUT = dict.fromkeys(
    ("sofa.build_set", "sofa.describe_set"), "parses, or embeds: half a minute of imports"
)


def calls(world: TraceWorld) -> dict[str, Callable[[], Any]]:
    return {
        "sofa.write_figures": lambda: sofa.write_figures(world.study, world.folder / "sofa"),
    }
