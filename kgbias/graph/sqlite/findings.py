"""What was found in the statements of runs: labels, topics, attributions, association tests, flags
of APX, scores of benchmarks, near-duplicates, recorded stereotypes, and the places of nodes.
"""

from collections.abc import Sequence
from itertools import groupby

from kgbias.errors import UsageError, no_such
from kgbias.graph.labels import Label, label_of
from kgbias.graph.record import in_graph, read_settings
from kgbias.graph.recorded import Heard, Held, Mark, Stereotype, StereotypeTable
from kgbias.graph.sqlite.database import Database
from kgbias.graph.sqlite.schema import references
from kgbias.graph.types import (
    About,
    AssociationEdge,
    AssociationNode,
    Attribution,
    Flag,
    Flagged,
    Item,
    ItemScore,
    Metric,
    NearDuplicate,
    NodePlace,
    Topic,
    TopicModel,
    canonical_json,
    node_id,
    storable,
)
from kgbias.graph.vectors import StatementVectors, packed, unpacked
from kgbias.models.base import ModelInfo, Settings

_TABLES = {"group": '"group"', "object": "object", "topic": "topic"}

_FLAGS = """
SELECT flagged.*, apx_id AS apx_uid, name AS "group", text AS descriptor, axis
FROM flagged JOIN "group" ON "group".id = group_id
JOIN descriptor ON descriptor.id = descriptor_id
ORDER BY model, apx_id, name, z, text"""

_ITEMS = """
SELECT * FROM item_score JOIN benchmark_item ON id = item_id
WHERE asked = :asked AND item_id IN (SELECT value FROM json_each(:ids))"""

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

_LINKED = """
SELECT statement_id FROM near_duplicate WHERE run_id = ?1
UNION SELECT head_id FROM near_duplicate WHERE run_id = ?1"""
_NAMED = "SELECT id FROM stereotype_table WHERE name = :name"
_FORGET_HELD = (
    f"DELETE FROM recorded WHERE run_id = :run AND stereotype_table_id IN ({_NAMED})",
    f"DELETE FROM held_against WHERE run_id = :run AND stereotype_table_id IN ({_NAMED})",
    "DELETE FROM heard WHERE run_id = :run AND stereotype_id IN "
    f"(SELECT id FROM stereotype WHERE stereotype_table_id IN ({_NAMED}))",
)
_FORGET_STEREOTYPES = (
    "DELETE FROM stereotype WHERE id NOT IN (SELECT stereotype_id FROM heard)",
    "DELETE FROM stereotype_table WHERE id NOT IN (SELECT stereotype_table_id FROM held_against)",
)
_HELD = """
SELECT stereotype_table.*, record FROM held_against
JOIN stereotype_table ON id = stereotype_table_id WHERE run_id = ? ORDER BY name, id"""
_SOUGHT = """
SELECT stereotype.*, heard.* FROM heard JOIN stereotype ON id = stereotype_id
WHERE run_id = ? AND stereotype_table_id = ? ORDER BY id"""
_MARKS = """
SELECT recorded.* FROM recorded WHERE run_id = ? AND stereotype_table_id = ? ORDER BY triple_id"""
_LINKS = """
SELECT p.text, o.text, head_p.text, head_o.text, similarity, method FROM near_duplicate
JOIN statement AS said ON said.id = statement_id JOIN statement AS head ON head.id = head_id
JOIN predicate AS p ON p.id = said.predicate_id JOIN object AS o ON o.id = said.object_id
JOIN predicate AS head_p ON head_p.id = head.predicate_id
JOIN object AS head_o ON head_o.id = head.object_id
WHERE run_id = ? ORDER BY head_p.text, head_o.text, head_id, p.text, o.text, statement_id"""


