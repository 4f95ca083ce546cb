"""What was probed: statements with groups before them, under a model."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kgbias.ids import content_id
from kgbias.models.base import ModelInfo, Settings


def statement_id(predicate_id: str, object_id: str) -> str:
    return content_id("statement", predicate_id, object_id)


@dataclass(frozen=True, slots=True)
class StatementEdge:
    """An edge between a statement (a predicate and object) and a group."""

    predicate_id: str
    object_id: str
    group_id: str

    @property
    def statement_id(self) -> str:
        return statement_id(self.predicate_id, self.object_id)

    @property
    def properties(self) -> dict[str, Any]:
        """What the edge itself holds, by name."""
        return {name: getattr(self, name) for name in properties_of(type(self))}


def properties_of(kind: type[StatementEdge]) -> tuple[str, ...]:
    """The names of what edges of a kind hold themselves."""
    return tuple(kind.__dataclass_fields__)[len(StatementEdge.__dataclass_fields__) :]


@dataclass(frozen=True, slots=True)
class ProbedEdge(StatementEdge):
    """PROBED: a statement (a predicate and object) with a group before it, under one model.

    Log-likelihoods are natural: of the probe "group statement", of the statement's tokens in it,
    and of the group alone, each with its number of tokens. `rank` is the group's among those of its
    category; 1 is the group that the model finds most probable before the statement. `pieces` are
    the scored tokens of the probe as text, `bits` their surprisals, -log2 p(token | ...), >= 0.

    `lift` is in bits how much likelier the statement is of this group than of the others of its
    category, beyond the group's base rate (`kgbias.probe.contrast`). `similarity` is the cosine, -1
    to 1, of the group and the statement in a model's vectors, and `association` the same against
    the other groups, in standard deviations (`kgbias.evidence.association`). Each is None where it
    was not computed.
    """

    log_likelihood: float
    tokens: int
    statement_log_likelihood: float
    statement_tokens: int
    group_log_likelihood: float
    group_tokens: int
    rank: int
    pieces: tuple[str, ...] = ()
    bits: tuple[float, ...] = ()
    lift: float | None = None
    similarity: float | None = None
    association: float | None = None


@dataclass(frozen=True, slots=True)
class Probing:
    """A run's probes under one model with one set of scoring conventions (`settings`: dtype, what
    precedes a text ...); `record` holds the result. The id follows from model and settings."""

    model: ModelInfo
    settings: Settings = ()
    record: Mapping[str, Any] = field(default_factory=dict)

    @property
    def id(self) -> str:
        return self.model.asked(self.settings)
