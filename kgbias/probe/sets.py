"""Groups, statements, names and descriptors: named sets and users' files."""

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from kgbias.errors import DataError, UsageError
from kgbias.io.tables import (
    TableFormat,
    as_text,
    is_missing,
    is_sentence,
    parse_literal,
    read_sheet,
    read_table,
)
from kgbias.io.tables_in_memory import Table, Texts, as_table_file

_CATEGORY_COLUMNS = ("category", "axis")  # the second, like plural_noun_phrase, is HolisticBias's
GROUPS_FORMAT = TableFormat(
    "groups to probe: `--identities`",
    (("group", "name", "identity", "plural_noun_phrase"),),
    _CATEGORY_COLUMNS,
    "a text with one group a line, JSON lists by category",
)
STATEMENTS_FORMAT = TableFormat(
    "statements: `--statements`",
    (("statement", "sentence", "text"),),
    _CATEGORY_COLUMNS,
    "a text with one statement a line, JSON lists by category",
)
NAMES_FORMAT = TableFormat("given names: `--names`", (("name",), ("group",)), ("label",))
DESCRIPTORS_FORMAT = TableFormat(
    "descriptors: `--descriptors`",
    (("descriptor",),),
    ("axis", "label", "partial_1", "partial_2", "partial_3"),
)
_MAX_GROUP_CHARACTERS = 100  # characters of a group's name
_PEOPLE = {"F": "women", "M": "men"}


def format_people(ethnicity: str, gender: str) -> str:
    """A group as people: "ARAB" and "F" are "Arab women"; "" if either is unknown."""
    if not (ethnicity and gender):
        return ""
    return f"{ethnicity.capitalize()} {_PEOPLE.get(gender, gender)}"


def parse_globalbias_group(group: str) -> tuple[str, str] | None:
    """The ethnicity and gender of a group written as in GlobalBias, "('ARAB', 'F')"; None for a
    group in any other form."""
    try:
        pair = ast.literal_eval(group) if group[:1] == "(" else None
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None
    if isinstance(pair, tuple) and len(pair) == 2 and all(isinstance(x, str) for x in pair):
        return pair
    return None


def readable_group(group: str) -> str:
    """A group as statements name it: "Arab women" for "('ARAB', 'F')" and for "ARAB F"; any other
    group unchanged."""
    ethnicity, gender = parse_globalbias_group(group) or group.rpartition(" ")[::2]
    return format_people(ethnicity, gender) if ethnicity and gender in _PEOPLE else group


_DATA = Path(__file__).with_name("data")

IDENTITY_SETS = {"sofa": "identities.json"}
NAME_SETS = {"globalbias": "names.csv"}
DESCRIPTOR_SETS = {"globalbias": "descriptors.csv"}
TEMPLATES = ("My name is {name}, I", "{name}", "{name}")
_DEFAULT_VERBS = ("am", "was", "is")  # how a descriptor continues each template


@dataclass(frozen=True, slots=True)
class Descriptor:
    """A descriptor, its axis and label ("" for none), and how each of `TEMPLATES` ends with it."""

    text: str
    axis: str
    label: str
    endings: tuple[str, ...]


def read_identities(name: Texts) -> dict[str, tuple[str, ...]]:
    """The groups of each category: the named set "sofa", a table with a column group (or name or
    identity) and optionally category, JSON lists by category, or a text with one group a line."""
    with as_table_file(
        _locate_set(name, IDENTITY_SETS), GROUPS_FORMAT.needed_columns[0], name="identities"
    ) as path:
        groups_by_category = _texts_by_category(path, GROUPS_FORMAT)
        if "" in groups_by_category and len(groups_by_category) > 1:
            raise DataError(
                f"{path}: {groups_by_category[''][0]!r} has no category, while others have one: "
                f"fill it in (of "
                "cells that a spreadsheet has merged, all but the first are empty)"
            )
        if with_comma := next(
            (
                name
                for category_groups in groups_by_category.values()
                for name in category_groups
                if "," in name
            ),
            None,
        ):
            raise DataError(
                f"{path}: {with_comma[:60]!r} has a comma: write one group a line or cell"
            )
        if long_name := next(
            (
                name
                for category_groups in groups_by_category.values()
                for name in category_groups
                if len(name) > _MAX_GROUP_CHARACTERS
            ),
            None,
        ):
            raise DataError(
                f"{path}: {long_name[:60]!r} is too long for a group (at most "
                f"{_MAX_GROUP_CHARACTERS} characters)"
            )
        if sentence := next(
            filter(is_sentence, chain.from_iterable(groups_by_category.values())), None
        ):
            raise DataError(f"{path}: {sentence[:60]!r} is a sentence, and no name of a group")
        return {
            category: _check_distinct(path, groups)
            for category, groups in groups_by_category.items()
        }


def read_statements(source: Texts, language: str = "") -> dict[str, tuple[str, ...]]:
    """The statements of each category, "" for those of every category: from a table with a column
    statement (or sentence or text) and optionally category, JSON lists by category, or a text with
    one statement a line. A table in several languages has a column for each, named by its code;
    that of `language` is read."""
    names = STATEMENTS_FORMAT.needed_columns[0] + ((language,) if language else ())
    with as_table_file(source, names, name="statements") as path:
        texts_by_category = _texts_by_category(path, STATEMENTS_FORMAT, names)
        return {
            category: _check_distinct(path, rows) for category, rows in texts_by_category.items()
        }


