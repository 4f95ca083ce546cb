"""What models find probable: probes of statements, forced choices, probes by name with the beliefs
that follow, and SoFa on sets of probes.
"""

from collections.abc import Sequence
from itertools import chain
from typing import TypeVar

from kgbias.graph import as_graph, shape
from kgbias.graph.as_graph import values
from kgbias.graph.neo4j.session import (
    MODEL,
    SPEC,
    Neo4jSession,
    Row,
    model_of,
    of_edges,
    of_nodes,
    spread,
)
from kgbias.graph.record import Record, in_graph, record_of
from kgbias.graph.sofa import ProbePart, ProbeSet, SofaCategory, SofaResult
from kgbias.graph.types import (
    BelievedEdge,
    Believing,
    Choosing,
    ChosenEdge,
    GroupName,
    NameProbe,
    ProbedEdge,
    Probing,
    StatementEdge,
    Triple,
    storable,
)

Asking = TypeVar("Asking", bound=Probing)

# MERGE, or `old.run = run.name`, would scan the index of all edges of the run for each row.
# Each pair of ends comes once.
_ASKED = """
MATCH (run:Run {{uid: $run}}), (m:Model {{uid: $model}})
UNWIND $rows AS row
MATCH (a:{start} {{uid: row.a}}), (b:{end} {{uid: row.b}})
OPTIONAL MATCH (a)-[old:{type}]->(b) 
WHERE old.{by} = $asked AND toString(old.run) = run.name
FOREACH (_ IN CASE WHEN old IS NULL THEN [] ELSE [1] END | SET old += row.edge)
FOREACH (_ IN CASE WHEN old IS NULL THEN [1] ELSE [] END |
    CREATE (a)-[e:{type}]->(b)
    SET e = row.edge, e.run = run.name, e.{by} = $asked, e.model = m.name)"""
_READ_ASKED = """
MATCH (run:Run {{uid: $run}})
MATCH {pattern} WHERE e.{by} = $asked
RETURN s.predicate_uid AS predicate_id, s.object_uid AS object_id, other.uid AS {key},
       properties(e) AS e
ORDER BY s.uid, {key}"""
_READ_ASKINGS = """
MATCH (:Run {{uid: $run}})-[p:{type}]->(m:Model)
{spec}
RETURN {model}, properties(p) AS p
ORDER BY spec, p.uid"""

_FORGET_CHOICES = """
MATCH (run:Run {uid: $run})
OPTIONAL MATCH (run)-[p:PUT_TO {uid: $choosing}]->()
DELETE p
WITH DISTINCT run
MATCH ()-[e:CHOSEN {run: run.name, choosing_uid: $choosing}]->()
DELETE e"""

_NAMES = """
UNWIND $rows AS row
MERGE (n:Name {uid: row.uid}) ON CREATE SET n.text = row.text, n.name = row.text
SET n.form = row.form, n.root = row.root
WITH n, row
OPTIONAL MATCH (g:SocialGroup {uid: row.group})
FOREACH (_ IN CASE WHEN g IS NULL THEN [] ELSE [g] END |
    MERGE (n)-[e:NAME_OF]->(g) SET e.mark = row.mark)
WITH DISTINCT n
OPTIONAL MATCH (n)-[e:NAME_OF]->()
WITH n, count(e) AS groups
SET n.nonce = groups = 0"""
_READ_NAMES = """
MATCH (n:Name)
OPTIONAL MATCH (n)-[e:NAME_OF]->(g)
RETURN properties(n) AS n, coalesce(g.uid, '') AS group_id, e.mark AS mark"""
_READ_PROBED_NAMES = """
MATCH (run:Run {uid: $run})
MATCH (n)-[e:PROBED_BEFORE {run: run.name}]->() WHERE e.believing_uid = $believing
WITH DISTINCT run, n
OPTIONAL MATCH (n)-[e:NAME_OF]->(g)
WITH run, n, e, g WHERE g IS NULL OR EXISTS { (run)-[:SEEDED]->(g) }
RETURN properties(n) AS n, coalesce(g.uid, '') AS group_id, e.mark AS mark"""
_READ_STATEMENTS = """
MATCH (run:Run {uid: $run})
MATCH ()-[e:PROBED_BEFORE {run: run.name}]->(s:Statement) WHERE e.believing_uid = $believing
WITH DISTINCT s
MATCH (p:Predicate {uid: s.predicate_uid}), (o:Object {uid: s.object_uid})
RETURN p.text AS predicate, o.text AS object"""
_FORGET_BELIEFS = """
MATCH (run:Run {uid: $run})
MATCH ()-[e:BELIEVED {run: run.name}]->() WHERE e.believing_uid = $believing
DELETE e"""

_READ_SETS = "MATCH (p:ProbeSet) RETURN properties(p) AS p ORDER BY p.name, p.uid"
_READ_SET_GROUPS = """
MATCH (:ProbeSet {uid: $set})-[a:ASKS]->(g:SocialGroup)
RETURN a.category AS category, a.text AS text ORDER BY category, g.uid, text"""
_READ_SET_STATEMENTS = """
MATCH (:ProbeSet {uid: $set})-[a:ASKS]->(s:Statement)
RETURN s.uid AS id, properties(a) AS a ORDER BY a.category, id"""

