"""Rows of results: a sequence that prints as a table and converts to a data frame; and results
that are more than rows, but show and convert themselves as they do."""

import html
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar, overload

from kgbias.errors import MissingExtra, UsageError, no_such
from kgbias.io.columns import CellWithForm, Column, columns_of
from kgbias.io.text import printable, shorten
from kgbias.io.wording import pluralise

if TYPE_CHECKING:
    from pandas import DataFrame

T = TypeVar("T")

_MAX_PRINTED_ROWS = 10  # rows of a printed table
_MAX_CELL_CHARACTERS = 60  # characters of a cell in it
_MAX_COLUMNS = 20  # of a table that is printed whole; of a wider one, the first few
_FIRST_COLUMNS = 10


class _PrintedRows(NamedTuple):
    """Columns and first rows as they are printed."""

    columns: list[Column]
    rows: list[list[str]]


class Rows(Sequence[T], Generic[T]):
    """An immutable sequence of results of one kind, in a fixed order.

    Iterate, index or slice it for the typed rows; `to_frame` gives a pandas DataFrame with one row
    each, `records` the same as plain dicts. A notebook shows its first rows.
    """

    __slots__ = ("_items", "_layout", "_shown_names")

    def __init__(
        self,
        items: Iterable[T],
        columns: type | Iterable[Column | str] | None = None,
        *,
        shown: Iterable[str] | None = None,
    ) -> None:
        """`columns` are those of the rows: a record, whose fields they are; or each by itself, a
        name for the row's value of this name. By default they are what the first row has. `shown`
        are the names of the columns that are printed, if these are not all."""
        self._items: tuple[T, ...] = tuple(items)
        if columns is None and self._items:
            first = self._items[0]
            columns = first if isinstance(first, Mapping) else type(first)
        if isinstance(columns, type):
            columns = columns_of(columns)
        self._layout: tuple[Column, ...] = tuple(
            Column(column) if isinstance(column, str) else column for column in columns or ()
        )
        self._shown_names = None if shown is None else frozenset(shown)

    @property
    def layout(self) -> tuple[Column, ...]:
        """The columns: what each is called, and how its cells are written."""
        return self._layout

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns of the frame."""
        return tuple(name for column in self._layout for name in column.names)

    def records(self) -> list[dict[str, Any]]:
        """Each row as a dict by column."""
        names = self.columns
        return [dict(zip(names, self._frame_values(item), strict=True)) for item in self._items]

    def _frame_values(self, item: T) -> Iterator[Any]:
        for column in self._layout:
            yield from column.values(column.read(item))

    def to_frame(self) -> "DataFrame":
        """A pandas DataFrame with one row for each item, columns as in `columns`.

        Missing numbers are NaN. Raises MissingExtra if pandas is not installed.
        """
        try:
            import pandas
        except ModuleNotFoundError as error:
            raise MissingExtra("pandas", extra="frames") from error
        return pandas.DataFrame(self.records(), columns=list(self.columns))

    def draw(self, ax: Any = None, *, column: str = "") -> Any:
        """Draw a column of figures with their 95% intervals, a line for each row, into axes of
        matplotlib; returns the axes.

        Args:
            ax: the axes (None: a figure of their own).
            column: the name of the column (default: the first that has intervals).

        Raises UsageError if there is no such column, or no figure in it.
        """
        with_intervals = {each.name: each for each in self._layout if each.interval}
        if not with_intervals:
            raise UsageError("no column of this table has intervals, so there is nothing to draw")
        chosen = column or next(iter(with_intervals))
        if chosen not in with_intervals:
            raise UsageError(no_such("column with intervals", chosen, with_intervals))
        # A row is called by the columns of text that stand before its first figure.
        names = []
        for each in self._layout:
            if each.is_numeric:
                break
            names.append(each)
        estimates = []
        for item in self._items:
            cell = with_intervals[chosen].read(item)
            cell = cell.value if isinstance(cell, CellWithForm) else cell
            # NaN is no figure.
            if cell is not None and cell.value == cell.value:
                title = ", ".join(filter(None, (each.text(each.read(item)) for each in names)))
                estimates.append((shorten(printable(title), _MAX_CELL_CHARACTERS), cell))
        if not estimates:
            raise UsageError(f"there is no figure in the column {chosen!r}")
        from kgbias.io.drawing import draw_estimates

        return draw_estimates(estimates, with_intervals[chosen].heading, ax)

    @overload
    def __getitem__(self, index: int) -> T: ...

    @overload
    def __getitem__(self, index: slice) -> "Rows[T]": ...

    def __getitem__(self, index: int | slice) -> "T | Rows[T]":
        if isinstance(index, slice):
            return Rows(self._items[index], self._layout, shown=self._shown_names)
        return self._items[index]

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[T]:
        return iter(self._items)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Rows) and self._items == other._items

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        columns, rows = self._printed_rows()
        lines = [[column.name for column in columns], *rows]
        widths = [max(map(len, cells)) for cells in zip(*lines, strict=True)]
        printed = [
            "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
            for line in lines
        ]
        return "\n".join([*printed, self._footer()]).strip()

    def _repr_html_(self) -> str:
        columns, rows = self._printed_rows()
        head = "".join(f"<th>{html.escape(column.name)}</th>" for column in columns)
        body = ""
        for row in rows:
            cells = zip(columns, row, strict=True)
            body += f"<tr>{''.join(_format_html_cell(column, text) for column, text in cells)}</tr>"
        return (
            f'<div style="overflow-x: auto"><table><thead><tr>{head}</tr></thead>'
            f"<tbody>{body}</tbody></table></div><p>{self._footer()}</p>"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        """The rows with their cells, since the functions that read these cannot be pickled."""
        cells = [[column.read(item) for column in self._layout] for item in self._items]
        layout = tuple(replace(column, get=None) for column in self._layout)
        return _restore_rows, (self._items, layout, cells, self._shown_names)

    def __copy__(self) -> "Rows[T]":
        return self

    def _printed_rows(self) -> _PrintedRows:
        """The columns and the first rows as they are printed."""
        columns = self._printed_columns
        rows = []
        for item in self._items[:_MAX_PRINTED_ROWS]:
            rows.append([_format_cell(column, column.read(item)) for column in columns])
        return _PrintedRows(columns, rows)

    @property
    def _printed_columns(self) -> list[Column]:
        """The columns that are printed: all, unless there are too many to read."""
        if self._shown_names is not None:
            return [column for column in self._layout if column.name in self._shown_names]
        columns = list(self._layout)
        return columns if len(columns) <= _MAX_COLUMNS else columns[:_FIRST_COLUMNS]

    def _footer(self) -> str:
        count = pluralise(len(self), "row")
        count = (
            count if len(self) <= _MAX_PRINTED_ROWS else f"the first {_MAX_PRINTED_ROWS} of {count}"
        )
        if len(self._printed_columns) == len(self._layout) or not self._items:
            return count
        return f"{count}, in short; to_frame() has all {len(self.columns)} columns"


def _restore_rows(
    items: tuple[Any, ...],
    layout: tuple[Column, ...],
    cells: list[list[Any]],
    shown_names: frozenset[str] | None,
) -> Rows[Any]:
    """Rows that were pickled, whose cells are kept."""
    # By identity: an item need not be hashable.
    cells_by_item = {id(item): row for item, row in zip(items, cells, strict=True)}

    def reader(place: int) -> Callable[[Any], Any]:
        return lambda item: cells_by_item[id(item)][place]

    columns = [replace(column, get=reader(place)) for place, column in enumerate(layout)]
    return Rows(items, columns, shown=shown_names)


def file_rows(paths: Iterable[Path]) -> Rows[Path]:
    """Files that were written. Columns: file (its name), folder."""
    folder = Column("folder", get=lambda path: str(path.parent))
    return Rows(paths, (Column("file", get=attrgetter("name")), folder))


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

    def draw(self, ax: Any = None) -> Any:
        """Draw the figures with their 95% intervals into axes of matplotlib (None: a figure of
        their own); returns the axes. Raises UsageError if the rows have none."""
        return self.as_rows().draw(ax)

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


def _format_html_cell(column: Column, text: str) -> str:
    """A cell of a notebook's table: numbers on the right, text on the left."""
    side = "right" if column.is_numeric else "left"
    return f'<td style="text-align: {side}">{html.escape(text)}</td>'


def _format_cell(column: Column, value: Any) -> str:
    """A value for people to read: one line, without terminal control characters."""
    text, interval = column.text(value), column.interval_text(value)
    if interval not in ("", "-"):
        text = f"{text} ({interval})"
    return shorten(printable(" ".join(text.split())), _MAX_CELL_CHARACTERS)