class Findings(Database):
    """See `kgbias.graph.store.Store`."""

    def label(self, labels: Sequence[Label]) -> None:
        ids = sorted({x.triple_id for x in labels})
        with self._transaction(aside=True):
            query = "SELECT id FROM triple WHERE id IN ({})"
            there = {id for (id,) in self._select_in(query, ids)}
            kept = [x for x in labels if x.triple_id in there]
            self._put("rater", {x.by for x in kept}, "INSERT OR IGNORE")
            self._put("label", kept, "INSERT OR IGNORE", rater_id=lambda x: x.by.id)

    def labels(self, measure: str | None = None) -> list[Label]:
        return [label_of(row) for row in self._rows(_LABELS, (measure,))]

    def label_count(self, measure: str) -> int:
        query = "SELECT count(*) FROM label WHERE measure = ?"
        return int(self._db.execute(query, (measure,)).fetchone()[0])

    def save_topics(self, run_id: str, models: Sequence[TopicModel]) -> None:
        named = "ON CONFLICT (id) DO UPDATE SET given = excluded.given WHERE excluded.given <> ''"
        with self._transaction():
            for table in ("topic_model", "run_topic", "about"):
                self._db.execute(f"DELETE FROM {table} WHERE run_id = ?", (run_id,))
            self._put("topic_model", models, "INSERT", run_id=run_id)
            for model in models:
                self._put("topic", model.topics, "INSERT", named)
                of = {"run_id": run_id, "category": model.category}
                self._put("run_topic", model.topics, "INSERT", topic_id=lambda t: t.id, **of)
                self._put("about", model.about, "INSERT", **of)

    def topics(self, run_id: str) -> list[TopicModel]:
        topics: dict[str, list[Topic]] = {}
        for row in self._rows(
            "SELECT run_topic.*, words, given FROM run_topic JOIN topic ON topic.id = topic_id "
            "WHERE run_id = ? ORDER BY run_topic.category, number",
            (run_id,),
        ):
            topics.setdefault(row["category"], []).append(self._record(Topic, row))
        about: dict[str, list[About]] = {}
        for row in self._rows("SELECT * FROM about WHERE run_id = ? ORDER BY triple_id", (run_id,)):
            about.setdefault(row["category"], []).append(self._record(About, row))
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

    def save_attributions(self, attributions: Sequence[Attribution]) -> None:
        with self._transaction():
            self._put("attribution", attributions, metric_id=lambda a: a.metric.id)

    def attributions(self, run_id: str) -> list[Attribution]:
        return [
            self._record(Attribution, row | {"metric": self._record(Metric, row)})
            for row in self._rows(_ATTRIBUTIONS, {"run": run_id})
        ]

    def known_nodes(self, kind: str, ids: Sequence[str]) -> set[str]:
        if kind not in _TABLES:
            raise UsageError(no_such("kind of node", kind, _TABLES))
        query = f"SELECT id FROM {_TABLES[kind]} WHERE id IN ({{}})"
        return {id for (id,) in self._select_in(query, list(ids))}

    def save_associations(self, run_id: str | None, nodes: Sequence[AssociationNode]) -> None:
        with self._transaction():
            for node in nodes:
                self._add_model(node.model)
                self._put("association_test", [node], model_id=node.model.id)
                self._db.execute("DELETE FROM association_edge WHERE test_id = ?", (node.id,))
                self._put("association_edge", node.edges, "INSERT OR IGNORE", test_id=node.id)
                if run_id is not None:
                    self._db.execute(
                        "INSERT OR IGNORE INTO run_association VALUES (?, ?)", (run_id, node.id)
                    )

    def associations(self, run_id: str | None = None) -> list[AssociationNode]:
        of_run = "WHERE t.id IN (SELECT test_id FROM run_association WHERE run_id = ?) "
        rows = self._rows(
            "SELECT t.*, model.name AS spec, revision, own_name "
            "FROM association_test t JOIN model ON model.id = model_id "
            + (of_run if run_id is not None else "")
            + "ORDER BY t.name, method, model.name, t.id",
            () if run_id is None else (run_id,),
        )
        return [self._record(AssociationNode, r | {"edges": self._edges(r["id"])}) for r in rows]

    def _edges(self, test_id: str) -> tuple[AssociationEdge, ...]:
        query = "SELECT * FROM association_edge WHERE test_id = ? ORDER BY side, kind, node_id"
        return tuple(self._records(AssociationEdge, query, (test_id,)))

    def save_flags(self, flagged: Flagged) -> None:
        groups = {node_id("group", f.group): storable(f.group) for f in flagged.flags}
        of = {node_id("descriptor", f.descriptor): f for f in flagged.flags}
        with self._transaction():
            self._db.execute("DELETE FROM flagged WHERE apx_id = ?", (flagged.id,))
            self._db.executemany('INSERT OR IGNORE INTO "group" VALUES (?, ?)', groups.items())
            self._db.executemany(
                "INSERT OR IGNORE INTO descriptor VALUES (?, ?, ?)",
                [(id, storable(f.descriptor), storable(f.axis)) for id, f in of.items()],
            )
            self._put(
                "flagged",
                flagged.flags,
                apx_id=flagged.id,
                group_id=lambda f: node_id("group", f.group),
                descriptor_id=lambda f: node_id("descriptor", f.descriptor),
                **in_graph(flagged),
            )

    def flags(self) -> list[Flagged]:
        found = []
        for _, same in groupby(self._rows(_FLAGS), lambda row: row["apx_id"]):
            own = list(same)
            flags = tuple(self._record(Flag, row) for row in own)
            found.append(self._record(Flagged, own[0] | {"flags": flags}))
        return found

    def save_item_scores(
        self, model: ModelInfo, settings: Settings, scores: Sequence[ItemScore]
    ) -> None:
        with self._transaction():
            self._add_model(model)
            self._put("benchmark_item", [s.item for s in scores])
            self._put(
                "item_score",
                scores,
                item_id=lambda s: s.item.id,
                asked=model.configured_id(settings),
                model_id=model.id,
                settings=canonical_json(settings),
            )

    def item_scores(
        self, model: ModelInfo, settings: Settings, ids: Sequence[str]
    ) -> dict[str, ItemScore]:
        given = {"asked": model.configured_id(settings), "ids": canonical_json(list(ids))}
        return {
            row["id"]: self._record(ItemScore, row | {"item": self._record(Item, row)})
            for row in self._rows(_ITEMS, given)
        }

    def item_settings(self, model: ModelInfo) -> list[Settings]:
        rows = self._db.execute(
            "SELECT DISTINCT settings FROM item_score WHERE model_id = ? ORDER BY settings",
            (model.id,),
        )
        return [read_settings(settings, self._json) for (settings,) in rows]

    def save_near_duplicates(self, run_id: str, links: Sequence[NearDuplicate]) -> None:
        with self._transaction():
            old = [id for (id,) in self._db.execute(_LINKED, (run_id,))]
            self._db.execute("DELETE FROM near_duplicate WHERE run_id = ?", (run_id,))
            self._add_statements([end for x in links for end in x.ends])
            self._put("near_duplicate", links, "INSERT", run_id=run_id)
            held = " UNION ".join(
                f'SELECT {r.column} FROM "{r.table}"' for r in references() if r.to == "statement"
            )
            self._db.execute(
                "DELETE FROM statement WHERE id IN (SELECT value FROM json_each(?)) "
                f"AND id NOT IN ({held})",
                (canonical_json(old),),
            )

    def near_duplicates(self, run_id: str) -> list[NearDuplicate]:
        return [
            NearDuplicate((p, o), (head_p, head_o), similarity, method)
            for p, o, head_p, head_o, similarity, method in self._db.execute(_LINKS, (run_id,))
        ]

    def save_held(self, run_id: str, held: Held) -> None:
        table = held.table.id
        of_table = {"run_id": run_id, "stereotype_table_id": table}
        entries = [each.entry for each in held.heard]
        with self._transaction():
            for query in _FORGET_HELD:
                self._db.execute(query, {"run": run_id, "name": storable(held.table.name)})
            self._put("stereotype_table", [held.table])
            self._put("stereotype", entries, id=lambda e: e.uid(table), stereotype_table_id=table)
            self._put("held_against", [held], "INSERT", **of_table)
            self._put(
                "heard", held.heard, "INSERT", run_id=run_id,
                stereotype_id=lambda h: h.entry.uid(table),
            )  # fmt: skip
            self._put("recorded", held.marks, "INSERT", **of_table)
            for query in _FORGET_STEREOTYPES:
                self._db.execute(query)

    def held(self, run_id: str) -> list[Held]:
        found = []
        for row in self._rows(_HELD, (run_id,)):
            table, ends = self._record(StereotypeTable, row), (run_id, row["id"])
            heard = tuple(
                self._record(
                    Heard, h | {"entry": self._record(Stereotype, h | {"source": table.name})}
                )
                for h in self._rows(_SOUGHT, ends)
            )
            marks = tuple(self._records(Mark, _MARKS, ends))
            found.append(self._record(Held, row | {"table": table, "heard": heard, "marks": marks}))
        return found

    def save_vectors(self, encoder: str, vectors: StatementVectors) -> None:
        rows = zip(vectors.statements, packed(vectors.rows), strict=True)
        with self._transaction():
            self._db.executemany(
                "INSERT OR REPLACE INTO vector VALUES (?, ?, ?, ?)",
                [(encoder, *ends, data) for ends, data in rows],
            )

    def encoders(self) -> list[str]:
        found = self._db.execute("SELECT DISTINCT encoder FROM vector ORDER BY encoder")
        return [encoder for (encoder,) in found]

    def vectors(self, run_id: str, encoder: str) -> StatementVectors:
        found = self._db.execute(_VECTORS, {"run": run_id, "encoder": encoder}).fetchall()
        return StatementVectors([(p, o) for p, o, _ in found], unpacked([row[2] for row in found]))

    def save_places(self, run_id: str, places: Sequence[NodePlace]) -> None:
        with self._transaction():
            self._db.execute("DELETE FROM place WHERE run_id = ?", (run_id,))
            self._put("place", places, "INSERT", run_id=run_id)

    def places(self, run_id: str) -> list[NodePlace]:
        return self._records(NodePlace, _PLACES, (run_id,))
