"""Generations with the triples that they yielded and were shown; profiles made from them; and the
passages that a run was read from.

Streams hold one narrow row in memory, however many there are. Writes run in the background while
the next ones are prepared: a server writes a batch on one core and waits for its disk at the end of
each, so two at once keep it busy. What the server may already have is looked for and merged; it is
faster to create what it lacks (`loading.py`).

What is loaded is looked up first, a batch at a time, and what is missing is created; it is merged
only if that collides. Of two batches written at once, neither creates what the other does.
"""

import threading
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, islice
from queue import SimpleQueue

from kgbias.backends.neo4j.loading import (
    Creation,
    TripleRows,
    build_generation_creation,
    build_triple_creation,
    collect_triple_rows,
    select_lacking,
)
from kgbias.backends.neo4j.runs import Neo4jRuns, build_decision_queries, build_decision_tie
from kgbias.backends.neo4j.session import (
    BATCH_ROWS,
    MissingNodes,
    ParametrisedQuery,
    Row,
    build_edge_queries,
    build_node_queries,
    flatten_row,
)
from kgbias.errors import StoreError
from kgbias.graph import graph_tables, shape
from kgbias.graph.decisions import Decision, apply_decisions, latest_decisions
from kgbias.graph.integrity import Corpus, Passage, Relation
from kgbias.graph.profiles import Profile, ProfilePart
from kgbias.graph.record import build_record
from kgbias.graph.row_types import (
    DrawRow,
    ExampleRow,
    ScoreRow,
    StatementRow,
    YieldRow,
    triple_sort_key,
)
from kgbias.graph.types import Generation, Score, Triple, TripleView

# One statement for each kind of node, then the edges: MERGE on a node with a uniqueness constraint
# locks only that node, and edges are merged between bound nodes.
_MERGE_NODES = {
    part.label: f"UNWIND $rows AS row {shape.merge_text('n', part.label, 'row.uid', 'row.text')}"
    for part in shape.TRIPLE_PARTS
}

_MERGE_TRIPLES = f"""
UNWIND $rows AS row
MATCH (g:SocialGroup {{uid: row.group_uid}}), (p:Predicate {{uid: row.predicate_uid}}),
      (o:Object {{uid: row.object_uid}})
MERGE (t:Triple {{uid: row.uid}})
ON CREATE SET t.group_uid = row.group_uid,
    t.text = coalesce(row.said, g.name) + ' ' + p.text + ' ' + o.text,
    t.name = coalesce(row.said, g.name) + ' ' + p.text + ' ' + o.text
{shape.write_triple_edges("MERGE")}"""

_MERGE_STATES = """
UNWIND $rows AS row
MATCH (s:Statement {uid: row.statement_uid})
MATCH (t:Triple {uid: row.uid})
MERGE (t)-[:STATES]->(s)"""


def build_generation_merges(run_id: str, batch: Sequence[Generation]) -> list[ParametrisedQuery]:
    """The writes of a batch, nodes before the edges that need them."""
    return [
        *build_triple_merges([g.triple for g in batch if g.triple is not None]),
        *build_node_queries(("Generation", map(graph_tables.generation_node, batch))),
        *chain.from_iterable(map(build_edge_queries, graph_tables.generation_edges(run_id, batch))),
    ]


def build_triple_merges(triples: Sequence[Triple]) -> list[ParametrisedQuery]:
    """The writes of triples, nodes before the edges that need them."""
    texts_by_label, rows = collect_triple_rows(triples)
    node_queries: list[ParametrisedQuery] = [
        (
            _MERGE_NODES[label],
            {"rows": [{"uid": uid, "text": text} for uid, text in nodes.items()]},
        )
        for label, nodes in texts_by_label.items()
    ]
    parameters = {
        "rows": [
            {
                "uid": row.uid,
                "group_uid": row.group,
                "predicate_uid": row.predicate,
                "object_uid": row.object,
                "statement_uid": row.statement,
                "said": row.group_said,
            }
            for row in rows
        ]
    }
    return [*node_queries, (_MERGE_TRIPLES, parameters), (_MERGE_STATES, parameters)]


MAX_WRITERS = 2  # more gains nothing: a client prepares batches no faster than two are written


