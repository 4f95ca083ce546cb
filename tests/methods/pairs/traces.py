"""What calls of this method leave behind (tests/traces.py)."""

from collections.abc import Callable
from typing import Any

from kgbias.methods import pairs
from tests.traces import TraceWorld, open_writer

ANSWER = "Ann was a kind nurse who lived by the sea."


def calls(world: TraceWorld) -> dict[str, Callable[[], Any]]:
    return {
        "pairs.ask_pairs": lambda: pairs.ask_pairs(
            world.study, open_writer(ANSWER), category="gender", samples=1
        ),
        "pairs.list_answers": lambda: pairs.list_answers(world.study.run(kind="pairs")),
        "pairs.compare_pairs": lambda: pairs.compare_pairs(world.study.run(kind="pairs")),
    }
