"""What a model believes of groups: names with PROBED_BEFORE edges to statements, and BELIEVED edges
from statements to groups."""

import json
from collections.abc import Sequence
from math import nan

from kgbias.graph.believed import PROPERTIES, BelievedEdge, Believing, GroupName, NameProbe
from kgbias.graph.neo4j.probes import ProbeNodes
from kgbias.graph.neo4j.session import number
from kgbias.graph.types import Triple, canonical_json, read_settings, storable
from kgbias.models.base import ModelInfo

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
RETURN n.text AS text, g.uid AS group, n.form AS form, n.root AS root, e.mark AS mark"""
_READ_PROBED_NAMES = """
MATCH (run:Run {uid: $run})
MATCH (n)-[e:PROBED_BEFORE {run: run.name}]->() WHERE e.believing_uid = $believing
WITH DISTINCT run, n
OPTIONAL MATCH (n)-[e:NAME_OF]->(g)
WITH run, n, e, g WHERE g IS NULL OR EXISTS { (run)-[:SEEDED]->(g) }
RETURN n.text AS text, g.uid AS group, n.form AS form, n.root AS root, e.mark AS mark"""
_WORDS = """
UNWIND $rows AS row
MERGE (n:{label} {{uid: row.uid}}) ON CREATE SET n.text = row.text, n.name = row.text"""
_READ_STATEMENTS = """
MATCH (run:Run {uid: $run})
MATCH ()-[e:PROBED_BEFORE {run: run.name}]->(s:Statement) WHERE e.believing_uid = $believing
WITH DISTINCT s
MATCH (p:Predicate {uid: s.predicate_uid}), (o:Object {uid: s.object_uid})
RETURN p.text AS predicate, o.text AS object"""
_READ_PROBES = """
MATCH (run:Run {{uid: $run}})
MATCH (n)-[e:PROBED_BEFORE {{run: run.name}}]->(s:Statement {which})
WHERE e.believing_uid = $believing
RETURN s.predicate_uid AS predicate_id, s.object_uid AS object_id, n.uid AS name_id, e.bits AS bits
ORDER BY s.uid, name_id"""
_FORGET = """
MATCH (run:Run {uid: $run})
MATCH ()-[e:BELIEVED {run: run.name}]->() WHERE e.believing_uid = $believing
DELETE e"""
_READ = """
MATCH (run:Run {{uid: $run}})
MATCH (s:Statement {which})-[e:BELIEVED {{run: run.name}}]->(g)
WHERE e.believing_uid = $believing
RETURN s.predicate_uid AS predicate_id, s.object_uid AS object_id, g.uid AS group_id,
       properties(e) AS e
ORDER BY s.uid, group_id"""
_BELIEVING = """
MATCH (run:Run {uid: $run}), (m:Model {uid: $model})
MERGE (run)-[b:BELIEVED_BY {uid: $believing}]->(m)
SET b.settings = $settings, b.record = $record"""
_READ_BELIEVINGS = """
MATCH (:Run {uid: $run})-[b:BELIEVED_BY]->(m:Model)
RETURN m.name AS name, m.revision AS revision, b.settings AS settings, b.record AS record
ORDER BY name, b.uid"""
_ONE = "{uid: $statement}"  # of all statements


class BeliefNodes(ProbeNodes):
    def save_names(self, names: Sequence[GroupName]) -> None:
        rows = [
            {"uid": n.id, "group": n.group_id or None, "mark": n.mark}
            | {name: storable(getattr(n, name)) for name in ("text", "form", "root")}
            for n in names
        ]
        self.write_rows(_NAMES, rows)

    def names(self, run_id: str | None = None, believing_id: str | None = None) -> list[GroupName]:
        if run_id is None:
            rows = self.read(_READ_NAMES)
        else:
            rows = self.read(_READ_PROBED_NAMES, run=run_id, believing=believing_id)
        found = (
            GroupName(row["text"], row["group"] or "", row["form"], row["root"], row["mark"] or "")
            for row in rows
        )
        return sorted(found, key=lambda n: (n.text, n.group_id))

    def keep_statements(self, statements: Sequence[tuple[str, str]]) -> None:
        triples = [Triple("", *words) for words in statements]
        self.write_rows(
            _WORDS.format(label="Predicate"),
            [{"uid": t.predicate_id, "text": storable(t.predicate)} for t in triples],
        )
        self.write_rows(
            _WORDS.format(label="Object"),
            [{"uid": t.object_id, "text": storable(t.object)} for t in triples],
        )
        self._add_statements([NameProbe(t.predicate_id, t.object_id, "", ()) for t in triples])

    def statements(self, run_id: str, believing_id: str) -> list[tuple[str, str]]:
        rows = self.read(_READ_STATEMENTS, run=run_id, believing=believing_id)
        return sorted((row["predicate"], row["object"]) for row in rows)

    def save_believing(self, run_id: str, believing: Believing) -> None:
        self._add_model(believing.model)
        given = {
            "run": run_id,
            "model": believing.model.id,
            "believing": believing.id,
            "settings": canonical_json(believing.settings),
            "record": canonical_json(dict(believing.record)),
        }
        self.write((_BELIEVING, given))

    def believings(self, run_id: str) -> list[Believing]:
        return [
            Believing(
                ModelInfo(row["name"], row["revision"]),
                read_settings(row["settings"]),
                json.loads(row["record"]),
            )
            for row in self.read(_READ_BELIEVINGS, run=run_id)
        ]

    def save_name_probes(
        self, run_id: str, believing: Believing, probes: Sequence[NameProbe]
    ) -> None:
        self._add_model(believing.model)
        self._add_statements(probes)
        rows = {
            (p.name_id, p.statement_id): {"bits": list(p.bits), "mean": number(p.mean)}
            for p in probes
        }
        self._write_asked(run_id, believing, ("Name", "PROBED_BEFORE", "Statement"), rows)

    def name_probes(
        self, run_id: str, believing_id: str, statement_id: str | None = None
    ) -> list[NameProbe]:
        query = _READ_PROBES.format(which="" if statement_id is None else _ONE)
        return [
            NameProbe(row["predicate_id"], row["object_id"], row["name_id"], tuple(row["bits"]))
            for row in self.read(query, run=run_id, believing=believing_id, statement=statement_id)
        ]

    def save_beliefs(
        self, run_id: str, believing: Believing, edges: Sequence[BelievedEdge]
    ) -> None:
        self.write((_FORGET, {"run": run_id, "believing": believing.id}))
        self._add_model(believing.model)
        self._add_statements(edges)
        rows = {(e.statement_id, e.group_id): _properties(e) for e in edges}
        self._write_asked(run_id, believing, ("Statement", "BELIEVED", "SocialGroup"), rows)

    def beliefs(
        self, run_id: str, believing_id: str, statement_id: str | None = None
    ) -> list[BelievedEdge]:
        query = _READ.format(which="" if statement_id is None else _ONE)
        return [
            BelievedEdge(
                row["predicate_id"],
                row["object_id"],
                row["group_id"],
                **{name: row["e"].get(name, nan) for name in PROPERTIES},
            )
            for row in self.read(query, run=run_id, believing=believing_id, statement=statement_id)
        ]


def _properties(edge: BelievedEdge) -> dict[str, object]:
    """What the edge holds, without what is not a number."""
    return {
        name: number(value) if isinstance(value, float) else value
        for name, value in edge.properties.items()
    }
