"""What was found in the statements of runs: topics, association tests, flags of APX, scores of
benchmarks, near-duplicates, and the places of nodes.
"""

from collections.abc import Sequence
from itertools import groupby
from operator import itemgetter

from kgbias.errors import UsageError
from kgbias.graph.sqlite.database import Database, number
from kgbias.graph.types import (
    About,
    AssociationEdge,
    AssociationNode,
    Attribution,
    Flag,
    Flagged,
    ItemScore,
    Metric,
    NearDuplicate,
    NodePlace,
    Topic,
    TopicModel,
    canonical_json,
    item_score,
    node_id,
    storable,
)
from kgbias.models.base import ModelInfo, Settings

_TABLES = {"group": '"group"', "object": "object", "topic": "topic"}


_TESTS = """
SELECT apx_id, model, revision, settings, level, groups, name, text, axis, bias_score, z
FROM flagged JOIN "group" ON "group".id = group_id
JOIN descriptor ON descriptor.id = descriptor_id
ORDER BY model, apx_id, name, z, text"""


_ITEMS = """
SELECT id, benchmark, name, category, scores, tokens, seconds FROM item_score
JOIN benchmark_item ON id = item_id WHERE asked = ? AND item_id IN ({})"""
_ITEM_COLUMNS = ("id", "benchmark", "name", "category", "scores", "tokens", "seconds")


_PLACES = """
SELECT kind, node_id, coalesce("group".name, object.text), degree, betweenness, community, groups
FROM place
LEFT JOIN "group" ON kind = 'group' AND "group".id = node_id
LEFT JOIN object ON kind = 'object' AND object.id = node_id
WHERE run_id = ? ORDER BY kind, node_id"""


