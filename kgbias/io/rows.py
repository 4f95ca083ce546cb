"""Rows of results: a sequence that prints as a table and converts to a data frame; and results
that are more than rows, but show and convert themselves as they do."""

import html
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

from kgbias.errors import MissingExtra
from kgbias.io.text import printable, shorten

if TYPE_CHECKING:
    from pandas import DataFrame

T = TypeVar("T")

Cells = Mapping[str, Any]

_MAX_PRINTED_ROWS = 10  # rows of a printed table
_MAX_CELL_CHARACTERS = 60  # characters of a cell in it
_MAX_COLUMNS = 20  # of a table that is printed whole; of a wider one, the first few
_FIRST_COLUMNS = 10


class Rows(Sequence[T], Generic[T]):
    """An immutable sequence of results of one kind, in a fixed order.

    Iterate, index or slice it for the typed rows; `to_frame` gives a pandas DataFrame with one row
    each, `records` the same as plain dicts. A notebook shows its first rows.
    """

    __slots__ = ("_columns", "_items", "_make_record", "_make_summary")

    def __init__(
        self,
        items: Iterable[T],
        record: Callable[[T], Cells] | None = None,
        columns: Iterable[str] | None = None,
        summary: Callable[[T], Cells] | None = None,
    ) -> None:
        """`record` gives a row's cells by column (default: a dataclass's fields, or the mapping
        itself); `columns` are their names, needed if there may be no rows. `summary` gives the
        cells that are printed where a row has too many columns to read."""
        self._items: tuple[T, ...] = tuple(items)
        self._make_record = record or _default_record
        if columns is None:
            columns = self._make_record(self._items[0]) if self._items else ()
        self._columns = tuple(columns)
        self._make_summary = summary

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return self._columns

    def records(self) -> list[dict[str, Any]]:
        """Each row as a dict by column."""
        return list(self._iter_records(self._items))

    def to_frame(self) -> "DataFrame":
        """A pandas DataFrame with one row for each item, columns as in `columns`.

        Missing numbers are NaN. Raises MissingExtra if pandas is not installed.
        """
        try:
            import pandas
        except ModuleNotFoundError as error:
            raise MissingExtra("pandas", extra="frames") from error
        return pandas.DataFrame(self.records(), columns=list(self._columns))

    def _iter_records(self, items: Iterable[T]) -> Iterator[dict[str, Any]]:
        for item in items:
            cells = self._make_record(item)
            yield {name: cells[name] for name in self._columns}

    @overload
    def __getitem__(self, index: int) -> T: ...

    @overload
    def __getitem__(self, index: slice) -> "Rows[T]": ...

    def __getitem__(self, index: int | slice) -> "T | Rows[T]":
        if isinstance(index, slice):
            return Rows(self._items[index], self._make_record, self._columns, self._make_summary)
        return self._items[index]

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[T]:
        return iter(self._items)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Rows) and self._items == other._items

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        names, rows = self._printed_rows()
        cells = [names, *([_format_cell(v) for v in row.values()] for row in rows)]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        lines = [
            "  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip()
            for row in cells
        ]
        return "\n".join([*lines, self._footer()]).strip()

    def _repr_html_(self) -> str:
        names, rows = self._printed_rows()
        head = "".join(f"<th>{html.escape(name)}</th>" for name in names)
        body = "".join(
            "<tr>" + "".join(map(_format_html_cell, row.values())) + "</tr>" for row in rows
        )
        return (
            f'<div style="overflow-x: auto"><table><thead><tr>{head}</tr></thead>'
            f"<tbody>{body}</tbody></table></div><p>{self._footer()}</p>"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        """The rows with their cells, since the functions that make them cannot be pickled."""
        summaries = (
            [dict(self._make_summary(item)) for item in self._items] if self._make_summary else None
        )
        return _restore_rows, (self._items, self.records(), self._columns, summaries)

    def __copy__(self) -> "Rows[T]":
        return self

    def _printed_rows(self) -> tuple[list[str], list[Cells]]:
        """The columns and the first rows as they are printed."""
        first_items = self._items[:_MAX_PRINTED_ROWS]
        if self._make_summary is None or not first_items:
            names = list(self._columns)[: self._printed_column_count]
            return names, [
                {name: row[name] for name in names} for row in self._iter_records(first_items)
            ]
        rows = [self._make_summary(item) for item in first_items]
        return list(rows[0]), rows

    @property
    def _printed_column_count(self) -> int:
        """How many columns are printed: all, unless there are too many to read."""
        return len(self._columns) if len(self._columns) <= _MAX_COLUMNS else _FIRST_COLUMNS

    def _footer(self) -> str:
        count = f"{len(self)} row{'' if len(self) == 1 else 's'}"
        count = (
            count if len(self) <= _MAX_PRINTED_ROWS else f"the first {_MAX_PRINTED_ROWS} of {count}"
        )
        is_complete = self._make_summary is None and self._printed_column_count == len(
            self._columns
        )
        if is_complete or not self._items:
            return count
        return f"{count}, in short; to_frame() has all {len(self._columns)} columns"


def _restore_rows(
    items: tuple[Any, ...],
    records: list[dict[str, Any]],
    columns: tuple[str, ...],
    summaries: list[dict[str, Any]] | None,
) -> Rows[Any]:
    """Rows that were pickled, whose cells are kept."""
    record_by_item = {id(item): record for item, record in zip(items, records, strict=True)}
    summary_by_item = {id(item): row for item, row in zip(items, summaries or (), strict=False)}
    return Rows(
        items,
        lambda item: record_by_item[id(item)],
        columns,
        (lambda item: summary_by_item[id(item)]) if summaries is not None else None,
    )


class Result:
    """A result that is more than rows: it shows itself in a few lines, and its rows convert as
    `Rows` do. A class of it has `as_rows`, and `__str__` if a table does not say the most of it."""

    __slots__ = ()

    def as_rows(self) -> Rows[Any]:
        """The rows of the result."""
        raise NotImplementedError

    def heading(self) -> str:
        """A line above the rows; "" for none."""
        return ""

    def records(self) -> list[dict[str, Any]]:
        """Each row as a dict by column."""
        return self.as_rows().records()

    def to_frame(self) -> "DataFrame":
        """The rows as a pandas DataFrame. Raises MissingExtra if pandas is not installed."""
        return self.as_rows().to_frame()

    def __repr__(self) -> str:
        if type(self).__str__ is not object.__str__:
            return str(self)
        return f"{self.heading()}\n{self.as_rows()!r}".strip()

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        if type(self).__str__ is not object.__str__:
            return f"<pre>{html.escape(str(self))}</pre>"
        heading = f"<p>{html.escape(self.heading())}</p>" if self.heading() else ""
        return heading + self.as_rows()._repr_html_()


def _default_record(item: Any) -> Cells:
    if isinstance(item, Mapping):
        return item
    if is_dataclass(item):
        return {field.name: getattr(item, field.name) for field in fields(item)}
    raise TypeError(f"{type(item).__name__} has no columns")


def _format_html_cell(value: Any) -> str:
    """A cell of a notebook's table: numbers on the right, text on the left."""
    side = "right" if isinstance(value, int | float) else "left"
    return f'<td style="text-align: {side}">{html.escape(_format_cell(value))}</td>'


def _format_cell(value: Any) -> str:
    """A value for people to read: one line, without terminal control characters."""
    if value is None or value != value:
        return ""
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, tuple | list):
        value = ", ".join(str(part) for part in value)
    return shorten(printable(" ".join(str(value).split())), _MAX_CELL_CHARACTERS)
