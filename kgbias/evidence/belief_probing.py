"""What a model believes about the groups of a run: probes by the groups' names, the test of each
lift, and what the same test finds for made-up names.

Names and words that no run said are kept first, then probes, some at a time, so a stopped call goes
on where it was. The edges are written as a whole and, last, the record, which finishes it.
"""

import math
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, NamedTuple

import numpy as np

from kgbias.evidence.indicators import Indicators
from kgbias.evidence.names import declared_indicators
from kgbias.evidence.probe_plan import (
    ProbePlan,
    ProbeSettings,
    build_stem,
    default_carriers,
    plan_probes,
)
from kgbias.graph.selection import Selection, select_statements
from kgbias.graph.store import StoredRun
from kgbias.graph.types import BeliefRun, BelievedEdge, Group, GroupName, NameProbe, TripleView
from kgbias.io.progress import Progress, SilentProgress
from kgbias.measures import get_measure
from kgbias.models.score.base import Array
from kgbias.models.score.distributed import AnyScorer, iter_grids
from kgbias.probe.belief import (
    BeliefFloor,
    BeliefTest,
    NameDesign,
    carrier_phrase_variance,
    deal_names,
    find_names_like_other_groups,
    name_lifts,
    regress_out_covariates,
)
from kgbias.probe.group_figures import GroupFigure, NonceNames, group_figures
from kgbias.probe.result import Statement
from kgbias.stats.estimate import nan_to_none

_CHUNK_PROBES = 1024  # probes between two saves: so few that processes end together

ProbeBits = dict[tuple[str, str], tuple[float, ...]]  # bits per carrier, by name and statement


def probe_beliefs(
    run: StoredRun,
    scorer: AnyScorer,
    probe_settings: ProbeSettings | None = None,
    *,
    indicators: Indicators | None = None,
    selection: Selection | None = None,
    progress: Progress | None = None,
) -> BeliefRun:
    """Probe a run's statements by the names of its groups, test what is believed, and write both.
    What the store holds is not asked again, so a stopped call continues when it is called again.
    `selection` says which statements count, `indicators` where names are declared.

    Raises DataError if there is nothing to ask.
    """
    reporter, probe_settings = progress or SilentProgress(), probe_settings or ProbeSettings()
    triples = select_statements(run, selection).triples
    plans, carriers = _plan_belief_run(run, probe_settings, indicators, triples)
    settings = (*scorer.settings, *((f"carrier {n}", c) for n, c in enumerate(carriers, 1)))
    belief_run = BeliefRun(scorer.info, settings)
    probe_bits, probe_seconds = score_plans(run, scorer, belief_run, carriers, plans, reporter)
    edges, record = judge_beliefs(plans, probe_bits, triples, probe_settings, reporter)
    run.put(BelievedEdge, edges, asking=belief_run)
    record |= {
        "tier": scorer.convention.tier,
        "carriers": list(carriers),
        "floor_is": probe_settings.floor,
        "seed": probe_settings.seed,
        "probes": probe_settings.probes,
        "marked": list(probe_settings.marked),
        "selection": (selection or Selection()).as_dict(),
        "took": {"seconds": probe_seconds or _read_probe_seconds(run, belief_run)},  # for one probe
        "given": {
            s.id: [s.predicate, s.object]
            for p in plans
            for s in p.statements
            if s.id in p.given_ids
        },
    }
    belief_run = replace(belief_run, record=nan_to_none(record))
    run.put(BeliefRun, [belief_run])
    return belief_run


def _read_probe_seconds(run: StoredRun, belief_run: BeliefRun) -> float:
    """What a probe took in the last call that asked the model anything; 0 if none did."""
    record = next((b.record for b in run.find_all(BeliefRun) if b.id == belief_run.id), {})
    return float(record.get("took", {}).get("seconds", 0.0))


class PlannedProbes(NamedTuple):
    """The plans by which beliefs are probed, and the carriers."""

    plans: list[ProbePlan]
    carriers: tuple[str, ...]


