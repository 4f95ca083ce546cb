"""Character profiles as triples: name -> group, attribute -> predicate, value -> object.

The layout is that of GlobalBias (Siddique et al. 2024): a row is one character that a model
invented for a given name, a column is an attribute, and a cell is a value or a tuple of values.
"""

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

from kgbias.errors import DataError
from kgbias.graph.types import Triple
from kgbias.ingest.records import Record, need_columns, read_records
from kgbias.ingest.tables import Statement

# Columns of the layout that describe the name or the request, not the character.
NOT_ATTRIBUTES = frozenset(("", "run_id", "Ethnicity", "Gender", "Group"))


@dataclass(frozen=True, slots=True)
class ProfileColumns:
    """How profiles are read. `group` is the column of the group; `attributes` are the columns to
    read (none: all but the group and NOT_ATTRIBUTES); `said_as` maps an attribute to its predicate
    (by default its name with spaces for underscores); `category` is the column of the group's
    category, if there is one."""

    group: str = "name"
    attributes: tuple[str, ...] = ()
    said_as: Mapping[str, str] = field(default_factory=dict)
    category: str | None = None


def read_profiles(path: Path, format: str, columns: ProfileColumns) -> Iterator[Statement | None]:
    """One statement for each value of each attribute; None for a row without a group.

    Raises DataError if the file cannot be read or a column is missing."""
    rows = read_records(path, format)
    first = next(rows, None)
    if first is None:
        raise DataError(f"{path} holds no rows")
    there = list(first.cells)
    need_columns(path, there, {"group": columns.group})
    for attribute in (*columns.attributes, *columns.said_as):
        need_columns(path, there, {"attribute": attribute})
    if columns.category:
        need_columns(path, there, {"category": columns.category})
    attributes = columns.attributes or tuple(
        name for name in there if name != columns.group and name not in NOT_ATTRIBUTES
    )
    for row in chain([first], rows):
        group = _group_name(row.text(columns.group))
        category = row.text(columns.category) or None if columns.category else None
        if not group:
            yield None
            continue
        for attribute in attributes:
            predicate = columns.said_as.get(attribute) or _words(attribute)
            for value in _values(row, attribute):
                yield Statement(Triple(group, predicate, value), 1, category)


def _group_name(text: str) -> str:
    """The group as text: "('ITALIAN', 'F')" becomes "ITALIAN F"."""
    return " ".join(_parts(text))


def _values(row: Record, attribute: str) -> list[str]:
    """The values of a cell: a list or a tuple's text holds several."""
    value = row.cells.get(attribute)
    if isinstance(value, list):
        return [text for text in (" ".join(str(v).split()) for v in value) if text]
    return _parts(row.text(attribute))


def _parts(text: str) -> list[str]:
    if text[:1] in "([" and text[-1:] in ")]" and len(text) < 20_000:
        try:
            found = ast.literal_eval(text)
        except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
            found = text
        if isinstance(found, (tuple, list)):
            return [part for part in (" ".join(str(p).split()) for p in found) if part]
    return [text] if text else []


def _words(attribute: str) -> str:
    return " ".join(attribute.replace("_", " ").replace(".", " ").split())
