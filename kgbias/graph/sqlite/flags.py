"""Flags of APX: FLAGGED edges from groups to descriptors."""

from itertools import groupby
from operator import itemgetter

from kgbias.graph.sqlite.database import Database
from kgbias.graph.types import Flag, Flagged, canonical_json, node_id, storable

_READ = """
SELECT apx_id, model, revision, settings, level, groups, name, text, axis, bias_score, z
FROM flagged JOIN "group" ON "group".id = group_id
JOIN descriptor ON descriptor.id = descriptor_id
ORDER BY model, apx_id, name, z, text"""


class FlagTables(Database):
    def save_flags(self, flagged: Flagged) -> None:
        groups = {node_id("group", f.group): storable(f.group) for f in flagged.flags}
        of = {node_id("descriptor", f.descriptor): f for f in flagged.flags}
        with self._transaction():
            self._db.execute("DELETE FROM flagged WHERE apx_id = ?", (flagged.id,))
            self._db.executemany('INSERT OR IGNORE INTO "group" VALUES (?, ?)', groups.items())
            self._db.executemany(
                "INSERT OR IGNORE INTO descriptor VALUES (?, ?, ?)",
                [(id, storable(f.descriptor), storable(f.axis)) for id, f in of.items()],
            )
            self._db.executemany(
                f"INSERT OR REPLACE INTO flagged VALUES ({', '.join('?' * 10)})",
                [
                    (
                        flagged.id,
                        node_id("group", f.group),
                        node_id("descriptor", f.descriptor),
                        storable(flagged.model),
                        flagged.revision,
                        canonical_json(flagged.settings),
                        f.bias_score,
                        f.z,
                        flagged.level,
                        flagged.groups,
                    )
                    for f in flagged.flags
                ],
            )

    def flags(self) -> list[Flagged]:
        found = []
        for (id, model, revision, settings, level, groups), rows in groupby(
            self._db.execute(_READ).fetchall(), itemgetter(slice(6))
        ):
            flags = tuple(Flag(*row[6:]) for row in rows)
            read = self._settings(settings)
            found.append(Flagged(id, model, revision, read, level, groups, flags))
        return found
