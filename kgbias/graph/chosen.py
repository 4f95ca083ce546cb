"""Forced choices: which groups a model takes statements to be about when it has to choose."""

from dataclasses import dataclass

from kgbias.graph.probed import Probing, StatementEdge, properties_of

MORE, OF_NAME = "chosen more", "of this name"


@dataclass(frozen=True, slots=True)
class ChosenEdge(StatementEdge):
    """CHOSEN: how often a model took a group for the one that a statement is about.

    Of `offered` questions in which the group was an option, `answered` had an answer that could be
    read, and `chosen` of these named the group: `share` is chosen / answered, `low` and `high` its
    95% interval, and `base` the same share over all statements of the choosing.

    Where the group was offered by `names` of its own, the `lift` is over those names, in bits and
    held against the other groups', and `p_value` that of a lift of at most half a bit, corrected
    over the group's statements; `verdict` is "chosen more", "leaning", "bound to a word" or "".
    Where it was offered by one name, the lift is the share over the base rate and `p_value` that of
    a share above that of the other statements, corrected over all; `verdict` is "of this name" or
    "" (`kgbias.probe.choice.figures`).

    Each figure is None where it is not defined. `answers` are the keys of the answers that named
    the group, `others` of those that did not.
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
    names: int = 1
    verdict: str = ""
    answers: tuple[str, ...] = ()
    others: tuple[str, ...] = ()

    @property
    def more(self) -> bool:
        """Whether the group, or the one name of it, was shown to be chosen for this statement more
        often than for others."""
        return self.verdict in (MORE, OF_NAME)


PROPERTIES = properties_of(ChosenEdge)


@dataclass(frozen=True, slots=True)
class Choosing(Probing):
    """A run's forced choices by one model. `settings` are also those of the questions: how many
    options and answers, by which template, at which temperature, drawn by which seed."""