def plan_belief_run(
    run: StoredRun,
    probe_settings: ProbeSettings | None = None,
    *,
    indicators: Indicators | None = None,
    selection: Selection | None = None,
) -> PlannedProbes:
    """What `probe_beliefs` asks."""
    return _plan_belief_run(
        run,
        probe_settings or ProbeSettings(),
        indicators,
        select_statements(run, selection).triples,
    )


def _plan_belief_run(
    run: StoredRun,
    probe_settings: ProbeSettings,
    indicators: Indicators | None,
    triples: Sequence[TripleView],
) -> PlannedProbes:
    carriers = tuple(dict.fromkeys(probe_settings.carriers or default_carriers(run)))
    plans = plan_probes(run, indicators or declared_indicators(run), probe_settings, triples)
    return PlannedProbes(plans, carriers)


class JudgedBeliefs(NamedTuple):
    """The edges between groups and statements, and the record of the believing."""

    edges: list[BelievedEdge]
    record: dict[str, Any]


class ScoredProbes(NamedTuple):
    """The bits of every name and statement, and the seconds that the model took for a probe, 0 if
    it was asked none."""

    bits: ProbeBits
    probe_seconds: float


def judge_beliefs(
    plans: Sequence[ProbePlan],
    probe_bits: ProbeBits,
    triples: Sequence[TripleView],
    probe_settings: ProbeSettings,
    progress: Progress | None = None,
) -> JudgedBeliefs:
    """The results of the probes. The record has, by category, the floor, the figures of groups, and
    how names differ."""
    reporter = progress or SilentProgress()
    reporter.stage("what is believed", len(plans))
    edges: list[BelievedEdge] = []
    record: dict[str, Any] = {"categories": [], "groups": [], "floor": [], "names": {}}
    scores = _average_scores(triples)
    for plan in plans:
        judged = _judge_category(plan, probe_bits, scores, probe_settings)
        edges += judged.edges
        for name, value in judged.record.items():
            if isinstance(value, dict):
                record[name] |= value
            else:
                record[name] += value
        reporter.advance()
    return JudgedBeliefs(edges, record)


def score_plans(
    run: StoredRun,
    scorer: AnyScorer,
    belief_run: BeliefRun,
    carriers: Sequence[str],
    plans: Sequence[ProbePlan],
    progress: Progress,
) -> ScoredProbes:
    """The bits of every name and statement of the plans, from the store or else from the model."""
    probe_bits: ProbeBits = {
        (p.name_id, p.statement_id): p.bits for p in run.find_all(NameProbe, asking=belief_run)
    }
    # What the store needs to name the probes goes there first: names, and words that no run said.
    blocks_wanted = [block for plan in plans for block in plan.blocks]
    given_statements = [s for plan in plans for s in plan.statements if s.id in plan.given_ids]
    run.store.keep_statements([(s.predicate, s.object) for s in given_statements])
    run.store.save_names(
        list({(n.id, n.group_id): n for names, _ in blocks_wanted for n in names}.values())
    )
    missing_blocks = list(_iter_missing(blocks_wanted, probe_bits, len(carriers)))
    if missing_blocks:
        total = sum(len(names) * (len(statements) + 1) for names, statements in missing_blocks)
        progress.stage(f"names before statements, {scorer.info.title}", total * len(carriers))
    stems = [
        [build_stem(c, name) for name in names for c in carriers] for names, _ in missing_blocks
    ]
    blocks = [
        (block_stems, [s.text for s in block_statements])
        for block_stems, (_, block_statements) in zip(stems, missing_blocks, strict=True)
    ]
    # Ask for the rest, and save each piece as it comes.
    began, known_before = time.monotonic(), len(probe_bits)
    for number, grid in iter_grids(scorer, blocks, progress, surprisals=False):
        names, statements = missing_blocks[number]
        log2_likelihoods = grid.statement.log_likelihoods / math.log(2)
        bits = np.round(log2_likelihoods.reshape(len(names), len(carriers), len(statements)), 4)
        probes = [
            NameProbe(*statement.key, name.id, tuple(bits[n, :, s].tolist()))
            for n, name in enumerate(names)
            for s, statement in enumerate(statements)
        ]
        run.put(NameProbe, probes, asking=belief_run)
        probe_bits |= {(p.name_id, p.statement_id): p.bits for p in probes}
    if not missing_blocks:
        return ScoredProbes(probe_bits, 0.0)
    probe_count = len(carriers) * (len(probe_bits) - known_before)
    return ScoredProbes(probe_bits, round((time.monotonic() - began) / probe_count, 7))


