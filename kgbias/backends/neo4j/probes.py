"""The names and statements that models are probed with, and SoFa on sets of probes."""

from collections.abc import Sequence
from itertools import chain

from kgbias.backends.neo4j.edges import Neo4jEdges
from kgbias.backends.neo4j.session import (
    build_edge_queries,
    build_node_queries,
)
from kgbias.graph import graph_tables
from kgbias.graph.record import to_properties
from kgbias.graph.sofa import ProbeSet, SofaResult
from kgbias.graph.types import (
    GroupName,
    StatementEdge,
    Triple,
    storable,
)

_WRITE_NAMES = """
UNWIND $rows AS row
MERGE (n:Name {uid: row.uid}) ON CREATE SET n.text = row.text, n.name = row.text
SET n.form = row.form, n.root = row.root
WITH n, row
OPTIONAL MATCH (g:SocialGroup {uid: row.group})
FOREACH (_ IN CASE WHEN g IS NULL THEN [] ELSE [g] END |
    MERGE (n)-[e:NAME_OF]->(g) SET e.mark = row.mark)
WITH DISTINCT n
OPTIONAL MATCH (n)-[e:NAME_OF]->()
WITH n, count(e) AS groups
SET n.nonce = groups = 0"""
_READ_NAMES = """
MATCH (n:Name)
OPTIONAL MATCH (n)-[e:NAME_OF]->(g)
RETURN properties(n) AS n, coalesce(g.uid, '') AS group_id, e.mark AS mark"""
_READ_PROBED_NAMES = """
MATCH (run:Run {uid: $run})
MATCH (n)-[e:PROBED_BEFORE {run: run.name}]->() WHERE e.believing_uid = $believing
WITH DISTINCT run, n
OPTIONAL MATCH (n)-[e:NAME_OF]->(g)
WITH run, n, e, g WHERE g IS NULL OR EXISTS { (run)-[:SEEDED]->(g) }
RETURN properties(n) AS n, coalesce(g.uid, '') AS group_id, e.mark AS mark"""
_READ_STATEMENTS = """
MATCH (run:Run {uid: $run})
MATCH ()-[e:PROBED_BEFORE {run: run.name}]->(s:Statement) WHERE e.believing_uid = $believing
WITH DISTINCT s
MATCH (p:Predicate {uid: s.predicate_uid}), (o:Object {uid: s.object_uid})
RETURN p.text AS predicate, o.text AS object"""

_FORGET_SOFA = """
MATCH (:SofaResult {uid: $uid})-[old:SCORES|PUTS_FIRST|DISPARITY]->()
DELETE old"""
_TIE_SOFA = """
MATCH (run:Run {uid: $run}), (r:SofaResult {uid: $uid}) MERGE (run)-[:TESTED]->(r)"""


class Neo4jProbes(Neo4jEdges):
    """See `kgbias.graph.store.Store`."""

    def save_names(self, names: Sequence[GroupName]) -> None:
        rows = [to_properties(n) | {"uid": n.id, "group": n.group_id or None} for n in names]
        self.write_rows(_WRITE_NAMES, rows)

    def names(self, run_id: str | None = None, belief_run_id: str | None = None) -> list[GroupName]:
        query = _READ_NAMES if run_id is None else _READ_PROBED_NAMES
        group_names = self.records(GroupName, query, run=run_id, believing=belief_run_id)
        return sorted(group_names, key=lambda n: (n.text, n.group_id))

    def keep_statements(self, statements: Sequence[tuple[str, str]]) -> None:
        triples = [Triple("", *words) for words in statements]
        predicates = [(t.predicate_id, storable(t.predicate)) for t in triples]
        objects = [(t.object_id, storable(t.object)) for t in triples]
        for label, texts_by_id in (("Predicate", predicates), ("Object", objects)):
            rows = [graph_tables.text_node(label, uid, text) for uid, text in texts_by_id]
            self.write_each(build_node_queries((label, rows), keep_existing=True))
        self._add_statements([StatementEdge(t.predicate_id, t.object_id, "") for t in triples])

    def statements(self, run_id: str, belief_run_id: str) -> list[tuple[str, str]]:
        rows = self.read(_READ_STATEMENTS, run=run_id, believing=belief_run_id)
        return sorted((row["predicate"], row["object"]) for row in rows)

    def save_probe_set(self, probe_set: ProbeSet) -> None:
        parts = probe_set.parts
        texts = {s.id: storable(s.text) for part in parts for s in part.statements}
        statements = [graph_tables.text_node("Statement", uid, text) for uid, text in texts.items()]
        self.write_each(build_node_queries(graph_tables.record_nodes(ProbeSet, [probe_set])))
        self.write_each(
            build_node_queries(("Category", [{"name": part.category} for part in parts]))
        )
        self.write_each(
            build_node_queries(
                graph_tables.group_nodes(g for part in parts for g in part.groups),
                keep_existing=True,
            )
        )
        self.write_each(build_node_queries(("Statement", statements), keep_existing=True))
        for table in graph_tables.probe_set_edges([probe_set]):
            self.write_each(build_edge_queries(table))

    def save_sofa_results(self, run_id: str | None, results: Sequence[SofaResult]) -> None:
        for result in results:
            categories = [{"name": c.category} for c in result.categories]
            self.keep_models([result.model])
            self.write(
                *build_node_queries(graph_tables.record_nodes(SofaResult, [result])),
                *build_node_queries(("Category", categories)),
                (_FORGET_SOFA, {"uid": result.id}),
            )
            self.write_each(
                chain.from_iterable(map(build_edge_queries, graph_tables.sofa_edges([result])))
            )
            if run_id is not None:
                self.write((_TIE_SOFA, {"run": run_id, "uid": result.id}))
