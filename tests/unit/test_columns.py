"""Columns that SQLite writes as JSON are those that it returns as rows."""

import json
import math
import sqlite3
from contextlib import closing
from pathlib import Path
from random import Random

import pytest

from kgbias.graph.record import PropertyType
from kgbias.graph.sqlite.database import Database

RNG = Random(0)
NUMBERS = [0.1, 0.0, 1 / 3, 5e-324, 1.7976931348623157e308, math.inf, -math.inf, None, 2.0]
NUMBERS += [RNG.uniform(-1, 1) * 10.0 ** RNG.randint(-300, 300) for _ in range(2000)]
NUMBERS += [RNG.uniform(-1, 1) * 10.0 ** RNG.randint(-9, 9) for _ in range(2000)]
TEXTS = [
    None,
    "",
    " a ",
    '"quoted"',
    "a\\b\n\x00\x1f\u2028",
    "\N{GRINNING FACE}",
    "Infinity",
    "[1]",
]
TYPES: dict[str, PropertyType] = {
    "number": "number",
    "text": "text",
    "whole": "integer",
    "list": "texts",
}
ROWS = [
    (n, TEXTS[i % len(TEXTS)], None if i % 3 else 2**60 + i, '["a"]' if i % 2 else None)
    for i, n in enumerate(NUMBERS)
]
QUERY = """
    SELECT number, text, whole, CASE WHEN list IS NOT NULL THEN json_array('a') END AS list
    FROM told ORDER BY place"""


@pytest.mark.parametrize("max_bytes", [None, 10_000])
def test_columns_have_the_values_of_the_rows(tmp_path: Path, max_bytes: int | None) -> None:
    path = str(tmp_path / "k.db")
    with Database(path) as database, database._transaction():
        pass
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(
            "CREATE TABLE told (place INTEGER PRIMARY KEY, number REAL, text, whole, list)"
        )
        connection.executemany("INSERT INTO told VALUES (NULL, ?, ?, ?, ?)", ROWS)
    with Database(path) as database:
        if max_bytes:
            database._db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, max_bytes)
        columns = database.select_columns(QUERY, TYPES)
        assert columns.keys() == TYPES.keys()
        values = [json.loads(text) for text in columns.values()]
        assert repr(list(zip(*values, strict=True))) == repr(ROWS)
        nothing = database.select_columns(f"SELECT * FROM ({QUERY}) LIMIT 0", TYPES)
        assert nothing == dict.fromkeys(TYPES, "[]")
