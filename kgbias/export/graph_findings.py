"""What an export for Neo4j holds of what was found about a run: topics, probes, choices,
association tests, attributions, near-duplicates and places."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from kgbias.export.content import Content
from kgbias.export.sofa import sofa_edges
from kgbias.graph import shape
from kgbias.graph.chosen import ChosenEdge
from kgbias.graph.passages import as_json, passage_uid
from kgbias.graph.types import ProbedEdge, Probing, canonical_json, node_id, topic_model_id

_FOUND = ("number", "size", "coherence", "stability")
PLACE = ("degree", "betweenness", "community", "groups")
_LIKELIHOODS = (
    "log_likelihood", "tokens", "statement_log_likelihood", "statement_tokens",
    "group_log_likelihood", "group_tokens", "rank", "pieces", "bits",
    "lift", "p_value", "similarity", "association",
)  # fmt: skip
_KINDS = {"group": "SocialGroup", "object": "Object", "topic": "Topic", "predicate": "Predicate"}
Values = Mapping[str, Any]
Ends = tuple[str, str, Values]  # the keys of the two ends, and the properties


class FindingRows:
    """The edges of what was found about the run of an export, where they touch a kept triple."""

    def __init__(self, content: Content) -> None:
        run = self.run = content.run
        self.said, self.arms = content.triples, set(content.counted.arms)
        self.triples = list({t.id: t for t in self.said}.values())
        self.kept = {t.id for t in self.triples}
        self.kept_in = {(t.arm, t.id) for t in self.said}
        self.metrics = run.metrics()
        self.topic_models = run.topics()
        self.tests = run.associations()
        self.probings = run.probings()
        self.texts = {
            "group": {g.id: g.name for g in run.groups},
            "predicate": {node_id("predicate", t.predicate): t.predicate for t in self.triples},
            "object": {node_id("object", t.object): t.object for t in self.triples},
            "topic": {t.id: t.name for m in self.topic_models for t in m.topics},
        }
        for t in self.triples:
            self.texts["group"].setdefault(t.group_id, t.group)
        self.profiles = [p for p in run.profiles() if p.group_id in self.texts["group"]]
        self.places = [p for p in run.places() if p.node_id in self.texts[p.kind]]

        self.choices = [(c, [e for e in run.choices(c) if self._kept(e)]) for c in run.choosings()]
        self.corpus = run.corpus()
        self.flags = run.store.flags()
        self.sofa = run.sofa()
        of_results = {r.probe_set for r in self.sofa}
        self.sets = [p for p in run.store.probe_sets() if p.id in of_results] if self.sofa else []

    def findings(self) -> Iterator[tuple[str, str, str, Iterable[Ends]]]:
        run = self.run
        for kind in ("group", "object"):
            yield (
                "PLACED",
                "Run",
                _KINDS[kind],
                [
                    (run.id, p.node_id, {name: getattr(p, name) for name in PLACE})
                    for p in self.places
                    if p.kind == kind
                ],
            )
        models = [(topic_model_id(run.id, m.category), m) for m in self.topic_models]
        yield "MODELLED_BY", "Run", "TopicModel", [(run.id, uid, {}) for uid, _ in models]
        yield (
            "FOUND",
            "TopicModel",
            "Topic",
            [
                (uid, t.id, {name: getattr(t, name) for name in _FOUND})
                for uid, m in models
                for t in m.topics
            ],
        )
        about = [(uid, a) for uid, m in models for a in m.about if a.triple_id in self.kept]
        yield (
            "ABOUT",
            "Triple",
            "Topic",
            [
                (
                    a.triple_id,
                    a.topic_id,
                    {
                        "run": run.name,
                        "model": uid,
                        "probability": a.probability,
                        "assigned": a.assigned,
                    },
                )
                for uid, a in about
                if a.topic_id is not None
            ],
        )
        yield (
            "OUTLIER",
            "Triple",
            "TopicModel",
            [
                (a.triple_id, uid, {"probability": a.probability, "assigned": a.assigned})
                for uid, a in about
                if a.topic_id is None
            ],
        )
        yield (
            "ATTRIBUTED",
            "Triple",
            "Metric",
            [
                (
                    a.triple_id,
                    a.metric.id,
                    {
                        "method": a.method,
                        "tokens": a.tokens,
                        "effects": a.effects,
                        "score": a.score,
                    },
                )
                for a in run.attributions()
                if a.triple_id in self.kept
            ],
        )
        yield "OF", "AssociationTest", "Model", [(t.id, t.model.id, {}) for t in self.tests]
        yield "TESTED", "Run", "AssociationTest", [(run.id, t.id, {}) for t in self.tests]
        for edge in (shape.edge("TARGET"), shape.edge("ATTRIBUTE")):
            for start, end in edge.ends:
                yield (
                    edge.type,
                    start,
                    end,
                    [
                        (t.id, e.node_id, {"side": e.side})
                        for t in self.tests
                        for e in t.edges
                        if (e.name, _KINDS[e.kind]) == (edge.type, end)
                        and e.node_id in self.texts[e.kind]
                    ],
                )
        yield from self._probed()
        yield from self._chosen()
        yield "STATES", "Triple", "Statement", self._states()
        yield from sofa_edges(run.id, self.sofa, self.sets, self.texts["group"])
        yield from self._passages()
        for kind in ("object", "predicate"):
            texts = self.texts[kind]
            yield (
                "NEAR",
                _KINDS[kind],
                _KINDS[kind],
                [
                    (
                        x.node_id,
                        x.head_id,
                        {"run": run.name, "similarity": x.similarity, "method": x.method},
                    )
                    for x in run.near_duplicates()
                    if x.kind == kind and x.node_id in texts and x.head_id in texts
                ],
            )

    def _passages(self) -> Iterator[tuple[str, str, str, Iterable[Ends]]]:
        run = self.run
        held = [
            (run.id, p.uid(run.id), {"position": n}) for n, p in enumerate(self.corpus.passages)
        ]
        yield "HOLDS", "Run", "Passage", held
        related = [
            (
                passage_uid(run.id, r.source),
                passage_uid(run.id, r.target),
                {
                    "run": run.name,
                    "name": r.id,
                    "position": n,
                    "kind": r.kind,
                    "bidirectional": r.bidirectional,
                    "properties": as_json(r.properties),
                },
            )
            for n, r in enumerate(self.corpus.relations)
        ]
        yield "RELATED", "Passage", "Passage", related

    def _probed(self) -> Iterator[tuple[str, str, str, Iterable[Ends]]]:
        run = self.run
        yield (
            "PROBED_WITH",
            "Run",
            "Model",
            [
                (
                    run.id,
                    p.model.id,
                    {
                        "uid": p.id,
                        "settings": canonical_json(p.settings),
                        "record": canonical_json(dict(p.record)),
                    },
                )
                for p in self.probings
            ],
        )
        probed = [(p, e) for p in self.probings for e in self._probes(p)]
        yield (
            "PROBED",
            "Statement",
            "SocialGroup",
            (
                (
                    e.statement_id,
                    e.group_id,
                    {
                        "run": run.name,
                        "probing_uid": p.id,
                        "model": p.model.name,
                        **{name: getattr(e, name) for name in _LIKELIHOODS},
                    },
                )
                for p, e in probed
            ),
        )

    def _chosen(self) -> Iterator[tuple[str, str, str, Iterable[Ends]]]:
        run = self.run
        yield (
            "PUT_TO",
            "Run",
            "Model",
            [
                (
                    run.id,
                    c.model.id,
                    {
                        "uid": c.id,
                        "settings": canonical_json(c.settings),
                        "record": canonical_json(dict(c.record)),
                    },
                )
                for c, _ in self.choices
            ],
        )
        yield (
            "CHOSEN",
            "Statement",
            "SocialGroup",
            (
                (
                    e.statement_id,
                    e.group_id,
                    {"run": run.name, "choosing_uid": c.id, "model": c.model.name, **e.properties},
                )
                for c, edges in self.choices
                for e in edges
            ),
        )

    def _states(self) -> Iterator[Ends]:
        statements = {(e.predicate_id, e.object_id): e.statement_id for e in self._asked_about()}
        for t in self.triples:
            key = (node_id("predicate", t.predicate), node_id("object", t.object))
            if key in statements:
                yield t.id, statements[key], {}

    def _asked_about(self) -> Iterator[ProbedEdge | ChosenEdge]:
        """The edges between statements and groups."""
        for probing in self.probings:
            yield from self._probes(probing)
        for _, edges in self.choices:
            yield from edges

    def _probes(self, probing: Probing) -> list[ProbedEdge]:
        return [e for e in self.run.probes(probing) if self._kept(e)]

    def _kept(self, edge: ProbedEdge | ChosenEdge) -> bool:
        return (
            edge.predicate_id in self.texts["predicate"]
            and edge.object_id in self.texts["object"]
            and edge.group_id in self.texts["group"]
        )
