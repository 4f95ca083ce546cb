"""The SQLite schema, as append-only migrations: never edit one that was released, add the next.

`PRAGMA user_version` holds how many have run. Names follow the graph of `docs/architecture.md`;
narrow tables are keyed by content id and need no rowid, wide ones (prompts, answers) have one, so
that their rows are appended rather than scattered.
"""

import sqlite3
from collections.abc import Iterator

from kgbias.errors import StoreError

MIGRATIONS = [
    # 1: the crawl, its provenance, and scores
    """
    CREATE TABLE category (
        name TEXT PRIMARY KEY, singular TEXT NOT NULL, plural TEXT NOT NULL) WITHOUT ROWID;
    CREATE TABLE "group" (id TEXT PRIMARY KEY, name TEXT NOT NULL) WITHOUT ROWID;
    CREATE TABLE group_variant (
        group_id TEXT NOT NULL, name TEXT NOT NULL, PRIMARY KEY (group_id, name)) WITHOUT ROWID;
    CREATE TABLE predicate (id TEXT PRIMARY KEY, text TEXT NOT NULL) WITHOUT ROWID;
    CREATE TABLE object (id TEXT PRIMARY KEY, text TEXT NOT NULL) WITHOUT ROWID;
    CREATE TABLE triple (
        id TEXT PRIMARY KEY,
        group_id TEXT NOT NULL,
        predicate_id TEXT NOT NULL,
        object_id TEXT NOT NULL) WITHOUT ROWID;

    CREATE TABLE model (
        id TEXT PRIMARY KEY, name TEXT NOT NULL, revision TEXT NOT NULL,
        settings TEXT NOT NULL) WITHOUT ROWID;
    CREATE TABLE run (
        seq INTEGER PRIMARY KEY,  -- the order of creation
        id TEXT NOT NULL UNIQUE,
        name TEXT NOT NULL UNIQUE,
        kind TEXT NOT NULL,
        model_id TEXT NOT NULL REFERENCES model (id),
        config TEXT NOT NULL,
        status TEXT NOT NULL,
        created TEXT NOT NULL,
        version TEXT NOT NULL);
    CREATE TABLE run_group (  -- a run's seeds, in their order
        run_id TEXT NOT NULL, position INTEGER NOT NULL, group_id TEXT NOT NULL,
        category TEXT NOT NULL, PRIMARY KEY (run_id, position)) WITHOUT ROWID;

    CREATE TABLE answer (  -- the answer log: one durable row a request
        key TEXT PRIMARY KEY, model_id TEXT NOT NULL, text TEXT NOT NULL, finish TEXT NOT NULL,
        prompt_tokens INTEGER NOT NULL, completion_tokens INTEGER NOT NULL, seconds REAL NOT NULL,
        details TEXT NOT NULL);
    CREATE TABLE generation (
        id TEXT PRIMARY KEY,
        run_id TEXT NOT NULL,
        path TEXT NOT NULL,
        group_id TEXT NOT NULL,
        arm TEXT NOT NULL,
        strategy TEXT NOT NULL,
        iteration INTEGER NOT NULL,
        attempt INTEGER NOT NULL,
        outcome TEXT NOT NULL,
        reason TEXT NOT NULL,
        template TEXT NOT NULL,
        template_hash TEXT NOT NULL,
        prompt TEXT NOT NULL,
        answer_key TEXT NOT NULL,
        triple_id TEXT,
        said_predicate TEXT,  -- the surface forms, as this generation said them
        said_object TEXT,
        count INTEGER NOT NULL);
    CREATE INDEX generation_by_run ON generation (run_id, iteration, arm);
    CREATE INDEX generation_by_triple ON generation (triple_id);
    CREATE TABLE shown (  -- the in-context triples of a generation
        generation_id TEXT NOT NULL, position INTEGER NOT NULL, triple_id TEXT NOT NULL,
        PRIMARY KEY (generation_id, position)) WITHOUT ROWID;

    CREATE TABLE metric (
        id TEXT PRIMARY KEY, measure TEXT NOT NULL, scorer TEXT NOT NULL, version TEXT NOT NULL,
        verbaliser TEXT NOT NULL) WITHOUT ROWID;
    CREATE TABLE score (
        metric_id TEXT NOT NULL, triple_id TEXT NOT NULL, value REAL NOT NULL, label TEXT NOT NULL,
        details TEXT NOT NULL, PRIMARY KEY (metric_id, triple_id)) WITHOUT ROWID;
    CREATE TABLE run_metric (  -- which metric speaks for a measure in a run
        run_id TEXT NOT NULL, measure TEXT NOT NULL, metric_id TEXT NOT NULL,
        PRIMARY KEY (run_id, measure)) WITHOUT ROWID;
    CREATE TABLE group_score (
        run_id TEXT NOT NULL, group_id TEXT NOT NULL, measure TEXT NOT NULL, value REAL,
        low REAL, high REAL, n INTEGER NOT NULL, method TEXT NOT NULL,
        PRIMARY KEY (run_id, measure, group_id)) WITHOUT ROWID;
    """,
    # association tests, with TARGET and ATTRIBUTE edges to groups, objects and topics
    """
    CREATE TABLE association_test (
        id TEXT PRIMARY KEY,
        name TEXT NOT NULL,
        method TEXT NOT NULL,
        model_id TEXT NOT NULL REFERENCES model (id),
        effect_size REAL,
        p_value REAL,
        low REAL,
        high REAL,
        record TEXT NOT NULL) WITHOUT ROWID;
    CREATE TABLE association_edge (
        test_id TEXT NOT NULL, side TEXT NOT NULL, kind TEXT NOT NULL, node_id TEXT NOT NULL,
        PRIMARY KEY (test_id, side, kind, node_id)) WITHOUT ROWID;
    CREATE TABLE run_association (
        run_id TEXT NOT NULL, test_id TEXT NOT NULL, PRIMARY KEY (run_id, test_id)) WITHOUT ROWID;
    CREATE INDEX association_edge_by_node ON association_edge (node_id);
    """,
    # the shape of a run's graph
    """
    CREATE TABLE place (
        run_id TEXT NOT NULL, kind TEXT NOT NULL, node_id TEXT NOT NULL, degree INTEGER NOT NULL,
        betweenness REAL NOT NULL, community INTEGER NOT NULL, groups INTEGER NOT NULL,
        PRIMARY KEY (run_id, kind, node_id)) WITHOUT ROWID;
    """,
]


def migrate(connection: sqlite3.Connection) -> None:
    """Bring a database up to date, one transaction a migration; refuse one from a newer kgbias.

    The version is read again inside the transaction: two processes may open a new file at once.
    """
    while (version := _version(connection)) < len(MIGRATIONS):
        connection.execute("BEGIN IMMEDIATE")
        try:
            if _version(connection) == version:
                for statement in _statements(MIGRATIONS[version]):
                    connection.execute(statement)
                connection.execute(f"PRAGMA user_version = {version + 1}")
            connection.execute("COMMIT")
        except BaseException:
            connection.execute("ROLLBACK")
            raise
    if version > len(MIGRATIONS):
        raise StoreError(
            f"the store has schema {version}, this kgbias knows up to {len(MIGRATIONS)}: "
            "upgrade kgbias"
        )


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def _statements(script: str) -> Iterator[str]:
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
