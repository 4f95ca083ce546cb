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
from kgbias.io.text import name_of_type

FORMS = (
    "a file; a pandas, polars or Arrow table; a list of dicts, one for each row; a list or series "
    "of texts; or a dict of lists"
)
NAME = "table"  # of the file, after which a run or a set of statements is called


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
def on_disk(given: Any, columns: Sequence[str] = (), *, name: str = NAME) -> Iterator[Path]:
    """The path that was given, or a temporary file that holds the table that was given.

    Args:
        given: a path or a table.
        columns: of which a dict of lists must have one to be a table by columns; any other dict of
            lists holds texts by category.
        name: what the file is called, and the table in messages.

    Raises:
        DataError: in one line that says which forms are taken, for what is no table; whatever
            reads the file calls it by its name.
    """
    if isinstance(given, str | Path):
        yield Path(given)
        return
    text = json.dumps(_content(given, columns), ensure_ascii=False)
    with TemporaryDirectory(prefix="kgbias-") as folder:
        path = Path(folder) / name
        path.write_text(text, "utf-8", "surrogatepass")
        try:
            yield path
        except KgbiasError as error:
            if str(path) not in str(error) or type(error) is not DataError:
                raise
            line = str(error).replace(f"{path} is JSON, but no", f"the {name} is no")
            told = f": hand over {FORMS}" if line != str(error) else ""
            raise DataError(line.replace(str(path), f"the {name}") + told) from None


def rows_of(given: Any) -> list[dict[str, Any]] | None:
    """The rows of a frame, a list of dicts, or a dict of columns, each without the cells that hold
    no value; None for anything else. Raises DataError for a frame with two columns of a name."""
    found = _frame(given)
    if found is None and isinstance(given, list | tuple):
        found = list(given) if given and all(isinstance(row, Mapping) for row in given) else None
    if found is None:
        return None
    rows = [{str(name): plain(cell) for name, cell in row.items()} for row in found]
    return [{name: cell for name, cell in row.items() if cell is not None} for row in rows]


def _content(given: Any, columns: Sequence[str]) -> Any:
    """A table as JSON."""
    if (rows := rows_of(given)) is not None:
        return rows
    if isinstance(given, Mapping):
        lists = {str(name): _values(value) for name, value in given.items()}
        if set(map(str.casefold, lists)) & set(columns):
            return _by_column(lists)
        return {name: plain(value) for name, value in lists.items()}
    values = _values(given)
    if not isinstance(values, list):
        raise _no_table(given)
    rows = rows_of(values)
    return plain(values) if rows is None else rows


def _by_column(lists: Mapping[str, Any]) -> list[dict[str, Any]]:
    if wrong := next((name for name, cells in lists.items() if not isinstance(cells, list)), None):
        raise DataError(f"the column {wrong!r} holds no list, but {name_of_type(lists[wrong])}")
    if len({len(cells) for cells in lists.values()}) > 1:
        raise DataError("the columns of the table are of different lengths")
    rows = zip(*lists.values(), strict=True)
    return [dict(zip(lists, map(plain, row), strict=True)) for row in rows]


def _frame(given: Any) -> list[Mapping[Any, Any]] | None:
    """The rows of a table of any kind; None for what is none."""
    if isinstance(given, str | bytes | Mapping | list | tuple):
        return None
    if hasattr(given, "collect") and hasattr(given, "collect_schema"):  # a lazy frame of polars
        given = given.collect()
    found: Any = None
    if hasattr(given, "to_dicts"):  # polars
        found = given.to_dicts()
    elif hasattr(given, "to_pylist") and hasattr(given, "column_names"):  # Arrow
        found = given.to_pylist()
    elif hasattr(given, "records") and hasattr(given, "columns"):  # rows of kgbias
        found = given.records()
    elif hasattr(given, "column_names") and hasattr(given, "features"):  # Hugging Face's datasets
        found = [dict(row) for row in given]
    elif hasattr(given, "df") and hasattr(given, "columns"):  # DuckDB
        found = given.df().to_dict("records")
    elif hasattr(given, "to_dict") and hasattr(given, "columns"):  # pandas
        if len(set(given.columns)) < len(given.columns):
            raise DataError("the table has two columns of one name")
        found = given.to_dict("records")
    return None if found is None else list(found)


def _values(given: Any) -> Any:
    """The values of a list, series, array or any other iterable; anything else as it is."""
    if isinstance(given, str | bytes | Mapping):
        return given
    for method in ("to_list", "to_pylist", "tolist"):  # a series, an array
        if hasattr(given, method):
            return getattr(given, method)()
    return list(given) if isinstance(given, Iterable) else given


def plain(value: Any) -> Any:
    """A cell as JSON has it: numbers and arrays of other packages as Python's own, dates as text,
    and None for a cell without a value. Raises DataError for what JSON does not have."""
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, date | time) and value == value:
        return value.isoformat()
    if isinstance(value, Mapping):
        return {str(name): plain(cell) for name, cell in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(cell) for cell in value]
    if hasattr(value, "tolist"):  # a number or an array of numpy
        return plain(value.tolist())
    try:
        if value != value:  # NaN, NaT
            return None
    except TypeError:  # pandas' NA is neither equal to itself nor not
        return None
    if isinstance(value, float):
        return int(value) if value.is_integer() else value  # a column with gaps holds 2 as 2.0
    raise _no_table(value)


def _no_table(value: Any) -> DataError:
    return DataError(f"{name_of_type(value)} is no table: hand over {FORMS}")
