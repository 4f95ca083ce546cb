"""What calls of this method leave behind (tests/traces.py)."""

from collections.abc import Callable
from typing import Any

from kgbias.methods import choice
from tests.traces import REFERENCE, TraceWorld


def calls(world: TraceWorld) -> dict[str, Callable[[], Any]]:
    return {
        "choice.choose": lambda: [
            choice.choose(world.run(), REFERENCE, sample=1, samples=6, dry_run=dry_run)
            for dry_run in (True, False)
        ],
        "choice.list_choices": lambda: choice.list_choices(world.run()),
    }
