"""Queries that do more than read the graph, hidden in odd characters, and what a server makes of
those that pass the filter."""

import random
import re
from collections.abc import Callable, Iterator
from typing import Any

from kgbias.errors import UsageError
from kgbias.graph.cypher import PROCEDURES, sanitise_query

FILE = "'file:///etc/passwd' AS r RETURN r"
_MORE = (
    f"LOAD CSV FROM {FILE}",
    f"LOAD CSV WITH HEADERS FROM {FILE}",
    "CALL db.clearQueryCaches()",
    "CALL dbms.queryJmx('*:*') YIELD name RETURN name",
    "TERMINATE TRANSACTIONS 'x'",
    "SHOW USERS",
    "SHOW SETTINGS YIELD name RETURN name",
    "CREATE (m)",
    "MERGE (m:X {a: 1})",
    "SET n.x = 1",
    "DETACH DELETE n",
    "FOREACH (x IN [1] | CREATE (:X))",
    "CALL { CREATE (m) } IN TRANSACTIONS",
    "ALTER CURRENT USER SET PASSWORD FROM 'a' TO 'b'",
    "DROP INDEX x",
    "CREATE USER x SET PASSWORD 'y'",
)
_BEFORE = (
    "",
    "MATCH (n) ",
    "MATCH (n) WITH n LIMIT 1 ",
    "UNWIND [1] AS n ",
    "EXPLAIN ",
    "PROFILE ",
    "RETURN 1 AS r UNION ALL ",
    "MATCH (n) CALL { ",
    "CALL () { ",
    "MATCH (n) RETURN n // ",
    "WITH 'a' AS n ",
    "WITH 1 AS `n` ",
    "MATCH (n) RETURN n; ",
    "CYPHER 5 ",
    "USE neo4j ",
    "RETURN [x IN [1] | x] AS y ",
    "MATCH (n) WHERE n.a = '",
    'RETURN "',
    "RETURN `",
    "/* ",
    "",
)
_AFTER = ("", "", "", " }", " } RETURN 1", " // x", " /* x", "'", '"', "`", ";", "\\")
_SPACES = (
    "\t\n\r\x0b\x0c\x1c\x1f\x85\xa0\u1680\u180e\u2000\u2009\u2028\u2029\u202f\u3000\ufeff\u200b\0"
)
_GLUE = (
    "/**/",
    "/* x */",
    "/*/**/*/",
    "// x\n",
    "// x\r",
    "// x\u2028",
    "// x\x85",
    "//\x0c",
    "'",
    '"',
    "`",
    "``",
    "\\'",
    "\\\\",
    "\\u0027",
    "\\u0022 ",
    "\\u0060",
    "\\u000a",
    "\\uuu000d",
    "\\u002f/",
    "*/",
    ";",
    "\x00",
    "\u200d",
    "\u202e",
    "\x1a",
    "\\n",
    "+",
    "(",
    ")",
    "{",
    "}",
    "1",
    ".",
    ":",
)
_ALIKE = {"s": "\u017f", "k": "\u212a", "i": "\u0130\u0131", "a": "\u0430", "e": "\u0435"}


_FRAMES = (  # queries that read, around names and texts
    "MATCH (n:{N})-[r:{N}|{N}]->(m {{{N}: {T}}}) WHERE n.{N} = {T} RETURN n.{N} AS {N}",
    "WITH {T} AS {N} MATCH (n) WHERE n.x = {T} OR n.x =~ {T} RETURN *",
    "CALL {{ MATCH (n:{N}) RETURN n.{N} AS x UNION RETURN {T} AS x }} RETURN x",
    "MATCH p = (n)--(m) RETURN [x IN nodes(p) WHERE x.{N} = {T} | x.{N}] AS l, {{{N}: {T}}} AS m",
    "UNWIND [{T}, {T}] AS t RETURN CASE t WHEN {T} THEN {T} ELSE t.{N} END AS {N} /* {T} */",
)


