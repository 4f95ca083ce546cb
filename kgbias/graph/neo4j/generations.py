"""Generations, and the triples that they yielded and were shown, as nodes and edges."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice

from kgbias.errors import StoreError
from kgbias.graph.decisions import Decision, applied, in_effect
from kgbias.graph.neo4j.decisions import DecisionNodes, decision_statements, tied
from kgbias.graph.neo4j.loading import (
    FIELDS,
    Behind,
    Created,
    TripleRows,
    created_generations,
    created_triples,
    lacking,
    triple_rows,
)
from kgbias.graph.neo4j.session import BATCH, Incomplete, Row
from kgbias.graph.said import Drawn, Shown, in_order
from kgbias.graph.types import (
    Generation,
    Score,
    Triple,
    TripleView,
    storable,
)

# One statement a kind of node, then the edges: MERGE on a node with a uniqueness constraint locks
# only that node, and edges are merged between nodes that are bound.
_NODES = """
UNWIND $rows AS row
MERGE (n:{label} {{uid: row.uid}}) ON CREATE SET n.{key} = row.text, n.name = row.text"""

_TRIPLES = """
UNWIND $rows AS row
MATCH (g:SocialGroup {uid: row.group_uid}), (p:Predicate {uid: row.predicate_uid}),
      (o:Object {uid: row.object_uid})
MERGE (t:Triple {uid: row.uid})
ON CREATE SET t.group_uid = row.group_uid, t.text = g.name + ' ' + p.text + ' ' + o.text,
    t.name = g.name + ' ' + p.text + ' ' + o.text
MERGE (t)-[:SUBJECT]->(g)
MERGE (t)-[:PREDICATE]->(p)
MERGE (t)-[:OBJECT]->(o)"""

_STATES = """
UNWIND $rows AS row
MATCH (s:Statement {uid: row.statement_uid})
MATCH (t:Triple {uid: row.uid})
MERGE (t)-[:STATES]->(s)"""

_GENERATIONS = """
MATCH (run:Run {uid: $run})
UNWIND $rows AS row
MERGE (n:Generation {uid: row.uid}) SET n = row.properties
MERGE (n)-[:IN]->(run)"""

_YIELDED = """
UNWIND $rows AS row
MATCH (n:Generation {uid: row.uid}), (t:Triple {uid: row.triple})
MERGE (n)-[y:YIELDED]->(t)
SET y.count = row.count, y.predicate = row.predicate, y.object = row.object"""

# A round that is recorded again may read an answer in another way than before.
_RENEW = """
UNWIND $uids AS uid
MATCH (:Generation {uid: uid})-[e:YIELDED|SHOWN]->()
DELETE e"""

# What a decision changes: a generation yields another triple than before, or none.
_UNSAY = """
UNWIND $uids AS uid
MATCH (:Generation {uid: uid})-[y:YIELDED]->()
DELETE y"""

_SAY = """
UNWIND $rows AS row
MATCH (n:Generation {uid: row.uid}), (t:Triple {uid: row.triple})
MERGE (n)-[y:YIELDED]->(t)
SET y.count = n.count, y.predicate = row.predicate, y.object = row.object"""

_SHOWN = """
UNWIND $rows AS row
MATCH (n:Generation {uid: row.uid}), (t:Triple {uid: row.triple})
MERGE (n)-[:SHOWN {position: row.position}]->(t)"""

_FORGET = """
MATCH (n:Generation)-[:IN]->(:Run {uid: $run})
WHERE n.arm = $arm AND n.iteration = $iteration AND NOT n.uid IN $keep
DETACH DELETE n"""

_READ = """
MATCH (n:Generation)-[:IN]->(:Run {uid: $run})
OPTIONAL MATCH (g:SocialGroup {uid: n.group_uid})
OPTIONAL MATCH (n)-[y:YIELDED]->(:Triple)
OPTIONAL MATCH (n)-[s:SHOWN]->(t:Triple)
WITH n, g, y, s, t ORDER BY s.position
RETURN properties(n) AS n, g.name AS group, y.predicate AS predicate, y.object AS object,
       y.count AS count, collect(t.uid) AS shown
ORDER BY n.iteration, n.arm, n.path"""

_SHOWN_TEXTS = """
MATCH (n:Generation)-[:IN]->(:Run {uid: $run})
MATCH (n)-[y:YIELDED]->(t:Triple)
MATCH (n)-[s:SHOWN]->(e:Triple)
MATCH (e)-[:PREDICATE]->(p:Predicate), (e)-[:OBJECT]->(o:Object)
WITH n, y, t, p, o ORDER BY s.position
RETURN n.uid AS uid, t.uid AS triple, n.arm AS arm, n.attempt AS attempt, y.count AS count,
       y.predicate AS predicate, y.object AS object, collect([p.text, o.text]) AS examples
ORDER BY uid"""

_DRAWN = """
MATCH (n:Generation)-[:IN]->(:Run {uid: $run})
OPTIONAL MATCH (n)-[y:YIELDED]->(t:Triple)-[:PREDICATE]->(p:Predicate)
RETURN n.uid AS uid, n.path AS path, n.group_uid AS group, n.arm AS arm, n.strategy AS strategy,
       n.iteration AS iteration, n.template AS template, n.prompt AS prompt, t.uid AS triple,
       p.uid AS predicate, n.count AS count
