"""What people decided in review, as nodes."""

from collections.abc import Sequence

from kgbias.graph.decisions import Decision, decision_of, decision_row
from kgbias.graph.neo4j.runs import RunNodes
from kgbias.graph.neo4j.session import Row

_SAVE = """
MATCH (run:Run {uid: $run})
UNWIND $rows AS row
MERGE (d:Decision {uid: row.uid}) ON CREATE SET d = row
MERGE (run)-[:REVIEWED]->(d)
WITH d
MATCH (n:Generation {uid: d.generation_uid})
MERGE (d)-[:DECIDES]->(n)"""

# A round that is recorded again may bring back a generation that was gone.
_TIE = """
MATCH (:Run {uid: $run})-[:REVIEWED]->(d:Decision)
MATCH (n:Generation {uid: d.generation_uid})
MERGE (d)-[:DECIDES]->(n)"""


class DecisionNodes(RunNodes):
    def decisions(self, run_id: str) -> list[Decision]:
        rows = self.read(
            "MATCH (:Run {uid: $run})-[:REVIEWED]->(d:Decision) RETURN properties(d) AS d "
            "ORDER BY d.decided, d.uid",
            run=run_id,
        )
        return [decision_of(row["d"]) for row in rows]


def decision_statements(run_id: str, decisions: Sequence[Decision]) -> list[tuple[str, Row]]:
    """The writes of these decisions, without their effect on generations."""
    return [(_SAVE, {"run": run_id, "rows": [decision_row(d) for d in decisions]})]


def tied(run_id: str) -> tuple[str, Row]:
    """The write that ties a run's decisions to the generations there are."""
    return _TIE, {"run": run_id}
