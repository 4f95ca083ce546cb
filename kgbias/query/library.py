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
from kgbias.graph.labels import RATER_KINDS
from kgbias.graph.selection import list_arms
from kgbias.graph.store import Store, StoredRun
from kgbias.graph.types import node_id, statement_id
from kgbias.io.files import replace_file
from kgbias.io.resources import file_names, resource_path
from kgbias.io.text import escape_formula, printable
from kgbias.io.wording import how
from kgbias.measures import MEASURES

_SUFFIX = ".cypher"
_PARAMETER = re.compile(r"^\$(\w+)\s+(.*?)(?: \(default: (.*)\))?$")
_JUDGED = re.compile(r"^How far labels of (\w+) can be believed")
_KINDS = re.compile(r":\s*([A-Z]\w*(?:\|[A-Z]\w*)*)")  # labels or edge types in a pattern
_COMMAND = re.compile(r"kgbias (\w+)( apx --store| --topics)?")
_NEEDS = re.compile(r"\(needs ([^)]*)\)")
_EDGES = re.compile(r"\[\w*:(\w+(?:\|\w+)*)( \{run: \$run)?")
_CRAWLED = frozenset("STEREOTYPE SUBJECT PREDICATE OBJECT NAME_OF IN".split())
_PARAMS = re.compile(r"^//.*:params \{(.*)\}$", re.MULTILINE)
_GIVEN = re.compile(r'(\w+): ("[^"]*"|[^,]+)')
_NEWEST = "the newest"
_EVERY = ("every arm", "every group", "every model", "every benchmark", "every category")
_GROUPS = ("group", "other")  # parameters that name a group
_WRITTEN = {  # parameters that name something else: its label, and the property with the name
    "predicate": ("Predicate", "text"),
    "object": ("Object", "text"),
    "benchmark": ("BenchmarkItem", "benchmark"),
    "category": ("BenchmarkItem", "category"),
    "probes": ("ProbeSet", "name"),
}
MOST = 100  # statements found by words, and by meaning
_BY_ID = ("Predicate", "Object")  # labels whose id follows from the text


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

        Raises UsageError for a parameter that is missing, unknown, not a number when one is
        needed, or that names what is not in the store; RunNotFound for an unknown run."""
        known = {parameter.name for parameter in self.parameters}
        if unknown := sorted(given.keys() - known):
            raise UsageError(no_such("parameter", unknown[0], sorted(known), f" of {self.name}"))
        values = {p.name: self._value(p, given.get(p.name)) for p in self.parameters}
        run = StoredRun.find(store, given.get("run")) if "run" in known else None
        if run is not None:
            values["run"] = run.name
        for name, value in values.items():
            if value not in (None, ""):
                values[name] = _named(name, value, store, run)
        return store.query(self.text, values, names=self.kinds)

    def unfilled(self, store: Store, given: Mapping[str, Any]) -> str:
        """Why there are no rows, if nothing of what the query reads beside statements was ever made
        (in its run, if it has one), and the command that makes it; "" otherwise."""
        needs = _NEEDS.search(self.help)
        read = {(m[1], bool(m[2])) for m in _EDGES.finditer(self.text)}
        read = {(kinds, own) for kinds, own in read if not _CRAWLED & set(kinds.split("|"))}
        if not needs or not read:
            return ""
        of_run = any(own for _, own in read)
        run = StoredRun.find(store, given.get("run")).name if of_run else ""
        where = " {run: $run}" if of_run else ""
        for kinds in sorted(kinds for kinds, own in read if own == of_run):
            text = f"MATCH ()-[e:{kinds}{where}]->() RETURN 1 AS found LIMIT 1"
            names = frozenset(kinds.split("|"))
            if not store.query(text, {"run": run} if of_run else {}, names=names).rows:
                there = f"run {run}" if run else "the store"
                makes = how(_in_python(needs[1]), needs[1])
                return f"no rows: {there} has nothing of this kind yet; {self.name} needs {makes}"
        return ""

    def _value(self, parameter: Parameter, given: Any) -> Any:
        if parameter.default in (None, _NEWEST, *_EVERY):
            if given is None and parameter.default is None:
                raise UsageError(
                    f"{self.name} needs the parameter {parameter.name}: {parameter.help}"
                )
            return given
        default = json.loads(parameter.default or "null")
        try:
            value = default if given is None else type(default)(given)
        except (TypeError, ValueError) as error:
            kind = "a whole number" if isinstance(default, int) else "a number"
            raise UsageError(f"{parameter.name} must be {kind}, not {given!r}") from error
        if isinstance(default, int) and value < 0:
            raise UsageError(f"{parameter.name} must be at least 0, not {given}")
        return value


def _in_python(commands: str) -> str:
    """The calls that do what these commands do."""
    takes = {"measure": "", "structure": "", "known": "TABLE", "associate": "MODEL"}

    def call(found: re.Match[str]) -> str:
        name, more = found.groups()
        if more == " apx --store":
            return "study.probe_apx(MODEL)"
        return f"run.{name}({'topics=True' if more else takes.get(name, 'MODEL')})"

    return _COMMAND.sub(call, commands)


def _named(parameter: str, value: Any, store: Store, run: StoredRun | None) -> Any:
    """The value of a parameter as the graph writes it, if the parameter names something: a group in
    another case, or by another of its names. Raises UsageError, with the nearest name, for a name
    that the graph does not have: without it, its rows would be none, and look like an answer."""
    if parameter in _GROUPS:
        return _group(str(value), store, run)
    if parameter == "about" and run is not None:
        return _near(run, str(value))
    if parameter == "arm" and run is not None:
        if value not in (there := list_arms(run, run.arms())):
            raise UsageError(no_such("arm", value, there, f" in run {run.name!r}"))
    elif parameter == "model" and run is not None:
        if value not in (there := tuple(b.model.title for b in run.belief_runs())):
            raise UsageError(no_such("model", value, there, f" asked about run {run.name!r}"))
    elif parameter == "verdict":
        from kgbias.probe.belief import BELIEVED, BOUND, LEANING

        if value not in (there := (BELIEVED, LEANING, BOUND)):
            raise UsageError(no_such("verdict", value, there))
    elif parameter == "mark":
        from kgbias.evidence.stereotype_matching import MARK_MEANINGS

        if value not in MARK_MEANINGS:
            raise UsageError(no_such("mark", value, MARK_MEANINGS))
    elif parameter == "kind":
        if value not in RATER_KINDS:
            raise UsageError(no_such("kind of rater", value, RATER_KINDS))
    elif parameter == "measure":
        if value not in MEASURES:
            raise UsageError(no_such("measure", value, MEASURES))
    elif parameter in _WRITTEN:
        label, key = _WRITTEN[parameter]
        wanted = "n.uid = $uid" if label in _BY_ID else f"n.{key} = $name"
        given = {"uid": node_id(parameter, str(value)), "name": value}
        text = f"MATCH (n:{label}) WHERE {wanted} RETURN DISTINCT n.{key} AS name"
        if not (found := store.query(text, given, names={label}).rows):
            listed = f"MATCH (n:{label}) RETURN DISTINCT n.{key} AS name ORDER BY name LIMIT 50000"
            names = [row[0] for row in store.query(listed, names={label}).rows]
            raise UsageError(no_such(parameter, value, names, " in the store"))
        return found[0][0]
    return value


def _near(run: StoredRun, text: str) -> str:
    """The triples of a run that a text finds (`kgbias.measure.semantic_search`), as a query takes them:
    each as its uid, cosine and "words" or "meaning", with commas between."""
    from kgbias.measure.semantic_search import StatementIndex

    hits = {hit.id: hit for hit in StatementIndex.build(run).search(text, MOST)}
    found = []
    for id, _, predicate, object in run.distinct_triples():
        said = statement_id(node_id("predicate", predicate), node_id("object", object))
        if hit := hits.get(said):
            found.append(f"{id} {hit.cosine:.3f} {'words' if hit.words else 'meaning'}")
    return ",".join(found)


def _group(name: str, store: Store, run: StoredRun | None) -> str:
    """The name that the graph shows for a group of the run, or of the store without one."""
    if run is not None:
        return run.find_group(name).name
    uid = node_id("group", name)
    text = "MATCH (g:SocialGroup) RETURN g.name AS name, g.variants AS variants ORDER BY name"
    rows = store.query(text, names={"SocialGroup"}).rows
    for shown, variants in rows:
        if uid in {node_id("group", each) for each in (shown, *(variants or ()))}:
            return str(shown)
    raise UsageError(no_such("group", name, (row[0] for row in rows), " in the store"))


def query_names() -> list[str]:
    """The names of the library's queries, in alphabetical order."""
    return [name.removesuffix(_SUFFIX) for name in file_names("cypher", _SUFFIX)]