class Findings(Database):
    """See `kgbias.graph.store.Store`."""

    def save_topics(self, run_id: str, models: Sequence[TopicModel]) -> None:
        with self._transaction():
            for table in ("topic_model", "run_topic", "about"):
                self._db.execute(f"DELETE FROM {table} WHERE run_id = ?", (run_id,))
            for model in models:
                self._db.execute(
                    "INSERT INTO topic_model VALUES (?, ?, ?)",
                    (run_id, model.category, canonical_json(dict(model.settings))),
                )
                self._db.executemany(
                    "INSERT INTO topic (id, category, words, given) VALUES (?, ?, ?, ?) "
                    "ON CONFLICT (id) DO UPDATE SET given = excluded.given "
                    "WHERE excluded.given <> ''",
                    [(t.id, t.category, canonical_json(t.words), t.given) for t in model.topics],
                )
                self._db.executemany(
                    "INSERT INTO run_topic VALUES (?, ?, ?, ?, ?, ?, ?)",
                    [
                        (
                            run_id,
                            model.category,
                            t.number,
                            t.id,
                            t.size,
                            t.coherence,
                            t.stability,
                        )
                        for t in model.topics
                    ],
                )
                self._db.executemany(
                    "INSERT INTO about VALUES (?, ?, ?, ?, ?, ?)",
                    [
                        (run_id, a.triple_id, model.category, a.topic_id, a.probability, a.assigned)
                        for a in model.about
                    ],
                )

    def topics(self, run_id: str) -> list[TopicModel]:
        topics: dict[str, list[Topic]] = {}
        for category, n, words, *rest in self._db.execute(
            "SELECT run_topic.category, number, words, size, coherence, stability, given "
            "FROM run_topic JOIN topic ON topic.id = topic_id WHERE run_id = ? ORDER BY 1, 2",
            (run_id,),
        ):
            topic = Topic(category, n, tuple(self._json(words)), *rest)
            topics.setdefault(category, []).append(topic)
        about: dict[str, list[About]] = {}
        for category, triple_id, topic_id, probability, assigned in self._db.execute(
            "SELECT category, triple_id, topic_id, probability, assigned FROM about "
            "WHERE run_id = ? ORDER BY triple_id",
            (run_id,),
        ):
            about.setdefault(category, []).append(
                About(triple_id, topic_id, probability, bool(assigned))
            )
        return [
            TopicModel(
                category,
                tuple(topics.get(category, ())),
                tuple(about.get(category, ())),
                self._json(settings),
            )
            for category, settings in self._db.execute(
                "SELECT category, settings FROM topic_model WHERE run_id = ? ORDER BY category",
                (run_id,),
            ).fetchall()
        ]

    def name_topic(self, topic_id: str, given: str) -> None:
        with self._transaction():
            self._db.execute("UPDATE topic SET given = ? WHERE id = ?", (given, topic_id))

    def save_attributions(self, attributions: Sequence[Attribution]) -> None:
        with self._transaction():
            self._db.executemany(
                "INSERT OR REPLACE INTO attribution VALUES (?, ?, ?, ?, ?, ?)",
                [
                    (
                        a.metric.id,
                        a.triple_id,
                        a.method,
                        canonical_json(a.tokens),
                        canonical_json(a.effects),
                        a.score,
                    )
                    for a in attributions
                ],
            )

    def attributions(self, run_id: str) -> list[Attribution]:
        rows = self._db.execute(
            "SELECT triple_id, m.measure, scorer, version, verbaliser, tokens, effects, score, "
            "method FROM run_metric JOIN metric m ON m.id = metric_id "
            "JOIN attribution USING (metric_id) WHERE run_id = ? AND triple_id IN "
            "(SELECT triple_id FROM generation WHERE generation.run_id = run_metric.run_id) "
            "ORDER BY m.measure, triple_id, method",
            (run_id,),
        )
        return [
            Attribution(
                row[0],
                Metric(*row[1:5]),
                tuple(self._json(row[5])),
                tuple(self._json(row[6])),
                row[7],
                row[8],
            )
            for row in rows
        ]

    def known_nodes(self, kind: str, ids: Sequence[str]) -> set[str]:
        if kind not in _TABLES:
            raise UsageError(f"no kind of node {kind!r}; the kinds are {', '.join(_TABLES)}")
        query = f"SELECT id FROM {_TABLES[kind]} WHERE id IN ({{}})"
        return {id for (id,) in self._select_in(query, list(ids))}

    def save_associations(self, run_id: str | None, nodes: Sequence[AssociationNode]) -> None:
        with self._transaction():
            for node in nodes:
                self._add_model(node.model)
                self._db.execute(
                    "INSERT OR REPLACE INTO association_test (id, name, method, model_id, "
                    "effect_size, p_value, low, high, record, p_published, p_holm, p_bh, n_x, n_y) "
                    "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                    (
                        node.id,
                        node.test,
                        node.method,
                        node.model.id,
                        node.effect_size,
                        node.p_value,
                        node.low,
                        node.high,
                        canonical_json(dict(node.record)),
                        node.p_published,
                        node.p_holm,
                        node.p_bh,
                        node.n_x,
                        node.n_y,
                    ),
                )
                self._db.execute("DELETE FROM association_edge WHERE test_id = ?", (node.id,))
                self._db.executemany(
                    "INSERT OR IGNORE INTO association_edge VALUES (?, ?, ?, ?)",
                    [(node.id, edge.side, edge.kind, edge.node_id) for edge in node.edges],
                )
                if run_id is not None:
                    self._db.execute(
                        "INSERT OR IGNORE INTO run_association VALUES (?, ?)", (run_id, node.id)
                    )

    def associations(self, run_id: str | None = None) -> list[AssociationNode]:
        of_run = "WHERE t.id IN (SELECT test_id FROM run_association WHERE run_id = ?) "
        rows = self._db.execute(
            "SELECT t.id, t.name, method, effect_size, p_value, low, high, record, model.name, "
            "revision, p_published, p_holm, p_bh, n_x, n_y "
            "FROM association_test t JOIN model ON model.id = model_id "
            + (of_run if run_id is not None else "")
            + "ORDER BY t.name, method, model.name, t.id",
            () if run_id is None else (run_id,),
        ).fetchall()
        return [
            AssociationNode(
                id=row[0],
                test=row[1],
                method=row[2],
                model=ModelInfo(row[8], row[9]),
                # SQLite keeps NaN as NULL.
                effect_size=number(row[3]),
                p_value=number(row[4]),
                low=number(row[5]),
                high=number(row[6]),
                record=self._json(row[7]),
                edges=self._edges(row[0]),
                p_published=number(row[10]),
                p_holm=number(row[11]),
                p_bh=number(row[12]),
                n_x=row[13],
                n_y=row[14],
            )
            for row in rows
        ]

    def _edges(self, test_id: str) -> tuple[AssociationEdge, ...]:
        rows = self._db.execute(
            "SELECT side, kind, node_id FROM association_edge WHERE test_id = ? "
            "ORDER BY side, kind, node_id",
            (test_id,),
        )
        return tuple(AssociationEdge(*row) for row in rows)

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
            self._db.executemany(
                f"INSERT OR REPLACE INTO flagged VALUES ({', '.join('?' * 10)})",
                [
                    (
                        flagged.id,
                        node_id("group", f.group),
                        node_id("descriptor", f.descriptor),
                        storable(flagged.model),
                        flagged.revision,
                        canonical_json(flagged.settings),
                        f.bias_score,
                        f.z,
                        flagged.level,
                        flagged.groups,
                    )
                    for f in flagged.flags
                ],
            )

    def flags(self) -> list[Flagged]:
        found = []
        for (id, model, revision, settings, level, groups), rows in groupby(
            self._db.execute(_TESTS).fetchall(), itemgetter(slice(6))
        ):
            flags = tuple(Flag(*row[6:]) for row in rows)
            read = self._settings(settings)
            found.append(Flagged(id, model, revision, read, level, groups, flags))
        return found

    def save_item_scores(
        self, model: ModelInfo, settings: Settings, scores: Sequence[ItemScore]
    ) -> None:
        with self._transaction():
            self._add_model(model)
            self._db.executemany(
                "INSERT OR REPLACE INTO benchmark_item VALUES (?, ?, ?, ?)",
                [
                    (s.item.id, s.item.benchmark, storable(s.item.name), storable(s.item.category))
                    for s in scores
                ],
            )
            asked, how = model.asked(settings), canonical_json(settings)
            self._db.executemany(
                "INSERT OR REPLACE INTO item_score VALUES (?, ?, ?, ?, ?, ?, ?)",
                [
                    (s.item.id, asked, model.id, how, canonical_json(s.scores), s.tokens, s.seconds)
                    for s in scores
                ],
            )

    def item_scores(
        self, model: ModelInfo, settings: Settings, ids: Sequence[str]
    ) -> dict[str, ItemScore]:
        rows = self._select_in(_ITEMS, list(ids), model.asked(settings))
        return {row[0]: item_score(dict(zip(_ITEM_COLUMNS, row, strict=True))) for row in rows}

    def item_settings(self, model: ModelInfo) -> list[Settings]:
        rows = self._db.execute(
            "SELECT DISTINCT settings FROM item_score WHERE model_id = ? ORDER BY settings",
            (model.id,),
        )
        return [self._settings(settings) for (settings,) in rows]

    def save_near_duplicates(self, run_id: str, links: Sequence[NearDuplicate]) -> None:
        with self._transaction():
            self._db.execute("DELETE FROM near_duplicate WHERE run_id = ?", (run_id,))
            self._db.executemany(
                "INSERT INTO near_duplicate VALUES (?, ?, ?, ?, ?, ?)",
                [(run_id, x.kind, x.node_id, x.head_id, x.similarity, x.method) for x in links],
            )

    def near_duplicates(self, run_id: str) -> list[NearDuplicate]:
        found: list[NearDuplicate] = []
        for kind in ("object", "predicate"):
            rows = self._db.execute(
                f"SELECT kind, node_id, head_id, said.text, head.text, similarity, method "
                f"FROM near_duplicate JOIN {kind} AS said ON said.id = node_id "
                f"JOIN {kind} AS head ON head.id = head_id WHERE run_id = ? AND kind = ? "
                "ORDER BY head.text, said.text, node_id",
                (run_id, kind),
            )
            found += [NearDuplicate(*row) for row in rows]
        return found

    def save_places(self, run_id: str, places: Sequence[NodePlace]) -> None:
        with self._transaction():
            self._db.execute("DELETE FROM place WHERE run_id = ?", (run_id,))
            self._db.executemany(
                "INSERT INTO place VALUES (?, ?, ?, ?, ?, ?, ?)",
                [
                    (run_id, p.kind, p.node_id, p.degree, p.betweenness, p.community, p.groups)
                    for p in places
                ],
            )

    def places(self, run_id: str) -> list[NodePlace]:
        return [NodePlace(*row) for row in self._db.execute(_PLACES, (run_id,))]
