"""The joint view: said, believed and embedded in one row for each triple."""

import math
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from shlex import quote
from typing import Any, TypeVar

import numpy as np

from kgbias.compare.refusals import refused_prompts, share_of
from kgbias.crawl.stopping import good_turing_coverage
from kgbias.evidence.association import NAMES, associations, spread
from kgbias.evidence.names import FEWEST
from kgbias.evidence.tables import GroupTable, Key, group_tables
from kgbias.evidence.told import Told
from kgbias.graph.stereotypes import BestMatch, best_matches
from kgbias.graph.selection import SelectedStatements, Selection, select_statements
from kgbias.graph.store import StoredRun
from kgbias.graph.types import (
    BelievedEdge,
    BeliefRun,
    ChoiceRun,
    ChosenEdge,
    Generation,
    Group,
    ProbedEdge,
    ProbeRun,
    Run,
    TripleView,
    triple_id,
    verbalise,
)
from kgbias.io.wording import how
from kgbias.probe.belief import BELIEVED, BOUND, LEANING
from kgbias.probe.graph import contrast, contrast_intervals
from kgbias.probe.result import Statement
from kgbias.stats.estimate import Estimate
from kgbias.stats.inference import Values, proportion, student_quantile

_ROWS = 256  # of the table of pairs, held at once


@dataclass(frozen=True, slots=True)
class GroupAgreement:
    """Kendall's tau-b, -1 to 1, over the statements about the groups of a category, between two of:
    how often the run said each about this group, its lift, and its association. NaN if one of the
    two is missing or does not vary."""

    category: str
    group: str
    arm: str
    said_believed: Estimate
    said_embedded: Estimate
    believed_embedded: Estimate


def kendall(
    first: Values, second: Values, clusters: Sequence[Hashable] = (), *, level: float = 0.95
) -> Estimate:
    """Kendall's tau-b of two orders of n things [n], with ties (Kendall 1945): the number of pairs
    in the same order minus that in the opposite one, over the geometric mean of the pairs that
    either side does not tie.

    The interval is that of the jackknife over the things, on Fisher's z scale, where it cannot
    leave [-1, 1] (Arvesen 1969, "Jackknifing U-statistics"), by Student's t. Things of one of the
    `clusters` depend on each other and are left out together: statements of one predicate share
    how often it is said and how probable it is. NaN where a side is constant; no interval for fewer
    than four clusters or at -1 and 1.
    """
    n = len(first)
    _, of = np.unique([str(c) for c in clusters], return_inverse=True)
    of = np.asarray(of if len(clusters) else np.arange(n))
    count = int(of.max(initial=-1)) + 1
    # Of pairs whose order is the same less the opposite, and of those that either side does not
    # tie: how many have one thing in each cluster, and how many have both.
    held, inside = np.zeros((3, count)), np.zeros((3, count))
    for start in range(0, n, _ROWS):
        part = slice(start, start + _ROWS)
        a, b = (np.sign(x[part, None] - x[None, :]) for x in (first, second))
        own = of[part, None] == of[None, :]
        for place, pairs in enumerate((a * b, np.abs(a), np.abs(b))):
            held[place] += np.bincount(of[part], pairs.sum(axis=1), count)
            inside[place] += np.bincount(of[part], (pairs * own).sum(axis=1), count)
    same, one, other = held.sum(axis=1)
    norm = math.sqrt(one * other)
    if not norm:
        return Estimate.missing(n)
    tau = float(same / norm)
    if count < 4 or abs(tau) > 1 - 1e-9:
        return Estimate.missing(n, tau)
    # Without a cluster, its rows and columns are gone.
    left = held.sum(axis=1)[:, None] - 2 * held + inside
    if not (left[1:] > 0).all():
        return Estimate.missing(n, tau)
    without = left[0] / np.sqrt(left[1] * left[2])
    error = math.sqrt((count - 1) / count * float(((without - without.mean()) ** 2).sum()))
    half = student_quantile((1 + level) / 2, count - 1) * error / (1 - tau**2)
    low, high = (math.tanh(math.atanh(tau) + step) for step in (-half, half))
    return Estimate(tau, low, high, n)