_FORGET_SOFA = """
MATCH (:SofaResult {uid: $uid})-[old:SCORES|PUTS_FIRST|DISPARITY]->()
DELETE old"""
_OF_RUN = """
MATCH (run:Run {uid: $run}), (r:SofaResult {uid: $uid}) MERGE (run)-[:TESTED]->(r)"""
_READ_SOFA = f"""
MATCH (p:ProbeSet)<-[:ON]-(r:SofaResult)-[:OF]->(m:Model)
WHERE $run IS NULL OR EXISTS {{ (:Run {{uid: $run}})-[:TESTED]->(r) }}
{SPEC}
RETURN properties(r) AS r, p.uid AS probe_set, {MODEL}
ORDER BY spec, r.uid"""
_READ_SCORES = """
MATCH (:SofaResult {uid: $uid})-[e:SCORES]->(c:Category)
RETURN c.name AS category, properties(e) AS e ORDER BY category"""
_READ_FIRST = """
MATCH (p:ProbeSet)<-[:ON]-(:SofaResult {uid: $uid})-[e:PUTS_FIRST]->(g:SocialGroup)
MATCH (p)-[a:ASKS {category: e.category}]->(g)
RETURN a.text AS group, properties(e) AS e ORDER BY e.category, g.uid"""
_READ_DISPARITY = """
MATCH (p:ProbeSet)<-[:ON]-(:SofaResult {uid: $uid})-[e:DISPARITY]->(s:Statement)
MATCH (p)-[a:ASKS {category: e.category}]->(s)
RETURN s.uid AS id, a.text AS text, properties(e) AS e ORDER BY e.category, id"""


