"""The library of queries: one file each in `cypher/`, whose header says what it answers and which
parameters it takes. The same text runs in Neo4j Browser and on either store. Results can be shown
as a table for a terminal, as CSV or as JSON.
"""

import csv
import io
import json
import re
import unicodedata
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kgbias.errors import UsageError, no_such
from kgbias.graph.cypher import QueryResult, Value
from kgbias.graph.store import Store
from kgbias.graph.types import node_id
from kgbias.io.files import whole_file
from kgbias.io.resources import names, resource
from kgbias.io.text import defused, printable

_SUFFIX = ".cypher"
_PARAMETER = re.compile(r"^\$(\w+)\s+(.*?)(?: \(default: (.*)\))?$")
_JUDGED = re.compile(r"^How far labels of (\w+) can be believed")
_KINDS = re.compile(r":\s*([A-Z]\w*(?:\|[A-Z]\w*)*)")  # labels or edge types in a pattern
_NEWEST = "the newest"
_EVERY = ("every arm", "every group", "every benchmark", "every category")
_GROUPS = {"group", "other"}  # parameters that name a group


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a query. `default` is None if the user must give a value."""

    name: str
    help: str
    default: str | None = None


@dataclass(frozen=True, slots=True)
class NamedQuery:
    """A query of the library. `kinds` are all the labels and edge types that it reads; `judged_by`
    is the measure by which its rows are the most hurtful ones, "" for any other query."""

    name: str
    help: str
    parameters: tuple[Parameter, ...]
    text: str
    kinds: frozenset[str]
    judged_by: str = ""

    def run(self, store: Store, given: Mapping[str, Any]) -> QueryResult:
        """The rows. Parameters that are not given have their defaults; for `run`, that is the
        newest. Groups may be written in any case, or by another of their names.

        Raises UsageError for a parameter that is missing, unknown, or not a number when one is
        needed, and RunNotFound for an unknown run."""
        known = {parameter.name for parameter in self.parameters}
        if unknown := sorted(given.keys() - known):
            raise UsageError(no_such("parameter", unknown[0], sorted(known), f" of {self.name}"))
        values = {p.name: self._value(p, given.get(p.name)) for p in self.parameters}
        for name in values.keys() & _GROUPS:
            if values[name] is not None:
                values[name] = self._group(store, values[name])
        if "run" in known:
            values["run"] = store.find_run(given.get("run")).name
        return store.query(self.text, values, names=self.kinds)

    def _group(self, store: Store, name: str) -> str:
        """The name that the graph shows for a group written in another case, or by another of its
        names; an unknown name is returned as it is."""
        uid = node_id("group", name)
        text = "MATCH (g:SocialGroup) WHERE g.uid = $uid RETURN g.name AS name"
        if found := store.query(text, {"uid": uid}, names=self.kinds).rows:
            return str(found[0][0])
        text = (
            "MATCH (g:SocialGroup) WHERE g.variants IS NOT NULL "
            "RETURN g.name AS name, g.variants AS variants"
        )
        for shown, variants in store.query(text, names=self.kinds).rows:
            if uid in {node_id("group", other) for other in variants}:
                return str(shown)
        return name

    def _value(self, parameter: Parameter, given: Any) -> Any:
        if parameter.default in (None, _NEWEST, *_EVERY):
            if given is None and parameter.default is None:
                raise UsageError(
                    f"{self.name} needs the parameter {parameter.name}: {parameter.help}"
                )
            return given
        default = json.loads(parameter.default or "null")
        try:
            return default if given is None else type(default)(given)
        except ValueError as error:
            raise UsageError(f"{parameter.name} must be a number, not {given!r}") from error


def query_names() -> list[str]:
    """The names of the library's queries, in alphabetical order."""
    return [name.removesuffix(_SUFFIX) for name in names("cypher", _SUFFIX)]


def load_query(name: str) -> NamedQuery:
    """A query of the library. Raises UsageError, listing the names, for any other."""
    if name not in query_names():
        raise UsageError(no_such("query", name, query_names()))
    text = resource("cypher", name + _SUFFIX).read_text(encoding="utf-8")
    head = [line.removeprefix("//").strip() for line in text.splitlines() if line[:2] == "//"]
    found = [m for line in head if (m := _PARAMETER.match(line))]
    body = "\n".join(line for line in text.splitlines() if not line.startswith("//"))
    return NamedQuery(
        name,
        " ".join(head[: head.index("")]),
        tuple(Parameter(*m.groups()) for m in found),
        body.strip(),
        frozenset(kind for kinds in _KINDS.findall(body) for kind in kinds.split("|")),
        "".join(m[1] for line in head if (m := _JUDGED.match(line))),
    )


_FOLDER = "kgbias"
_WHEN = (2026, 1, 1, 0, 0, 0)  # the same library gives the same file


def write_favourites(path: Path) -> None:
    """Write every query file of the library to a zip. Dropped onto Neo4j Browser, it becomes a
    folder of saved queries, named by their first lines."""
    with (
        whole_file(path, ".zip") as whole,
        zipfile.ZipFile(whole, "w", zipfile.ZIP_DEFLATED) as file,
    ):
        for name in query_names():
            entry = zipfile.ZipInfo(f"{_FOLDER}/{name}.cypher", _WHEN)
            text = resource("cypher", f"{name}.cypher").read_text("utf-8")
            file.writestr(entry, text, zipfile.ZIP_DEFLATED)


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
