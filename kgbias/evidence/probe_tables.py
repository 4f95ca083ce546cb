"""The probes of a category, as tables of groups and statements."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from kgbias.evidence.names import MIN_NAMES
from kgbias.graph.store import StoredRun
from kgbias.graph.types import (
    BeliefRun,
    Group,
    GroupName,
    NameProbe,
    ProbedEdge,
    ProbeRun,
    TripleView,
)
from kgbias.probe.belief import NameDesign, name_lifts
from kgbias.probe.result import Statement
from kgbias.probe.run_probes import edges_grid, measure_bits
from kgbias.stats.inference import Values

StatementKey = tuple[str, str]  # predicate id, object id


@dataclass(frozen=True)
class GroupTable:
    """A category's groups, by their own names alone, before the statements that all of them were
    probed with. Each table is [groups, statements]."""

    category: str
    measure: str
    groups: tuple[Group, ...]
    statements: tuple[Statement, ...]
    edges: Sequence[Sequence[ProbedEdge]]

    @cached_property
    def places(self) -> Mapping[tuple[str, StatementKey], tuple[int, int]]:
        """The place of a group (by id) and a statement (by key)."""
        return {
            (group.id, statement.key): (g, s)
            for g, group in enumerate(self.groups)
            for s, statement in enumerate(self.statements)
        }

    @cached_property
    def bits(self) -> Values:
        """log2 of the probability that groups are compared by."""
        return measure_bits(edges_grid(self.edges), self.measure)

    @cached_property
    def similarity(self) -> Values | None:
        """The cosines of groups and statements; None if any is missing."""
        if any(edge.similarity is None for row in self.edges for edge in row):
            return None
        return np.array([[edge.similarity for edge in row] for row in self.edges], dtype=np.float64)


StatedPairs = Sequence[tuple[str, Statement]]  # the id of a group, and what was said about it


def build_group_tables(
    groups: Sequence[Group],
    probe_run: ProbeRun,
    edges: Sequence[ProbedEdge],
    stated_pairs: StatedPairs,
) -> dict[str, GroupTable]:
    """The probes of each category, with statements in the order in which they were said. A category
    with fewer than two groups, or without statements probed with all of them, has none."""
    places = {(e.group_id, (e.predicate_id, e.object_id)): e for e in edges}
    tables = {}
    for category in dict.fromkeys(group.category for group in groups):
        category_groups = tuple(group for group in groups if group.category == category)
        ids = {group.id for group in category_groups}
        statements_by_key: dict[StatementKey, Statement] = {}
        for group_id, statement in stated_pairs:
            if group_id in ids:
                statements_by_key.setdefault(statement.key, statement)
        shared_keys = [key for key in statements_by_key if all((id, key) in places for id in ids)]
        if len(category_groups) < 2 or not shared_keys:
            continue
        tables[category] = GroupTable(
            category,
            str(probe_run.record.get("measure", "conditional")),
            category_groups,
            tuple(statements_by_key[key] for key in shared_keys),
            [[places[group.id, key] for key in shared_keys] for group in category_groups],
        )
    return tables


@dataclass(frozen=True)
class NameTable:
    """What a model finds likelier after each name of a category's groups.

    Attributes:
        category: the category.
        groups: each group's name, with the names that it was probed by.
        statements: predicate and object of each statement.
        carriers: what stood before the names.
        lift_bits: in bits, [carriers, names, statements], names in the order of `groups`: how much
            likelier a statement is after the carrier and the name than after the carrier and the
            other groups' names, beyond what the name makes likelier anyway.
        log_probs: log2 p(statement | carrier, name), [carriers, names, statements].
        forms: the form of each name, as `kgbias.probe.belief.NameDesign` takes it.
    """

    category: str
    groups: Sequence[tuple[str, tuple[str, ...]]]
    statements: Sequence[tuple[str, str]]
    carriers: Sequence[str]
    lift_bits: Values
    log_probs: Values
    forms: Sequence[str]

    @cached_property
    def bits(self) -> Values:
        """The mean of `log_probs` over carriers, [names, statements]."""
        return np.asarray(self.log_probs.mean(axis=0))

    @property
    def group_indices(self) -> list[int]:
        """The place of each name's group."""
        return [n for n, (_, names) in enumerate(self.groups) for _ in names]

    @cached_property
    def lifts(self) -> Values:
        """The mean of `lift_bits` over carriers, [names, statements]."""
        return np.asarray(self.lift_bits.mean(axis=0))

    def group_lifts(self) -> Values:
        """The mean over each group's names, [groups, statements]."""
        ends = np.cumsum([len(names) for _, names in self.groups])[:-1]
        return np.stack([part.mean(axis=0) for part in np.split(self.lifts, ends)])


def build_name_tables(
    run: StoredRun, belief_run: BeliefRun, triples: Sequence[TripleView]
) -> dict[str, NameTable]:
    """The probes of a believing by names, for each category with two groups or more that have
    enough names (`kgbias.evidence.names.MIN_NAMES`)."""
    bits = {(p.name_id, p.statement_id): p.bits for p in run.find_all(NameProbe, asking=belief_run)}
    probed = {name for name, _ in bits}
    names: dict[str, list[GroupName]] = {}
    for name in run.names(belief_run.id):
        if name.id in probed and name.group_id:
            names.setdefault(name.group_id, []).append(name)
    texts = {s: (p, o) for s, (p, o) in belief_run.record.get("given", {}).items()}
    statements_by_group: dict[str, dict[str, tuple[str, str]]] = {}
    for triple in triples:
        statement = Statement(triple.predicate, triple.object)
        texts.setdefault(statement.id, (triple.predicate, triple.object))
        statements_by_group.setdefault(triple.group_id, {})[statement.id] = texts[statement.id]
    tables = {}
    for category in dict.fromkeys(g.category for g in run.groups):
        groups = [g for g in run.groups if g.category == category]
        groups = [g for g in groups if len(names.get(g.id, ())) >= MIN_NAMES]
        category_names = [name for g in groups for name in names[g.id]]
        probed_ids = [s for s in texts if all((name.id, s) in bits for name in category_names)]
        if len(groups) < 2 or len(probed_ids) < 2:
            continue
        table = np.array([[bits[name.id, s] for s in probed_ids] for name in category_names])
        design = NameDesign([n for n, g in enumerate(groups) for _ in names[g.id]])
        tables[category] = NameTable(
            category,
            [(g.name, tuple(name.text for name in names[g.id])) for g in groups],
            [texts[s] for s in probed_ids],
            belief_run.record.get("carriers", ()),
            np.stack([name_lifts(design, part) for part in np.moveaxis(table, 2, 0)]),
            np.moveaxis(table, 2, 0),
            [name.form for name in category_names],
        )
    return tables
