"""The joint view: said, believed and embedded in one row for each triple."""

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from kgbias.crawl.coverage import good_turing_coverage
from kgbias.estimate import Estimate
from kgbias.evidence.agreement import GroupAgreement, kendall
from kgbias.evidence.association import NAMES, associations, spread
from kgbias.evidence.choices import Choices
from kgbias.evidence.row import Evidence
from kgbias.evidence.tables import GroupTable, Key, group_tables
from kgbias.evidence.verdicts import NOT_PROBED, ONLY_SAID, verdict
from kgbias.graph.selection import Counted, Selection, select
from kgbias.graph.stored import StoredRun
from kgbias.graph.types import (
    Generation,
    Group,
    ProbedEdge,
    Probing,
    Run,
    TripleView,
    triple_id,
)
from kgbias.probe.belief import (
    LEVEL,
    MARGIN,
    RANK,
    believed,
    contrast,
    contrast_intervals,
    lift_p_values,
)
from kgbias.probe.result import Statement
from kgbias.statistics import proportion

_SHARED = ("acceptability", "regard", "toxicity")  # measures that do not see the group


@dataclass(frozen=True)
class Joint:
    """The joint view of a run.

    Attributes:
        rows: the triples that count, in the order of the store, then those that were never said.
        agreement: how far the three kinds agree, for each group and arm; empty where the run was
            not probed.
        probing: the probing that it rests on, None without.
        counted: the statements that count.
        missing: what columns are empty, and the command that fills them; one line each.
        level: the corrected p-value up to which a statement is believed.
    """

    rows: Sequence[Evidence]
    agreement: Sequence[GroupAgreement]
    probing: Probing | None
    counted: Counted
    missing: Sequence[str]
    level: float = LEVEL

    @property
    def note(self) -> str:
        """Where nothing is believed, a sentence that says what came nearest; else ""."""
        tested = [row for row in self.rows if row.count and row.rank is not None]
        if not tested or self.by_verdict.keys() - {ONLY_SAID, NOT_PROBED}:
            return ""
        least = min(row.p_value for row in tested)
        own = [row for row in tested if row.p_value == least]
        groups = ", ".join(dict.fromkeys(row.group for row in own))
        many = "statement" if len(own) == 1 else "statements"
        return (
            f"Nothing is believed at a corrected p of {self.level:g}: the smallest is {least:.3f}, "
            f"of {len(own)} {many} about {groups}"
        )

    @cached_property
    def by_verdict(self) -> Mapping[str, list[Evidence]]:
        found: dict[str, list[Evidence]] = defaultdict(list)
        for row in self.rows:
            found[row.verdict].append(row)
        return found


@dataclass(frozen=True, slots=True)
class Parts:
    """What the joint view is made of: a run, the statements that count, all its generations, its
    probings with their edges, and its forced choices."""

    run: Run
    counted: Counted
    generations: Sequence[Generation]
    probes: Sequence[tuple[Probing, Sequence[ProbedEdge]]]
    choices: Choices = field(default_factory=Choices)

    @classmethod
    def read(cls, run: StoredRun, selection: Selection | None, model: str | None = None) -> "Parts":
        """The parts from the store; of the probings, those of the named model."""
        probings = [p for p in run.probings() if model in (None, p.model.name)]
        chosen = _probing(run.record, probings)
        probes = [(chosen, run.probes(chosen))] if chosen else []
        generations, choices = list(run.generations()), Choices.read(run, model)
        return cls(run.record, select(run, selection), generations, probes, choices)


def joint(
    run: StoredRun,
    selection: Selection | None = None,
    *,
    model: str | None = None,
    rank: int = RANK,
    margin: float = MARGIN,
    level: float = LEVEL,
) -> Joint:
    """The joint view of what counts, from what the store holds. `model` names the model whose
    probes are read (None: the run's own, else the first); `rank`, `margin` and `level` are those of
    `kgbias.probe.belief.believed`."""
    parts = Parts.read(run, selection, model)
    return joined(parts, rank=rank, margin=margin, level=level)