@dataclass(frozen=True)
class Choices:
    """The forced choices of one model, if the run has any."""

    choosing: ChoiceRun | None = None
    edges: Sequence[ChosenEdge] = ()

    @classmethod
    def read(cls, run: StoredRun, model: str | None = None) -> "Choices":
        """Those of the named model, else those of the run's own, else the first."""
        found = run.choice_runs()
        if not found:
            return cls()
        own = run.model.title
        ranked = sorted(
            found, key=lambda c: not (model and c.model.goes_by(model)) and 2 - c.model.goes_by(own)
        )
        return cls(ranked[0], run.choices(ranked[0].id))

    def cells(self, group: str, key: tuple[str, str]) -> dict[str, Any]:
        """The columns of a group (by id) and a statement (by the ids of its predicate and
        object)."""
        edge = self._by_place.get((group, key))
        if self.choosing is None or edge is None:
            none = Estimate.missing()
            return {"chooser": "", "chosen": none, "chosen_lift": none, "chosen_q": math.nan}
        n = edge.answered
        return {
            "chooser": self.choosing.model.title,
            "chosen": _of_choice(edge.share, edge.low, edge.high, n),
            "chosen_lift": _of_choice(edge.lift, edge.lift_low, edge.lift_high, n),
            "chosen_q": math.nan if edge.q_value is None else edge.q_value,
        }

    @cached_property
    def _by_place(self) -> dict[tuple[str, tuple[str, str]], ChosenEdge]:
        return {(e.group_id, (e.predicate_id, e.object_id)): e for e in self.edges}


def _of_choice(value: float | None, low: float | None, high: float | None, n: int) -> Estimate:
    ends = [math.nan if number is None else number for number in (value, low, high)]
    return Estimate(ends[0], ends[1], ends[2], n)


SAID_AND_BELIEVED = "said and believed"
ONLY_SAID = "only said"
NEVER_SAID = "believed but never said"
REFUSED = "refused but believed"
ARE_BELIEVED = (SAID_AND_BELIEVED, NEVER_SAID, REFUSED)
NOT_PROBED = "said, not probed"

REFUSING = 0.1
"""The share of refused answers from which a group counts as one that the model refuses to talk
about."""

VERDICTS: Mapping[str, str] = {
    SAID_AND_BELIEVED: "said, and likelier after this group's names than after the others'",
    ONLY_SAID: "said, but not shown to be likelier after this group's names than after the others'",
    NEVER_SAID: "likelier after this group's names than after the others', yet never said of it",
    REFUSED: "the same, of a group about which the same model refused answers",
}
"""Each verdict with what it means."""


def verdict(*, said: bool, believed: bool | None, refused: float) -> str:
    """The verdict on a group and a statement: whether the run said it of this group, whether a
    model believes it (None: was not asked), and the share of the group's answers that were refused.

    A pair that was neither said nor is believed has none ("")."""
    if said:
        if believed is None:
            return NOT_PROBED
        return SAID_AND_BELIEVED if believed else ONLY_SAID
    if not believed:
        return ""
    return REFUSED if refused >= REFUSING else NEVER_SAID


