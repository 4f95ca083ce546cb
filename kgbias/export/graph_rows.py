"""What an export for Neo4j holds of a run: its nodes and edges with the properties of
`kgbias.graph.shape`."""

from collections.abc import Iterable, Iterator

from kgbias.export.decisions import decided, generation_row
from kgbias.export.flags import flag_edges, flag_nodes
from kgbias.export.graph_findings import PLACE, Ends, FindingRows, Values
from kgbias.export.profiles import profile_edges, profile_nodes
from kgbias.export.sofa import sofa_nodes
from kgbias.graph import shape
from kgbias.graph.decisions import decision_row
from kgbias.graph.passages import as_json
from kgbias.graph.shape import DERIVED, TONES
from kgbias.graph.types import (
    Generation,
    TripleView,
    canonical_json,
    node_id,
    topic_model_id,
)


class GraphRows(FindingRows):
    """The nodes and edges of an export: of its run everything that touches a kept triple."""

    def nodes(self) -> Iterator[tuple[str, Iterable[Values]]]:
        run, record = self.run, self.run.record
        known = {c.name for c in run.categories}
        asked = {part.category for p in self.sets for part in p.parts}
        other = ({g.category for g in run.groups} | asked) - known
        yield (
            "Category",
            [
                *(
                    {"name": c.name, "singular": c.singular, "plural": c.plural}
                    for c in run.categories
                ),
                *({"name": name} for name in sorted(other)),
            ],
        )
        placed = {
            p.node_id: {name: getattr(p, name) for name in PLACE} | {"placed_by": run.name}
            for p in self.places
        }
        variants = {g.id: {"variants": g.variants} for g in run.groups}
        yield (
            "SocialGroup",
            (
                {"uid": id, "name": text, **variants.get(id, {}), **placed.get(id, {})}
                for id, text in self.texts["group"].items()
            ),
        )
        yield (
            "Predicate",
            (
                {"uid": id, "text": text, "name": text}
                for id, text in self.texts["predicate"].items()
            ),
        )
        yield (
            "Object",
            (
                {"uid": id, "text": text, "name": text, **placed.get(id, {})}
                for id, text in self.texts["object"].items()
            ),
        )
        yield (
            "Triple",
            (
                {
                    "uid": t.id,
                    "group_uid": t.group_id,
                    "text": (name := f"{t.group} {t.predicate} {t.object}"),
                    "name": name,
                }
                for t in self.triples
            ),
        )
        models = {run.model, *(p.model for p in self.probings), *(t.model for t in self.tests)}
        models |= {r.model for r in self.sofa} | {c.model for c, _ in self.choices}
        yield (
            "Model",
            [
                {"uid": m.id, "name": m.name, "revision": m.revision}
                for m in sorted(models, key=lambda m: m.id)
            ],
        )
        yield (
            "Run",
            [
                {
                    "uid": run.id,
                    "name": run.name,
                    "kind": record.kind,
                    "config": canonical_json(run.config),
                    "settings": canonical_json(record.settings),
                    "status": run.status,
                    "created": record.created,
                    "version": record.version,
                    "seconds": run.store.summary(run.id).seconds,
                    "seq": 0,
                }
            ],
        )
        yield (
            "Metric",
            [
                {
                    "uid": m.id,
                    "measure": m.measure,
                    "scorer": m.scorer,
                    "version": m.version,
                    "verbaliser": m.verbaliser,
                }
                for m in self.metrics.values()
            ],
        )
        yield "Generation", (generation_row(g) for g in self._generations())
        yield "Answer", self._answers()
        yield (
            "AssociationTest",
            [
                {
                    "uid": t.id,
                    "name": t.test,
                    "method": t.method,
                    "model": t.model.name,
                    "effect_size": t.effect_size,
                    "p_value": t.p_value,
                    "p_published": t.p_published,
                    "p_holm": t.p_holm,
                    "p_bh": t.p_bh,
                    "n_x": t.n_x,
                    "n_y": t.n_y,
                    "low": t.low,
                    "high": t.high,
                    "record": canonical_json(dict(t.record)),
                }
                for t in self.tests
            ],
        )
        yield (
            "Topic",
            [
                {
                    "uid": t.id,
                    "name": self.texts["topic"][t.id],
                    "words": t.words,
                    "category": t.category,
                    "given": t.given,
                }
                for model in self.topic_models
                for t in model.topics
            ],
        )
        yield (
            "TopicModel",
            [
                {
                    "uid": topic_model_id(run.id, m.category),
                    "category": m.category,
                    "settings": canonical_json(dict(m.settings)),
                }
                for m in self.topic_models
            ],
        )
        statements = {e.statement_id: e for e in self._asked_about()}
        texts = {s.id: s.text for p in self.sets for part in p.parts for s in part.statements}
        yield (
            "Statement",
            (
                *(
                    {"uid": id, "text": text, "name": text}
                    for id, text in texts.items()
                    if id not in statements
                ),
                *(
                    {
                        "uid": uid,
                        "text": (
                            name := f"{self.texts['predicate'][e.predicate_id]} "
                            f"{self.texts['object'][e.object_id]}"
                        ),
                        "name": name,
                        "predicate_uid": e.predicate_id,
                        "object_uid": e.object_id,
                    }
                    for uid, e in statements.items()
                ),
            ),
        )
        yield (
            "Passage",
            [
                {
                    "uid": p.uid(run.id),
                    "name": p.id,
                    "kind": p.kind,
                    "text": p.text,
                    "properties": as_json(p.properties),
                }
                for p in self.corpus.passages
            ],
        )
        yield "Decision", (decision_row(d) for _, found in decided(run, self.kept) for d in found)
        yield from profile_nodes(self.profiles)
        yield flag_nodes(self.flags, self.texts["group"])
        yield from sofa_nodes(self.sofa, self.sets)

    def edges(self) -> Iterator[tuple[str, str, str, Iterable[Ends]]]:
        run = self.run
        yield "IN_CATEGORY", "SocialGroup", "Category", [(g.id, g.category, {}) for g in run.groups]
        yield "SUBJECT", "Triple", "SocialGroup", ((t.id, t.group_id, {}) for t in self.triples)
        for kind, label in (("PREDICATE", "Predicate"), ("OBJECT", "Object")):
            name = label.lower()
            yield (
                kind,
                "Triple",
                label,
                ((t.id, node_id(name, getattr(t, name)), {}) for t in self.triples),
            )
        yield "OF", "Run", "Model", [(run.id, run.model.id, {})]
        yield (
            "SEEDED",
            "Run",
            "SocialGroup",
            [
                (run.id, g.id, {"position": n, "category": g.category})
                for n, g in enumerate(run.groups)
            ],
        )
        yield (
            "MEASURED_BY",
            "Run",
            "Metric",
            [(run.id, m.id, {"measure": m.measure}) for m in self.metrics.values()],
        )
        yield (
            "SCORED",
            "Triple",
            "Metric",
            (
                (
                    t.id,
                    self.metrics[m].id,
                    {
                        "value": s.value,
                        "label": s.label,
                        "names": sorted(s.details),
                        "parts": [s.details[name] for name in sorted(s.details)],
                    },
                )
                for t in self.triples
                for m, s in t.scores.items()
            ),
        )
        yield (
            "FIGURE",
            "Run",
            "SocialGroup",
            [
                (
                    run.id,
                    s.group_id,
                    {
                        "measure": s.measure,
                        "value": s.value,
                        "low": s.low,
                        "high": s.high,
                        "n": s.n,
                        "method": s.method,
                        "arm": s.arm,
                    },
                )
                for s in run.group_scores()
                if s.group_id in self.texts["group"]
            ],
        )
        yield "STEREOTYPE", "SocialGroup", "Object", map(self._stereotype, self.said)
        for tone in TONES:
            toned = (t for t in self.said if "regard" in t.scores)
            own = (self._stereotype(t) for t in toned if t.scores["regard"].label == tone)
            yield tone.upper(), "SocialGroup", "Object", own
        yield (
            "REVIEWED",
            "Run",
            "Decision",
            ((run.id, d.id, {}) for _, found in decided(run, self.kept) for d in found),
        )
        yield (
            "DECIDES",
            "Decision",
            "Generation",
            ((d.id, g.id, {}) for g, found in decided(run, self.kept) for d in found),
        )
        yield "IN", "Generation", "Run", ((g.id, run.id, {}) for g in self._generations())
        yield (
            "YIELDED",
            "Generation",
            "Triple",
            (
                (
                    g.id,
                    g.triple.id,
                    {"count": g.count, "predicate": g.triple.predicate, "object": g.triple.object},
                )
                for g in self._generations()
                if g.triple is not None
            ),
        )
        yield (
            "SHOWN",
            "Generation",
            "Triple",
            (
                (g.id, id, {"position": n})
                for g in self._generations()
                for n, id in enumerate(g.shown)
                if id in self.kept
            ),
        )
        if self.profiles:
            told = {g.id for g in self._generations()}
            yield from profile_edges(run.id, self.profiles, told)
        yield flag_edges(self.flags, self.texts["group"])
        yield from self.findings()

    def _stereotype(self, t: TripleView) -> Ends:
        values = {
            "run": self.run.name,
            "predicate": t.predicate,
            "count": t.count,
            "triple": t.id,
            "arm": t.arm,
            **{m: t.scores[m].value if m in t.scores else None for m in DERIVED},
        }
        return t.group_id, node_id("object", t.object), values

    def _generations(self) -> Iterator[Generation]:
        for g in self.run.generations():
            if (g.arm, g.triple.id) in self.kept_in if g.triple else g.arm in self.arms:
                yield g

    def _answers(self) -> Iterator[Values]:
        wanted = {g.answer_key for g in self._generations() if g.answer_key}
        chosen = (e for _, edges in self.choices for e in edges)
        keys = sorted(wanted.union(*((*e.answers, *e.others) for e in chosen)))
        for start in range(0, len(keys), 5_000):
            for a in self.run.answers(keys[start : start + 5_000]).values():
                yield {p.name: getattr(a, p.name) for p in shape.node("Answer").properties}