class BackgroundWriter:
    """Does work in threads while more is prepared: `max_writers` pieces at a time, begun in order.
    If the program is stopped, work that was begun may or may not be done."""

    def __init__(self, max_writers: int = MAX_WRITERS) -> None:
        self._max_writers = max_writers
        self._outcomes: deque[SimpleQueue[BaseException | None]] = deque()

    def start(self, work: Callable[[], None]) -> None:
        """Begin work as soon as there is room. If earlier work raised an error, raise it once all
        begun work has ended."""
        self._wait_until(self._max_writers - 1)
        outcome: SimpleQueue[BaseException | None] = SimpleQueue()

        def run() -> None:
            try:
                work()
            except BaseException as error:  # KeyboardInterrupt from a server that is silent
                outcome.put(error)
            else:
                outcome.put(None)

        # A daemon: it does not keep a stopped program alive.
        threading.Thread(target=run, daemon=True).start()
        self._outcomes.append(outcome)

    def wait(self) -> None:
        """Wait for all begun work. Raises the first error in it."""
        self._wait_until(0)

    def _wait_until(self, limit: int) -> None:
        while len(self._outcomes) > limit:
            if (error := self._outcomes.popleft().get()) is not None:
                # The others end first: nothing is written any more once the error is known.
                while self._outcomes:
                    self._outcomes.popleft().get()
                raise error


class WriteLocks:
    """What the writers of one load are creating: none may create what another is creating."""

    def __init__(self) -> None:
        self._locked: set[str] = set()
        # What was created since a look-up: no more others can have ended in between.
        self._created: deque[frozenset[str]] = deque(maxlen=MAX_WRITERS)
        self._condition = threading.Condition()

    @contextmanager
    def lock(self, uids: Collection[str]) -> Iterator[bool]:
        """Hold these, which were looked for and not found, while they are created. False, once
        nobody holds them, if somebody has held them since the look-up: then they may exist."""
        with self._condition:
            is_free = all(uid_set.isdisjoint(uids) for uid_set in (self._locked, *self._created))
            if is_free:
                self._locked.update(uids)
            else:
                self._condition.wait_for(lambda: self._locked.isdisjoint(uids))
        try:
            yield is_free
        finally:
            if is_free:
                with self._condition:
                    self._locked.difference_update(uids)
                    self._created.append(frozenset(uids))
                    self._condition.notify_all()


# Recording a round again may read an answer differently than before.
_FORGET_YIELDED_AND_SHOWN = """
UNWIND $uids AS uid
MATCH (:Generation {uid: uid})-[e:YIELDED|SHOWN]->()
DELETE e"""

# What a decision changes: a generation yields a different triple than before, or none.
_FORGET_YIELDED = """
UNWIND $uids AS uid
MATCH (:Generation {uid: uid})-[y:YIELDED]->()
DELETE y"""

_WRITE_YIELDED = """
UNWIND $rows AS row
MATCH (n:Generation {uid: row[0]}), (t:Triple {uid: row[1]})
MERGE (n)-[y:YIELDED]->(t) SET y = row[2], y.count = n.count"""

_FORGET_ROUND = """
MATCH (n:Generation)-[:IN]->(:Run {uid: $run})
WHERE n.arm = $arm AND n.iteration = $iteration AND NOT n.uid IN $keep
DETACH DELETE n"""

_READ_GENERATIONS = """
MATCH (n:Generation)-[:IN]->(:Run {uid: $run})
OPTIONAL MATCH (g:SocialGroup {uid: n.group_uid})
OPTIONAL MATCH (n)-[y:YIELDED]->(:Triple)
OPTIONAL MATCH (n)-[s:SHOWN]->(t:Triple)
WITH n, g, y, s, t ORDER BY s.position
RETURN properties(n) AS n, g.name AS group, y.predicate AS predicate, y.object AS object,
       y.count AS count, collect(t.uid) AS shown
ORDER BY n.iteration, n.arm, n.path"""

_READ_EXAMPLES = """
MATCH (n:Generation)-[:IN]->(:Run {uid: $run})
MATCH (n)-[y:YIELDED]->(t:Triple)
MATCH (n)-[s:SHOWN]->(e:Triple)
MATCH (e)-[:PREDICATE]->(p:Predicate), (e)-[:OBJECT]->(o:Object)
WITH n, y, t, p, o ORDER BY s.position
RETURN n.uid AS uid, t.uid AS triple, n.arm AS arm, n.attempt AS attempt, y.count AS count,
       y.predicate AS predicate, y.object AS object, collect([p.text, o.text]) AS examples
ORDER BY uid"""

