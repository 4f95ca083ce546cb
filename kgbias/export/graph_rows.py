"""What an export for Neo4j holds of a run: its nodes and edges with the properties of
`kgbias.graph.shape`."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

from kgbias.export.beliefs import name_nodes
from kgbias.export.graph_findings import FindingRows
from kgbias.export.graph_passes import Ends, Values
from kgbias.export.sofa import sofa_nodes
from kgbias.graph import shape
from kgbias.graph.keeping import as_json
from kgbias.graph.profiles import Profile
from kgbias.graph.types import Flag, Flagged, canonical_json, node_id, topic_model_id

Row = dict[str, Any]


def flag_nodes(tables: Sequence[Flagged], groups: Collection[str]) -> tuple[str, list[Row]]:
    """The descriptors that are tied to these groups, by id."""
    found = {node_id("descriptor", f.descriptor): f for _, _, f in _flags(tables, groups)}
    return (
        "Descriptor",
        [
            {"uid": id, "text": f.descriptor, "name": f.descriptor, "axis": f.axis}
            for id, f in sorted(found.items())
        ],
    )


def flag_edges(
    tables: Sequence[Flagged], groups: Collection[str]
) -> tuple[str, str, str, Iterable[tuple[str, str, Row]]]:
    """The edges from these groups to descriptors."""
    edges = (
        (
            group,
            node_id("descriptor", f.descriptor),
            {
                "apx_uid": t.id,
                "model": t.model,
                "revision": t.revision,
                "settings": canonical_json(t.settings),
                "bias_score": f.bias_score,
                "z": f.z,
                "level": t.level,
                "groups": t.groups,
            },
        )
        for t, group, f in _flags(tables, groups)
    )
    return "FLAGGED", "SocialGroup", "Descriptor", edges


def _flags(
    tables: Sequence[Flagged], groups: Collection[str]
) -> Iterator[tuple[Flagged, str, Flag]]:
    for table in tables:
        for flag in table.flags:
            if (group := node_id("group", flag.group)) in groups:
                yield table, group, flag


_Nodes = Iterator[tuple[str, Iterable[dict[str, Any]]]]
_Edges = Iterator[tuple[str, str, str, Iterable[tuple[str, str, dict[str, Any]]]]]


def profile_nodes(profiles: Sequence[Profile]) -> _Nodes:
    """The profiles and the names that they were given."""
    names = {p.name_id: p.name for p in profiles}
    yield "GivenName", ({"uid": uid, "name": name} for uid, name in sorted(names.items()))
    yield (
        "Profile",
        (
            {"uid": p.id, "path": p.path, "name": p.name, "labels": canonical_json(dict(p.labels))}
            for p in profiles
        ),
    )


def profile_edges(run_id: str, profiles: Sequence[Profile], generations: Collection[str]) -> _Edges:
    """The edges of profiles; of those to generations, the ones that are in the export."""
    yield "IN", "Profile", "SocialGroup", ((p.id, p.group_id, {}) for p in profiles)
    yield "WROTE", "Run", "Profile", ((run_id, p.id, {}) for p in profiles)
    yield "GIVEN", "Profile", "GivenName", ((p.id, p.name_id, {}) for p in profiles)
    yield (
        "PART_OF",
        "Generation",
        "Profile",
        (
            (part.generation_id, p.id, {"attribute": part.attribute, "position": position})
            for p in profiles
            for position, part in enumerate(p.parts)
            if part.generation_id in generations
        ),
    )


class GraphRows(FindingRows):
    """The nodes and edges of an export: of its run everything that touches a kept triple. What was
    said comes in `passes`, the rest after them."""

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
        variants = {g.id: {"variants": g.variants} for g in run.groups}
        yield (
            "SocialGroup",
            (
                {"uid": id, "name": text, **variants.get(id, {}), **self.placed.get(id, {})}
                for id, text in self.texts["group"].items()
            ),
        )
        models = {run.model, *(p.model for p, _ in self.probes), *(t.model for t in self.tests)}
        models |= {r.model for r in self.sofa} | {c.model for c, _ in self.choices}
        models |= {b.believing.model for b in self.beliefs}
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
                    "seconds": run.store.seconds(run.id),
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
        yield from profile_nodes(self.profiles)
        yield name_nodes(self.beliefs)
        yield flag_nodes(self.flags, self.texts["group"])
        yield from sofa_nodes(self.sofa, self.sets)

    def edges(self) -> Iterator[tuple[str, str, str, Iterable[Ends]]]:
        run = self.run
        yield "IN_CATEGORY", "SocialGroup", "Category", [(g.id, g.category, {}) for g in run.groups]
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
        if self.profiles:
            yield from profile_edges(run.id, self.profiles, self.in_profiles)
        yield flag_edges(self.flags, self.texts["group"])
        yield from self.findings()

    def _answers(self) -> Iterator[Values]:
        chosen = (e for _, edges in self.choices for e in edges)
        keys = sorted(self.answered.union(*((*e.answers, *e.others) for e in chosen)))
        for start in range(0, len(keys), 5_000):
            for a in self.run.store.answers(keys[start : start + 5_000]).values():
                yield {p.name: getattr(a, p.name) for p in shape.node("Answer").properties}