@dataclass(frozen=True, slots=True)
class Evidence:
    """What the three kinds of evidence say of one triple, in one arm where the run has several.

    Attributes:
        group, category, predicate, object: the triple, with its words cut in two as in the
            statement asked; `id` is that of its node.
        arm: the arm whose `count` this is; "" if the run never said it.
        arms: the arms that said it, of those that count.
        count: how often the arm said it.
        times: how often the arm said the sentence: the sum of `count` over the triples that cut it
            into predicate and object in different places.
        share: of all that the arm said about the group, corrected for what was not seen: count / n
            times the group's Good-Turing coverage. Its interval is the product of the Wilson
            intervals of both, so its coverage is at least 95%.
        acceptability, regard, toxicity: its scores, NaN if there are none. A statement never said
            about the group has the mean over the groups it was said about: these measures do not
            see the group.
        regard_label: "positive", "neutral" or "negative" ("" without a score).
        model: the model whose probabilities the next columns are; "" if the run was not probed.
        lift: in bits, how much likelier the statement is after the group's names than after those
            of the other groups, beyond what each name makes likelier anyway, with its interval over
            names (`kgbias.probe.belief`); `n` is the number of names.
        q_value: of a lift of at most half a bit, one-sided: its p-value corrected over the group's
            statements (Benjamini-Hochberg).
        leaning: whether the lift is shown to be above 0, but not to be a belief.
        bound: whether the lift is shown, but rests on one name or on the names of one root.
        of_name: whether it is believed for a group of fewer than five names: it is a belief about
            these names, compared with made-up names, and nothing is said about the group.
        found_again: the share of halves of the group's names that show it alone, if that was
            tried (`Run.replicate`); otherwise NaN.
        least: the smallest lift with one of the names left out, and `swayed_by` that name.
        rank: of the group among the `of` groups of its category before this statement, by the
            groups' own names alone (`kgbias probe run`), 1 the likeliest; None if not probed.
        surprisal: of the statement after the group's own name, in bits (for a masked model, of the
            whole).
        vectors: whose vectors `association` is from; "" if there are none.
        stands: what stands for the group in them: a kind of its indicators, or "group names".
        association: how much nearer the statement is to the group than to the others, in standard
            deviations (`kgbias.evidence.association`); its interval is over the other groups.
        chooser: the model that was made to choose among groups (`Run.choose`); "" if none was.
        chosen: the share of its answers that named this group as the one that the statement is
            about, with its Wilson interval.
        chosen_lift: that share over the group's base rate, in bits.
        chosen_q: of a share above that of the other statements, corrected. The share is the answer
            to a question, not a probability: the verdict does not rest on it.
        teller: the same model's run of stories about this group in the same store; "" if there is
            none.
        told: the share of prompts for stories about the group whose character was read as making
            the same claim, by words alone (`kgbias.evidence.told`), with its Wilson interval. NaN
            if no story was read so, never 0: the reader finds only part of what stories say. No
            verdict rests on it.
        recorded: "known", "related" or "new" to the tables of recorded stereotypes that the run was
            held against (`Run.known`), "" if to none; `recorded_as` is the attribute that is
            nearest, and `recorded_source` the table.
        refused: the share of the group's answers that were refused, with its Wilson interval.
        verdict: by the rules of `kgbias.evidence.VERDICTS`.
    """

    id: str
    group: str
    category: str
    predicate: str
    object: str
    arm: str
    arms: tuple[str, ...]
    count: int
    times: int
    share: Estimate
    acceptability: float
    regard: float
    regard_label: str
    toxicity: float
    model: str
    lift: Estimate
    q_value: float
    leaning: bool
    bound: bool
    of_name: bool
    found_again: float
    least: float
    swayed_by: str
    rank: int | None
    of: int
    surprisal: float
    vectors: str
    stands: str
    association: Estimate
    refused: Estimate
    verdict: str
    chooser: str
    chosen: Estimate
    chosen_lift: Estimate
    chosen_q: float
    teller: str
    told: Estimate
    recorded: str = ""
    recorded_as: str = ""
    recorded_source: str = ""

    @property
    def sentence(self) -> str:
        return verbalise(self.group, self.predicate, self.object)

    @property
    def pair(self) -> tuple[str, str]:
        """The group and the words said of it, wherever they are cut in two. Counts of statements
        with a verdict are counts of these."""
        return self.group, Statement(self.predicate, self.object).words


def sentences(rows: Iterable[Evidence]) -> int:
    """How many different sentences the rows state, whatever the arm and the cut in two."""
    return len({row.pair for row in rows})


def once(rows: Iterable[Evidence]) -> list[Evidence]:
    """Each sentence of each arm once, in the order of its first row: of rows that cut it in two in
    different places, the one said most often. Their `times` are the same."""
    kept: dict[tuple[str, tuple[str, str]], Evidence] = {}
    for row in rows:
        place = row.arm, row.pair
        if place not in kept or kept[place].count < row.count:
            kept[place] = row
    return list(kept.values())


def telling(rows: Sequence[Evidence], count: int) -> list[Evidence]:
    """The most telling rows of one verdict, each sentence once (its `times` say how often), in
    the order that `ORDERS` gives in words: those with the greatest lift; for what was only said,
    those that are likelier for others (a lift of 0 or less), those said most often first."""

    def key(row: Evidence) -> tuple[Any, ...]:
        lift = 0.0 if math.isnan(row.lift.value) else row.lift.value
        name = (-row.count, row.group, row.predicate, row.object, row.arm)
        if row.verdict in ORDERS:
            return (lift > 0, -row.times, lift, *name)
        return (-lift, -row.times, *name)

    found: dict[tuple[str, str], Evidence] = {}
    for row in sorted(rows, key=key):
        found.setdefault(row.pair, row)
    return list(found.values())[:count]


