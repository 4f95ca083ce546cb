"""Tables in each form in which people hand them over."""

import csv
import gzip
import io
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

Rows = list[dict[str, str]]


def delimited(rows: Rows, delimiter: str) -> bytes:
    out = io.StringIO()
    writer = csv.DictWriter(out, list(rows[0]), delimiter=delimiter)
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue().encode()


def parquet(rows: Rows) -> bytes:
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet as pq

    out = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows), out)
    return out.getvalue()


def workbook(rows: Rows) -> bytes:
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    sheet = book.active
    for line in (list(rows[0]), *([row[name] for name in rows[0]] for row in rows)):
        sheet.append(line)
    book.save(out := io.BytesIO())
    return out.getvalue()


FORMS: dict[str, Callable[[Rows], bytes]] = {
    "comma": lambda rows: delimited(rows, ","),
    "semicolon": lambda rows: delimited(rows, ";"),
    "tab": lambda rows: delimited(rows, "\t"),
    "mark": lambda rows: b"\xef\xbb\xbf" + delimited(rows, ","),
    "utf-16": lambda rows: delimited(rows, "\t").decode().encode("utf-16"),
    "gb18030": lambda rows: delimited(rows, ",").decode().encode("gb18030"),  # with --encoding
    "cp1252": lambda rows: delimited(rows, ";").decode().encode("cp1252"),  # with --encoding
    "comments": lambda rows: b"# made by hand\n#\n" + delimited(rows, ","),
    "spaces": lambda rows: delimited([{f"{k} ": v for k, v in row.items()} for row in rows], ","),
    "windows": lambda rows: delimited(rows, ",").replace(b"\n", b"\r\n"),
    "gzip": lambda rows: gzip.compress(delimited(rows, ","), mtime=0),
    "json": lambda rows: json.dumps(rows, indent=1).encode(),
    "json within": lambda rows: json.dumps({"version": 1, "data": rows}).encode(),
    "json by column": lambda rows: json.dumps(
        {name: {str(n): row[name] for n, row in enumerate(rows)} for name in rows[0]}
    ).encode(),
    "json lines": lambda rows: "".join(json.dumps(row) + "\n" for row in rows).encode(),
    "json lines, packed": lambda rows: gzip.compress(
        "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()
    ),
    "parquet": parquet,
    "excel": workbook,
}


@dataclass(frozen=True)
class HandedTable:
    """Rows that are handed over in a form, at a path that says nothing of it; each has the columns
    group, attribute, category, name, statement and more."""

    form: str
    rows: Rows
    path: Path

    @property
    def groups(self) -> list[str]:
        return [row["group"] for row in self.rows]

    @property
    def attributes(self) -> list[str]:
        return [row["attribute"] for row in self.rows]

    def write(self) -> Path:
        """The file of all columns."""
        self.path.write_bytes(FORMS[self.form](self.rows))
        return self.path

    def choose(self, *columns: str, **more: str) -> Path:
        """The file of some columns, and of more with the same text in each row."""
        table = [{column: row[column] for column in columns} | more for row in self.rows]
        self.path.write_bytes(FORMS[self.form](table))
        return self.path

    def fill(self, columns: tuple[str, ...], **cells: str | list[str]) -> Path:
        """A file of these columns, where a cell that is not given is the attribute."""
        table = []
        for number, row in enumerate(self.rows):
            values = {}
            for column in columns:
                value = cells.get(column, row["attribute"])
                values[column] = value[number] if isinstance(value, list) else value
            table.append(values)
        self.path.write_bytes(FORMS[self.form](table))
        return self.path
