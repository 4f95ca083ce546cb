"""The records that are edges (`kgbias.graph.edge_records`), how models were asked for them, and the
nodes that runs hold (`kgbias.graph.node_records`)."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from kgbias.graph.edge_records import AskingRecord, EdgeRecord
from kgbias.graph.node_records import NodeRecord
from kgbias.graph.sqlite.database import Database
from kgbias.graph.store import EdgeScope, EdgeStore
from kgbias.graph.types import ChosenEdge
from kgbias.models.base import ModelInfo


class SQLiteEdges(Database, EdgeStore):
    """See `kgbias.graph.store.Store`."""

    def _write_askings(self, asking: AskingRecord, run_id: str, records: Sequence[Any]) -> None:
        with self._transaction():
            for record in records:
                self._write_asking(asking, run_id, record)

    def _write_nodes(self, node: NodeRecord, run_id: str, records: Sequence[Any]) -> None:
        assert node.run_edge is not None
        with self._transaction():
            self._write_records(node.table, records)
            self._write_records(node.run_edge.table, node.edges_to(records), run_id=run_id)

    def _read_nodes(self, node: NodeRecord, run_id: str) -> list[Any]:
        assert node.run_edge is not None
        return self._records(
            node.record,
            f"SELECT {node.table}.* FROM {node.table} JOIN {node.run_edge.table} "
            f"ON id = {node.run_edge.ids[1]} WHERE run_id = ? ORDER BY id",
            (run_id,),
        )

    def _write_edges(
        self, scope: EdgeScope, records: Sequence[Any], replacing: Mapping[str, Collection[str]]
    ) -> None:
        edge, run_id, asking = scope
        keys = _scope_keys(scope)
        with self._transaction():
            if edge.asking and asking:
                unfinished = {"record": edge.asking.unfinished}
                self._write_asking(edge.asking, run_id, asking, "INSERT OR IGNORE", **unfinished)
            self._remove_edges(edge, keys, replacing)
            if "Statement" in (edge.start, edge.end):
                self._add_statements(records)
            self._write_records(edge.table, records, **keys)
            if edge.record is ChosenEdge:
                self._index_choice_answers(keys, records)

    def _read_edges(self, scope: EdgeScope, ids: Mapping[str, str]) -> list[Any]:
        edge, wanted = scope.edge, {**_scope_keys(scope), **ids}
        statement_columns, joined = "", ""
        if "Statement" in (edge.start, edge.end):
            statement_columns = "predicate_id, object_id, "
            joined = "JOIN statement ON statement.id = statement_id "
        conditions = " AND ".join(f"{edge.table}.{column} = ?" for column in wanted)
        return self._records(
            edge.record,
            f"SELECT {statement_columns}{edge.table}.* FROM {edge.table} {joined}"
            f"WHERE {conditions} ORDER BY {', '.join(edge.read_order)}",
            tuple(wanted.values()),
        )

    def _remove_edges(
        self,
        edge: EdgeRecord,
        scope: Mapping[str, str],
        replacing: Mapping[str, Collection[str]],
    ) -> None:
        """Remove what is replaced: all of a kind that is replaced as a whole, or those with one of
        the values of a property."""
        condition = " AND ".join(f"{column} = ?" for column in scope)
        if edge.whole:
            self._db.execute(f"DELETE FROM {edge.table} WHERE {condition}", tuple(scope.values()))
        for name, values in replacing.items():
            self._db.executemany(
                f"DELETE FROM {edge.table} WHERE {condition} AND {name} = ?",
                [(*scope.values(), value) for value in values],
            )

    def _index_choice_answers(self, scope: Mapping[str, str], edges: Sequence[Any]) -> None:
        """Note which answers a choosing rests on: they stay as long as it does."""
        run_and_choosing = tuple(scope.values())
        self._db.execute(
            "DELETE FROM choice_answer WHERE run_id = ? AND choosing_id = ?", run_and_choosing
        )
        self._db.executemany(
            "INSERT OR IGNORE INTO choice_answer VALUES (?, ?, ?)",
            ((*run_and_choosing, key) for e in edges for key in (*e.answers, *e.others)),
        )

    def _write_asking(
        self,
        asking: AskingRecord,
        run_id: str,
        record: Any,
        verb: str = "INSERT OR REPLACE",
        /,
        **given_values: Any,
    ) -> None:
        self._add_model(record.model)
        self._write_records(
            asking.table,
            [record],
            verb,
            run_id=run_id,
            model_id=record.model.id,
            **given_values,
        )

    def _read_askings(self, asking: AskingRecord, run_id: str) -> list[Any]:
        """The finished ones, by the model's name."""
        rows = self._rows(
            f"SELECT name, revision, display_name, settings, record FROM {asking.table} "
            "JOIN model ON model.id = model_id WHERE run_id = ? AND record IS NOT ? "
            f"ORDER BY name, {asking.table}.id",
            (run_id, asking.unfinished),
        )
        return [
            self._record(
                asking.record,
                row | {"model": ModelInfo(row["name"], row["revision"], row["display_name"])},
            )
            for row in rows
        ]


def _scope_keys(scope: EdgeScope) -> dict[str, str]:
    """The columns, with their values, that rows of the scope have."""
    keys = {"run_id": scope.run_id}
    if scope.edge.asking and scope.asking:
        keys[scope.edge.asking.column] = scope.asking.id
    return keys
