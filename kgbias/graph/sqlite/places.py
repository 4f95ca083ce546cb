"""The places of nodes in the shape of a run's graph."""

from collections.abc import Sequence

from kgbias.graph.sqlite.database import Database
from kgbias.graph.types import NodePlace

_PLACES = """
SELECT kind, node_id, coalesce("group".name, object.text), degree, betweenness, community, groups
FROM place
LEFT JOIN "group" ON kind = 'group' AND "group".id = node_id
LEFT JOIN object ON kind = 'object' AND object.id = node_id
WHERE run_id = ? ORDER BY kind, node_id"""


class PlaceTables(Database):
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
