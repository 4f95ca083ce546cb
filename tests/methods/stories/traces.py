"""What calls of this method leave behind (tests/traces.py)."""

from collections.abc import Callable
from typing import Any

from kgbias.methods import stories
from tests.traces import TraceWorld, open_writer

STORY = "Ann was a kind nurse who lived by the sea. She loved rain and worked in a hospital."


def calls(world: TraceWorld) -> dict[str, Callable[[], Any]]:
    return {
        "stories.write_stories": lambda: stories.write_stories(
            world.study, open_writer(STORY), category="gender", samples=1
        ),
        "stories.list_stories": lambda: stories.list_stories(world.study.run(kind="stories")),
        "stories.find_links": lambda: stories.find_links(world.study.run(kind="stories"), deals=9),
    }
