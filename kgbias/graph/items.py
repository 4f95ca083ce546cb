"""Items of benchmarks, and what a model's probabilities say of each."""

import json
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Item:
    """An item of a benchmark: what one comparison of a model's probabilities is about.

    `id` is computed from the texts that are scored and how; the texts themselves are not kept: they
    are in the user's copy, where `name` finds them.
    """

    id: str
    benchmark: str
    name: str
    category: str


@dataclass(frozen=True, slots=True)
class ItemScore:
    """READ_BY: an item under one model. What `scores` are is up to the benchmark
    (`kgbias.probe.benchmarks`); `tokens` were read for them, in `seconds`."""

    item: Item
    scores: tuple[float, ...]
    tokens: int = 0
    seconds: float = 0.0


def item_score(row: Any) -> ItemScore:
    """An item's score from a row of either store."""
    scores = json.loads(row["scores"]) if isinstance(row["scores"], str) else row["scores"]
    return ItemScore(
        Item(row["id"], row["benchmark"], row["name"], row["category"]),
        tuple(scores),
        row["tokens"],
        row["seconds"],
    )
