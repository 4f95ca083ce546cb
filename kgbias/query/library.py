"""The library of queries: one file each in `cypher/`, whose header says what it answers and which
parameters it takes. The same text runs in Neo4j Browser and on either store. Results can be shown
as a table for a terminal, as CSV or as JSON.

A parameter that names something is checked against the store, and one that is a text to be found is
given as the uids of the triples that `kgbias.measure.semantic_search` finds. To add a question, add
a file to `cypher/`, and its answer, worked out by hand, to tests/contract/test_queries.py, which
holds every query to such rows on both stores; a query without them fails it.
"""

import csv
import io
import json
import re
import unicodedata
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from kgbias.errors import UsageError, no_such
from kgbias.graph.cypher import QueryResult, Value
from kgbias.graph.labels import RATER_KINDS
from kgbias.graph.selection import list_arms
from kgbias.graph.shape import PROPERTY_NAMES
from kgbias.graph.stereotypes import MARK_MEANINGS
from kgbias.graph.store import Store, StoredRun
from kgbias.graph.types import BeliefRun, node_id, statement_id
from kgbias.io.files import replace_file
from kgbias.io.resources import file_names, resource_path
from kgbias.io.text import escape_formula, printable
from kgbias.io.wording import how
from kgbias.measures import MEASURES

_SUFFIX = ".cypher"
_PARAMETER = re.compile(r"^\$(\w+)\s+(.*?)(?: \(default: (.*)\))?$")
_JUDGED_BY = re.compile(r"^How far labels of (\w+) can be believed")
_LABELS_OR_TYPES = re.compile(r":\s*([A-Z]\w*(?:\|[A-Z]\w*)*)")  # labels or edge types in a pattern
_PATH = re.compile(r"\w+ = \(")  # a path, which is shown with all properties
_PROPERTY = re.compile(r"\.(\w+)|(\w+):")  # of an element, or in a pattern
_COMMAND = re.compile(r"kgbias (\w+)( apx --store| --topics)?")
_NEEDS = re.compile(r"\(needs ([^)]*)\)")
_EDGES = re.compile(r"\[\w*:(\w+(?:\|\w+)*)( \{run: \$run)?")
_STATEMENT_EDGES = frozenset("STEREOTYPE SUBJECT PREDICATE OBJECT NAME_OF IN".split())
_PARAMS = re.compile(r"^//.*:params \{(.*)\}$", re.MULTILINE)
_PARAM_VALUE = re.compile(r'(\w+): ("[^"]*"|[^,]+)')
_NEWEST = "the newest"
_UNRESTRICTED_DEFAULTS = (
    "every arm",
    "every group",
    "every model",
    "every benchmark",
    "every category",
)
_GROUP_PARAMETERS = ("group", "other")  # parameters that name a group
_NAMED_NODES = {  # parameters that name something else: its label, and the property with the name
    "predicate": ("Predicate", "text"),
    "object": ("Object", "text"),
    "benchmark": ("BenchmarkItem", "benchmark"),
    "category": ("BenchmarkItem", "category"),
    "probes": ("ProbeSet", "name"),
}
MAX_SIMILAR_STATEMENTS = 100  # statements found by words, and by meaning
_LABELS_WITH_TEXT_ID = ("Predicate", "Object")  # labels whose id follows from the text


