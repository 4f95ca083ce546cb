"""What is left with providers, until its answers are in the log. It is no part of the graph."""

from datetime import datetime

from kgbias.graph.batches import Batch
from kgbias.graph.sqlite.database import Database
from kgbias.graph.types import canonical_json


class BatchTable(Database):
    def batches(self, asked: str) -> list[Batch]:
        rows = self._db.execute(
            "SELECT name, asked, keys, learned, created, called FROM batch WHERE asked = ? "
            "ORDER BY created, name",
            (asked,),
        )
        return [
            Batch(name, of, tuple(self._json(keys)), learned, datetime.fromisoformat(created), id)
            for name, of, keys, learned, created, id in rows
        ]

    def keep_batch(self, batch: Batch) -> None:
        row = (
            batch.name,
            batch.asked,
            canonical_json(batch.keys),
            batch.learned,
            batch.created.isoformat(),
            batch.id,
        )
        with self._transaction():
            self._db.execute("INSERT OR REPLACE INTO batch VALUES (?, ?, ?, ?, ?, ?)", row)

    def drop_batch(self, name: str) -> None:
        with self._transaction():
            self._db.execute("DELETE FROM batch WHERE name = ?", (name,))
