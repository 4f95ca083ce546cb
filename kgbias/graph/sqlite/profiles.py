"""Profiles, and which generations they are made of."""

from collections.abc import Sequence
from itertools import groupby
from operator import itemgetter

from kgbias.graph.profiles import Part, Profile
from kgbias.graph.sqlite.database import Database
from kgbias.graph.types import canonical_json, storable

_READ = """
SELECT path, name, group_id, labels, id FROM profile WHERE run_id = ? ORDER BY path"""
_PARTS = """
SELECT part.profile_id, attribute, generation_id, said_object FROM profile
JOIN profile_part AS part ON part.profile_id = profile.id
JOIN generation ON generation.id = generation_id AND generation.triple_id IS NOT NULL
WHERE profile.run_id = ? ORDER BY part.profile_id, position"""


class ProfileTables(Database):
    def save_profiles(self, run_id: str, profiles: Sequence[Profile]) -> None:
        with self._transaction():
            own = "SELECT id FROM profile WHERE run_id = ?"
            self._db.execute(f"DELETE FROM profile_part WHERE profile_id IN ({own})", (run_id,))
            self._db.execute("DELETE FROM profile WHERE run_id = ?", (run_id,))
            self._db.executemany(
                "INSERT OR IGNORE INTO given_name VALUES (?, ?)",
                sorted({p.name_id: storable(p.name) for p in profiles}.items()),
            )
            self._db.executemany(
                "INSERT INTO profile VALUES (?, ?, ?, ?, ?, ?, ?)",
                [
                    (
                        p.id,
                        run_id,
                        storable(p.path),
                        p.name_id,
                        storable(p.name),
                        p.group_id,
                        canonical_json({k: storable(v) for k, v in p.labels.items()}),
                    )
                    for p in profiles
                ],
            )
            self._db.executemany(
                "INSERT INTO profile_part VALUES (?, ?, ?, ?)",
                [
                    (p.id, position, storable(part.attribute), part.generation_id)
                    for p in profiles
                    for position, part in enumerate(p.parts)
                ],
            )

    def profiles(self, run_id: str) -> list[Profile]:
        rows = self._db.execute(_PARTS, (run_id,)).fetchall()
        parts = {
            id: tuple(Part(*row[1:]) for row in same) for id, same in groupby(rows, itemgetter(0))
        }
        return [
            Profile(run_id, path, name, group_id, self._json(labels), parts.get(id, ()))
            for path, name, group_id, labels, id in self._db.execute(_READ, (run_id,))
        ]
