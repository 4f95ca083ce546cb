"""The one door for tables that a program holds, in the place of a file: a pandas, polars or Arrow
table, a DuckDB relation, a data set of Hugging Face, rows of kgbias, a series, a list or a dict.

They are written as JSON into a temporary file and read by the reader of files
(`kgbias.io.tables`), so what is in memory is read, checked and refused as what is on disk.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date, time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol

from kgbias.errors import DataError, KgbiasError
from kgbias.io.text import type_with_article

ACCEPTED_FORMS = (
    "a file; a pandas, polars or Arrow table; a list of dicts, one for each row; a list or series "
    "of texts; or a dict of lists"
)
DEFAULT_NAME = "table"  # of the file, after which a run or a set of statements is called


class Frame(Protocol):
    """A table in memory: of pandas, polars or Arrow, or another that has columns."""

    @property
    def columns(self) -> Any: ...


Table = str | Path | Frame | Sequence[Mapping[str, Any]] | Mapping[str, Sequence[Any]]
"""A table: a file, a frame, a list of dicts (one for each row), or a dict of lists by column."""
Texts = Table | Sequence[str]
"""Texts: a file, a list or series, a dict of lists by category, or a table with a column of them.
"""


@contextmanager
def as_table_file(
    table: Any, columns: Sequence[str] = (), *, name: str = DEFAULT_NAME
) -> Iterator[Path]:
    """The path that was given, or a temporary file that holds the table that was given.

    Args:
        table: a path or a table.
        columns: of which a dict of lists must have one to be a table by columns; any other dict of
            lists holds texts by category.
        name: what the file is called, and the table in messages.

    Raises:
        DataError: in one line that says which forms are taken, for what is no table; whatever
            reads the file calls it by its name.
    """
    if isinstance(table, str | Path):
        yield Path(table)
        return
    content = _to_json_content(table, columns)
    if not content:
        raise DataError("the table has no rows")
    text = json.dumps(content, ensure_ascii=False)
    with TemporaryDirectory(prefix="kgbias-") as folder:
        path = Path(folder) / name
        path.write_text(text, "utf-8", "surrogatepass")
        try:
            yield path
        except KgbiasError as error:
            # Only messages about this file: the temporary path says nothing to anyone.
            if str(path) not in str(error) or type(error) is not DataError:
                raise
            line = str(error).replace(f"{path} is JSON, but no", f"the {name} is no")
            hint = f": hand over {ACCEPTED_FORMS}" if line != str(error) else ""
            raise DataError(line.replace(str(path), f"the {name}") + hint) from None


def table_rows_or_none(table: Any) -> list[dict[str, Any]] | None:
    """The rows of a frame, a list of dicts, or a dict of columns, each without the cells that hold
    no value; None for anything else. Raises DataError for a frame with two columns of a name."""
    mappings = _frame_rows(table)
    if mappings is None and isinstance(table, list | tuple):
        mappings = list(table) if table and all(isinstance(row, Mapping) for row in table) else None
    if mappings is None:
        return None
    rows = [{str(name): to_json_value(cell) for name, cell in row.items()} for row in mappings]
    return [{name: cell for name, cell in row.items() if cell is not None} for row in rows]


def _to_json_content(table: Any, columns: Sequence[str]) -> Any:
    """A table as JSON."""
    if (rows := table_rows_or_none(table)) is not None:
        return rows
    if isinstance(table, Mapping):
        lists = {str(name): _list_values(value) for name, value in table.items()}
        if set(map(str.casefold, lists)) & set(columns):
            return _rows_from_columns(lists)
        return {name: to_json_value(value) for name, value in lists.items()}
    values = _list_values(table)
    if not isinstance(values, list):
        raise _no_table_error(table)
    rows = table_rows_or_none(values)
    return to_json_value(values) if rows is None else rows


def _rows_from_columns(lists: Mapping[str, Any]) -> list[dict[str, Any]]:
    if wrong_column := next(
        (name for name, cells in lists.items() if not isinstance(cells, list)), None
    ):
        raise DataError(
            f"the column {wrong_column!r} holds no list, but "
            f"{type_with_article(lists[wrong_column])}"
        )
    if len({len(cells) for cells in lists.values()}) > 1:
        raise DataError("the columns of the table are of different lengths")
    rows = zip(*lists.values(), strict=True)
    return [dict(zip(lists, map(to_json_value, row), strict=True)) for row in rows]


def _frame_rows(frame: Any) -> list[Mapping[Any, Any]] | None:
    """The rows of a table of any kind; None for what is none."""
    if isinstance(frame, str | bytes | Mapping | list | tuple):
        return None
    # A series such as `frame.groupby("group").size()` has what it counts in its index.
    if (
        hasattr(frame, "reset_index")
        and not hasattr(frame, "columns")
        and frame.dtype.kind in "iuf"
    ):
        raise DataError(
            f"a {type(frame).__name__} of numbers is no table: hand over {ACCEPTED_FORMS}; "
            '.reset_index(name="count") makes a table of counts'
        )
    if hasattr(frame, "collect") and hasattr(frame, "collect_schema"):  # a lazy frame of polars
        frame = frame.collect()
    # What is like pandas comes last: others have `to_dict` and `columns` too.
    records: Any = None
    if hasattr(frame, "to_dicts"):  # polars
        records = frame.to_dicts()
    elif hasattr(frame, "to_pylist") and hasattr(frame, "column_names"):  # Arrow
        records = frame.to_pylist()
    elif hasattr(frame, "records") and hasattr(frame, "columns"):  # rows of kgbias
        records = frame.records()
    elif hasattr(frame, "column_names") and hasattr(frame, "features"):  # Hugging Face's datasets
        records = [dict(row) for row in frame]
    elif hasattr(frame, "df") and hasattr(frame, "columns"):  # DuckDB
        records = frame.df().to_dict("records")
    elif hasattr(frame, "to_dict") and hasattr(frame, "columns"):  # pandas
        if len(set(frame.columns)) < len(frame.columns):
            raise DataError("the table has two columns of one name")
        # An index with a name is a column, as pandas writes it into files.
        own_names = [name for name in getattr(frame.index, "names", ()) if name is not None]
        if own_names and not set(own_names) & set(frame.columns):
            frame = frame.reset_index()
        records = frame.to_dict("records")
    return None if records is None else list(records)


def _list_values(value: Any) -> Any:
    """The values of a list, series, array or any other iterable; anything else as it is."""
    if isinstance(value, str | bytes | Mapping):
        return value
    for method in ("to_list", "to_pylist", "tolist"):  # a series, an array
        if hasattr(value, method):
            return getattr(value, method)()
    return list(value) if isinstance(value, Iterable) else value


def to_json_value(value: Any) -> Any:
    """A cell as JSON has it: numbers and arrays of other packages as Python's own, dates as text,
    and None for a cell without a value. Raises DataError for what JSON does not have."""
    if value is None or isinstance(value, str | bool | int):
        return value
    # pandas' NaT is a date that is not equal to itself.
    if isinstance(value, date | time) and value == value:
        return value.isoformat()
    if isinstance(value, Mapping):
        return {str(name): to_json_value(cell) for name, cell in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [to_json_value(cell) for cell in value]
    if hasattr(value, "tolist"):  # a number or an array of numpy
        return to_json_value(value.tolist())
    try:
        if value != value:  # NaN, NaT
            return None
    except TypeError:  # pandas' NA is neither equal to itself nor not
        return None
    if isinstance(value, float):
        return int(value) if value.is_integer() else value  # a column with gaps holds 2 as 2.0
    raise _no_table_error(value)


def _no_table_error(value: Any) -> DataError:
    return DataError(f"{type_with_article(value)} is no table: hand over {ACCEPTED_FORMS}")
