"""The rows that a run's results are read as, and their columns."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from kgbias.graph.between import Named
from kgbias.graph.selection import Counted
from kgbias.graph.store import StoredRun
from kgbias.graph.types import (
    Attribution,
    GroupScore,
    RunSummary,
    TopicModel,
    TripleView,
    node_id,
    statement_id,
)
from kgbias.measures import columns, figures
from kgbias.study.figure import Figure
from kgbias.study.rows import Rows

if TYPE_CHECKING:
    from kgbias.measure.agreement import Agreement


@dataclass(frozen=True, slots=True)
class GroupRow:
    """A group of a run in one arm: how many statements that count there are about it, how many of
    them are distinct, and its figures by measure."""

    group: str
    category: str
    variants: tuple[str, ...]
    statements: int
    distinct: int
    figures: Mapping[str, Figure] = field(default_factory=dict)
    arm: str = "none"


@dataclass(frozen=True, slots=True)
class GenerationRow:
    """One answer of the model, with where it came from. `answer` is the raw text; `shown` are the
    statements that the prompt held as examples; `predicate` and `object` are "" where the answer
    yielded no triple (`outcome` and `reason` say why)."""

    group: str
    predicate: str
    object: str
    count: int
    outcome: str
    reason: str
    arm: str
    strategy: str
    iteration: int
    attempt: int
    template: str
    template_hash: str
    prompt: str
    answer: str
    shown: tuple[str, ...]
    path: str


@dataclass(frozen=True, slots=True)
class ProbeRow:
    """A statement with a group before it, under one model (see `ProbedEdge`). `said` is how often
    the run's model said it of this group, in all arms. Perplexities are of the tokens' natural
    log-likelihoods; `rank` is the group's by the probing's own measure, 1 the likeliest."""

    model: str
    category: str
    group: str
    predicate: str
    object: str
    rank: int
    said: int
    conditional_perplexity: float
    perplexity: float
    log_likelihood: float
    tokens: int


@dataclass(frozen=True, slots=True)
class TopicRow:
    """A topic: its number by size in its category, the number of distinct statements about it, its
    most telling words, best first, and its name (the given one, else the four best words).
    `coherence` is the mean NPMI of its words, in [-1, 1]; `stability` its overlap with the nearest
    topics of other seeds, in [0, 1]; NaN where it was not measured."""

    category: str
    number: int
    size: int
    words: tuple[str, ...]
    name: str
    coherence: float
    stability: float


def triple_rows(run: StoredRun, triples: Sequence[TripleView]) -> Rows[TripleView]:
    """Triples with a column for each measure of the run, NaN where a triple has no score;
    `names_other` are the other groups of the run that a statement names."""
    category = {group.id: group.category for group in run.groups}
    present = {measure for t in triples for measure in t.scores} | set(run.metrics())
    measures = columns(present)
    named = Named(run.groups)

    def record(t: TripleView) -> dict[str, Any]:
        scores = {m.name: t.scores.get(m.name) for m in measures}
        return {
            "group": t.group,
            "predicate": t.predicate,
            "object": t.object,
            "count": t.count,
            "arm": t.arm,
            **{name: score.value if score else math.nan for name, score in scores.items()},
            **{m.label_column: score.label if (score := scores[m.name]) else "" for m in measures},
            "category": category.get(t.group_id, ""),
            "sentence": t.sentence,
            "names_other": ", ".join(named.others(t)),
            "id": t.id,
        }

    names = [
        "group", "predicate", "object", "count", "arm", *(m.name for m in measures),
        *(m.label_column for m in measures), "category", "sentence", "names_other", "id",
    ]  # fmt: skip
    return Rows(triples, record, names)


def group_rows(run: StoredRun, counted: Counted, scores: Sequence[GroupScore]) -> Rows[GroupRow]:
    """The groups, each in each arm, with their figures: for each measure the columns MEASURE,
    MEASURE_low, MEASURE_high and MEASURE_n, and MEASURE_withheld, the reason, where a value is
    withheld."""
    names = {group.id: group.name for group in run.groups}
    found: dict[tuple[str, str], dict[str, Figure]] = {}
    for s in scores:
        own = found.setdefault((s.group_id, s.arm), {})
        own[s.measure] = figure_of(s, names.get(s.group_id, ""))
    said: dict[tuple[str, str], list[int]] = {}
    for t in counted.triples:
        said.setdefault((t.group_id, t.arm), []).append(t.count)
    rows = [
        GroupRow(
            g.name,
            g.category,
            g.variants,
            sum(said.get((g.id, arm), ())),
            len(said.get((g.id, arm), ())),
            found.get((g.id, counted.label(arm)), {}),
            arm,
        )
        for g in run.groups
        for arm in counted.arms
    ]
    withheld = {m for row in rows for m, f in row.figures.items() if f.withheld}
    there = {m for row in rows for m in row.figures}
    order = list(figures(there))
    measures = sorted(
        there,
        key=lambda m: (order.index(m) if m in order else len(order), m),
    )

    def record(row: GroupRow) -> dict[str, Any]:
        cells: dict[str, Any] = {
            "group": row.group,
            "category": row.category,
            "arm": row.arm,
            "statements": row.statements,
            "distinct": row.distinct,
        }
        for measure in measures:
            f = row.figures.get(measure)
            cells[measure] = f.value if f else math.nan
            cells[f"{measure}_low"] = f.low if f else math.nan
            cells[f"{measure}_high"] = f.high if f else math.nan
            cells[f"{measure}_n"] = f.n if f else 0
            if measure in withheld:
                cells[f"{measure}_withheld"] = f.withheld if f else ""
        return cells

    names_of = ["group", "category", "arm", "statements", "distinct"]
    for m in measures:
        names_of += [f"{m}{end}" for end in ("", "_low", "_high", "_n")]
        names_of += [f"{m}_withheld"] * (m in withheld)
    return Rows(rows, record, names_of)


def figure_of(score: GroupScore, group: str) -> Figure:
    """A stored figure of the group with that name."""
    s = score
    return Figure(s.value, s.low, s.high, s.n, group, s.measure, s.method, s.arm)


def topic_rows(models: Sequence[TopicModel]) -> Rows[TopicRow]:
    """The topics of a run's models."""
    rows = (
        TopicRow(
            model.category,
            t.number,
            t.size,
            t.words,
            t.name,
            math.nan if t.coherence is None else t.coherence,
            math.nan if t.stability is None else t.stability,
        )
        for model in models
        for t in model.topics
    )
    return Rows(rows, columns=TopicRow.__dataclass_fields__)


