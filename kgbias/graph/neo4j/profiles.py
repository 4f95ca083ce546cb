"""Profiles as nodes: IN their group, GIVEN a name, with the generations that are PART_OF them."""

import json
from collections.abc import Sequence

from kgbias.graph.neo4j.session import Neo4jSession
from kgbias.graph.profiles import Part, Profile
from kgbias.graph.types import canonical_json, storable

_FORGET = """
MATCH (:Run {uid: $run})-[:WROTE]->(p:Profile)
DETACH DELETE p"""
_NAMES = """
UNWIND $rows AS row
MERGE (n:GivenName {uid: row.uid}) ON CREATE SET n.name = row.name"""
_SAVE = """
MATCH (run:Run {uid: $run})
UNWIND $rows AS row
MATCH (g:SocialGroup {uid: row.group}), (n:GivenName {uid: row.name})
MERGE (p:Profile {uid: row.profile.uid}) SET p = row.profile
MERGE (run)-[:WROTE]->(p)
MERGE (p)-[:IN]->(g)
MERGE (p)-[:GIVEN]->(n)"""
_PARTS = """
UNWIND $rows AS row
MATCH (p:Profile {uid: row.profile}), (n:Generation {uid: row.generation})
MERGE (n)-[e:PART_OF {position: row.position}]->(p)
SET e.attribute = row.attribute"""
_READ = """
MATCH (:Run {uid: $run})-[:WROTE]->(p:Profile)-[:IN]->(g:SocialGroup)
MATCH (p)-[:GIVEN]->(n:GivenName)
RETURN p.uid AS uid, p.path AS path, p.name AS name, g.uid AS group, p.labels AS labels
ORDER BY path"""
_READ_PARTS = """
MATCH (:Run {uid: $run})-[:WROTE]->(p:Profile)
MATCH (n:Generation)-[e:PART_OF]->(p)
MATCH (n)-[y:YIELDED]->(:Triple)
RETURN p.uid AS uid, e.attribute AS attribute, n.uid AS generation, y.object AS value
ORDER BY uid, e.position"""


class ProfileNodes(Neo4jSession):
    def save_profiles(self, run_id: str, profiles: Sequence[Profile]) -> None:
        self.write((_FORGET, {"run": run_id}))
        names = {p.name_id: storable(p.name) for p in profiles}
        self.write_rows(_NAMES, [{"uid": uid, "name": n} for uid, n in sorted(names.items())])
        rows = [
            {
                "group": p.group_id,
                "name": p.name_id,
                "profile": {
                    "uid": p.id,
                    "path": storable(p.path),
                    "name": storable(p.name),
                    "labels": canonical_json({k: storable(v) for k, v in p.labels.items()}),
                },
            }
            for p in profiles
        ]
        self.write_rows(_SAVE, rows, run=run_id)
        self.write_rows(
            _PARTS,
            [
                {
                    "profile": p.id,
                    "generation": part.generation_id,
                    "position": position,
                    "attribute": storable(part.attribute),
                }
                for p in profiles
                for position, part in enumerate(p.parts)
            ],
        )

    def profiles(self, run_id: str) -> list[Profile]:
        parts: dict[str, list[Part]] = {}
        for row in self.read(_READ_PARTS, run=run_id):
            part = Part(row["attribute"], row["generation"], row["value"])
            parts.setdefault(row["uid"], []).append(part)
        return [
            Profile(
                run_id,
                row["path"],
                row["name"],
                row["group"],
                json.loads(row["labels"]),
                tuple(parts.get(row["uid"], ())),
            )
            for row in self.read(_READ, run=run_id)
        ]
