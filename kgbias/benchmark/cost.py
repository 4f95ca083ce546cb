"""What a benchmark would take, before a model is loaded."""

import math
from dataclasses import dataclass

from kgbias.graph.store import Store
from kgbias.models.base import ModelInfo
from kgbias.probe.benchmarks import Benchmark, Held


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
    held = Held() if store is None else benchmark.held(model, store)
    left = benchmark.texts - held.texts
    speed = held.seconds / held.texts if held.texts else math.nan
    return Cost(
        model.name, benchmark.title, benchmark.count, benchmark.texts, held.items,
        left * speed if left else 0.0,
    )  # fmt: skip
