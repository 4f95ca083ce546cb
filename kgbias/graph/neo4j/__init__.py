"""The store for teams: a Neo4j server over the official driver.

The triple is a node, since merging on an edge slows with the degree of its ends. Writes are
batched with UNWIND, in transactions that retry and may be repeated. Labels and properties avoid
names that other Cypher engines reserve (a group is a `SocialGroup`, an id is a `uid`), so that the
queries in `cypher/` run unchanged on the embedded store too.
"""

from collections.abc import Callable

from kgbias.graph import shape
from kgbias.graph.neo4j.associations import AssociationNodes
from kgbias.graph.neo4j.batches import BatchNodes
from kgbias.graph.neo4j.beliefs import BeliefNodes
from kgbias.graph.neo4j.choices import ChoiceNodes
from kgbias.graph.neo4j.flags import FlagEdges
from kgbias.graph.neo4j.items import ItemNodes
from kgbias.graph.neo4j.keeping import Keeping
from kgbias.graph.neo4j.links import LinkEdges
from kgbias.graph.neo4j.passages import PassageNodes
from kgbias.graph.neo4j.profiles import ProfileNodes
from kgbias.graph.neo4j.scores import ScoreNodes
from kgbias.graph.neo4j.session import Neo4jSession
from kgbias.graph.neo4j.sofa import SofaNodes
from kgbias.graph.neo4j.streams import Streams
from kgbias.graph.neo4j.topics import TopicNodes


class Neo4jStore(
    Keeping,
    Streams,
    ScoreNodes,
    AssociationNodes,
    TopicNodes,
    ChoiceNodes,
    BeliefNodes,
    FlagEdges,
    SofaNodes,
    LinkEdges,
    PassageNodes,
    ProfileNodes,
    ItemNodes,
    BatchNodes,
):
    """See `kgbias.graph.store.Store`."""

    def __init__(
        self, url: str, *, create: bool = True, notify: Callable[[str], None] | None = None
    ) -> None:
        super().__init__(url, notify=notify)
        if create:
            for node in shape.NODES:
                self.write((shape.constraint(node), {}))
            for edge in shape.indexed():
                self._index(f"kgbias_{edge.type.lower()}", edge.type, "run")
            for key in ("predicate_uid", "object_uid"):  # what a deletion asks of each that may go
                on = f"FOR (n:Statement) ON (n.{key})"
                self.write((f"CREATE INDEX kgbias_statement_{key} IF NOT EXISTS {on}", {}))
            # Those of a few statements, among millions of a run (`same_object`), and lists of those
            # that come first in it (`most_repeated`, `most_negative`, `most_toxic`).
            self._index("kgbias_said", "STEREOTYPE", "triple")
            for key in ("count", "regard", "toxicity"):
                self._index(f"kgbias_by_{key}", "STEREOTYPE", "run", key)

    def _index(self, name: str, edge: str, *keys: str) -> None:
        on = ", ".join(f"e.{key}" for key in keys)
        self.write((f"CREATE INDEX {name} IF NOT EXISTS FOR ()-[e:{edge}]-() ON ({on})", {}))


__all__ = ["Neo4jSession", "Neo4jStore"]
