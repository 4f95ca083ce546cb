"""What was found in the statements of runs: labels, topics, attributions, association tests, flags
of APX, scores of benchmarks, near-duplicates, recorded stereotypes, and the centralities of
nodes.
"""

from collections.abc import Sequence
from itertools import groupby

from kgbias.errors import UsageError, no_such
from kgbias.graph.composites import CompositeStore
from kgbias.graph.labels import Label, read_label
from kgbias.graph.record import read_settings, to_properties
from kgbias.graph.sqlite.database import Database
from kgbias.graph.sqlite.schema import list_references
from kgbias.graph.stereotypes import StereotypeMatches
from kgbias.graph.types import (
    AssociationNode,
    Flag,
    FlagTable,
    ItemScore,
    Metric,
    NearDuplicate,
    NodeCentrality,
    Topic,
    TopicAssignment,
    TopicModel,
    WordAttribution,
    canonical_json,
    node_id,
    storable,
)
from kgbias.graph.vectors import StatementVectors, pack_vectors, unpack_vectors
from kgbias.models.base import ModelInfo, Settings

_TABLE_BY_KIND = {"group": '"group"', "object": "object", "topic": "topic"}

_FLAGS = """
SELECT flagged.*, apx_id AS apx_uid, name AS "group", text AS descriptor, axis
FROM flagged JOIN "group" ON "group".id = group_id
JOIN descriptor ON descriptor.id = descriptor_id
ORDER BY model, apx_id, name, z, text"""

_VECTORS = """
SELECT predicate_id, object_id, data FROM vector WHERE encoder = :encoder
AND (predicate_id, object_id) IN (
    SELECT predicate_id, object_id FROM triple
    WHERE id IN (SELECT triple_id FROM generation WHERE run_id = :run))
ORDER BY predicate_id, object_id"""

_PLACES = """
SELECT place.*, coalesce("group".name, object.text) AS label FROM place
LEFT JOIN "group" ON kind = 'group' AND "group".id = node_id
LEFT JOIN object ON kind = 'object' AND object.id = node_id
WHERE run_id = ? ORDER BY kind, node_id"""

_LABELS = """
SELECT label.*, rater.name AS rater, rater.kind FROM label JOIN rater ON rater.id = rater_id
WHERE coalesce(measure = ?, TRUE) ORDER BY labelled, uid"""

_ATTRIBUTIONS = """
SELECT a.*, m.* FROM attribution AS a
JOIN run_metric AS r ON r.metric_id = a.metric_id JOIN metric AS m ON m.id = a.metric_id
WHERE r.run_id = :run AND triple_id IN (SELECT triple_id FROM generation WHERE run_id = :run)
ORDER BY m.measure, triple_id, a.method"""

_LINKED_STATEMENTS = """
SELECT statement_id FROM near_duplicate WHERE run_id = ?1
UNION SELECT head_id FROM near_duplicate WHERE run_id = ?1"""
_TABLES_OF_NAME = "SELECT id FROM stereotype_table WHERE name = :name"
_FORGET_MATCHES = (
    f"DELETE FROM recorded WHERE run_id = :run AND stereotype_table_id IN ({_TABLES_OF_NAME})",
    f"DELETE FROM held_against WHERE run_id = :run AND stereotype_table_id IN ({_TABLES_OF_NAME})",
    "DELETE FROM heard WHERE run_id = :run AND stereotype_id IN "
    f"(SELECT id FROM stereotype WHERE stereotype_table_id IN ({_TABLES_OF_NAME}))",
)
_FORGET_STEREOTYPES = (
    "DELETE FROM stereotype WHERE id NOT IN (SELECT stereotype_id FROM heard)",
    "DELETE FROM stereotype_table WHERE id NOT IN (SELECT stereotype_table_id FROM held_against)",
)
_LINKS = """
SELECT p.text, o.text, head_p.text, head_o.text, similarity, method FROM near_duplicate
JOIN statement AS said ON said.id = statement_id JOIN statement AS head ON head.id = head_id
JOIN predicate AS p ON p.id = said.predicate_id JOIN object AS o ON o.id = said.object_id
JOIN predicate AS head_p ON head_p.id = head.predicate_id
JOIN object AS head_o ON head_o.id = head.object_id
WHERE run_id = ? ORDER BY head_p.text, head_o.text, head_id, p.text, o.text, statement_id"""


