"""What a benchmark would take, before a model is loaded."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from kgbias.graph.items import ItemScore
from kgbias.graph.store import Store
from kgbias.models.base import ModelInfo
from kgbias.probe.benchmarks import Benchmark


@dataclass(frozen=True, slots=True)
class Cost:
    """What one model on one benchmark takes.

    Attributes:
        model: the model.
        benchmark: the benchmark's title.
        items: how many it has.
        texts: that are scored for them.
        kept: items that the store holds of this model (asked in the way it holds most of).
        seconds: for the rest, at the speed of those that it holds; NaN where there are none.
    """

    model: str
    benchmark: str
    items: int
    texts: int
    kept: int
    seconds: float


def cost_of(model: ModelInfo, benchmark: Benchmark, store: Store | None) -> Cost:
    """The cost of one model on one benchmark."""
    held = _held(model, benchmark, store)
    sizes = {one.id: size for one, size in zip(benchmark.items, benchmark.sizes, strict=True)}
    done = sum(sizes[s.item.id] for s in held)
    left = sum(benchmark.sizes) - done
    speed = sum(s.seconds for s in held) / done if done else math.nan
    return Cost(
        model.name, benchmark.title, len(benchmark.items), sum(benchmark.sizes), len(held),
        left * speed if left else 0.0,
    )  # fmt: skip


def _held(model: ModelInfo, benchmark: Benchmark, store: Store | None) -> Sequence[ItemScore]:
    if store is None:
        return ()
    ids = [one.id for one in benchmark.items]
    found = [
        list(store.item_scores(model, settings, ids).values())
        for settings in store.item_settings(model)
    ]
    return max(found, key=len, default=[])
