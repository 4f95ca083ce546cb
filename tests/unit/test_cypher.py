"""Which queries are handed to an engine, and in which words: see `kgbias.graph.cypher`."""

import re

import pytest

from kgbias.errors import UsageError
from kgbias.graph.cypher import sanitise_query, strip_comments
from kgbias.query import load_query, query_names
from tests.texts import Texts

FILE = "'file:///etc/passwd' AS r RETURN r"
MORE = {
    "after a comment that ends at a carriage return": (
        f"MATCH (n) WITH n LIMIT 1 // x\rLOAD CSV FROM {FILE}"
    ),
    "after one that ends at a line separator": f"MATCH (n) WITH n // x\u2028LOAD CSV FROM {FILE}",
    "after one that ends at a next line": f"MATCH (n) WITH n // x\x85LOAD CSV FROM {FILE}",
    "after a form feed": f"MATCH (n) WITH n // x\x0cLOAD CSV FROM {FILE}",
    "in letters that are written by number": f"\\u004cOAD CSV FROM {FILE}",
    "in many of them": f"\\uuu004cOAD CSV FROM {FILE}",
    "behind a quote written by number": f"WITH 'a\\u0027 AS x LOAD CSV FROM {FILE} //' AS y",
    "behind an escaped backslash": f"WITH 'a\\\\u0027 AS x LOAD CSV FROM {FILE} //' AS y RETURN y",
    "behind a name in backticks": f"WITH 1 AS `a``b` LOAD CSV FROM {FILE}",
    "behind a nested comment": f"/* /* */ MATCH (n) */ LOAD CSV FROM {FILE}",
    "behind a comment without an end": f"MATCH (n) RETURN n /* LOAD CSV FROM {FILE}",
    "with a space of another script": f"LOAD\u00a0CSV FROM {FILE}",
    "in letters of another script": f"\uff2cOAD CSV FROM {FILE}",
    "as the first words": f"LOAD CSV FROM {FILE}",
    "as small letters": f"load\n\tcsv from {FILE}",
    "in a subquery": f"CALL {{ LOAD CSV FROM {FILE} }} RETURN r",
    "in a subquery with variables": f"MATCH (n) CALL (n) {{ LOAD CSV FROM {FILE} }} RETURN r",
    "after a union": f"RETURN 1 AS r UNION ALL LOAD CSV FROM {FILE}",
    "after a property": f"MATCH (n) WITH n.LOAD CSV FROM {FILE}",
    "after a number": f"WITH 1.LOAD CSV FROM {FILE}",
    "after a plan": f"EXPLAIN LOAD CSV FROM {FILE}",
    "a second statement": f"RETURN 1; LOAD CSV FROM {FILE}",
    "for another planner": "CYPHER runtime=slotted MATCH (n) RETURN n",
    "a procedure": "CALL db.clearQueryCaches()",
    "a procedure without brackets": "CALL db.clearQueryCaches",
    "a procedure of the server": "CALL dbms.queryJmx('*:*') YIELD name RETURN name",
    "a procedure in the midst": "MATCH (n) CALL dbms.queryJmx('*:*') YIELD name RETURN name",
    "a procedure in backticks": "CALL `dbms`.`queryJmx`('*:*')",
    "a procedure that only looks allowed": "CALL db.labels.clear() YIELD x RETURN x",
    "APOC": "CALL apoc.load.json('file:///etc/passwd') YIELD value RETURN value",
    "a function of APOC": "RETURN apoc.util.md5(['x'])",
    "a function in backticks": "RETURN `apoc`.util.md5(['x'])",
    "a function that sends": "RETURN genai.vector.encode('x', 'OpenAI', {token: 't'})",
    "transactions": "TERMINATE TRANSACTIONS 'neo4j-transaction-1'",
    "transactions of a subquery": "CALL { TERMINATE TRANSACTIONS 'x' YIELD message } RETURN 1",
    "users": "SHOW USERS",
    "databases": "SHOW DATABASES YIELD name RETURN name",
    "another graph": "USE other MATCH (n) RETURN n",
    "a node": "CREATE (n)",
    "a node after others": "MATCH (m) MERGE (n:X) RETURN n",
    "deleting": "MATCH (n) DETACH DELETE n",
    "deleting after a star": "MATCH (n) WITH * DELETE [n][0]",
    "setting": "MATCH (n) SET n.x = 1",
    "for each": "MATCH (n) FOREACH (x IN [1] | SET n.x = 1)",
    "a clause that nobody knows yet": "MATCH (n) FETCH PAGE 'http://x' AS p RETURN p",
    "an escape that is none": "RETURN 'a\\d'",
    "a direction": "RETURN 'a\u202eb' AS x",
    "a half of a character": "RETURN '\ud800'",
}


