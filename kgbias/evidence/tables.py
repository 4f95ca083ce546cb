"""The probes of a category as tables of groups and statements."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from kgbias.graph.stored import StoredRun
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


def group_table(run: StoredRun, probing: Probing, category: str) -> GroupTable | None:
    """The probes of a category, in the order of the run's groups and triples; None where there are
    fewer than two groups or no statement."""
    groups = tuple(group for group in run.groups if group.category == category)
    ids = {group.id for group in groups}
    triples = [t for t in run.triples() if t.group_id in ids]
    named = {(s := Statement(t.predicate, t.object)).key: s for t in reversed(triples)}
    edges = {
        (e.group_id, (e.predicate_id, e.object_id)): e
        for e in run.probes(probing)
        if e.group_id in ids
    }
    order = dict.fromkeys(Statement(t.predicate, t.object).key for t in triples)
    kept = [key for key in order if all((id, key) in edges for id in ids)]
    if len(groups) < 2 or not kept:
        return None
    said = {(t.group_id, Statement(t.predicate, t.object).key) for t in triples}
    return GroupTable(
        category,
        str(probing.record.get("measure", "conditional")),
        groups,
        tuple(named[key] for key in kept),
        [[edges[group.id, key] for key in kept] for group in groups],
        np.array([[(group.id, key) in said for key in kept] for group in groups], dtype=bool),
    )
