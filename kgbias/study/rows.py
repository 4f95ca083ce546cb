"""Rows of results: a sequence that prints as a table and converts to a data frame."""

import html
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, Generic, TypeVar, overload

from kgbias.errors import MissingExtra
from kgbias.io.text import printable, shortened

T = TypeVar("T")

Record = Mapping[str, Any]

_SHOWN = 10  # rows of a printed table
_WIDEST = 60  # characters of a cell in it


class Rows(Sequence[T], Generic[T]):
    """An immutable sequence of results of one kind, in a fixed order.

    Iterate, index or slice it for the typed rows; `to_frame` gives a pandas DataFrame with one row
    each, `records` the same as plain dicts. A notebook shows its first rows.
    """

    __slots__ = ("_columns", "_items", "_record", "_summary")

    def __init__(
        self,
        items: Iterable[T],
        record: Callable[[T], Record] | None = None,
        columns: Iterable[str] | None = None,
        summary: Callable[[T], Record] | None = None,
    ) -> None:
        """`record` gives a row's cells by column (default: a dataclass's fields, or the mapping
        itself); `columns` are their names, needed if there may be no rows. `summary` gives the
        cells that are printed where a row has too many columns to read."""
        self._items: tuple[T, ...] = tuple(items)
        self._record = record or _fields
        if columns is None:
            columns = self._record(self._items[0]) if self._items else ()
        self._columns = tuple(columns)
        self._summary = summary

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return self._columns

    def records(self) -> list[dict[str, Any]]:
        """Each row as a dict by column."""
        return list(self._records(self._items))

    def to_frame(self) -> Any:
        """A pandas DataFrame with one row for each item, columns as in `columns`.

        Missing numbers are NaN. Raises MissingExtra if pandas is not installed.
        """
        try:
            import pandas
        except ModuleNotFoundError as error:
            raise MissingExtra("pandas", extra="frames") from error
        return pandas.DataFrame(self.records(), columns=list(self._columns))

    def _records(self, items: Iterable[T]) -> Iterator[dict[str, Any]]:
        for item in items:
            cells = self._record(item)
            yield {name: cells[name] for name in self._columns}

    @overload
    def __getitem__(self, index: int) -> T: ...

    @overload
    def __getitem__(self, index: slice) -> "Rows[T]": ...

    def __getitem__(self, index: int | slice) -> "T | Rows[T]":
        if isinstance(index, slice):
            return Rows(self._items[index], self._record, self._columns, self._summary)
        return self._items[index]

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[T]:
        return iter(self._items)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Rows) and self._items == other._items

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        names, rows = self._printed()
        cells = [names, *([_cell(v) for v in row.values()] for row in rows)]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        lines = [
            "  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip()
            for row in cells
        ]
        return "\n".join([*lines, self._more()]).strip()

    def _repr_html_(self) -> str:
        names, rows = self._printed()
        head = "".join(f"<th>{html.escape(name)}</th>" for name in names)
        body = "".join("<tr>" + "".join(map(_html_cell, row.values())) + "</tr>" for row in rows)
        return (
            f'<div style="overflow-x: auto"><table><thead><tr>{head}</tr></thead>'
            f"<tbody>{body}</tbody></table></div><p>{self._more()}</p>"
        )

    def _printed(self) -> tuple[list[str], list[Record]]:
        """The columns and the first rows as they are printed."""
        first = self._items[:_SHOWN]
        if self._summary is None or not first:
            return list(self._columns), list(self._records(first))
        rows = [self._summary(item) for item in first]
        return list(rows[0]), rows

    def _more(self) -> str:
        count = f"{len(self)} row{'' if len(self) == 1 else 's'}"
        count = count if len(self) <= _SHOWN else f"the first {_SHOWN} of {count}"
        if self._summary is None or not self._items:
            return count
        return f"{count}, in short; to_frame() has all {len(self._columns)} columns"


def _fields(item: Any) -> Record:
    if isinstance(item, Mapping):
        return item
    if is_dataclass(item):
        return {field.name: getattr(item, field.name) for field in fields(item)}
    raise TypeError(f"{type(item).__name__} has no columns")


def _html_cell(value: Any) -> str:
    """A cell of a notebook's table: numbers on the right, text on the left."""
    side = "right" if isinstance(value, int | float) else "left"
    return f'<td style="text-align: {side}">{html.escape(_cell(value))}</td>'


def _cell(value: Any) -> str:
    """A value for people to read: one line, without terminal control characters."""
    if value is None or value != value:
        return ""
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, tuple | list):
        value = ", ".join(str(part) for part in value)
    return shortened(printable(" ".join(str(value).split())), _WIDEST)
