"""Records that are nodes of the graph: a class says of what label, by which key.

    @declare_node(NodeRecord("Metric", "how a score was computed", "measure", table="metric"))
    @dataclass(frozen=True, slots=True)
    class Metric: ...

Its properties are those of its annotated fields (`kgbias.graph.record`), and its key is its `id`.
The shape of the graph, the rows of every writer (`graph_tables.record_nodes`), the SELECT of the
view for Cypher and the check of ids follow from that. Nodes that no record is alone (texts, runs,
generations, what belongs to a run or a table) are written where the shape has them.

A kind that says by what edge runs hold it (`held_by`) needs no more: as for records that are edges
(`kgbias.graph.edge_records`), its table, what both stores write, read and delete (`Store.put`,
`Store.find_all`), exports and copies follow. Runs share a node of the same `id`; it goes with the
last of them. The edge is itself a declared record, of the id alone.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, make_dataclass, replace
from typing import Any, TypeVar

from kgbias.graph.edge_records import EDGE_RECORDS, RUN, EdgeRecord

RecordClass = type[Any]
_Class = TypeVar("_Class", bound=type)


@dataclass(frozen=True, slots=True)
class NodeRecord:
    """A kind of node.

    Attributes:
        title: the property that people read.
        table: where SQLite keeps it.
        key: the property that identifies it.
        last: the properties that come last in tables.
        checked: the properties that its id is computed from, where a check computes it again.
        held_by: the type of the edge from a run to it; "" for a kind that has its own methods.
        run_edge: that edge.
        record: the class that declares it.
    """

    label: str
    meaning: str
    title: str
    table: str
    key: str = "uid"
    last: tuple[str, ...] = ()
    checked: tuple[str, ...] = ()
    held_by: str = ""
    run_edge: EdgeRecord | None = None
    record: RecordClass = object

    def edges_to(self, records: Iterable[Any]) -> list[Any]:
        """The records of the edges from a run to these."""
        assert self.run_edge is not None
        return [self.run_edge.record(record.id) for record in records]


NODE_RECORDS: dict[RecordClass, NodeRecord] = {}
"""The records that are nodes, by class."""


def declare_node(node: NodeRecord) -> Callable[[_Class], _Class]:
    """Declare that the records of a class are nodes."""

    def declare(record: _Class) -> _Class:
        run_edge = _declare_run_edge(node) if node.held_by else None
        NODE_RECORDS[record] = replace(node, run_edge=run_edge, record=record)
        return record

    return declare


def _declare_run_edge(node: NodeRecord) -> EdgeRecord:
    """Declare the edge from a run to nodes of a kind."""
    id_column = f"{node.table}_id"
    record = make_dataclass(f"{node.label}OfRun", [(id_column, str)], frozen=True, slots=True)
    meaning = f"what a run holds: {node.meaning}"
    edge = EdgeRecord(
        node.held_by, meaning, "Run", node.label, (RUN, id_column), of_node=True, record=record
    )
    EDGE_RECORDS[record] = edge
    return edge


def checked_nodes() -> tuple[NodeRecord, ...]:
    """The kinds of nodes whose ids are computed from their properties alone."""
    return tuple(node for node in NODE_RECORDS.values() if node.checked)


def held_nodes() -> tuple[NodeRecord, ...]:
    """The kinds of nodes that runs hold, about which everything follows from their declaration."""
    return tuple(node for node in NODE_RECORDS.values() if node.held_by)