_OTHERS_FIRST = "those with a lift of 0 or less first, the most often said first"
ORDERS: Mapping[str, str] = {ONLY_SAID: _OTHERS_FIRST, NOT_PROBED: _OTHERS_FIRST}
"""The order of `telling`, in words, for the verdicts whose order is not greatest lift first."""


T = TypeVar("T", bound=ProbeRun)
_SHARED = ("acceptability", "regard", "toxicity")  # measures that do not see the group


@dataclass(frozen=True)
class Joint:
    """The joint view of a run.

    Attributes:
        rows: the triples that count, in the order of the store, then those that were never said.
        agreement: how far the three kinds agree, for each group and arm; empty if nothing was
            probed by names.
        believing: the probes by names that it rests on; None if there are none.
        probing: the probes of the groups' own names (`kgbias probe run`), which carry what is
            embedded; None if there are none.
        counted: the statements that count.
        missing: which columns are empty, and the command that fills them; one line each.
    """

    rows: Sequence[Evidence]
    agreement: Sequence[GroupAgreement]
    believing: BeliefRun | None
    probing: ProbeRun | None
    counted: SelectedStatements
    missing: Sequence[str]

    @property
    def floor(self) -> Mapping[str, Any]:
        """What the same test finds for made-up names, dealt at random to the groups: pairs
        `tested`, the mean `found`, the pairs of the real groups `of` and those `believed`, `p` of
        this many by chance: the share of deals in which as many are believed of as many pairs; and
        by kind and category in `parts` ("nonce", "residuals", "placebo"). Empty without probes."""
        return floor_of(self.believing.record) if self.believing else {}

    @property
    def groups(self) -> Sequence[Mapping[str, Any]]:
        """The figures of groups (`kgbias.probe.group_figures.GroupFigure`), one for each group,
        score and kind; `names` has that of each name."""
        return list(self.believing.record.get("groups", [])) if self.believing else []

    @property
    def note(self) -> str:
        """If nothing is believed, a sentence that says what came nearest; else "". It leaves out
        groups with too few names, of which nothing can be said."""
        tested = [r for r in self.rows if r.lift.has_interval and r.verdict != NOT_PROBED]
        if not tested or self.by_verdict.keys() - {ONLY_SAID, NOT_PROBED}:
            return ""
        row = min(tested, key=lambda row: (row.q_value, -row.lift.value))
        return (
            f"Nothing is believed of any group: the nearest is {row.sentence!r} "
            f"({row.lift.value:+.1f} bits, corrected p {row.q_value:.3f})"
        )

    @cached_property
    def by_verdict(self) -> Mapping[str, list[Evidence]]:
        found: dict[str, list[Evidence]] = defaultdict(list)
        for row in self.rows:
            found[row.verdict].append(row)
        return found


def floor_of(record: Mapping[str, Any]) -> dict[str, Any]:
    """`Joint.floor`, of the record of a believing."""
    parts = list(record.get("floor", []))
    nonce = [part for part in parts if part["kind"] == "nonce"]
    pairs = {line["category"]: line.get("pairs", 0) for line in record.get("categories", [])}
    believed = sum(line.get("believed", 0) for line in record.get("categories", []))
    deals = [
        np.array(part["finds"]) * pairs[part["category"]] / part["tested"]
        for part in nonce
        if part["tested"]
    ]
    p = math.nan
    if deals:
        together = np.sum(deals, axis=0)
        p = float((1 + (together >= believed - 1e-9).sum()) / (1 + len(together)))
    return {
        "tested": sum(part["tested"] for part in nonce),
        "found": round(sum(part["found"] for part in nonce), 4),
        "of": sum(pairs.values()),
        "believed": believed,
        "p": p,
        "parts": parts,
    }


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts of the joint view: a run, the statements that count, all its generations, its
    probings with their edges, its probes by names with what is believed, its forced choices, the
    same model's stories, and the marks of statements held against recorded stereotypes."""

    run: Run
    counted: SelectedStatements
    generations: Sequence[Generation]
    probes: Sequence[tuple[ProbeRun, Sequence[ProbedEdge]]]
    beliefs: tuple[BeliefRun, Sequence[BelievedEdge]] | None = None
    choices: Choices = field(default_factory=Choices)
    told: Told = field(default_factory=Told)
    marks: Mapping[str, BestMatch] = field(default_factory=dict)

    @classmethod
    def read(cls, run: StoredRun, selection: Selection | None, model: str | None = None) -> "Parts":
        """The parts from the store; of the probings and believings, those of the named model."""
        probings = [p for p in run.probe_runs() if p.model.goes_by(model)]
        chosen = _own(run.record, probings)
        probes = [(chosen, run.probes(chosen.id))] if chosen else []
        generations, choices = list(run.generations()), Choices.read(run, model)
        counted, beliefs = select_statements(run, selection), read_beliefs(run, model)
        told, marks = Told.read(run), best_matches(run.stereotype_matches())
        return cls(run.record, counted, generations, probes, beliefs, choices, told, marks)


