"""The two passes of an export for Neo4j: over its statements, then over its generations. Each goes
through them once, and notes which nodes the export has, as short ids."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Generic, NamedTuple, TypeVar

from kgbias.export.content import ExportContent
from kgbias.graph.decisions import Decision, decision_properties, latest_decisions
from kgbias.graph.edge_records import edges_by_asking
from kgbias.graph.graph_tables import (
    AskedEdges,
    EdgeRow,
    PropertyValues,
    decides_edges,
    generation_node,
    property_values,
    reviewed_edges,
    score_values,
    shown_edges,
    stereotype_edge,
    text_node,
    triple_node,
    yielded_edge,
)
from kgbias.graph.shape import TONES
from kgbias.graph.store import StoredRun
from kgbias.graph.types import (
    BeliefRun,
    Generation,
    GroupName,
    NameProbe,
    StatementEdge,
    TripleView,
    node_id,
)
from kgbias.io.progress import Progress


class ReviewedGeneration(NamedTuple):
    """A generation, and the decisions about it, oldest first."""

    generation: Generation
    decisions: Sequence[Decision]


class _TripleStatement(NamedTuple):
    """A triple, and the nodes of its statement."""

    triple_id: str
    predicate_id: str
    object_id: str


def iter_reviewed_generations(
    run: StoredRun, kept_triple_ids: Collection[str]
) -> Iterator[ReviewedGeneration]:
    """The reviewed generations: those that yielded one of the triples to keep, or none."""
    decisions_by_generation: dict[str, list[Decision]] = {}
    for decision in run.decisions():
        decisions_by_generation.setdefault(decision.generation_id, []).append(decision)
    for g in run.generations() if decisions_by_generation else ():
        is_kept = g.triple is None or g.triple.id in kept_triple_ids
        if g.id in decisions_by_generation and is_kept:
            yield ReviewedGeneration(g, decisions_by_generation[g.id])


def count_verdicts_in_effect(decisions: Sequence[Decision]) -> dict[str, int]:
    """How many answers each verdict is in effect for: the latest about the answer."""
    return dict(sorted(Counter(d.verdict for d in latest_decisions(decisions).values()).items()))


Item = TypeVar("Item")
_ITEMS_PER_REPORT = 1_000  # items


@dataclass(frozen=True, slots=True)
class TablesPass(Generic[Item]):
    """Tables whose rows come from the same items, read once for all of them: for each table (a
    label, or an edge type with its ends), the rows of an item."""

    items: Iterable[Item]
    nodes: Mapping[str, Callable[[Item], Sequence[PropertyValues]]]
    edges: Mapping[tuple[str, str, str], Callable[[Item], Sequence[EdgeRow]]]


class TripleItem(NamedTuple):
    """A triple of an arm, and whether it and its nodes appear for the first time."""

    triple: TripleView
    predicate_id: str
    object_id: str
    is_new: bool
    is_new_predicate: bool
    is_new_object: bool


class GenerationItem(NamedTuple):
    """A generation, the row of its node, the triple that it yielded, and decisions about it."""

    generation: Generation
    row: PropertyValues
    triple_id: str | None
    decisions: list[Decision]


class Neo4jPasses:
    """What was said in the run of an export. Go through `iter_passes` first."""

    def __init__(self, content: ExportContent) -> None:
        run = self.run = content.run
        self.metrics = run.metrics()
        self.topic_models = run.topics()
        self.tests = run.associations()
        self.edges_with_askings = [
            AskedEdges(edge, asking, run.find_all(edge.record, asking=asking))
            for asking_kind, edges in edges_by_asking().items()
            for asking in run.find_all(asking_kind.record)
            for edge in edges
        ]
        self.names: list[GroupName] = []
        for belief_run in run.find_all(BeliefRun):
            self.names += run.names(belief_run.id)
        self.near_duplicates = run.near_duplicates()
        self.centralities = run.centralities()
        self.profiles = run.profiles()
        self.flags = run.store.flags()
        self.placements = {
            p.node_id: property_values("PLACED", p) | {"placed_by": run.name}
            for p in self.centralities
        }
        # Only the predicates and objects about which something was found.
        self.texts: dict[str, dict[str, str]] = {
            "group": {g.id: g.node_name for g in run.groups},
            "predicate": {},
            "object": {},
            "topic": {t.id: t.name for m in self.topic_models for t in m.topics},
        }
        self._stated_ends = {(e.predicate_id, e.object_id) for e in self.iter_statement_edges()}
        self._noted_ids = {
            *self.placements,
            *(id for ids in self._stated_ends for id in ids),
            *(e.node_id for t in self.tests for e in t.edges),
        }
        # Those whose statements have nodes of their own.
        self.restated_triples: list[_TripleStatement] = []
        self.answer_keys: set[str] = set()  # the answers that were read
        self.profile_generations: set[str] = set()  # the generations in profiles
        self._triples = content.triples
        self._progress = content.progress
        self._kept_ids: dict[str, set[bytes]] = {arm: set() for arm in content.statements.arms}

    def iter_passes(self) -> Iterator[TablesPass[TripleItem] | TablesPass[GenerationItem]]:
        """The two passes, to go through in turn before anything else is asked for."""
        summary = self.run.store.summary(self.run.id)
        yield self._statement_pass(summary.triples)
        groups = self.texts["group"]
        self.names = [n for n in self.names if n.nonce or n.group_id in groups]
        names = {n.id for n in self.names}
        self.edges_with_askings = [
            a._replace(records=[e for e in a.records if self._has_ends(e, names)])
            for a in self.edges_with_askings
        ]
        self.near_duplicates = [
            x for x in self.near_duplicates if all(map(self._has_parts, x.ends))
        ]
        self.centralities = [p for p in self.centralities if p.node_id in self.texts[p.kind]]
        self.profiles = [p for p in self.profiles if p.group_id in groups]
        self.flags = [
            replace(t, flags=tuple(f for f in t.flags if node_id("group", f.group) in groups))
            for t in self.flags
        ]
        yield self._generation_pass(summary.generations)

    def has_triple(self, triple_id: str) -> bool:
        """Whether the export has this triple."""
        id = _id_bytes(triple_id)
        return any(id in kept_ids for kept_ids in self._kept_ids.values())

    def iter_probe_edges(self) -> Iterator[StatementEdge | NameProbe]:
        """The edges between statements and groups or their names."""
        for asked in self.edges_with_askings:
            yield from asked.records

    def iter_statement_edges(self) -> Iterator[StatementEdge | NameProbe]:
        """What refers to the statements that have nodes of their own."""
        yield from self.iter_probe_edges()
        for link in self.near_duplicates:
            yield from link.ends

    def _has_parts(self, edge: StatementEdge | NameProbe) -> bool:
        predicates, objects = self.texts["predicate"], self.texts["object"]
        return edge.predicate_id in predicates and edge.object_id in objects

    def _has_ends(self, edge: StatementEdge | NameProbe, names: Collection[str]) -> bool:
        if not self._has_parts(edge):
            return False
        if isinstance(edge, NameProbe):
            return edge.name_id in names
        return edge.group_id in self.texts["group"]

    def _statement_pass(self, expected_count: int) -> TablesPass[TripleItem]:
        return TablesPass(
            _with_progress(self._iter_statements(), "statements", expected_count, self._progress),
            {
                "Predicate": lambda s: _text_node(
                    "Predicate", s.predicate_id, s.triple.predicate, s.is_new_predicate
                ),
                "Object": lambda s: _text_node(
                    "Object", s.object_id, s.triple.object, s.is_new_object, self.placements
                ),
                "Triple": lambda s: (triple_node(s.triple),) if s.is_new else (),
            },
            {
                ("SUBJECT", "Triple", "SocialGroup"): lambda s: _edge_to(s, s.triple.group_id),
                ("PREDICATE", "Triple", "Predicate"): lambda s: _edge_to(s, s.predicate_id),
                ("OBJECT", "Triple", "Object"): lambda s: _edge_to(s, s.object_id),
                ("SCORED", "Triple", "Metric"): self._score_edges,
                ("STEREOTYPE", "SocialGroup", "Object"): self._stereotype_edges,
                **{
                    (tone.upper(), "SocialGroup", "Object"): partial(self._tone_edges, tone)
                    for tone in TONES
                },
            },
        )

    def _iter_statements(self) -> Iterator[TripleItem]:
        nodes: set[bytes] = set()

        def note_node(kind: str, id: str, text: str) -> bool:
            if id in self._noted_ids:
                self.texts[kind][id] = text
            size = len(nodes)
            nodes.add(_id_bytes(id))
            return len(nodes) > size

        for triple in self._triples:
            predicate_id, object_id = (
                node_id("predicate", triple.predicate),
                node_id("object", triple.object),
            )
            if self.has_triple(triple.id):
                yield TripleItem(
                    triple,
                    predicate_id,
                    object_id,
                    is_new=False,
                    is_new_predicate=False,
                    is_new_object=False,
                )
            else:
                self.texts["group"].setdefault(triple.group_id, triple.group)
                if (predicate_id, object_id) in self._stated_ends:
                    self.restated_triples.append(
                        _TripleStatement(triple.id, predicate_id, object_id)
                    )
                new_predicate = note_node("predicate", predicate_id, triple.predicate)
                new_object = note_node("object", object_id, triple.object)
                yield TripleItem(
                    triple,
                    predicate_id,
                    object_id,
                    is_new=True,
                    is_new_predicate=new_predicate,
                    is_new_object=new_object,
                )
            self._kept_ids[triple.arm].add(_id_bytes(triple.id))

    def _score_edges(self, item: TripleItem) -> list[EdgeRow]:
        return [
            (
                item.triple.id,
                self.metrics[measure].id,
                score_values(score),
            )
            for measure, score in item.triple.scores.items()
            if item.is_new
        ]

    def _stereotype_edges(self, item: TripleItem) -> Sequence[EdgeRow]:
        return (stereotype_edge(self.run.record, item.triple, item.object_id),)

    def _tone_edges(self, tone: str, item: TripleItem) -> Sequence[EdgeRow]:
        score = item.triple.scores.get("regard")
        return self._stereotype_edges(item) if score is not None and score.label == tone else ()

    def _generation_pass(self, expected_count: int) -> TablesPass[GenerationItem]:
        run_id = self.run.id
        return TablesPass(
            _with_progress(self._iter_generations(), "generations", expected_count, self._progress),
            {
                "Generation": lambda g: (g.row,),
                "Decision": lambda g: [decision_properties(d) for d in g.decisions],
            },
            {
                ("REVIEWED", "Run", "Decision"): lambda g: reviewed_edges(run_id, g.decisions),
                ("DECIDES", "Decision", "Generation"): lambda g: decides_edges(g.decisions),
                ("IN", "Generation", "Run"): lambda g: ((g.row["uid"], run_id, {}),),
                ("YIELDED", "Generation", "Triple"): _yielded_edge,
                ("SHOWN", "Generation", "Triple"): self._example_edges,
            },
        )

    def _iter_generations(self) -> Iterator[GenerationItem]:
        decisions: dict[str, list[Decision]] = {}
        for decision in self.run.decisions():
            decisions.setdefault(decision.generation_id, []).append(decision)
        profile_parts = {
            profile_part.generation_id for p in self.profiles for profile_part in p.parts
        }
        for generation in self.run.generations():
            if (kept_ids := self._kept_ids.get(generation.arm)) is None:
                continue
            id = None if generation.triple is None else generation.triple.id
            if id is not None and _id_bytes(id) not in kept_ids:
                continue
            row = generation_node(generation)
            uid = str(row["uid"])
            if generation.answer_key:
                self.answer_keys.add(generation.answer_key)
            if uid in profile_parts:
                self.profile_generations.add(uid)
            yield GenerationItem(generation, row, id, decisions.get(uid, []))

    def _example_edges(self, item: GenerationItem) -> list[EdgeRow]:
        edges = shown_edges(item.generation, item.row["uid"])
        return [
            (generation_id, triple_id, values)
            for generation_id, triple_id, values in edges
            if self.has_triple(triple_id)
        ]


def _with_progress(
    items: Iterable[Item], name: str, expected_count: int, progress: Progress
) -> Iterator[Item]:
    """The items, with progress. About `expected_count` are expected: there are fewer if some do not
    count, and more if arms said the same."""
    progress.stage(name, expected_count)
    item_count = 0
    for item_count, item in enumerate(items, start=1):
        yield item
        if item_count % _ITEMS_PER_REPORT == 0:
            progress.advance(_ITEMS_PER_REPORT)
    progress.advance(item_count % _ITEMS_PER_REPORT)
    progress.grow(item_count - expected_count)


def _text_node(
    label: str,
    id: str,
    text: str,
    new: bool,
    placements: Mapping[str, PropertyValues] | None = None,
) -> Sequence[PropertyValues]:
    """The node of a predicate or object."""
    if not new:
        return ()
    return ({**text_node(label, id, text), **(placements or {}).get(id, {})},)


def _edge_to(item: TripleItem, id: str) -> Sequence[EdgeRow]:
    """The edge from a triple to one of its nodes."""
    return ((item.triple.id, id, {}),) if item.is_new else ()


def _yielded_edge(item: GenerationItem) -> Sequence[EdgeRow]:
    if item.triple_id is None:
        return ()
    return (yielded_edge(item.generation, item.row["uid"], item.triple_id),)


def _id_bytes(id: str) -> bytes:
    """An id in the form that takes the least memory in Python."""
    try:
        return bytes.fromhex(id)
    except ValueError:  # from a damaged store
        return id.encode()
