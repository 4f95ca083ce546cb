"""The records that are edges (`kgbias.graph.edge_records`), how models were asked for them, and the
nodes that runs hold (`kgbias.graph.node_records`)."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from kgbias.backends.neo4j.session import (
    MATCH_SPEC,
    MODEL_COLUMNS,
    Neo4jSession,
    ParametrisedQuery,
    build_edge_queries,
    build_node_queries,
    read_model,
)
from kgbias.graph import graph_tables, shape
from kgbias.graph.edge_records import AskingRecord, EdgeRecord
from kgbias.graph.node_records import NodeRecord
from kgbias.graph.record import build_record
from kgbias.graph.store import EdgeScope, EdgeStore

# MERGE, or `old.run = run.name`, would scan the index of all edges of the run for each row.
# Each pair of ends comes once for each value of the keys.
_WRITE_EDGES = """
MATCH (run:Run {{uid: $run}}){model}
UNWIND $rows AS row
MATCH (a:{start} {{{start_key}: row[0]}}), (b:{end} {{{end_key}: row[1]}})
OPTIONAL MATCH (a)-[old:{type}]->(b)
WHERE toString(old.run) = run.name{same}
FOREACH (_ IN CASE WHEN old IS NULL THEN [] ELSE [1] END | SET old += row[2])
FOREACH (_ IN CASE WHEN old IS NULL THEN [1] ELSE [] END |
    CREATE (a)-[e:{type}]->(b) SET e = row[2], e.run = run.name{shared})"""
_READ_ASKINGS = """
MATCH (:Run {{uid: $run}})-[p:{type}]->(m:Model)
{spec}
RETURN {model}, properties(p) AS p
ORDER BY spec, p.uid"""


class Neo4jEdges(Neo4jSession, EdgeStore):
    """See `kgbias.graph.store.Store`."""

    def _write_nodes(self, node: NodeRecord, run_id: str, records: Sequence[Any]) -> None:
        assert node.run_edge is not None
        edges = node.edges_to(records)
        self.write(
            *build_node_queries(graph_tables.record_nodes(node.record, records)),
            *build_edge_queries(graph_tables.record_edges(node.run_edge, run_id, "", edges)),
        )

    def _read_nodes(self, node: NodeRecord, run_id: str) -> list[Any]:
        query = (
            f"MATCH (:Run {{uid: $run}})-[:{node.held_by}]->(n:{node.label}) "
            "RETURN properties(n) AS n ORDER BY n.uid"
        )
        return self.records(node.record, query, run=run_id)

    def _write_edges(
        self, scope: EdgeScope, records: Sequence[Any], replacing: Mapping[str, Collection[str]]
    ) -> None:
        edge, run_id, asking = scope
        if asking:
            self.keep_models([asking.model])
        if "Statement" in (edge.start, edge.end):
            self._add_statements(records)
        removals = _build_removals(edge, run_id, asking.id if asking else None, replacing)
        if edge.starts_at_run:
            table = graph_tables.record_edges(edge, run_id, "", records)
            self.write(*removals, *build_edge_queries(table))
            return
        if removals:
            self.write(*removals)
        # By the ends and keys: of two that are the same edge, the later counts.
        rows: dict[Any, Any] = {
            (a, b, *(values[key] for key in edge.keys)): [a, b, values]
            for a, b, values in graph_tables.record_rows(edge, run_id, records)
        }
        parameters = {"model": asking.model.id, "asking": asking.id} if asking else {}
        self.write_rows(_build_write_query(edge), list(rows.values()), run=run_id, **parameters)

    def _read_edges(self, scope: EdgeScope, ids: Mapping[str, str]) -> list[Any]:
        asking_id = scope.asking.id if scope.asking else None
        query = _build_read_query(scope.edge, asking_id, ids)
        return self.records(scope.edge.record, query, run=scope.run_id, asking=asking_id, **ids)

    def _write_askings(self, asking: AskingRecord, run_id: str, records: Sequence[Any]) -> None:
        self.keep_models(record.model for record in records)
        self.write(*build_edge_queries(graph_tables.asking_edges(asking.type, run_id, records)))

    def _read_askings(self, asking: AskingRecord, run_id: str) -> list[Any]:
        rows = self.read(
            _READ_ASKINGS.format(type=asking.type, spec=MATCH_SPEC, model=MODEL_COLUMNS),
            run=run_id,
        )
        return [build_record(asking.record, {**row["p"], "model": read_model(row)}) for row in rows]


def _build_write_query(edge: EdgeRecord) -> str:
    same = [f"old.{key} = row[2].{key}" for key in edge.keys]
    model, shared = "", ""
    if edge.asking:
        same.append(f"old.{edge.asking.property} = $asking")
        # A known model keeps the name that it has.
        model = ", (m:Model {uid: $model})"
        shared = f", e.{edge.asking.property} = $asking, e.model = m.name"
    return _WRITE_EDGES.format(
        start=edge.start,
        start_key=shape.get_node(edge.start).key,
        end=edge.end,
        end_key=shape.get_node(edge.end).key,
        type=edge.type,
        same="".join(f" AND {condition}" for condition in same),
        model=model,
        shared=shared,
    )


def _build_match(edge: EdgeRecord, start: str, end: str) -> str:
    """The edges of a run as `e`, between these patterns."""
    if edge.starts_at_run:
        return f"MATCH (:Run {{uid: $run}})-[e:{edge.type}]->{end}"
    return f"MATCH (run:Run {{uid: $run}}) MATCH {start}-[e:{edge.type} {{run: run.name}}]->{end}"


def _build_removals(
    edge: EdgeRecord,
    run_id: str,
    asking_id: str | None,
    replacing: Mapping[str, Collection[str]],
) -> list[ParametrisedQuery]:
    """The writes that remove what is replaced."""
    match = _build_match(edge, "()", "()")
    conditions = [f"e.{name} IN ${name}" for name in replacing]
    if not conditions and not edge.whole:
        return []
    if edge.asking:
        conditions.append(f"e.{edge.asking.property} = $asking")
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    values = {name: sorted(wanted) for name, wanted in replacing.items()}
    return [(f"{match}{where} DELETE e", {"run": run_id, "asking": asking_id, **values})]


def _build_read_query(edge: EdgeRecord, asking_id: str | None, ids: Collection[str]) -> str:
    nodes, columns = [], []
    for variable, label, field in (
        ("a", edge.start, edge.ids[0]),
        ("b", edge.end, edge.ids[1]),
    ):
        key = shape.get_node(label).key
        wanted = f" {{{key}: ${field}}}" if field in ids else ""
        nodes.append(f"({variable}:{label}{wanted})")
        if field:
            columns.append(f"{variable}.{key} AS {field}")
        if label == "Statement":
            columns.append(f"{variable}.predicate_uid AS predicate_id")
            columns.append(f"{variable}.object_uid AS object_id")
    where = f" WHERE e.{edge.asking.property} = $asking" if edge.asking and asking_id else ""
    order = (name if name in edge.ids else f"e.{name}" for name in edge.read_order)
    return (
        f"{_build_match(edge, *nodes)}{where} "
        f"RETURN {', '.join(columns)}, properties(e) AS e ORDER BY {', '.join(order)}"
    )
