"""Triples from a table: one statement per row, columns by name."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from kgbias.errors import DataError
from kgbias.graph.types import Triple
from kgbias.ingest.records import Record, need_columns, read_records


@dataclass(frozen=True, slots=True)
class Columns:
    """Which column holds what. `category`, `count` and `arm` may be missing from the file unless
    they are named here."""

    group: str = "group"
    predicate: str = "predicate"
    object: str = "object"
    category: str | None = None
    count: str | None = None
    arm: str | None = None


@dataclass(frozen=True, slots=True)
class Character:
    """The profile that a statement is part of: the number of its row, the given name it was written
    for, and what the name stands for (group, ethnicity, gender)."""

    row: int
    name: str
    labels: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Statement:
    """A triple as the file gives it, how often it was said, the category of its group (None if the
    file does not say), and the arm that it comes from; of a profile, whose it is and under which
    attribute."""

    triple: Triple
    count: int = 1
    category: str | None = None
    arm: str = "none"
    character: Character | None = None
    attribute: str = ""


def read_triples(path: Path, format: str, columns: Columns) -> Iterator[Statement | None]:
    """One statement per row, None for a row without a group, predicate or object.

    Raises DataError if the file cannot be read, a column is missing or a count is not a number."""
    rows = read_records(path, format)
    first = next(rows, None)
    if first is None:
        raise DataError(f"{path} holds no rows")
    there = list(first.cells)
    wanted = {"group": columns.group, "predicate": columns.predicate, "object": columns.object}
    optional = {"category": columns.category, "count": columns.count, "arm": columns.arm}
    need_columns(path, there, wanted | {k: v for k, v in optional.items() if v is not None})
    category = columns.category or ("category" if "category" in there else None)
    count = columns.count or ("count" if "count" in there else None)
    arm = columns.arm or ("arm" if "arm" in there else None)
    for row in chain([first], rows):
        triple = Triple(
            row.text(columns.group), row.text(columns.predicate), row.text(columns.object)
        )
        if not (triple.group and triple.predicate and triple.object):
            yield None
            continue
        yield Statement(
            triple,
            1 if count is None else _count(path, row, count),
            (row.text(category) or None) if category else None,
            (row.text(arm) or "none") if arm else "none",
        )


def _count(path: Path, row: Record, column: str) -> int:
    text = row.text(column) or "1"
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not (1 <= number < 2**53 and number == int(number)):
        raise DataError(
            f"{path}, line {row.line}: count {text[:40]!r} is not a whole number of at least 1"
        )
    return int(number)
