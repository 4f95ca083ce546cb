"""Columns of results: each says once what it is called, how its cells are written, and whether they
have intervals. Terminal, page, LaTeX, CSV, JSON and data frame follow from it."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import cache
from operator import attrgetter
from typing import Annotated, Any, get_args, get_origin

from kgbias.io.text import format_number, spoken_name

Form = str | Callable[[float], str]
"""How a number is written: a format specification such as "+.2f", or a function."""


_LEAST_RELATIVE_WIDTH = 1e-12  # of an interval; less is what rounding leaves of none


class EstimateCell:
    """A cell with an estimate and the ends of its interval, NaN without one
    (`has_interval`): what `kgbias.stats.estimate.Estimate` is for a table."""

    __slots__ = ()
    value: float
    low: float
    high: float
    n: int

    @property
    def has_interval(self) -> bool:
        return not (math.isnan(self.low) or math.isnan(self.high))

    @property
    def is_shown(self) -> bool:
        """Whether there is an interval to show, which has a width."""
        has_width = not math.isclose(self.low, self.high, rel_tol=_LEAST_RELATIVE_WIDTH)
        return self.high > self.low and has_width


@dataclass(frozen=True, slots=True)
class CellWithForm:
    """The value of a cell with a form of its own, in a column whose rows are of different
    measures."""

    value: Any
    form: Form


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a result.

    Attributes:
        name: its name in data frames, JSON and CSV.
        form: how its numbers are written; "" for a column of text.
        interval: whether its cells are figures with intervals. In a frame it is three columns:
            NAME, NAME_low and NAME_high.
        title: its heading for people, by default the name with spaces.
        missing: what stands for None and NaN.
        joiner: what stands between the parts of a cell that has several.
        get: what gives its value of an item; by default the item's value of this name.
        ends: other names of NAME_low and NAME_high.
        count: the name of a further column of the frame, with the n of a figure; "" for none.
    """

    name: str
    form: Form = ""
    interval: bool = False
    title: str = ""
    missing: str = ""
    joiner: str = ", "
    get: Callable[[Any], Any] | None = None
    ends: tuple[str, str] | None = None
    count: str = ""

    @property
    def heading(self) -> str:
        return self.title or spoken_name(self.name)

    @property
    def is_numeric(self) -> bool:
        return self.form != ""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its columns in a frame."""
        if not self.interval:
            return (self.name,)
        ends = self.ends or (f"{self.name}_low", f"{self.name}_high")
        return (self.name, *ends, self.count) if self.count else (self.name, *ends)

    def read(self, item: Any) -> Any:
        """Its value of an item."""
        if self.get is not None:
            return self.get(item)
        return item[self.name] if isinstance(item, Mapping) else getattr(item, self.name)

    def values(self, cell: Any) -> tuple[Any, ...]:
        """What its columns in a frame hold, in the order of `names`."""
        if not self.interval:
            return (cell,)
        if cell is None:
            values, count = (math.nan, math.nan, math.nan), 0
        else:
            values, count = (cell.value, cell.low, cell.high), cell.n
        return (*values, count) if self.count else values

    def text(self, cell: Any) -> str:
        """The cell in words, without its interval."""
        form = self.form
        if isinstance(cell, CellWithForm):
            cell, form = cell.value, cell.form
        if isinstance(cell, EstimateCell):
            cell = cell.value
        if cell is None:
            return self.missing
        if isinstance(cell, tuple | list):
            return self.joiner.join(self.text(CellWithForm(part, form)) for part in cell)
        if isinstance(cell, float) and math.isnan(cell):
            return self.missing
        # True is an int, and would be written 1.
        if isinstance(cell, int | float) and not isinstance(cell, bool):
            return write_number(cell, form)
        return str(cell)

    def interval_text(self, cell: Any, joiner: str = " to ") -> str:
        """The interval of the cell, such as "+0.03 to +0.20"; "-" for a figure without one, "" for
        a cell without a figure, and in a column without intervals."""
        if not self.interval:
            return ""
        form = self.form
        if isinstance(cell, CellWithForm):
            cell, form = cell.value, cell.form
        if not isinstance(cell, EstimateCell) or math.isnan(cell.value):
            return ""
        if not cell.is_shown:
            return "-"
        return joiner.join(write_number(end, form) for end in (cell.low, cell.high))


@dataclass(frozen=True, slots=True)
class ColumnFormat:
    """How the column of a record's field is called and written (see `Column`), where it is not as
    `columns_of` would have it."""

    form: Form = ""
    name: str = ""
    title: str = ""
    missing: str = ""
    ends: tuple[str, str] | None = None
    count: str = ""


@cache
def columns_of(kind: type) -> tuple[Column, ...]:
    """The columns of a record: its fields, in their order. Numbers, and figures with intervals, are
    known by their types; a field that is `Annotated` with `ColumnFormat` says how it is written."""
    return tuple(_column_of(field.name, field.type) for field in fields(kind))


def _column_of(name: str, hint: Any) -> Column:
    shown = ColumnFormat()
    if get_origin(hint) is Annotated:
        hint, *marks = get_args(hint)
        shown = next((mark for mark in marks if isinstance(mark, ColumnFormat)), shown)
    # `float | None` is known by its parts, `float` by itself.
    kinds = [kind for kind in (*get_args(hint), hint) if isinstance(kind, type)]
    is_figure = any(issubclass(kind, EstimateCell) for kind in kinds)
    form = shown.form
    if not form and (is_figure or float in kinds):
        form = ".4g"
    elif not form and int in kinds:
        form = "d"
    return Column(
        shown.name or name,
        form,
        is_figure,
        shown.title,
        shown.missing,
        get=attrgetter(name),
        ends=shown.ends,
        count=shown.count,
    )


def write_number(value: float, form: Form) -> str:
    """The number in its form, without one to four digits; a zero has no sign."""
    if not isinstance(form, str):
        return form(value)
    if form.endswith("d") or (not form and isinstance(value, int)):
        return f"{value:{form}}"
    return format_number(value, form or ".4g")
