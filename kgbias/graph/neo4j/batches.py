"""What is left with providers, until its answers are in the log: nodes that are no part of the
graph's shape, and go when the answers have come."""

from datetime import datetime

from kgbias.graph.batches import Batch
from kgbias.graph.neo4j.session import Neo4jSession


class BatchNodes(Neo4jSession):
    def batches(self, asked: str) -> list[Batch]:
        rows = self.read(
            "MATCH (b:Batch {asked: $asked}) RETURN b.name AS name, b.keys AS keys, "
            "b.learned AS learned, b.created AS created, b.id AS id ORDER BY created, name",
            asked=asked,
        )
        return [
            Batch(
                row["name"],
                asked,
                tuple(row["keys"]),
                row["learned"],
                datetime.fromisoformat(row["created"]),
                row["id"],
            )
            for row in rows
        ]

    def keep_batch(self, batch: Batch) -> None:
        self.write(
            (
                "MERGE (b:Batch {name: $name}) SET b = $row",
                {
                    "name": batch.name,
                    "row": {
                        "name": batch.name,
                        "asked": batch.asked,
                        "keys": list(batch.keys),
                        "learned": batch.learned,
                        "created": batch.created.isoformat(),
                        "id": batch.id,
                    },
                },
            )
        )

    def drop_batch(self, name: str) -> None:
        self.write(("MATCH (b:Batch {name: $name}) DELETE b", {"name": name}))