def load_query(name: str) -> NamedQuery:
    """A query of the library. Raises UsageError, listing the names, for any other."""
    if name not in query_names():
        raise UsageError(no_such("query", name, query_names()))
    text = resource_path("cypher", name + _SUFFIX).read_text(encoding="utf-8")
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


def browser_parameters() -> str:
    """The line for Neo4j Browser that gives every parameter of the library a value, from the lines
    in the headers of the queries: with it, each of them runs as it stands. A parameter that one
    query must have and another may leave out has a value."""
    found: dict[str, str] = {}
    for name in query_names():
        text = resource_path("cypher", name + _SUFFIX).read_text(encoding="utf-8")
        given = _PARAMS.search(text)
        assert given is not None, name
        for parameter, value in _GIVEN.findall(given[1]):
            if found.get(parameter, "null") == "null":
                found[parameter] = value
    return f":params {{{', '.join(f'{name}: {value}' for name, value in sorted(found.items()))}}}"


def write_favourites(path: Path) -> None:
    """Write every query file of the library to a zip, and the line that sets their parameters.
    Dropped onto Neo4j Browser, it becomes a folder of saved queries, named by their first lines."""
    with (
        replace_file(path, ".zip") as whole,
        zipfile.ZipFile(whole, "w", zipfile.ZIP_DEFLATED) as file,
    ):
        saved = {"_parameters": browser_parameters()}
        for name in query_names():
            saved[name] = resource_path("cypher", name + _SUFFIX).read_text("utf-8")
        for name, text in saved.items():
            entry = zipfile.ZipInfo(f"{_FOLDER}/{name}{_SUFFIX}", _WHEN)
            # The Browser's list shows about 25 letters of the first line.
            file.writestr(entry, f"// {_title(name)}\n{text}", zipfile.ZIP_DEFLATED)


def _title(name: str) -> str:
    """The name of a saved query."""
    if name == "_parameters":
        return "1. Parameters: run first"  # the list is alphabetical
    return name.replace("_", " ").capitalize()


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
            escape_formula(json.dumps(v, ensure_ascii=False) if isinstance(v, list | dict) else v)
            for v in row
        )
    return out.getvalue()


def _json(result: QueryResult) -> str:
    return json.dumps(result.records(), ensure_ascii=False, indent=2, default=str) + "\n"


FORMATS: dict[str, Callable[[QueryResult], str]] = {"table": _table, "csv": _csv, "json": _json}
