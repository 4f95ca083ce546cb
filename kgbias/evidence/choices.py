"""What a model that had to choose says of the statements of a run."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from kgbias.estimate import Estimate
from kgbias.graph.stored import StoredRun
from kgbias.graph.types import Choosing, ChosenEdge


@dataclass(frozen=True)
class Choices:
    """The forced choices of one model, if the run has any."""

    choosing: Choosing | None = None
    edges: Sequence[ChosenEdge] = ()

    @classmethod
    def read(cls, run: StoredRun, model: str | None = None) -> "Choices":
        """Those of the named model, else those of the run's own, else the first."""
        found = run.choosings()
        if not found:
            return cls()
        wanted = (model, run.model.name)
        ranked = sorted(
            found, key=lambda c: wanted.index(c.model.name) if c.model.name in wanted else 2
        )
        return cls(ranked[0], run.choices(ranked[0]))

    def cells(self, group: str, key: tuple[str, str]) -> dict[str, Any]:
        """The columns of a group (by id) and a statement (by the ids of its predicate and
        object)."""
        edge = self._by_place.get((group, key))
        if self.choosing is None or edge is None:
            none = Estimate.missing()
            return {"chooser": "", "chosen": none, "chosen_lift": none, "chosen_p": math.nan}
        n = edge.answered
        return {
            "chooser": self.choosing.model.name,
            "chosen": _estimate(edge.share, edge.low, edge.high, n),
            "chosen_lift": _estimate(edge.lift, edge.lift_low, edge.lift_high, n),
            "chosen_p": math.nan if edge.p_value is None else edge.p_value,
        }

    @cached_property
    def _by_place(self) -> dict[tuple[str, tuple[str, str]], ChosenEdge]:
        return {(e.group_id, (e.predicate_id, e.object_id)): e for e in self.edges}


def _estimate(value: float | None, low: float | None, high: float | None, n: int) -> Estimate:
    ends = [math.nan if number is None else number for number in (value, low, high)]
    return Estimate(ends[0], ends[1], ends[2], n)
