"""Records as nodes and edges of `kgbias.graph.shape`: what was found about a run, as the Neo4j
store and the exports for Neo4j write it.

A table is the nodes of one label with their properties, or the edges of one type between two
labels, each with the keys of its ends and its properties.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import chain
from operator import attrgetter
from typing import Any, NamedTuple

from kgbias.graph import shape
from kgbias.graph.decisions import Decision
from kgbias.graph.edge_records import EdgeRecord, edges_by_asking
from kgbias.graph.integrity import Corpus, passage_uid
from kgbias.graph.labels import Label, Rater
from kgbias.graph.node_records import NODE_RECORDS
from kgbias.graph.profiles import Profile
from kgbias.graph.record import property_getters, to_properties
from kgbias.graph.sofa import ProbeSet, SofaResult
from kgbias.graph.stereotypes import StereotypeMatches, StereotypeTable
from kgbias.graph.types import (
    AssociationNode,
    FlagTable,
    Generation,
    GroupName,
    NearDuplicate,
    NodeCentrality,
    ProbeRun,
    Run,
    Score,
    TopicModel,
    Triple,
    TripleView,
    WordAttribution,
    node_id,
    topic_model_id,
)
from kgbias.io.text import storable
from kgbias.models.base import ModelInfo

PropertyValues = Mapping[str, Any]
EdgeRow = tuple[str, str, PropertyValues]  # the keys of the two ends, and the properties
NodeTable = tuple[str, Iterable[PropertyValues]]
EdgeTable = tuple[str, str, str, Iterable[EdgeRow]]

LABEL_BY_KIND = {
    "group": "SocialGroup",
    "object": "Object",
    "predicate": "Predicate",
    "topic": "Topic",
}
"""The label of the nodes that records call by each kind."""

KIND_BY_LABEL = {label: kind for kind, label in LABEL_BY_KIND.items()}


def property_values(name: str, record: object, /, **extra_values: Any) -> dict[str, Any]:
    """The properties that a node or edge of this label or type takes from a record; those in
    `extra_values` are as given."""
    kind: type = type(record)
    values = {}
    for property_name, get in _property_getters(name, kind):
        if property_name in extra_values:
            values[property_name] = extra_values[property_name]
        elif get is not None:
            values[property_name] = get(record)
    return values


@cache
def _property_getters(name: str, kind: type) -> tuple[tuple[str, Callable[[Any], Any] | None], ...]:
    """The properties of a label or type, each with the function that gives it for a record."""
    # Types of edges are in capitals, labels are not.
    element = shape.get_edge(name) if name.isupper() else shape.get_node(name)
    getters = property_getters(kind)
    return tuple((p.name, getters.get(p.name)) for p in element.properties)


def text_node(label: str, id: str, text: str) -> dict[str, Any]:
    """A node that is a text: a group, predicate, object or statement."""
    return {"uid": id, shape.get_node(label).title: text, "name": text}


def triple_node(triple: TripleView) -> dict[str, Any]:
    text = f"{triple.group} {triple.predicate} {triple.object}"
    return {"uid": triple.id, "group_uid": triple.group_id, "text": text, "name": text}


def generation_node(generation: Generation) -> dict[str, Any]:
    return property_values("Generation", generation, uid=generation.id)


def said_words(triple: Triple) -> dict[str, Any]:
    """The words in which a generation said a triple."""
    return {"predicate": storable(triple.predicate), "object": storable(triple.object)}


def yielded_edge(generation: Generation, uid: str, triple_id: str) -> EdgeRow:
    """The edge to the triple that a generation said."""
    assert generation.triple is not None
    return uid, triple_id, {"count": generation.count, **said_words(generation.triple)}


def shown_edges(generation: Generation, uid: str) -> list[EdgeRow]:
    """The edges to the examples in the prompt of a generation."""
    return [(uid, id, {"position": n}) for n, id in enumerate(generation.shown)]


def generation_edges(run_id: str, generations: Sequence[Generation]) -> Iterator[EdgeTable]:
    uids = [g.id for g in generations]
    yield "IN", "Generation", "Run", [(uid, run_id, {}) for uid in uids]
    numbered = list(zip(generations, uids, strict=True))
    yielded = [yielded_edge(g, uid, g.triple.id) for g, uid in numbered if g.triple is not None]
    yield "YIELDED", "Generation", "Triple", yielded
    shown = [edge for g, uid in numbered for edge in shown_edges(g, uid)]
    yield "SHOWN", "Generation", "Triple", shown


def reviewed_edges(run_id: str, decisions: Iterable[Decision]) -> list[EdgeRow]:
    return [(run_id, d.id, {}) for d in decisions]


def decides_edges(decisions: Iterable[Decision]) -> list[EdgeRow]:
    return [(d.id, d.generation_id, {}) for d in decisions]


def decision_edges(run_id: str, decisions: Sequence[Decision]) -> Iterator[EdgeTable]:
    yield "REVIEWED", "Run", "Decision", reviewed_edges(run_id, decisions)
    yield "DECIDES", "Decision", "Generation", decides_edges(decisions)


def score_values(score: Score) -> dict[str, Any]:
    """The properties of the edge from a triple to a metric."""
    names = sorted(score.details)
    # A list in Neo4j holds one type: an integer among floats would be refused.
    parts = [float(score.details[name]) for name in names]
    return {"value": score.value, "label": score.label, "names": names, "parts": parts}


def seed_edges(run: Run) -> EdgeTable:
    """The edges from a run to its seeds, in their order."""
    rows = [
        (
            run.id,
            group.id,
            {"position": n, "category": group.category, "names": list(group.own_names) or None},
        )
        for n, group in enumerate(run.groups)
    ]
    return "SEEDED", "Run", "SocialGroup", rows


def stereotype_edge(run: Run, triple: TripleView, object_id: str) -> EdgeRow:
    """The edge that a triple is, in the graph that people look at."""
    measured = {
        m: triple.scores[m].value if m in triple.scores else None for m in shape.DERIVED_MEASURES
    }
    values = {
        "run": run.name,
        "predicate": triple.predicate,
        "count": triple.count,
        **measured,
        "triple": triple.id,
        "arm": triple.arm,
        "language": run.language,
    }
    return triple.group_id, object_id, values


def model_nodes(model_infos: Iterable[ModelInfo]) -> NodeTable:
    return "Model", [{"uid": m.id, "name": m.title, "revision": m.revision} for m in model_infos]


def group_nodes(names: Iterable[str]) -> NodeTable:
    return "SocialGroup", [
        text_node("SocialGroup", node_id("group", n), storable(n)) for n in names
    ]


def record_nodes(kind: type, records: Iterable[Any]) -> NodeTable:
    """Records that are nodes."""
    node = NODE_RECORDS[kind]
    if node.key != "uid":
        return node.label, [property_values(node.label, r) for r in records]
    return node.label, [property_values(node.label, r, uid=r.id) for r in records]


def record_edges(
    edge: EdgeRecord,
    run_id: str,
    run: str,
    records: Iterable[Any],
    asking: ProbeRun | None = None,
) -> EdgeTable:
    """Records that are edges; `run` is the name of the run, as in edges that name theirs."""
    shared_values: dict[str, Any] = {} if edge.starts_at_run else {"run": run}
    if edge.asking and asking:
        shared_values |= {edge.asking.property: asking.id, "model": asking.model.title}
    return edge.type, edge.start, edge.end, record_rows(edge, run_id, records, **shared_values)


def record_rows(
    edge: EdgeRecord, run_id: str, records: Iterable[Any], **shared_values: Any
) -> Iterator[EdgeRow]:
    """Records as edges, with what all of them share."""
    start, end = (_end_getter(field, run_id) for field in edge.ids)
    return (
        (start(record), end(record), property_values(edge.type, record, **shared_values))
        for record in records
    )


def _end_getter(field: str, run_id: str) -> Callable[[Any], str]:
    """The function that gives the id of an end of a record."""
    return attrgetter(field) if field else lambda _: run_id


def centrality_edges(run_id: str, node_places: Sequence[NodeCentrality]) -> Iterator[EdgeTable]:
    for kind in ("group", "object"):
        rows = [
            (run_id, p.node_id, property_values("PLACED", p)) for p in node_places if p.kind == kind
        ]
        yield "PLACED", "Run", LABEL_BY_KIND[kind], rows


def near_duplicate_edges(run: str, links: Sequence[NearDuplicate]) -> EdgeTable:
    """Here `run` is the name of a run, as in edges that name theirs."""
    rows = [(x.statement_id, x.head_id, property_values("NEAR", x, run=run)) for x in links]
    return "NEAR", "Statement", "Statement", rows


def topic_model_nodes(run_id: str, fitted: Sequence[TopicModel]) -> Iterator[NodeTable]:
    models_by_id = [(topic_model_id(run_id, m.category), m) for m in fitted]
    yield "TopicModel", [property_values("TopicModel", m, uid=uid) for uid, m in models_by_id]
    yield "Topic", [property_values("Topic", t, uid=t.id) for m in fitted for t in m.topics]


def topic_model_edges(run_id: str, run: str, fitted: Sequence[TopicModel]) -> Iterator[EdgeTable]:
    models_by_id = [(topic_model_id(run_id, m.category), m) for m in fitted]
    assignments = [(uid, a) for uid, m in models_by_id for a in m.about]
    yield "MODELLED_BY", "Run", "TopicModel", [(run_id, uid, {}) for uid, _ in models_by_id]
    topics = [(uid, t.id, property_values("FOUND", t)) for uid, m in models_by_id for t in m.topics]
    yield "FOUND", "TopicModel", "Topic", topics
    to_topics = (
        (a.triple_id, a.topic_id, property_values("ABOUT", a, run=run, model=uid))
        for uid, a in assignments
        if a.topic_id is not None
    )
    yield "ABOUT", "Triple", "Topic", to_topics
    to_none = (
        (a.triple_id, uid, property_values("OUTLIER", a))
        for uid, a in assignments
        if a.topic_id is None
    )
    yield "OUTLIER", "Triple", "TopicModel", to_none


def attribution_edges(found_attributions: Iterable[WordAttribution]) -> EdgeTable:
    rows = (
        (a.triple_id, a.metric.id, property_values("ATTRIBUTED", a)) for a in found_attributions
    )
    return "ATTRIBUTED", "Triple", "Metric", rows


def rater_nodes(labels: Iterable[Label]) -> NodeTable:
    return record_nodes(Rater, sorted({x.by for x in labels}, key=attrgetter("id")))


def label_edges(labels: Iterable[Label]) -> EdgeTable:
    rows = [(x.by.id, x.triple_id, property_values("LABELLED", x)) for x in labels]
    return "LABELLED", "Rater", "Triple", rows


def test_edges(test_results: Sequence[AssociationNode]) -> Iterator[EdgeTable]:
    yield "OF", "AssociationTest", "Model", [(t.id, t.model.id, {}) for t in test_results]
    edges = [(t.id, e) for t in test_results for e in t.edges]
    for kind in ("TARGET", "ATTRIBUTE"):
        for start, end in shape.get_edge(kind).ends:
            rows = [
                (id, e.node_id, property_values(kind, e))
                for id, e in edges
                if (e.name, LABEL_BY_KIND[e.kind]) == (kind, end)
            ]
            yield kind, start, end, rows


class AskedEdges(NamedTuple):
    """Records that are edges made by asking a model, and how it was asked."""

    edge: EdgeRecord
    asking: ProbeRun
    records: Sequence[Any]


def edges_with_askings(run_id: str, run: str, batches: Sequence[AskedEdges]) -> Iterator[EdgeTable]:
    """How models were asked about a run (edges such as PROBED_WITH), and the edges that this
    made."""
    kinds = edges_by_asking()
    for asking_kind, edges in kinds.items():
        askings = {b.asking.id: b.asking for b in batches if b.edge in edges}
        yield asking_edges(asking_kind.type, run_id, askings.values())
    for edge in chain.from_iterable(kinds.values()):
        rows = chain.from_iterable(
            record_edges(edge, run_id, run, b.records, b.asking)[3]
            for b in batches
            if b.edge == edge
        )
        yield edge.type, edge.start, edge.end, rows


def asking_edges(type: str, run_id: str, askings: Iterable[ProbeRun]) -> EdgeTable:
    """How models were asked about a run, for one type of edge."""
    rows = [(run_id, a.model.id, property_values(type, a, uid=a.id)) for a in askings]
    return type, "Run", "Model", rows


def name_nodes(group_names: Iterable[GroupName]) -> NodeTable:
    ids = {n.id: n for n in group_names}
    rows = [
        property_values("Name", n, uid=id, name=storable(n.text)) for id, n in sorted(ids.items())
    ]
    return "Name", rows


def name_edges(group_names: Iterable[GroupName]) -> EdgeTable:
    rows_by_ends = {
        (n.id, n.group_id): property_values("NAME_OF", n) for n in group_names if not n.nonce
    }
    return (
        "NAME_OF",
        "Name",
        "SocialGroup",
        [(*ids, rows_by_ends[ids]) for ids in sorted(rows_by_ends)],
    )


def descriptor_nodes(tables: Iterable[FlagTable]) -> NodeTable:
    flags_by_id = {node_id("descriptor", f.descriptor): f for t in tables for f in t.flags}
    rows = ((id, storable(f.descriptor), storable(f.axis)) for id, f in sorted(flags_by_id.items()))
    return (
        "Descriptor",
        [{"uid": id, "text": text, "name": text, "axis": axis} for id, text, axis in rows],
    )


def flag_edges(tables: Iterable[FlagTable]) -> EdgeTable:
    rows = [
        (
            node_id("group", f.group),
            node_id("descriptor", f.descriptor),
            property_values("FLAGGED", f, **to_properties(t)),
        )
        for t in tables
        for f in t.flags
    ]
    return "FLAGGED", "SocialGroup", "Descriptor", rows


def probe_set_edges(sets: Iterable[ProbeSet]) -> Iterator[EdgeTable]:
    parts = [(p.id, part, {"category": part.category}) for p in sets for part in p.parts]
    groups = [
        (id, node_id("group", g), category_property | {"text": storable(g)})
        for id, part, category_property in parts
        for g in part.groups
    ]
    yield "ASKS", "ProbeSet", "SocialGroup", groups
    statement_rows = [
        (id, s.id, property_values("ASKS", s, **category_property))
        for id, part, category_property in parts
        for s in part.statements
    ]
    yield "ASKS", "ProbeSet", "Statement", statement_rows


def sofa_edges(results: Sequence[SofaResult]) -> Iterator[EdgeTable]:
    yield "OF", "SofaResult", "Model", [(r.id, r.model.id, {}) for r in results]
    yield "ON", "SofaResult", "ProbeSet", [(r.id, r.probe_set, {}) for r in results]
    categories_by_result = [(r.id, c) for r in results for c in r.categories]
    scores = [(id, c.category, property_values("SCORES", c)) for id, c in categories_by_result]
    yield "SCORES", "SofaResult", "Category", scores
    first_rows = [
        (id, node_id("group", g.group), property_values("PUTS_FIRST", g, category=c.category))
        for id, c in categories_by_result
        for g in c.groups
    ]
    yield "PUTS_FIRST", "SofaResult", "SocialGroup", first_rows
    disparity_rows = [
        (id, s.id, property_values("DISPARITY", s, category=c.category))
        for id, c in categories_by_result
        for s in c.statements
    ]
    yield "DISPARITY", "SofaResult", "Statement", disparity_rows


def stereotype_nodes(matches: Iterable[StereotypeMatches]) -> Iterator[NodeTable]:
    """The tables that a run was held against, and what they record of its groups."""
    yield record_nodes(StereotypeTable, [h.table for h in matches])
    entries = {uid: entry for h in matches for uid, entry in h.entries.items()}
    named_entries = [
        (uid, entry, storable(f"{entry.group}: {entry.attribute}"))
        for uid, entry in entries.items()
    ]
    yield (
        "Stereotype",
        [property_values("Stereotype", e, uid=uid, name=name) for uid, e, name in named_entries],
    )


def stereotype_edges(
    run_id: str, run: str, matches: Sequence[StereotypeMatches]
) -> Iterator[EdgeTable]:
    table_rows = [(run_id, h.table.id, property_values("HELD_AGAINST", h)) for h in matches]
    yield "HELD_AGAINST", "Run", "StereotypeTable", table_rows
    listed_stereotypes = [
        (h.table.id, x.entry.uid(h.table.id), x) for h in matches for x in h.heard
    ]
    yield (
        "LISTS",
        "StereotypeTable",
        "Stereotype",
        [(table, uid, {}) for table, uid, _ in listed_stereotypes],
    )
    yield (
        "SOUGHT",
        "Run",
        "Stereotype",
        [(run_id, uid, property_values("SOUGHT", x)) for _, uid, x in listed_stereotypes],
    )
    match_rows = [
        (m.triple_id, m.stereotype_id, property_values("RECORDED", m, run=run))
        for h in matches
        for m in h.marks
        if m.stereotype_id is not None
    ]
    yield "RECORDED", "Triple", "Stereotype", match_rows
    new_rows = [
        (m.triple_id, h.table.id, {"run": run})
        for h in matches
        for m in h.marks
        if m.stereotype_id is None
    ]
    yield "NEW_TO", "Triple", "StereotypeTable", new_rows


def profile_nodes(written_profiles: Sequence[Profile]) -> Iterator[NodeTable]:
    name_by_id = {p.name_id: storable(p.name) for p in written_profiles}
    yield "GivenName", [{"uid": uid, "name": name} for uid, name in sorted(name_by_id.items())]
    yield record_nodes(Profile, written_profiles)


def profile_edges(run_id: str, written_profiles: Sequence[Profile]) -> Iterator[EdgeTable]:
    yield "WROTE", "Run", "Profile", [(run_id, p.id, {}) for p in written_profiles]
    yield "IN", "Profile", "SocialGroup", [(p.id, p.group_id, {}) for p in written_profiles]
    yield "GIVEN", "Profile", "GivenName", [(p.id, p.name_id, {}) for p in written_profiles]
    part_rows = [
        (part.generation_id, p.id, property_values("PART_OF", part, position=position))
        for p in written_profiles
        for position, part in enumerate(p.parts)
    ]
    yield "PART_OF", "Generation", "Profile", part_rows


def passage_nodes(run_id: str, corpus: Corpus) -> NodeTable:
    return "Passage", [property_values("Passage", p, uid=p.uid(run_id)) for p in corpus.passages]


def passage_edges(run_id: str, run: str, corpus: Corpus) -> Iterator[EdgeTable]:
    passage_rows = [(run_id, p.uid(run_id), {"position": n}) for n, p in enumerate(corpus.passages)]
    yield "HOLDS", "Run", "Passage", passage_rows
    relation_rows = [
        (
            passage_uid(run_id, r.source),
            passage_uid(run_id, r.target),
            property_values("RELATED", r, run=run, position=n),
        )
        for n, r in enumerate(corpus.relations)
    ]
    yield "RELATED", "Passage", "Passage", relation_rows
