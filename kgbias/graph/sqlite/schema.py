"""The SQLite schema: a list of migrations, the first of which turns an empty file into a store, and
what the ids in each table refer to.

The columns of a key come first in a table, or SQLite's integrity check complains. Columns that are
properties of a record are taken from it (`column_definitions`) until a version is released. Then
that version's migration is written out and never changed, and a change is the next in the list,
such as `ALTER TABLE probed ADD COLUMN ...`. Narrow tables are keyed by content id and need no
rowid; wide ones (prompts, answers) have one, so that their rows are appended rather than scattered.

What a column of ids refers to follows from its name (`statement_id`); exceptions are declared here
(`list_references`), and a test names any column that was forgotten.
"""

import sqlite3
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from kgbias.errors import StoreError
from kgbias.graph.decisions import DECISION_PROPERTIES as DECISION
from kgbias.graph.edge_records import EDGE_RECORDS, EdgeRecord
from kgbias.graph.labels import Label, Rater
from kgbias.graph.node_records import NodeRecord, held_nodes
from kgbias.graph.record import Property, PropertyType, properties
from kgbias.graph.sofa import ProbeStatement, SofaCategory, SofaGroup, SofaResult, SofaStatement
from kgbias.graph.sqlite.file_check import APPLICATION_ID, active_object_error
from kgbias.graph.stereotypes import Stereotype, StereotypeCount, StereotypeMatch, StereotypeTable
from kgbias.graph.types import (
    Answer,
    AssociationNode,
    BelievedEdge,
    BenchmarkItem,
    Category,
    ChosenEdge,
    Flag,
    FlagTable,
    GroupName,
    GroupScore,
    ItemScore,
    Metric,
    NameProbe,
    NearDuplicate,
    NodeCentrality,
    ProbedEdge,
    Topic,
    TopicAssignment,
    WordAttribution,
)

_SQL_TYPES: Mapping[PropertyType, str] = {
    "text": "TEXT",
    "integer": "INTEGER",
    "number": "REAL",
    "boolean": "INTEGER",
    "texts": "TEXT",
    "numbers": "TEXT",  # as JSON
}


def column_definitions(kind: type, *names: str, but: Collection[str] = ()) -> str:
    """The properties of the records of a class, or those of these names, as columns."""
    return _column_definitions(properties(kind, *names, excluded=but))


def _column_definitions(column_properties: Iterable[Property]) -> str:
    return ", ".join(
        f"{p.name} {_SQL_TYPES[p.type]}{' NOT NULL' if p.always else ''}" for p in column_properties
    )


