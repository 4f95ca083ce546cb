"""What servers hold that an earlier kgbias wrote to is brought up to date when they are opened.

In kgbias 0.1 a model was one node for each way in which it was asked. A model is its weights now,
and how it was asked belongs to the run or probing. The last step removes the mark of old models, so
that an interrupted migration is finished at the next opening; running it twice changes nothing.

Before the p-value of an association test was that of its permutation test, CEAT's nodes held the
published one. Such nodes are known by the number of words that they lack.

Neo4j Browser writes the `name` of a node on it, and colours edges by their type. Names and such
edges are added to an older graph; that this was done is marked by an index, so that opening a large
graph does not look at every node. A user who may only read goes without: of the library's queries
only `picture_by_regard` needs them.
"""

import json
from typing import TYPE_CHECKING

from kgbias.errors import StoreError
from kgbias.graph.association import figures_of
from kgbias.graph.neo4j.session import Row
from kgbias.graph.shape import NODES, TONES
from kgbias.graph.types import canonical_json
from kgbias.models.base import ModelInfo

if TYPE_CHECKING:
    from kgbias.graph.neo4j import Neo4jStore

_OLD = """
MATCH (m:Model) WHERE m.settings IS NOT NULL
RETURN m.uid AS uid, m.name AS name, m.revision AS revision, m.settings AS settings"""
_MANY = (  # there may be millions: in transactions of their own, before the models change
    """
    MATCH ()-[p:PROBED]->() WHERE p.model_uid IS NOT NULL
    CALL { WITH p SET p.probing_uid = p.model_uid REMOVE p.model_uid }
    IN TRANSACTIONS OF 10000 ROWS""",
    """
    UNWIND $rows AS row
    MATCH (a:Answer) WHERE a.model_id = row.uid
    CALL { WITH a, row SET a.model_id = row.weights } IN TRANSACTIONS OF 10000 ROWS""",
)
_STEPS = (  # in one transaction; a probing keeps its id, which was its model's
    """
    UNWIND $rows AS row
    MERGE (m:Model {uid: row.weights}) SET m.name = row.name, m.revision = row.revision""",
    """
    UNWIND $rows AS row
    MATCH (old:Model {uid: row.uid}), (m:Model {uid: row.weights})
    MATCH (run:Run)-[of:OF]->(old)
    SET run.settings = row.settings
    DELETE of
    MERGE (run)-[:OF]->(m)""",
    """
    UNWIND $rows AS row
    MATCH (old:Model {uid: row.uid}), (m:Model {uid: row.weights})
    MATCH (test:AssociationTest)-[of:OF]->(old)
    DELETE of
    MERGE (test)-[:OF]->(m)""",
    """
    UNWIND $rows AS row
    MATCH (old:Model {uid: row.uid}), (m:Model {uid: row.weights})
    MATCH (run:Run)-[was:PROBED_WITH]->(old) WHERE was.uid IS NULL
    WITH row, m, run, was, was.record AS record
    DELETE was
    MERGE (run)-[is:PROBED_WITH {uid: row.uid}]->(m)
    SET is.settings = row.settings, is.record = record""",
    """
    UNWIND $rows AS row
    MATCH (old:Model {uid: row.uid})
    WHERE row.uid <> row.weights AND NOT EXISTS { (old)--() }
    DELETE old""",
    "MATCH (m:Model) REMOVE m.settings",
)
_FIGURES = """
    UNWIND $rows AS row
    MATCH (t:AssociationTest {uid: row.uid})
    SET t.p_published = CASE WHEN row.figures.p_permutation IS NULL THEN null ELSE t.p_value END,
        t.p_value = coalesce(row.figures.p_permutation, t.p_value),
        t.p_holm = row.figures.p_holm, t.p_bh = row.figures.p_bh,
        t.n_x = coalesce(row.figures.n_x, 0), t.n_y = coalesce(row.figures.n_y, 0)"""

_MARK = "kgbias_names"
_NAMED = """
MATCH (n:{label}) WHERE n.name IS NULL AND n.text IS NOT NULL
CALL {{ WITH n SET n.name = n.text }} IN TRANSACTIONS OF 10000 ROWS"""
_TONED = """
MATCH (:Run)-[:MEASURED_BY]->(m:Metric {{measure: 'regard'}})
WITH DISTINCT m
MATCH (t:Triple)-[:SCORED {{label: '{tone}'}}]->(m)<-[:MEASURED_BY]-(run:Run)
MATCH (g:SocialGroup)<-[:SUBJECT]-(t)-[:OBJECT]->(o:Object)
MATCH (g)-[s:STEREOTYPE {{run: run.name, triple: t.uid}}]->(o)
CALL {{
    WITH g, o, s
    MERGE (g)-[e:{type} {{run: s.run, triple: s.triple, arm: s.arm}}]->(o)
    SET e = properties(s)
}} IN TRANSACTIONS OF 10000 ROWS"""


def _name(store: "Neo4jStore") -> None:
    """Add what Neo4j Browser shows to a graph that lacks it."""
    try:
        if store.read("SHOW INDEXES YIELD name WHERE name = $name RETURN name", name=_MARK):
            return
        for node in NODES:
            if {"name", "text"} <= {p.name for p in node.properties}:
                store.write_alone(_NAMED.format(label=node.label))
        for tone in TONES:
            store.write_alone(_TONED.format(tone=tone, type=tone.upper()))
        store.write((f"CREATE INDEX {_MARK} IF NOT EXISTS FOR (r:Run) ON (r.name)", {}))
    except StoreError as error:
        code = getattr(error.__cause__, "code", None) or ""
        if "Forbidden" not in code and "ReadOnly" not in code:
            raise


def migrate(store: "Neo4jStore") -> None:
    """Bring what an earlier kgbias wrote up to date."""
    _name(store)
    tests = [
        {"uid": row["uid"], "figures": figures_of(row["record"])}
        for row in store.read(
            "MATCH (t:AssociationTest) WHERE t.n_x IS NULL RETURN t.uid AS uid, t.record AS record"
        )
    ]
    if tests:
        store.write((_FIGURES, {"rows": tests}))
    rows: list[Row] = []
    for row in store.read(_OLD):
        settings = [[name, value] for name, value in json.loads(row["settings"])]
        weights = ModelInfo(row["name"], row["revision"]).id
        rows.append({**row, "settings": canonical_json(settings), "weights": weights})
    if rows:
        for query in _MANY:
            store.write_alone(query, rows=rows)
        store.write(*((step, {"rows": rows}) for step in _STEPS))