def hostile_queries(rng: random.Random) -> Iterator[str]:
    """Queries without end: those that do more, and those that name what does."""
    while True:
        text = rng.choice(_BEFORE) + rng.choice(_MORE) + rng.choice(_AFTER)
        changes = rng.choice((0, 1, 1, 2, 3))
        if rng.random() < 0.5:
            text = (
                "".join(
                    _random_name(rng)
                    if part == "{N}"
                    else _random_text(rng)
                    if part == "{T}"
                    else part
                    for part in re.split(r"(\{[NT]\})", rng.choice(_FRAMES))
                )
                .replace("{{", "{")
                .replace("}}", "}")
            )
            changes = rng.choice((0, 0, 1))
        for _ in range(changes):
            text = rng.choice(_CHANGES)(text, rng)
        yield text


def _random_name(rng: random.Random) -> str:
    more = rng.choice(_MORE)
    return rng.choice((more.split()[0], f"`{more}`", f"`{rng.choice(_GLUE)} {more}`", "x", "y"))


def _random_text(rng: random.Random) -> str:
    """A text that a server might take to end early, with what does more after that."""
    mark = rng.choice("'\"")
    odd = ("", "\\", "\\\\", f"\\{mark}", "//", "/*", "*/", "\n", "\\n", "`", "\xa0", *_GLUE)
    inside = "".join((rng.choice(odd), rng.choice(odd), " ", rng.choice(_MORE), rng.choice(odd)))
    return rng.choice((mark + inside.replace(mark, f"\\{mark}") + mark, mark + inside + mark, "1"))


def _change_space(text: str, rng: random.Random) -> str:
    places = [n for n, c in enumerate(text) if c == " "]
    return _replace_at(text, rng.choice(places), rng.choice(_SPACES), 1) if places else text


def _insert_comment(text: str, rng: random.Random) -> str:
    return _replace_at(text, rng.randrange(len(text) + 1), rng.choice(_GLUE), 0)


def _escape_letter(text: str, rng: random.Random) -> str:
    at = rng.randrange(len(text))
    return _replace_at(text, at, f"\\{'u' * rng.choice((1, 1, 2, 4))}{ord(text[at]):04x}", 1)


def _change_letter(text: str, rng: random.Random) -> str:
    at = rng.randrange(len(text))
    alike = _ALIKE.get(text[at].lower(), "") + text[at].swapcase()
    wide = chr(ord(text[at]) + 0xFEE0) if "!" <= text[at] <= "~" else text[at]
    return _replace_at(text, at, rng.choice(alike + wide), 1)


def _repeat_part(text: str, rng: random.Random) -> str:
    a, b = sorted(rng.randrange(len(text) + 1) for _ in range(2))
    return text[:b] + text[a:]


def _drop_letter(text: str, rng: random.Random) -> str:
    return _replace_at(text, rng.randrange(len(text)), "", 1)


def _replace_at(text: str, at: int, replacement: str, length: int) -> str:
    return text[:at] + replacement + text[at + length :]


_CHANGES: tuple[Callable[[str, random.Random], str], ...] = (
    _change_space,
    _insert_comment,
    _insert_comment,
    _escape_letter,
    _change_letter,
    _repeat_part,
    _drop_letter,
)


def accept_query(text: str) -> tuple[str, dict[str, Any]] | None:
    """What a server would get of a query; None if it is refused."""
    try:
        return sanitise_query(text)
    except UsageError:
        return None


def find_side_effects(run: Callable[..., Any], text: str, values: dict[str, Any]) -> str:
    """What a server would do besides reading the graph, by its own plan; "" if it cannot read the
    query, or would only read. `run` is a driver's `execute_query`; nothing is executed."""
    import neo4j

    explained = (
        text if text.split()[:1] == ["EXPLAIN"] else f"EXPLAIN {text.removeprefix('PROFILE')}"
    )
    try:
        summary = run(explained, values).summary
    except neo4j.exceptions.Neo4jError:
        return ""
    effects = [] if summary.query_type == "r" else [f"type {summary.query_type}"]
    plans = [summary.plan] if summary.plan else []
    while plans:
        plan = plans.pop()
        plans += plan.get("children", [])
        kind, details = plan["operatorType"].split("@")[0], str(plan["args"].get("Details", ""))
        if kind == "ProcedureCall" and not any(details.startswith(f"{p}(") for p in PROCEDURES):
            effects.append(details)
        elif kind.startswith(("LoadCSV", "Show", "Terminate", "Alter", "Create", "Drop")):
            effects.append(kind)
    return ", ".join(effects)
