"""Flags of APX: FLAGGED edges from groups to descriptors."""

from itertools import groupby

from kgbias.graph.neo4j.session import Neo4jSession
from kgbias.graph.types import (
    Flag,
    Flagged,
    canonical_json,
    node_id,
    read_settings,
    storable,
)

_FORGET = """
MATCH (:SocialGroup)-[e:FLAGGED {apx_uid: $apx}]->(:Descriptor)
DELETE e"""
_SAVE = """
UNWIND $rows AS row
MERGE (g:SocialGroup {uid: row.group.uid}) ON CREATE SET g.name = row.group.name
MERGE (d:Descriptor {uid: row.descriptor.uid}) ON CREATE SET d = row.descriptor
MERGE (g)-[e:FLAGGED {apx_uid: $apx}]->(d)
SET e += $common, e += row.edge"""
_READ = """
MATCH (g:SocialGroup)-[e:FLAGGED]->(d:Descriptor)
RETURN properties(e) AS e, g.name AS group, d.text AS descriptor, d.axis AS axis
ORDER BY e.model, e.apx_uid, group, e.z, descriptor"""


class FlagEdges(Neo4jSession):
    def save_flags(self, flagged: Flagged) -> None:
        self.write((_FORGET, {"apx": flagged.id}))
        rows = [
            {
                "group": {"uid": node_id("group", f.group), "name": storable(f.group)},
                "descriptor": {
                    "uid": node_id("descriptor", f.descriptor),
                    "text": storable(f.descriptor),
                    "name": storable(f.descriptor),
                    "axis": storable(f.axis),
                },
                "edge": {"bias_score": f.bias_score, "z": f.z},
            }
            for f in flagged.flags
        ]
        common = {
            "model": storable(flagged.model),
            "revision": flagged.revision,
            "settings": canonical_json(flagged.settings),
            "level": flagged.level,
            "groups": flagged.groups,
        }
        self.write_rows(_SAVE, rows, apx=flagged.id, common=common)

    def flags(self) -> list[Flagged]:
        found = []
        rows = self.read(_READ)
        for id, same in groupby(rows, lambda row: row["e"]["apx_uid"]):
            own = list(same)
            e = own[0]["e"]
            flags = tuple(
                Flag(r["group"], r["descriptor"], r["axis"], r["e"]["bias_score"], r["e"]["z"])
                for r in own
            )
            settings = read_settings(e["settings"])
            found.append(
                Flagged(id, e["model"], e["revision"], settings, e["level"], e["groups"], flags)
            )
        return found
