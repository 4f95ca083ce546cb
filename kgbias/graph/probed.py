"""What was probed: statements with groups before them, under a model."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kgbias.ids import content_id
from kgbias.models.base import ModelInfo, Settings


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


@dataclass(frozen=True, slots=True)
class Flag:
    """FLAGGED: a group that a descriptor is tied to. Its bias score, 0 to 1, lies `z` standard
    deviations from the descriptor's mean over groups; more negative is more strongly tied. `axis`
    is the descriptor's, "" for none."""

    group: str
    descriptor: str
    axis: str
    bias_score: float
    z: float


@dataclass(frozen=True, slots=True)
class Flagged:
    """The flags of one table of APX. The id follows from the model, how it was asked, the names and
    the descriptors. `model` is the model's name, or the file of a table from elsewhere, which has
    no revision; `level` is that of the test, `groups` how many were compared."""

    id: str
    model: str
    revision: str
    settings: Settings
    level: float
    groups: int
    flags: tuple[Flag, ...]


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
    category, beyond the group's base rate (`kgbias.probe.graph`). `similarity` is the cosine, -1
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


CHOSEN_PROPERTIES = properties_of(ChosenEdge)


@dataclass(frozen=True, slots=True)
class Choosing(Probing):
    """A run's forced choices by one model. `settings` are also those of the questions: how many
    options and answers, by which template, at which temperature, drawn by which seed."""
