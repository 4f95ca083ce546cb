"""Records as nodes and edges of `kgbias.graph.shape`: what was found about a run, as the Neo4j
store and the exports for Neo4j write it.

A table is the nodes of one label with their properties, or the edges of one type between two
labels, each with the keys of its ends and its properties.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from kgbias.graph import shape
from kgbias.graph.keeping import Corpus, passage_uid
from kgbias.graph.labels import Label
from kgbias.graph.profiles import Profile
from kgbias.graph.record import in_graph
from kgbias.graph.recorded import Held
from kgbias.graph.sofa import ProbeSet, SofaResult
from kgbias.graph.types import (
    AssociationNode,
    Attribution,
    Flagged,
    GroupName,
    GroupScore,
    NameProbe,
    NearDuplicate,
    NodePlace,
    Probing,
    StatementEdge,
    TopicModel,
    node_id,
    topic_model_id,
)
from kgbias.io.text import storable
from kgbias.models.base import ModelInfo

Values = Mapping[str, Any]
Ends = tuple[str, str, Values]  # the keys of the two ends, and the properties
Nodes = tuple[str, Iterable[Values]]
Edges = tuple[str, str, str, Iterable[Ends]]

LABELS = {
    "group": "SocialGroup", "object": "Object", "predicate": "Predicate", "topic": "Topic"
}  # fmt: skip
"""The label of the nodes that records call by each kind."""

KINDS = {label: kind for kind, label in LABELS.items()}


def values(name: str, record: object, /, **beside: Any) -> dict[str, Any]:
    """The properties that a node or edge of this label or type takes from a record, and those given
    `beside` it."""
    own = in_graph(record) | beside
    thing = shape.edge(name) if name.isupper() else shape.node(name)
    return {p.name: own[p.name] for p in thing.properties if p.name in own}


def models(found: Iterable[ModelInfo]) -> Nodes:
    return "Model", [{"uid": m.id, "name": m.title, "revision": m.revision} for m in found]


def groups(names: Iterable[str]) -> Nodes:
    return "SocialGroup", [{"uid": node_id("group", n), "name": storable(n)} for n in names]


def figures(run_id: str, scores: Iterable[GroupScore]) -> Edges:
    own = [(run_id, s.group_id, values("FIGURE", s)) for s in scores]
    return "FIGURE", "Run", "SocialGroup", own


def places(run_id: str, found: Sequence[NodePlace]) -> Iterator[Edges]:
    for kind in ("group", "object"):
        own = [(run_id, p.node_id, values("PLACED", p)) for p in found if p.kind == kind]
        yield "PLACED", "Run", LABELS[kind], own


def near_duplicates(run: str, links: Sequence[NearDuplicate]) -> Edges:
    """Here `run` is the name of a run, as in edges that name theirs."""
    own = [(x.statement_id, x.head_id, values("NEAR", x, run=run)) for x in links]
    return "NEAR", "Statement", "Statement", own


def topic_models(run_id: str, found: Sequence[TopicModel]) -> Iterator[Nodes]:
    ids = [(topic_model_id(run_id, m.category), m) for m in found]
    yield "TopicModel", [values("TopicModel", m, uid=uid) for uid, m in ids]
    yield "Topic", [values("Topic", t, uid=t.id) for m in found for t in m.topics]


def of_topic_models(run_id: str, run: str, found: Sequence[TopicModel]) -> Iterator[Edges]:
    ids = [(topic_model_id(run_id, m.category), m) for m in found]
    about = [(uid, a) for uid, m in ids for a in m.about]
    yield "MODELLED_BY", "Run", "TopicModel", [(run_id, uid, {}) for uid, _ in ids]
    topics = [(uid, t.id, values("FOUND", t)) for uid, m in ids for t in m.topics]
    yield "FOUND", "TopicModel", "Topic", topics
    to_topics = (
        (a.triple_id, a.topic_id, values("ABOUT", a, run=run, model=uid))
        for uid, a in about
        if a.topic_id is not None
    )
    yield "ABOUT", "Triple", "Topic", to_topics
    to_none = ((a.triple_id, uid, values("OUTLIER", a)) for uid, a in about if a.topic_id is None)
    yield "OUTLIER", "Triple", "TopicModel", to_none


def attributions(found: Iterable[Attribution]) -> Edges:
    own = ((a.triple_id, a.metric.id, values("ATTRIBUTED", a)) for a in found)
    return "ATTRIBUTED", "Triple", "Metric", own


def raters(labels: Iterable[Label]) -> Nodes:
    found = {x.by.id: x.by for x in labels}
    return "Rater", [values("Rater", found[id], uid=id) for id in sorted(found)]


def labelled(labels: Iterable[Label]) -> Edges:
    own = [(x.by.id, x.triple_id, values("LABELLED", x)) for x in labels]
    return "LABELLED", "Rater", "Triple", own


def tests(found: Iterable[AssociationNode]) -> Nodes:
    return "AssociationTest", [values("AssociationTest", t, uid=t.id) for t in found]


def of_tests(found: Sequence[AssociationNode]) -> Iterator[Edges]:
    yield "OF", "AssociationTest", "Model", [(t.id, t.model.id, {}) for t in found]
    edges = [(t.id, e) for t in found for e in t.edges]
    for kind in ("TARGET", "ATTRIBUTE"):
        for start, end in shape.edge(kind).ends:
            own = [
                (id, e.node_id, values(kind, e))
                for id, e in edges
                if (e.name, LABELS[e.kind]) == (kind, end)
            ]
            yield kind, start, end, own


class Asked(NamedTuple):
    """Edges of a type made by asking a model, such as PROBED, and how it was asked."""

    kind: str
    asking: Probing
    edges: Sequence[StatementEdge | NameProbe]


def asked(run_id: str, run: str, found: Sequence[Asked]) -> Iterator[Edges]:
    """How models were asked about a run (edges such as PROBED_WITH), and the edges that this
    made."""
    for edge in dict.fromkeys(edge for _, edge in shape.ASKED.values()):
        own = {a.asking.id: a.asking for a in found if shape.ASKED[a.kind][1] == edge}
        yield asking(edge, run_id, own.values())
    for kind, (uid, _) in shape.ASKED.items():
        rows = (
            (*ends(e), values(kind, e, run=run, model=a.asking.model.title, **{uid: a.asking.id}))
            for a in found
            if a.kind == kind
            for e in a.edges
        )
        yield kind, *shape.edge(kind).ends[0], rows


def asking(edge: str, run_id: str, askings: Iterable[Probing]) -> Edges:
    """How models were asked about a run, for one type of edge."""
    own = [(run_id, a.model.id, values(edge, a, uid=a.id)) for a in askings]
    return edge, "Run", "Model", own


def ends(edge: StatementEdge | NameProbe) -> tuple[str, str]:
    """The ends of an edge made by asking a model."""
    if isinstance(edge, NameProbe):
        return edge.name_id, edge.statement_id
    return edge.statement_id, edge.group_id


def names(found: Iterable[GroupName]) -> Nodes:
    ids = {n.id: n for n in found}
    own = [values("Name", n, uid=id, name=storable(n.text)) for id, n in sorted(ids.items())]
    return "Name", own


def names_of(found: Iterable[GroupName]) -> Edges:
    own = {(n.id, n.group_id): values("NAME_OF", n) for n in found if not n.nonce}
    return "NAME_OF", "Name", "SocialGroup", [(*ids, own[ids]) for ids in sorted(own)]


def descriptors(tables: Iterable[Flagged]) -> Nodes:
    found = {node_id("descriptor", f.descriptor): f for t in tables for f in t.flags}
    own = ((id, storable(f.descriptor), storable(f.axis)) for id, f in sorted(found.items()))
    return (
        "Descriptor",
        [{"uid": id, "text": text, "name": text, "axis": axis} for id, text, axis in own],
    )


def flags(tables: Iterable[Flagged]) -> Edges:
    own = [
        (
            node_id("group", f.group),
            node_id("descriptor", f.descriptor),
            values("FLAGGED", f, **in_graph(t)),
        )
        for t in tables
        for f in t.flags
    ]
    return "FLAGGED", "SocialGroup", "Descriptor", own


def probe_sets(found: Iterable[ProbeSet]) -> Nodes:
    return "ProbeSet", [values("ProbeSet", p, uid=p.id) for p in found]


def of_probe_sets(found: Iterable[ProbeSet]) -> Iterator[Edges]:
    parts = [(p.id, part, {"category": part.category}) for p in found for part in p.parts]
    groups = [
        (id, node_id("group", g), of | {"text": storable(g)})
        for id, part, of in parts
        for g in part.groups
    ]
    yield "ASKS", "ProbeSet", "SocialGroup", groups
    said = [(id, s.id, values("ASKS", s, **of)) for id, part, of in parts for s in part.statements]
    yield "ASKS", "ProbeSet", "Statement", said


def sofa(results: Iterable[SofaResult]) -> Nodes:
    return "SofaResult", [values("SofaResult", r, uid=r.id) for r in results]


def of_sofa(results: Sequence[SofaResult]) -> Iterator[Edges]:
    yield "OF", "SofaResult", "Model", [(r.id, r.model.id, {}) for r in results]
    yield "ON", "SofaResult", "ProbeSet", [(r.id, r.probe_set, {}) for r in results]
    found = [(r.id, c) for r in results for c in r.categories]
    scores = [(id, c.category, values("SCORES", c)) for id, c in found]
    yield "SCORES", "SofaResult", "Category", scores
    first = [
        (id, node_id("group", g.group), values("PUTS_FIRST", g, category=c.category))
        for id, c in found
        for g in c.groups
    ]
    yield "PUTS_FIRST", "SofaResult", "SocialGroup", first
    said = [
        (id, s.id, values("DISPARITY", s, category=c.category))
        for id, c in found
        for s in c.statements
    ]
    yield "DISPARITY", "SofaResult", "Statement", said


def stereotypes(found: Iterable[Held]) -> Iterator[Nodes]:
    """The tables that a run was held against, and what they record of its groups."""
    yield "StereotypeTable", [values("StereotypeTable", h.table, uid=h.table.id) for h in found]
    own = {uid: entry for h in found for uid, entry in h.entries.items()}
    named = [
        (uid, entry, storable(f"{entry.group}: {entry.attribute}")) for uid, entry in own.items()
    ]
    yield "Stereotype", [values("Stereotype", e, uid=uid, name=name) for uid, e, name in named]


def of_held(run_id: str, run: str, found: Sequence[Held]) -> Iterator[Edges]:
    against = [(run_id, h.table.id, values("HELD_AGAINST", h)) for h in found]
    yield "HELD_AGAINST", "Run", "StereotypeTable", against
    heard = [(h.table.id, x.entry.uid(h.table.id), x) for h in found for x in h.heard]
    yield "LISTS", "StereotypeTable", "Stereotype", [(table, uid, {}) for table, uid, _ in heard]
    yield "SOUGHT", "Run", "Stereotype", [(run_id, uid, values("SOUGHT", x)) for _, uid, x in heard]
    recorded = [
        (m.triple_id, m.stereotype_id, values("RECORDED", m, run=run))
        for h in found
        for m in h.marks
        if m.stereotype_id is not None
    ]
    yield "RECORDED", "Triple", "Stereotype", recorded
    new = [
        (m.triple_id, h.table.id, {"run": run})
        for h in found
        for m in h.marks
        if m.stereotype_id is None
    ]
    yield "NEW_TO", "Triple", "StereotypeTable", new


def profiles(found: Sequence[Profile]) -> Iterator[Nodes]:
    given = {p.name_id: storable(p.name) for p in found}
    yield "GivenName", [{"uid": uid, "name": name} for uid, name in sorted(given.items())]
    yield "Profile", [values("Profile", p, uid=p.id) for p in found]


def of_profiles(run_id: str, found: Sequence[Profile]) -> Iterator[Edges]:
    yield "WROTE", "Run", "Profile", [(run_id, p.id, {}) for p in found]
    yield "IN", "Profile", "SocialGroup", [(p.id, p.group_id, {}) for p in found]
    yield "GIVEN", "Profile", "GivenName", [(p.id, p.name_id, {}) for p in found]
    parts = [
        (part.generation_id, p.id, values("PART_OF", part, position=position))
        for p in found
        for position, part in enumerate(p.parts)
    ]
    yield "PART_OF", "Generation", "Profile", parts


def passages(run_id: str, corpus: Corpus) -> Nodes:
    return "Passage", [values("Passage", p, uid=p.uid(run_id)) for p in corpus.passages]


def of_passages(run_id: str, run: str, corpus: Corpus) -> Iterator[Edges]:
    held = [(run_id, p.uid(run_id), {"position": n}) for n, p in enumerate(corpus.passages)]
    yield "HOLDS", "Run", "Passage", held
    related = [
        (
            passage_uid(run_id, r.source),
            passage_uid(run_id, r.target),
            values("RELATED", r, run=run, position=n),
        )
        for n, r in enumerate(corpus.relations)
    ]
    yield "RELATED", "Passage", "Passage", related