_READ_DRAWS = """
MATCH (n:Generation)-[:IN]->(:Run {uid: $run})
OPTIONAL MATCH (n)-[y:YIELDED]->(t:Triple)-[:PREDICATE]->(p:Predicate)
RETURN n.uid AS uid, n.path AS path, n.group_uid AS group, n.arm AS arm, n.strategy AS strategy,
       n.iteration AS iteration, n.attempt AS attempt, n.template AS template,
       n.prompt AS prompt, t.uid AS triple, p.uid AS predicate, n.count AS count
ORDER BY iteration, arm, path"""

# Scores are found from the triples, which are few: a metric may have millions of scores.
_READ_TRIPLE_VIEWS = """
MATCH (n:Generation)-[:IN]->(:Run {uid: $run})
MATCH (n)-[y:YIELDED]->(t:Triple)
WITH t, CASE WHEN $by_arm THEN n.arm ELSE '' END AS arm, sum(y.count) AS count
MATCH (t)-[:SUBJECT]->(g:SocialGroup), (t)-[:PREDICATE]->(p:Predicate), (t)-[:OBJECT]->(o:Object)
RETURN t.uid AS uid, g.uid AS group_uid, g.name AS group, p.text AS predicate, o.text AS object,
       count, arm, [(t)-[s:SCORED]->(m:Metric) WHERE m.uid IN $metrics |
           {measure: m.measure, value: s.value, label: s.label, names: s.names, parts: s.parts}
       ] AS scores
ORDER BY uid, arm"""

_READ_TRIPLES = """
MATCH (n:Generation)-[:IN]->(:Run {uid: $run})
MATCH (n)-[:YIELDED]->(t:Triple)
WITH DISTINCT t
MATCH (t)-[:SUBJECT]->(g:SocialGroup), (t)-[:PREDICATE]->(p:Predicate), (t)-[:OBJECT]->(o:Object)
RETURN [t.uid, g.name, p.text, o.text] AS said ORDER BY t.uid"""


@dataclass
class _LoadState:
    """The state of a load: what is being created, and whether the server had all triples of the
    last batch."""

    locks: WriteLocks = field(default_factory=WriteLocks)
    triples_known: bool = False


def build_generation(run_id: str, row: Row) -> Generation:
    """The generation of a row with its properties, triple and examples."""
    triple = None
    if row["predicate"] is not None:
        triple = Triple(row["group"], row["predicate"], row["object"])
    other_fields = {"run_id": run_id, "triple": triple, "shown": tuple(row["shown"])}
    return build_record(Generation, {**row["n"], **other_fields})


def _read_scores(row: Row) -> dict[str, Score]:
    scores = {}
    for s in sorted(row["scores"], key=lambda s: s["measure"]):
        # neo4j-admin imports an empty list as no property.
        parts = dict(zip(s["names"] or (), s["parts"] or (), strict=True))
        scores[s["measure"]] = Score(row["uid"], s["value"], s["label"], parts)
    return scores


_READ_STATEMENTS = """
MATCH (n:Generation)-[:IN]->(:Run {uid: $run})
MATCH (n)-[:YIELDED]->(t:Triple)
WITH DISTINCT t
MATCH (t)-[:SUBJECT]->(g:SocialGroup), (t)-[:PREDICATE]->(p:Predicate), (t)-[:OBJECT]->(o:Object)
RETURN t.uid AS triple_id, g.uid AS group_id, p.uid AS predicate_id, o.uid AS object_id,
       g.name AS group, p.text AS predicate, o.text AS object
ORDER BY triple_id"""

_READ_YIELDS = """
MATCH (n:Generation)-[:IN]->(:Run {uid: $run})
MATCH (n)-[y:YIELDED]->(t:Triple)
RETURN n.uid AS generation_id, t.uid AS triple_id, n.arm AS arm, n.strategy AS strategy,
       n.iteration AS iteration, y.count AS times
ORDER BY n.iteration, n.arm, n.path"""

_READ_SCORES = """
MATCH (:Run {uid: $run})-[:MEASURED_BY]->(m:Metric)
MATCH (t:Triple)-[s:SCORED]->(m)
RETURN m.measure AS measure, t.uid AS triple_id, s.value AS value, s.label AS label
ORDER BY measure, triple_id"""

_READ_GENERATIONS_OF_TRIPLE = """
MATCH (:Triple {uid: $triple})<-[y:YIELDED]-(n:Generation {arm: $arm})-[:IN]->(:Run {uid: $run})
WITH n, y ORDER BY n.iteration, n.path SKIP $first LIMIT $most
OPTIONAL MATCH (g:SocialGroup {uid: n.group_uid})
OPTIONAL MATCH (n)-[s:SHOWN]->(t:Triple)
WITH n, g, y, s, t ORDER BY s.position
RETURN properties(n) AS n, g.name AS group, y.predicate AS predicate, y.object AS object,
       collect(t.uid) AS shown
ORDER BY n.iteration, n.path"""