MIGRATIONS = [
    f"""
    -- A token that every write replaces: views of the file are kept under it.
    CREATE TABLE state (token TEXT NOT NULL);
    INSERT INTO state VALUES (lower(hex(randomblob(16))));

    -- What statements are made of.
    CREATE TABLE category (
        name TEXT PRIMARY KEY, {column_definitions(Category, but=("name",))}) WITHOUT ROWID;
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
    CREATE TABLE statement (  -- a predicate and an object, of no group
        id TEXT PRIMARY KEY, predicate_id TEXT NOT NULL, object_id TEXT NOT NULL) WITHOUT ROWID;

    -- Runs. A model is its weights: how it was asked belongs to the run or probing.
    CREATE TABLE model (
        id TEXT PRIMARY KEY, name TEXT NOT NULL, revision TEXT NOT NULL) WITHOUT ROWID;
    CREATE TABLE run (
        seq INTEGER PRIMARY KEY,  -- the order of creation
        id TEXT NOT NULL UNIQUE,
        name TEXT NOT NULL UNIQUE,
        kind TEXT NOT NULL,
        model_id TEXT NOT NULL REFERENCES model (id),
        config TEXT NOT NULL,
        status TEXT NOT NULL,
        created TEXT NOT NULL,
        version TEXT NOT NULL,
        settings TEXT NOT NULL,
        seconds REAL);  -- how long its model was asked
    CREATE TABLE run_group (  -- a run's seeds, in their order
        run_id TEXT NOT NULL, position INTEGER NOT NULL, group_id TEXT NOT NULL,
        category TEXT NOT NULL, PRIMARY KEY (run_id, position)) WITHOUT ROWID;

    -- The crawl and its provenance.
    CREATE TABLE answer (  -- the answer log: one durable row a request
        key TEXT PRIMARY KEY, {column_definitions(Answer, but=("key",))});
    CREATE TABLE batch (  -- what is left with providers, which call it something of their own
        name TEXT PRIMARY KEY, asked TEXT NOT NULL, keys TEXT NOT NULL, learned TEXT NOT NULL,
        created TEXT NOT NULL, called TEXT NOT NULL) WITHOUT ROWID;
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
    CREATE TABLE shown (  -- the in-context triples of a generation
        generation_id TEXT NOT NULL, position INTEGER NOT NULL, triple_id TEXT NOT NULL,
        PRIMARY KEY (generation_id, position)) WITHOUT ROWID;
    CREATE TABLE decision (  -- of people, in review; generations hold what is in effect
        run_id TEXT NOT NULL, uid TEXT NOT NULL, {_column_definitions(DECISION)},
        PRIMARY KEY (run_id, uid)) WITHOUT ROWID;

    -- The documents and chunks that a run was read from, and their relations.
    CREATE TABLE passage (
        run_id TEXT NOT NULL, uid TEXT NOT NULL, position INTEGER NOT NULL, id TEXT NOT NULL,
        kind TEXT NOT NULL, text TEXT, properties TEXT NOT NULL,
        PRIMARY KEY (run_id, uid)) WITHOUT ROWID;
    CREATE TABLE passage_relation (
        run_id TEXT NOT NULL, position INTEGER NOT NULL, id TEXT NOT NULL, kind TEXT NOT NULL,
        source_uid TEXT NOT NULL, target_uid TEXT NOT NULL, bidirectional INTEGER NOT NULL,
        properties TEXT NOT NULL,
        PRIMARY KEY (run_id, position)) WITHOUT ROWID;

    -- Profiles: characters written for given names, and the generations that they are made of.
    CREATE TABLE given_name (id TEXT PRIMARY KEY, name TEXT NOT NULL) WITHOUT ROWID;
    CREATE TABLE profile (
        id TEXT PRIMARY KEY, run_id TEXT NOT NULL, path TEXT NOT NULL, name_id TEXT NOT NULL,
        name TEXT NOT NULL, group_id TEXT NOT NULL, labels TEXT NOT NULL) WITHOUT ROWID;
    CREATE INDEX profile_by_run ON profile (run_id, path);
    CREATE TABLE profile_part (
        profile_id TEXT NOT NULL, position INTEGER NOT NULL, attribute TEXT NOT NULL,
        generation_id TEXT NOT NULL, PRIMARY KEY (profile_id, position)) WITHOUT ROWID;

    -- Scores, what tokens do to them, and figures of groups.
    CREATE TABLE metric (
        id TEXT PRIMARY KEY, {column_definitions(Metric)}) WITHOUT ROWID;
    CREATE TABLE score (
        metric_id TEXT NOT NULL, triple_id TEXT NOT NULL, value REAL NOT NULL, label TEXT NOT NULL,
        details TEXT NOT NULL, PRIMARY KEY (metric_id, triple_id)) WITHOUT ROWID;
    CREATE TABLE run_metric (  -- which metric speaks for a measure in a run
        run_id TEXT NOT NULL, measure TEXT NOT NULL, metric_id TEXT NOT NULL,
        PRIMARY KEY (run_id, measure)) WITHOUT ROWID;
    CREATE TABLE attribution (
        metric_id TEXT NOT NULL, triple_id TEXT NOT NULL, method TEXT NOT NULL,
        {column_definitions(WordAttribution, but=("method",))},
        PRIMARY KEY (metric_id, triple_id, method)) WITHOUT ROWID;
    CREATE TABLE group_score (
        run_id TEXT NOT NULL, group_id TEXT NOT NULL, measure TEXT NOT NULL, arm TEXT NOT NULL,
        {column_definitions(GroupScore, but=("measure", "arm"))},
        PRIMARY KEY (run_id, measure, group_id, arm)) WITHOUT ROWID;

    -- Topics, with ABOUT edges from triples.
    CREATE TABLE topic (
        id TEXT PRIMARY KEY, {column_definitions(Topic, "category", "words", "given")}) WITHOUT
            ROWID;
    CREATE TABLE topic_model (
        run_id TEXT NOT NULL, category TEXT NOT NULL, settings TEXT NOT NULL,
        PRIMARY KEY (run_id, category)) WITHOUT ROWID;
    CREATE TABLE run_topic (
        run_id TEXT NOT NULL, category TEXT NOT NULL, number INTEGER NOT NULL,
        topic_id TEXT NOT NULL,
        {column_definitions(Topic, but=("name", "category", "number", "words", "given", "kept"))},
        PRIMARY KEY (run_id, category, number)) WITHOUT ROWID;
    CREATE TABLE about (  -- topic_id is NULL for an outlier
        run_id TEXT NOT NULL, triple_id TEXT NOT NULL, category TEXT NOT NULL, topic_id TEXT,
        {column_definitions(TopicAssignment)},
        PRIMARY KEY (run_id, triple_id)) WITHOUT ROWID;
    CREATE INDEX about_by_topic ON about (topic_id);

    -- The shape of a run's graph, and links between near-duplicate objects and predicates.
    CREATE TABLE place (
        run_id TEXT NOT NULL, kind TEXT NOT NULL, node_id TEXT NOT NULL,
            {column_definitions(NodeCentrality)},
        PRIMARY KEY (run_id, kind, node_id)) WITHOUT ROWID;
    CREATE TABLE near_duplicate (
        run_id TEXT NOT NULL, kind TEXT NOT NULL, node_id TEXT NOT NULL, head_id TEXT NOT NULL,
        {column_definitions(NearDuplicate)},
        PRIMARY KEY (run_id, kind, node_id)) WITHOUT ROWID;

    -- Association tests, with TARGET and ATTRIBUTE edges to groups, objects and topics.
    CREATE TABLE association_test (
        id TEXT PRIMARY KEY,
        model_id TEXT NOT NULL REFERENCES model (id),
        {column_definitions(AssociationNode, but=("model",))}) WITHOUT ROWID;
    CREATE TABLE association_edge (
        test_id TEXT NOT NULL, side TEXT NOT NULL, kind TEXT NOT NULL, node_id TEXT NOT NULL,
        PRIMARY KEY (test_id, side, kind, node_id)) WITHOUT ROWID;
    CREATE INDEX association_edge_by_node ON association_edge (node_id);
    CREATE TABLE run_association (
        run_id TEXT NOT NULL, test_id TEXT NOT NULL, PRIMARY KEY (run_id, test_id)) WITHOUT ROWID;

    -- Perplexity probes: a statement PROBED with a group under a model.
    CREATE TABLE probing (  -- a run's probes under one model, scored in one way
        run_id TEXT NOT NULL, id TEXT NOT NULL, model_id TEXT NOT NULL REFERENCES model (id),
        settings TEXT NOT NULL, record TEXT NOT NULL, PRIMARY KEY (run_id, id)) WITHOUT ROWID;
    CREATE TABLE probed (
        run_id TEXT NOT NULL,
        probing_id TEXT NOT NULL,
        statement_id TEXT NOT NULL,
        group_id TEXT NOT NULL,
        {column_definitions(ProbedEdge)},
        PRIMARY KEY (run_id, probing_id, statement_id, group_id)) WITHOUT ROWID;
    CREATE INDEX probed_by_group ON probed (group_id);

    -- Forced choices: which groups a model takes statements to be about.
    CREATE TABLE choosing (
        run_id TEXT NOT NULL, id TEXT NOT NULL, model_id TEXT NOT NULL, settings TEXT NOT NULL,
        record TEXT NOT NULL, PRIMARY KEY (run_id, id)) WITHOUT ROWID;
    CREATE TABLE chosen (
        run_id TEXT NOT NULL, choosing_id TEXT NOT NULL, statement_id TEXT NOT NULL,
        group_id TEXT NOT NULL, {column_definitions(ChosenEdge)},
        PRIMARY KEY (run_id, choosing_id, statement_id, group_id)) WITHOUT ROWID;
    CREATE TABLE choice_answer (
        run_id TEXT NOT NULL, choosing_id TEXT NOT NULL, answer_key TEXT NOT NULL,
        PRIMARY KEY (run_id, choosing_id, answer_key)) WITHOUT ROWID;
    CREATE INDEX choice_answer_by_key ON choice_answer (answer_key);

    -- What a model believes of groups, by their names.
    CREATE TABLE name (
        id TEXT PRIMARY KEY, {column_definitions(GroupName, "text", "form", "root")}) WITHOUT ROWID;
    CREATE TABLE name_of (  -- one that means nothing is of no group
        name_id TEXT NOT NULL, group_id TEXT NOT NULL, {column_definitions(GroupName, "mark")},
        PRIMARY KEY (name_id, group_id)) WITHOUT ROWID;
    CREATE TABLE believing (  -- record is NULL until it is finished
        run_id TEXT NOT NULL, id TEXT NOT NULL, model_id TEXT NOT NULL, settings TEXT NOT NULL,
        record TEXT, PRIMARY KEY (run_id, id)) WITHOUT ROWID;
    CREATE TABLE name_probe (
        run_id TEXT NOT NULL, believing_id TEXT NOT NULL, statement_id TEXT NOT NULL,
        name_id TEXT NOT NULL, {column_definitions(NameProbe)},
        PRIMARY KEY (run_id, believing_id, statement_id, name_id)) WITHOUT ROWID;
    CREATE TABLE believed (
        run_id TEXT NOT NULL, believing_id TEXT NOT NULL, statement_id TEXT NOT NULL,
        group_id TEXT NOT NULL, {column_definitions(BelievedEdge)},
        PRIMARY KEY (run_id, believing_id, statement_id, group_id)) WITHOUT ROWID;

    -- The items of benchmarks, and what a model's probabilities say of each.
    CREATE TABLE benchmark_item (
        id TEXT PRIMARY KEY, {column_definitions(BenchmarkItem)}) WITHOUT ROWID;
    CREATE TABLE item_score (
        item_id TEXT NOT NULL, asked TEXT NOT NULL, model_id TEXT NOT NULL, settings TEXT NOT NULL,
        {column_definitions(ItemScore)},
        PRIMARY KEY (asked, item_id)) WITHOUT ROWID;
    CREATE INDEX item_score_by_model ON item_score (model_id, settings);

    -- Flags of APX: descriptors that a model ties to the names of a group.
    CREATE TABLE descriptor (
        id TEXT PRIMARY KEY, text TEXT NOT NULL, axis TEXT NOT NULL) WITHOUT ROWID;
    CREATE TABLE flagged (
        apx_id TEXT NOT NULL, group_id TEXT NOT NULL, descriptor_id TEXT NOT NULL,
        {column_definitions(FlagTable, but=("apx_uid",))}, {column_definitions(Flag)},
        PRIMARY KEY (apx_id, group_id, descriptor_id)) WITHOUT ROWID;

    -- Sets of probes, and SoFa of models on them.
    CREATE TABLE probe_set (id TEXT PRIMARY KEY, name TEXT NOT NULL, record TEXT NOT NULL)
        WITHOUT ROWID;
    CREATE TABLE probe_set_group (
        set_id TEXT NOT NULL, category TEXT NOT NULL, group_id TEXT NOT NULL, text TEXT NOT NULL,
        PRIMARY KEY (set_id, category, group_id, text)) WITHOUT ROWID;
    CREATE TABLE probe_set_statement (
        set_id TEXT NOT NULL, category TEXT NOT NULL, statement_id TEXT NOT NULL,
        {column_definitions(ProbeStatement)},
        PRIMARY KEY (set_id, category, statement_id)) WITHOUT ROWID;
    CREATE TABLE sofa (
        id TEXT PRIMARY KEY, set_id TEXT NOT NULL, model_id TEXT NOT NULL,
        {column_definitions(SofaResult, but=("model",))}) WITHOUT ROWID;
    CREATE TABLE sofa_category (
        sofa_id TEXT NOT NULL, category TEXT NOT NULL, {column_definitions(SofaCategory)},
        PRIMARY KEY (sofa_id, category)) WITHOUT ROWID;
    CREATE TABLE sofa_group (
        sofa_id TEXT NOT NULL, category TEXT NOT NULL, group_id TEXT NOT NULL,
        {column_definitions(SofaGroup)},
        PRIMARY KEY (sofa_id, category, group_id)) WITHOUT ROWID;
    CREATE TABLE sofa_statement (
        sofa_id TEXT NOT NULL, category TEXT NOT NULL, statement_id TEXT NOT NULL,
        {column_definitions(SofaStatement)},
        PRIMARY KEY (sofa_id, category, statement_id)) WITHOUT ROWID;
    CREATE TABLE run_sofa (
        run_id TEXT NOT NULL, sofa_id TEXT NOT NULL, PRIMARY KEY (run_id, sofa_id)) WITHOUT ROWID;
    """,
    f"""
    -- Labels that raters give to statements.
    CREATE TABLE rater (id TEXT PRIMARY KEY, {column_definitions(Rater)}) WITHOUT ROWID;
    CREATE TABLE label (
        uid TEXT PRIMARY KEY, rater_id TEXT NOT NULL, triple_id TEXT NOT NULL,
        {column_definitions(Label, but=("uid",))}) WITHOUT ROWID;
    CREATE INDEX label_by_triple ON label (triple_id);
    CREATE INDEX label_by_rater ON label (rater_id);
    """,
    """
    -- Where a story says what was read from it.
    ALTER TABLE profile_part ADD COLUMN begins INTEGER;
    ALTER TABLE profile_part ADD COLUMN ends INTEGER;
    """,
    """
    -- Where an encoder places statements: two bytes a number.
    CREATE TABLE vector (
        encoder TEXT NOT NULL, predicate_id TEXT NOT NULL, object_id TEXT NOT NULL,
        data BLOB NOT NULL, PRIMARY KEY (encoder, predicate_id, object_id));
    """,
    """
    -- How far topics are found again without a fifth of the statements.
    ALTER TABLE run_topic ADD COLUMN kept REAL;
    """,
    """
    -- A person's own name for a model; "" if nobody gave one. Its `name` is the spec.
    ALTER TABLE model ADD COLUMN display_name TEXT NOT NULL DEFAULT '';
    """,
    f"""
    -- Stereotypes that people recorded, and what a table has about a run's statements.
    CREATE TABLE stereotype_table (
        id TEXT PRIMARY KEY, {column_definitions(StereotypeTable)}) WITHOUT ROWID;
    CREATE TABLE stereotype (
        id TEXT PRIMARY KEY, stereotype_table_id TEXT NOT NULL,
        {column_definitions(Stereotype)}) WITHOUT ROWID;
    CREATE TABLE held_against (
        run_id TEXT NOT NULL, stereotype_table_id TEXT NOT NULL, record TEXT NOT NULL,
        PRIMARY KEY (run_id, stereotype_table_id)) WITHOUT ROWID;
    CREATE TABLE heard (
        run_id TEXT NOT NULL, stereotype_id TEXT NOT NULL, {column_definitions(StereotypeCount)},
        PRIMARY KEY (run_id, stereotype_id)) WITHOUT ROWID;
    CREATE TABLE recorded (  -- stereotype_id is NULL for a triple that is new to the table
        run_id TEXT NOT NULL, stereotype_table_id TEXT NOT NULL, triple_id TEXT NOT NULL,
        stereotype_id TEXT, {column_definitions(StereotypeMatch)},
        PRIMARY KEY (run_id, stereotype_table_id, triple_id)) WITHOUT ROWID;
    """,
    f"""
    -- Links between statements, and no longer between objects or predicates: those are dropped, and
    -- `merge` finds the new ones.
    DROP TABLE near_duplicate;
    CREATE TABLE near_duplicate (
        run_id TEXT NOT NULL, statement_id TEXT NOT NULL, head_id TEXT NOT NULL,
        {column_definitions(NearDuplicate)},
        PRIMARY KEY (run_id, statement_id)) WITHOUT ROWID;
    """,
    """
    -- The language of a run, and what a run in another one calls a group: its name, then others.
    ALTER TABLE run ADD COLUMN language TEXT NOT NULL DEFAULT 'en';
    UPDATE run SET language = coalesce(json_extract(config, '$.pack.language'), 'en');
    ALTER TABLE run_group ADD COLUMN names TEXT;
    """,
]