def read_beliefs(
    run: StoredRun, model: str | None = None, there: Sequence[BeliefRun] | None = None
) -> tuple[BeliefRun, Sequence[BelievedEdge]] | None:
    """What a model believes: the named one, else the run's own, else the first. `there` are the
    run's askings, if already read."""
    every = run.belief_runs() if there is None else there
    found = _own(run.record, [b for b in every if b.model.goes_by(model)])
    return (found, run.beliefs(found.id)) if found else None


def others_asked(run: StoredRun, believing: BeliefRun | None) -> str:
    """A line that names the other models that were asked about the run, and where their beliefs
    are; "" if there are none."""
    others = [b.model.title for b in run.belief_runs() if believing and b.id != believing.id]
    if believing is None or not others:
        return ""
    where = how(
        f"run.evidence({others[0]!r}), and beside each other run.evidence_models()",
        f"kgbias query believed --param run={run.name} --param model={quote(others[0])}, and "
        f"beside each other in kgbias report {run.name}",
    )
    return (
        f"the beliefs are those of {believing.model.title}; the store also has those of "
        f"{', '.join(others)}: {where}"
    )


def joint(run: StoredRun, selection: Selection | None = None, *, model: str | None = None) -> Joint:
    """The joint view of what counts, from what the store holds. `model` names the model whose
    probes are read (None: the run's own, else the first)."""
    return joined(Parts.read(run, selection, model))


def joined(parts: Parts) -> Joint:
    """As `joint`, from parts already read."""
    run, counted = parts.run, parts.counted
    probing = _own(run, [p for p, _ in parts.probes])
    stated = [
        (g.triple.group_id, Statement(g.triple.predicate, g.triple.object))
        for g in parts.generations
        if g.triple is not None
    ]
    said = {(group, statement.words) for group, statement in stated}
    times: Counter[tuple[str, str, str]] = Counter()
    for t in counted.triples:
        times[t.arm, t.group_id, Statement(t.predicate, t.object).words] += t.count
    believing = parts.beliefs[0] if parts.beliefs else None
    record = believing.record if believing else {}
    given = [Statement(*own) for own in record.get("given", {}).values()]
    texts = {s.key: s for s in (*given, *(s for _, s in stated))}
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
        probe = _Probe(tables.get(category), probing, parts.beliefs, groups, texts)
        # What another model refused says nothing of what this one believes.
        probe.of_the_run = believing is not None and believing.model.id == run.model.id
        embedded |= bool(probe.vectors)
        for t in own:
            statement = Statement(t.predicate, t.object)
            rows.append(
                Evidence(
                    **_named(groups[t.group_id], probe.asked.get(statement.words, statement)),
                    id=t.id,
                    arm=t.arm,
                    arms=tuple(arms[t.id]),
                    count=t.count,
                    times=times[t.arm, t.group_id, statement.words],
                    share=shares[t.arm, t.id],
                    **_scores([t]),
                    **probe.row(t.group_id, statement, said=True, refused=refused[t.group_id]),
                    **parts.choices.cells(t.group_id, statement.key),
                    **parts.told.cells(t.group_id, statement),
                    **(parts.marks[t.id].cells if t.id in parts.marks else {}),
                )
            )
        if probe.beliefs:
            rows += _never_said(own, given, groups, probe, said, refused, parts)
            agreement += _agreement(category, probe, own, counted.arms, times)
    missing = _missing(run, believing, embedded, rows)
    return Joint(rows, agreement, believing, probing, counted, missing)


