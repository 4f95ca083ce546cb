"""The part of a run that an export for Neo4j holds: nodes and edges with the properties of
`kgbias.graph.shape`."""

from collections.abc import Iterable, Iterator

from kgbias.export.content import ExportContent
from kgbias.export.neo4j_passes import Neo4jPasses
from kgbias.graph import graph_tables
from kgbias.graph.edge_records import plain_edges
from kgbias.graph.graph_tables import (
    KIND_BY_LABEL,
    EdgeRow,
    EdgeTable,
    NodeTable,
    PropertyValues,
    property_values,
)
from kgbias.graph.node_records import held_nodes
from kgbias.graph.record import to_properties
from kgbias.graph.sofa import ProbeSet, SofaResult
from kgbias.graph.types import Answer, AssociationNode, ChosenEdge, Metric


class Neo4jRows(Neo4jPasses):
    """The nodes and edges of an export: everything in the run that touches a kept triple. What was
    said comes in `iter_passes`, the rest after them."""

    def __init__(self, content: ExportContent) -> None:
        super().__init__(content)
        run = self.run
        self.corpus = run.corpus()
        self.sofa = run.sofa_results()
        self.labels = run.store.labels()
        self.held_nodes = [(node, run.find_all(node.record)) for node in held_nodes()]
        self.stereotype_matches = run.stereotype_matches()
        probe_set_ids = {r.probe_set for r in self.sofa}
        self.probe_sets = (
            [p for p in run.store.probe_sets() if p.id in probe_set_ids] if self.sofa else []
        )

    def iter_nodes(self) -> Iterator[NodeTable]:
        run = self.run
        yield "Category", self._category_nodes()
        group_values = {
            g.id: to_properties(g) | {"variants": sorted(g.node_variants)} for g in run.groups
        }
        yield (
            "SocialGroup",
            (
                group_values.get(id, {}) | {"uid": id, "name": text} | self.placements.get(id, {})
                for id, text in self.texts["group"].items()
            ),
        )
        models = {run.model, *(a.asking.model for a in self.edges_with_askings)}
        models |= {t.model for t in self.tests} | {r.model for r in self.sofa}
        yield graph_tables.model_nodes(sorted(models, key=lambda m: m.id))
        run_values = {"uid": run.id, "seconds": run.store.run_seconds(run.id), "seq": 0}
        yield "Run", [property_values("Run", run.record, **run_values)]
        yield graph_tables.record_nodes(Metric, self.metrics.values())
        yield "Answer", self._answer_nodes()
        yield graph_tables.rater_nodes(x for x in self.labels if self.has_triple(x.triple_id))
        yield graph_tables.record_nodes(AssociationNode, self.tests)
        yield from graph_tables.topic_model_nodes(run.id, self.topic_models)
        yield "Statement", self._statement_nodes()
        yield graph_tables.passage_nodes(run.id, self.corpus)
        yield from graph_tables.stereotype_nodes(self.stereotype_matches)
        yield from graph_tables.profile_nodes(self.profiles)
        yield graph_tables.name_nodes(self.names)
        yield graph_tables.descriptor_nodes(self.flags)
        yield graph_tables.record_nodes(ProbeSet, self.probe_sets)
        yield graph_tables.record_nodes(SofaResult, self.sofa)
        for node, records in self.held_nodes:
            yield graph_tables.record_nodes(node.record, records)

    def iter_edges(self) -> Iterator[EdgeTable]:
        """The edges between nodes that the export has."""
        for kind, start, end, rows in self._iter_all_edges():
            yield kind, start, end, self._keep_within(start, end, rows)

    def _iter_all_edges(self) -> Iterator[EdgeTable]:
        run = self.run
        yield (
            "IN_CATEGORY",
            "SocialGroup",
            "Category",
            [(group.id, group.category, {}) for group in run.groups],
        )
        yield "OF", "Run", "Model", [(run.id, run.model.id, {})]
        yield graph_tables.seed_edges(run.record)
        metric_edges = [(run.id, m.id, {"measure": m.measure}) for m in self.metrics.values()]
        yield "MEASURED_BY", "Run", "Metric", metric_edges
        for edge in plain_edges():
            records = run.find_all(edge.record)
            yield graph_tables.record_edges(edge, run.id, run.name, records)
        for node, nodes in self.held_nodes:
            assert node.run_edge is not None
            yield graph_tables.record_edges(node.run_edge, run.id, run.name, node.edges_to(nodes))
        if self.profiles:
            yield from graph_tables.profile_edges(run.id, self.profiles)
        yield graph_tables.flag_edges(self.flags)
        yield from graph_tables.centrality_edges(run.id, self.centralities)
        yield from graph_tables.topic_model_edges(run.id, run.name, self.topic_models)
        yield graph_tables.attribution_edges(run.attributions())
        yield graph_tables.label_edges(x for x in self.labels if self.has_triple(x.triple_id))
        yield "TESTED", "Run", "AssociationTest", [(run.id, t.id, {}) for t in self.tests]
        yield from graph_tables.test_edges(self.tests)
        yield from graph_tables.edges_with_askings(run.id, run.name, self.edges_with_askings)
        yield graph_tables.name_edges(self.names)
        yield "STATES", "Triple", "Statement", self._states_edges()
        yield "TESTED", "Run", "SofaResult", [(run.id, r.id, {}) for r in self.sofa]
        yield from graph_tables.probe_set_edges(self.probe_sets)
        yield from graph_tables.sofa_edges(self.sofa)
        yield from graph_tables.passage_edges(run.id, run.name, self.corpus)
        yield graph_tables.near_duplicate_edges(run.name, self.near_duplicates)
        yield from graph_tables.stereotype_edges(run.id, run.name, self.stereotype_matches)

    def _keep_within(self, start: str, end: str, rows: Iterable[EdgeRow]) -> Iterator[EdgeRow]:
        for start_id, end_id, values in rows:
            if self._has_node(start, start_id) and self._has_node(end, end_id):
                yield start_id, end_id, values

    def _has_node(self, label: str, id: str) -> bool:
        """Whether the export has this node; its label is one that may be exported in part."""
        if label == "Triple":
            return self.has_triple(id)
        if label == "Generation":
            return id in self.profile_generations
        return label not in KIND_BY_LABEL or id in self.texts[KIND_BY_LABEL[label]]

    def _category_nodes(self) -> Iterator[PropertyValues]:
        run_categories = {c.name for c in self.run.categories}
        probed_categories = {
            probe_set_part.category for p in self.probe_sets for probe_set_part in p.parts
        }
        yield from map(to_properties, self.run.categories)
        for name in sorted(
            ({g.category for g in self.run.groups} | probed_categories) - run_categories
        ):
            yield {"name": name}

    def _statement_nodes(self) -> Iterator[PropertyValues]:
        edges_by_statement = {edge.statement_id: edge for edge in self.iter_statement_edges()}
        texts = {
            s.id: s.text
            for p in self.probe_sets
            for probe_set_part in p.parts
            for s in probe_set_part.statements
        }
        for id, text in texts.items():
            if id not in edges_by_statement:
                yield graph_tables.text_node("Statement", id, text)
        for uid, edge in edges_by_statement.items():
            predicate, object = edge.predicate_id, edge.object_id
            text = f"{self.texts['predicate'][predicate]} {self.texts['object'][object]}"
            ends = {"predicate_uid": predicate, "object_uid": object}
            yield graph_tables.text_node("Statement", uid, text) | ends

    def _answer_nodes(self) -> Iterator[PropertyValues]:
        choice_edges = (e for e in self.iter_probe_edges() if isinstance(e, ChosenEdge))
        keys = sorted(self.answer_keys.union(*((*e.answers, *e.others) for e in choice_edges)))
        for start in range(0, len(keys), 5_000):
            answers = self.run.store.answers(keys[start : start + 5_000])
            _, answer_nodes = graph_tables.record_nodes(Answer, answers.values())
            yield from answer_nodes

    def _states_edges(self) -> Iterator[EdgeRow]:
        statements = {
            (e.predicate_id, e.object_id): e.statement_id for e in self.iter_statement_edges()
        }
        for id, predicate_id, object_id in self.restated_triples:
            if (statement := statements.get((predicate_id, object_id))) is not None:
                yield id, statement, {}