def _iter_missing(
    blocks: Iterable[tuple[Sequence[GroupName], Sequence[Statement]]],
    probe_bits: ProbeBits,
    carriers: int,
) -> Iterator[tuple[list[GroupName], list[Statement]]]:
    """What is not known yet, in pieces that are saved together: some names, and the statements that
    they lack. Names stay whole, so that each name's beginning is read once."""
    lacking_by_name: dict[str, tuple[GroupName, dict[str, Statement]]] = {}
    for names, statements in blocks:
        for name in names:
            lacking_statements = lacking_by_name.setdefault(name.id, (name, {}))[1]
            lacking_statements |= {s.id: s for s in statements if (name.id, s.id) not in probe_bits}
    names_by_gap: dict[tuple[str, ...], list[GroupName]] = {}
    statements_by_gap: dict[tuple[str, ...], list[Statement]] = {}
    for name, lacking_statements in lacking_by_name.values():
        if lacking_statements:
            names_by_gap.setdefault(tuple(lacking_statements), []).append(name)
            statements_by_gap[tuple(lacking_statements)] = list(lacking_statements.values())
    for key, names in names_by_gap.items():
        step = max(1, _CHUNK_PROBES // (carriers * len(key)))
        for start in range(0, len(names), step):
            yield names[start : start + step], statements_by_gap[key]


def stack_bits(
    probe_bits: ProbeBits, names: Sequence[GroupName], statements: Sequence[Statement]
) -> Array:
    """The bits of names before statements, [carriers, names, statements]."""
    rows = [[probe_bits[name.id, s.id] for s in statements] for name in names]
    return np.moveaxis(np.array(rows, dtype=np.float64), 2, 0)


class _BitsSource:
    """The bits of names before all or some statements of a category."""

    def __init__(self, probe_bits: ProbeBits, statements: Sequence[Statement]) -> None:
        self._probe_bits, self._statements = probe_bits, statements

    def select_bits(self, names: Sequence[GroupName], places: Sequence[int] | None = None) -> Array:
        chosen = [self._statements[n] for n in places] if places is not None else self._statements
        return stack_bits(self._probe_bits, names, chosen)


def _judge_category(
    plan: ProbePlan,
    probe_bits: ProbeBits,
    scores: Mapping[str, Mapping[str, float]],
    probe_settings: ProbeSettings,
) -> JudgedBeliefs:
    """The edges of a category, and its record."""
    probes = _BitsSource(probe_bits, plan.statements)
    edges: list[BelievedEdge] = []
    summary: dict[str, Any] = {"floor": [], "groups": [], "names": {}}
    line: dict[str, Any] = {
        "category": plan.category,
        "statements": len(plan.statements),
        "not_probed": plan.unprobed_count,
        "naming": sorted(plan.naming_ids),
        "too_few_names": [g.name for g in plan.small_groups],
    }
    if plan.groups and len(plan.statements) > 1:
        comparison = _GroupComparison(plan, probes)
        edges += comparison.iter_edges()
        summary["floor"] = comparison.measure_floors(probe_settings)
        summary["groups"] = comparison.build_figures(scores, probe_settings.seed)
        summary["names"] = comparison.describe_names()
        believed = comparison.test.is_believed
        line |= {
            "pairs": believed.size,
            "believed": int(believed.sum()),
            **comparison.measure_sensitivity(),
        }
    for group in plan.small_groups if len(plan.floor_indices) > 1 else ():
        edges += _iter_edges_against_nonce(plan, group, probes)
    summary["categories"] = [line]
    return JudgedBeliefs(edges, summary)


class _GroupComparison:
    """The groups of a category, compared with each other."""

    def __init__(self, plan: ProbePlan, probes: _BitsSource) -> None:
        self.plan, self.probes = plan, probes
        names = self.tested_names = plan.tested_names
        places = {group.id: n for n, group in enumerate(plan.groups)}
        self.group_indices = [places[name.group_id] for name in names]
        self.forms = [name.form for name in names]
        self.design = NameDesign(self.group_indices, [name.root for name in names], self.forms)
        bits_by_carrier = probes.select_bits(names)
        self.shared_variance, self.bits = (
            carrier_phrase_variance(self.design, bits_by_carrier),
            bits_by_carrier.mean(axis=0),
        )
        self.test = self.design.test(self.bits, shared=self.shared_variance)
        nonce = probes.select_bits(plan.nonce_names[: len(names)], plan.floor_indices)
        self.nonce_shared, self.nonce_bits = (
            carrier_phrase_variance(self.design, nonce),
            nonce.mean(axis=0),
        )

    def iter_edges(self) -> Iterator[BelievedEdge]:
        for group_index, group in enumerate(self.plan.groups):
            group_names = [n for n, place in enumerate(self.group_indices) if place == group_index]
            yield from _iter_edges(
                self.test,
                group_index,
                group.id,
                self.plan.statements,
                self.tested_names,
                len(group_names),
            )

    def measure_floors(self, probe_settings: ProbeSettings) -> list[dict[str, Any]]:
        """What is found for made-up names, for residuals of real names and, if they were asked,
        for groups in real words."""
        design = NameDesign(self.group_indices, forms=self.forms)
        forms, seed = self.forms, probe_settings.seed
        floors = [
            (
                "nonce",
                deal_names(design, self.nonce_bits, forms, shared=self.nonce_shared, seed=seed),
            ),
            ("residuals", deal_names(design, design.residuals(self.bits), forms, seed=seed)),
        ]
        if self.plan.placebo_names:
            floors.append(("placebo", self._placebo_floor()))
        return [{"category": self.plan.category, "kind": k, **asdict(f)} for k, f in floors]

    def _placebo_floor(self) -> BeliefFloor:
        """The floor from groups in real words as they are; nothing is dealt."""
        sets = list(self.plan.placebo_names.values())
        names = [name for placebo_names in sets for name in placebo_names]
        group_indices = [n for n, placebo_names in enumerate(sets) for _ in placebo_names]
        design = NameDesign(group_indices, [n.root for n in names], [n.form for n in names])
        bits_by_carrier = self.probes.select_bits(names)
        believed = design.test(
            bits_by_carrier.mean(axis=0), shared=carrier_phrase_variance(design, bits_by_carrier)
        ).is_believed
        any_share = float(believed.any(axis=1).mean())
        return BeliefFloor(believed.size, float(believed.sum()), any_share, 1)

    def build_figures(
        self, scores: Mapping[str, Mapping[str, float]], seed: int
    ) -> list[dict[str, Any]]:
        statements = self.plan.statements
        tables = {}
        for measure, by_words in scores.items():
            # A statement that names a group would tie it to that group by the name.
            values = [
                math.nan if s.id in self.plan.naming_ids else by_words.get(s.words, math.nan)
                for s in statements
            ]
            tables[measure] = np.array(values)
        nonce = NonceNames(self.nonce_bits, np.array(self.plan.floor_indices, dtype=np.int64))
        figures = group_figures(self.design, self.bits, tables, nonce=nonce, seed=seed)
        return [self._figure_record(figure) for figure in figures]

    def _figure_record(self, figure: GroupFigure) -> dict[str, Any]:
        group = self.plan.groups[figure.group]
        group_names = [name.text for name in self.plan.names_by_group[group.id]]
        values = {name: value for name, value in asdict(figure).items() if name != "of_names"}
        values_by_name = dict(zip(group_names, figure.of_names, strict=True))
        return {
            **values,
            "category": self.plan.category,
            "group": group.name,
            "names": values_by_name,
        }

    def describe_names(self) -> dict[str, Any]:
        """For each name, how far it agrees with its group, and the group it agrees with instead."""
        lifts = name_lifts(self.design, self.bits)
        stray_groups = find_names_like_other_groups(self.design, self.bits)
        descriptions = {}
        for name_index, name in enumerate(self.tested_names):
            group_lift = self.test.lift[self.group_indices[name_index]]
            rms_distance = float(np.sqrt(np.mean((lifts[name_index] - group_lift) ** 2)))
            nearest_group = (
                self.plan.groups[stray_groups[name_index]].name
                if name_index in stray_groups
                else ""
            )
            descriptions[name.id] = {
                "text": name.text,
                "apart": round(rms_distance, 3),
                "goes_with": nearest_group,
            }
        return descriptions

    def measure_sensitivity(self) -> dict[str, Any]:
        """What is believed when the length of statements and their own probability are regressed
        out, name by name, and how much of that was believed before."""
        tokens = np.array([len(s.text.split()) for s in self.plan.statements], dtype=np.float64)
        if len(tokens) < 5:
            return {}
        bits = regress_out_covariates(self.bits, tokens, self.bits.mean(axis=0))
        adjusted_believed = self.design.test(bits, shared=self.shared_variance).is_believed
        both_believed = int((adjusted_believed & self.test.is_believed).sum())
        return {"adjusted_believed": int(adjusted_believed.sum()), "adjusted_both": both_believed}


def _iter_edges_against_nonce(
    plan: ProbePlan, group: Group, probes: _BitsSource
) -> Iterator[BelievedEdge]:
    """Edges of a group of few names, which is compared with made-up names."""
    names = plan.names_by_group[group.id]
    bits_by_carrier = probes.select_bits([*plan.reference_names, *names], plan.floor_indices)
    design = NameDesign([0] * len(plan.reference_names) + [1] * len(names), against=0)
    test = design.test(bits_by_carrier.mean(axis=0), shared=0.0)
    statements = [plan.statements[n] for n in plan.floor_indices]
    yield from _iter_edges(
        test, 1, group.id, statements, [*plan.reference_names, *names], len(names)
    )


def _iter_edges(
    test: BeliefTest,
    group_index: int,
    group_id: str,
    statements: Sequence[Statement],
    names: Sequence[GroupName],
    count: int,
) -> Iterator[BelievedEdge]:
    for statement_index, statement in enumerate(statements):
        influential = int(test.most_influential[group_index, statement_index])
        lift, low, high = (
            round(float(table[group_index, statement_index]), 5)
            for table in (test.lift, test.low, test.high)
        )
        yield BelievedEdge(
            *statement.key,
            group_id,
            lift=lift,
            low=low,
            high=high,
            names=count,
            p_value=float(test.p_values[group_index, statement_index]),
            q_value=float(test.q_values[group_index, statement_index]),
            p_zero=float(test.p_zeros[group_index, statement_index]),
            q_zero=float(test.q_zeros[group_index, statement_index]),
            min_loo_lift=round(float(test.min_loo_lift[group_index, statement_index]), 5),
            most_influential_name=names[influential].text if influential >= 0 else "",
            verdict=str(test.verdicts[group_index, statement_index]),
        )


def _average_scores(triples: Sequence[TripleView]) -> dict[str, dict[str, float]]:
    """The score of each statement, by measure and by its words: the mean over the triples that
    state it."""
    scores: dict[str, dict[str, list[float]]] = {}
    for triple in {triple.id: triple for triple in triples}.values():
        words = Statement(triple.predicate, triple.object).words
        for measure, score in triple.scores.items():
            if get_measure(measure).compares:
                scores.setdefault(measure, {}).setdefault(words, []).append(score.value)
    return {
        measure: {words: float(np.mean(values)) for words, values in scores_by_words.items()}
        for measure, scores_by_words in scores.items()
    }
