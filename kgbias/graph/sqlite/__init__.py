"""The default store: the whole graph and the answer log in one SQLite file.

Write-ahead logging lets others read while a crawl writes; with `synchronous=FULL`, a committed
answer survives a power cut. There is one writer at a time: a second one waits. An edge of a run
needs its declaration alone (`kgbias.graph.edge_records`); any other new kind of node or edge a
migration in `kgbias.graph.sqlite.schema`, and methods beside those of similar kinds.

Runs, findings, edges, probes and maintenance are a class each over one connection (`database`), as
in the Neo4j store. A store is opened for writing at its first write. A database of another program
is refused, unchanged (`file_check`). Every statement runs behind one guard, which turns SQLite's
errors into a line that says what to do (`connection`).
"""

from collections.abc import Callable, Collection, Mapping

from kgbias.graph.cypher import QueryResult, Value
from kgbias.graph.sqlite.cypher_view import CypherView
from kgbias.graph.sqlite.findings import SQLiteFindings
from kgbias.graph.sqlite.maintenance import SQLiteMaintenance
from kgbias.graph.sqlite.probes import SQLiteProbes


class SQLiteStore(SQLiteMaintenance, SQLiteFindings, SQLiteProbes):
    """See `kgbias.graph.store.Store`."""

    query_timeout: float | None = None

    def __init__(
        self, path: str, *, create: bool = True, notify: Callable[[str], None] | None = None
    ) -> None:
        super().__init__(path, create=create, notify=notify)
        self._view = CypherView(path, self._notify)

    def query(
        self,
        text: str,
        parameters: Mapping[str, Value] | None = None,
        *,
        names: Collection[str] | None = None,
    ) -> QueryResult:
        return self._view.query(text, parameters, names=names, timeout=self.query_timeout)

    def close(self) -> None:
        self._view.close()
        super().close()


__all__ = ["SQLiteStore"]
