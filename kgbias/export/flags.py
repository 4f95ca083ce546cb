"""The flags of APX in an export: those of its groups."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

from kgbias.graph.types import Flag, Flagged, canonical_json, node_id

Values = dict[str, Any]


def flag_nodes(tables: Sequence[Flagged], groups: Collection[str]) -> tuple[str, list[Values]]:
    """The descriptors that are tied to these groups, by id."""
    found = {node_id("descriptor", f.descriptor): f for _, _, f in _flags(tables, groups)}
    return (
        "Descriptor",
        [
            {"uid": id, "text": f.descriptor, "name": f.descriptor, "axis": f.axis}
            for id, f in sorted(found.items())
        ],
    )


def flag_edges(
    tables: Sequence[Flagged], groups: Collection[str]
) -> tuple[str, str, str, Iterable[tuple[str, str, Values]]]:
    """The edges from these groups to descriptors."""
    edges = (
        (
            group,
            node_id("descriptor", f.descriptor),
            {
                "apx_uid": t.id,
                "model": t.model,
                "revision": t.revision,
                "settings": canonical_json(t.settings),
                "bias_score": f.bias_score,
                "z": f.z,
                "level": t.level,
                "groups": t.groups,
            },
        )
        for t, group, f in _flags(tables, groups)
    )
    return "FLAGGED", "SocialGroup", "Descriptor", edges


def _flags(
    tables: Sequence[Flagged], groups: Collection[str]
) -> Iterator[tuple[Flagged, str, Flag]]:
    for table in tables:
        for flag in table.flags:
            if (group := node_id("group", flag.group)) in groups:
                yield table, group, flag
