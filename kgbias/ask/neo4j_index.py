"""The index of statements on a Neo4j server: it compares a question with the vectors that it keeps.

Vectors that are missing are written when a question needs them. The server has a vector index of
them, for Cypher of one's own; a question does not go through it, because it gives the nearest of
all runs, which may all be another run's. Each statement that is asked about is compared instead, as
in memory, so that the answers are the same.
"""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from kgbias.ask.retrieve import said_of
from kgbias.graph.neo4j import Neo4jStore
from kgbias.graph.types import TripleView, node_id
from kgbias.graph.vectors import StatementVectors
from kgbias.models.embed import SentenceVectors

_COSINES = """
UNWIND $statements AS said
MATCH (v:StatementVector {predicate_uid: said[0], object_uid: said[1], encoder: $encoder})
RETURN said[0] AS predicate, said[1] AS object,
       2 * vector.similarity.cosine(v.values, $question) - 1 AS cosine"""


Ends = tuple[str, str]  # the uids of a predicate and an object


class InNeo4j:
    """Statements whose vectors by an encoder are kept by the server that holds them."""

    def __init__(self, store: Neo4jStore, embed: SentenceVectors, encoder: str) -> None:
        self._store, self._embed, self._encoder = store, embed, encoder
        self.method = f"cosine of {embed.name} embeddings, on the server"

    def nearest(self, topic: str, triples: Sequence[TripleView]) -> Mapping[str, float]:
        if not triples:
            return {}
        own = {
            t.id: (node_id("predicate", t.predicate), node_id("object", t.object)) for t in triples
        }
        texts = {own[t.id]: said_of(t) for t in triples}
        question = self._embed([topic])[0].tolist()
        cosines = self._cosines(question, texts)
        if new := sorted(texts.keys() - cosines):
            rows = self._embed([texts[ends] for ends in new]).astype(np.float32)
            self._store.save_vectors(self._encoder, StatementVectors(new, rows))
            cosines |= self._cosines(question, new)
        return {id: cosines[ends] for id, ends in own.items()}

    def _cosines(self, question: list[float], statements: Iterable[Ends]) -> dict[Ends, float]:
        """The cosine with each statement whose vector the server keeps."""
        found = self._store.read(
            _COSINES,
            statements=[list(ends) for ends in statements],
            encoder=self._encoder,
            question=question,
        )
        return {(row["predicate"], row["object"]): row["cosine"] for row in found}