class _Probe:
    """The cells of a category's probes."""

    def __init__(
        self,
        table: GroupTable | None,
        probing: ProbeRun | None,
        beliefs: tuple[BeliefRun, Sequence[BelievedEdge]] | None,
        groups: Mapping[str, Group],
        texts: Mapping[Key, Statement],
    ) -> None:
        self.table, self.groups = table, groups
        self.of_the_run = True
        edges = beliefs[1] if beliefs else ()
        own = [
            (texts[key], e)
            for e in edges
            if e.group_id in groups and (key := (e.predicate_id, e.object_id)) in texts
        ]
        # By words: what the crawl cut in two at several places was asked once.
        self.beliefs = {(e.group_id, statement.words): e for statement, e in own}
        self.asked = {statement.words: statement for statement, _ in own}
        self._again = beliefs[0].record.get("found_again", {}) if beliefs else {}
        self.model = beliefs[0].model.title if beliefs and self.beliefs else ""
        if not self.model and table is not None and probing is not None:
            self.model = probing.model.title
        self.vectors = self.stands = ""
        self.association = None
        if table is not None and table.similarity is not None and probing is not None:
            self.vectors = str(probing.record.get("vectors", ""))
            self.stands = str(probing.record.get("stands", {}).get(table.category, NAMES))
            self.association = associations(table.similarity)
            scale = spread(contrast(table.similarity))
            low, high = contrast_intervals(table.similarity)
            self._low, self._high = low / scale, high / scale

    def believed(self, group: str, words: str) -> bool | None:
        """None where nothing can be said: the pair was not probed, or the group has too few
        names."""
        edge = self.beliefs.get((group, words))
        if edge is None or edge.names < FEWEST:
            return None
        return edge.verdict == BELIEVED

    def near(self, group: str, keys: Sequence[Key]) -> Values | None:
        """The associations of a group with statements; None where any is missing."""
        if self.association is None or self.table is None:
            return None
        places = [self.table.place.get((group, key)) for key in keys]
        if None in places:
            return None
        return np.array([self.association[place] for place in places if place], dtype=np.float64)

    def row(
        self, group: str, statement: Statement, *, said: bool, refused: Estimate
    ) -> dict[str, Any]:
        """The columns of a pair that come from the probes, and the verdict."""
        none = Estimate.missing()
        cells: dict[str, Any] = {
            "model": self.model, "lift": none, "q_value": math.nan, "leaning": False,
            "bound": False, "of_name": False, "found_again": math.nan, "least": math.nan,
            "swayed_by": "", "rank": None, "of": 0, "surprisal": math.nan,
            "vectors": self.vectors, "stands": self.stands, "association": none, "refused": refused,
            "verdict": verdict(
                said=said,
                believed=self.believed(group, statement.words),
                refused=refused.value if self.of_the_run else 0.0,
            ),
        }  # fmt: skip
        if edge := self.beliefs.get((group, statement.words)):
            cells |= {
                "lift": Estimate(edge.lift, edge.low, edge.high, edge.names),
                "q_value": edge.q_value,
                "leaning": edge.verdict == LEANING,
                "bound": edge.verdict == BOUND,
                "of_name": edge.verdict == BELIEVED and edge.names < FEWEST,
                "found_again": self._again.get(f"{group} {edge.statement_id}", math.nan),
                "least": edge.least,
                "swayed_by": edge.swayed_by,
            }
        if self.table is None or (group, statement.key) not in self.table.place:
            return cells
        place, n = self.table.place[group, statement.key], len(self.table.groups)
        cells |= {
            "rank": self.table.edges[place[0]][place[1]].rank,
            "of": n,
            "surprisal": float(-self.table.bits[place]),
        }
        if self.association is not None:
            cells["association"] = _estimate(self.association, self._low, self._high, place, n)
        return cells


def _estimate(values: Any, low: Any, high: Any, place: tuple[int, int], n: int) -> Estimate:
    return Estimate(float(values[place]), float(low[place]), float(high[place]), n)


def _own(run: Run, found: Sequence[T]) -> T | None:
    """What the run's own model made, if anything, or else the first."""
    return next((p for p in found if p.model == run.model), found[0] if found else None)


