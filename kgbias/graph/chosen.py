"""Forced choices: which groups a model takes statements to be about when it has to choose."""

from dataclasses import dataclass

from kgbias.graph.probed import Probing, StatementEdge, properties_of

LEVEL = 0.05


@dataclass(frozen=True, slots=True)
class ChosenEdge(StatementEdge):
    """CHOSEN: how often a model took a group for the one that a statement is about.

    Of `offered` questions in which the group was an option, `answered` had an answer that could be
    read, and `chosen` of these named the group: `share` is chosen / answered, `low` and `high` its
    95% interval. `base` is the same share over all statements of the choosing, `lift` in bits the
    share over it, and `p_value` that of a share above that of the other statements, corrected
    (`kgbias.probe.choice.figures`). Each is None where it is not defined. `answers` are the keys of
    the answers that named the group, `others` of those that did not.
    """

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
    def more(self) -> bool:
        """Whether the group was shown to be chosen for this statement more often than for others:
        the corrected p is at most 0.05, and the interval of the lift lies above 0."""
        tested = self.p_value is not None and self.p_value <= LEVEL
        return tested and self.lift_low is not None and self.lift_low > 0


PROPERTIES = properties_of(ChosenEdge)


@dataclass(frozen=True, slots=True)
class Choosing(Probing):
    """A run's forced choices by one model. `settings` are also those of the questions: how many
    options and answers, by which template, at which temperature, drawn by which seed."""
