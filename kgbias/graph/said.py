"""What was said, as the stores read it: the order of triples, and answers beside their examples."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from kgbias.graph.types import TripleView


def in_order(places: Mapping[str, int]) -> Callable[[TripleView], tuple[Any, ...]]:
    """The key that puts triples in the order of stores: by the place of the group, then by text,
    and last by arm."""
    last = len(places)
    return lambda t: (
        places.get(t.group_id, last), t.group, t.predicate, t.object, t.id, t.arm
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Shown:
    """A generation that yielded a triple and had examples: the triple in the words in which it was
    said, and the predicate and object of each example, in the order of the prompt."""

    generation_id: str
    triple_id: str
    arm: str
    attempt: int
    count: int
    predicate: str
    object: str
    examples: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Drawn:
    """A generation as a draw from the model: where it stands, what was asked, and what it yielded
    (`triple_id` and `predicate_id` are None where nothing)."""

    generation_id: str
    path: str
    group_id: str
    arm: str
    strategy: str
    iteration: int
    template: str
    prompt: str
    triple_id: str | None
    predicate_id: str | None
    count: int