def _edge_table(edge: EdgeRecord) -> str:
    """The table of a type of edge that is younger than the tables above."""
    ids = [f"{column} TEXT NOT NULL" for column in edge.key_columns if column not in edge.keys]
    columns = _column_definitions(properties(edge.record, moved_first=edge.keys))
    return f"""
    CREATE TABLE IF NOT EXISTS {edge.table} (
        {", ".join(filter(None, (*ids, columns)))},
        PRIMARY KEY ({", ".join(edge.key_columns)})) WITHOUT ROWID;
    """


def _node_table(node: NodeRecord) -> str:
    """The table of a kind of nodes that runs hold."""
    return f"""
    CREATE TABLE IF NOT EXISTS {node.table} (
        id TEXT PRIMARY KEY, {column_definitions(node.record)}) WITHOUT ROWID;
    """


# Last, so that a new kind adds a migration to a store and moves none above. Whoever writes one
# above writes out the tables of these that stores have by then.
_DECLARED_TABLES = [
    *(_edge_table(edge) for edge in EDGE_RECORDS.values() if not edge.own_table),
    *(_node_table(node) for node in held_nodes()),
    # With all that edges between groups and objects count, which is then read in order from the
    # index alone. Earlier stores have one of `triple_id` in its place.
    """
    DROP INDEX IF EXISTS generation_by_triple;
    CREATE INDEX IF NOT EXISTS generation_counts ON generation (triple_id, run_id, arm, count);
    """,
]
MIGRATIONS += _DECLARED_TABLES
# `PRAGMA user_version` counts the migrations from 200; a store with a lower number is refused.
# Whoever renames a column before 0.1.0 is released raises this to the next hundred.
_LAST_DEVELOPMENT_VERSION = 199  # schemas 1 to 199 are those of development versions


