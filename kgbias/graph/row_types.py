"""What was said, as stores read it: the order of triples, answers with their examples, and the
narrow rows in which a graph of millions of statements is read, one at a time."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from kgbias.graph.types import TripleView


def triple_sort_key(places: Mapping[str, int]) -> Callable[[TripleView], tuple[Any, ...]]:
    """The sort key for the order of triples in stores: by the place of the group, then by text,
    then by arm."""
    last_place = len(places)
    return lambda t: (
        places.get(t.group_id, last_place),
        t.group,
        t.predicate,
        t.object,
        t.id,
        t.arm,
    )


@dataclass(frozen=True, slots=True)
class ExampleRow:
    """A generation that yielded a triple and had examples: the triple in the words it was said in,
    and the predicate and object of each example, in the order of the prompt."""

    generation_id: str
    triple_id: str
    arm: str
    attempt: int
    count: int
    predicate: str
    object: str
    examples: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class DrawRow:
    """A generation as a draw from the model: its place, what was asked, and what it yielded
    (`triple_id` and `predicate_id` are None if nothing)."""

    generation_id: str
    path: str
    group_id: str
    arm: str
    strategy: str
    iteration: int
    attempt: int
    template: str
    prompt: str
    triple_id: str | None
    predicate_id: str | None
    count: int


class StatementRow(NamedTuple):
    """A triple that a run said, with its nodes and their texts."""

    triple_id: str
    group_id: str
    predicate_id: str
    object_id: str
    group: str
    predicate: str
    object: str


class YieldRow(NamedTuple):
    """A generation that yielded a triple, without texts; `times` is how often it said the
    triple."""

    generation_id: str
    triple_id: str
    arm: str
    strategy: str
    iteration: int
    times: int


class ScoreRow(NamedTuple):
    """A triple's score by the run's current metric for a measure."""

    measure: str
    triple_id: str
    value: float
    label: str


class CompactedSizes(NamedTuple):
    """The sizes of a store before and after, in bytes."""

    before: int
    after: int