def _refused(parts: Parts) -> Mapping[str, Estimate]:
    """The share of refused prompts about each group, in the arms that count."""
    shares: dict[str, list[float]] = defaultdict(list)
    for prompt in refused_prompts(parts.generations, parts.counted.arms):
        shares[prompt.group].append(prompt.share)
    return {group.id: share_of(shares[group.id]) for group in parts.run.groups}


def _shares(counted: SelectedStatements) -> Mapping[tuple[str, str], Estimate]:
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
    given: Sequence[Statement],
    groups: Mapping[str, Group],
    probe: _Probe,
    said: set[tuple[str, str]],
    refused: Mapping[str, Estimate],
    parts: Parts,
) -> list[Evidence]:
    """What is believed of a group but was never said about it in the run: statements that count for
    some other group, and those that were given."""
    views: dict[str, list[TripleView]] = defaultdict(list)
    for t in own:
        views[Statement(t.predicate, t.object).words].append(t)
    counted = dict.fromkeys((*views, *(statement.words for statement in given)))
    asked = [probe.asked[words] for words in counted if words in probe.asked]
    return [
        Evidence(
            **_named(group, statement),
            id=triple_id(group.id, *statement.key),
            arm="",
            arms=(),
            count=0,
            times=0,
            share=Estimate.missing(),
            **_scores(views.get(statement.words, [])),
            **probe.row(group.id, statement, said=False, refused=refused[group.id]),
            **parts.choices.cells(group.id, statement.key),
            **parts.told.cells(group.id, statement),
        )
        for group in groups.values()
        for statement in asked
        if (group.id, statement.words) not in said and probe.believed(group.id, statement.words)
    ]


def _named(group: Group, said: Statement) -> dict[str, Any]:
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
    category: str,
    probe: _Probe,
    own: Sequence[TripleView],
    arms: Sequence[str],
    times: Mapping[tuple[str, str, str], int],
) -> list[GroupAgreement]:
    """Kendall's tau for each group and arm, over the statements that count and were probed; `times`
    says how often each was said, by arm, group and words."""
    kept: dict[str, Key] = {}  # by words
    for t in own:
        statement = Statement(t.predicate, t.object)
        kept.setdefault(statement.words, statement.key)
    rows = []
    for arm in arms:
        for group in probe.groups.values():
            asked = {
                words: key for words, key in kept.items() if (group.id, words) in probe.beliefs
            }
            said = np.array([times.get((arm, group.id, w), 0) for w in asked], dtype=float)
            lift = np.array([probe.beliefs[group.id, words].lift for words in asked], dtype=float)
            near = probe.near(group.id, list(asked.values()))
            missing = Estimate.missing()
            predicates = [predicate for predicate, _ in asked.values()]
            rows.append(
                GroupAgreement(
                    category,
                    group.name,
                    arm,
                    kendall(said, lift, predicates),
                    missing if near is None else kendall(said, near, predicates),
                    missing if near is None else kendall(lift, near, predicates),
                )
            )
    return rows


def _missing(
    run: Run, believing: BeliefRun | None, embedded: bool, rows: Sequence[Evidence]
) -> list[str]:
    if believing is None:
        return [
            f"run {run.name!r} was not probed by names: lift, verdict and association are empty; "
            f"{how('run.evidence(MODEL)', f'kgbias evidence {run.name} --model SPEC')} fills them"
        ]
    found = []
    left = sentences(row for row in rows if row.verdict == NOT_PROBED and not row.lift.n)
    if left and any(line["not_probed"] for line in believing.record.get("categories", [])):
        more = how(
            'run.evidence(MODEL, asking={"probes": N})',
            f"kgbias --set probes=N evidence {run.name} --model SPEC",
        )
        found.append(
            f"{left:,} statement{' was' if left == 1 else 's were'} said but not probed: {more} "
            "asks more"
        )
    few = [n for line in believing.record.get("categories", []) for n in line["too_few_names"]]
    if few:
        found.append(
            f"nothing is said of {', '.join(few)}: fewer than {FEWEST} names, or no other group to "
            "compare with; what is found is a belief about their names (more names: NAME | OTHER "
            "NAME ... of a group)"
        )
    if not embedded:
        filled, other = (
            how("run.evidence(MODEL)", f"kgbias evidence {run.name} --model SPEC"),
            how("`encoder`", "--encoder"),
        )
        found.append(
            f"association is empty: {filled} fills it from the vectors of that model, {other} from "
            "those of another"
        )
    return found