def latest_version() -> int:
    """The version of a store with all migrations."""
    return _LAST_DEVELOPMENT_VERSION + len(MIGRATIONS)


def migrate(connection: sqlite3.Connection) -> None:
    """Migrate a database to the latest version, or not at all.

    The version is read again inside the transaction: two processes may open a new file at once.
    """
    if user_version(connection) == latest_version():
        return
    # The lock for writing comes before the version is read.
    connection.execute("BEGIN IMMEDIATE")
    try:
        first = max(schema_version(connection) - _LAST_DEVELOPMENT_VERSION, 0)
        # A kind that is declared before others moves theirs: any of these may be the new one.
        for migration in (*MIGRATIONS[first:], *_DECLARED_TABLES):
            # One by one: `executescript` would commit the transaction first.
            for statement in _split_statements(migration):
                connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {latest_version()}")
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:  # a full disk ends it by itself
            connection.execute("ROLLBACK")
        raise


def user_version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def schema_version(connection: sqlite3.Connection) -> int:
    """The version of a database's schema, 0 for an empty one: the version that it states or, if it
    has tables but states none, the one that its tables match. (`.dump`, the usual repair, leaves
    out the number.) Raises StoreError for a version that this kgbias does not know."""
    version = user_version(connection)
    if version and version <= _LAST_DEVELOPMENT_VERSION:
        raise StoreError(
            "the store was made by a development version of kgbias, before 0.1.0: crawl again into "
            "a new store, or export it with the version that made it"
        )
    if version > latest_version():
        raise StoreError(
            f"the store has schema {version}, but this kgbias knows only up to "
            f"{latest_version()}: upgrade "
            "kgbias"
        )
    if version or not (present_tables := read_columns(connection)):
        return version
    matching_versions = [
        n
        for n, version_tables in enumerate(_version_tables(), _LAST_DEVELOPMENT_VERSION + 1)
        if version_tables.items() <= present_tables.items()
    ]
    if not matching_versions:
        raise StoreError(
            "the store does not state its version, and its tables match no version: restore a copy"
        )
    # The tables of a version include those of earlier ones.
    return matching_versions[-1]