class SQLiteFindings(Database, CompositeStore):
    """See `kgbias.graph.store.Store`."""

    def add_labels(self, labels: Sequence[Label]) -> None:
        ids = sorted({x.triple_id for x in labels})
        # Nothing that follows from runs changes by labels, so nobody need read these again.
        with self._transaction(outside_runs=True):
            query = "SELECT id FROM triple WHERE id IN ({})"
            existing_ids = {id for (id,) in self._select_in(query, ids)}
            known_labels = [x for x in labels if x.triple_id in existing_ids]
            self._write_records("rater", {x.by for x in known_labels}, "INSERT OR IGNORE")
            self._write_records(
                "label", known_labels, "INSERT OR IGNORE", rater_id=lambda x: x.by.id
            )

    def labels(self, measure: str | None = None) -> list[Label]:
        return [read_label(row) for row in self._rows(_LABELS, (measure,))]

    def label_count(self, measure: str) -> int:
        query = "SELECT count(*) FROM label WHERE measure = ?"
        return int(self._db.execute(query, (measure,)).fetchone()[0])

    def save_topics(self, run_id: str, models: Sequence[TopicModel]) -> None:
        on_conflict = (
            "ON CONFLICT (id) DO UPDATE SET given = excluded.given WHERE excluded.given <> ''"
        )
        with self._transaction():
            for table in ("topic_model", "run_topic", "about"):
                self._db.execute(f"DELETE FROM {table} WHERE run_id = ?", (run_id,))
            self._write_records("topic_model", models, "INSERT", run_id=run_id)
            for model in models:
                self._write_records("topic", model.topics, "INSERT", on_conflict)
                run_and_category = {"run_id": run_id, "category": model.category}
                self._write_records(
                    "run_topic", model.topics, "INSERT", topic_id=lambda t: t.id, **run_and_category
                )
                self._write_records("about", model.about, "INSERT", **run_and_category)

    def topics(self, run_id: str) -> list[TopicModel]:
        topics: dict[str, list[Topic]] = {}
        for row in self._rows(
            "SELECT run_topic.*, words, given FROM run_topic JOIN topic ON topic.id = topic_id "
            "WHERE run_id = ? ORDER BY run_topic.category, number",
            (run_id,),
        ):
            topics.setdefault(row["category"], []).append(self._record(Topic, row))
        about: dict[str, list[TopicAssignment]] = {}
        for row in self._rows("SELECT * FROM about WHERE run_id = ? ORDER BY triple_id", (run_id,)):
            about.setdefault(row["category"], []).append(self._record(TopicAssignment, row))
        models = self._rows(
            "SELECT category, settings FROM topic_model WHERE run_id = ? ORDER BY category",
            (run_id,),
        )
        return [
            self._record(
                TopicModel,
                row
                | {
                    "topics": tuple(topics.get(row["category"], ())),
                    "about": tuple(about.get(row["category"], ())),
                },
            )
            for row in models
        ]

    def name_topic(self, topic_id: str, given: str) -> None:
        with self._transaction():
            self._db.execute("UPDATE topic SET given = ? WHERE id = ?", (given, topic_id))

    def save_attributions(self, attributions: Sequence[WordAttribution]) -> None:
        with self._transaction():
            self._write_records("attribution", attributions, metric_id=lambda a: a.metric.id)

    def attributions(self, run_id: str) -> list[WordAttribution]:
        return [
            self._record(WordAttribution, row | {"metric": self._record(Metric, row)})
            for row in self._rows(_ATTRIBUTIONS, {"run": run_id})
        ]

    def known_nodes(self, kind: str, ids: Sequence[str]) -> set[str]:
        if kind not in _TABLE_BY_KIND:
            raise UsageError(no_such("kind of node", kind, _TABLE_BY_KIND))
        query = f"SELECT id FROM {_TABLE_BY_KIND[kind]} WHERE id IN ({{}})"
        return {id for (id,) in self._select_in(query, list(ids))}

    def save_associations(self, run_id: str | None, nodes: Sequence[AssociationNode]) -> None:
        with self._transaction():
            for node in nodes:
                self._add_model(node.model)
                self._write_records("association_test", [node], model_id=node.model.id)
                self._db.execute("DELETE FROM association_edge WHERE test_id = ?", (node.id,))
                self._write_records(
                    "association_edge", node.edges, "INSERT OR IGNORE", test_id=node.id
                )
                if run_id is not None:
                    self._db.execute(
                        "INSERT OR IGNORE INTO run_association VALUES (?, ?)", (run_id, node.id)
                    )

    def save_flags(self, flag_table: FlagTable) -> None:
        groups = {node_id("group", f.group): storable(f.group) for f in flag_table.flags}
        descriptors = {node_id("descriptor", f.descriptor): f for f in flag_table.flags}
        with self._transaction():
            self._db.execute("DELETE FROM flagged WHERE apx_id = ?", (flag_table.id,))
            self._db.executemany('INSERT OR IGNORE INTO "group" VALUES (?, ?)', groups.items())
            self._db.executemany(
                "INSERT OR IGNORE INTO descriptor VALUES (?, ?, ?)",
                [(id, storable(f.descriptor), storable(f.axis)) for id, f in descriptors.items()],
            )
            self._write_records(
                "flagged",
                flag_table.flags,
                apx_id=flag_table.id,
                group_id=lambda f: node_id("group", f.group),
                descriptor_id=lambda f: node_id("descriptor", f.descriptor),
                **to_properties(flag_table),
            )

    def flags(self) -> list[FlagTable]:
        tables = []
        for _, table_rows in groupby(self._rows(_FLAGS), lambda row: row["apx_id"]):
            rows = list(table_rows)
            flags = tuple(self._record(Flag, row) for row in rows)
            tables.append(self._record(FlagTable, rows[0] | {"flags": flags}))
        return tables

    def save_item_scores(
        self, model: ModelInfo, settings: Settings, scores: Sequence[ItemScore]
    ) -> None:
        with self._transaction():
            self._add_model(model)
            self._write_records("benchmark_item", [s.item for s in scores])
            self._write_records(
                "item_score",
                scores,
                item_id=lambda s: s.item.id,
                asked=model.configured_id(settings),
                model_id=model.id,
                settings=canonical_json(settings),
            )

    def item_settings(self, model: ModelInfo) -> list[Settings]:
        rows = self._db.execute(
            "SELECT DISTINCT settings FROM item_score WHERE model_id = ? ORDER BY settings",
            (model.id,),
        )
        return [read_settings(settings, self._json) for (settings,) in rows]

    def save_near_duplicates(self, run_id: str, links: Sequence[NearDuplicate]) -> None:
        with self._transaction():
            old_ids = [id for (id,) in self._db.execute(_LINKED_STATEMENTS, (run_id,))]
            self._db.execute("DELETE FROM near_duplicate WHERE run_id = ?", (run_id,))
            self._add_statements([end for x in links for end in x.ends])
            self._write_records("near_duplicate", links, "INSERT", run_id=run_id)
            # By the schema, so that no table that refers to statements is forgotten.
            referenced_ids = " UNION ".join(
                f'SELECT {r.column} FROM "{r.table}"'
                for r in list_references()
                if r.to == "statement"
            )
            self._db.execute(
                "DELETE FROM statement WHERE id IN (SELECT value FROM json_each(?)) "
                f"AND id NOT IN ({referenced_ids})",
                (canonical_json(old_ids),),
            )

    def near_duplicates(self, run_id: str) -> list[NearDuplicate]:
        return [
            NearDuplicate((p, o), (head_p, head_o), similarity, method)
            for p, o, head_p, head_o, similarity, method in self._db.execute(_LINKS, (run_id,))
        ]

    def save_stereotype_matches(self, run_id: str, matches: StereotypeMatches) -> None:
        table = matches.table.id
        keys = {"run_id": run_id, "stereotype_table_id": table}
        entries = [count.entry for count in matches.heard]
        with self._transaction():
            for query in _FORGET_MATCHES:
                self._db.execute(query, {"run": run_id, "name": storable(matches.table.name)})
            self._write_records("stereotype_table", [matches.table])
            self._write_records(
                "stereotype", entries, id=lambda e: e.uid(table), stereotype_table_id=table
            )
            self._write_records("held_against", [matches], "INSERT", **keys)
            self._write_records(
                "heard",
                matches.heard,
                "INSERT",
                run_id=run_id,
                stereotype_id=lambda h: h.entry.uid(table),
            )
            self._write_records("recorded", matches.marks, "INSERT", **keys)
            for query in _FORGET_STEREOTYPES:
                self._db.execute(query)

    def save_vectors(self, encoder: str, vectors: StatementVectors) -> None:
        rows = zip(vectors.statements, pack_vectors(vectors.rows), strict=True)
        with self._transaction():
            self._db.executemany(
                "INSERT OR REPLACE INTO vector VALUES (?, ?, ?, ?)",
                [(encoder, *ends, data) for ends, data in rows],
            )

    def encoders(self) -> list[str]:
        rows = self._db.execute("SELECT DISTINCT encoder FROM vector ORDER BY encoder")
        return [encoder for (encoder,) in rows]

    def vectors(self, run_id: str, encoder: str) -> StatementVectors:
        rows = self._db.execute(_VECTORS, {"run": run_id, "encoder": encoder}).fetchall()
        return StatementVectors(
            [(p, o) for p, o, _ in rows], unpack_vectors([row[2] for row in rows])
        )

    def save_centralities(self, run_id: str, centralities: Sequence[NodeCentrality]) -> None:
        with self._transaction():
            self._db.execute("DELETE FROM place WHERE run_id = ?", (run_id,))
            self._write_records("place", centralities, "INSERT", run_id=run_id)

    def centralities(self, run_id: str) -> list[NodeCentrality]:
        return self._records(NodeCentrality, _PLACES, (run_id,))
