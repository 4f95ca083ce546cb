"""Statements found by what they mean, on the server that keeps their vectors."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from kgbias.ask.retrieval import statement_text
from kgbias.backends.neo4j import Neo4jStore
from kgbias.graph.types import TripleView, node_id
from kgbias.graph.vectors import StatementVectors
from kgbias.models.embed import SentenceVectors

_COSINE_QUERY = """
UNWIND $statements AS said
MATCH (v:StatementVector {predicate_uid: said[0], object_uid: said[1], encoder: $encoder})
RETURN said[0] AS predicate, said[1] AS object,
       2 * vector.similarity.cosine(v.values, $question) - 1 AS cosine"""
StatementKey = tuple[str, str]  # the uids of a predicate and an object


class Neo4jIndex:
    """Every statement compared with the question by the Neo4j server that keeps their vectors under
    the encoder's name; those that are missing are written when a question needs them.

    The server's vector index, there for Cypher of one's own, gives the nearest of all runs, which
    may all be another run's. So a question does not go through it."""

    def __init__(self, store: Neo4jStore, embed: SentenceVectors, encoder: str) -> None:
        self._store, self._embed, self._encoder = store, embed, encoder
        self.method = f"cosine of {embed.name} embeddings, on the server"

    def find_nearest(self, topic: str, triples: Sequence[TripleView]) -> Mapping[str, float]:
        if not triples:
            return {}
        ends_by_triple = {
            triple.id: (node_id("predicate", triple.predicate), node_id("object", triple.object))
            for triple in triples
        }
        texts = {ends_by_triple[triple.id]: statement_text(triple) for triple in triples}
        question = self._embed([topic])[0].tolist()
        cosines = self._cosines(question, texts)
        if new := sorted(texts.keys() - cosines):
            rows = self._embed([texts[ends] for ends in new]).astype(np.float32)
            self._store.save_vectors(self._encoder, StatementVectors(new, rows))
            cosines |= self._cosines(question, new)
        return {id: cosines[ends] for id, ends in ends_by_triple.items()}

    def _cosines(
        self, question: list[float], statements: Iterable[StatementKey]
    ) -> dict[StatementKey, float]:
        """The cosine with each statement whose vector the server keeps."""
        rows = self._store.read(
            _COSINE_QUERY,
            statements=[list(ends) for ends in statements],
            encoder=self._encoder,
            question=question,
        )
        return {(row["predicate"], row["object"]): row["cosine"] for row in rows}


def open_index(store: Neo4jStore, embed: SentenceVectors, encoder: str) -> Neo4jIndex | None:
    """The index of a server; None for one that cannot compare vectors."""
    return Neo4jIndex(store, embed, encoder) if store.has_vector_index else None