def read_columns(connection: sqlite3.Connection) -> dict[str, tuple[str, ...]]:
    """The columns of each table, in their order."""
    columns_by_table: dict[str, tuple[str, ...]] = {}
    for table, column in connection.execute(
        "SELECT t.name, c.name FROM sqlite_master AS t, pragma_table_info(t.name) AS c "
        # In LIKE, `_` stands for any character.
        "WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite~_%' ESCAPE '~' ORDER BY t.name, c.cid"
    ):
        columns_by_table[table] = (*columns_by_table.get(table, ()), column)
    return columns_by_table


def _version_tables() -> Iterator[dict[str, tuple[str, ...]]]:
    """The tables of each version, from the first."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        for migration in MIGRATIONS:
            for statement in _split_statements(migration):
                db.execute(statement)
            yield read_columns(db)


@cache
def latest_tables() -> dict[str, tuple[str, ...]]:
    """The columns of each table of a store of the latest version, in their order."""
    return list(_version_tables())[-1]


class ExpectedSchema(NamedTuple):
    """The indexes of a store of the latest version, and its columns by table and name."""

    indexes: frozenset[str]
    columns: dict[tuple[str, str], tuple[str, bool]]


@cache
def expected_schema() -> ExpectedSchema:
    """The names of the indexes in a store of the latest version; and for each column, by table and
    name, its type and whether it must have a value."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        migrate(db)
        indexes = db.execute("SELECT name FROM sqlite_master WHERE type = 'index'").fetchall()
        rows = db.execute(
            'SELECT t.name, c.name, c.type, c."notnull" OR c.pk FROM sqlite_master AS t, '
            "pragma_table_info(t.name) AS c WHERE t.type = 'table' ORDER BY t.name, c.cid"
        ).fetchall()
        names = frozenset(name for (name,) in indexes if not name.startswith("sqlite_"))
        return ExpectedSchema(
            names, {(table, column): (kind, bool(full)) for table, column, kind, full in rows}
        )


