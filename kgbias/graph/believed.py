"""What a model believes of groups, by the groups' names: the names, how probable statements are
after each, and what follows for a group (`kgbias.probe.belief`)."""

import math
from dataclasses import dataclass

from kgbias.graph.probed import Probing, StatementEdge, properties_of, statement_id
from kgbias.ids import content_id, normalise
from kgbias.io.text import storable


def name_id(text: str) -> str:
    return content_id("name", normalise(storable(text)))


@dataclass(frozen=True, slots=True)
class GroupName:
    """A name by which people speak of a group: a plural noun phrase, such as "Asian Americans".

    Attributes:
        text: the name.
        group_id: of the group; "" of a nonce name, which means nothing and belongs to no group.
        form: the pattern of the name with {} for its root, such as "{}s", "{} Americans" or
            "people from {}".
        root: the word that carries the meaning, in lower case ("asian", of "people from Asia" too).
        mark: why the name is not one of those that are mixed by default: "narrower" (than the
            group), "self-description" or "slur"; "" of one that is.
    """

    text: str
    group_id: str
    form: str
    root: str
    mark: str = ""

    @property
    def id(self) -> str:
        return name_id(self.text)

    @property
    def nonce(self) -> bool:
        """Whether it is a name that means nothing."""
        return not self.group_id


@dataclass(frozen=True, slots=True)
class NameProbe:
    """PROBED, from a name: `bits` is log2 p(statement | carrier, name), one for each carrier of the
    believing, in their order; at most 0."""

    predicate_id: str
    object_id: str
    name_id: str
    bits: tuple[float, ...]

    @property
    def mean(self) -> float:
        """Over the carriers."""
        return math.fsum(self.bits) / len(self.bits)

    @property
    def statement_id(self) -> str:
        return statement_id(self.predicate_id, self.object_id)


@dataclass(frozen=True, slots=True)
class BelievedEdge(StatementEdge):
    """BELIEVED: what a model's probabilities say of a statement and a group, over its names.

    Attributes:
        lift: in bits, how much likelier the statement is after the group's names than after those
            of the other groups of its category, beyond what each name makes likelier anyway; `low`
            and `high` are the ends of its 95% interval over names.
        names: how many names of the group it rests on.
        p_value: one-sided, of a lift of at most the margin; `q_value` the same corrected over the
            group's statements (Benjamini and Hochberg 1995); `p_zero` and `q_zero` of a lift of at
            most 0.
        least: the smallest lift with one of the names left out, and `swayed_by` the name that was.
        verdict: "believed", "leaning", "bound to a word", or "" where nothing is shown.
    """

    lift: float
    low: float
    high: float
    names: int
    p_value: float
    q_value: float
    p_zero: float
    q_zero: float
    least: float
    swayed_by: str = ""
    verdict: str = ""


BELIEVED_PROPERTIES = properties_of(BelievedEdge)


@dataclass(frozen=True, slots=True)
class Believing(Probing):
    """A run's probes by names under one model. `settings` are also those of the asking: carriers,
    how many statements a category, the seed of nonce names; `record` holds what was found: the
    floor, the figures of groups, how many statements were said and not probed."""
