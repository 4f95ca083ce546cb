"""The part of a run that an export for Neo4j holds: nodes and edges with the properties of
`kgbias.graph.shape`."""

from collections.abc import Iterable, Iterator

from kgbias.export.content import Content
from kgbias.export.graph_passes import Passes
from kgbias.graph import as_graph
from kgbias.graph.as_graph import KINDS, Edges, Ends, Nodes, Values, values
from kgbias.graph.record import in_graph
from kgbias.graph.types import ChosenEdge


class GraphRows(Passes):
    """The nodes and edges of an export: everything in the run that touches a kept triple. What was
    said comes in `passes`, the rest after them."""

    def __init__(self, content: Content) -> None:
        super().__init__(content)
        run = self.run
        self.corpus = run.corpus()
        self.sofa = run.sofa()
        self.labels = run.store.labels()
        self.held = run.held()
        of_results = {r.probe_set for r in self.sofa}
        self.sets = [p for p in run.store.probe_sets() if p.id in of_results] if self.sofa else []

    def nodes(self) -> Iterator[Nodes]:
        run = self.run
        yield "Category", self._categories()
        own = {g.id: in_graph(g) | {"variants": sorted(g.variants)} for g in run.groups}
        yield (
            "SocialGroup",
            (
                own.get(id, {}) | {"uid": id, "name": text} | self.placed.get(id, {})
                for id, text in self.texts["group"].items()
            ),
        )
        models = {run.model, *(a.asking.model for a in self.asked)}
        models |= {t.model for t in self.tests} | {r.model for r in self.sofa}
        yield as_graph.models(sorted(models, key=lambda m: m.id))
        beside = {"uid": run.id, "seconds": run.store.seconds(run.id), "seq": 0}
        yield "Run", [values("Run", run.record, **beside)]
        yield "Metric", [values("Metric", m, uid=m.id) for m in self.metrics.values()]
        yield "Answer", self._answers()
        yield as_graph.raters(x for x in self.labels if self.keeps(x.triple_id))
        yield as_graph.tests(self.tests)
        yield from as_graph.topic_models(run.id, self.topic_models)
        yield "Statement", self._statements_stated()
        yield as_graph.passages(run.id, self.corpus)
        yield from as_graph.stereotypes(self.held)
        yield from as_graph.profiles(self.profiles)
        yield as_graph.names(self.names)
        yield as_graph.descriptors(self.flags)
        yield as_graph.probe_sets(self.sets)
        yield as_graph.sofa(self.sofa)

    def edges(self) -> Iterator[Edges]:
        """The edges between nodes that the export has."""
        for kind, start, end, rows in self._edges():
            yield kind, start, end, self._within(start, end, rows)

    def _edges(self) -> Iterator[Edges]:
        run = self.run
        yield "IN_CATEGORY", "SocialGroup", "Category", [(g.id, g.category, {}) for g in run.groups]
        yield "OF", "Run", "Model", [(run.id, run.model.id, {})]
        seeds = [
            (run.id, g.id, {"position": n, "category": g.category})
            for n, g in enumerate(run.groups)
        ]
        yield "SEEDED", "Run", "SocialGroup", seeds
        by = [(run.id, m.id, {"measure": m.measure}) for m in self.metrics.values()]
        yield "MEASURED_BY", "Run", "Metric", by
        yield as_graph.figures(run.id, run.group_scores())
        if self.profiles:
            yield from as_graph.of_profiles(run.id, self.profiles)
        yield as_graph.flags(self.flags)
        yield from as_graph.places(run.id, self.places)
        yield from as_graph.of_topic_models(run.id, run.name, self.topic_models)
        yield as_graph.attributions(run.attributions())
        yield as_graph.labelled(x for x in self.labels if self.keeps(x.triple_id))
        yield "TESTED", "Run", "AssociationTest", [(run.id, t.id, {}) for t in self.tests]
        yield from as_graph.of_tests(self.tests)
        yield from as_graph.asked(run.id, run.name, self.asked)
        yield as_graph.names_of(self.names)
        yield "STATES", "Triple", "Statement", self._states()
        yield "TESTED", "Run", "SofaResult", [(run.id, r.id, {}) for r in self.sofa]
        yield from as_graph.of_probe_sets(self.sets)
        yield from as_graph.of_sofa(self.sofa)
        yield from as_graph.of_passages(run.id, run.name, self.corpus)
        yield as_graph.near_duplicates(run.name, self.near)
        yield from as_graph.of_held(run.id, run.name, self.held)

    def _within(self, start: str, end: str, rows: Iterable[Ends]) -> Iterator[Ends]:
        return (
            row for row in rows if self._has_node(start, row[0]) and self._has_node(end, row[1])
        )

    def _has_node(self, label: str, id: str) -> bool:
        """Whether the export has this node; its label is one that may be exported in part."""
        if label == "Triple":
            return self.keeps(id)
        if label == "Generation":
            return id in self.in_profiles
        return label not in KINDS or id in self.texts[KINDS[label]]

    def _categories(self) -> Iterator[Values]:
        known = {c.name for c in self.run.categories}
        asked = {part.category for p in self.sets for part in p.parts}
        yield from map(in_graph, self.run.categories)
        for name in sorted(({g.category for g in self.run.groups} | asked) - known):
            yield {"name": name}

    def _statements_stated(self) -> Iterator[Values]:
        stated = {e.statement_id: e for e in self.stated()}
        texts = {s.id: s.text for p in self.sets for part in p.parts for s in part.statements}
        for id, text in texts.items():
            if id not in stated:
                yield {"uid": id, "text": text, "name": text}
        for uid, e in stated.items():
            predicate, object = e.predicate_id, e.object_id
            text = f"{self.texts['predicate'][predicate]} {self.texts['object'][object]}"
            ends = {"predicate_uid": predicate, "object_uid": object}
            yield {"uid": uid, "text": text, "name": text, **ends}

    def _answers(self) -> Iterator[Values]:
        chosen = (e for e in self.asked_for() if isinstance(e, ChosenEdge))
        keys = sorted(self.answered.union(*((*e.answers, *e.others) for e in chosen)))
        for start in range(0, len(keys), 5_000):
            yield from map(in_graph, self.run.store.answers(keys[start : start + 5_000]).values())

    def _states(self) -> Iterator[Ends]:
        statements = {(e.predicate_id, e.object_id): e.statement_id for e in self.stated()}
        for id, predicate_id, object_id in self.said_again:
            if (statement := statements.get((predicate_id, object_id))) is not None:
                yield id, statement, {}