def check_constraints(connection: sqlite3.Connection, path: str, version: int) -> None:
    """Raise StoreError for a file in which a table of ours demands more of its rows than it should
    in this version: it would refuse what is written, or lose what was written before."""
    expected_by_table = _expected_constraints(version)
    for table in expected_by_table:
        for constraint in sorted(_read_constraints(connection, table) - expected_by_table[table]):
            raise active_object_error(path, f"constraint of the table {table}", constraint)


@cache
def _expected_constraints(version: int) -> dict[str, frozenset[str]]:
    """What each table of a version demands of its rows."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        for migration in MIGRATIONS[: max(version - _LAST_DEVELOPMENT_VERSION, 0)]:
            for statement in _split_statements(migration):
                db.execute(statement)
        return {table: _read_constraints(db, table) for table in read_columns(db)}


def _read_constraints(connection: sqlite3.Connection, table: str) -> frozenset[str]:
    """Which columns of a table must have a value, and which are unique together."""
    rows = connection.execute(
        "SELECT 'NOT NULL ' || name FROM pragma_table_info(?1) WHERE \"notnull\" OR pk UNION "
        "SELECT 'UNIQUE ' || (SELECT group_concat(name) FROM pragma_index_info(i.name)) "
        'FROM pragma_index_list(?1) AS i WHERE "unique"',
        (table,),
    )
    return frozenset(what for (what,) in rows)


def _split_statements(script: str) -> Iterator[str]:
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""


@dataclass(frozen=True, slots=True)
class Reference:
    """A column that holds ids of another table.

    Attributes:
        table, column: where the ids are.
        to: the table that they refer to.
        where: a condition that selects the rows, for a column with ids of several tables.
        part: the row is a part of what it refers to, and is deleted with it. Any other row keeps
            what it refers to in the store.
        loose: an id that refers to nothing is not a fault.
    """

    table: str
    column: str
    to: str
    where: str = "TRUE"
    part: bool = False
    loose: bool = False


KEY_COLUMNS = {
    "category": "name",
    "answer": "key",
    "passage": "uid",
    "decision": "uid",
}  # others: id

# The nodes that runs share, each before those that it refers to (names last: a name that only a
# group holds goes with it), and the labels of all nodes.
SHARED_TABLES = (
    *(node.table for node in held_nodes()),
    "association_test",
    "sofa",
    "probe_set",
    "stereotype",
    "stereotype_table",
    "triple",
    "statement",
    "topic",
    "predicate",
    "object",
    "group",
    "category",
    "metric",
    "model",
    "given_name",
    "descriptor",
    "name",
    "rater",
)
# A column T_id holds ids of table T, and a row with a run_id is a part of that run. Exceptions:
_PART_REFERENCES = (
    ("shown", "generation_id", "generation"),
    ("profile_part", "profile_id", "profile"),
    ("group_variant", "group_id", "group"),
    ("name_of", "group_id", "group"),
    ("name_of", "name_id", "name"),
    ("score", "triple_id", "triple"),
    ("attribution", "triple_id", "triple"),
    ("label", "triple_id", "triple"),
    ("item_score", "item_id", "benchmark_item"),
    ("vector", "predicate_id", "predicate"),
    ("vector", "object_id", "object"),
    ("association_edge", "test_id", "association_test"),
    ("sofa_category", "sofa_id", "sofa"),
    ("sofa_group", "sofa_id", "sofa"),
    ("sofa_statement", "sofa_id", "sofa"),
    ("probe_set_group", "set_id", "probe_set"),
    ("probe_set_statement", "set_id", "probe_set"),
)
_RENAMED_REFERENCES = (
    ("run_association", "test_id", "association_test"),
    ("near_duplicate", "head_id", "statement"),
    ("passage_relation", "source_uid", "passage"),
    ("passage_relation", "target_uid", "passage"),
    ("profile", "name_id", "given_name"),
    ("sofa", "set_id", "probe_set"),
)
_MIXED_REFERENCES = (  # by the `kind` of the row
    ("association_edge", "node_id", ("group", "object", "topic")),
    ("place", "node_id", ("group", "object")),
)
_LOOSE_REFERENCES = (
    Reference("run_group", "category", "category", loose=True),
    Reference("probe_set_group", "category", "category", loose=True),
    Reference("generation", "answer_key", "answer", "answer_key <> ''", loose=True),
    Reference("choice_answer", "answer_key", "answer", loose=True),
    # recording a round again may leave out a generation, or bring it back
    Reference("decision", "generation_uid", "generation", loose=True),
    Reference("profile_part", "generation_id", "generation", loose=True),
    Reference("probe_set_statement", "statement_id", "statement", loose=True),  # or a text
    Reference("sofa_statement", "statement_id", "statement", loose=True),
)
_PLAIN_COLUMNS = {("answer", "model_id")}  # answers outlive runs


@cache
def list_references() -> tuple[Reference, ...]:
    """What the ids in each table refer to. Checking a store uses it to find ids that refer to
    nothing; deleting a run, to find all that goes with it and what nothing refers to any more."""
    declared = (
        *(Reference(*part, part=True) for part in _PART_REFERENCES),
        *(Reference(*part) for part in _RENAMED_REFERENCES),
        *(
            Reference(table, column, kind, f"kind = '{kind}'")
            for table, column, kinds in _MIXED_REFERENCES
            for kind in kinds
        ),
        *_LOOSE_REFERENCES,
    )
    declared_columns = {(r.table, r.column) for r in declared} | _PLAIN_COLUMNS
    columns_by_table = latest_tables()
    named_references = (
        Reference(table, column, column.removesuffix("_id"), part=column == "run_id")
        for table, columns in columns_by_table.items()
        for column in columns
        if (table, column) not in declared_columns and column.endswith("_id")
    )
    return (*(r for r in named_references if r.to in columns_by_table), *declared)


def key_column(table: str) -> str:
    """The column by which other tables refer to a table's rows."""
    return KEY_COLUMNS.get(table, "id")