@dataclass(frozen=True, slots=True)
class QueryParameter:
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
    parameters: tuple[QueryParameter, ...]
    text: str
    kinds: frozenset[str]
    judged_by: str = ""

    def run(self, store: Store, parameter_values: Mapping[str, Any]) -> QueryResult:
        """The rows. Parameters that are not given have their defaults; for `run`, that is the
        newest. Groups may be written in any case, or by another of their names.

        Raises UsageError for a parameter that is missing, unknown, not a number when one is
        needed, or that names what is not in the store; RunNotFound for an unknown run."""
        known_names = {parameter.name for parameter in self.parameters}
        if unknown := sorted(parameter_values.keys() - known_names):
            raise UsageError(
                no_such("parameter", unknown[0], sorted(known_names), f" of {self.name}")
            )
        values = {
            p.name: self._parse_value(p, parameter_values.get(p.name)) for p in self.parameters
        }
        run = StoredRun.find(store, parameter_values.get("run")) if "run" in known_names else None
        if run is not None:
            values["run"] = run.name
        names = find_names(self.kinds)
        for name, value in values.items():
            if value not in (None, ""):
                values[name] = _resolve_name(name, value, store, run, names)
        return store.query(self.text, values, names=names)

    def explain_no_rows(self, store: Store, parameter_values: Mapping[str, Any]) -> str:
        """Why there are no rows, if nothing of what the query reads beside statements was ever made
        (in its run, if it has one), and the command that makes it; "" otherwise."""
        needs = _NEEDS.search(self.help)
        edges_read = {(m[1], bool(m[2])) for m in _EDGES.finditer(self.text)}
        edges_read = {
            (kinds, reads_run)
            for kinds, reads_run in edges_read
            if not _STATEMENT_EDGES & set(kinds.split("|"))
        }
        if not needs or not edges_read:
            return ""
        of_run = any(reads_run for _, reads_run in edges_read)
        run = StoredRun.find(store, parameter_values.get("run")).name if of_run else ""
        run_pattern = " {run: $run}" if of_run else ""
        for kinds in sorted(kinds for kinds, reads_run in edges_read if reads_run == of_run):
            text = f"MATCH ()-[e:{kinds}{run_pattern}]->() RETURN 1 AS found LIMIT 1"
            names = find_names(self.kinds)  # the view is there
            if not store.query(text, {"run": run} if of_run else {}, names=names).rows:
                place = f"run {run}" if run else "the store"
                makes = how(_in_python(needs[1]), needs[1])
                return f"no rows: {place} has nothing of this kind yet; {self.name} needs {makes}"
        return ""

    def _parse_value(self, parameter: QueryParameter, given_value: Any) -> Any:
        if parameter.default in (None, _NEWEST, *_UNRESTRICTED_DEFAULTS):
            if given_value is None and parameter.default is None:
                raise UsageError(
                    f"{self.name} needs the parameter {parameter.name}: {parameter.help}"
                )
            return given_value
        default = json.loads(parameter.default or "null")
        try:
            value = default if given_value is None else type(default)(given_value)
        except (TypeError, ValueError) as error:
            kind = "a whole number" if isinstance(default, int) else "a number"
            raise UsageError(f"{parameter.name} must be {kind}, not {given_value!r}") from error
        if isinstance(default, int) and value < 0:
            raise UsageError(f"{parameter.name} must be at least 0, not {given_value}")
        return value


def _in_python(commands: str) -> str:
    """The calls that do what these commands do."""
    takes = {"measure": "", "structure": "", "known": "TABLE", "associate": "MODEL"}

    def call(found: re.Match[str]) -> str:
        name, more = found.groups()
        if more == " apx --store":
            return "apx.probe_names(study, MODEL)"
        return f"run.{name}({'topics=True' if more else takes.get(name, 'MODEL')})"

    return _COMMAND.sub(call, commands)


def _resolve_name(
    parameter: str, value: Any, store: Store, run: StoredRun | None, names: frozenset[str]
) -> Any:
    """The value of a parameter as the graph writes it, if the parameter names something: a group in
    another case, or by another of its names. `names` are those of what the query reads. Raises
    UsageError, with the nearest name, for a name that the graph does not have: without it, its rows
    would be none, and look like an answer."""
    if parameter in _GROUP_PARAMETERS:
        return _resolve_group_name(str(value), store, run, names)
    if parameter == "about" and run is not None:
        return _encode_similar_triples(run, str(value))
    if parameter == "arm" and run is not None:
        if value not in (known_names := list_arms(run, run.arms())):
            raise UsageError(no_such("arm", value, known_names, f" in run {run.name!r}"))
    elif parameter == "model" and run is not None:
        if value not in (known_names := tuple(b.model.title for b in run.find_all(BeliefRun))):
            raise UsageError(no_such("model", value, known_names, f" asked about run {run.name!r}"))
    elif parameter == "verdict":
        from kgbias.probe.belief import BELIEVED, BOUND, LEANING

        if value not in (known_names := (BELIEVED, LEANING, BOUND)):
            raise UsageError(no_such("verdict", value, known_names))
    elif parameter == "mark":
        if value not in MARK_MEANINGS:
            raise UsageError(no_such("mark", value, MARK_MEANINGS))
    elif parameter == "kind":
        if value not in RATER_KINDS:
            raise UsageError(no_such("kind of rater", value, RATER_KINDS))
    elif parameter == "measure":
        if value not in MEASURES:
            raise UsageError(no_such("measure", value, MEASURES))
    elif parameter in _NAMED_NODES:
        label, key = _NAMED_NODES[parameter]
        condition = "n.uid = $uid" if label in _LABELS_WITH_TEXT_ID else f"n.{key} = $name"
        values = {"uid": node_id(parameter, str(value)), "name": value}
        text = f"MATCH (n:{label}) WHERE {condition} RETURN DISTINCT n.{key} AS name"
        # With what the query reads: the view is then made once.
        read_names = names | {label, key}
        if not (rows := store.query(text, values, names=read_names).rows):
            list_query = (
                f"MATCH (n:{label}) RETURN DISTINCT n.{key} AS name ORDER BY name LIMIT 50000"
            )
            listed = [row[0] for row in store.query(list_query, names=read_names).rows]
            raise UsageError(no_such(parameter, value, listed, " in the store"))
        return rows[0][0]
    return value


