"""What is several nodes and edges at once: read once for all stores.

A store reads the nodes of a label, and the edges of a type, by the properties that the shape of the
graph names (`kgbias.graph.shape`). How records are made of them is said here. What comes by the
hundred thousand (triples, topics, profiles), each store reads in a query of its own.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from operator import attrgetter, itemgetter
from typing import Any, Protocol

from kgbias.graph import shape
from kgbias.graph.graph_tables import KIND_BY_LABEL
from kgbias.graph.record import Record, Row, build_record
from kgbias.graph.sofa import (
    ProbePart,
    ProbeSet,
    ProbeStatement,
    SofaCategory,
    SofaGroup,
    SofaResult,
    SofaStatement,
)
from kgbias.graph.stereotypes import (
    NEW,
    Stereotype,
    StereotypeCount,
    StereotypeMatch,
    StereotypeMatches,
    StereotypeTable,
)
from kgbias.graph.types import AssociationNode, BenchmarkItem, ItemScore, WordSetEdge
from kgbias.models.base import ModelInfo, Settings

PropertyRow = dict[str, Any]
Wanted = Mapping[str, Collection[str]]


class CompositeStore(Protocol):
    """See `kgbias.graph.store.Store`."""

    def _models_by_id(self) -> dict[str, ModelInfo]:
        """All models, by the ids of their nodes."""
        ...

    def _node_rows(self, label: str, ids: Collection[str] | None = None) -> list[PropertyRow]:
        """The properties of nodes: of these ids, or all of the label."""
        ...

    def _edge_rows(self, type: str, ends: tuple[str, str], wanted: Wanted) -> list[PropertyRow]:
        """The properties of edges between two labels, with the keys of their ends as `a` and `b`:
        of those in which each of the `wanted` has one of its values."""
        ...

    def _record(self, kind: type[Record], row: Row) -> Record:
        return build_record(kind, row)

    def _edges(self, type: str, label: str = "", **wanted: Collection[str]) -> list[PropertyRow]:
        """As `_edge_rows`, by the keys of their ends; `label` is that of an end, for a type with
        several."""
        ends = next(e for e in shape.get_edge(type).ends if not label or label in e)
        return sorted(self._edge_rows(type, ends, wanted), key=itemgetter("a", "b"))

    def item_scores(
        self, model: ModelInfo, settings: Settings, ids: Sequence[str]
    ) -> dict[str, ItemScore]:
        scores = self._edges("READ_BY", a=ids, asked=[model.configured_id(settings)])
        items = {
            row["uid"]: self._record(BenchmarkItem, row | {"id": row["uid"]})
            for row in self._node_rows("BenchmarkItem", [row["a"] for row in scores])
        }
        return {
            row["a"]: self._record(ItemScore, row | {"item": items[row["a"]]}) for row in scores
        }

    def probe_sets(self) -> list[ProbeSet]:
        rows = sorted(self._node_rows("ProbeSet"), key=itemgetter("name", "uid"))
        return [
            self._record(ProbeSet, row | {"parts": self._probe_parts(row["uid"])}) for row in rows
        ]

    def _probe_parts(self, set_id: str) -> tuple[ProbePart, ...]:
        groups: dict[str, list[str]] = {}
        for row in self._probed(set_id, "SocialGroup"):
            groups.setdefault(row["category"], []).append(row["text"])
        statements = self._by_category(ProbeStatement, self._probed(set_id, "Statement"))
        return tuple(
            ProbePart(category, tuple(names), statements.get(category, ()))
            for category, names in groups.items()
        )

    def _probed(self, set_id: str, label: str) -> list[PropertyRow]:
        """The groups or statements of a set, by category, id and text."""
        rows = [row | {"id": row["b"]} for row in self._edges("ASKS", label, a=[set_id])]
        return sorted(rows, key=itemgetter("category", "id", "text"))

    def _by_category(
        self, kind: type[Record], rows: Iterable[Row]
    ) -> dict[str, tuple[Record, ...]]:
        """The records of rows, by the category that each row names."""
        records: dict[str, list[Record]] = {}
        for row in rows:
            records.setdefault(row["category"], []).append(self._record(kind, row))
        return {category: tuple(of_category) for category, of_category in records.items()}

    def _tested(self, label: str, run_id: str | None) -> list[PropertyRow]:
        """The tests or results of a run, or all, with what tells their models, by model and id."""
        ids = None
        if run_id is not None:
            ids = [row["b"] for row in self._edges("TESTED", label, a=[run_id])]
        nodes = {row["uid"]: row for row in self._node_rows(label, ids)}
        asked = self._edges("OF", label, a=nodes)
        models = self._models_by_id()
        rows = []
        for edge in asked:
            model = models[edge["b"]]
            columns = {"spec": model.name, "revision": model.revision}
            columns |= {"id": edge["a"], "display_name": model.display_name}
            rows.append(nodes[edge["a"]] | columns)
        return sorted(rows, key=itemgetter("spec", "id"))

    def associations(self, run_id: str | None = None) -> list[AssociationNode]:
        tests = self._tested("AssociationTest", run_id)
        edges: dict[str, list[WordSetEdge]] = {row["id"]: [] for row in tests}
        for type in ("TARGET", "ATTRIBUTE"):
            for ends in shape.get_edge(type).ends:
                kind = KIND_BY_LABEL[ends[1]]
                for row in self._edge_rows(type, ends, {"a": edges}):
                    edges[row["a"]].append(WordSetEdge(row["side"], kind, row["b"]))
        for of_test in edges.values():
            of_test.sort(key=attrgetter("side", "kind", "node_id"))
        nodes = [
            self._record(AssociationNode, row | {"edges": tuple(edges[row["id"]])}) for row in tests
        ]
        return sorted(nodes, key=attrgetter("test", "method"))

    def sofa_results(self, run_id: str | None = None) -> list[SofaResult]:
        nodes = self._tested("SofaResult", run_id)
        sets = self._edges("ON", a=[node["id"] for node in nodes])
        set_ids = {row["a"]: row["b"] for row in sets}
        probed = {
            id: [self._probed(id, label) for label in ("SocialGroup", "Statement")]
            for id in set(set_ids.values())
        }
        results = []
        for node in nodes:
            # One whose write was interrupted may have no set yet.
            if (set_id := set_ids.get(node["id"])) is not None:
                results.append(self._sofa_result(node | {"probe_set": set_id}, *probed[set_id]))
        return results

    def _sofa_result(
        self,
        node: PropertyRow,
        probed_groups: Sequence[PropertyRow],
        probed_statements: Sequence[PropertyRow],
    ) -> SofaResult:
        id = node["id"]
        group_rows = self._with_texts("PUTS_FIRST", id, probed_groups)
        groups = self._by_category(SofaGroup, group_rows)
        statement_rows = self._with_texts("DISPARITY", id, probed_statements)
        statements = self._by_category(SofaStatement, statement_rows)
        categories = []
        for row in self._edges("SCORES", a=[id]):
            name = row["b"]
            parts = {"groups": groups.get(name, ()), "statements": statements.get(name, ())}
            categories.append(self._record(SofaCategory, row | parts | {"category": name}))
        return self._record(SofaResult, node | {"categories": tuple(categories)})

    def _with_texts(
        self, type: str, result_id: str, probed: Iterable[PropertyRow]
    ) -> Iterator[PropertyRow]:
        """What a result says of the groups or statements of its set, with their texts there."""
        rows = {(row["category"], row["b"]): row for row in self._edges(type, a=[result_id])}
        for asked in probed:
            if (row := rows.get((asked["category"], asked["id"]))) is not None:
                yield row | {"id": asked["id"], "group": asked["text"], "text": asked["text"]}

    def stereotype_matches(self, run_id: str) -> list[StereotypeMatches]:
        names = [row["name"] for row in self._node_rows("Run", [run_id])]
        held = {row["b"]: row for row in self._edges("HELD_AGAINST", a=[run_id])}
        matches = [
            self._matches(self._record(StereotypeTable, row), held[row["uid"]], names)
            for row in self._node_rows("StereotypeTable", held)
        ]
        return sorted(matches, key=lambda found: (found.table.name, found.table.id))

    def _matches(
        self, table: StereotypeTable, held: PropertyRow, run_names: Sequence[str]
    ) -> StereotypeMatches:
        table_id = [held["b"]]
        listed = [row["b"] for row in self._edges("LISTS", a=table_id)]
        sought = self._edges("SOUGHT", a=[held["a"]], b=listed)
        entries = {
            row["uid"]: self._record(Stereotype, row | {"source": table.name})
            for row in self._node_rows("Stereotype", [row["b"] for row in sought])
        }
        counts = [
            self._record(StereotypeCount, row | {"entry": entries[row["b"]]}) for row in sought
        ]
        mark_rows = [
            row | {"triple_id": row["a"], "stereotype_id": row["b"]}
            for row in self._edges("RECORDED", run=run_names, b=listed)
        ]
        mark_rows += [
            {"triple_id": row["a"], "stereotype_id": None, "mark": NEW}
            for row in self._edges("NEW_TO", run=run_names, b=table_id)
        ]
        mark_rows.sort(key=itemgetter("triple_id"))
        marks = [self._record(StereotypeMatch, row) for row in mark_rows]
        parts = {"table": table, "heard": tuple(counts), "marks": tuple(marks)}
        return self._record(StereotypeMatches, held | parts)
