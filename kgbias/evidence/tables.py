"""The probes of a category as tables of groups and statements."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from kgbias.graph.types import Group, ProbedEdge, Probing
from kgbias.models.score.base import Grid
from kgbias.probe.belief import Beliefs, Flags, beliefs, bits, contrast_intervals
from kgbias.probe.edges import edges_grid
from kgbias.probe.result import Statement
from kgbias.statistics import Values

Key = tuple[str, str]  # predicate id, object id


@dataclass(frozen=True)
class GroupTable:
    """A category's groups before the statements that all of them were probed with. Each table is
    [groups, statements]; `said` is true where the run said it, in any arm."""

    category: str
    measure: str
    groups: tuple[Group, ...]
    statements: tuple[Statement, ...]
    edges: Sequence[Sequence[ProbedEdge]]
    said: Flags

    @cached_property
    def place(self) -> Mapping[tuple[str, Key], tuple[int, int]]:
        """Where a group (by id) and a statement (by key) stand."""
        return {
            (group.id, statement.key): (g, s)
            for g, group in enumerate(self.groups)
            for s, statement in enumerate(self.statements)
        }

    @cached_property
    def bits(self) -> Values:
        """log2 of the probability that groups are compared by."""
        return bits(self._grid, self.measure)

    @cached_property
    def beliefs(self) -> Beliefs:
        return beliefs(self._grid, self.said, self.measure)

    @cached_property
    def lift_ends(self) -> tuple[Values, Values]:
        """The ends of the intervals of the lifts."""
        return contrast_intervals(self.bits)

    @cached_property
    def similarity(self) -> Values | None:
        """The cosines of groups and statements; None where any is missing."""
        if any(edge.similarity is None for row in self.edges for edge in row):
            return None
        return np.array([[edge.similarity for edge in row] for row in self.edges], dtype=np.float64)

    @cached_property
    def _grid(self) -> Grid:
        return edges_grid(self.edges)


Stated = Sequence[tuple[str, Statement]]  # the id of a group, and what was said of it


def group_tables(
    groups: Sequence[Group], probing: Probing, edges: Sequence[ProbedEdge], stated: Stated
) -> dict[str, GroupTable]:
    """The probes of each category, statements in the order in which they were said. A category of
    fewer than two groups or without statements that were probed with all of them has none."""
    places = {(e.group_id, (e.predicate_id, e.object_id)): e for e in edges}
    said = {(group, statement.key) for group, statement in stated}
    found = {}
    for category in dict.fromkeys(group.category for group in groups):
        own = tuple(group for group in groups if group.category == category)
        ids = {group.id for group in own}
        named: dict[Key, Statement] = {}
        for group_id, statement in stated:
            if group_id in ids:
                named.setdefault(statement.key, statement)
        kept = [key for key in named if all((id, key) in places for id in ids)]
        if len(own) < 2 or not kept:
            continue
        found[category] = GroupTable(
            category,
            str(probing.record.get("measure", "conditional")),
            own,
            tuple(named[key] for key in kept),
            [[places[group.id, key] for key in kept] for group in own],
            np.array([[(group.id, key) in said for key in kept] for group in own], dtype=bool),
        )
    return found
