"""What an export for Neo4j holds of a run's profiles."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

from kgbias.graph.profiles import Profile
from kgbias.graph.types import canonical_json

_Nodes = Iterator[tuple[str, Iterable[dict[str, Any]]]]
_Edges = Iterator[tuple[str, str, str, Iterable[tuple[str, str, dict[str, Any]]]]]


def profile_nodes(profiles: Sequence[Profile]) -> _Nodes:
    """The profiles and the names that they were given."""
    names = {p.name_id: p.name for p in profiles}
    yield "GivenName", ({"uid": uid, "name": name} for uid, name in sorted(names.items()))
    yield (
        "Profile",
        (
            {"uid": p.id, "path": p.path, "name": p.name, "labels": canonical_json(dict(p.labels))}
            for p in profiles
        ),
    )


def profile_edges(run_id: str, profiles: Sequence[Profile], generations: Collection[str]) -> _Edges:
    """The edges of profiles; of those to generations, the ones that are in the export."""
    yield "IN", "Profile", "SocialGroup", ((p.id, p.group_id, {}) for p in profiles)
    yield "WROTE", "Run", "Profile", ((run_id, p.id, {}) for p in profiles)
    yield "GIVEN", "Profile", "GivenName", ((p.id, p.name_id, {}) for p in profiles)
    yield (
        "PART_OF",
        "Generation",
        "Profile",
        (
            (part.generation_id, p.id, {"attribute": part.attribute, "position": position})
            for p in profiles
            for position, part in enumerate(p.parts)
            if part.generation_id in generations
        ),
    )
