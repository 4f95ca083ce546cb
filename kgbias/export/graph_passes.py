"""The two passes of an export for Neo4j: over its statements, then over its generations. Each goes
through them once, and notes which nodes the export has, as short ids."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Generic, NamedTuple, TypeVar

from kgbias.export.content import Content
from kgbias.graph import shape
from kgbias.graph.graph_tables import ProbeEdges, EdgeRow, PropertyValues, property_values
from kgbias.graph.decisions import Decision, decision_row, latest_decisions
from kgbias.graph.shape import DERIVED_MEASURES, TONES
from kgbias.graph.store import StoredRun
from kgbias.graph.types import Generation, GroupName, NameProbe, StatementEdge, TripleView, node_id
from kgbias.io.progress import Progress

_FIELDS = [
    p.name for p in shape.get_node("Generation").properties if p.name not in ("uid", "group_uid")
]


def decided(
    run: StoredRun, kept: Collection[str]
) -> Iterator[tuple[Generation, Sequence[Decision]]]:
    """The reviewed generations, each with its decisions, oldest first: those that count as one of
    the triples to keep (by id), or do not count."""
    about: dict[str, list[Decision]] = {}
    for decision in run.decisions():
        about.setdefault(decision.generation_id, []).append(decision)
    for g in run.generations() if about else ():
        if g.id in about and (g.triple is None or g.triple.id in kept):
            yield g, about[g.id]


def counted(decisions: Sequence[Decision]) -> dict[str, int]:
    """The number of answers that each verdict is in effect for."""
    return dict(sorted(Counter(d.verdict for d in latest_decisions(decisions).values()).items()))


def generation_row(g: Generation) -> dict[str, object]:
    """A generation as the properties of its node."""
    own: dict[str, object] = {"uid": g.id, "group_uid": g.group_id}
    return own | {name: getattr(g, name) for name in _FIELDS}


Item = TypeVar("Item")
_REPORT = 1_000  # items


@dataclass(frozen=True, slots=True)
class Pass(Generic[Item]):
    """Tables whose rows come from the same items, read once for all of them: for each table (a
    label, or an edge type with its ends), the rows of an item."""

    items: Iterable[Item]
    nodes: Mapping[str, Callable[[Item], Sequence[PropertyValues]]]
    edges: Mapping[tuple[str, str, str], Callable[[Item], Sequence[EdgeRow]]]


class Said(NamedTuple):
    """A statement of an arm, and whether it and its nodes appear for the first time."""

    triple: TripleView
    predicate_id: str
    object_id: str
    new: bool
    new_predicate: bool
    new_object: bool


class Told(NamedTuple):
    """A generation, the row of its node, the triple that it yielded, and decisions about it."""

    generation: Generation
    row: PropertyValues
    triple_id: str | None
    decisions: list[Decision]


class Passes:
    """What was said in the run of an export. Go through `passes` first."""

    def __init__(self, content: Content) -> None:
        run = self.run = content.run
        self.metrics = run.metrics()
        self.topic_models = run.topics()
        self.tests = run.associations()
        self.asked = [ProbeEdges("PROBED", p, run.probes(p.id)) for p in run.probe_runs()]
        self.asked += [ProbeEdges("CHOSEN", c, run.choices(c.id)) for c in run.choice_runs()]
        self.names: list[GroupName] = []
        for b in run.belief_runs():
            self.asked.append(ProbeEdges("PROBED_BEFORE", b, run.name_probes(b.id)))
            self.asked.append(ProbeEdges("BELIEVED", b, run.beliefs(b.id)))
            self.names += run.names(b.id)
        self.near = run.near_duplicates()
        self.places = run.places()
        self.profiles = run.profiles()
        self.flags = run.store.flags()
        self.placed = {
            p.node_id: property_values("PLACED", p) | {"placed_by": run.name} for p in self.places
        }
        # Only the predicates and objects about which something was found.
        self.texts: dict[str, dict[str, str]] = {
            "group": {g.id: g.name for g in run.groups},
            "predicate": {},
            "object": {},
            "topic": {t.id: t.name for m in self.topic_models for t in m.topics},
        }
        self._about = {(e.predicate_id, e.object_id) for e in self.stated()}
        self._found = {
            *self.placed,
            *(id for ids in self._about for id in ids),
            *(e.node_id for t in self.tests for e in t.edges),
        }
        self.said_again: list[
            tuple[str, str, str]
        ] = []  # triples whose statements have nodes of their own
        self.answered: set[str] = set()  # the answers that were read
        self.in_profiles: set[str] = set()  # the generations in profiles
        self._triples = content.triples
        self._progress = content.progress
        self._kept: dict[str, set[bytes]] = {arm: set() for arm in content.counted.arms}

    def passes(self) -> Iterator[Pass[Said] | Pass[Told]]:
        """The two passes, to go through in turn before anything else is asked for."""
        summary = self.run.store.summary(self.run.id)
        yield self._of_statements(summary.triples)
        groups = self.texts["group"]
        self.names = [n for n in self.names if n.nonce or n.group_id in groups]
        names = {n.id for n in self.names}
        self.asked = [
            a._replace(edges=[e for e in a.edges if self._has(e, names)]) for a in self.asked
        ]
        self.near = [x for x in self.near if all(map(self._has_parts, x.ends))]
        self.places = [p for p in self.places if p.node_id in self.texts[p.kind]]
        self.profiles = [p for p in self.profiles if p.group_id in groups]
        self.flags = [
            replace(t, flags=tuple(f for f in t.flags if node_id("group", f.group) in groups))
            for t in self.flags
        ]
        yield self._of_generations(summary.generations)

    def keeps(self, triple_id: str) -> bool:
        """Whether the export has this triple."""
        id = _short(triple_id)
        return any(id in kept for kept in self._kept.values())

    def asked_for(self) -> Iterator[StatementEdge | NameProbe]:
        """The edges between statements and groups or their names."""
        for asked in self.asked:
            yield from asked.edges

    def stated(self) -> Iterator[StatementEdge | NameProbe]:
        """What refers to the statements that have nodes of their own."""
        yield from self.asked_for()
        for link in self.near:
            yield from link.ends

    def _has_parts(self, edge: StatementEdge | NameProbe) -> bool:
        predicates, objects = self.texts["predicate"], self.texts["object"]
        return edge.predicate_id in predicates and edge.object_id in objects

    def _has(self, edge: StatementEdge | NameProbe, names: Collection[str]) -> bool:
        if not self._has_parts(edge):
            return False
        if isinstance(edge, NameProbe):
            return edge.name_id in names
        return edge.group_id in self.texts["group"]

    def _of_statements(self, about: int) -> Pass[Said]:
        return Pass(
            _reported(self._statements(), "statements", about, self._progress),
            {
                "Predicate": lambda s: _text(s.predicate_id, s.triple.predicate, s.new_predicate),
                "Object": lambda s: _text(s.object_id, s.triple.object, s.new_object, self.placed),
                "Triple": _triple,
            },
            {
                ("SUBJECT", "Triple", "SocialGroup"): lambda s: _to(s, s.triple.group_id),
                ("PREDICATE", "Triple", "Predicate"): lambda s: _to(s, s.predicate_id),
                ("OBJECT", "Triple", "Object"): lambda s: _to(s, s.object_id),
                ("SCORED", "Triple", "Metric"): self._scored,
                ("STEREOTYPE", "SocialGroup", "Object"): self._stereotype,
                **{
                    (tone.upper(), "SocialGroup", "Object"): partial(self._toned, tone)
                    for tone in TONES
                },
            },
        )

    def _statements(self) -> Iterator[Said]:
        nodes: set[bytes] = set()

        def first(kind: str, id: str, text: str) -> bool:
            if id in self._found:
                self.texts[kind][id] = text
            size = len(nodes)
            nodes.add(_short(id))
            return len(nodes) > size

        for t in self._triples:
            predicate_id, object_id = node_id("predicate", t.predicate), node_id("object", t.object)
            if self.keeps(t.id):
                yield Said(t, predicate_id, object_id, False, False, False)
            else:
                self.texts["group"].setdefault(t.group_id, t.group)
                if (predicate_id, object_id) in self._about:
                    self.said_again.append((t.id, predicate_id, object_id))
                new_predicate = first("predicate", predicate_id, t.predicate)
                new_object = first("object", object_id, t.object)
                yield Said(t, predicate_id, object_id, True, new_predicate, new_object)
            self._kept[t.arm].add(_short(t.id))

    def _scored(self, s: Said) -> list[EdgeRow]:
        return [
            (
                s.triple.id,
                self.metrics[measure].id,
                {
                    "value": score.value,
                    "label": score.label,
                    "names": (names := sorted(score.details)),
                    "parts": [score.details[name] for name in names],
                },
            )
            for measure, score in s.triple.scores.items()
            if s.new
        ]

    def _stereotype(self, s: Said) -> Sequence[EdgeRow]:
        t = s.triple
        values = {
            "run": self.run.name,
            "predicate": t.predicate,
            "count": t.count,
            "triple": t.id,
            "arm": t.arm,
            **{m: t.scores[m].value if m in t.scores else None for m in DERIVED_MEASURES},
        }
        return ((t.group_id, s.object_id, values),)

    def _toned(self, tone: str, s: Said) -> Sequence[EdgeRow]:
        score = s.triple.scores.get("regard")
        return self._stereotype(s) if score is not None and score.label == tone else ()

    def _of_generations(self, about: int) -> Pass[Told]:
        run_id = self.run.id
        return Pass(
            _reported(self._generations(), "generations", about, self._progress),
            {
                "Generation": lambda g: (g.row,),
                "Decision": lambda g: [decision_row(d) for d in g.decisions],
            },
            {
                ("REVIEWED", "Run", "Decision"): lambda g: [
                    (run_id, d.id, {}) for d in g.decisions
                ],
                ("DECIDES", "Decision", "Generation"): (
                    lambda g: [(d.id, g.row["uid"], {}) for d in g.decisions]
                ),
                ("IN", "Generation", "Run"): lambda g: ((g.row["uid"], run_id, {}),),
                ("YIELDED", "Generation", "Triple"): _yielded,
                ("SHOWN", "Generation", "Triple"): self._shown,
            },
        )

    def _generations(self) -> Iterator[Told]:
        decisions: dict[str, list[Decision]] = {}
        for decision in self.run.decisions():
            decisions.setdefault(decision.generation_id, []).append(decision)
        parts = {part.generation_id for p in self.profiles for part in p.parts}
        for g in self.run.generations():
            if (kept := self._kept.get(g.arm)) is None:
                continue
            id = None if g.triple is None else g.triple.id
            if id is not None and _short(id) not in kept:
                continue
            row = generation_row(g)
            uid = str(row["uid"])
            if g.answer_key:
                self.answered.add(g.answer_key)
            if uid in parts:
                self.in_profiles.add(uid)
            yield Told(g, row, id, decisions.get(uid, []))

    def _shown(self, g: Told) -> list[EdgeRow]:
        shown = enumerate(g.generation.shown)
        return [(g.row["uid"], id, {"position": n}) for n, id in shown if self.keeps(id)]


def _reported(items: Iterable[Item], name: str, about: int, progress: Progress) -> Iterator[Item]:
    """The items, with progress. There are `about` this many: fewer if some do not count, more if
    arms said the same."""
    progress.stage(name, about)
    done = 0
    for done, item in enumerate(items, start=1):
        yield item
        if done % _REPORT == 0:
            progress.advance(_REPORT)
    progress.advance(done % _REPORT)
    progress.grow(done - about)


def _text(
    id: str, text: str, new: bool, placed: Mapping[str, PropertyValues] | None = None
) -> Sequence[PropertyValues]:
    """The node of a predicate or object."""
    if not new:
        return ()
    return ({"uid": id, "text": text, "name": text, **(placed or {}).get(id, {})},)


def _triple(s: Said) -> Sequence[PropertyValues]:
    if not s.new:
        return ()
    t = s.triple
    name = f"{t.group} {t.predicate} {t.object}"
    return ({"uid": t.id, "group_uid": t.group_id, "text": name, "name": name},)


def _to(s: Said, id: str) -> Sequence[EdgeRow]:
    """The edge from a triple to one of its nodes."""
    return ((s.triple.id, id, {}),) if s.new else ()


def _yielded(g: Told) -> Sequence[EdgeRow]:
    if (t := g.generation.triple) is None or g.triple_id is None:
        return ()
    values = {"count": g.generation.count, "predicate": t.predicate, "object": t.object}
    return ((g.row["uid"], g.triple_id, values),)


def _short(id: str) -> bytes:
    """An id in the form that takes the least memory in Python."""
    try:
        return bytes.fromhex(id)
    except ValueError:  # from a damaged store
        return id.encode()
