"""What both stores do with records that are edges (`kgbias.graph.edge_records`), or nodes that runs
hold (`kgbias.graph.node_records`)."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from kgbias.graph.edge_records import ASKING_RECORDS, EDGE_RECORDS, AskingRecord, EdgeRecord
from kgbias.graph.node_records import NODE_RECORDS, NodeRecord
from kgbias.graph.record import Record
from kgbias.graph.types import ProbeRun


class EdgeScope(NamedTuple):
    """Whose edges are put or found: of which kind and run, and from which asking."""

    edge: EdgeRecord
    run_id: str
    asking: ProbeRun | None


class EdgeStore(Protocol):
    """Records that are edges (`kgbias.graph.edge_records`) or nodes that runs hold
    (`kgbias.graph.node_records`), whatever their kind. Which of them are nodes, or say how a model
    was asked, is decided here; a store writes and reads the rows."""

    def put(
        self,
        run_id: str,
        kind: type[Record],
        records: Sequence[Record],
        *,
        asking: ProbeRun | None = None,
        replacing: Mapping[str, Collection[str]] | None = None,
    ) -> None:
        """Write records of a run that are edges (`kgbias.graph.edge_records`) or nodes that runs
        hold (`kgbias.graph.node_records`), in one transaction on SQLite; one that exists is
        replaced. The nodes of edges exist, but for statements of known words, which are written
        too.

        Where edges come from an `asking`, it is given. It is finished once it is put itself.
        `replacing` names a property, and values of it: the run's records with one of them are
        removed first. A kind that is replaced as a whole needs none of that."""
        record_class: type = kind
        if (asking_kind := ASKING_RECORDS.get(record_class)) is not None:
            self._write_askings(asking_kind, run_id, records)
            return
        if (node := NODE_RECORDS.get(record_class)) is not None:
            assert asking is None and not replacing
            self._write_nodes(node, run_id, records)
            return
        edge = EDGE_RECORDS[record_class]
        assert (edge.asking is None) == (asking is None)
        self._write_edges(EdgeScope(edge, run_id, asking), records, replacing or {})

    def find_all(
        self, run_id: str, /, kind: type[Record], *, asking: ProbeRun | None = None, **ids: str
    ) -> list[Record]:
        """The run's records of a kind, in the order that it declares: those of an asking, and those
        with these ends (`statement_id=...`). Askings are by the model's name; only the finished
        ones. Nodes are by their ids."""
        record_class: type = kind
        if (asking_kind := ASKING_RECORDS.get(record_class)) is not None:
            return self._read_askings(asking_kind, run_id)
        if (node := NODE_RECORDS.get(record_class)) is not None:
            return self._read_nodes(node, run_id)
        return self._read_edges(EdgeScope(EDGE_RECORDS[record_class], run_id, asking), ids)

    def _write_askings(self, asking: AskingRecord, run_id: str, records: Sequence[Any]) -> None: ...

    def _read_askings(self, asking: AskingRecord, run_id: str) -> list[Any]: ...

    def _write_nodes(self, node: NodeRecord, run_id: str, records: Sequence[Any]) -> None: ...

    def _read_nodes(self, node: NodeRecord, run_id: str) -> list[Any]: ...

    def _write_edges(
        self, scope: EdgeScope, records: Sequence[Any], replacing: Mapping[str, Collection[str]]
    ) -> None: ...

    def _read_edges(self, scope: EdgeScope, ids: Mapping[str, str]) -> list[Any]: ...
