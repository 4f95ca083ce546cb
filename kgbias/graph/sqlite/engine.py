"""The process in which the embedded Cypher engine runs: a view for each question.

A process of its own, because the engine takes nearly all of glibc's reserve for static thread-local
storage: in a process that holds it, PyTorch and scikit-learn can no longer both be loaded. It also
means that the view's memory is given back, and that Ctrl-C ends a query that would not end.
"""

import pickle
import sqlite3
import sys
from collections.abc import Collection, Mapping
from typing import Any

import kglite
import pandas

from kgbias.errors import KgbiasError, UsageError
from kgbias.graph.cypher import QueryResult, Value, edge, node, path
from kgbias.graph.sqlite.database import Database

# label -> (the key, the property that names it, its rows)
_NODES = {
    "Category": ("name", "name", "SELECT name, singular, plural FROM category"),
    "SocialGroup": ("uid", "name", 'SELECT id AS uid, name FROM "group"'),
    "Predicate": ("uid", "text", "SELECT id AS uid, text FROM predicate"),
    "Object": ("uid", "text", "SELECT id AS uid, text FROM object"),
    "Triple": (
        "uid",
        "text",
        "SELECT triple.id AS uid, group_id AS group_uid, \"group\".name || ' ' || predicate.text "
        "|| ' ' || object.text AS text FROM triple "
        'JOIN "group" ON "group".id = group_id JOIN predicate ON predicate.id = predicate_id '
        "JOIN object ON object.id = object_id",
    ),
    "Model": ("uid", "name", "SELECT id AS uid, name, revision FROM model"),
    "Run": (
        "uid",
        "name",
        "SELECT id AS uid, name, kind, config, settings, status, created, version, seq - 1 AS seq "
        "FROM run",
    ),
    "Generation": (
        "uid",
        "path",
        "SELECT id AS uid, path, arm, strategy, iteration, attempt, outcome, reason, template, "
        "template_hash, prompt, answer_key, group_id AS group_uid, count FROM generation",
    ),
    "Answer": (
        "key",
        "key",
        "SELECT key, model_id, text, finish, prompt_tokens, completion_tokens, seconds, details "
        "FROM answer",
    ),
    "Metric": (
        "uid",
        "measure",
        "SELECT id AS uid, measure, scorer, version, verbaliser FROM metric",
    ),
    "AssociationTest": (
        "uid",
        "name",
        "SELECT association_test.id AS uid, association_test.name, method, model.name AS model, "
        "effect_size, p_value, low, high, record FROM association_test "
        "JOIN model ON model.id = model_id",
    ),
    "Topic": (
        "uid",
        "name",
        "SELECT id AS uid, category, (SELECT group_concat(value, ' ') FROM "
        "(SELECT value FROM json_each(words) LIMIT 4)) AS name FROM topic",
    ),
    "Statement": (
        "uid",
        "text",
        "SELECT statement.id AS uid, predicate.text || ' ' || object.text AS text FROM statement "
        "JOIN predicate ON predicate.id = predicate_id JOIN object ON object.id = object_id",
    ),
}
# type, label it leaves, label it enters, its rows: ends a and b, then properties
_EDGES = (
    (
        "IN_CATEGORY",
        "SocialGroup",
        "Category",
        "SELECT DISTINCT group_id AS a, category AS b FROM run_group "
        "JOIN category ON category.name = category",
    ),
    ("SUBJECT", "Triple", "SocialGroup", "SELECT id AS a, group_id AS b FROM triple"),
    ("PREDICATE", "Triple", "Predicate", "SELECT id AS a, predicate_id AS b FROM triple"),
    ("OBJECT", "Triple", "Object", "SELECT id AS a, object_id AS b FROM triple"),
    ("OF", "Run", "Model", "SELECT id AS a, model_id AS b FROM run"),
    (
        "SEEDED",
        "Run",
        "SocialGroup",
        "SELECT run_id AS a, group_id AS b, position, category FROM run_group",
    ),
    ("IN", "Generation", "Run", "SELECT id AS a, run_id AS b FROM generation"),
    (
        "YIELDED",
        "Generation",
        "Triple",
        "SELECT id AS a, triple_id AS b, count, said_predicate AS predicate, said_object AS object "
        "FROM generation WHERE triple_id IS NOT NULL",
    ),
    (
        "SHOWN",
        "Generation",
        "Triple",
        "SELECT generation_id AS a, triple_id AS b, position FROM shown "
        "JOIN triple ON triple.id = triple_id",
    ),
    (
        "SCORED",
        "Triple",
        "Metric",
        "SELECT triple_id AS a, metric_id AS b, value, label FROM score "
        "JOIN triple ON triple.id = triple_id",
    ),
    (
        "MEASURED_BY",
        "Run",
        "Metric",
        "SELECT run_id AS a, metric_id AS b, measure FROM run_metric",
    ),
    (
        "FIGURE",
        "Run",
        "SocialGroup",
        "SELECT run_id AS a, group_id AS b, measure, value, low, high, n, method FROM group_score",
    ),
    ("TESTED", "Run", "AssociationTest", "SELECT run_id AS a, test_id AS b FROM run_association"),
    (
        "TARGET",
        "AssociationTest",
        "SocialGroup",
        "SELECT test_id AS a, node_id AS b, side FROM association_edge "
        "WHERE side IN ('x', 'y') AND kind = 'group'",
    ),
    (
        "ATTRIBUTE",
        "AssociationTest",
        "Object",
        "SELECT test_id AS a, node_id AS b, side FROM association_edge "
        "WHERE side IN ('a', 'b') AND kind = 'object'",
    ),
    (
        "ABOUT",
        "Triple",
        "Topic",
        "SELECT triple_id AS a, topic_id AS b, run.name AS run, probability FROM about "
        "JOIN run ON run.id = run_id JOIN triple ON triple.id = triple_id "
        "WHERE topic_id IS NOT NULL",
    ),
    (
        "STATES",
        "Triple",
        "Statement",
        "SELECT triple.id AS a, statement.id AS b FROM statement "
        "JOIN triple USING (predicate_id, object_id)",
    ),
    (
        "PROBED",
        "Statement",
        "SocialGroup",
        "SELECT statement_id AS a, group_id AS b, run.name AS run, model.name AS model, rank, "
        "log_likelihood, tokens FROM probed JOIN run ON run.id = probed.run_id "
        "JOIN probing ON probing.run_id = probed.run_id AND probing.id = probing_id "
        "JOIN model ON model.id = probing.model_id "
        'JOIN "group" ON "group".id = group_id',
    ),
    (
        "STEREOTYPE",
        "SocialGroup",
        "Object",
        """
        SELECT triple.group_id AS a, triple.object_id AS b, run.name AS run,
               predicate.text AS predicate, said.n AS count, regard.value AS regard,
               toxicity.value AS toxicity, triple.id AS triple
        FROM (SELECT run_id, triple_id, sum(count) AS n FROM generation
              WHERE triple_id IS NOT NULL GROUP BY run_id, triple_id) AS said
        JOIN run ON run.id = said.run_id
        JOIN triple ON triple.id = said.triple_id
        JOIN predicate ON predicate.id = predicate_id
        LEFT JOIN run_metric AS by_regard
               ON by_regard.run_id = run.id AND by_regard.measure = 'regard'
        LEFT JOIN score AS regard
               ON regard.metric_id = by_regard.metric_id AND regard.triple_id = triple.id
        LEFT JOIN run_metric AS by_toxicity
               ON by_toxicity.run_id = run.id AND by_toxicity.measure = 'toxicity'
        LEFT JOIN score AS toxicity
               ON toxicity.metric_id = by_toxicity.metric_id AND toxicity.triple_id = triple.id""",
    ),
    (
        "NEAR",
        "Object",
        "Object",
        "SELECT node_id AS a, head_id AS b, run.name AS run, similarity, method "
        "FROM near_duplicate JOIN run ON run.id = run_id WHERE near_duplicate.kind = 'object'",
    ),
    (
        "NEAR",
        "Predicate",
        "Predicate",
        "SELECT node_id AS a, head_id AS b, run.name AS run, similarity, method "
        "FROM near_duplicate JOIN run ON run.id = run_id WHERE near_duplicate.kind = 'predicate'",
    ),
    (
        "PLACED",
        "Run",
        "SocialGroup",
        "SELECT run_id AS a, node_id AS b, degree, betweenness, community, groups FROM place "
        "WHERE kind = 'group'",
    ),
    (
        "PLACED",
        "Run",
        "Object",
        "SELECT run_id AS a, node_id AS b, degree, betweenness, community, groups FROM place "
        "WHERE kind = 'object'",
    ),
)
_ENGINE_OWN = {"id", "title", "type"}  # properties that the engine adds to every node