def joined(
    parts: Parts,
    *,
    rank: int = RANK,
    margin: float = MARGIN,
    level: float = LEVEL,
) -> Joint:
    """As `joint`, from parts that were read already."""
    run, counted = parts.run, parts.counted
    probing = _probing(run, [p for p, _ in parts.probes])
    stated = [
        (g.triple.group_id, Statement(g.triple.predicate, g.triple.object))
        for g in parts.generations
        if g.triple is not None
    ]
    said = {(group, statement.key) for group, statement in stated}
    edges = next((edges for p, edges in parts.probes if p is probing), [])
    tables = group_tables(run.groups, probing, edges, stated) if probing else {}
    refused = _refused(parts)
    shares = _shares(counted)
    arms: dict[str, list[str]] = defaultdict(list)
    for t in counted.triples:
        arms[t.id].append(t.arm)
    rows: list[Evidence] = []
    agreement: list[GroupAgreement] = []
    embedded = False
    for category in dict.fromkeys(g.category for g in run.groups):
        groups = {g.id: g for g in run.groups if g.category == category}
        own = [t for t in counted.triples if t.group_id in groups]
        table = tables.get(category)
        probe = _Probe(table, probing, {"most": rank, "margin": margin, "level": level})
        embedded |= bool(probe.vectors)
        for t in own:
            rows.append(
                Evidence(
                    **_named(groups[t.group_id], t),
                    id=t.id,
                    arm=t.arm,
                    arms=tuple(arms[t.id]),
                    count=t.count,
                    share=shares[t.arm, t.id],
                    **_scores([t]),
                    **probe.row(t.group_id, Statement(t.predicate, t.object).key, said=True,
                                refused=refused[t.group_id]),
                    **parts.choices.cells(t.group_id, Statement(t.predicate, t.object).key),
                )
            )  # fmt: skip
        if table is not None:
            rows += _never_said(own, groups, probe, said, refused, parts.choices)
            agreement += _agreement(table, probe, own, counted.arms)
    return Joint(rows, agreement, probing, counted, _missing(run, probing, embedded), level)


class _Probe:
    """The cells of a category's probes."""

    def __init__(
        self, table: GroupTable | None, probing: Probing | None, rule: Mapping[str, Any]
    ) -> None:
        self.table, self.rule = table, rule
        self.model = probing.model.name if probing and table else ""
        self.vectors = self.stands = ""
        self.association = self.association_p = None
        if table is not None and table.similarity is not None and probing is not None:
            self.vectors = str(probing.record.get("vectors", ""))
            self.stands = str(probing.record.get("stands", {}).get(table.category, NAMES))
            self.association = associations(table.similarity)
            self.association_p = lift_p_values(self.association, table.said)
            scale = spread(contrast(table.similarity))
            low, high = contrast_intervals(table.similarity)
            self._low, self._high = low / scale, high / scale

    def believed(self, group: str, key: Key) -> bool | None:
        """None where the pair was not probed."""
        if self.table is None or (group, key) not in self.table.place:
            return None
        place = self.table.place[group, key]
        held = self.table.beliefs
        rank = self.table.edges[place[0]][place[1]].rank
        return bool(believed(rank, held.lift[place], held.p_values[place], **self.rule))

    def row(self, group: str, key: Key, *, said: bool, refused: Estimate) -> dict[str, Any]:
        """The columns of a pair that come from the probes, and the verdict."""
        none = Estimate.missing()
        cells: dict[str, Any] = {
            "model": self.model, "rank": None, "of": 0, "surprisal": math.nan, "lift": none,
            "p_value": math.nan, "vectors": self.vectors, "stands": self.stands,
            "association": none, "association_p": math.nan, "refused": refused,
            "verdict": verdict(
                said=said, believed=self.believed(group, key), refused=refused.value
            ),
        }  # fmt: skip
        table = self.table
        if table is None or (group, key) not in table.place:
            return cells
        place = table.place[group, key]
        n, held = len(table.groups), table.beliefs
        low, high = table.lift_ends
        cells |= {
            "rank": table.edges[place[0]][place[1]].rank,
            "of": n,
            "surprisal": float(-table.bits[place]),
            "lift": _estimate(held.lift, low, high, place, n),
            "p_value": float(held.p_values[place]),
        }
        if self.association is not None and self.association_p is not None:
            cells |= {
                "association": _estimate(self.association, self._low, self._high, place, n),
                "association_p": float(self.association_p[place]),
            }
        return cells


def _estimate(values: Any, low: Any, high: Any, place: tuple[int, int], n: int) -> Estimate:
    return Estimate(float(values[place]), float(low[place]), float(high[place]), n)


def _probing(run: Run, probings: Sequence[Probing]) -> Probing | None:
    """The probing by the run's own model, where there is one, or the first."""
    return next((p for p in probings if p.model == run.model), probings[0] if probings else None)


