"""The index of statements in Neo4j: the vectors that the server keeps of them, through the
retrievers of neo4j-graphrag.

Vectors that are missing are written when a question needs them. `VectorCypherRetriever` compares
the question with those of the statements that are asked about, and follows them to their triples.
It gets these statements as filters, so it compares each of them exactly, like an index in memory:
the nearest of all that the server holds would mostly be other runs', if those are larger. Its
hybrid sibling is not used: it divides every score by that of the best hit, so it could never say
that nothing matches; instead, `kgbias.ask.retrieve` counts shared words on either store.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from kgbias.ask.retrieve import said_of
from kgbias.errors import MissingExtra
from kgbias.graph.neo4j import Neo4jStore
from kgbias.graph.neo4j.session import vector_index
from kgbias.graph.store import StoredRun
from kgbias.graph.types import TripleView, node_id
from kgbias.graph.vectors import StatementVectors
from kgbias.models.embed import SentenceVectors

_TRIPLES = """
MATCH (:Predicate {uid: node.predicate_uid})<-[:PREDICATE]-(t:Triple)-[:OBJECT]->
      (:Object {uid: node.object_uid})
WHERE t.uid IN $triples
RETURN t.uid AS uid, score"""


class InNeo4j:
    """Statements in a vector index of the server that holds them, under the encoder's name."""

    def __init__(
        self, store: Neo4jStore, run: StoredRun, embed: SentenceVectors, encoder: str
    ) -> None:
        try:
            import neo4j_graphrag  # noqa: F401
        except ModuleNotFoundError as error:
            raise MissingExtra("neo4j-graphrag", extra="graphrag") from error
        self._store, self._run, self._embed, self._encoder = store, run, embed, encoder
        self.method = f"cosine of {embed.name} embeddings, on the server"

    def nearest(self, topic: str, triples: Sequence[TripleView]) -> Mapping[str, float]:
        from neo4j_graphrag.retrievers import VectorCypherRetriever

        if not triples:
            return {}
        self._write(triples)
        label, index = vector_index(self._encoder)
        (held,) = self._store.read(f"MATCH (v:{label}) RETURN count(v) AS n")
        retriever = VectorCypherRetriever(
            self._store.driver,
            index,
            _TRIPLES,
            result_formatter=None,
            neo4j_database=self._store.database,
        )
        predicates = {node_id("predicate", t.predicate) for t in triples}
        objects = {node_id("object", t.object) for t in triples}
        found = retriever.get_search_results(
            query_vector=self._embed([topic])[0].tolist(),
            top_k=held["n"],  # none is cut off
            query_params={"triples": [t.id for t in triples]},
            filters={
                "predicate_uid": {"$in": sorted(predicates)},
                "object_uid": {"$in": sorted(objects)},
            },
        )
        # The server gives (1 + cosine) / 2.
        return {row["uid"]: 2 * row["score"] - 1 for row in found.records}

    def _write(self, triples: Sequence[TripleView]) -> None:
        """Have the server keep the vectors of these statements."""
        there = set(self._run.vectors(self._encoder).statements)
        texts = {
            (node_id("predicate", t.predicate), node_id("object", t.object)): said_of(t)
            for t in triples
        }
        if new := sorted(texts.keys() - there):
            rows = self._embed([texts[ends] for ends in new]).astype(np.float32)
            self._store.save_vectors(self._encoder, StatementVectors(new, rows))
        self._store.write_alone("CALL db.awaitIndexes(300)")
