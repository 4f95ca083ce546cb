"""Forced choices: statements with CHOSEN edges to groups, by a model."""

import json
from collections.abc import Sequence

from kgbias.graph.neo4j.probes import ProbeNodes
from kgbias.graph.probed import PROPERTIES, Choosing, ChosenEdge
from kgbias.graph.types import canonical_json, read_settings
from kgbias.models.base import ModelInfo

_FORGET = """
MATCH (run:Run {uid: $run})
OPTIONAL MATCH (run)-[p:PUT_TO {uid: $choosing}]->()
DELETE p
WITH DISTINCT run
MATCH ()-[e:CHOSEN {run: run.name, choosing_uid: $choosing}]->()
DELETE e"""
_CHOOSING = """
MATCH (run:Run {uid: $run}), (m:Model {uid: $model})
MERGE (run)-[p:PUT_TO {uid: $choosing}]->(m)
SET p.settings = $settings, p.record = $record"""
_READ = """
MATCH (run:Run {{uid: $run}})
MATCH (s:Statement)-[e:CHOSEN {{run: run.name, choosing_uid: $choosing}}]->(g:SocialGroup) {which}
RETURN s.predicate_uid AS predicate_id, s.object_uid AS object_id, g.uid AS group_id,
       properties(e) AS e
ORDER BY s.uid, group_id"""
_READ_CHOOSINGS = """
MATCH (:Run {uid: $run})-[p:PUT_TO]->(m:Model)
RETURN m.name AS name, m.revision AS revision, p.settings AS settings, p.record AS record
ORDER BY name, p.uid"""
_LISTS = ("answers", "others")


class ChoiceNodes(ProbeNodes):
    def save_choices(self, run_id: str, choosing: Choosing, edges: Sequence[ChosenEdge]) -> None:
        given = {"run": run_id, "model": choosing.model.id, "choosing": choosing.id}
        self.write((_FORGET, given))
        self._add_model(choosing.model)
        self._add_statements(edges)
        rows = {
            (e.statement_id, e.group_id): e.properties
            | {name: list(getattr(e, name)) for name in _LISTS}
            for e in edges
        }
        self._write_asked(run_id, choosing, ("Statement", "CHOSEN", "SocialGroup"), rows)
        how = {
            "settings": canonical_json(choosing.settings),
            "record": canonical_json(dict(choosing.record)),
        }
        self.write((_CHOOSING, given | how))

    def choices(
        self, run_id: str, choosing_id: str, statement_id: str | None = None
    ) -> list[ChosenEdge]:
        found = []
        query = _READ.format(which="" if statement_id is None else "WHERE s.uid = $statement")
        for row in self.read(query, run=run_id, choosing=choosing_id, statement=statement_id):
            edge = {name: row["e"].get(name) for name in PROPERTIES}
            edge |= {name: tuple(edge[name] or ()) for name in _LISTS}
            edge["verdict"] = edge["verdict"] or ""  # absent where neo4j-admin imported none
            ends = (row["predicate_id"], row["object_id"], row["group_id"])
            found.append(ChosenEdge(*ends, **edge))
        return found

    def choosings(self, run_id: str) -> list[Choosing]:
        return [
            Choosing(
                ModelInfo(row["name"], row["revision"]),
                read_settings(row["settings"]),
                json.loads(row["record"]),
            )
            for row in self.read(_READ_CHOOSINGS, run=run_id)
        ]
