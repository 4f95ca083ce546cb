"""Forced choices: which groups a model takes statements to be about when it has to choose."""

from dataclasses import dataclass
from typing import Any

from kgbias.graph.probed import Probing, statement_id

LEVEL = 0.05


@dataclass(frozen=True, slots=True)
class ChosenEdge:
    """CHOSEN: how often a model took a group for the one that a statement is about.

    Of `offered` questions in which the group was an option, `answered` had an answer that could be
    read, and `chosen` of these named the group: `share` is chosen / answered, `low` and `high` its
    95% interval. `base` is the same share over all statements of the choosing, `lift` in bits the
    share over it, and `p_value` that of a share above that of the other statements, corrected
    (`kgbias.probe.choice.figures`). Each is None where it is not defined. `answers` are the keys of
    the answers that named the group, `others` of those that did not.
    """

    predicate_id: str
    object_id: str
    group_id: str
    offered: int
    answered: int
    chosen: int
    share: float | None = None
    low: float | None = None
    high: float | None = None
    base: float | None = None
    lift: float | None = None
    lift_low: float | None = None
    lift_high: float | None = None
    p_value: float | None = None
    answers: tuple[str, ...] = ()
    others: tuple[str, ...] = ()

    @property
    def statement_id(self) -> str:
        return statement_id(self.predicate_id, self.object_id)

    @property
    def more(self) -> bool:
        """Whether the group was shown to be chosen for this statement more often than for others:
        the corrected p is at most 0.05, and the interval of the lift lies above 0."""
        tested = self.p_value is not None and self.p_value <= LEVEL
        return tested and self.lift_low is not None and self.lift_low > 0

    @property
    def properties(self) -> dict[str, Any]:
        """What the edge itself holds, by name."""
        return {name: getattr(self, name) for name in PROPERTIES}


PROPERTIES = tuple(ChosenEdge.__dataclass_fields__)[3:]


@dataclass(frozen=True, slots=True)
class Choosing(Probing):
    """A run's forced choices by one model. `settings` are also those of the questions: how many
    options and answers, by which template, at which temperature, drawn by which seed."""
