"""The index of statements in Neo4j: a vector index on the server, through the retrievers of
neo4j-graphrag.

It is derived and disposable: nodes with their own label beside the graph, one for each predicate
and object, which are written when a question needs them and are not part of the graph's shape.
`VectorCypherRetriever` finds the nearest and follows them to the triples of the run. Its hybrid
sibling is not used: it divides every score by that of the best hit, so it could never say that
nothing matches; instead, `kgbias.ask.retrieve` counts shared words on either store.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from kgbias.ask.retrieve import said_of
from kgbias.errors import MissingExtra
from kgbias.graph.neo4j import Neo4jStore
from kgbias.graph.types import TripleView, node_id
from kgbias.ids import content_id
from kgbias.models.embed import SentenceVectors

MOST = 1_000  # statements fetched from the server for one question
_TRIPLES = """
MATCH (:Predicate {uid: node.predicate_uid})<-[:PREDICATE]-(t:Triple)-[:OBJECT]->
      (:Object {uid: node.object_uid})
WHERE t.uid IN $triples
RETURN t.uid AS uid, score"""


class InNeo4j:
    """Statements in a vector index of the server that holds them."""

    def __init__(self, store: Neo4jStore, embed: SentenceVectors) -> None:
        try:
            import neo4j_graphrag  # noqa: F401
        except ModuleNotFoundError as error:
            raise MissingExtra("neo4j-graphrag", extra="graphrag") from error
        self._store = store
        self._embed = embed
        self._label = f"StatementVector_{content_id('encoder', embed.name, 'exact')[:8]}"
        self._index = f"kgbias_{self._label.lower()}"
        self.method = f"cosine of {embed.name} embeddings, in a vector index of the server"

    def nearest(self, topic: str, triples: Sequence[TripleView]) -> Mapping[str, float]:
        from neo4j_graphrag.retrievers import VectorCypherRetriever

        if not triples:
            return {}
        count = self._write(triples)
        retriever = VectorCypherRetriever(
            self._store.driver,
            self._index,
            _TRIPLES,
            result_formatter=None,
            neo4j_database=self._store.database,
        )
        question = self._embed([topic])[0].tolist()
        ids = [t.id for t in triples]
        found = retriever.get_search_results(
            query_vector=question, top_k=min(count, MOST), query_params={"triples": ids}
        )
        # The server gives (1 + cosine) / 2.
        return {row["uid"]: 2 * row["score"] - 1 for row in found.records}

    def _write(self, triples: Sequence[TripleView]) -> int:
        """Bring the index up to date with these statements, and return how many it holds."""
        wanted: dict[str, TripleView] = {}
        for t in triples:
            wanted.setdefault(t.statement_id, t)
        there = {
            row["uid"]
            for row in self._store.read(
                f"UNWIND $uids AS uid MATCH (v:{self._label} {{uid: uid}}) RETURN v.uid AS uid",
                uids=list(wanted),
            )
        }
        new = {uid: t for uid, t in wanted.items() if uid not in there}
        vectors: list[Any] = list(self._embed([said_of(t) for t in new.values()])) if new else []
        rows: list[dict[str, Any]] = [
            {
                "uid": uid,
                "text": said_of(t),
                "predicate": node_id("predicate", t.predicate),
                "object": node_id("object", t.object),
                "embedding": vector.tolist(),
            }
            for (uid, t), vector in zip(new.items(), vectors, strict=True)
        ]
        if rows:
            self._create(len(rows[0]["embedding"]))
            self._store.write_rows(
                f"UNWIND $rows AS row MERGE (v:{self._label} {{uid: row.uid}}) "
                "SET v.text = row.text, v.predicate_uid = row.predicate, "
                "v.object_uid = row.object, v.embedding = row.embedding",
                rows,
            )
            self._store.write_alone("CALL db.awaitIndexes(300)")
        (count,) = self._store.read(f"MATCH (v:{self._label}) RETURN count(v) AS n")
        return int(count["n"])

    def _create(self, dimensions: int) -> None:
        self._store.write(
            (
                f"CREATE CONSTRAINT {self._index}_uid IF NOT EXISTS "
                f"FOR (v:{self._label}) REQUIRE v.uid IS UNIQUE",
                {},
            )
        )
        self._store.write(
            (
                f"CREATE VECTOR INDEX {self._index} IF NOT EXISTS FOR (v:{self._label}) "
                "ON v.embedding OPTIONS {indexConfig: {"
                f"`vector.dimensions`: {dimensions}, `vector.similarity_function`: 'cosine', "
                # Quantized vectors shift a cosine by .01, enough to find what SQLite does not.
                "`vector.quantization.enabled`: false}}",
                {},
            )
        )
