"""Character profiles as triples: name -> group, attribute -> predicate, value -> object.

The layout is that of GlobalBias (Siddique et al. 2024): a row is a character that a model invented
for a given name, a column is an attribute, and a cell is a value, several values (a tuple or list
as Python or JSON writes it), or a dictionary of further attributes.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

from kgbias.errors import DataError
from kgbias.graph.types import Triple
from kgbias.ingest.tables import (
    Character,
    Record,
    Statement,
    need_columns,
    read_records,
    tell_columns,
)
from kgbias.io.tables import parse_literal

_LABELS = {"group": "Group", "ethnicity": "Ethnicity", "gender": "Gender"}
_NAMES = ("name", "firstname", "first_name", "given_name")
# Columns that describe the name, the row or the request rather than the character.
_NOT_ATTRIBUTES = re.compile(
    r"|unnamed: .*|index|level_\d+|id|run|run_id|cluster|ethnicity probability|race|sex"
    r"|prompts?|requests?|questions?|instructions?|messages?|model|seed|temperature"
    rf"|{'|'.join((*_LABELS, *_NAMES))}",
    re.IGNORECASE,
)
_LONGEST = 20_000  # characters; a longer cell is read as plain text


@dataclass(frozen=True, slots=True)
class ProfileColumns:
    """How profiles are read. `group` is the column of the group; `attributes` are the columns to
    read (empty: all that describe the character); `said_as` maps an attribute to its predicate (by
    default its name with spaces for underscores); `category` is the column of the group's category,
    if any."""

    group: str = "name"
    attributes: tuple[str, ...] = ()
    said_as: Mapping[str, str] = field(default_factory=dict)
    category: str | None = None


def read_profiles(
    path: Path,
    format: str,
    columns: ProfileColumns,
    notify: Callable[[str], None] = lambda _: None,
) -> Iterator[Statement | None]:
    """One statement for each value of each attribute; None for a row without a group. `notify` is
    told which columns are read.

    Raises DataError if the file cannot be read or a column is missing."""
    rows = read_records(path, format, (columns.group,))
    first = next(rows, None)
    if first is None:
        raise DataError(f"{path} has no rows")
    there = list(first.cells)
    need_columns(path, there, {"group": columns.group})
    for attribute in (*columns.attributes, *columns.said_as):
        need_columns(path, there, {"attribute": attribute})
    if columns.category:
        need_columns(path, there, {"category": columns.category})
    attributes = columns.attributes or tuple(
        name for name in there if name != columns.group and not _NOT_ATTRIBUTES.fullmatch(name)
    )
    of_whom = {*_NAMES, *map(str.casefold, _LABELS.values())}
    labels = [name for name in there if name.casefold() in of_whom]
    taken = [columns.group, *labels, *attributes, *([columns.category] if columns.category else [])]
    tell_columns(path, there, list(dict.fromkeys(taken)), notify)
    named = {name.casefold(): name for name in reversed(there)}
    for number, row in enumerate(chain([first], rows)):
        group = _as_label(row.text(columns.group))
        category = row.text(columns.category) or None if columns.category else None
        if not group:
            yield None
            continue
        character = _character(number, row, named, group)
        for attribute in attributes:
            for key, values in _cell(row.cells.get(attribute), attribute):
                predicate = columns.said_as.get(key) or _words(key)
                for value in values:
                    triple = Triple(group, predicate, value)
                    yield Statement(triple, 1, category, "none", character, _short(key))


def _character(number: int, row: Record, named: Mapping[str, str], group: str) -> Character:
    """Whose profile a row is. The group's label may hold its ethnicity and gender: "('ITALIAN',
    'F')"."""
    name = next((row.text(named[n]) for n in _NAMES if n in named), "") or group
    labels = {
        kind: _as_label(row.text(named[column.casefold()]))
        for kind, column in _LABELS.items()
        if column.casefold() in named
    }
    parts = _values(row.text(named["group"])) if "group" in named else []
    if len(parts) == 2:
        labels = {"ethnicity": parts[0], "gender": parts[1], **labels}
    if labels.get("ethnicity") and labels.get("gender"):
        labels.setdefault("group", f"{labels['ethnicity']} {labels['gender']}")
    return Character(number, name, {kind: label for kind, label in labels.items() if label})


def _as_label(text: str) -> str:
    """A label as text: "('ITALIAN', 'F')" gives "ITALIAN F"."""
    return " ".join(_values(text))


def _cell(value: Any, attribute: str) -> Iterator[tuple[str, Sequence[str]]]:
    """The attributes of a cell with their values: its column's, or those of a dictionary."""
    if isinstance(value, str) and value.strip()[:1] == "{":
        value = _literal(value.strip())
    if isinstance(value, dict):
        for key, inner in value.items():
            yield f"{attribute}.{key}", _values(inner)
    else:
        yield attribute, _values(value)


def _values(value: Any) -> list[str]:
    """The values of a cell; a list, or the text of a list or tuple, has several."""
    if isinstance(value, str):
        value = " ".join(value.split())
        value = _literal(value) if value[:1] in "([" and value[-1:] in ")]" else value
    items = value if isinstance(value, (list, tuple)) else [value]
    texts = [" ".join(str(v).split()) for v in items if v is not None and not isinstance(v, dict)]
    return [text for text in texts if text and text.casefold() != "nan"]


def _literal(text: str) -> Any:
    """The value of a text written by Python or JSON, or by someone who forgot to escape a quote;
    any other text as it is."""
    value = parse_literal(text)
    unread = isinstance(value, str) and text[:1] in ("(", "[") and len(text) <= _LONGEST
    if unread and any(quote in text for quote in "'\""):
        return [part.strip(" '\"") for part in text[1:-1].split(",")]
    return value


def _short(attribute: str) -> str:
    """An attribute as tables name it: "physical_characteristics.height" gives "height"."""
    return attribute.rpartition(".")[2] or attribute


def _words(attribute: str) -> str:
    return " ".join(attribute.replace("_", " ").replace(".", " ").split())