_READ_ARMS = """
MATCH (n:Generation)-[:IN]->(:Run {uid: $run})
WHERE EXISTS { (n)-[:YIELDED]->(:Triple) }
RETURN DISTINCT n.arm AS arm ORDER BY arm"""


_FORGET_PROFILES = """
MATCH (:Run {uid: $run})-[:WROTE]->(p:Profile)
DETACH DELETE p"""
_READ_PROFILES = """
MATCH (:Run {uid: $run})-[:WROTE]->(p:Profile)-[:IN]->(g:SocialGroup)
MATCH (p)-[:GIVEN]->(n:GivenName)
RETURN properties(p) AS p, g.uid AS group_id ORDER BY p.path"""
_READ_PARTS = """
MATCH (:Run {uid: $run})-[:WROTE]->(p:Profile)
MATCH (n:Generation)-[e:PART_OF]->(p)
MATCH (n)-[y:YIELDED]->(:Triple)
RETURN p.uid AS uid, e.attribute AS attribute, n.uid AS generation_id, y.object AS value,
    e.begins AS begins, e.ends AS ends
ORDER BY uid, e.position"""


_FORGET_PASSAGES = "MATCH (:Run {uid: $run})-[:HOLDS]->(p:Passage) DETACH DELETE p"
_READ_PASSAGES = """
MATCH (:Run {uid: $run})-[holds:HOLDS]->(p:Passage)
RETURN properties(p) AS p
ORDER BY holds.position"""
_READ_RELATIONS = """
MATCH (run:Run {uid: $run})-[:HOLDS]->(a:Passage)-[e:RELATED {run: run.name}]->(b:Passage)
RETURN a.name AS source, b.name AS target, properties(e) AS e
ORDER BY e.position"""


