"""What a model believes about the groups of a run: probes by the groups' names, the test of each
lift, and what the same test finds for made-up names."""

import math
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from kgbias.associate.indicators import Indicators, shipped_indicators
from kgbias.evidence.asked import Asked, Asking, asked, default_carriers, stem
from kgbias.graph.selection import Selection, select_statements
from kgbias.graph.store import StoredRun
from kgbias.graph.types import BelievedEdge, BeliefRun, Group, GroupName, NameProbe, TripleView
from kgbias.io.progress import Progress, SilentProgress
from kgbias.measures import known
from kgbias.models.score.base import Array
from kgbias.models.score.distributed import AnyScorer, iter_grids
from kgbias.probe.belief import (
    Design,
    Floor,
    Tested,
    adjusted,
    carried,
    floor,
    name_lifts,
    strays,
)
from kgbias.probe.group_figures import GroupFigure, Nonce, group_figures
from kgbias.probe.result import Statement
from kgbias.stats.estimate import nan_to_none

_CHUNK = 2048  # probes between two saves

Known = dict[tuple[str, str], tuple[float, ...]]  # bits per carrier, by name and statement


def believe(
    run: StoredRun,
    scorer: AnyScorer,
    asking: Asking | None = None,
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
    told, asking = progress or SilentProgress(), asking or Asking()
    triples = select_statements(run, selection).triples
    plans, carriers = _planned(run, asking, indicators, triples)
    settings = (*scorer.settings, *((f"carrier {n}", c) for n, c in enumerate(carriers, 1)))
    believing = BeliefRun(scorer.info, settings)
    known, took = probed(run, scorer, believing, carriers, plans, told)
    edges, record = decided(plans, known, triples, asking, told)
    run.save_beliefs(believing, edges)
    record |= {
        "tier": scorer.convention.tier, "carriers": list(carriers), "floor_is": asking.floor,
        "seed": asking.seed, "probes": asking.probes, "marked": list(asking.marked),
        "selection": (selection or Selection()).as_dict(),
        "took": {"seconds": took or _took_before(run, believing)},  # for one probe
        "given": {
            s.id: [s.predicate, s.object] for p in plans for s in p.statements if s.id in p.given
        },
    }  # fmt: skip
    believing = replace(believing, record=nan_to_none(record))
    run.save_belief_run(believing)
    return believing


def _took_before(run: StoredRun, believing: BeliefRun) -> float:
    """What a probe took in the last call that asked the model anything; 0 if none did."""
    found = next((b.record for b in run.belief_runs() if b.id == believing.id), {})
    return float(found.get("took", {}).get("seconds", 0.0))


def planned(
    run: StoredRun,
    asking: Asking | None = None,
    *,
    indicators: Indicators | None = None,
    selection: Selection | None = None,
) -> tuple[list[Asked], tuple[str, ...]]:
    """The plans that `believe` asks, and the carriers."""
    return _planned(run, asking or Asking(), indicators, select_statements(run, selection).triples)


def _planned(
    run: StoredRun, asking: Asking, indicators: Indicators | None, triples: Sequence[TripleView]
) -> tuple[list[Asked], tuple[str, ...]]:
    carriers = tuple(dict.fromkeys(asking.carriers or default_carriers(run)))
    return asked(run, indicators or shipped_indicators(), asking, triples), carriers


def decided(
    plans: Sequence[Asked],
    known: Known,
    triples: Sequence[TripleView],
    asking: Asking,
    progress: Progress | None = None,
) -> tuple[list[BelievedEdge], dict[str, Any]]:
    """The results of the probes: the edges between groups and statements, and the record of the
    believing, by category: the floor, the figures of groups, and how names differ."""
    told = progress or SilentProgress()
    told.stage("what is believed", len(plans))
    edges: list[BelievedEdge] = []
    record: dict[str, Any] = {"categories": [], "groups": [], "floor": [], "names": {}}
    scores = _scores(triples)
    for plan in plans:
        own, summary = _category(plan, known, scores, asking)
        edges += own
        for name, part in summary.items():
            if isinstance(part, dict):
                record[name] |= part
            else:
                record[name] += part
        told.advance()
    return edges, record


def probed(
    run: StoredRun,
    scorer: AnyScorer,
    believing: BeliefRun,
    carriers: Sequence[str],
    plans: Sequence[Asked],
    told: Progress,
) -> tuple[Known, float]:
    """The bits of every name and statement of the plans, from the store or else from the model; and
    the seconds that the model took for a probe, 0 if it was asked none."""
    known: Known = {(p.name_id, p.statement_id): p.bits for p in run.name_probes(believing.id)}
    wanted = [block for plan in plans for block in plan.blocks]
    given = [s for plan in plans for s in plan.statements if s.id in plan.given]
    run.store.keep_statements([(s.predicate, s.object) for s in given])
    run.store.save_names(
        list({(n.id, n.group_id): n for names, _ in wanted for n in names}.values())
    )
    new = list(_missing(wanted, known, len(carriers)))
    if new:
        total = sum(len(names) * (len(statements) + 1) for names, statements in new)
        told.stage(f"names before statements, {scorer.info.title}", total * len(carriers))
    stems = [[stem(c, name) for name in names for c in carriers] for names, _ in new]
    blocks = [(own, [s.text for s in part]) for own, (_, part) in zip(stems, new, strict=True)]
    began, before = time.monotonic(), len(known)
    for number, grid in iter_grids(scorer, blocks, told, surprisals=False):
        names, statements = new[number]
        found = grid.statement.log_likelihoods / math.log(2)
        bits = np.round(found.reshape(len(names), len(carriers), len(statements)), 4)
        probes = [
            NameProbe(*statement.key, name.id, tuple(bits[n, :, s].tolist()))
            for n, name in enumerate(names)
            for s, statement in enumerate(statements)
        ]
        run.save_name_probes(believing, probes)
        known |= {(p.name_id, p.statement_id): p.bits for p in probes}
    if not new:
        return known, 0.0
    asked = len(carriers) * (len(known) - before)
    return known, round((time.monotonic() - began) / asked, 7)


def _missing(
    blocks: Iterable[tuple[Sequence[GroupName], Sequence[Statement]]], known: Known, carriers: int
) -> Iterator[tuple[list[GroupName], list[Statement]]]:
    """What is not known yet, in pieces that are saved together: some names, and the statements that
    they lack. Names stay whole, so that each name's beginning is read once."""
    lacking: dict[str, tuple[GroupName, dict[str, Statement]]] = {}
    for names, statements in blocks:
        for name in names:
            own = lacking.setdefault(name.id, (name, {}))[1]
            own |= {s.id: s for s in statements if (name.id, s.id) not in known}
    alike: dict[tuple[str, ...], list[GroupName]] = {}
    texts: dict[tuple[str, ...], list[Statement]] = {}
    for name, own in lacking.values():
        if own:
            alike.setdefault(tuple(own), []).append(name)
            texts[tuple(own)] = list(own.values())
    for key, names in alike.items():
        step = max(1, _CHUNK // (carriers * len(key)))
        for start in range(0, len(names), step):
            yield names[start : start + step], texts[key]


def tables(known: Known, names: Sequence[GroupName], statements: Sequence[Statement]) -> Array:
    """The bits of names before statements, [carriers, names, statements]."""
    rows = [[known[name.id, s.id] for s in statements] for name in names]
    return np.moveaxis(np.array(rows, dtype=np.float64), 2, 0)


class _Probes:
    """The bits of names before all or some statements of a category."""

    def __init__(self, known: Known, statements: Sequence[Statement]) -> None:
        self._known, self._statements = known, statements

    def of(self, names: Sequence[GroupName], places: Sequence[int] | None = None) -> Array:
        chosen = [self._statements[n] for n in places] if places is not None else self._statements
        return tables(self._known, names, chosen)


def _category(
    plan: Asked, known: Known, scores: Mapping[str, Mapping[str, float]], asking: Asking
) -> tuple[list[BelievedEdge], dict[str, Any]]:
    """The edges of a category, and its record."""
    probes = _Probes(known, plan.statements)
    edges: list[BelievedEdge] = []
    summary: dict[str, Any] = {"floor": [], "groups": [], "names": {}}
    line: dict[str, Any] = {
        "category": plan.category, "statements": len(plan.statements), "not_probed": plan.left,
        "naming": sorted(plan.naming), "too_few_names": [g.name for g in plan.few],
    }  # fmt: skip
    if plan.groups and len(plan.statements) > 1:
        found = _Held(plan, probes)
        edges += found.edges()
        summary["floor"] = found.floors(asking)
        summary["groups"] = found.figures(scores, asking.seed)
        summary["names"] = found.names()
        believed = found.test.believed
        line |= {"pairs": believed.size, "believed": int(believed.sum()), **found.sensitivity()}
    for group in plan.few if len(plan.floor) > 1 else ():
        edges += _few(plan, group, probes)
    summary["categories"] = [line]
    return edges, summary


class _Held:
    """The groups of a category, compared with each other."""

    def __init__(self, plan: Asked, probes: _Probes) -> None:
        self.plan, self.probes = plan, probes
        names = self.listed = plan.tested
        places = {group.id: n for n, group in enumerate(plan.groups)}
        self.of_group = [places[name.group_id] for name in names]
        self.forms = [name.form for name in names]
        self.design = Design(self.of_group, [name.root for name in names], self.forms)
        every = probes.of(names)
        self.shared, self.bits = carried(self.design, every), every.mean(axis=0)
        self.test = self.design.test(self.bits, shared=self.shared)
        nonce = probes.of(plan.nonce[: len(names)], plan.floor)
        self.nonce_shared, self.nonce = carried(self.design, nonce), nonce.mean(axis=0)

    def edges(self) -> Iterator[BelievedEdge]:
        for g, group in enumerate(self.plan.groups):
            own = [n for n, place in enumerate(self.of_group) if place == g]
            yield from _edges(self.test, g, group.id, self.plan.statements, self.listed, len(own))

    def floors(self, asking: Asking) -> list[dict[str, Any]]:
        """What is found for made-up names, for residuals of real names and, if they were asked,
        for groups in real words."""
        design = Design(self.of_group, forms=self.forms)
        forms, seed = self.forms, asking.seed
        found = [
            ("nonce", floor(design, self.nonce, forms, shared=self.nonce_shared, seed=seed)),
            ("residuals", floor(design, design.residuals(self.bits), forms, seed=seed)),
        ]
        if self.plan.placebo:
            found.append(("placebo", self._placebo()))
        return [{"category": self.plan.category, "kind": k, **asdict(f)} for k, f in found]

    def _placebo(self) -> Floor:
        """The floor from groups in real words as they are; nothing is dealt."""
        sets = list(self.plan.placebo.values())
        names = [name for own in sets for name in own]
        of_group = [n for n, own in enumerate(sets) for _ in own]
        design = Design(of_group, [n.root for n in names], [n.form for n in names])
        every = self.probes.of(names)
        believed = design.test(every.mean(axis=0), shared=carried(design, every)).believed
        some = float(believed.any(axis=1).mean())
        return Floor(believed.size, float(believed.sum()), some, 1)

    def figures(self, scores: Mapping[str, Mapping[str, float]], seed: int) -> list[dict[str, Any]]:
        statements = self.plan.statements
        tables = {
            measure: np.array(
                [
                    math.nan if s.id in self.plan.naming else of_words.get(s.words, math.nan)
                    for s in statements
                ]
            )
            for measure, of_words in scores.items()
        }
        nonce = Nonce(self.nonce, np.array(self.plan.floor, dtype=np.int64))
        found = group_figures(self.design, self.bits, tables, nonce=nonce, seed=seed)
        return [self._figure(figure) for figure in found]

    def _figure(self, figure: GroupFigure) -> dict[str, Any]:
        group = self.plan.groups[figure.group]
        own = [name.text for name in self.plan.names[group.id]]
        values = {name: value for name, value in asdict(figure).items() if name != "of_names"}
        of_names = dict(zip(own, figure.of_names, strict=True))
        return {**values, "category": self.plan.category, "group": group.name, "names": of_names}

    def names(self) -> dict[str, Any]:
        """For each name, how far it agrees with its group, and the group it agrees with instead."""
        lifts = name_lifts(self.design, self.bits)
        astray = strays(self.design, self.bits)
        found = {}
        for n, name in enumerate(self.listed):
            own = self.test.lift[self.of_group[n]]
            apart = float(np.sqrt(np.mean((lifts[n] - own) ** 2)))
            goes = self.plan.groups[astray[n]].name if n in astray else ""
            found[name.id] = {"text": name.text, "apart": round(apart, 3), "goes_with": goes}
        return found

    def sensitivity(self) -> dict[str, Any]:
        """What is believed when the length of statements and their own probability are regressed
        out, name by name, and how much of that was believed before."""
        tokens = np.array([len(s.text.split()) for s in self.plan.statements], dtype=np.float64)
        if len(tokens) < 5:
            return {}
        bits = adjusted(self.bits, tokens, self.bits.mean(axis=0))
        other = self.design.test(bits, shared=self.shared).believed
        both = int((other & self.test.believed).sum())
        return {"adjusted_believed": int(other.sum()), "adjusted_both": both}


def _few(plan: Asked, group: Group, probes: _Probes) -> Iterator[BelievedEdge]:
    """Edges of a group of few names, which is compared with made-up names."""
    names = plan.names[group.id]
    every = probes.of([*plan.against, *names], plan.floor)
    design = Design([0] * len(plan.against) + [1] * len(names), against=0)
    test = design.test(every.mean(axis=0), shared=0.0)
    statements = [plan.statements[n] for n in plan.floor]
    yield from _edges(test, 1, group.id, statements, [*plan.against, *names], len(names))


def _edges(
    test: Tested,
    g: int,
    group_id: str,
    statements: Sequence[Statement],
    names: Sequence[GroupName],
    count: int,
) -> Iterator[BelievedEdge]:
    for s, statement in enumerate(statements):
        swayed = int(test.swayed[g, s])
        lift, low, high = (
            round(float(table[g, s]), 5) for table in (test.lift, test.low, test.high)
        )
        yield BelievedEdge(
            *statement.key,
            group_id,
            lift=lift,
            low=low,
            high=high,
            names=count,
            p_value=float(test.p_values[g, s]),
            q_value=float(test.q_values[g, s]),
            p_zero=float(test.p_zeros[g, s]),
            q_zero=float(test.q_zeros[g, s]),
            least=round(float(test.least[g, s]), 5),
            swayed_by=names[swayed].text if swayed >= 0 else "",
            verdict=str(test.verdicts[g, s]),
        )


def _scores(triples: Sequence[TripleView]) -> dict[str, dict[str, float]]:
    """The score of each statement, by measure and by its words: the mean over the triples that
    state it."""
    found: dict[str, dict[str, list[float]]] = {}
    for t in {t.id: t for t in triples}.values():
        words = Statement(t.predicate, t.object).words
        for measure, score in t.scores.items():
            if known(measure).compares:
                found.setdefault(measure, {}).setdefault(words, []).append(score.value)
    return {
        measure: {words: float(np.mean(values)) for words, values in own.items()}
        for measure, own in found.items()
    }
