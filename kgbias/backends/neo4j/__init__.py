"""The store for teams: a Neo4j server over the official driver.

A triple is a node, since merging on an edge slows down with the degree of its ends. Writes are
batched with UNWIND, in transactions that retry and may be repeated. Labels and properties avoid
names that other Cypher engines reserve (a group is a `SocialGroup`, an id is a `uid`): the queries
in `cypher/` run unchanged on the embedded store too.
"""

from collections.abc import Callable

from kgbias.backends.neo4j.maintenance import Neo4jMaintenance
from kgbias.backends.neo4j.probes import Neo4jProbes
from kgbias.backends.neo4j.session import Neo4jSession
from kgbias.graph import shape

_UNIQUE_HOLDER = (
    "CREATE CONSTRAINT kgbias_holder IF NOT EXISTS FOR (n:Holder) REQUIRE n.run IS UNIQUE"
)


class Neo4jStore(Neo4jMaintenance, Neo4jProbes):
    """See `kgbias.graph.store.Store`."""

    def __init__(
        self, url: str, *, create: bool = True, notify: Callable[[str], None] | None = None
    ) -> None:
        super().__init__(url, notify=notify)
        if create:
            for node in shape.NODES:
                self.write((shape.constraint_query(node), {}))
            self.write((_UNIQUE_HOLDER, {}))
            for edge in shape.run_indexed_edges():
                self._index(f"kgbias_{edge.type.lower()}", edge.type, "run")
            for key in ("predicate_uid", "object_uid"):  # looked up by deletions
                on = f"FOR (n:Statement) ON (n.{key})"
                self.write((f"CREATE INDEX kgbias_statement_{key} IF NOT EXISTS {on}", {}))
            # To find the edges of a few statements among a run's millions (`same_object`), and the
            # first ones by a property (`most_repeated`, `most_negative`, `most_toxic`).
            self._index("kgbias_said", "STEREOTYPE", "triple")
            for key in ("count", "regard", "toxicity"):
                self._index(f"kgbias_by_{key}", "STEREOTYPE", "run", key)

    def _index(self, name: str, edge: str, *keys: str) -> None:
        on = ", ".join(f"e.{key}" for key in keys)
        self.write((f"CREATE INDEX {name} IF NOT EXISTS FOR ()-[e:{edge}]-() ON ({on})", {}))


__all__ = ["Neo4jSession", "Neo4jStore"]