class Neo4jCrawls(Neo4jRuns):
    """See `kgbias.graph.store.Store`."""

    def record_round(
        self, run_id: str, arm: str, iteration: int, batch: Sequence[Generation]
    ) -> None:
        round_parameters = {
            "run": run_id,
            "arm": arm,
            "iteration": iteration,
            "keep": [g.id for g in batch],
        }
        uid_parameters = {"uids": round_parameters["keep"]}
        self.write(
            (_FORGET_ROUND, round_parameters),
            (_FORGET_YIELDED_AND_SHOWN, uid_parameters),
            *self._build_merges(run_id, batch),
        )

    def load_import(self, run_id: str, generations: Iterable[Generation]) -> int:
        total = 0
        stream = iter(generations)
        writer = BackgroundWriter()  # the server writes while we make the next batch
        load_state = _LoadState()
        while batch := list(islice(stream, BATCH_ROWS)):
            triples = collect_triple_rows([g.triple for g in batch if g.triple is not None])
            writer.start(partial(self._load_batch, run_id, batch, triples, load_state))
            total += len(batch)
        writer.wait()
        return total

    def _load_batch(
        self, run_id: str, batch: Sequence[Generation], triples: TripleRows, load_state: _LoadState
    ) -> None:
        """Write a batch of generations: create them, with those of their triples that the server
        lacks, or merge the whole batch if the server has one of them. If it had the triples of the
        batch before, as in a push, they are not looked up: creation fails as a whole if one is
        missing."""
        effective = latest_decisions(self.decisions(run_id))
        if effective:  # decisions may name other triples
            self.write(
                *build_generation_merges(run_id, apply_decisions(batch, effective)),
                build_decision_tie(run_id),
            )
            return
        creation = build_generation_creation(run_id, batch)
        *_, examples = graph_tables.generation_edges(run_id, batch)
        creation.queries.extend(build_edge_queries(examples))
        if load_state.triples_known and self._try_create(creation):
            return
        with self._lock_lacking(triples, load_state.locks) as triple_creation:
            load_state.triples_known = not triple_creation.queries
            combined = Creation(
                [*triple_creation.queries, *creation.queries],
                triple_creation.node_count + creation.node_count,
            )
            if not self._try_create(combined):
                self.write(*build_generation_merges(run_id, batch))

    def _try_create(self, creation: Creation) -> bool:
        """Run queries that create. False, with nothing done, if the server has what they create
        or lacks what they build on, because another writer was faster or a commit was not
        acknowledged: then merge instead."""
        try:
            self.write(*creation.queries, creates=creation.node_count)
        except StoreError as error:
            conflict = isinstance(error.__cause__, self._neo4j.exceptions.ConstraintError)
            if not conflict and not isinstance(error, MissingNodes):
                raise
            return False
        return True

    @contextmanager
    def _lock_lacking(self, triples: TripleRows, locks: WriteLocks) -> Iterator[Creation]:
        """The writes of the triples that the server lacks, usually all or none. No other writer
        with these claims writes them meanwhile."""
        while True:
            lacking_rows = select_lacking(
                triples, self._find_known({"Triple": [row.uid for row in triples.triples]})
            )
            creation = Creation([], 0)
            if lacking_rows.triples:
                statement_ids = {row.statement for row in lacking_rows.triples}
                ends = {**lacking_rows.texts_by_label, "Statement": statement_ids}
                creation = build_triple_creation(lacking_rows, self._find_known(ends))
            with locks.lock(creation.shared_ids) as is_free:
                if is_free:
                    yield creation
                    return

    def _find_known(self, uids: Mapping[str, Collection[str]]) -> set[str]:
        """Which of these nodes exist, by label. Ids have no spaces: they are sent as one text,
        which costs less than a list, and come back in one row."""
        union = " UNION ALL ".join(
            f"MATCH (n:{label}) WHERE n.uid IN split(${label}, ' ') RETURN collect(n.uid) AS uids"
            for label in uids
        )
        rows = self.read(
            union, **{label: " ".join(label_uids) for label, label_uids in uids.items()}
        )
        return {uid for row in rows for uid in row["uids"]}

    def _build_merges(self, run_id: str, batch: Sequence[Generation]) -> list[ParametrisedQuery]:
        """The writes of a batch, with the decisions about it applied."""
        effective = latest_decisions(self.decisions(run_id))
        if not effective:
            return build_generation_merges(run_id, batch)
        return [
            *build_generation_merges(run_id, apply_decisions(batch, effective)),
            build_decision_tie(run_id),
        ]

    def add_decisions(self, run_id: str, decisions: Sequence[Decision]) -> None:
        if not decisions:  # as for every pushed run without a review
            return
        effective = latest_decisions([*self.decisions(run_id), *decisions])
        triple_by_generation = {
            d.generation_id: effective[d.generation_id].triple for d in decisions
        }
        rows = [
            [id, triple.id, graph_tables.said_words(triple)]
            for id, triple in sorted(triple_by_generation.items())
            if triple is not None
        ]
        self.write(
            *build_decision_queries(run_id, decisions),
            *build_triple_merges(
                [triple for triple in triple_by_generation.values() if triple is not None]
            ),
            (_FORGET_YIELDED, {"uids": sorted(triple_by_generation)}),
            (_WRITE_YIELDED, {"rows": rows}),
        )

    def keep_triples(self, triples: Iterable[Triple]) -> None:
        stream = iter(triples)
        writer, locks = BackgroundWriter(), WriteLocks()
        while batch := list(islice(stream, BATCH_ROWS)):
            writer.start(partial(self._add_triples, batch, collect_triple_rows(batch), locks))
        writer.wait()

    def _add_triples(self, triples: Sequence[Triple], rows: TripleRows, locks: WriteLocks) -> None:
        with self._lock_lacking(rows, locks) as creation:
            if creation.queries and not self._try_create(creation):
                self.write(*build_triple_merges(triples))

    def known_generations(self, ids: Sequence[str]) -> set[str]:
        return self._find_known({"Generation": ids})

    def generations(self, run_id: str) -> Iterator[Generation]:
        return (build_generation(run_id, row) for row in self.stream(_READ_GENERATIONS, run=run_id))

    def distinct_triples(self, run_id: str) -> list[tuple[str, str, str, str]]:
        return [tuple(row["said"]) for row in self.stream(_READ_TRIPLES, run=run_id)]

    def iter_example_rows(self, run_id: str) -> Iterator[ExampleRow]:
        for row in self.stream(_READ_EXAMPLES, run=run_id):
            yield ExampleRow(
                row["uid"],
                row["triple"],
                row["arm"],
                row["attempt"],
                row["count"],
                row["predicate"],
                row["object"],
                tuple((predicate, object) for predicate, object in row["examples"]),
            )

    def iter_draw_rows(self, run_id: str) -> Iterator[DrawRow]:
        for row in self.stream(_READ_DRAWS, run=run_id):
            yield DrawRow(
                row["uid"],
                row["path"],
                row["group"],
                row["arm"],
                row["strategy"],
                row["iteration"],
                row["attempt"],
                row["template"],
                row["prompt"],
                row["triple"],
                row["predicate"],
                row["count"],
            )

    def triples(self, run_id: str, *, by_arm: bool = False) -> list[TripleView]:
        order = {
            row["uid"]: row["position"]
            for row in self.read(
                "MATCH (:Run {uid: $run})-[s:SEEDED]->(g) "
                "RETURN g.uid AS uid, s.position AS position",
                run=run_id,
            )
        }
        metrics = [
            row["uid"]
            for row in self.read(
                "MATCH (:Run {uid: $run})-[:MEASURED_BY]->(m:Metric) RETURN m.uid AS uid",
                run=run_id,
            )
        ]
        views = [
            TripleView(
                row["uid"],
                row["group_uid"],
                row["group"],
                row["predicate"],
                row["object"],
                row["count"],
                _read_scores(row),
                row["arm"],
            )
            for row in self.stream(_READ_TRIPLE_VIEWS, run=run_id, by_arm=by_arm, metrics=metrics)
        ]
        views.sort(key=triple_sort_key(order))
        return views

    def has_statements(self, run_id: str) -> bool:
        query = (
            "MATCH (:Run {uid: $run})<-[:IN]-(:Generation)-[:YIELDED]->(:Triple) "
            "RETURN true AS found LIMIT 1"
        )
        return bool(self.read(query, run=run_id))

    def arms(self, run_id: str) -> list[str]:
        return [row["arm"] for row in self.read(_READ_ARMS, run=run_id)]

    def triples_of_arm(self, run_id: str, arm: str) -> Iterator[TripleView]:
        return (t for t in self.triples(run_id, by_arm=True) if t.arm == arm)

    def iter_statement_rows(self, run_id: str) -> Iterator[StatementRow]:
        return (StatementRow(**row) for row in self.stream(_READ_STATEMENTS, run=run_id))

    def iter_yield_rows(self, run_id: str) -> Iterator[YieldRow]:
        return (YieldRow(**row) for row in self.stream(_READ_YIELDS, run=run_id))

    def iter_score_rows(self, run_id: str) -> Iterator[ScoreRow]:
        return (ScoreRow(**row) for row in self.stream(_READ_SCORES, run=run_id))

    def generations_of_triple(
        self, run_id: str, triple_id: str, arm: str, *, offset: int, limit: int
    ) -> list[Generation]:
        rows = self.read(
            _READ_GENERATIONS_OF_TRIPLE,
            run=run_id,
            triple=triple_id,
            arm=arm,
            first=offset,
            most=limit,
        )
        return [build_generation(run_id, row) for row in rows]

    def save_profiles(self, run_id: str, profiles: Sequence[Profile]) -> None:
        self.write((_FORGET_PROFILES, {"run": run_id}))
        names, nodes = graph_tables.profile_nodes(profiles)
        self.write_each(
            (*build_node_queries(names, keep_existing=True), *build_node_queries(nodes))
        )
        edges = graph_tables.profile_edges(run_id, profiles)
        self.write_each(chain.from_iterable(map(build_edge_queries, edges)))

    def profiles(self, run_id: str) -> list[Profile]:
        parts: dict[str, list[ProfilePart]] = {}
        for row in self.read(_READ_PARTS, run=run_id):
            parts.setdefault(row["uid"], []).append(build_record(ProfilePart, row))
        return [
            build_record(
                Profile,
                flatten_row(row)
                | {"run_id": run_id, "parts": tuple(parts.get(row["p"]["uid"], ()))},
            )
            for row in self.read(_READ_PROFILES, run=run_id)
        ]

    def save_corpus(self, run_id: str, corpus: Corpus) -> None:
        self.write((_FORGET_PASSAGES, {"run": run_id}))
        self.write_each(build_node_queries(graph_tables.passage_nodes(run_id, corpus)))
        edges = graph_tables.passage_edges(run_id, self.run_name(run_id), corpus)
        self.write_each(chain.from_iterable(map(build_edge_queries, edges)))

    def corpus(self, run_id: str) -> Corpus:
        return Corpus(
            tuple(self.records(Passage, _READ_PASSAGES, run=run_id)),
            tuple(self.records(Relation, _READ_RELATIONS, run=run_id)),
        )
