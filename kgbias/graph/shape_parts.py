"""What the table of `kgbias.graph.shape` is made of: properties, nodes and edges."""

from dataclasses import dataclass
from typing import Literal

Type = Literal["text", "integer", "number", "boolean", "texts", "numbers"]


@dataclass(frozen=True, slots=True)
class Property:
    """A property of a node or an edge. One without a value is absent, never NaN."""

    name: str
    type: Type
    meaning: str


@dataclass(frozen=True, slots=True)
class Node:
    """A label. `key` is the property that identifies a node, `title` the one that people read."""

    label: str
    meaning: str
    key: str
    title: str
    properties: tuple[Property, ...]


@dataclass(frozen=True, slots=True)
class Edge:
    """An edge type, with the pairs of labels that it connects."""

    type: str
    meaning: str
    ends: tuple[tuple[str, str], ...]
    properties: tuple[Property, ...] = ()


def text(**meanings: str) -> tuple[Property, ...]:
    return tuple(Property(name, "text", meaning) for name, meaning in meanings.items())


def integer(**meanings: str) -> tuple[Property, ...]:
    return tuple(Property(name, "integer", meaning) for name, meaning in meanings.items())


def number(**meanings: str) -> tuple[Property, ...]:
    return tuple(Property(name, "number", meaning) for name, meaning in meanings.items())


def boolean(**meanings: str) -> tuple[Property, ...]:
    return tuple(Property(name, "boolean", meaning) for name, meaning in meanings.items())


def texts(**meanings: str) -> tuple[Property, ...]:
    return tuple(Property(name, "texts", meaning) for name, meaning in meanings.items())


def numbers(**meanings: str) -> tuple[Property, ...]:
    return tuple(Property(name, "numbers", meaning) for name, meaning in meanings.items())
