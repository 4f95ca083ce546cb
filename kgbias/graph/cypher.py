"""Cypher on any store: what a query returns, in one form for both engines.

A node becomes a dict of its label (`:label`) and properties, an edge of its type (`:type`) and
properties, a path the list of its nodes and edges in turn. So the same query prints the same rows
whether Neo4j answered or the embedded engine did.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kgbias.errors import UsageError

Value = Any  # None, bool, int, float, str, or lists and dicts of these


# What a query's text is made of, first match first: comments, strings, names in backticks.
_COMMENT = r"//[^\n]*|/\*.*?(?:\*/|\Z)"
_QUOTED = r"'(?:[^'\\]|\\.)*(?:'|\Z)|\"(?:[^\"\\]|\\.)*(?:\"|\Z)|`[^`]*(?:`|\Z)"
_ASIDE = re.compile(f"(?P<comment>{_COMMENT})|(?P<quoted>{_QUOTED})", re.DOTALL)
_ESCAPE = re.compile(r"\\u([0-9a-fA-F]{4})")
_LIMIT = re.compile(
    rf"{_COMMENT}|{_QUOTED}|\bLIMIT\s+(?:\$(\w+)|toInteger\s*\(\s*\$(\w+)\s*\))",
    re.DOTALL | re.IGNORECASE,
)
_OUTSIDE = re.compile(r"\bLOAD\s+CSV\b|\bapoc\s*\.", re.IGNORECASE)


def only_the_graph(text: str) -> None:
    """Raise UsageError for a query that reads more than the graph: LOAD CSV, which opens files and
    URLs, and APOC, whose procedures do. Neither engine's read-only mode refuses them."""
    text = _ESCAPE.sub(lambda m: chr(int(m[1], 16)), text)  # a server reads these anywhere
    plain = _ASIDE.sub(_plain, text)
    if found := _OUTSIDE.search(plain):
        what = " ".join(found[0].split()).rstrip(" .").upper()
        raise UsageError(f"a query reads the graph alone: {what} may not open files or URLs here")


def _plain(found: re.Match[str]) -> str:
    """What stands for a part of a query that is no clause; APOC in backticks is still called."""
    if found["comment"]:
        return " "
    return "apoc" if found[0].lower() == "`apoc`" else " x "


def with_limits(text: str, parameters: Mapping[str, Value]) -> str:
    """The query with the whole number in place of the parameter wherever a LIMIT is one. The
    embedded engine keeps only the first rows while it sorts, instead of all, where it can read in
    the text how many they are: five to ten times as fast on a million."""

    def written(found: re.Match[str]) -> str:
        value = parameters.get(found[1] or found[2] or "")
        return f"LIMIT {value}" if type(value) is int and 0 <= value < 2**63 else found[0]

    return _LIMIT.sub(written, text)


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