@pytest.mark.parametrize("name", MORE)
def test_a_query_that_might_do_more_than_read_is_refused(name: str, texts: Texts) -> None:
    with texts.raises(UsageError) as refused:
        sanitise_query(MORE[name])
    assert "\n" not in str(refused.value)


READ = [
    "MATCH (g:SocialGroup)-[s:STEREOTYPE {run: $run}]->(o:Object) WHERE s.count > 1 AND NOT o.text "
    "STARTS WITH 'a' RETURN g.name AS group, count(DISTINCT o) AS n ORDER BY n DESC LIMIT 5",
    "match (a)--(b) where a.name =~ '.*x' return distinct a, b.load AS l skip 1 limit 2",
    "MATCH p = shortestPath((a)-[:SUBJECT|OBJECT*1..3]-(b)) RETURN [x IN nodes(p) | x.name] AS l",
    "MATCH (n) RETURN CASE WHEN n.x IS NULL THEN -1 ELSE n.x END AS x, n {.name, set: 1} AS m",
    "MATCH (n) WHERE EXISTS { MATCH (n)--(:Run) } AND COUNT { (n)--() } > 2 RETURN n.`LOAD CSV`",
    "MATCH (n) CALL { WITH n RETURN 1 AS x UNION ALL RETURN 2 AS x } RETURN sum(x), [1][0..2]",
    "MATCH (n) CALL (n) { MATCH (n)-[r]->() RETURN r } RETURN type(r) AS type",
    "CALL db.labels() YIELD label RETURN label",
    "UNWIND [1, 2.5, 1e3, .5] AS x RETURN duration.between(date('2020-01-01'), date()) AS d, x % 2",
    "EXPLAIN MATCH (n) RETURN any(x IN n.list WHERE x > 1), reduce(a = 0, x IN [1] | a + x), $1",
    "RETURN 'LOAD CSV FROM x' AS a UNION RETURN 'naïve \u200d' AS a",
]


@pytest.mark.parametrize("text", READ)
def test_a_query_that_reads_is_handed_on_as_it_is(text: str) -> None:
    assert sanitise_query(text, {"run": "x"}) == (text, {"run": "x"})


@pytest.mark.parametrize("name", query_names())
def test_the_library_reads(name: str) -> None:
    text, values = sanitise_query(load_query(name).text)
    assert values == {} and "//" not in text


def test_comments_and_escapes_stay_here() -> None:
    text = (
        "MATCH (n) // it's\r\nWHERE n.a = 'it\\'s' AND n.b = \"a'b\" /* x\n */ AND n.c = $text_0 "
    )
    text += "RETURN 'http://x', '\\\\d'"
    handed, values = sanitise_query(text, {"run": 1})
    assert handed == (
        "MATCH (n)  \nWHERE n.a = $text_1 AND n.b = $text_2   AND n.c = $text_0 "
        "RETURN $text_3, $text_4"
    )
    assert values == {
        "run": 1,
        "text_1": "it's",
        "text_2": "a'b",
        "text_3": "http://x",
        "text_4": "\\d",
    }
    assert not re.search(r"[\\\r]|//|/\*", handed)


def test_a_query_of_a_model_is_shown_as_it_runs(texts: Texts) -> None:
    assert strip_comments("MATCH (n)  // all\n// x\nRETURN n.a /* so */") == (
        "MATCH (n)\nRETURN n.a"
    )
    with texts.raises(UsageError):
        strip_comments("MATCH (n) RETURN n // x\rLOAD CSV FROM 'x' AS r RETURN r")


def test_a_long_query_takes_no_time() -> None:
    sanitise_query("RETURN [" + ", ".join(f"'{n}'" for n in range(1_000)) + "] AS x")
    for text in ("RETURN '" + "\\\\" * 20_000, "/*" * 5_000, "RETURN " + "(" * 5_000):
        try:
            sanitise_query(text)
        except UsageError:
            continue