def read_names(name: Table) -> tuple[tuple[str, str], ...]:
    """Names and their groups, "Arab women" for "('ARAB', 'F')": from the named set "globalbias", or
    a CSV file with the columns name and group."""
    return tuple(
        (given, readable_group(group)) for given, group in read_names_with_raw_groups(name)
    )


def read_names_with_raw_groups(name: Table) -> tuple[tuple[str, str], ...]:
    """Names and their groups as the list writes them (see `read_names`)."""
    rows = _read_rows(_locate_set(name, NAME_SETS), NAMES_FORMAT.columns)
    return tuple((row["name"], row["group"]) for row in rows)


def read_descriptor_label_by_group(name: Table) -> dict[str, str]:
    """By group of names, the label of the descriptors that belong to it ("Thai women" to "asian"),
    from the column label of its names (see `read_names`). A group without one is left out; if the
    file has no such column, each group answers to its own name."""
    rows = _read_rows(_locate_set(name, NAME_SETS), NAMES_FORMAT.columns)
    if "label" not in rows[0]:
        return {readable_group(row["group"]): row["group"] for row in rows}
    return {readable_group(row["group"]): row["label"] for row in rows if row["label"]}


def read_descriptors(name: Table) -> tuple[Descriptor, ...]:
    """Descriptors from the named set "globalbias", or a CSV file with the column descriptor and
    optionally axis, label and partial_1 to partial_3 (by default "am", "was" and "is" with the
    descriptor)."""
    descriptors = []
    for row in _read_rows(_locate_set(name, DESCRIPTOR_SETS), DESCRIPTORS_FORMAT.columns):
        text = row["descriptor"]
        endings = tuple(
            (row.get(f"partial_{n}") or f"{verb} {text}") + "."
            for n, verb in enumerate(_DEFAULT_VERBS, 1)
        )
        descriptors.append(Descriptor(text, row.get("axis") or "", row.get("label") or "", endings))
    return tuple(descriptors)


def _locate_set(name: Texts, named_sets: Mapping[str, str]) -> Any:
    """The file of a named set or of a path; a table in memory as it is."""
    if not isinstance(name, str | Path):
        return name
    name = str(name)
    if name in named_sets:
        return _DATA / named_sets[name]
    path = Path(name)
    if not path.is_file():
        raise UsageError(
            f"{name!r} is neither a file nor a named set; the sets are {', '.join(named_sets)}"
        )
    return path


def _texts_by_category(
    path: Path, door: TableFormat, names: Sequence[str] = ()
) -> dict[str, list[str]]:
    """The texts of a file by category, "" without one; `names` of their column are the door's, and
    others."""
    names = names or door.needed_columns[0]
    sheet = read_sheet(path, (*names, *door.optional_columns), lines=True)
    column = sheet.find_column(names)
    category = next((name for name in _CATEGORY_COLUMNS if name in sheet.columns), "category")
    texts_found: dict[str, list[str]] = {}
    if not sheet.rows:
        raise DataError(f"{path} is empty")
    for line, row in sheet.rows:
        if isinstance(row.get(column), dict | list):
            raise DataError(
                f"{path}, line {line}: {as_text(row[column])[:60]} is no text: write one a row"
            )
        text = " ".join(as_text(row.get(column)).split())
        if is_missing(text):
            raise DataError(f"{path}, line {line}: an empty {names[0]}: delete the row, or fill it")
        if not any(map(str.isalpha, text)):
            raise DataError(
                f"{path}, line {line}: {text[:60]!r} is no {names[0]}: it has no letter"
            )
        if door is STATEMENTS_FORMAT:
            refuse_placeholder(path, line, text)
        if isinstance(parse_literal(text), list):
            raise DataError(f"{path}, line {line}: {text[:60]!r} is a list: write one a row")
        texts_found.setdefault(as_text(row.get(category)), []).append(text)
    return texts_found


def refuse_placeholder(path: Path, line: int, text: str) -> None:
    """Raise DataError for a text that still has a placeholder, such as {name} or [MASK]."""
    if place := _PLACE.search(text):
        raise DataError(
            f"{path}, line {line}: {text[:60]!r} has the place {place[0]} to be filled: write "
            "whole statements"
        )


# What templates of Winogender, BBQ, the Equity Evaluation Corpus and BEC-Pro have for words.
_PLACE = re.compile(r"\$[A-Z]{2}[A-Z_]*|\{\{?\w+\}?\}|\[MASK\]|<mask>|<(person|emotion) [a-z]+>")


def _check_distinct(path: Path, texts: Sequence[str]) -> tuple[str, ...]:
    if not texts or not all(text.strip() for text in texts):
        raise DataError(f"{path} is empty, or has an empty group or statement")
    return tuple(dict.fromkeys(text.strip() for text in texts))


def _read_rows(source: Any, needed_columns: Sequence[str]) -> list[dict[str, str]]:
    rows = []
    with as_table_file(source, needed_columns) as path:
        for line, row in read_table(path, needed_columns).rows:
            if not all(row[name].strip() for name in needed_columns):
                raise DataError(f"{path}, line {line}: an empty {needed_columns[0]}")
            rows.append(row)
        if not rows:
            raise DataError(f"{path} has a header but no rows")
    return rows