@cache
def find_names(kinds: frozenset[str]) -> frozenset[str]:
    """What an embedded store is to read for the library's queries of these kinds, which share a
    view: the kinds, and the properties that these queries name; all, if one shows a path."""
    texts = [q.text for q in map(load_query, query_names()) if q.kinds == kinds]
    if any(_PATH.search(text) for text in texts):
        return kinds | PROPERTY_NAMES
    words = {w for text in texts for pair in _PROPERTY.findall(text) for w in pair}
    return kinds | PROPERTY_NAMES & words


def _encode_similar_triples(run: StoredRun, text: str) -> str:
    """The triples of a run that a text finds (`kgbias.measure.semantic_search`), as a query takes
    them: each as its uid, cosine and "words" or "meaning", with commas between."""
    from kgbias.measure.semantic_search import StatementIndex

    hits = {hit.id: hit for hit in StatementIndex.build(run).search(text, MAX_SIMILAR_STATEMENTS)}
    hit_lines = []
    for triple_id, _, predicate, object in run.distinct_triples():
        hit_id = statement_id(node_id("predicate", predicate), node_id("object", object))
        if hit := hits.get(hit_id):
            hit_lines.append(f"{triple_id} {hit.cosine:.3f} {'words' if hit.words else 'meaning'}")
    return ",".join(hit_lines)


def _resolve_group_name(
    name: str, store: Store, run: StoredRun | None, names: frozenset[str]
) -> str:
    """The name that the graph shows for a group of the run, or of the store without one."""
    if run is not None:
        return run.find_group(name).node_name
    uid = node_id("group", name)
    text = "MATCH (g:SocialGroup) RETURN g.name AS name, g.variants AS variants ORDER BY name"
    rows = store.query(text, names=names | {"SocialGroup", "name", "variants"}).rows
    for shown_name, variants in rows:
        if uid in {node_id("group", each) for each in (shown_name, *(variants or ()))}:
            return str(shown_name)
    called = "MATCH ()-[s:SEEDED]->(g:SocialGroup) WHERE s.names IS NOT NULL RETURN g.name, s.names"
    for shown_name, other_names in store.query(called, names={"SEEDED", "SocialGroup", "Run"}).rows:
        if uid in {node_id("group", each) for each in other_names}:
            return str(shown_name)
    raise UsageError(no_such("group", name, (row[0] for row in rows), " in the store"))


@cache
def query_names() -> tuple[str, ...]:
    """The names of the library's queries, in alphabetical order."""
    return tuple(name.removesuffix(_SUFFIX) for name in file_names("cypher", _SUFFIX))


@cache
def load_query(name: str) -> NamedQuery:
    """A query of the library. Raises UsageError, listing the names, for any other."""
    if name not in query_names():
        raise UsageError(no_such("query", name, query_names()))
    text = resource_path("cypher", name + _SUFFIX).read_text(encoding="utf-8")
    head = [line.removeprefix("//").strip() for line in text.splitlines() if line[:2] == "//"]
    parameter_lines = [m for line in head if (m := _PARAMETER.match(line))]
    body = "\n".join(line for line in text.splitlines() if not line.startswith("//"))
    return NamedQuery(
        name,
        " ".join(head[: head.index("")]),
        tuple(QueryParameter(*m.groups()) for m in parameter_lines),
        body.strip(),
        frozenset(kind for kinds in _LABELS_OR_TYPES.findall(body) for kind in kinds.split("|")),
        "".join(m[1] for line in head if (m := _JUDGED_BY.match(line))),
    )


