"""A run in narrow rows, one at a time: in the memory of a row, however many there are."""

from collections.abc import Iterator
from itertools import islice

from kgbias.graph.said import Stated, Told, Valued
from kgbias.graph.sqlite.generations import GenerationTables
from kgbias.graph.sqlite.scores import ScoreTables
from kgbias.graph.types import Generation, TripleView

_AT_ONCE = 5_000  # triples whose scores are read together

# A group that is a seed twice stands where it was named last, as in `triples`.
_OF_ARM = """
SELECT triple.id, triple.group_id, "group".name, predicate.text, object.text, said.n
FROM (SELECT triple_id, sum(count) AS n FROM generation
      WHERE run_id = :run AND arm = :arm AND triple_id IS NOT NULL GROUP BY triple_id) AS said
JOIN triple ON triple.id = said.triple_id
JOIN "group" ON "group".id = triple.group_id
JOIN predicate ON predicate.id = predicate_id
JOIN object ON object.id = object_id
LEFT JOIN (SELECT group_id, max(position) AS place FROM run_group WHERE run_id = :run
           GROUP BY group_id) AS seed ON seed.group_id = triple.group_id
ORDER BY seed.place IS NULL, seed.place, "group".name, predicate.text, object.text, triple.id"""


class Streams(GenerationTables, ScoreTables):
    def arms(self, run_id: str) -> list[str]:
        rows = self._db.execute(
            "SELECT DISTINCT arm FROM generation WHERE run_id = ? AND triple_id IS NOT NULL "
            "ORDER BY arm",
            (run_id,),
        )
        return [arm for (arm,) in rows]

    def of_arm(self, run_id: str, arm: str) -> Iterator[TripleView]:
        metrics = self.metrics(run_id)
        rows = iter(self._sorted(_OF_ARM, {"run": run_id, "arm": arm}))
        while found := list(islice(rows, _AT_ONCE)):
            ids = [row[0] for row in found]
            scores = {measure: self.scores(metric, ids) for measure, metric in metrics.items()}
            for id, group_id, group, predicate, object, count in found:
                own = {m: values[id] for m, values in scores.items() if id in values}
                yield TripleView(id, group_id, group, predicate, object, count, own, arm)

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
