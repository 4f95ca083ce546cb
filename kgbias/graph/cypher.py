"""Cypher on any store: which queries may run, and their results in one form for both engines.

A node becomes a dict of its label (`:label`) and properties, an edge of its type (`:type`) and
properties, a path the list of its nodes and edges in turn. So the same query prints the same rows
whether Neo4j or the embedded engine answers.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any
from unicodedata import category

from kgbias.errors import UsageError

Value = Any  # None, bool, int, float, str, or lists and dicts of these


# Everything that a query can be made of. Anything else is refused, lest a server read the query
# differently than we do.
_TOKEN = re.compile(
    r"""
      (?P<space>[ \t\n]+)
    | (?P<comment>//[^\n]*|/\*.*?\*/)
    | (?P<text>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")
    | (?P<quoted>`[^`\\\n]+`)
    | (?P<parameter>\$[A-Za-z0-9_]+)
    | (?P<word>[A-Za-z_][A-Za-z0-9_]*)
    | (?P<number>(?:0[xo][0-9a-fA-F]+|(?:\.[0-9]+|[0-9][0-9_]*(?:\.[0-9]+)?)(?:[eE][+-]?[0-9]+)?)
      (?![A-Za-z0-9_]))
    | (?P<sign>\.\.|/(?![/*])|[()\[\]{},.:|&!%+\-*^=~<>])
    """,
    re.VERBOSE | re.DOTALL,
)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f", **{c: c for c in "\\'\"`/"}}
_BIDI = "\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
_VALUES = ("text", "quoted", "parameter", "number")
_VALUE_WORDS = frozenset(("NULL", "TRUE", "FALSE", "END"))

# What a query or subquery can begin with.
_BEGIN = frozenset("MATCH OPTIONAL WITH UNWIND RETURN CALL".split())
_EXPLAINED = frozenset(("EXPLAIN", "PROFILE"))
_KEYWORDS = _BEGIN | frozenset(
    "WHERE ORDER BY SKIP OFFSET LIMIT UNION ALL DISTINCT YIELD AS AND OR XOR NOT IN STARTS ENDS "
    "CONTAINS IS NULL CASE WHEN THEN ELSE END ASC ASCENDING DESC DESCENDING TRUE FALSE EXISTS "
    "COUNT COLLECT ANY NONE SINGLE SHORTEST".split()
)
# Words of clauses that do more than read; as names they must be in backticks.
_MORE = frozenset(
    "LOAD CSV CREATE INSERT MERGE SET DELETE DETACH NODETACH REMOVE FOREACH DROP ALTER RENAME "
    "GRANT DENY REVOKE SHOW TERMINATE USE".split()
)
PROCEDURES = frozenset(
    "db.labels db.relationshipTypes db.propertyKeys db.schema.visualization "
    "db.schema.nodeTypeProperties db.schema.relTypeProperties db.index.fulltext.queryNodes "
    "db.index.fulltext.queryRelationships db.index.vector.queryNodes "
    "db.index.vector.queryRelationships".split()
)
_FUNCTIONS = frozenset(
    """
    all any exists isempty none single coalesce elementid endnode head id last length char_length
    character_length size startnode timestamp toboolean tobooleanornull tofloat tofloatornull
    tointeger tointegerornull type valuetype nullif randomuuid properties avg collect count max min
    percentilecont percentiledisc stdev stdevp sum keys labels nodes range reduce relationships
    reverse tail tobooleanlist tofloatlist tointegerlist tostringlist abs ceil floor isnan rand
    round sign e exp log log10 sqrt acos asin atan atan2 cos cosh cot coth degrees haversin pi
    radians sin sinh tan tanh btrim left lower upper ltrim normalize replace right rtrim split
    substring tolower tostring tostringornull toupper trim shortestpath allshortestpaths
    date date.truncate datetime datetime.truncate datetime.fromepoch datetime.fromepochmillis
    localdatetime localdatetime.truncate localtime localtime.truncate time time.truncate
    duration duration.between duration.inmonths duration.indays duration.inseconds
    point point.distance point.withinbbox vector.similarity.cosine vector.similarity.euclidean
    """.split()
)


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of a query. `kind` is the name of its part of the grammar (`_TOKEN`)."""

    kind: str
    text: str


def only_the_graph(
    text: str, parameters: Mapping[str, Value] | None = None
) -> tuple[str, dict[str, Value]]:
    """The query as it may go to a server, with its parameters. Raises UsageError for a query that
    might do more than read the graph.

    Only clauses, functions and procedures known to read only the graph are allowed: an engine's
    read-only mode does not stop LOAD CSV, which opens files and URLs, or procedures, which may do
    anything. The result has no comments and no escapes: a text that contains a backslash or a quote
    becomes a parameter. So every server reads the same words, whatever it takes for the end of a
    line, a comment or a text."""
    found = tokens(text)
    _check([token for token in found if token.kind not in ("space", "comment")])
    values = dict(parameters or {})
    taken = values.keys() | {token.text[1:] for token in found if token.kind == "parameter"}
    free = (name for n in count() if (name := f"text_{n}") not in taken)
    parts = []
    for token in found:
        if token.kind == "comment":
            parts.append(" ")
        elif token.kind == "text" and _odd(token.text):
            values[name := next(free)] = _ESCAPED.sub(
                lambda escape: _ESCAPES[escape[1]], token.text[1:-1]
            )
            parts.append(f"${name}")
        else:
            parts.append(token.text)
    return "".join(parts).strip(), values


def without_comments(text: str) -> str:
    """The query without its comments, for display. Raises UsageError for characters and escapes
    that `only_the_graph` refuses."""
    parts = [" " if token.kind == "comment" else token.text for token in tokens(text)]
    return "\n".join(line.rstrip() for line in "".join(parts).splitlines() if line.strip())


def tokens(text: str) -> list[Token]:
    """The pieces of a query, which make the whole of it. Raises UsageError for characters and
    escapes that `only_the_graph` refuses."""
    text = text.replace("\r\n", "\n")
    for character in text:
        hidden = category(character) in ("Cc", "Cs", "Zl", "Zp") and character not in "\n\t"
        if hidden or character in _BIDI:
            raise _refused(f"this one contains the control character U+{ord(character):04X}")
    if re.search(r"\\[uU]", text):
        raise _refused("this one has a \\u escape: write the character itself")
    found, at = [], 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            rest = text[at : at + 20].split("\n")[0]
            raise _refused(
                f"{rest!r} cannot be read: put names with other letters in backticks, and texts "
                "in quotes"
            )
        found.append(Token(match.lastgroup or "", match[0]))
        at = match.end()
    for token in found:
        if token.kind == "text":
            for escape in _ESCAPED.finditer(token.text):
                if escape[1] not in _ESCAPES:
                    raise _refused(f"{escape[0]} is not an escape: write a backslash as two")
    return found


def _odd(text: str) -> bool:
    inside = text[1:-1]
    return any(c in inside for c in "\\'\"`\n\t") or "//" in inside or "/*" in inside


def _check(tokens: Sequence[Token]) -> None:
    """Raise UsageError unless each word is a name, or a keyword, function or procedure that reads.

    Two names are never adjacent in Cypher: in any unknown clause, LOAD CSV or one from a later
    server, the second word is where only a keyword can be."""
    after_value = False
    for place, token in enumerate(tokens):
        before, after = _at(tokens, place - 1), _at(tokens, place + 1)
        word = token.text.upper() if token.kind == "word" else ""
        if before.text in (".", ":") or (before.text in ("{", ",") and after.text == ":"):
            word = ""  # a property, label or key
        elif _begins(tokens, place, word) and word not in _BEGIN:
            raise _refused(
                f"such a query cannot begin with {token.text}, only with "
                f"{', '.join(sorted(_BEGIN))}"
            )
        elif word in _MORE:
            raise _refused(f"{word} does more; a name spelled like it must be in backticks")
        elif after_value and word not in _KEYWORDS and (word or token.kind in _VALUES):
            raise _refused(f"{token.text} cannot follow {before.text}")
        elif word == "CALL":
            _check_call(tokens, place + 1)
        if after.text == "(" and token.kind in ("word", "quoted") and word not in _KEYWORDS:
            _check_function(tokens, place)
        after_value = (
            token.kind in _VALUES
            or token.text in (")", "]", "}")
            or (token.kind == "word" and (word not in _KEYWORDS or word in _VALUE_WORDS))
        )


def _at(tokens: Sequence[Token], place: int) -> Token:
    return tokens[place] if 0 <= place < len(tokens) else Token("", "")


def _begins(tokens: Sequence[Token], place: int, word: str) -> bool:
    """Whether a query or subquery begins here, with something other than a pattern."""
    before = _at(tokens, place - 1)
    if place == 0:
        return word not in _EXPLAINED
    if place == 1 and before.text.upper() in _EXPLAINED:
        return True
    if before.text.upper() in ("ALL", "DISTINCT") and before.kind == "word" and word:
        before = _at(tokens, place - 2)
    if before.kind == "word" and before.text.upper() == "UNION":
        return word not in ("ALL", "DISTINCT")
    return before.text == "{" and bool(word) and _at(tokens, place + 1).text not in (",", "}", "=")


def _check_call(tokens: Sequence[Token], place: int) -> None:
    """Check what CALL calls: a subquery in braces, with or without variables before it, or a
    procedure."""
    first = _at(tokens, place)
    if first.text == "{":
        return
    if first.text == "(":
        while _at(tokens, place).text not in (")", ""):
            place += 1
        if _at(tokens, place + 1).text == "{":
            return
    name = ""
    while (token := _at(tokens, place)).kind in ("word", "quoted") or token.text == ".":
        name, place = name + token.text, place + 1
    if name not in PROCEDURES:
        raise _refused(f"it cannot call {name or 'that'}, only {', '.join(sorted(PROCEDURES))}")


def _check_function(tokens: Sequence[Token], place: int) -> None:
    name = tokens[place].text
    while _at(tokens, place - 1).text == ".":
        place -= 2
        name = f"{_at(tokens, place).text}.{name}"
    called = _at(tokens, place - 1)
    if called.kind == "word" and called.text.upper() == "CALL" and name in PROCEDURES:
        return
    if name.lower() not in _FUNCTIONS:
        raise _refused(f"{name} is not a function known to do only that")


def _refused(why: str) -> UsageError:
    return UsageError(f"the query cannot be run: a query may only read the graph, and {why}")


_COMMENT = r"//[^\n]*|/\*.*?(?:\*/|\Z)"
_QUOTED = r"'(?:[^'\\]|\\.)*(?:'|\Z)|\"(?:[^\"\\]|\\.)*(?:\"|\Z)|`[^`]*(?:`|\Z)"
_LIMIT = re.compile(
    rf"{_COMMENT}|{_QUOTED}|\bLIMIT\s+(?:\$(\w+)|toInteger\s*\(\s*\$(\w+)\s*\))",
    re.DOTALL | re.IGNORECASE,
)


def with_limits(text: str, parameters: Mapping[str, Value]) -> str:
    """The query with each parameter of a LIMIT replaced by its whole number. If the embedded engine
    can read the limit in the text, it keeps only that many rows while it sorts: five to ten times
    as fast on a million."""

    def written(found: re.Match[str]) -> str:
        value = parameters.get(found[1] or found[2] or "")
        return f"LIMIT {value}" if type(value) is int and 0 <= value < 2**63 else found[0]

    return _LIMIT.sub(written, text)


@dataclass(frozen=True, slots=True)
class QueryResult:
    """The rows of a query, in its order, under the names of its columns."""

    columns: tuple[str, ...]
    rows: list[tuple[Value, ...]]

    def records(self) -> list[dict[str, Value]]:
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]


def node(labels: Sequence[str], properties: Mapping[str, Value]) -> dict[str, Value]:
    return {":label": ":".join(sorted(labels)), **dict(sorted(properties.items()))}


def edge(kind: str, properties: Mapping[str, Value]) -> dict[str, Value]:
    return {":type": kind, **dict(sorted(properties.items()))}


def path(nodes: Sequence[Value], edges: Sequence[Value]) -> list[Value]:
    """The nodes and edges of a path in turn, beginning and ending with a node."""
    turns: list[Value] = [nodes[0]]
    for step, end in zip(edges, nodes[1:], strict=True):
        turns += [step, end]
    return turns