def _refused(parts: Parts) -> Mapping[str, Estimate]:
    """The share of refused answers about each group, in the arms that count."""
    answers: Counter[str] = Counter()
    refused: Counter[str] = Counter()
    for g in parts.generations:
        if g.arm in parts.counted.arms and g.outcome != "failed":
            answers[g.group_id] += 1
            refused[g.group_id] += g.outcome == "refused"
    return {g.id: proportion(refused[g.id], answers[g.id]) for g in parts.run.groups}


def _shares(counted: Counted) -> Mapping[tuple[str, str], Estimate]:
    """The coverage-corrected share of each triple in its arm and group (see `Evidence.share`)."""
    by_group: dict[tuple[str, str], list[TripleView]] = defaultdict(list)
    for t in counted.triples:
        by_group[t.arm, t.group_id].append(t)
    found = {}
    for triples in by_group.values():
        n = sum(t.count for t in triples)
        coverage = good_turing_coverage(t.count for t in triples)
        unseen = proportion(sum(t.count == 1 for t in triples), n)
        for t in triples:
            plain = proportion(t.count, n)
            found[t.arm, t.id] = Estimate(
                coverage * plain.value,
                (1 - unseen.high) * plain.low,
                (1 - unseen.low) * plain.high,
                n,
            )
    return found


def _never_said(
    own: Sequence[TripleView],
    groups: Mapping[str, Group],
    probe: _Probe,
    said: set[tuple[str, Key]],
    refused: Mapping[str, Estimate],
    choices: Choices,
) -> list[Evidence]:
    """The statements that count of some group, believed of one of which the run never said them."""
    statements: dict[Key, list[TripleView]] = defaultdict(list)
    for t in own:
        statements[Statement(t.predicate, t.object).key].append(t)
    return [
        Evidence(
            **_named(group, views[0]),
            id=triple_id(group.id, *key),
            arm="",
            arms=(),
            count=0,
            share=Estimate.missing(),
            **_scores(views),
            **probe.row(group.id, key, said=False, refused=refused[group.id]),
            **choices.cells(group.id, key),
        )
        for group in groups.values()
        for key, views in statements.items()
        if (group.id, key) not in said and probe.believed(group.id, key)
    ]


def _named(group: Group, said: TripleView) -> dict[str, Any]:
    return {
        "group": group.name,
        "category": group.category,
        "predicate": said.predicate,
        "object": said.object,
    }


def _scores(views: Sequence[TripleView]) -> dict[str, Any]:
    """The scores of a statement: the means over the triples that state it."""
    distinct = list({t.id: t for t in views}.values())
    cells: dict[str, Any] = {}
    for name in _SHARED:
        values = [t.scores[name].value for t in distinct if name in t.scores]
        cells[name] = sum(values) / len(values) if values else math.nan
    labels = Counter(t.scores["regard"].label for t in distinct if "regard" in t.scores)
    return cells | {"regard_label": labels.most_common(1)[0][0] if labels else ""}


def _agreement(
    table: GroupTable, probe: _Probe, own: Sequence[TripleView], arms: Sequence[str]
) -> list[GroupAgreement]:
    """Kendall's tau for each group and arm, over the statements that count."""
    counts = {(t.arm, t.group_id, Statement(t.predicate, t.object).key): t.count for t in own}
    kept = {key for _, _, key in counts}
    places = [n for n, statement in enumerate(table.statements) if statement.key in kept]
    rows = []
    for arm in arms:
        for g, group in enumerate(table.groups):
            said = np.array(
                [counts.get((arm, group.id, table.statements[n].key), 0) for n in places], float
            )
            lift = table.beliefs.lift[g, places]
            near = None if probe.association is None else probe.association[g, places]
            missing = Estimate.missing()
            rows.append(
                GroupAgreement(
                    table.category,
                    group.name,
                    arm,
                    kendall(said, lift),
                    missing if near is None else kendall(said, near),
                    missing if near is None else kendall(lift, near),
                )
            )
    return rows


def _missing(run: Run, probing: Probing | None, embedded: bool) -> list[str]:
    if probing is None:
        return [
            f"run {run.name!r} was not probed: rank, surprisal, lift and association are empty; "
            f"kgbias evidence {run.name} --model SPEC fills them"
        ]
    if not embedded:
        return [
            f"association is empty: kgbias evidence {run.name} --model SPEC fills it from the "
            "vectors of that model, --encoder from those of another"
        ]
    return []
