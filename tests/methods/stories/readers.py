"""Files that this method reads, for the attack on readers (tests/attack/readers.py)."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.attack.readers import Reader

STORIES = "".join(
    json.dumps(
        {
            "sample_id": str(n),
            "generator_model": "m",
            "language": "en",
            "scenario_key": "a",
            "target_attribute": "religion",
            "target_attribute_value": value,
            "story": "She sang.",
            "extracted_attributes_json": '{"gender": "woman", "age": "old"}',
        }
    )
    + "\n"
    for n, value in enumerate(("Hindu", "Jewish"))
)


def _read_stories(open_study: Callable[..., Any], path: Path) -> Any:
    with open_study(None, progress=False) as study:
        return study.import_file(path, format="stereotales")


READERS = (
    Reader(
        "people of stories",
        "kgbias.methods.stories.config:read_people",
        {"csv": b"name,group,category\na cook,Cooks,trade\n"},
    ),
    Reader("stories", "kgbias:open", {"jsonl": STORIES.encode()}, _read_stories),
)
