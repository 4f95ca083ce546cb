"""Metrics, the scores of triples, and the figures of groups."""

import math
from collections.abc import Collection, Sequence

from kgbias.graph.sqlite.database import Database
from kgbias.graph.types import GroupScore, Metric, Score, canonical_json


class ScoreTables(Database):
    def save_scores(self, run_id: str, metric: Metric, scores: Sequence[Score]) -> None:
        with self._transaction():
            self._db.execute(
                "INSERT OR IGNORE INTO metric VALUES (?, ?, ?, ?, ?)",
                (metric.id, metric.measure, metric.scorer, metric.version, metric.verbaliser),
            )
            self._db.execute(
                "INSERT OR REPLACE INTO run_metric VALUES (?, ?, ?)",
                (run_id, metric.measure, metric.id),
            )
            self._db.executemany(
                "INSERT OR REPLACE INTO score VALUES (?, ?, ?, ?, ?)",
                [
                    (metric.id, s.triple_id, s.value, s.label, canonical_json(dict(s.details)))
                    for s in scores
                ],
            )

    def derive(self, run_id: str) -> None:
        """Nothing to do: the view of the file reads STEREOTYPE edges from the tables."""

    def scored(self, metric: Metric, triple_ids: Sequence[str]) -> set[str]:
        found = self._select_in(
            "SELECT triple_id FROM score WHERE metric_id = ? AND triple_id IN ({})",
            triple_ids,
            metric.id,
        )
        return {id for (id,) in found}

    def scores(self, metric: Metric, triple_ids: Sequence[str]) -> dict[str, Score]:
        found = self._select_in(
            "SELECT triple_id, value, label, details FROM score "
            "WHERE metric_id = ? AND triple_id IN ({})",
            triple_ids,
            metric.id,
        )
        return {id: Score(id, value, label, self._json(text)) for id, value, label, text in found}

    def scorers(self, run_id: str) -> list[Metric]:
        rows = self._db.execute(
            "SELECT measure, scorer, version, verbaliser FROM metric WHERE EXISTS ("
            "SELECT 1 FROM generation JOIN score ON score.triple_id = generation.triple_id "
            "AND score.metric_id = metric.id WHERE generation.run_id = ?) ORDER BY id",
            (run_id,),
        )
        return [Metric(*row) for row in rows]

    def metrics(self, run_id: str) -> dict[str, Metric]:
        rows = self._db.execute(
            "SELECT metric.measure, scorer, version, verbaliser FROM run_metric "
            "JOIN metric ON metric.id = metric_id WHERE run_id = ? ORDER BY metric.measure",
            (run_id,),
        )
        return {row[0]: Metric(*row) for row in rows}

    def save_group_scores(
        self, run_id: str, scores: Sequence[GroupScore], *, replacing: Collection[str] = ()
    ) -> None:
        with self._transaction():
            self._db.executemany(
                "DELETE FROM group_score WHERE run_id = ? AND measure = ?",
                [(run_id, name) for name in replacing],
            )
            self._db.executemany(
                "INSERT OR REPLACE INTO group_score (run_id, group_id, measure, value, low, high, "
                "n, method, arm) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                [
                    (run_id, s.group_id, s.measure, s.value, s.low, s.high, s.n, s.method, s.arm)
                    for s in scores
                ],
            )

    def group_scores(self, run_id: str) -> list[GroupScore]:
        rows = self._db.execute(
            "SELECT group_id, measure, value, low, high, n, method, arm FROM group_score "
            "WHERE run_id = ? ORDER BY measure, group_id, arm",
            (run_id,),
        )
        # SQLite keeps NaN as NULL.
        return [
            GroupScore(
                _number(value), _number(low), _number(high), n, group_id, measure, method, arm
            )
            for group_id, measure, value, low, high, n, method, arm in rows
        ]


def _number(value: float | None) -> float:
    return math.nan if value is None else value
