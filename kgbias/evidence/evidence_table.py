"""The joint view: said, believed and embedded in one row for each triple."""

import math
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property, partial
from shlex import quote
from typing import Annotated, Any, NamedTuple, TypeVar

import numpy as np

from kgbias.compare.refusals import estimate_refusal_share, list_prompt_refusals
from kgbias.crawl.stopping import good_turing_coverage
from kgbias.evidence.added_columns import Cells, MethodColumns
from kgbias.evidence.association import GROUP_NAMES, compute_associations, spread_over_statements
from kgbias.evidence.names import MIN_NAMES
from kgbias.evidence.probe_tables import GroupTable, StatementKey, build_group_tables
from kgbias.evidence.story_evidence import StoryEvidence
from kgbias.graph.selection import SelectedStatements, Selection, select_statements
from kgbias.graph.store import StoredRun
from kgbias.graph.types import (
    BeliefRun,
    BelievedEdge,
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
from kgbias.io.columns import Column, ColumnFormat, columns_of
from kgbias.io.rows import Rows
from kgbias.io.text import format_p_value
from kgbias.io.wording import how
from kgbias.probe.belief import BELIEVED, BOUND, LEANING
from kgbias.probe.result import Statement
from kgbias.probe.run_probes import contrast_intervals, lifts_over_others
from kgbias.stats.estimate import Estimate
from kgbias.stats.inference import Values, proportion, student_quantile

_CHUNK_ROWS = 256  # of the table of pairs, held at once


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


def jackknife_kendall_tau(
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
    size = len(first)
    _, cluster_of = np.unique([str(c) for c in clusters], return_inverse=True)
    cluster_of = np.asarray(cluster_of if len(clusters) else np.arange(size))
    cluster_count = int(cluster_of.max(initial=-1)) + 1
    # Of pairs whose order is the same less the opposite, and of those that either side does not
    # tie: how many have one thing in each cluster, and how many have both.
    touching, within_cluster = np.zeros((3, cluster_count)), np.zeros((3, cluster_count))
    for start in range(0, size, _CHUNK_ROWS):
        chunk = slice(start, start + _CHUNK_ROWS)
        a, b = (np.sign(x[chunk, None] - x[None, :]) for x in (first, second))
        same_cluster = cluster_of[chunk, None] == cluster_of[None, :]
        for place, pairs in enumerate((a * b, np.abs(a), np.abs(b))):
            touching[place] += np.bincount(cluster_of[chunk], pairs.sum(axis=1), cluster_count)
            within_cluster[place] += np.bincount(
                cluster_of[chunk], (pairs * same_cluster).sum(axis=1), cluster_count
            )
    net_order, first_untied, second_untied = touching.sum(axis=1)
    norm = math.sqrt(first_untied * second_untied)
    if not norm:
        return Estimate.missing(size)
    tau = float(net_order / norm)
    if cluster_count < 4 or abs(tau) > 1 - 1e-9:
        return Estimate.missing(size, tau)
    # Without a cluster, its rows and columns are gone.
    jackknifed = touching.sum(axis=1)[:, None] - 2 * touching + within_cluster
    if not (jackknifed[1:] > 0).all():
        return Estimate.missing(size, tau)
    jackknife_taus = jackknifed[0] / np.sqrt(jackknifed[1] * jackknifed[2])
    error = math.sqrt(
        (cluster_count - 1)
        / cluster_count
        * float(((jackknife_taus - jackknife_taus.mean()) ** 2).sum())
    )
    # atanh, Fisher's z, has the slope 1 / (1 - tau^2): the error on its scale.
    half_width = student_quantile((1 + level) / 2, cluster_count - 1) * error / (1 - tau**2)
    low, high = (math.tanh(math.atanh(tau) + step) for step in (-half_width, half_width))
    return Estimate(tau, low, high, size)


_NOT_ESTIMATED = Estimate.missing()


@dataclass(frozen=True, slots=True)
class ChoiceEvidence:
    """What forced choices say of a group and a statement; see the fields of `Evidence`."""

    chooser: str = ""
    chosen: Estimate = _NOT_ESTIMATED
    chosen_lift: Estimate = _NOT_ESTIMATED
    chosen_q_value: float = math.nan


@dataclass(frozen=True)
class StoredChoices:
    """The forced choices of one model, if the run has any."""

    choice_run: ChoiceRun | None = None
    edges: Sequence[ChosenEdge] = ()

    @classmethod
    def read(cls, run: StoredRun, model: str | None = None) -> "StoredChoices":
        """Those of the named model, else those of the run's own, else the first."""
        choice_runs = run.find_all(ChoiceRun)
        if not choice_runs:
            return cls()

        def distance(choice_run: ChoiceRun) -> int:
            if model and choice_run.model.goes_by(model):
                return 0
            return 1 if choice_run.model.goes_by(run.model.title) else 2

        nearest = min(choice_runs, key=distance)
        return cls(nearest, run.find_all(ChosenEdge, asking=nearest))

    def find(self, group: str, key: tuple[str, str]) -> "ChoiceEvidence":
        """What was chosen of a group (by id) and a statement (by the ids of its predicate and
        object)."""
        edge = self._by_place.get((group, key))
        if self.choice_run is None or edge is None:
            return ChoiceEvidence()
        answered = edge.answered
        return ChoiceEvidence(
            self.choice_run.model.title,
            _choice_estimate(edge.share, edge.low, edge.high, answered),
            _choice_estimate(edge.lift, edge.lift_low, edge.lift_high, answered),
            math.nan if edge.q_value is None else edge.q_value,
        )

    @cached_property
    def _by_place(self) -> dict[tuple[str, tuple[str, str]], ChosenEdge]:
        return {(e.group_id, (e.predicate_id, e.object_id)): e for e in self.edges}


def _choice_estimate(
    value: float | None, low: float | None, high: float | None, n: int
) -> Estimate:
    numbers = [math.nan if number is None else number for number in (value, low, high)]
    return Estimate(numbers[0], numbers[1], numbers[2], n)


SAID_AND_BELIEVED = "said and believed"
ONLY_SAID = "only said"
NEVER_SAID = "believed but never said"
REFUSED_GROUP_BUT_BELIEVED = "refused but believed"
BELIEVED_VERDICTS = (SAID_AND_BELIEVED, NEVER_SAID, REFUSED_GROUP_BUT_BELIEVED)
NOT_PROBED = "said, not probed"

MIN_REFUSAL_SHARE = 0.1
"""The share of refused answers from which a group counts as one that the model refuses to talk
about."""

VERDICTS: Mapping[str, str] = {
    SAID_AND_BELIEVED: "said, and likelier after this group's names than after the others'",
    ONLY_SAID: "said, but not shown to be likelier after this group's names than after the others'",
    NEVER_SAID: "likelier after this group's names than after the others', yet never said of it",
    REFUSED_GROUP_BUT_BELIEVED: "the same, of a group about which the same model refused answers",
}
"""Each verdict with what it means."""


def decide_verdict(*, is_said: bool, is_believed: bool | None, refused: float) -> str:
    """The verdict on a group and a statement: whether the run said it of this group, whether a
    model believes it (None: was not asked), and the share of the group's answers that were refused.

    A pair that was neither said nor is believed has none ("")."""
    if is_said:
        if is_believed is None:
            return NOT_PROBED
        return SAID_AND_BELIEVED if is_believed else ONLY_SAID
    if not is_believed:
        return ""
    return REFUSED_GROUP_BUT_BELIEVED if refused >= MIN_REFUSAL_SHARE else NEVER_SAID


class StatementOfGroup(NamedTuple):
    """A group and the words said of it."""

    group: str
    statement: str


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
            times the group's Good-Turing coverage. Its interval reaches up to Wilson's upper end of
            count / n, and down to the lower one of a count that would not be here, had it been 0:
            what was said once is less probable than that share, what is said often is not.
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
        bound_to_word: whether the lift is shown, but rests on one name or on the names of one root.
        names_only: whether it is believed for a group of fewer than five names: it is a belief
            about these names, compared with made-up names, and nothing is said about the group.
        replication_rate: the share of halves of the group's names that show it alone, if that was
            tried (`Run.beliefs`); otherwise NaN.
        min_loo_lift: the smallest lift with one of the names left out, and
            `most_influential_name` that name.
        rank: of the group among the `groups_ranked` groups of its category before this statement,
            by the groups' own names alone (`kgbias probe run`), 1 the likeliest; None if not
            probed.
        surprisal: of the statement after the group's own name, in bits (for a masked model, of the
            whole).
        vectors: whose vectors `association` is from; "" if there are none.
        vector_terms: what stands for the group in them: a kind of its indicators, or "group names".
        association: how much nearer the statement is to the group than to the others, in standard
            deviations (`kgbias.evidence.association`); its interval is over the other groups.
        chooser: the model that was made to choose among groups (`kgbias.methods.choice`); ""
            if none was.
        chosen: the share of its answers that named this group as the one that the statement is
            about, with its Wilson interval.
        chosen_lift: that share over the group's base rate, in bits.
        chosen_q_value: of a share above that of the other statements, corrected. The share is the
            answer to a question, not a probability: the verdict does not rest on it.
        story_run: the same model's run of stories about this group in the same store; "" if there
            is none.
        story_share: the share of prompts for stories about the group whose character was read as
            making the same claim, by words alone (`kgbias.evidence.story_evidence`), with its
            Wilson interval. NaN if no story was read so, never 0: the reader finds only part of
            what stories say. No verdict rests on it.
        added: what methods have about the statement, by column (`kgbias.evidence.added_columns`).
        refused: the share of the group's answers that were refused, with its Wilson interval.
        verdict: by the rules of `kgbias.evidence.VERDICTS`.
    """

    group: str
    predicate: str
    object: str
    verdict: str
    count: Annotated[int, ColumnFormat(name="said")]
    times: int
    lift: Annotated[Estimate, ColumnFormat("+.2f", ends=("low", "high"), count="names")]
    q_value: Annotated[float, ColumnFormat(format_p_value)]
    leaning: bool
    bound_to_word: bool
    names_only: bool
    replication_rate: Annotated[float, ColumnFormat(".0%")]
    min_loo_lift: Annotated[float, ColumnFormat("+.2f")]
    most_influential_name: str
    share: Annotated[Estimate, ColumnFormat(".1%")]
    arm: str
    arms: tuple[str, ...]
    acceptability: Annotated[float, ColumnFormat(".2f")]
    regard: Annotated[float, ColumnFormat("+.2f")]
    regard_label: str
    toxicity: Annotated[float, ColumnFormat(".2f")]
    rank: int | None
    groups_ranked: int
    surprisal: Annotated[float, ColumnFormat(".1f")]
    association: Annotated[Estimate, ColumnFormat("+.2f")]
    refused: Annotated[Estimate, ColumnFormat(".0%")]
    chosen: Annotated[Estimate, ColumnFormat(".0%")]
    chosen_lift: Annotated[Estimate, ColumnFormat("+.2f")]
    chosen_q_value: Annotated[float, ColumnFormat(format_p_value)]
    story_share: Annotated[Estimate, ColumnFormat(".0%")]
    category: str
    model: str
    vectors: str
    vector_terms: str
    chooser: str
    story_run: str
    id: str
    added: Cells = field(default_factory=dict, hash=False)

    @property
    def sentence(self) -> str:
        return verbalise(self.group, self.predicate, self.object)

    @property
    def pair(self) -> StatementOfGroup:
        """The group and the words said of it, wherever they are cut in two. Counts of statements
        with a verdict are counts of these."""
        return StatementOfGroup(self.group, Statement(self.predicate, self.object).words)


def evidence_rows(rows: Sequence[Evidence]) -> Rows[Evidence]:
    """The joint view as rows, whose columns are the fields of `Evidence`, and those that methods
    have about the run."""
    columns = [column for column in columns_of(Evidence) if column.name != "added"]
    names = dict.fromkeys(name for row in rows for name in row.added)
    return Rows(rows, [*columns, *(Column(n, get=partial(_read_added, n)) for n in names)])


def _read_added(name: str, row: Evidence) -> str:
    return row.added.get(name, "")


def count_sentences(rows: Iterable[Evidence]) -> int:
    """How many different sentences the rows state, whatever the arm and the cut in two."""
    return len({row.pair for row in rows})


def drop_recut_sentences(rows: Iterable[Evidence]) -> list[Evidence]:
    """Each sentence of each arm once, in the order of its first row: of rows that cut it in two in
    different places, the one said most often. Their `times` are the same."""
    by_place: dict[tuple[str, tuple[str, str]], Evidence] = {}
    for row in rows:
        place = row.arm, row.pair
        if place not in by_place or by_place[place].count < row.count:
            by_place[place] = row
    return list(by_place.values())


def select_top_rows(rows: Sequence[Evidence], count: int) -> list[Evidence]:
    """The most telling rows of one verdict, each sentence once (its `times` say how often), in
    the order that `ORDERS` gives in words: those with the greatest lift; for what was only said,
    those that are likelier for others (a lift of 0 or less), those said most often first."""

    def key(row: Evidence) -> tuple[Any, ...]:
        lift = 0.0 if math.isnan(row.lift.value) else row.lift.value
        name = (-row.count, row.group, row.predicate, row.object, row.arm)
        if row.verdict in ORDERS:
            return (lift > 0, -row.times, lift, *name)
        return (-lift, -row.times, *name)

    by_pair: dict[tuple[str, str], Evidence] = {}
    for row in sorted(rows, key=key):
        by_pair.setdefault(row.pair, row)
    return list(by_pair.values())[:count]


_LOW_LIFT_FIRST_TEXT = "those with a lift of 0 or less first, the most often said first"
ORDERS: Mapping[str, str] = {ONLY_SAID: _LOW_LIFT_FIRST_TEXT, NOT_PROBED: _LOW_LIFT_FIRST_TEXT}
"""The order of `select_top_rows`, in words, for the verdicts whose order is not greatest lift
first."""


ProbeRunT = TypeVar("ProbeRunT", bound=ProbeRun)


@dataclass(frozen=True)
class EvidenceTable:
    """The joint view of a run.

    Attributes:
        rows: the triples that count, in the order of the store, then those that were never said.
        agreement: how far the three kinds agree, for each group and arm; empty if nothing was
            probed by names.
        belief_run: the probes by names that it rests on; None if there are none.
        probe_run: the probes of the groups' own names (`kgbias probe run`), which carry what is
            embedded; None if there are none.
        statements: the statements that count.
        missing_columns: which columns are empty, and the command that fills them; one line each.
    """

    rows: Sequence[Evidence]
    agreement: Sequence[GroupAgreement]
    belief_run: BeliefRun | None
    probe_run: ProbeRun | None
    statements: SelectedStatements
    missing_columns: Sequence[str]

    @property
    def floor(self) -> Mapping[str, Any]:
        """What the same test finds for made-up names, dealt at random to the groups: pairs
        `tested`, the mean `found`, the `pairs` of the real groups and those `believed`, `p_value`
        of this many by chance: the share of deals in which as many are believed of as many pairs;
        and by kind and category in `parts` ("nonce", "residuals", "placebo"). Empty without
        probes."""
        return summarise_floor(self.belief_run.record) if self.belief_run else {}

    @property
    def group_figures(self) -> Sequence[Mapping[str, Any]]:
        """The figures of groups (`kgbias.probe.group_figures.GroupFigure`), one for each group,
        score and kind; `names` has that of each name."""
        return list(self.belief_run.record.get("groups", [])) if self.belief_run else []

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
        by_verdict_rows: dict[str, list[Evidence]] = defaultdict(list)
        for row in self.rows:
            by_verdict_rows[row.verdict].append(row)
        return by_verdict_rows


def summarise_floor(record: Mapping[str, Any]) -> dict[str, Any]:
    """`EvidenceTable.floor`, of the record of a believing."""
    floor_parts = list(record.get("floor", []))
    nonce = [part for part in floor_parts if part["kind"] == "nonce"]
    pairs = {line["category"]: line.get("pairs", 0) for line in record.get("categories", [])}
    believed = sum(line.get("believed", 0) for line in record.get("categories", []))
    deals = [
        # Made-up names are asked about a part of the statements: as many as of all pairs.
        np.array(part["finds"]) * pairs[part["category"]] / part["tested"]
        for part in nonce
        if part["tested"]
    ]
    p_value = math.nan
    if deals:
        together = np.sum(deals, axis=0)
        # Scaled counts are no whole numbers, and may round to just below.
        p_value = float((1 + (together >= believed - 1e-9).sum()) / (1 + len(together)))
    return {
        "tested": sum(part["tested"] for part in nonce),
        "found": round(sum(part["found"] for part in nonce), 4),
        "pairs": sum(pairs.values()),
        "believed": believed,
        "p_value": p_value,
        "parts": floor_parts,
    }


class StoredBeliefs(NamedTuple):
    """A probing for beliefs, and what it found of each group and statement."""

    belief_run: BeliefRun
    edges: Sequence[BelievedEdge]


@dataclass(frozen=True, slots=True)
class EvidenceInputs:
    """The parts of the joint view: a run, the statements that count, all its generations, its
    probings with their edges, its probes by names with what is believed, its forced choices, the
    same model's stories, and what methods have about its statements."""

    run: Run
    statements: SelectedStatements
    generations: Sequence[Generation]
    probes: Sequence[tuple[ProbeRun, Sequence[ProbedEdge]]]
    beliefs: StoredBeliefs | None = None
    choices: StoredChoices = field(default_factory=StoredChoices)
    stories: StoryEvidence = field(default_factory=StoryEvidence)
    added: MethodColumns = field(default_factory=MethodColumns)

    @classmethod
    def read(
        cls, run: StoredRun, selection: Selection | None, model: str | None = None
    ) -> "EvidenceInputs":
        """The parts from the store; of the probings and believings, those of the named model."""
        probe_runs = [p for p in run.find_all(ProbeRun) if p.model.goes_by(model)]
        probe_run = _pick_run_model(run.record, probe_runs)
        probes = [(probe_run, run.find_all(ProbedEdge, asking=probe_run))] if probe_run else []
        generations, choices = list(run.generations()), StoredChoices.read(run, model)
        statements, beliefs = select_statements(run, selection), read_beliefs(run, model)
        stories, added = StoryEvidence.read(run), MethodColumns.read(run)
        return cls(run.record, statements, generations, probes, beliefs, choices, stories, added)


def read_beliefs(
    run: StoredRun, model: str | None = None, belief_runs: Sequence[BeliefRun] | None = None
) -> StoredBeliefs | None:
    """What a model believes: the named one, else the run's own, else the first. `belief_runs` are
    the run's askings, if already read."""
    candidates = run.find_all(BeliefRun) if belief_runs is None else belief_runs
    belief_run = _pick_run_model(run.record, [b for b in candidates if b.model.goes_by(model)])
    if belief_run is None:
        return None
    return StoredBeliefs(belief_run, run.find_all(BelievedEdge, asking=belief_run))


def describe_other_models(run: StoredRun, belief_run: BeliefRun | None) -> str:
    """A line that names the other models that were asked about the run, and where their beliefs
    are; "" if there are none."""
    other_models = [
        b.model.title for b in run.find_all(BeliefRun) if belief_run and b.id != belief_run.id
    ]
    if belief_run is None or not other_models:
        return ""
    where = how(
        f"run.evidence({other_models[0]!r}), and beside each other run.beliefs.models()",
        f"kgbias query believed --param run={run.name} --param model={quote(other_models[0])}, and "
        f"beside each other in kgbias report {run.name}",
    )
    return (
        f"the beliefs are those of {belief_run.model.title}; the store also has those of "
        f"{', '.join(other_models)}: {where}"
    )


def build_evidence(
    run: StoredRun, selection: Selection | None = None, *, model: str | None = None
) -> EvidenceTable:
    """The joint view of what counts, from what the store holds. `model` names the model whose
    probes are read (None: the run's own, else the first)."""
    return assemble_evidence(EvidenceInputs.read(run, selection, model))


def assemble_evidence(inputs: EvidenceInputs) -> EvidenceTable:
    """As `build_evidence`, from parts already read."""
    run, statements = inputs.run, inputs.statements
    probe_run = _pick_run_model(run, [p for p, _ in inputs.probes])
    stated_pairs = [
        (g.triple.group_id, Statement(g.triple.predicate, g.triple.object))
        for g in inputs.generations
        if g.triple is not None
    ]
    said_pairs = {(group, statement.words) for group, statement in stated_pairs}
    counts: Counter[tuple[str, str, str]] = Counter()
    for triple in statements.triples:
        counts[triple.arm, triple.group_id, Statement(triple.predicate, triple.object).words] += (
            triple.count
        )
    belief_run = inputs.beliefs.belief_run if inputs.beliefs else None
    record = belief_run.record if belief_run else {}
    given_statements = [Statement(*words) for words in record.get("given", {}).values()]
    texts = {s.key: s for s in (*given_statements, *(s for _, s in stated_pairs))}
    edges = next((edges for p, edges in inputs.probes if p is probe_run), [])
    tables = build_group_tables(run.groups, probe_run, edges, stated_pairs) if probe_run else {}
    refused = _estimate_refusals(inputs)
    shares = _estimate_triple_shares(statements)
    arms: dict[str, list[str]] = defaultdict(list)
    for triple in statements.triples:
        arms[triple.id].append(triple.arm)
    rows: list[Evidence] = []
    agreement: list[GroupAgreement] = []
    embedded = False
    for category in dict.fromkeys(g.category for g in run.groups):
        groups = {g.id: g for g in run.groups if g.category == category}
        category_triples = [triple for triple in statements.triples if triple.group_id in groups]
        probe = _CategoryProbes(tables.get(category), probe_run, inputs.beliefs, groups, texts)
        # What another model refused says nothing of what this one believes.
        probe.is_run_model = belief_run is not None and belief_run.model.id == run.model.id
        embedded |= bool(probe.vectors)
        for triple in category_triples:
            statement = Statement(triple.predicate, triple.object)
            said = SaidEvidence(
                triple.id,
                triple.arm,
                tuple(arms[triple.id]),
                triple.count,
                counts[triple.arm, triple.group_id, statement.words],
                shares[triple.arm, triple.id],
            )
            rows.append(
                _build_row(
                    inputs,
                    probe,
                    groups[triple.group_id],
                    statement,
                    said,
                    [triple],
                    refused[triple.group_id],
                )
            )
        if probe.beliefs:
            rows += _build_never_said(
                category_triples, given_statements, groups, probe, said_pairs, refused, inputs
            )
            agreement += _measure_agreement(
                category, probe, category_triples, statements.arms, counts
            )
    missing = _describe_missing(run, belief_run, embedded, rows)
    return EvidenceTable(rows, agreement, belief_run, probe_run, statements, missing)


class _CategoryProbes:
    """The cells of a category's probes."""

    def __init__(
        self,
        table: GroupTable | None,
        probe_run: ProbeRun | None,
        beliefs: StoredBeliefs | None,
        groups: Mapping[str, Group],
        texts: Mapping[StatementKey, Statement],
    ) -> None:
        self.table, self.groups = table, groups
        self.is_run_model = True
        edges = beliefs.edges if beliefs else ()
        stated_edges = []
        for edge in edges:
            statement = texts.get((edge.predicate_id, edge.object_id))
            if edge.group_id in groups and statement is not None:
                stated_edges.append((statement, edge))
        # By words: what the crawl cut in two at several places was asked once.
        self.beliefs = {(e.group_id, statement.words): e for statement, e in stated_edges}
        self.statements = {statement.words: statement for statement, _ in stated_edges}
        self._replication_rates = (
            beliefs.belief_run.record.get("replication_rates", {}) if beliefs else {}
        )
        self.model = beliefs.belief_run.model.title if beliefs and self.beliefs else ""
        if not self.model and table is not None and probe_run is not None:
            self.model = probe_run.model.title
        self.vectors = self.vector_terms = ""
        self.association = None
        if table is not None and table.similarity is not None and probe_run is not None:
            self.vectors = str(probe_run.record.get("vectors", ""))
            self.vector_terms = str(
                probe_run.record.get("vector_terms", {}).get(table.category, GROUP_NAMES)
            )
            self.association = compute_associations(table.similarity)
            scale = spread_over_statements(lifts_over_others(table.similarity))
            low, high = contrast_intervals(table.similarity)
            self._low, self._high = low / scale, high / scale

    def is_believed(self, group: str, words: str) -> bool | None:
        """None where nothing can be said: the pair was not probed, or the group has too few
        names."""
        edge = self.beliefs.get((group, words))
        if edge is None or edge.names < MIN_NAMES:
            return None
        return edge.verdict == BELIEVED

    def group_associations(self, group: str, keys: Sequence[StatementKey]) -> Values | None:
        """The associations of a group with statements; None where any is missing."""
        if self.association is None or self.table is None:
            return None
        places = [self.table.places.get((group, key)) for key in keys]
        if None in places:
            return None
        return np.array([self.association[place] for place in places if place], dtype=np.float64)

    def find_belief(self, group: str, statement: Statement) -> "BeliefEvidence":
        """What the group's names show of the statement."""
        edge = self.beliefs.get((group, statement.words))
        if edge is None:
            return BeliefEvidence()
        return BeliefEvidence(
            Estimate(edge.lift, edge.low, edge.high, edge.names),
            edge.q_value,
            edge.verdict == LEANING,
            edge.verdict == BOUND,
            edge.verdict == BELIEVED and edge.names < MIN_NAMES,
            self._replication_rates.get(f"{group} {edge.statement_id}", math.nan),
            edge.min_loo_lift,
            edge.most_influential_name,
        )

    def find_probe(self, group: str, statement: Statement) -> "OwnNameEvidence":
        """What the group's own name and the vectors show of the statement."""
        if self.table is None or (group, statement.key) not in self.table.places:
            return OwnNameEvidence()
        place, group_count = self.table.places[group, statement.key], len(self.table.groups)
        association = _NOT_ESTIMATED
        if self.association is not None:
            association = _estimate_at(self.association, self._low, self._high, place, group_count)
        return OwnNameEvidence(
            self.table.edges[place[0]][place[1]].rank,
            group_count,
            float(-self.table.bits[place]),
            association,
        )


@dataclass(frozen=True, slots=True)
class SaidEvidence:
    """What the run said of a group and a statement; see the fields of `Evidence`."""

    id: str
    arm: str = ""
    arms: tuple[str, ...] = ()
    count: int = 0
    times: int = 0
    share: Estimate = _NOT_ESTIMATED


@dataclass(frozen=True, slots=True)
class BeliefEvidence:
    """What a group's names show of a statement; see the fields of `Evidence`."""

    lift: Estimate = _NOT_ESTIMATED
    q_value: float = math.nan
    leaning: bool = False
    bound_to_word: bool = False
    names_only: bool = False
    replication_rate: float = math.nan
    min_loo_lift: float = math.nan
    most_influential_name: str = ""


@dataclass(frozen=True, slots=True)
class OwnNameEvidence:
    """What a group's own name and the vectors show of a statement; see the fields of
    `Evidence`."""

    rank: int | None = None
    groups_ranked: int = 0
    surprisal: float = math.nan
    association: Estimate = _NOT_ESTIMATED


def _build_row(
    inputs: EvidenceInputs,
    probe: _CategoryProbes,
    group: Group,
    statement: Statement,
    said: SaidEvidence,
    triples: Sequence[TripleView],
    refused: Estimate,
) -> Evidence:
    """The row of a group and a statement, which these `triples` state. Where it was probed, it is
    cut in two as it was asked; its own cut is what its node and its choices are found by."""
    asked = probe.statements.get(statement.words, statement)
    names = probe.find_belief(group.id, statement)
    own_name = probe.find_probe(group.id, statement)
    choice = inputs.choices.find(group.id, statement.key)
    story_share = inputs.stories.find_share(group.id, statement)
    regard_labels = Counter(
        t.scores["regard"].label for t in _distinct(triples) if "regard" in t.scores
    )
    return Evidence(
        group=group.name,
        predicate=asked.predicate,
        object=asked.object,
        verdict=decide_verdict(
            is_said=said.count > 0,
            is_believed=probe.is_believed(group.id, statement.words),
            refused=refused.value if probe.is_run_model else 0.0,
        ),
        count=said.count,
        times=said.times,
        lift=names.lift,
        q_value=names.q_value,
        leaning=names.leaning,
        bound_to_word=names.bound_to_word,
        names_only=names.names_only,
        replication_rate=names.replication_rate,
        min_loo_lift=names.min_loo_lift,
        most_influential_name=names.most_influential_name,
        share=said.share,
        arm=said.arm,
        arms=said.arms,
        acceptability=_mean_score(triples, "acceptability"),
        regard=_mean_score(triples, "regard"),
        regard_label=regard_labels.most_common(1)[0][0] if regard_labels else "",
        toxicity=_mean_score(triples, "toxicity"),
        rank=own_name.rank,
        groups_ranked=own_name.groups_ranked,
        surprisal=own_name.surprisal,
        association=own_name.association,
        refused=refused,
        chosen=choice.chosen,
        chosen_lift=choice.chosen_lift,
        chosen_q_value=choice.chosen_q_value,
        story_share=story_share,
        category=group.category,
        model=probe.model,
        vectors=probe.vectors,
        vector_terms=probe.vector_terms,
        chooser=choice.chooser,
        story_run=inputs.stories.story_run if inputs.stories.has_told_of(group.id) else "",
        id=said.id,
        added=inputs.added.cells.get(said.id, {}) if said.count else {},
    )


def _estimate_at(values: Any, low: Any, high: Any, place: tuple[int, int], n: int) -> Estimate:
    return Estimate(float(values[place]), float(low[place]), float(high[place]), n)


def _pick_run_model(run: Run, candidates: Sequence[ProbeRunT]) -> ProbeRunT | None:
    """What the run's own model made, if anything, or else the first."""
    return next(
        (p for p in candidates if p.model == run.model), candidates[0] if candidates else None
    )


def _estimate_refusals(inputs: EvidenceInputs) -> Mapping[str, Estimate]:
    """The share of refused prompts about each group, in the arms that count."""
    shares: dict[str, list[float]] = defaultdict(list)
    for prompt in list_prompt_refusals(inputs.generations, inputs.statements.arms):
        shares[prompt.group].append(prompt.share)
    return {group.id: estimate_refusal_share(shares[group.id]) for group in inputs.run.groups}


def _estimate_triple_shares(statements: SelectedStatements) -> Mapping[tuple[str, str], Estimate]:
    """The coverage-corrected share of each triple in its arm and group (see `Evidence.share`)."""
    by_group: dict[tuple[str, str], list[TripleView]] = defaultdict(list)
    for triple in statements.triples:
        by_group[triple.arm, triple.group_id].append(triple)
    shares = {}
    for triples in by_group.values():
        total = sum(triple.count for triple in triples)
        coverage = good_turing_coverage(triple.count for triple in triples)
        for triple in triples:
            value, high = coverage * triple.count / total, proportion(triple.count, total).high
            low = min(value, _least_mean(triple.count) / total)
            shares[triple.arm, triple.id] = Estimate(value, low, high, total)
    return shares


@cache
def _least_mean(count: int) -> float:
    """The lower 95% end of the mean of a Poisson count that would not have been looked at, had it
    been 0 (David and Johnson 1952): 0 of a count of 1, which any mean may give."""
    from scipy.special import gammainc

    low, high = 0.0, float(count)
    for _ in range(60 if count > 1 else 0):
        middle = (low + high) / 2
        # The probability of this count or a higher one, given that it is not 0.
        is_unlikely = gammainc(count, middle) < 0.025 * -math.expm1(-middle)
        low, high = (middle, high) if is_unlikely else (low, middle)
    return low


def _build_never_said(
    category_triples: Sequence[TripleView],
    given_statements: Sequence[Statement],
    groups: Mapping[str, Group],
    probe: _CategoryProbes,
    said_pairs: set[tuple[str, str]],
    refused: Mapping[str, Estimate],
    inputs: EvidenceInputs,
) -> list[Evidence]:
    """What is believed of a group but was never said about it in the run: statements that count for
    some other group, and those that were given."""
    views: dict[str, list[TripleView]] = defaultdict(list)
    for t in category_triples:
        views[Statement(t.predicate, t.object).words].append(t)
    candidates = dict.fromkeys((*views, *(statement.words for statement in given_statements)))
    probed = [probe.statements[words] for words in candidates if words in probe.statements]
    rows = []
    for group in groups.values():
        for statement in probed:
            if (group.id, statement.words) in said_pairs:
                continue
            if not probe.is_believed(group.id, statement.words):
                continue
            unsaid = SaidEvidence(triple_id(group.id, *statement.key))
            triples = views.get(statement.words, [])
            rows.append(
                _build_row(inputs, probe, group, statement, unsaid, triples, refused[group.id])
            )
    return rows


def _distinct(triples: Sequence[TripleView]) -> list[TripleView]:
    """Each triple once, whatever the arms that said it."""
    return list({triple.id: triple for triple in triples}.values())


def _mean_score(triples: Sequence[TripleView], measure: str) -> float:
    """The score of a statement: the mean over the triples that state it; NaN without any."""
    values = [t.scores[measure].value for t in _distinct(triples) if measure in t.scores]
    return sum(values) / len(values) if values else math.nan


def _measure_agreement(
    category: str,
    probe: _CategoryProbes,
    category_triples: Sequence[TripleView],
    arms: Sequence[str],
    sentence_counts: Mapping[tuple[str, str, str], int],
) -> list[GroupAgreement]:
    """Kendall's tau for each group and arm, over the statements that count and were probed;
    `sentence_counts` says how often each was said, by arm, group and words."""
    keys: dict[str, StatementKey] = {}  # by words
    for t in category_triples:
        statement = Statement(t.predicate, t.object)
        keys.setdefault(statement.words, statement.key)
    rows = []
    for arm in arms:
        for group in probe.groups.values():
            probed = {
                words: key for words, key in keys.items() if (group.id, words) in probe.beliefs
            }
            counts = np.array(
                [sentence_counts.get((arm, group.id, w), 0) for w in probed], dtype=float
            )
            lift = np.array([probe.beliefs[group.id, words].lift for words in probed], dtype=float)
            associations = probe.group_associations(group.id, list(probed.values()))
            missing = Estimate.missing()
            predicates = [predicate for predicate, _ in probed.values()]
            rows.append(
                GroupAgreement(
                    category,
                    group.name,
                    arm,
                    jackknife_kendall_tau(counts, lift, predicates),
                    missing
                    if associations is None
                    else jackknife_kendall_tau(counts, associations, predicates),
                    missing
                    if associations is None
                    else jackknife_kendall_tau(lift, associations, predicates),
                )
            )
    return rows


def _describe_missing(
    run: Run, belief_run: BeliefRun | None, embedded: bool, rows: Sequence[Evidence]
) -> list[str]:
    if belief_run is None:
        return [
            f"run {run.name!r} was not probed by names: lift, verdict and association are empty; "
            f"{how('run.evidence(MODEL)', f'kgbias evidence {run.name} --model SPEC')} fills them, "
            "with a model that gives probabilities"
        ]
    lines = []
    unprobed = count_sentences(row for row in rows if row.verdict == NOT_PROBED and not row.lift.n)
    if unprobed and any(line["not_probed"] for line in belief_run.record.get("categories", [])):
        more = how(
            'run.evidence(MODEL, asking={"probes": N})',
            f"kgbias --set probes=N evidence {run.name} --model SPEC",
        )
        lines.append(
            f"{unprobed:,} statement{' was' if unprobed == 1 else 's were'} said but not probed: "
            f"{more} asks more"
        )
    small_groups = [
        n for line in belief_run.record.get("categories", []) for n in line["too_few_names"]
    ]
    if small_groups:
        lines.append(
            f"nothing is said of {', '.join(small_groups)}: fewer than {MIN_NAMES} names, or no "
            f"other group to "
            "compare with; what is found is a belief about their names (more names: NAME | OTHER "
            "NAME ... of a group)"
        )
    if not embedded:
        filled, other = (
            how("run.evidence(MODEL)", f"kgbias evidence {run.name} --model SPEC"),
            how("`encoder`", "--encoder"),
        )
        lines.append(
            f"association is empty: {filled} fills it from the vectors of that model, {other} from "
            "those of another"
        )
    return lines
