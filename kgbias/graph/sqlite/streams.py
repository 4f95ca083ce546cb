"""A run in narrow rows, one at a time: in the memory of a row, however many there are."""

from collections.abc import Iterator

from kgbias.graph.said import Stated, Told, Valued
from kgbias.graph.sqlite.generations import GenerationTables
from kgbias.graph.types import Generation


class Streams(GenerationTables):
    def stated(self, run_id: str) -> Iterator[Stated]:
        rows = self._db.execute(
            """
            SELECT triple.id, group_id, predicate_id, object_id, "group".name, predicate.text,
                   object.text
            FROM triple
            JOIN "group" ON "group".id = group_id
            JOIN predicate ON predicate.id = predicate_id
            JOIN object ON object.id = object_id
            WHERE triple.id IN (SELECT triple_id FROM generation WHERE run_id = ?)
            ORDER BY triple.id""",
            (run_id,),
        )
        return map(Stated._make, rows)

    def told(self, run_id: str) -> Iterator[Told]:
        rows = self._db.execute(
            "SELECT id, triple_id, arm, strategy, iteration, count FROM generation "
            "WHERE run_id = ? AND triple_id IS NOT NULL ORDER BY iteration, arm, path",
            (run_id,),
        )
        return map(Told._make, rows)

    def valued(self, run_id: str) -> Iterator[Valued]:
        rows = self._db.execute(
            "SELECT measure, triple_id, value, label FROM run_metric "
            "JOIN score USING (metric_id) WHERE run_id = ? ORDER BY measure, triple_id",
            (run_id,),
        )
        return map(Valued._make, rows)

    def answered(
        self, run_id: str, triple_id: str, arm: str, *, first: int, most: int
    ) -> list[Generation]:
        rows = self._generations(
            "WHERE generation.triple_id = ? AND run_id = ? AND arm = ? "
            "ORDER BY iteration, path LIMIT ? OFFSET ?",
            (triple_id, run_id, arm, most, first),
        )
        return list(rows)
