"""Records that are edges of the graph: a class says of what type, between which nodes.

    @declare_edge(EdgeRecord("FIGURE", "a figure of a group in a run", "Run", "SocialGroup", ...))
    @dataclass(frozen=True, slots=True)
    class GroupScore: ...

Its properties are those of its annotated fields (`kgbias.graph.record`). The shape of the graph,
the table of a SQLite store, what both stores write, read and delete (`Store.put`,
`Store.find_all`), the view for Cypher, exports and copies follow from that: a new type of edge is
its class, in a module that `kgbias.graph.shape` imports, and the code that uses it.

Some edges come from asking a model about a run. How it was asked is a record of its own, and an
edge from the run to the model (`declare_asking`); it is unfinished until that record is put.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

RUN = ""
"""In the place of the field with the id of an end: the end is the run itself."""

RecordClass = type[Any]
_Class = TypeVar("_Class", bound=type)


@dataclass(frozen=True, slots=True)
class AskingRecord:
    """How a model was asked about a run: an edge from the run to the model.

    Attributes:
        table: where SQLite keeps it.
        unfinished: what its column `record` holds there until it is put.
        record: the class that declares it.
    """

    type: str
    meaning: str
    table: str
    unfinished: str | None
    record: RecordClass = object

    @property
    def column(self) -> str:
        """The column of its id in the tables of its edges."""
        return f"{self.table}_id"

    @property
    def property(self) -> str:
        """The property of its edges that holds its id."""
        return f"{self.table}_uid"


@dataclass(frozen=True, slots=True)
class EdgeRecord:
    """An edge of a run.

    Attributes:
        start, end: the labels of its ends.
        ids: the fields of the record with the ids of its ends; RUN for the run.
        keys: the properties that tell edges between the same two nodes apart.
        order: the fields that the records are read in the order of; without any, ends and keys.
        asked: the class of the records that say how a model was asked for it.
        whole: those of a run (and asking) are replaced together.
        first: the properties that come first in tables.
        own_table: the table that SQLite keeps it in, if it is older than this declaration.
        of_node: whether it comes and goes with the node at its end (`kgbias.graph.node_records`).
        record: the class that declares it.
    """

    type: str
    meaning: str
    start: str
    end: str
    ids: tuple[str, str]
    keys: tuple[str, ...] = ()
    order: tuple[str, ...] = ()
    asked: RecordClass | None = None
    whole: bool = False
    first: tuple[str, ...] = ()
    own_table: str = ""
    of_node: bool = False
    record: RecordClass = object

    @property
    def asking(self) -> AskingRecord | None:
        return ASKING_RECORDS[self.asked] if self.asked else None

    @property
    def table(self) -> str:
        """Where SQLite keeps it."""
        return self.own_table or self.type.lower()

    @property
    def starts_at_run(self) -> bool:
        """Whether the run is its start; any other edge names its run in a property."""
        return self.ids[0] == RUN

    @property
    def id_columns(self) -> tuple[str, ...]:
        """The columns with the ids of its ends, without the run's."""
        return tuple(name for name in self.ids if name != RUN)

    @property
    def key_columns(self) -> tuple[str, ...]:
        """The columns that tell two of its rows apart."""
        asking_columns = (self.asking.column,) if self.asking else ()
        return ("run_id", *asking_columns, *self.id_columns, *self.keys)

    @property
    def read_order(self) -> tuple[str, ...]:
        return self.order or (*self.id_columns, *self.keys)


EDGE_RECORDS: dict[RecordClass, EdgeRecord] = {}
"""The records that are edges, by class."""

ASKING_RECORDS: dict[RecordClass, AskingRecord] = {}
"""The records of how models were asked, by class."""


def declare_edge(edge: EdgeRecord) -> Callable[[_Class], _Class]:
    """Declare that the records of a class are edges."""

    def declare(record: _Class) -> _Class:
        EDGE_RECORDS[record] = replace(edge, record=record)
        return record

    return declare


def declare_asking(asking: AskingRecord) -> Callable[[_Class], _Class]:
    """Declare that the records of a class say how a model was asked."""

    def declare(record: _Class) -> _Class:
        ASKING_RECORDS[record] = replace(asking, record=record)
        return record

    return declare


def edges_by_asking() -> Mapping[AskingRecord, tuple[EdgeRecord, ...]]:
    """The kinds of edges that come from each kind of asking."""
    return {
        asking: tuple(e for e in EDGE_RECORDS.values() if e.asking == asking)
        for asking in ASKING_RECORDS.values()
    }


def plain_edges() -> tuple[EdgeRecord, ...]:
    """The kinds of edges that come from no asking, and not with a node."""
    return tuple(e for e in EDGE_RECORDS.values() if e.asking is None and not e.of_node)