def generation_rows(run: StoredRun) -> Rows[GenerationRow]:
    """All answers of a run with their provenance."""
    names = {group.id: group.name for group in run.groups}
    sentences = {t.id: t.sentence for t in run.triples()}
    generations = list(run.generations())
    answers = run.answers([g.answer_key for g in generations if g.answer_key])
    rows = (
        GenerationRow(
            names.get(g.group_id, ""),
            g.triple.predicate if g.triple else "",
            g.triple.object if g.triple else "",
            g.count,
            g.outcome,
            g.reason,
            g.arm,
            g.strategy,
            g.iteration,
            g.attempt,
            g.template,
            g.template_hash,
            g.prompt,
            answers[g.answer_key].text if g.answer_key in answers else "",
            tuple(sentences.get(id, id) for id in g.shown),
            g.path,
        )
        for g in generations
    )
    return Rows(rows, columns=GenerationRow.__dataclass_fields__)


def probe_rows(run: StoredRun, model: str | None) -> Rows[ProbeRow]:
    """The probed statements of a run, under all models or one."""
    groups = {group.id: group for group in run.groups}
    triples = run.triples()
    said = {(statement_of(t), t.group_id): t.count for t in triples}
    words = {statement_of(t): (t.predicate, t.object) for t in triples}
    rows = []
    for probing in run.probings():
        if model is not None and probing.model.name != model:
            continue
        for edge in run.probes(probing):
            group = groups.get(edge.group_id)
            if group is None or edge.statement_id not in words:
                continue
            rows.append(
                ProbeRow(
                    probing.model.name,
                    group.category,
                    group.name,
                    *words[edge.statement_id],
                    edge.rank,
                    said.get((edge.statement_id, edge.group_id), 0),
                    _perplexity(edge.statement_log_likelihood, edge.statement_tokens),
                    _perplexity(edge.log_likelihood, edge.tokens),
                    edge.log_likelihood,
                    edge.tokens,
                )
            )
    return Rows(rows, columns=ProbeRow.__dataclass_fields__)


