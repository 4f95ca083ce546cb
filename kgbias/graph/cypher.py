"""Cypher on any store: which queries may run, and their results in one form for both engines.

A node becomes a dict of its label (`:label`) and properties, an edge of its type (`:type`) and
properties, a path the list of its nodes and edges in turn. So the same query prints the same rows
whether Neo4j or the embedded engine answers.

A query runs in a read-only transaction on Neo4j, and on SQLite in a view of the file, which a
separate process holds (`kgbias.graph.sqlite.cypher_view`).
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, NamedTuple
from unicodedata import category

from kgbias.errors import UsageError

Value = Any  # None, bool, int, float, str, or lists and dicts of these


# Everything that a query can be made of. Anything else is refused, lest a server read the query
# differently than we do.
_TOKEN_PATTERN = re.compile(
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
_ESCAPE_PATTERN = re.compile(r"\\(.)", re.DOTALL)
_ESCAPE_CHARACTERS = {
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "b": "\b",
    "f": "\f",
    **{c: c for c in "\\'\"`/"},
}
_BIDI = "\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
_VALUE_KINDS = ("text", "quoted", "parameter", "number")
_VALUE_WORDS = frozenset(("NULL", "TRUE", "FALSE", "END"))

# What a query or subquery can begin with.
_OPENING_WORDS = frozenset("MATCH OPTIONAL WITH UNWIND RETURN CALL".split())
_EXPLAIN_WORDS = frozenset(("EXPLAIN", "PROFILE"))
KEYWORDS = _OPENING_WORDS | frozenset(
    "WHERE ORDER BY SKIP OFFSET LIMIT UNION ALL DISTINCT YIELD AS AND OR XOR NOT IN STARTS ENDS "
    "CONTAINS IS NULL CASE WHEN THEN ELSE END ASC ASCENDING DESC DESCENDING TRUE FALSE EXISTS "
    "COUNT COLLECT ANY NONE SINGLE SHORTEST".split()
)
# Words of clauses that do more than read; as names they must be in backticks.
_WRITE_WORDS = frozenset(
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
    """A piece of a query. `kind` is the name of its part of the grammar (`_TOKEN_PATTERN`)."""

    kind: str
    text: str


class SafeQuery(NamedTuple):
    """A query that may go to a server, with its parameters."""

    text: str
    parameters: dict[str, Value]


def sanitise_query(text: str, parameters: Mapping[str, Value] | None = None) -> SafeQuery:
    """The query as it may go to a server, with its parameters. Raises UsageError for a query that
    might do more than read the graph.

    Only clauses, functions and procedures known to read only the graph are allowed: an engine's
    read-only mode does not stop LOAD CSV, which opens files and URLs, or procedures, which may do
    anything. The result has no comments and no escapes: a text that contains a backslash or a quote
    becomes a parameter. So every server reads the same words, whatever it takes for the end of a
    line, a comment or a text."""
    query_tokens = tokenise(text)
    _check_tokens([token for token in query_tokens if token.kind not in ("space", "comment")])
    values = dict(parameters or {})
    taken_names = values.keys() | {
        token.text[1:] for token in query_tokens if token.kind == "parameter"
    }
    candidates = (f"text_{number}" for number in count())
    free_names = (name for name in candidates if name not in taken_names)
    parts = []
    for token in query_tokens:
        if token.kind == "comment":
            # As a space: a comment may be all that stands between two words.
            parts.append(" ")
        elif token.kind == "text" and _needs_parameter(token.text):
            values[name := next(free_names)] = _ESCAPE_PATTERN.sub(
                lambda escape: _ESCAPE_CHARACTERS[escape[1]], token.text[1:-1]
            )
            parts.append(f"${name}")
        else:
            parts.append(token.text)
    return SafeQuery("".join(parts).strip(), values)


def strip_comments(text: str) -> str:
    """The query without its comments, for display. Raises UsageError for characters and escapes
    that `sanitise_query` refuses."""
    parts = [" " if token.kind == "comment" else token.text for token in tokenise(text)]
    return "\n".join(line.rstrip() for line in "".join(parts).splitlines() if line.strip())


def tokenise(text: str) -> list[Token]:
    """The pieces of a query, which make the whole of it. Raises UsageError for characters and
    escapes that `sanitise_query` refuses."""
    # Only line feeds remain: engines differ in what else ends a line, and so a comment.
    text = text.replace("\r\n", "\n")
    for character in text:
        hidden = category(character) in ("Cc", "Cs", "Zl", "Zp") and character not in "\n\t"
        if hidden or character in _BIDI:
            raise _refusal(f"this one contains the control character U+{ord(character):04X}")
    # Neo4j decodes \u before it reads the query: a quote could hide in one.
    if re.search(r"\\[uU]", text):
        raise _refusal("this one has a \\u escape: write the character itself")
    read_tokens, offset = [], 0
    while offset < len(text):
        match = _TOKEN_PATTERN.match(text, offset)
        if match is None:
            unread = text[offset : offset + 20].split("\n")[0]
            raise _refusal(
                f"{unread!r} cannot be read: put names with other letters in backticks, and texts "
                "in quotes"
            )
        read_tokens.append(Token(match.lastgroup or "", match[0]))
        offset = match.end()
    for token in read_tokens:
        if token.kind == "text":
            for escape in _ESCAPE_PATTERN.finditer(token.text):
                if escape[1] not in _ESCAPE_CHARACTERS:
                    raise _refusal(f"{escape[0]} is not an escape: write a backslash as two")
    return read_tokens


def _needs_parameter(text: str) -> bool:
    inside = text[1:-1]
    return any(c in inside for c in "\\'\"`\n\t") or "//" in inside or "/*" in inside


def _check_tokens(tokens: Sequence[Token]) -> None:
    """Raise UsageError unless each word is a name, or a keyword, function or procedure that reads.

    Two names are never adjacent in Cypher: in any unknown clause, LOAD CSV or one from a later
    server, the second word is where only a keyword can be."""
    after_value = False
    for place, token in enumerate(tokens):
        previous, following = _token_at(tokens, place - 1), _token_at(tokens, place + 1)
        word = token.text.upper() if token.kind == "word" else ""
        if previous.text in (".", ":") or (previous.text in ("{", ",") and following.text == ":"):
            word = ""  # a property, label or key
        elif _begins_query(tokens, place, word) and word not in _OPENING_WORDS:
            raise _refusal(
                f"such a query cannot begin with {token.text}, only with "
                f"{', '.join(sorted(_OPENING_WORDS))}"
            )
        elif word in _WRITE_WORDS:
            raise _refusal(f"{word} does more; a name spelled like it must be in backticks")
        elif after_value and word not in KEYWORDS and (word or token.kind in _VALUE_KINDS):
            raise _refusal(f"{token.text} cannot follow {previous.text}")
        elif word == "CALL":
            _check_call(tokens, place + 1)
        if following.text == "(" and token.kind in ("word", "quoted") and word not in KEYWORDS:
            _check_function(tokens, place)
        after_value = (
            token.kind in _VALUE_KINDS
            or token.text in (")", "]", "}")
            or (token.kind == "word" and (word not in KEYWORDS or word in _VALUE_WORDS))
        )


def _token_at(tokens: Sequence[Token], place: int) -> Token:
    return tokens[place] if 0 <= place < len(tokens) else Token("", "")


def _begins_query(tokens: Sequence[Token], place: int, word: str) -> bool:
    """Whether a query or subquery begins here, with something other than a pattern."""
    previous = _token_at(tokens, place - 1)
    if place == 0:
        return word not in _EXPLAIN_WORDS
    if place == 1 and previous.text.upper() in _EXPLAIN_WORDS:
        return True
    if previous.text.upper() in ("ALL", "DISTINCT") and previous.kind == "word" and word:
        previous = _token_at(tokens, place - 2)
    if previous.kind == "word" and previous.text.upper() == "UNION":
        return word not in ("ALL", "DISTINCT")
    return (
        previous.text == "{"
        and bool(word)
        and _token_at(tokens, place + 1).text not in (",", "}", "=")
    )


def _check_call(tokens: Sequence[Token], place: int) -> None:
    """Check what CALL calls: a subquery in braces, with or without variables before it, or a
    procedure."""
    first_token = _token_at(tokens, place)
    if first_token.text == "{":
        return
    if first_token.text == "(":
        while _token_at(tokens, place).text not in (")", ""):
            place += 1
        if _token_at(tokens, place + 1).text == "{":
            return
    name = ""
    while (token := _token_at(tokens, place)).kind in ("word", "quoted") or token.text == ".":
        name, place = name + token.text, place + 1
    if name not in PROCEDURES:
        raise _refusal(f"it cannot call {name or 'that'}, only {', '.join(sorted(PROCEDURES))}")


def _check_function(tokens: Sequence[Token], place: int) -> None:
    name = tokens[place].text
    while _token_at(tokens, place - 1).text == ".":
        place -= 2
        name = f"{_token_at(tokens, place).text}.{name}"
    previous = _token_at(tokens, place - 1)
    if previous.kind == "word" and previous.text.upper() == "CALL" and name in PROCEDURES:
        return
    if name.lower() not in _FUNCTIONS:
        raise _refusal(f"{name} is not a function known to do only that")


def _refusal(why: str) -> UsageError:
    return UsageError(f"the query cannot be run: a query may only read the graph, and {why}")


# `\Z`: what is not closed goes to the end, so that no LIMIT in it is touched.
_COMMENT_PATTERN = r"//[^\n]*|/\*.*?(?:\*/|\Z)"
_QUOTED_PATTERN = r"'(?:[^'\\]|\\.)*(?:'|\Z)|\"(?:[^\"\\]|\\.)*(?:\"|\Z)|`[^`]*(?:`|\Z)"
_LIMIT_PATTERN = re.compile(
    rf"{_COMMENT_PATTERN}|{_QUOTED_PATTERN}|\bLIMIT\s+(?:\$(\w+)|toInteger\s*\(\s*\$(\w+)\s*\))",
    re.DOTALL | re.IGNORECASE,
)


def inline_limits(text: str, parameters: Mapping[str, Value]) -> str:
    """The query with each parameter of a LIMIT replaced by its whole number. If the embedded engine
    can read the limit in the text, it keeps only that many rows while it sorts: five to ten times
    as fast on a million."""

    def inline_limit(match: re.Match[str]) -> str:
        value = parameters.get(match[1] or match[2] or "")
        # `type`, since True is an int too; 2^63 is the end of Cypher's integers.
        return f"LIMIT {value}" if type(value) is int and 0 <= value < 2**63 else match[0]

    return _LIMIT_PATTERN.sub(inline_limit, text)


@dataclass(frozen=True, slots=True)
class QueryResult:
    """The rows of a query, in its order, under the names of its columns."""

    columns: tuple[str, ...]
    rows: list[tuple[Value, ...]]

    def records(self) -> list[dict[str, Value]]:
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]


def node_dict(labels: Sequence[str], properties: Mapping[str, Value]) -> dict[str, Value]:
    return {":label": ":".join(sorted(labels)), **dict(sorted(properties.items()))}


def edge_dict(kind: str, properties: Mapping[str, Value]) -> dict[str, Value]:
    return {":type": kind, **dict(sorted(properties.items()))}


def path_list(nodes: Sequence[Value], edges: Sequence[Value]) -> list[Value]:
    """The nodes and edges of a path in turn, beginning and ending with a node."""
    alternating: list[Value] = [nodes[0]]
    for step, end in zip(edges, nodes[1:], strict=True):
        alternating += [step, end]
    return alternating
