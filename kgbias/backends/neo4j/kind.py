"""The store that a Neo4j server is."""

from kgbias.graph.stores import StoreKind

NEO4J = StoreKind(
    "kgbias.backends.neo4j:Neo4jStore",
    password_variable="NEO4J_PASSWORD",
    index="kgbias.backends.neo4j.index:open_index",
)