def answer(
    url: str, text: str, parameters: Mapping[str, Value], names: Collection[str] | None
) -> QueryResult:
    """The rows of a read-only Cypher query on a view of the file as it is now: see
    `kgbias.graph.store.Store.query`."""
    kglite.set_query_warning_policy("silent")
    database = Database(url, create=False)
    try:
        graph = _view(database, names)
    finally:
        database.close()
    try:
        result = graph.cypher(text, params=dict(parameters), timeout_ms=0)
    except (kglite.KgError, ValueError) as error:
        raise UsageError(f"the query cannot be run: {_first_line(error)}") from error
    columns = tuple(result.columns)
    return QueryResult(columns, [tuple(_plain(row[name]) for name in columns) for row in result])


def _view(database: Database, names: Collection[str] | None) -> Any:
    graph = kglite.KnowledgeGraph()
    kinds = {label for label in _NODES if names is None or label in names}
    edges = [edge for edge in _EDGES if names is None or edge[0] in names]
    for _, start, end, _ in edges:  # an edge brings its ends
        kinds |= {start, end}
    try:
        with database.one_moment():
            for label, (key, title, rows) in _NODES.items():
                if label in kinds:
                    frame = _frame(database, rows)
                    if len(frame):
                        graph.add_nodes(frame, label, key, title)
            for kind, start, end, rows in edges:
                frame = _frame(database, rows)
                if len(frame):
                    # All edges between two labels at once: a second load merges parallel ones.
                    graph.add_relationships(frame, kind, start, "a", end, "b")
    except sqlite3.Error as error:
        raise UsageError(f"cannot read {database.url}: {error}") from error
    graph.read_only(True)
    return graph


def _frame(database: Database, rows: str) -> Any:
    names, found = database.select(rows)
    return pandas.DataFrame(found, columns=names)


def _plain(value: Value) -> Value:
    """The engine's nodes, edges and paths in the common form."""
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if not isinstance(value, dict):
        return value
    if value.keys() >= {"labels", "properties"}:
        own = {k: v for k, v in value["properties"].items() if k not in _ENGINE_OWN}
        return node(value["labels"], own)
    if value.keys() >= {"start", "end", "type", "properties"}:
        return edge(value["type"], value["properties"])
    if value.keys() == {"nodes", "relationships"}:
        return path(_plain(value["nodes"]), _plain(value["relationships"]))
    return {key: _plain(item) for key, item in value.items()}


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


def main() -> None:
    """Answers each pickled question on stdin by the pickled rows, or the error, on stdout."""
    while True:
        try:
            question = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        try:
            reply: QueryResult | KgbiasError = answer(**question)
        except KgbiasError as error:
            reply = error
        pickle.dump(reply, sys.stdout.buffer)
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
