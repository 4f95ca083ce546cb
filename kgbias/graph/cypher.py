"""Cypher on any store: what a query returns, in one form for both engines.

A node becomes a dict of its label (`:label`) and properties, an edge of its type (`:type`) and
properties, a path the list of its nodes and edges in turn. So the same query prints the same rows
whether Neo4j answered or the embedded engine did.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Value = Any  # None, bool, int, float, str, or lists and dicts of these


@dataclass(frozen=True, slots=True)
class QueryResult:
    """The rows of a query, in its order, under the names of its columns."""

    columns: tuple[str, ...]
    rows: list[tuple[Value, ...]]

    def records(self) -> list[dict[str, Value]]:
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]


def node(labels: Sequence[str], properties: Mapping[str, Value]) -> dict[str, Value]:
    return {":label": ":".join(sorted(labels)), **dict(sorted(properties.items()))}


def edge(kind: str, properties: Mapping[str, Value]) -> dict[str, Value]:
    return {":type": kind, **dict(sorted(properties.items()))}


def path(nodes: Sequence[Value], edges: Sequence[Value]) -> list[Value]:
    """The nodes and edges of a path in turn, beginning and ending with a node."""
    turns: list[Value] = [nodes[0]]
    for step, end in zip(edges, nodes[1:], strict=True):
        turns += [step, end]
    return turns
