"""Whether a model's beliefs are found again: with names held out, with other carriers, or in
another crawl."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np

from kgbias.errors import UsageError
from kgbias.evidence.belief_probing import plan_belief_run, score_plans, stack_bits
from kgbias.evidence.evidence_table import read_beliefs
from kgbias.evidence.indicators import Indicators
from kgbias.evidence.names import MIN_NAMES
from kgbias.evidence.probe_plan import ProbeSettings, default_carriers
from kgbias.graph.selection import Selection
from kgbias.graph.store import StoredRun
from kgbias.graph.types import BeliefRun, BelievedEdge, GroupName, NameProbe
from kgbias.io.columns import Column
from kgbias.io.progress import Progress, SilentProgress
from kgbias.io.rows import Result, Rows
from kgbias.io.wording import how
from kgbias.models.score.base import Array
from kgbias.models.score.distributed import AnyScorer
from kgbias.probe.belief import (
    BELIEVED,
    SIGNIFICANCE_LEVEL,
    BeliefTest,
    NameDesign,
    carrier_phrase_variance,
)
from kgbias.stats.estimate import Estimate
from kgbias.stats.inference import proportion

DEFAULT_SPLITS = 10
RETRY_CARRIERS = ("As we all know,", "Some answers:", "It is said that")
"""Carriers to retry findings with, if the run was not asked with them."""

FindingKey = tuple[str, str]  # group id, statement id


@dataclass(frozen=True, slots=True)
class ReplicationRate:
    """How often findings are found again in one way.

    Attributes:
        by: "names" (found with half of each group's names, tried with the other half), "roots"
            (found with the names of one root, tried with the others), "carriers" or "crawl".
        tried: how many findings were tried; for names and roots, over all splits.
        same_sign: the share with a lift above 0 when tried. Names and roots have no interval: a
            finding is tried in many splits, which are not independent draws.
        replication_rate: the share that is significant there (p < .05, one-sided, against 0, each
            by itself).
        missed: group and statement, by id, of findings of the run that were not found again; for
            names, found in less than half of the halves.
    """

    by: str
    tried: int
    same_sign: Estimate
    replication_rate: Estimate
    missed: Sequence[FindingKey] = ()


@dataclass(frozen=True, slots=True, repr=False)
class Replication(Result):
    """The findings of a believing, tried again; `shares_by_finding` has, for each finding, the
    share of halves of its group's names that show it alone."""

    belief_run: BeliefRun
    rates: Sequence[ReplicationRate]
    shares_by_finding: Mapping[FindingKey, float] = field(default_factory=dict)

    def as_rows(self) -> Rows[ReplicationRate]:
        """The ways. Columns: by, tried, same_sign, replication_rate, replication_rate_low and
        replication_rate_high (shares, in [0, 1])."""
        columns = (
            Column("by"),
            Column("tried", "d"),
            Column("same_sign", ".1%", get=attrgetter("same_sign.value")),
            Column("replication_rate", ".1%", interval=True),
        )
        return Rows(self.rates, columns)


class _NameSplit(NamedTuple):
    """The names of each group in two parts."""

    first: list[int]
    second: list[int]


class _RootSplit(NamedTuple):
    """The names of each group in two parts, and the places of the groups with several roots."""

    parts: _NameSplit
    multi_root_groups: list[int]


@dataclass(frozen=True, slots=True)
class _CategoryBits:
    """The names of the groups of a category before statements: `bits` [carriers, names,
    statements]."""

    groups: tuple[str, ...]
    names: tuple[GroupName, ...]
    statements: tuple[str, ...]
    bits: Array

    def test(self, name_indices: Sequence[int]) -> BeliefTest:
        """The test with these names alone."""
        design, bits = self._design(name_indices), self.bits[:, list(name_indices)]
        return design.test(bits.mean(axis=0), shared=carrier_phrase_variance(design, bits))

    def can_test(self, *parts: Sequence[int]) -> bool:
        """Whether each of these lists of names leaves a degree of freedom: one name for each group
        says nothing of how much names of a group differ."""
        return all(self._design(part).degrees > 0 for part in parts)

    def _design(self, name_indices: Sequence[int]) -> NameDesign:
        places = [self.groups.index(self.names[n].group_id) for n in name_indices]
        return NameDesign(places, forms=[self.names[n].form for n in name_indices])

    def split_halves(self, rng: np.random.Generator) -> _NameSplit:
        """The names of each group, split into halves."""
        first_half: list[int] = []
        for group in self.groups:
            group_indices = [n for n, name in enumerate(self.names) if name.group_id == group]
            first_half += rng.permutation(group_indices)[: len(group_indices) // 2].tolist()
        second_half = [n for n in range(len(self.names)) if n not in set(first_half)]
        return _NameSplit(sorted(first_half), second_half)

    def split_by_root(self, turn: int) -> _RootSplit | None:
        """The names of the first root of each group, and the rest, or in turn the other way round;
        for a group with one root, halves. None if no group has several."""
        both_parts = _NameSplit([], [])
        multi_root_groups = []
        for group_index, group in enumerate(self.groups):
            group_indices = [n for n, name in enumerate(self.names) if name.group_id == group]
            first_part = [
                n for n in group_indices if self.names[n].root == self.names[group_indices[0]].root
            ]
            if len(first_part) < len(group_indices):
                multi_root_groups.append(group_index)
            else:
                first_part = group_indices[::2]
            second_part = [n for n in group_indices if n not in first_part]
            both_parts[turn].extend(first_part)
            both_parts[1 - turn].extend(second_part)
        return _RootSplit(both_parts, multi_root_groups) if multi_root_groups else None


def replicate_findings(
    run: StoredRun,
    *,
    model: str | None = None,
    other_run: StoredRun | None = None,
    splits: int = DEFAULT_SPLITS,
    seed: int = 0,
) -> Replication:
    """Try the findings of a run again with names held out, from what the store holds; and in
    `other_run`, another run that was probed by names. `model` says whose findings.

    Raises UsageError for a run that was not probed by names.
    """
    belief_edges = read_beliefs(run, model)
    if belief_edges is None:
        raise UsageError(
            f"run {run.name!r} was not probed by names: {_probes_by_names(run)} does that"
        )
    belief_run, edges = belief_edges
    findings = {(e.group_id, e.statement_id) for e in edges if _is_finding(e)}
    rates, shares = _replicate_by_names(run, belief_run, findings, splits, seed)
    if other_run is not None:
        rates.append(_replicate_in_crawl(findings, other_run, belief_run))
    return Replication(belief_run, rates, shares)


def save_replication(run: StoredRun, replication: Replication) -> None:
    """Write the results to the record of the believing, which `Evidence.replication_rate` comes
    from."""
    rates = {
        way.by: {
            "tried": way.tried,
            "same_sign": way.same_sign.as_dict(),
            "replication_rate": way.replication_rate.as_dict(),
            "missed": [list(p) for p in way.missed],
        }
        for way in replication.rates
    }
    earlier_rates = replication.belief_run.record.get("replicated", {})
    shares = {
        f"{group} {statement}": share
        for (group, statement), share in replication.shares_by_finding.items()
    }
    record = {
        **replication.belief_run.record,
        "replicated": {**earlier_rates, **rates},
        "replication_rates": shares,
    }
    run.put(BeliefRun, [replace(replication.belief_run, record=record)])


def retry_with_carriers(
    run: StoredRun,
    scorer: AnyScorer,
    replication: Replication,
    *,
    carriers: Sequence[str] | None = None,
    indicators: Indicators | None = None,
    progress: Progress | None = None,
) -> ReplicationRate:
    """Try the findings again with other carriers. This takes as many probes as finding them did,
    without the floor; what the store holds is not asked again."""
    reporter = progress or SilentProgress()
    record = replication.belief_run.record
    earlier_carriers = record.get("carriers", [])
    candidates = dict.fromkeys((*default_carriers(run, 9), *RETRY_CARRIERS))
    carriers = tuple(carriers or [c for c in candidates if c not in earlier_carriers][:3])
    names = {n.id for n in run.names(replication.belief_run.id)}
    probe_settings = ProbeSettings(
        probes=int(record.get("probes", ProbeSettings().probes)),
        carriers=carriers,
        marked=record.get("marked", ()),
        seed=int(record.get("seed", 0)),
    )
    selection = Selection(**record.get("selection", {}))
    plans = plan_belief_run(run, probe_settings, indicators=indicators, selection=selection).plans
    plans = [plan.without_nonce() for plan in plans]
    settings = (*scorer.settings, *((f"carrier {n}", c) for n, c in enumerate(carriers, 1)))
    retry_run = BeliefRun(scorer.info, settings)
    probe_bits = score_plans(run, scorer, retry_run, carriers, plans, reporter).bits
    findings = {
        (e.group_id, e.statement_id)
        for e in run.find_all(BelievedEdge, asking=replication.belief_run)
        if _is_finding(e)
    }
    signs: dict[FindingKey, bool] = {}
    shows: dict[FindingKey, bool] = {}
    for plan in plans:
        if not plan.groups or not names:
            continue
        tested_names = plan.tested_names
        groups = tuple(group.id for group in plan.groups)
        statements = tuple(s.id for s in plan.statements)
        table = _CategoryBits(
            groups, tested_names, statements, stack_bits(probe_bits, tested_names, plan.statements)
        )
        _record_retest(table, table.test(range(len(tested_names))), findings, signs, shows)
    return _summarise_retries(
        "carriers", list(signs.values()), list(shows.values()), _list_missed(shows)
    )


class _Retries(NamedTuple):
    """Of each belief of one half: whether its lift is positive in the other, and significantly."""

    positive: list[bool]
    significant: list[bool]


class _NameReplication(NamedTuple):
    """How often findings are found again with other names, and each finding's share."""

    rates: list[ReplicationRate]
    shares: dict[FindingKey, float]


def _replicate_by_names(
    run: StoredRun, belief_run: BeliefRun, findings: set[FindingKey], splits: int, seed: int
) -> _NameReplication:
    rng = np.random.Generator(np.random.PCG64(seed))
    significant: dict[FindingKey, list[bool]] = {}
    retries = {"names": _Retries([], []), "roots": _Retries([], [])}
    missed: dict[str, list[FindingKey]] = {"names": [], "roots": []}
    for table in _stored_tables(run, belief_run):
        for _ in range(splits):
            pair = table.split_halves(rng)
            if not table.can_test(*pair):
                continue
            tests = [table.test(half) for half in pair]
            for training, held_out in (tests, tests[::-1]):
                _record_retries(training, held_out, range(len(table.groups)), retries["names"])
                _record_significance(table, held_out, findings, significant)
        for turn in (0, 1):
            split = table.split_by_root(turn)
            if split is None:
                continue
            if not table.can_test(*split.parts):
                continue
            training, held_out = table.test(split.parts.first), table.test(split.parts.second)
            multi_root_groups = split.multi_root_groups
            _record_retries(training, held_out, multi_root_groups, retries["roots"])
            places = {(table.groups[g], s) for g in multi_root_groups for s in table.statements}
            of_roots: dict[FindingKey, list[bool]] = {}
            _record_significance(table, held_out, findings & places, of_roots)
            missed["roots"] += [p for p, values in of_roots.items() if not all(values)]
    shares = {place: float(np.mean(values)) for place, values in significant.items()}
    missed["names"] = [place for place, share in shares.items() if share < 0.5]
    rates = [
        _summarise_retries(by, tried.positive, tried.significant, sorted(set(missed[by])))
        for by, tried in retries.items()
    ]
    return _NameReplication(rates, shares)


def _stored_tables(run: StoredRun, belief_run: BeliefRun) -> Iterator[_CategoryBits]:
    """The probes in the store for a believing, by category."""
    probes = {
        (p.name_id, p.statement_id): p.bits for p in run.find_all(NameProbe, asking=belief_run)
    }
    category = {group.id: group.category for group in run.groups}
    names_by_group: dict[str, list[GroupName]] = {}
    for name in run.names(belief_run.id):
        if name.group_id in category:
            names_by_group.setdefault(name.group_id, []).append(name)
    statements_by_name: dict[str, set[str]] = {}
    for name_id, statement_id in probes:
        statements_by_name.setdefault(name_id, set()).add(statement_id)
    judged_pairs = {
        (e.group_id, e.statement_id) for e in run.find_all(BelievedEdge, asking=belief_run)
    }
    for category_name in dict.fromkeys(category.values()):
        groups = tuple(
            g
            for g, c in category.items()
            if c == category_name and len(names_by_group.get(g, ())) >= MIN_NAMES
        )
        names = tuple(name for g in groups for name in names_by_group[g])
        if len(groups) < 2:
            continue
        shared = set.intersection(*(statements_by_name.get(name.id, set()) for name in names))
        statements = tuple(sorted(s for s in shared if (groups[0], s) in judged_pairs))
        if len(statements) > 1:
            rows = [[probes[name.id, s] for s in statements] for name in names]
            bits = np.moveaxis(np.array(rows, dtype=np.float64), 2, 0)
            yield _CategoryBits(groups, names, statements, bits)


def _is_finding(edge: Any) -> bool:
    return bool(edge.verdict == BELIEVED and edge.names >= MIN_NAMES)


def _record_retries(
    training: BeliefTest, held_out: BeliefTest, groups: Sequence[int], retries: _Retries
) -> None:
    """Try what one half believes in the other half."""
    for g in groups:
        believed = training.is_believed[g]
        retries.positive.extend((held_out.lift[g][believed] > 0).tolist())
        is_significant = held_out.p_zeros[g][believed] < SIGNIFICANCE_LEVEL
        retries.significant.extend(is_significant.tolist())


def _record_significance(
    table: _CategoryBits,
    held_out: BeliefTest,
    findings: set[FindingKey],
    significant: dict[FindingKey, list[bool]],
) -> None:
    for g, group in enumerate(table.groups):
        for s, statement in enumerate(table.statements):
            if (group, statement) in findings:
                significant.setdefault((group, statement), []).append(
                    bool(held_out.p_zeros[g, s] < SIGNIFICANCE_LEVEL)
                )


def _record_retest(
    table: _CategoryBits,
    test: BeliefTest,
    findings: set[FindingKey],
    signs: dict[FindingKey, bool],
    shows: dict[FindingKey, bool],
) -> None:
    for group_index, group in enumerate(table.groups):
        for statement_index, statement in enumerate(table.statements):
            if (group, statement) in findings:
                signs[group, statement] = bool(test.lift[group_index, statement_index] > 0)
                shows[group, statement] = bool(
                    test.p_zeros[group_index, statement_index] < SIGNIFICANCE_LEVEL
                )


def _probes_by_names(run: StoredRun) -> str:
    """What probes a run by names."""
    return how("run.evidence(MODEL)", f"kgbias evidence {run.name} --model SPEC")


def _replicate_in_crawl(
    findings: set[FindingKey], other: StoredRun, belief_run: BeliefRun
) -> ReplicationRate:
    """The findings in another run, for those whose statements it probed."""
    other_beliefs = read_beliefs(other, belief_run.model.title)
    if other_beliefs is None:
        raise UsageError(
            f"run {other.name!r} was not probed by names with {belief_run.model.title}: "
            f"{_probes_by_names(other)} does that"
        )
    edges = {(e.group_id, e.statement_id): e for e in other_beliefs.edges if e.names >= MIN_NAMES}
    shared_findings = sorted(findings & edges.keys())
    shows = {place: edges[place].p_zero < SIGNIFICANCE_LEVEL for place in shared_findings}
    return _summarise_retries(
        "crawl",
        [edges[place].lift > 0 for place in shared_findings],
        list(shows.values()),
        _list_missed(shows),
    )


def _list_missed(shows: Mapping[FindingKey, bool]) -> list[FindingKey]:
    return [place for place, shown in shows.items() if not shown]


def _summarise_retries(
    by: str, signs: Sequence[bool], shows: Sequence[bool], missed: Sequence[FindingKey]
) -> ReplicationRate:
    same_share, found_share = (
        proportion(sum(outcomes), len(outcomes)) for outcomes in (signs, shows)
    )
    # Splits share their names, so they are no independent trials, which an interval would need.
    if by in ("names", "roots"):
        same_share, found_share = (
            Estimate.missing(e.n, e.value) for e in (same_share, found_share)
        )
    return ReplicationRate(by, len(signs), same_share, found_share, tuple(missed))
