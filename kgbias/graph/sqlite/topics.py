"""Topics with their ABOUT edges, and attributions."""

from collections.abc import Sequence

from kgbias.graph.sqlite.database import Database
from kgbias.graph.types import About, Attribution, Metric, Topic, TopicModel, canonical_json


class TopicTables(Database):
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
        for category, number, words, *rest in self._db.execute(
            "SELECT run_topic.category, number, words, size, coherence, stability, given "
            "FROM run_topic JOIN topic ON topic.id = topic_id WHERE run_id = ? ORDER BY 1, 2",
            (run_id,),
        ):
            topic = Topic(category, number, tuple(self._json(words)), *rest)
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
