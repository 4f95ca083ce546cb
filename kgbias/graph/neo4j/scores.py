"""Metrics, the scores of triples, and the figures of groups, as nodes and edges."""

import math
from collections.abc import Collection, Sequence

from kgbias.graph.neo4j.session import BATCH, Neo4jSession, number
from kgbias.graph.types import GroupScore, Metric, Score

_SCORES = """
MATCH (m:Metric {uid: $metric})
UNWIND $rows AS row
MATCH (t:Triple {uid: row.triple})
MERGE (t)-[s:SCORED]->(m)
SET s.value = row.value, s.label = row.label, s.names = row.names, s.parts = row.parts"""

_GROUP_SCORES = """
MATCH (run:Run {uid: $run})
UNWIND $rows AS row
MATCH (g:SocialGroup {uid: row.group})
MERGE (run)-[f:FIGURE {measure: row.measure, arm: row.arm}]->(g)
SET f.value = row.value, f.low = row.low, f.high = row.high, f.n = row.n, f.method = row.method"""


_FORGET_FIGURES = """
MATCH (:Run {uid: $run})-[f:FIGURE]->()
WHERE f.measure IN $replaced
DELETE f"""


class ScoreNodes(Neo4jSession):
    def save_scores(self, run_id: str, metric: Metric, scores: Sequence[Score]) -> None:
        rows = [
            {
                "triple": s.triple_id,
                "value": s.value,
                "label": s.label,
                "names": sorted(s.details),
                "parts": [float(s.details[name]) for name in sorted(s.details)],
            }
            for s in scores
        ]
        self.write(
            (
                """
                MATCH (run:Run {uid: $run})
                MERGE (m:Metric {uid: $metric}) SET m += $properties
                WITH run, m
                OPTIONAL MATCH (run)-[old:MEASURED_BY {measure: $properties.measure}]->(other)
                WHERE other <> m
                DELETE old
                MERGE (run)-[:MEASURED_BY {measure: $properties.measure}]->(m)""",
                {
                    "run": run_id,
                    "metric": metric.id,
                    "properties": {
                        "measure": metric.measure,
                        "scorer": metric.scorer,
                        "version": metric.version,
                        "verbaliser": metric.verbaliser,
                    },
                },
            ),
            (_SCORES, {"rows": rows[:BATCH], "metric": metric.id}),
        )
        self.write_rows(_SCORES, rows[BATCH:], metric=metric.id)

    def scored(self, metric: Metric, triple_ids: Sequence[str]) -> set[str]:
        rows = self.read(
            # From the triples: the metric may have millions of others.
            "UNWIND $uids AS uid MATCH (t:Triple {uid: uid}) "
            "WHERE EXISTS { (t)-[:SCORED]->(:Metric {uid: $metric}) } RETURN uid",
            metric=metric.id,
            uids=list(triple_ids),
        )
        return {row["uid"] for row in rows}

    def scores(self, metric: Metric, triple_ids: Sequence[str]) -> dict[str, Score]:
        rows = self.read(
            "UNWIND $uids AS uid MATCH (t:Triple {uid: uid})-[s:SCORED]->(:Metric {uid: $metric}) "
            "RETURN uid, s.value AS value, s.label AS label, s.names AS names, s.parts AS parts",
            metric=metric.id,
            uids=list(triple_ids),
        )
        return {
            r["uid"]: Score(
                r["uid"], r["value"], r["label"], dict(zip(r["names"], r["parts"], strict=True))
            )
            for r in rows
        }

    def scorers(self, run_id: str) -> list[Metric]:
        rows = self.read(
            "MATCH (m:Metric) WHERE EXISTS { (m)<-[:SCORED]-(:Triple)<-[:YIELDED]-(:Generation)"
            "-[:IN]->(:Run {uid: $run}) } RETURN m.measure AS measure, m.scorer AS scorer, "
            "m.version AS version, m.verbaliser AS verbaliser ORDER BY m.uid",
            run=run_id,
        )
        return [Metric(**row) for row in rows]

    def metrics(self, run_id: str) -> dict[str, Metric]:
        rows = self.read(
            "MATCH (:Run {uid: $run})-[:MEASURED_BY]->(m:Metric) "
            "RETURN m.measure AS measure, m.scorer AS scorer, m.version AS version, "
            "m.verbaliser AS verbaliser ORDER BY m.measure",
            run=run_id,
        )
        return {row["measure"]: Metric(**row) for row in rows}

    def save_group_scores(
        self, run_id: str, scores: Sequence[GroupScore], *, replacing: Collection[str] = ()
    ) -> None:
        rows = [
            {
                "group": s.group_id,
                "measure": s.measure,
                "arm": s.arm,
                "value": number(s.value),
                "low": number(s.low),
                "high": number(s.high),
                "n": s.n,
                "method": s.method,
            }
            for s in scores
        ]
        self.write(
            (
                _FORGET_FIGURES,
                {
                    "run": run_id,
                    "replaced": sorted(replacing),
                },
            ),
            (_GROUP_SCORES, {"run": run_id, "rows": rows}),
        )

    def group_scores(self, run_id: str) -> list[GroupScore]:
        rows = self.read(
            "MATCH (:Run {uid: $run})-[f:FIGURE]->(g:SocialGroup) "
            "RETURN g.uid AS group_id, f.measure AS measure, f.value AS value, f.low AS low, "
            "f.high AS high, f.n AS n, f.method AS method, coalesce(f.arm, '') AS arm "
            "ORDER BY measure, group_id, arm",
            run=run_id,
        )
        return [
            GroupScore(**{k: math.nan if v is None else v for k, v in row.items()})  # type: ignore[arg-type]
            for row in rows
        ]
