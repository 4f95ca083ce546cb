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
from kgbias.ingest.statement_table import (
    ImportedStatement,
    ProfileCharacter,
    TableRecord,
    read_plain_group,
    read_records,
    report_columns,
    require_columns,
)
from kgbias.io.tables import TableFormat, parse_literal

_LABEL_COLUMNS = {"group": "Group", "ethnicity": "Ethnicity", "gender": "Gender"}
_NAME_COLUMNS = ("name", "firstname", "first_name", "given_name")
# Columns that describe the name, the row or the request rather than the character.
_NOT_ATTRIBUTES = re.compile(
    r"|unnamed: .*|index|level_\d+|id|run|run_id|cluster|ethnicity probability|race|sex"
    r"|prompts?|requests?|questions?|instructions?|messages?|model|seed|temperature"
    rf"|{'|'.join((*_LABEL_COLUMNS, *_NAME_COLUMNS))}",
    re.IGNORECASE,
)
PROFILE_TABLE = TableFormat(
    "profiles: `import --format profiles`",
    (("name",),),
    tuple(_LABEL_COLUMNS.values()),
    "a column for each attribute; `--group` names another column than `name`",
)
_MAX_LITERAL_CHARACTERS = 20_000  # characters; a longer cell is read as plain text


@dataclass(frozen=True, slots=True)
class ProfileColumns:
    """How profiles are read. `group` is the column of the group; `attributes` are the columns to
    read (empty: all that describe the character); `predicates` maps an attribute to its predicate
    (by default its name with spaces for underscores); `category` is the column of the group's
    category, if any."""

    group: str = "name"
    attributes: tuple[str, ...] = ()
    predicates: Mapping[str, str] = field(default_factory=dict)
    category: str | None = None


def read_profiles(
    path: Path,
    format: str,
    columns: ProfileColumns,
    notify: Callable[[str], None] = lambda _: None,
) -> Iterator[ImportedStatement | None]:
    """One statement for each value of each attribute; None for a row without a group. `notify` is
    told which columns are read.

    Raises DataError if the file cannot be read or a column is missing."""
    rows = read_records(path, format, (columns.group,))
    first_row = next(rows, None)
    if first_row is None:
        raise DataError(f"{path} has no rows")
    columns_found = list(first_row.cells)
    require_columns(path, columns_found, {"group": columns.group})
    for attribute in (*columns.attributes, *columns.predicates):
        require_columns(path, columns_found, {"attribute": attribute})
    if columns.category:
        require_columns(path, columns_found, {"category": columns.category})
    attributes = columns.attributes or tuple(
        name
        for name in columns_found
        if name != columns.group and not _NOT_ATTRIBUTES.fullmatch(name)
    )
    label_names = {*_NAME_COLUMNS, *map(str.casefold, _LABEL_COLUMNS.values())}
    labels = [name for name in columns_found if name.casefold() in label_names]
    used_columns = [
        columns.group,
        *labels,
        *attributes,
        *([columns.category] if columns.category else []),
    ]
    report_columns(path, columns_found, list(dict.fromkeys(used_columns)), notify)
    column_by_key = {name.casefold(): name for name in reversed(columns_found)}
    for number, row in enumerate(chain([first_row], rows)):
        group = read_plain_group(_format_label(row.cell_text(columns.group)))
        category = row.cell_text(columns.category) or None if columns.category else None
        if not group:
            yield None
            continue
        character = _make_character(number, row, column_by_key, group)
        for attribute in attributes:
            for key, values in _iter_attributes(row.cells.get(attribute), attribute):
                predicate = columns.predicates.get(key) or _spell_attribute(key)
                for value in values:
                    triple = Triple(group, predicate, value)
                    yield ImportedStatement(
                        triple, 1, category, "none", character, _shorten_attribute(key)
                    )


def _make_character(
    number: int, row: TableRecord, column_by_key: Mapping[str, str], group: str
) -> ProfileCharacter:
    """Whose profile a row is. The group's label may hold its ethnicity and gender: "('ITALIAN',
    'F')"."""
    name_columns = [column_by_key[key] for key in _NAME_COLUMNS if key in column_by_key]
    name = row.cell_text(name_columns[0]) if name_columns else ""
    labels = {
        kind: _format_label(row.cell_text(column_by_key[column.casefold()]))
        for kind, column in _LABEL_COLUMNS.items()
        if column.casefold() in column_by_key
    }
    label_values: list[str] = []
    if "group" in column_by_key:
        label_values = _parse_values(row.cell_text(column_by_key["group"]))
    if len(label_values) == 2:
        labels = {"ethnicity": label_values[0], "gender": label_values[1], **labels}
    if labels.get("ethnicity") and labels.get("gender"):
        labels.setdefault("group", f"{labels['ethnicity']} {labels['gender']}")
    return ProfileCharacter(
        number, name or group, {kind: label for kind, label in labels.items() if label}
    )


def _format_label(text: str) -> str:
    """A label as text: "('ITALIAN', 'F')" gives "ITALIAN F"."""
    return " ".join(_parse_values(text))


def _iter_attributes(value: Any, attribute: str) -> Iterator[tuple[str, Sequence[str]]]:
    """The attributes of a cell with their values: its column's, or those of a dictionary."""
    if isinstance(value, str) and value.strip()[:1] == "{":
        value = _parse_literal(value.strip())
    if isinstance(value, dict):
        for key, nested in value.items():
            yield f"{attribute}.{key}", _parse_values(nested)
    else:
        yield attribute, _parse_values(value)


def _parse_values(value: Any) -> list[str]:
    """The values of a cell; a list, or the text of a list or tuple, has several."""
    if isinstance(value, str):
        value = " ".join(value.split())
        value = _parse_literal(value) if value[:1] in "([" and value[-1:] in ")]" else value
    items = value if isinstance(value, (list, tuple)) else [value]
    texts = [
        " ".join(str(item).split())
        for item in items
        if item is not None and not isinstance(item, dict)
    ]
    return [text for text in texts if text and text.casefold() != "nan"]


def _parse_literal(text: str) -> Any:
    """The value of a text written by Python or JSON, or by someone who forgot to escape a quote;
    any other text as it is."""
    value = parse_literal(text)
    is_unparsed = (
        isinstance(value, str) and text[:1] in ("(", "[") and len(text) <= _MAX_LITERAL_CHARACTERS
    )
    if is_unparsed and any(quote in text for quote in "'\""):
        return [part.strip(" '\"") for part in text[1:-1].split(",")]
    return value


def _shorten_attribute(attribute: str) -> str:
    """An attribute as tables name it: "physical_characteristics.height" gives "height"."""
    return attribute.rpartition(".")[2] or attribute


def _spell_attribute(attribute: str) -> str:
    return " ".join(attribute.replace("_", " ").replace(".", " ").split())