ORDER BY iteration, arm, path"""

# Scores are found from their triple, of which there are few: a metric may have millions.
_TRIPLE_VIEWS = """
MATCH (n:Generation)-[:IN]->(:Run {uid: $run})
MATCH (n)-[y:YIELDED]->(t:Triple)
WITH t, CASE WHEN $by_arm THEN n.arm ELSE '' END AS arm, sum(y.count) AS count
MATCH (t)-[:SUBJECT]->(g:SocialGroup), (t)-[:PREDICATE]->(p:Predicate), (t)-[:OBJECT]->(o:Object)
RETURN t.uid AS uid, g.uid AS group_uid, g.name AS group, p.text AS predicate, o.text AS object,
       count, arm, [(t)-[s:SCORED]->(m:Metric) WHERE m.uid IN $metrics |
           {measure: m.measure, value: s.value, label: s.label, names: s.names, parts: s.parts}
       ] AS scores
ORDER BY uid, arm"""

_SAID = """
MATCH (n:Generation)-[:IN]->(:Run {uid: $run})
MATCH (n)-[:YIELDED]->(t:Triple)
WITH DISTINCT t
MATCH (t)-[:SUBJECT]->(g:SocialGroup), (t)-[:PREDICATE]->(p:Predicate), (t)-[:OBJECT]->(o:Object)
RETURN [t.uid, g.name, p.text, o.text] AS said ORDER BY t.uid"""


class GenerationNodes(DecisionNodes):
    def record(self, run_id: str, arm: str, iteration: int, batch: Sequence[Generation]) -> None:
        forget = {
            "run": run_id, "arm": arm, "iteration": iteration, "keep": [g.id for g in batch]
        }  # fmt: skip
        renew = {"uids": forget["keep"]}
        self.write((_FORGET, forget), (_RENEW, renew), *self._statements(run_id, batch))

    def load(self, run_id: str, generations: Iterable[Generation]) -> int:
        total = 0
        stream = iter(generations)
        behind = Behind()  # the server writes while we make the next batch
        while batch := list(islice(stream, BATCH)):
            triples = triple_rows([g.triple for g in batch if g.triple is not None])
            behind.do(partial(self._add, run_id, batch, triples))
            total += len(batch)
        behind.wait()
        return total

    def _add(self, run_id: str, batch: Sequence[Generation], triples: TripleRows) -> None:
        """Write generations: they are created, with what the server lacks of their triples, or
        merged, all of a batch, where it has one of them."""
        if now := in_effect(self.decisions(run_id)):  # which may name other triples
            self.write(*_statements(run_id, applied(batch, now)), tied(run_id))
            return
        more, created = self._lacked(triples), created_generations(run_id, batch)
        statements = [*more.statements, *created.statements]
        if shown := _shown_rows(batch):
            statements.append((_SHOWN, {"rows": shown}))
        self._create(
            Created(statements, more.nodes + created.nodes),
            instead=lambda: _statements(run_id, batch),
        )

    def _create(self, new: Created, instead: Callable[[], Sequence[tuple[str, Row]]]) -> None:
        """Run statements that create; where the server has what they create, or lacks what they
        build on, because another writer was faster or a commit was not acknowledged, those that
        merge."""
        try:
            self.write(*new.statements, creates=new.nodes)
        except StoreError as error:
            conflict = isinstance(error.__cause__, self._neo4j.exceptions.ConstraintError)
            if not conflict and not isinstance(error, Incomplete):
                raise
            self.write(*instead())

    def _lacked(self, triples: TripleRows) -> Created:
        """The writes of triples that the server lacks. Most often it has all or none."""
        new = lacking(triples, self._known({"Triple": [row[0] for row in triples[1]]}))
        if not new[1]:
            return Created([], 0)
        return created_triples(
            new, self._known({**new[0], "Statement": {row[4] for row in new[1]}})
        )

    def _known(self, uids: Mapping[str, Collection[str]]) -> set[str]:
        """Which of these nodes are there, by label. Ids have no spaces: they go as one text, which
        costs less than a list, and come back in one row."""
        union = " UNION ALL ".join(
            f"MATCH (n:{label}) WHERE n.uid IN split(${label}, ' ') RETURN collect(n.uid) AS uids"
            for label in uids
        )
        rows = self.read(union, **{label: " ".join(own) for label, own in uids.items()})
        return {uid for row in rows for uid in row["uids"]}

    def _statements(self, run_id: str, batch: Sequence[Generation]) -> list[tuple[str, Row]]:
        """The writes of a batch, with what people decided about it."""
        if not (now := in_effect(self.decisions(run_id))):
            return _statements(run_id, batch)
        return [*_statements(run_id, applied(batch, now)), tied(run_id)]

    def decide(self, run_id: str, decisions: Sequence[Decision]) -> None:
        now = in_effect([*self.decisions(run_id), *decisions])
        found = {d.generation_id: now[d.generation_id].triple for d in decisions}
        rows = [
            {
                "uid": id,
                "triple": t.id,
                "predicate": storable(t.predicate),
                "object": storable(t.object),
            }
            for id, t in sorted(found.items())
            if t is not None
        ]
        self.write(
            *decision_statements(run_id, decisions),
            *_triple_statements([t for t in found.values() if t is not None]),
            (_UNSAY, {"uids": sorted(found)}),
            (_SAY, {"rows": rows}),
        )

    def keep_triples(self, triples: Iterable[Triple]) -> None:
        stream = iter(triples)
        behind = Behind()
        while batch := list(islice(stream, BATCH)):
            behind.do(partial(self._add_triples, batch, triple_rows(batch)))
        behind.wait()

    def _add_triples(self, triples: Sequence[Triple], found: TripleRows) -> None:
        if (new := self._lacked(found)).statements:
            self._create(new, instead=lambda: _triple_statements(triples))

    def known_generations(self, ids: Sequence[str]) -> set[str]:
        return self._known({"Generation": ids})

    def generations(self, run_id: str) -> Iterator[Generation]:
        return (generation(run_id, row) for row in self.stream(_READ, run=run_id))

    def said(self, run_id: str) -> list[tuple[str, str, str, str]]:
        return [tuple(row["said"]) for row in self.stream(_SAID, run=run_id)]

    def shown(self, run_id: str) -> Iterator[Shown]:
        for row in self.stream(_SHOWN_TEXTS, run=run_id):
            yield Shown(
                row["uid"],
                row["triple"],
                row["arm"],
                row["attempt"],
                row["count"],
                row["predicate"],
                row["object"],
                tuple((predicate, object) for predicate, object in row["examples"]),
            )

    def drawn(self, run_id: str) -> Iterator[Drawn]:
        for row in self.stream(_DRAWN, run=run_id):
            yield Drawn(
                row["uid"],
                row["path"],
                row["group"],
                row["arm"],
                row["strategy"],
                row["iteration"],
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
                _scores(row),
                row["arm"],
            )
            for row in self.stream(_TRIPLE_VIEWS, run=run_id, by_arm=by_arm, metrics=metrics)
        ]
        views.sort(key=in_order(order))
        return views


def generation(run_id: str, row: Row) -> Generation:
    """The generation that a row of its properties, triple and examples is."""
    n = row["n"]
    triple = None
    if row["predicate"] is not None:
        triple = Triple(row["group"], row["predicate"], row["object"])
    return Generation(
        run_id=run_id,
        group_id=n["group_uid"],
        prompt=n["prompt"],
        triple=triple,
        shown=tuple(row["shown"]),
        count=n["count"],
        **{field: n[field] for field in FIELDS},
    )


def _scores(row: Row) -> dict[str, Score]:
    return {
        s["measure"]: Score(
            row["uid"], s["value"], s["label"], dict(zip(s["names"], s["parts"], strict=True))
        )
        for s in sorted(row["scores"], key=lambda s: s["measure"])
    }


def _statements(run_id: str, batch: Sequence[Generation]) -> list[tuple[str, Row]]:
    """The writes of a batch, nodes before the edges that need them."""
    generations, yielded = [], []
    for g in batch:
        uid = g.id
        properties = {field: storable(str(getattr(g, field))) for field in FIELDS}
        properties |= {"uid": uid, "group_uid": g.group_id, "prompt": storable(g.prompt)}
        numbers = {"iteration": g.iteration, "attempt": g.attempt, "count": g.count}
        generations.append({"uid": uid, "properties": properties | numbers})
        if (t := g.triple) is not None:
            yielded.append(
                {
                    "uid": uid,
                    "triple": t.id,
                    "count": g.count,
                    "predicate": storable(t.predicate),
                    "object": storable(t.object),
                }
            )
    return [
        *_triple_statements([g.triple for g in batch if g.triple is not None]),
        (_GENERATIONS, {"run": run_id, "rows": generations}),
        (_YIELDED, {"rows": yielded}),
        (_SHOWN, {"rows": _shown_rows(batch)}),
    ]


def _shown_rows(batch: Sequence[Generation]) -> list[Row]:
    return [
        {"uid": g.id, "triple": id, "position": n} for g in batch for n, id in enumerate(g.shown)
    ]


def _triple_statements(triples: Sequence[Triple]) -> list[tuple[str, Row]]:
    texts, rows = triple_rows(triples)
    statements: list[tuple[str, Row]] = [
        (
            _NODES.format(label=label, key="name" if label == "SocialGroup" else "text"),
            {"rows": [{"uid": uid, "text": text} for uid, text in nodes.items()]},
        )
        for label, nodes in texts.items()
    ]
    merged = {
        "rows": [
            {"uid": uid, "group_uid": group, "predicate_uid": predicate, "object_uid": object,
             "statement_uid": statement}
            for uid, group, predicate, object, statement in rows
        ]
    }  # fmt: skip
    return [*statements, (_TRIPLES, merged), (_STATES, merged)]
