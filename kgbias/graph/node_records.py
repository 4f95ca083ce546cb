"""Records that are nodes of the graph: a class says of what label, by which key.

    @declare_node(NodeRecord("Metric", "how a score was computed", "measure", table="metric"))
    @dataclass(frozen=True, slots=True)
    class Metric: ...

Its properties are those of its annotated fields (`kgbias.graph.record`), and its key is its `id`.
The shape of the graph, the rows of every writer (`graph_tables.record_nodes`), the SELECT of the
view for Cypher and the check of ids follow from that. Nodes that no record is alone (texts, runs,
generations, what belongs to a run or a table) are written where the shape has them.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

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
        record: the class that declares it.
    """

    label: str
    meaning: str
    title: str
    table: str
    key: str = "uid"
    last: tuple[str, ...] = ()
    checked: tuple[str, ...] = ()
    record: RecordClass = object


NODE_RECORDS: dict[RecordClass, NodeRecord] = {}
"""The records that are nodes, by class."""


def declare_node(node: NodeRecord) -> Callable[[_Class], _Class]:
    """Declare that the records of a class are nodes."""

    def declare(record: _Class) -> _Class:
        NODE_RECORDS[record] = replace(node, record=record)
        return record

    return declare


def checked_nodes() -> tuple[NodeRecord, ...]:
    """The kinds of nodes whose ids are computed from their properties alone."""
    return tuple(node for node in NODE_RECORDS.values() if node.checked)
