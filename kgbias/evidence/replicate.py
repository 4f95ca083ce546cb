"""Whether a model's beliefs are found again: with names held out, with other carriers, or in
another crawl."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from kgbias.associate.indicators import Indicators
from kgbias.errors import UsageError
from kgbias.evidence.asked import Asking, default_carriers
from kgbias.evidence.believe import planned, probed, tables
from kgbias.evidence.joint import read_beliefs
from kgbias.evidence.names import FEWEST
from kgbias.graph.selection import Selection
from kgbias.graph.store import StoredRun
from kgbias.graph.types import BeliefRun, GroupName
from kgbias.io.progress import Progress, SilentProgress
from kgbias.io.rows import Result, Rows
from kgbias.io.wording import how
from kgbias.models.score.base import Array
from kgbias.models.score.distributed import AnyScorer
from kgbias.probe.belief import BELIEVED, LEVEL, Design, Tested, carried
from kgbias.stats.estimate import Estimate
from kgbias.stats.inference import proportion

SPLITS = 10
OTHERS = ("As we all know,", "Some answers:", "It is said that")
"""Carriers to retry findings with, if the run was not asked with them."""

Place = tuple[str, str]  # group id, statement id


@dataclass(frozen=True, slots=True)
class Again:
    """How often findings are found again in one way.

    Attributes:
        by: "names" (found with half of each group's names, tried with the other half), "roots"
            (found with the names of one root, tried with the others), "carriers" or "crawl".
        tried: how many findings were tried; for names and roots, over all splits.
        same_sign: the share with a lift above 0 when tried. Names and roots have no interval: a
            finding is tried in many splits, which are not independent draws.
        found_again: the share that is significant there (p < .05, one-sided, against 0, each by
            itself).
        missed: group and statement, by id, of findings of the run that were not found again; for
            names, found in less than half of the halves.
    """

    by: str
    tried: int
    same_sign: Estimate
    found_again: Estimate
    missed: Sequence[Place] = ()


@dataclass(frozen=True, slots=True, repr=False)
class Replication(Result):
    """The findings of a believing, tried again; `of_finding` has, for each finding, the share of
    halves of its group's names that show it alone."""

    believing: BeliefRun
    ways: Sequence[Again]
    of_finding: Mapping[Place, float] = field(default_factory=dict)

    def as_rows(self) -> Rows[Again]:
        """The ways. Columns: by, tried, same_sign, found_again, found_again_low and
        found_again_high (shares, in [0, 1])."""
        return Rows(
            self.ways,
            lambda way: {
                "by": way.by,
                "tried": way.tried,
                "same_sign": way.same_sign.value,
                "found_again": way.found_again.value,
                "found_again_low": way.found_again.low,
                "found_again_high": way.found_again.high,
            },
            ("by", "tried", "same_sign", "found_again", "found_again_low", "found_again_high"),
        )


@dataclass(frozen=True, slots=True)
class _Table:
    """The names of the groups of a category before statements: `bits` [carriers, names,
    statements]."""

    groups: tuple[str, ...]
    names: tuple[GroupName, ...]
    statements: tuple[str, ...]
    bits: Array

    def test(self, kept: Sequence[int]) -> Tested:
        """The test with these names alone."""
        design, bits = self._design(kept), self.bits[:, list(kept)]
        return design.test(bits.mean(axis=0), shared=carried(design, bits))

    def can_test(self, *parts: Sequence[int]) -> bool:
        """Whether each of these lists of names leaves a degree of freedom: one name for each group
        says nothing of how much names of a group differ."""
        return all(self._design(kept).degrees > 0 for kept in parts)

    def _design(self, kept: Sequence[int]) -> Design:
        places = [self.groups.index(self.names[n].group_id) for n in kept]
        return Design(places, forms=[self.names[n].form for n in kept])

    def halves(self, rng: np.random.Generator) -> tuple[list[int], list[int]]:
        """The names of each group, split into halves."""
        first: list[int] = []
        for group in self.groups:
            own = [n for n, name in enumerate(self.names) if name.group_id == group]
            first += rng.permutation(own)[: len(own) // 2].tolist()
        return sorted(first), [n for n in range(len(self.names)) if n not in set(first)]

    def by_root(self, turn: int) -> tuple[list[int], list[int], list[int]] | None:
        """The names of each group in two parts: those of its first root, and the rest; for a group
        with one root, halves. Also the places of the groups with several roots; None if no group
        has several."""
        parts: tuple[list[int], list[int]] = [], []
        several = []
        for g, group in enumerate(self.groups):
            own = [n for n, name in enumerate(self.names) if name.group_id == group]
            first = [n for n in own if self.names[n].root == self.names[own[0]].root]
            if len(first) < len(own):
                several.append(g)
            else:
                first = own[::2]
            rest = [n for n in own if n not in first]
            parts[turn].extend(first)
            parts[1 - turn].extend(rest)
        return (*parts, several) if several else None


def replicate(
    run: StoredRun,
    *,
    model: str | None = None,
    other: StoredRun | None = None,
    splits: int = SPLITS,
    seed: int = 0,
) -> Replication:
    """Try the findings of a run again with names held out, from what the store holds; and in
    `other`, another run that was probed by names. `model` says whose findings.

    Raises UsageError for a run that was not probed by names.
    """
    found = read_beliefs(run, model)
    if found is None:
        raise UsageError(
            f"run {run.name!r} was not probed by names: {_probes_by_names(run)} does that"
        )
    believing, edges = found
    findings = {(e.group_id, e.statement_id) for e in edges if _finding(e)}
    ways, shares = _by_names(run, believing, findings, splits, seed)
    if other is not None:
        ways.append(_by_crawl(findings, other, believing))
    return Replication(believing, ways, shares)


def keep(run: StoredRun, found: Replication) -> None:
    """Write the results to the record of the believing, which `Evidence.found_again` comes from."""
    ways = {
        way.by: {
            "tried": way.tried, "same_sign": way.same_sign.as_dict(),
            "found_again": way.found_again.as_dict(), "missed": [list(p) for p in way.missed],
        }
        for way in found.ways
    }  # fmt: skip
    before = found.believing.record.get("replicated", {})
    shares = {
        f"{group} {statement}": share for (group, statement), share in found.of_finding.items()
    }
    record = {
        **found.believing.record, "replicated": {**before, **ways}, "found_again": shares,
    }  # fmt: skip
    run.save_belief_run(replace(found.believing, record=record))


def with_carriers(
    run: StoredRun,
    scorer: AnyScorer,
    replication: Replication,
    *,
    carriers: Sequence[str] | None = None,
    indicators: Indicators | None = None,
    progress: Progress | None = None,
) -> Again:
    """Try the findings again with other carriers. This takes as many probes as finding them did,
    without the floor; what the store holds is not asked again."""
    told = progress or SilentProgress()
    record = replication.believing.record
    before = record.get("carriers", [])
    mixed = dict.fromkeys((*default_carriers(run, 9), *OTHERS))
    carriers = tuple(carriers or [c for c in mixed if c not in before][:3])
    names = {n.id for n in run.names(replication.believing.id)}
    asking = Asking(
        probes=int(record.get("probes", Asking().probes)), carriers=carriers,
        marked=record.get("marked", ()), seed=int(record.get("seed", 0)),
    )  # fmt: skip
    selection = Selection(**record.get("selection", {}))
    plans, _ = planned(run, asking, indicators=indicators, selection=selection)
    plans = [plan.without_nonce() for plan in plans]
    settings = (*scorer.settings, *((f"carrier {n}", c) for n, c in enumerate(carriers, 1)))
    again = BeliefRun(scorer.info, settings)
    known, _ = probed(run, scorer, again, carriers, plans, told)
    findings = {
        (e.group_id, e.statement_id) for e in run.beliefs(replication.believing.id) if _finding(e)
    }
    signs: dict[Place, bool] = {}
    shows: dict[Place, bool] = {}
    for plan in plans:
        if not plan.groups or not names:
            continue
        listed = plan.tested
        groups = tuple(group.id for group in plan.groups)
        statements = tuple(s.id for s in plan.statements)
        table = _Table(groups, listed, statements, tables(known, listed, plan.statements))
        _note(table, table.test(range(len(listed))), findings, signs, shows)
    return _again("carriers", list(signs.values()), list(shows.values()), _not(shows))


def _by_names(
    run: StoredRun, believing: BeliefRun, findings: set[Place], splits: int, seed: int
) -> tuple[list[Again], dict[Place, float]]:
    rng = np.random.Generator(np.random.PCG64(seed))
    shown: dict[Place, list[bool]] = {}
    kept: dict[str, list[list[bool]]] = {"names": [[], []], "roots": [[], []]}
    missed: dict[str, list[Place]] = {"names": [], "roots": []}
    for table in _stored_tables(run, believing):
        for _ in range(splits):
            pair = table.halves(rng)
            if not table.can_test(*pair):
                continue
            tests = [table.test(half) for half in pair]
            for one, held in (tests, tests[::-1]):
                _tried(one, held, range(len(table.groups)), kept["names"])
                _shown(table, held, findings, shown)
        for turn in (0, 1):
            split = table.by_root(turn)
            if split is None:
                continue
            first, rest, several = split
            if not table.can_test(first, rest):
                continue
            one, held = table.test(first), table.test(rest)
            _tried(one, held, several, kept["roots"])
            places = {(table.groups[g], s) for g in several for s in table.statements}
            of_roots: dict[Place, list[bool]] = {}
            _shown(table, held, findings & places, of_roots)
            missed["roots"] += [p for p, values in of_roots.items() if not all(values)]
    shares = {place: float(np.mean(values)) for place, values in shown.items()}
    missed["names"] = [place for place, share in shares.items() if share < 0.5]
    ways = [
        _again(by, signs, shows, sorted(set(missed[by]))) for by, (signs, shows) in kept.items()
    ]
    return ways, shares


def _stored_tables(run: StoredRun, believing: BeliefRun) -> Iterator[_Table]:
    """The probes in the store for a believing, by category."""
    probes = {(p.name_id, p.statement_id): p.bits for p in run.name_probes(believing.id)}
    category = {group.id: group.category for group in run.groups}
    own: dict[str, list[GroupName]] = {}
    for name in run.names(believing.id):
        if name.group_id in category:
            own.setdefault(name.group_id, []).append(name)
    asked: dict[str, set[str]] = {}
    for name_id, statement_id in probes:
        asked.setdefault(name_id, set()).add(statement_id)
    judged = {(e.group_id, e.statement_id) for e in run.beliefs(believing.id)}
    for each in dict.fromkeys(category.values()):
        groups = tuple(
            g for g, c in category.items() if c == each and len(own.get(g, ())) >= FEWEST
        )
        names = tuple(name for g in groups for name in own[g])
        if len(groups) < 2:
            continue
        shared = set.intersection(*(asked.get(name.id, set()) for name in names))
        statements = tuple(sorted(s for s in shared if (groups[0], s) in judged))
        if len(statements) > 1:
            rows = [[probes[name.id, s] for s in statements] for name in names]
            bits = np.moveaxis(np.array(rows, dtype=np.float64), 2, 0)
            yield _Table(groups, names, statements, bits)


def _finding(edge: Any) -> bool:
    return bool(edge.verdict == BELIEVED and edge.names >= FEWEST)


def _tried(one: Tested, held: Tested, groups: Sequence[int], kept: list[list[bool]]) -> None:
    """Try what one half believes in the other half."""
    for g in groups:
        believed = one.believed[g]
        kept[0] += (held.lift[g][believed] > 0).tolist()
        kept[1] += (held.p_zeros[g][believed] < LEVEL).tolist()


def _shown(
    table: _Table, held: Tested, findings: set[Place], shown: dict[Place, list[bool]]
) -> None:
    for g, group in enumerate(table.groups):
        for s, statement in enumerate(table.statements):
            if (group, statement) in findings:
                shown.setdefault((group, statement), []).append(bool(held.p_zeros[g, s] < LEVEL))


def _note(
    table: _Table,
    test: Tested,
    findings: set[Place],
    signs: dict[Place, bool],
    shows: dict[Place, bool],
) -> None:
    for g, group in enumerate(table.groups):
        for s, statement in enumerate(table.statements):
            if (group, statement) in findings:
                signs[group, statement] = bool(test.lift[g, s] > 0)
                shows[group, statement] = bool(test.p_zeros[g, s] < LEVEL)


def _probes_by_names(run: StoredRun) -> str:
    """What probes a run by names."""
    return how("run.evidence(MODEL)", f"kgbias evidence {run.name} --model SPEC")


def _by_crawl(findings: set[Place], other: StoredRun, believing: BeliefRun) -> Again:
    """The findings in another run, for those whose statements it probed."""
    found = read_beliefs(other, believing.model.title)
    if found is None:
        raise UsageError(
            f"run {other.name!r} was not probed by names with {believing.model.title}: "
            f"{_probes_by_names(other)} does that"
        )
    edges = {(e.group_id, e.statement_id): e for e in found[1] if e.names >= FEWEST}
    both = sorted(findings & edges.keys())
    shows = {place: edges[place].p_zero < LEVEL for place in both}
    return _again(
        "crawl", [edges[place].lift > 0 for place in both], list(shows.values()), _not(shows)
    )


def _not(shows: Mapping[Place, bool]) -> list[Place]:
    return [place for place, shown in shows.items() if not shown]


def _again(by: str, signs: Sequence[bool], shows: Sequence[bool], missed: Sequence[Place]) -> Again:
    same, found = (proportion(sum(told), len(told)) for told in (signs, shows))
    if by in ("names", "roots"):
        same, found = (Estimate.missing(e.n, e.value) for e in (same, found))
    return Again(by, len(signs), same, found, tuple(missed))
