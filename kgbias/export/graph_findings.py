"""What an export for Neo4j holds of what was found about a run: topics, probes, choices,
association tests, attributions, near-duplicates and places."""

from collections.abc import Iterable, Iterator

from kgbias.export.beliefs import belief_edges
from kgbias.export.content import Content
from kgbias.export.graph_passes import PLACE, Ends, Passes
from kgbias.export.sofa import sofa_edges
from kgbias.graph import shape
from kgbias.graph.keeping import as_json, passage_uid
from kgbias.graph.types import canonical_json, topic_model_id

_FOUND = ("number", "size", "coherence", "stability")
_LIKELIHOODS = (
    "log_likelihood", "tokens", "statement_log_likelihood", "statement_tokens",
    "group_log_likelihood", "group_tokens", "rank", "pieces", "bits",
    "lift", "similarity", "association",
)  # fmt: skip
_KINDS = {"group": "SocialGroup", "object": "Object", "topic": "Topic", "predicate": "Predicate"}


class FindingRows(Passes):
    """The edges of what was found about the run of an export, where they touch a kept triple."""

    def __init__(self, content: Content) -> None:
        super().__init__(content)
        run = self.run
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
        about = [(uid, a) for uid, m in models for a in m.about if self.keeps(a.triple_id)]
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
                if self.keeps(a.triple_id)
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
        yield from belief_edges(run, self.beliefs)
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
                    for x in self.near
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
                for p, _ in self.probes
            ],
        )
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
                for p, edges in self.probes
                for e in edges
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
        for id, predicate_id, object_id in self.said_again:
            if (statement := statements.get((predicate_id, object_id))) is not None:
                yield id, statement, {}
