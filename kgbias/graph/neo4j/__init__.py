"""The store for teams: a Neo4j server over the official driver.

The triple is a node, since merging on an edge slows with the degree of its ends. Writes are
batched with UNWIND, in transactions that retry and may be repeated. Labels and properties avoid
names that other Cypher engines reserve (a group is a `SocialGroup`, an id is a `uid`), so that the
queries in `cypher/` run unchanged on the embedded store too.
"""

from collections.abc import Callable

from kgbias.graph.neo4j.associations import AssociationNodes
from kgbias.graph.neo4j.generations import GenerationNodes
from kgbias.graph.neo4j.links import LinkEdges
from kgbias.graph.neo4j.places import PlaceEdges
from kgbias.graph.neo4j.probes import ProbeNodes
from kgbias.graph.neo4j.scores import ScoreNodes
from kgbias.graph.neo4j.session import Neo4jSession
from kgbias.graph.neo4j.topics import TopicNodes

_KEYS = {
    "Category": "name",
    "SocialGroup": "uid",
    "Predicate": "uid",
    "Object": "uid",
    "Triple": "uid",
    "Model": "uid",
    "Run": "uid",
    "Answer": "key",
    "Generation": "uid",
    "Metric": "uid",
    "AssociationTest": "uid",
    "Topic": "uid",
    "TopicModel": "uid",
    "Statement": "uid",
}


class Neo4jStore(
    GenerationNodes,
    ScoreNodes,
    AssociationNodes,
    PlaceEdges,
    TopicNodes,
    ProbeNodes,
    LinkEdges,
):
    """See `kgbias.graph.store.Store`."""

    def __init__(
        self, url: str, *, create: bool = True, notify: Callable[[str], None] | None = None
    ) -> None:
        super().__init__(url, notify=notify)
        if create:
            for label, key in _KEYS.items():
                name = f"kgbias_{label.lower()}"
                self.write(
                    (
                        f"CREATE CONSTRAINT {name} IF NOT EXISTS "
                        f"FOR (n:{label}) REQUIRE n.{key} IS UNIQUE",
                        {},
                    )
                )
            for kind in ("STEREOTYPE", "ABOUT", "PROBED", "NEAR"):
                self.write(
                    (
                        f"CREATE INDEX kgbias_{kind.lower()} IF NOT EXISTS "
                        f"FOR ()-[e:{kind}]-() ON (e.run)",
                        {},
                    )
                )


__all__ = ["Neo4jSession", "Neo4jStore"]