_FOLDER = "kgbias"
_ZIP_DATE = (2026, 1, 1, 0, 0, 0)  # the same library gives the same file


def browser_parameters() -> str:
    """The line for Neo4j Browser that gives every parameter of the library a value, from the lines
    in the headers of the queries: with it, each of them runs as it stands. A parameter that one
    query must have and another may leave out has a value."""
    values: dict[str, str] = {}
    for name in query_names():
        text = resource_path("cypher", name + _SUFFIX).read_text(encoding="utf-8")
        params_line = _PARAMS.search(text)
        assert params_line is not None, name
        for parameter, value in _PARAM_VALUE.findall(params_line[1]):
            if values.get(parameter, "null") == "null":
                values[parameter] = value
    return f":params {{{', '.join(f'{name}: {value}' for name, value in sorted(values.items()))}}}"


def write_favourites(path: Path) -> None:
    """Write every query file of the library to a zip, and the line that sets their parameters.
    Dropped onto Neo4j Browser, it becomes a folder of saved queries, named by their first lines."""
    with (
        replace_file(path, ".zip") as partial_path,
        zipfile.ZipFile(partial_path, "w", zipfile.ZIP_DEFLATED) as file,
    ):
        texts = {"_parameters": browser_parameters()}
        for name in query_names():
            texts[name] = resource_path("cypher", name + _SUFFIX).read_text("utf-8")
        for name, text in texts.items():
            entry = zipfile.ZipInfo(f"{_FOLDER}/{name}{_SUFFIX}", _ZIP_DATE)
            # The Browser's list shows about 25 letters of the first line.
            file.writestr(entry, f"// {_saved_title(name)}\n{text}", zipfile.ZIP_DEFLATED)


def _saved_title(name: str) -> str:
    """The name of a saved query."""
    if name == "_parameters":
        return "1. Parameters: run first"  # the list is alphabetical
    return name.replace("_", " ").capitalize()


_MAX_CELL_CHARS = 60  # characters of a cell in a table


def format_result(result: QueryResult, format_name: str) -> str:
    """The result as text that ends with a newline; the formats are `FORMATS`."""
    return FORMATS[format_name](result)


def _format_table(result: QueryResult) -> str:
    cells = [[_format_cell(value) for value in row] for row in result.rows]
    widths = [
        max([len(name), *(_text_width(row[place]) for row in cells)])
        for place, name in enumerate(result.columns)
    ]
    numeric = [
        all(isinstance(row[place], int | float | None) for row in result.rows)
        for place in range(len(widths))
    ]
    lines = [
        "  ".join(
            " " * (width - _text_width(cell)) + cell
            if right
            else cell + " " * (width - _text_width(cell))
            for cell, width, right in zip(row, widths, numeric, strict=True)
        ).rstrip()
        for row in [list(result.columns), ["-" * width for width in widths], *cells]
    ]
    return "\n".join(lines) + "\n"


def _format_cell(value: Value) -> str:
    text = printable(_value_text(value))
    return text if len(text) <= _MAX_CELL_CHARS else text[: _MAX_CELL_CHARS - 1] + "…"


def _value_text(value: Value) -> str:
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
        return ("" if path else ", ").join(_value_text(item) for item in value)
    return str(value)


def _text_width(text: str) -> int:
    """The number of columns that the text takes in a terminal."""
    wide_count = sum(unicodedata.east_asian_width(c) in "WF" for c in text)
    return len(text) + wide_count - sum(unicodedata.combining(c) > 0 for c in text)


def _format_csv(result: QueryResult) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\r\n")
    writer.writerow(result.columns)
    for row in result.rows:
        writer.writerow(
            escape_formula(json.dumps(v, ensure_ascii=False) if isinstance(v, list | dict) else v)
            for v in row
        )
    return out.getvalue()


def _format_json(result: QueryResult) -> str:
    return json.dumps(result.records(), ensure_ascii=False, indent=2, default=str) + "\n"


FORMATS: dict[str, Callable[[QueryResult], str]] = {
    "table": _format_table,
    "csv": _format_csv,
    "json": _format_json,
}