class Probings(Neo4jSession):
    """See `kgbias.graph.store.Store`."""

    def save_probes(self, run_id: str, probing: Probing, edges: Sequence[ProbedEdge]) -> None:
        self._write_asked("PROBED", run_id, probing, edges)

    def save_probing(self, run_id: str, probing: Probing) -> None:
        self._note("PROBED_WITH", run_id, probing)

    def probes(
        self, run_id: str, probing_id: str, statement_id: str | None = None
    ) -> list[ProbedEdge]:
        return self._asked(ProbedEdge, "PROBED", run_id, probing_id, statement_id)

    def probings(self, run_id: str) -> list[Probing]:
        return self._askings(Probing, "PROBED_WITH", run_id)

    def save_choices(self, run_id: str, choosing: Choosing, edges: Sequence[ChosenEdge]) -> None:
        self.write((_FORGET_CHOICES, {"run": run_id, "choosing": choosing.id}))
        self._write_asked("CHOSEN", run_id, choosing, edges)
        self._note("PUT_TO", run_id, choosing)

    def choices(
        self, run_id: str, choosing_id: str, statement_id: str | None = None
    ) -> list[ChosenEdge]:
        return self._asked(ChosenEdge, "CHOSEN", run_id, choosing_id, statement_id)

    def choosings(self, run_id: str) -> list[Choosing]:
        return self._askings(Choosing, "PUT_TO", run_id)

    def save_names(self, names: Sequence[GroupName]) -> None:
        rows = [in_graph(n) | {"uid": n.id, "group": n.group_id or None} for n in names]
        self.write_rows(_NAMES, rows)

    def names(self, run_id: str | None = None, believing_id: str | None = None) -> list[GroupName]:
        query = _READ_NAMES if run_id is None else _READ_PROBED_NAMES
        found = self.records(GroupName, query, run=run_id, believing=believing_id)
        return sorted(found, key=lambda n: (n.text, n.group_id))

    def keep_statements(self, statements: Sequence[tuple[str, str]]) -> None:
        triples = [Triple("", *words) for words in statements]
        predicates = [(t.predicate_id, storable(t.predicate)) for t in triples]
        objects = [(t.object_id, storable(t.object)) for t in triples]
        for label, found in (("Predicate", predicates), ("Object", objects)):
            rows = [{"uid": uid, "text": text, "name": text} for uid, text in found]
            self.write_each(of_nodes((label, rows), kept=True))
        self._add_statements([StatementEdge(t.predicate_id, t.object_id, "") for t in triples])

    def statements(self, run_id: str, believing_id: str) -> list[tuple[str, str]]:
        rows = self.read(_READ_STATEMENTS, run=run_id, believing=believing_id)
        return sorted((row["predicate"], row["object"]) for row in rows)

    def save_believing(self, run_id: str, believing: Believing) -> None:
        self._note("BELIEVED_BY", run_id, believing)

    def believings(self, run_id: str) -> list[Believing]:
        return self._askings(Believing, "BELIEVED_BY", run_id)

    def save_name_probes(
        self, run_id: str, believing: Believing, probes: Sequence[NameProbe]
    ) -> None:
        self._write_asked("PROBED_BEFORE", run_id, believing, probes)

    def name_probes(
        self, run_id: str, believing_id: str, statement_id: str | None = None
    ) -> list[NameProbe]:
        return self._asked(NameProbe, "PROBED_BEFORE", run_id, believing_id, statement_id)

    def save_beliefs(
        self, run_id: str, believing: Believing, edges: Sequence[BelievedEdge]
    ) -> None:
        self.write((_FORGET_BELIEFS, {"run": run_id, "believing": believing.id}))
        self._write_asked("BELIEVED", run_id, believing, edges)

    def beliefs(
        self, run_id: str, believing_id: str, statement_id: str | None = None
    ) -> list[BelievedEdge]:
        return self._asked(BelievedEdge, "BELIEVED", run_id, believing_id, statement_id)

    def _note(self, kind: str, run_id: str, asked: Probing) -> None:
        """Write how a model was asked about a run."""
        self.keep_models([asked.model])
        self.write(*of_edges(as_graph.asking(kind, run_id, [asked])))

    def _askings(self, kind: type[Asking], edge: str, run_id: str) -> list[Asking]:
        """The probings (choosings, believings) of a run, by the model's name."""
        return [
            record_of(kind, {**row["p"], "model": model_of(row)})
            for row in self.read(
                _READ_ASKINGS.format(type=edge, spec=SPEC, model=MODEL), run=run_id
            )
        ]

    def _write_asked(
        self,
        kind: str,
        run_id: str,
        asked: Probing,
        edges: Sequence[StatementEdge] | Sequence[NameProbe],
    ) -> None:
        """Write edges made by asking a model, by their ends. One that exists is replaced."""
        self.keep_models([asked.model])
        self._add_statements(edges)
        ((start, end),) = shape.edge(kind).ends
        query = _ASKED.format(start=start, type=kind, end=end, by=shape.ASKED[kind][0])
        found = {as_graph.ends(e): values(kind, e) for e in edges}
        rows = [{"a": a, "b": b, "edge": properties} for (a, b), properties in found.items()]
        self.write_rows(query, rows, run=run_id, model=asked.model.id, asked=asked.id)

    def _asked(
        self,
        kind: type[Record],
        edge: str,
        run_id: str,
        asked: str,
        statement_id: str | None,
    ) -> list[Record]:
        """The edges made by asking a model, of all statements or one, by statement and other
        end."""
        statement = "(s:Statement)" if statement_id is None else "(s:Statement {uid: $statement})"
        between = f"[e:{edge} {{run: run.name}}]"
        of_names = shape.edge(edge).ends[0][0] == "Name"
        query = _READ_ASKED.format(
            pattern=f"(other:Name)-{between}->{statement}"
            if of_names
            else f"{statement}-{between}->(other:SocialGroup)",
            by=shape.ASKED[edge][0],
            key="name_id" if of_names else "group_id",
        )
        return self.records(kind, query, run=run_id, asked=asked, statement=statement_id)

    def save_probe_set(self, probe_set: ProbeSet) -> None:
        parts = probe_set.parts
        texts = {s.id: storable(s.text) for part in parts for s in part.statements}
        statements = [{"uid": uid, "text": text, "name": text} for uid, text in texts.items()]
        self.write_each(of_nodes(as_graph.probe_sets([probe_set])))
        self.write_each(of_nodes(("Category", [{"name": part.category} for part in parts])))
        self.write_each(
            of_nodes(as_graph.groups(g for part in parts for g in part.groups), kept=True)
        )
        self.write_each(of_nodes(("Statement", statements), kept=True))
        for table in as_graph.of_probe_sets([probe_set]):
            self.write_each(of_edges(table))

    def probe_sets(self) -> list[ProbeSet]:
        return [
            record_of(ProbeSet, row["p"] | {"parts": self._parts(row["p"]["uid"])})
            for row in self.read(_READ_SETS)
        ]

    def _parts(self, set_id: str) -> tuple[ProbePart, ...]:
        return ProbePart.all_of(
            self.read(_READ_SET_GROUPS, set=set_id),
            map(spread, self.read(_READ_SET_STATEMENTS, set=set_id)),
        )

    def save_sofa(self, run_id: str | None, results: Sequence[SofaResult]) -> None:
        for result in results:
            categories = [{"name": c.category} for c in result.categories]
            self.keep_models([result.model])
            self.write(
                *of_nodes(as_graph.sofa([result])),
                *of_nodes(("Category", categories)),
                (_FORGET_SOFA, {"uid": result.id}),
            )
            self.write_each(chain.from_iterable(map(of_edges, as_graph.of_sofa([result]))))
            if run_id is not None:
                self.write((_OF_RUN, {"run": run_id, "uid": result.id}))

    def sofa(self, run_id: str | None = None) -> list[SofaResult]:
        return [
            record_of(SofaResult, spread(row) | {"categories": self._sofa_categories(row)})
            for row in self.read(_READ_SOFA, run=run_id)
        ]

    def _sofa_categories(self, result: Row) -> tuple[SofaCategory, ...]:
        uid = result["r"]["uid"]
        return SofaCategory.all_of(
            map(spread, self.read(_READ_SCORES, uid=uid)),
            map(spread, self.read(_READ_FIRST, uid=uid)),
            map(spread, self.read(_READ_DISPARITY, uid=uid)),
        )
