"""Query results as a table for a terminal, as CSV or as JSON."""

import csv
import io
import json
import unicodedata
from collections.abc import Callable

from kgbias.graph.cypher import QueryResult, Value
from kgbias.io.text import defused, printable

_WIDEST = 60  # characters of a cell in a table


def write_result(result: QueryResult, format_name: str) -> str:
    """The result as text that ends with a newline; the formats are `FORMATS`."""
    return FORMATS[format_name](result)


def _table(result: QueryResult) -> str:
    cells = [[_cell(value) for value in row] for row in result.rows]
    widths = [
        max([len(name), *(_width(row[place]) for row in cells)])
        for place, name in enumerate(result.columns)
    ]
    numeric = [
        all(isinstance(row[place], int | float | None) for row in result.rows)
        for place in range(len(widths))
    ]
    lines = [
        "  ".join(
            " " * (width - _width(cell)) + cell if right else cell + " " * (width - _width(cell))
            for cell, width, right in zip(row, widths, numeric, strict=True)
        ).rstrip()
        for row in [list(result.columns), ["-" * width for width in widths], *cells]
    ]
    return "\n".join(lines) + "\n"


def _cell(value: Value) -> str:
    text = printable(_text(value))
    return text if len(text) <= _WIDEST else text[: _WIDEST - 1] + "…"


def _text(value: Value) -> str:
    if value is None:
        return ""
    if isinstance(value, dict):
        for name in ("name", "text", "predicate", "uid"):
            if ":label" in value and name in value:
                return f"({value[name]})"
            if ":type" in value and name in value:
                return f"-[{value[name]}]-"
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, list):
        path = value and all(isinstance(v, dict) and (":label" in v or ":type" in v) for v in value)
        return ("" if path else ", ").join(_text(item) for item in value)
    return str(value)


def _width(text: str) -> int:
    """The number of columns that the text takes in a terminal."""
    wide = sum(unicodedata.east_asian_width(c) in "WF" for c in text)
    return len(text) + wide - sum(unicodedata.combining(c) > 0 for c in text)


def _csv(result: QueryResult) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\r\n")
    writer.writerow(result.columns)
    for row in result.rows:
        writer.writerow(
            defused(json.dumps(v, ensure_ascii=False) if isinstance(v, list | dict) else v)
            for v in row
        )
    return out.getvalue()


def _json(result: QueryResult) -> str:
    return json.dumps(result.records(), ensure_ascii=False, indent=2, default=str) + "\n"


FORMATS: dict[str, Callable[[QueryResult], str]] = {"table": _table, "csv": _csv, "json": _json}
