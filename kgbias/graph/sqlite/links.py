"""Links between near-duplicate objects and predicates."""

from collections.abc import Sequence

from kgbias.graph.sqlite.database import Database
from kgbias.graph.types import NearDuplicate


class LinkTables(Database):
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