def statement_of(triple: TripleView) -> str:
    """The id of the triple's statement."""
    return statement_id(node_id("predicate", triple.predicate), node_id("object", triple.object))


def attribution_rows(run: StoredRun, attributions: Sequence[Attribution]) -> Rows[Attribution]:
    """The effect of each word, as lists in the columns `tokens` and `effects`."""
    sentences = {t.id: t.sentence for t in run.triples()}

    def record(a: Attribution) -> dict[str, Any]:
        return {
            "sentence": sentences.get(a.triple_id, ""),
            "measure": a.metric.measure,
            "score": a.score,
            "tokens": a.tokens,
            "effects": a.effects,
            "scorer": a.metric.scorer,
            "version": a.metric.version,
            "method": a.method,
        }

    names = ("sentence", "measure", "score", "tokens", "effects", "scorer", "version", "method")
    return Rows(attributions, record, names)


def _perplexity(log_likelihood: float, tokens: int) -> float:
    return math.exp(-log_likelihood / tokens) if tokens else math.nan


SUMMARY = (
    "name", "model", "revision", "kind", "status", "created", "groups", "categories", "triples",
    "statements", "generations", "refused", "invalid", "echoes", "nonsense", "failed",
    "resampled", "prompt_tokens", "completion_tokens", "seconds", "series",
)  # fmt: skip


def summary_record(s: RunSummary) -> dict[str, Any]:
    """A run with its counts, as a row of `Study.runs`."""
    run = s.run
    return {
        "name": run.name,
        "model": run.model.name,
        "revision": run.model.revision,
        "kind": run.kind,
        "status": run.status,
        "created": run.created,
        "groups": [group.name for group in run.groups],
        "categories": sorted({group.category for group in run.groups}),
        "triples": s.triples,
        "statements": s.statements,
        "generations": s.generations,
        "refused": s.refused,
        "invalid": s.invalid,
        "echoes": s.echoes,
        "nonsense": s.nonsense,
        "failed": s.failed,
        "resampled": s.resampled,
        "prompt_tokens": s.prompt_tokens,
        "completion_tokens": s.completion_tokens,
        "seconds": s.seconds,
        "series": run.config.get("series", ""),
    }


def agreement_rows(found: "Sequence[Agreement]") -> Rows["Agreement"]:
    """The agreement of scorers, its figures each with their intervals."""
    columns = (
        "measure", "first", "second", "n", "same", "kappa", "kappa_low", "kappa_high", "rho",
        "rho_low", "rho_high", "moved",
    )  # fmt: skip

    def record(a: "Agreement") -> dict[str, Any]:
        values = (
            a.measure, a.first, a.second, a.n, a.same.value, a.kappa.value, a.kappa.low,
            a.kappa.high, a.rho.value, a.rho.low, a.rho.high,
            tuple((m.group, m.first, m.second) for m in a.moved),
        )  # fmt: skip
        return dict(zip(columns, values, strict=True))

    return Rows(found, record, columns)
