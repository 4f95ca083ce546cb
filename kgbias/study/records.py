"""The figures and rows of results, and their columns."""

import html
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from kgbias.graph.selection import (
    TRIPLE_COLUMNS,
    SelectedStatements,
    Selection,
    run_language,
    score_column,
)
from kgbias.graph.store import StoredRun
from kgbias.graph.types import (
    Answer,
    GroupScore,
    ProbedEdge,
    ProbeRun,
    RunSummary,
    TopicModel,
    TripleView,
)
from kgbias.io.columns import Column
from kgbias.io.rows import Result, Rows
from kgbias.io.text import format_p_value, printable
from kgbias.measures import (
    WITHHELD_PREFIX,
    Measure,
    column_measures,
    figures_by_name,
    label_count_words,
    pick_headlines,
)
from kgbias.stats.estimate import Estimate, parse_covered_variances

if TYPE_CHECKING:
    from kgbias.measure.scorer_agreement import ScorerAgreement
    from kgbias.models.budget import Prices

VALUE_COLUMN = Column(
    "value",
    ".4g",
    interval=True,
    get=lambda estimate: estimate,
    ends=("low", "high"),
    count="n",
)
"""The figure of a row that is an estimate itself."""
PAIR_COLUMNS = (
    Column("first"),
    Column("second"),
    Column("n_first", "d", get=lambda test: test.n[0]),
    Column("n_second", "d", get=lambda test: test.n[1]),
    Column("mean_first", "+.3f", get=lambda test: test.means[0]),
    Column("mean_second", "+.3f", get=lambda test: test.means[1]),
    Column("difference", "+.3f", interval=True, ends=("low", "high")),
)
"""Of a test of two sides: their means, and the first minus the second."""


def corrected_columns(part: str) -> tuple[Column, ...]:
    """Of a test of two sides: the difference that labels correct, which is this part of it."""
    return (
        Column("corrected", "+.3f", interval=True, get=attrgetter(part)),
        Column("corrected_p_value", format_p_value, get=attrgetter(f"{part}.p")),
        Column("corrected_p_adjusted", format_p_value, get=attrgetter(f"{part}.p_adjusted")),
        Column("labels", "d", get=attrgetter(f"{part}.n")),
    )


_WIDTH_PX = 180  # pixels of a drawn interval


@dataclass(frozen=True, slots=True)
class Figure(Estimate, Result):
    """A figure of one group in one run: `value`, its 95% interval from `low` to `high` (NaN if
    there is none), and `n`, the number of statements behind it.

    Attributes:
        group: the group.
        measure: the name of the figure, such as "overall_regard" (`kgbias.measures.figures_by_name`
            lists the names and what a higher value means).
        method: how the interval was computed, and which variances it covers; or why there is no
            value.
        arm: the arm, "" in a run with one arm.
    """

    group: str
    measure: str
    method: str = ""
    arm: str = ""

    @property
    def withheld(self) -> str:
        """Why the figure's value is withheld; "" if it has one."""
        return (
            self.method.removeprefix(WITHHELD_PREFIX)
            if self.method.startswith(WITHHELD_PREFIX)
            else ""
        )

    @property
    def labels(self) -> str:
        """For a figure corrected by labels, how many there are: of the group's own statements, or
        "of all", of those about all groups; "" for any other."""
        return label_count_words(self.method, self.n)

    def as_rows(self) -> Rows["Figure"]:
        """Itself. Columns: group, measure, arm, value, low, high, n, method."""
        columns = (Column("group"), Column("measure"), Column("arm"), VALUE_COLUMN)
        return Rows([self], (*columns, Column("method")))

    def as_dict(self) -> dict[str, Any]:
        """As `Estimate`, with the reason under "withheld" if the value is withheld."""
        reason = {"withheld": self.withheld} if self.withheld else {}
        return Estimate.as_dict(self) | reason

    def __str__(self) -> str:
        text = f"withheld: {self.withheld}" if self.withheld else Estimate.__str__(self)
        return f"{self._title}: {text}"

    def _repr_html_(self) -> str:
        """The view in a notebook: the figure in words, its interval drawn relative to 0, and what
        it means."""
        if self.withheld:
            return html.escape(str(self))
        figure_info = figures_by_name({self.measure}).get(self.measure)
        notes = [figure_info.direction if figure_info else "", self.method]
        notes_html = "; ".join(html.escape(note) for note in notes if note)
        return f"{Estimate._repr_html_(self)}{self._interval_svg()}<br><small>{notes_html}</small>"

    def _interval_svg(self) -> str:
        """The interval as a line with a dot, and a tick at 0; "" without an interval."""
        if not self.has_interval:
            return ""
        widest = max(abs(self.low), abs(self.high), abs(self.value)) or 1.0
        low, value, high = (
            # 0.94 leaves room for the dot at either end.
            _WIDTH_PX / 2 * (1 + x / widest * 0.94)
            for x in (self.low, self.value, self.high)
        )
        return (
            f' <svg width="{_WIDTH_PX}" height="14" role="img" aria-label="interval" '
            'style="vertical-align: middle" stroke="currentColor" fill="currentColor">'
            f'<path d="M{_WIDTH_PX / 2} 1V13" stroke-opacity=".4"/>'
            f'<path d="M{low:.1f} 7H{high:.1f}" stroke-width="2"/>'
            f'<circle cx="{value:.1f}" cy="7" r="4" stroke="none"/></svg>'
        )

    @property
    def covers(self) -> tuple[str, ...]:
        """The variances that the interval covers: "statements", "wordings", "recrawls"
        (`kgbias.stats.estimate.parse_covered_variances`); empty if not stated."""
        return parse_covered_variances(self.method)

    @property
    def _title(self) -> str:
        figure_info = figures_by_name({self.measure}).get(self.measure)
        return f"{figure_info.title if figure_info else self.measure} of {printable(self.group)}"


@dataclass(frozen=True, slots=True)
class GroupRow:
    """A group of a run in one arm: the number of statements about it that count, how many of them
    are distinct, and its figures by measure."""

    group: str
    category: str
    variants: tuple[str, ...]
    statements: int
    distinct: int
    figures: Mapping[str, Figure] = field(default_factory=dict)
    arm: str = "none"


@dataclass(frozen=True, slots=True)
class GenerationRow:
    """One answer of the model, with its provenance. `answer` is the raw text; `examples` are
    the statements that the prompt showed; `predicate` and `object` are "" if the answer yielded no
    triple (`outcome` and `reason` say why)."""

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
    examples: tuple[str, ...]
    path: str


@dataclass(frozen=True, slots=True)
class ProbeRow:
    """A statement after a group, under one model (see `ProbedEdge`). `said` is how often the run's
    model said it of this group, in all arms. Perplexities are of the tokens' natural
    log-likelihoods; `rank` is the group's by the probing's own measure, 1 being the likeliest."""

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
    topics of other seeds, in [0, 1]; `kept` the share of its pairs of statements that still share a
    topic without a fifth of all statements, in [0, 1]; NaN if not measured."""

    category: str
    number: int
    size: int
    words: tuple[str, ...]
    name: str
    coherence: float
    stability: float
    kept: float


def triple_rows(run: StoredRun, triples: Sequence[TripleView]) -> Rows[TripleView]:
    """Triples with a column for each measure of the run, NaN for a triple without a score;
    `names_other` lists the run's other groups that a statement names."""
    from kgbias.graph.cross_mentions import MentionIndex

    category = {group.id: group.category for group in run.groups}
    present = {measure for t in triples for measure in t.scores} | set(run.metrics())
    measures = column_measures(present)
    mentions = MentionIndex(run.groups)
    columns = [
        *TRIPLE_COLUMNS,
        *(score_column(measure.name) for measure in measures),
        *(_label_column(measure) for measure in measures),
        Column("category", get=lambda triple: category.get(triple.group_id, "")),
        Column("sentence"),
        Column("names_other", get=lambda triple: ", ".join(mentions.other_groups(triple))),
        Column("id"),
    ]
    return Rows(triples, columns)


def _label_column(measure: Measure) -> Column:
    """The label by which a triple was scored on a measure, "" without one."""

    def label(triple: TripleView) -> str:
        score = triple.scores.get(measure.name)
        return score.label if score else ""

    return Column(measure.label_column, get=label)


def group_rows(run: StoredRun, counted: SelectedStatements, selection: Selection) -> Rows[GroupRow]:
    """The groups, each in each arm, with their figures over the statements that the selection
    counted: for each measure the columns MEASURE, MEASURE_low, MEASURE_high and MEASURE_n, and
    MEASURE_withheld, the reason, if a value is withheld."""
    from kgbias.measure.figures import read_figures

    names = {group.id: group.name for group in run.groups}
    group_figures: dict[tuple[str, str], dict[str, Figure]] = {}
    for score in read_figures(run, selection, counted):
        figures_of_group = group_figures.setdefault((score.group_id, score.arm), {})
        figures_of_group[score.measure] = figure_of(score, names.get(score.group_id, ""))
    counts: dict[tuple[str, str], list[int]] = {}
    for t in counted.triples:
        counts.setdefault((t.group_id, t.arm), []).append(t.count)
    rows = [
        GroupRow(
            g.name,
            g.category,
            g.variants,
            sum(counts.get((g.id, arm), ())),
            len(counts.get((g.id, arm), ())),
            group_figures.get((g.id, counted.arm_label(arm)), {}),
            arm,
        )
        for g in run.groups
        for arm in counted.arms
    ]
    withheld = {m for row in rows for m, f in row.figures.items() if f.withheld}
    present = {m for row in rows for m in row.figures}
    order = list(figures_by_name(present))
    measures = sorted(
        present,
        key=lambda m: (order.index(m) if m in order else len(order), m),
    )

    columns = [
        Column("group"),
        Column("category"),
        Column("arm"),
        Column("statements", "d"),
        Column("distinct", "d"),
    ]
    for measure in measures:
        columns += _figure_columns(measure, has_withheld=measure in withheld)
    shown = ["group", "category", "statements", *(f.name for f in pick_headlines(present))]
    if len({row.arm for row in rows}) > 1:
        shown.append("arm")
    return Rows(rows, columns, shown=shown)


def _figure_columns(measure: str, *, has_withheld: bool) -> list[Column]:
    """The figure of a group, its n, and if any was, why it is withheld."""
    info = figures_by_name({measure}).get(measure)

    def count(row: GroupRow) -> int:
        figure = row.figures.get(measure)
        return figure.n if figure else 0

    def reason(row: GroupRow) -> str:
        figure = row.figures.get(measure)
        return figure.withheld if figure else ""

    columns = [
        Column(
            measure,
            info.form if info else ".4g",
            interval=True,
            title=info.title if info else "",
            get=lambda row: row.figures.get(measure),
        ),
        Column(f"{measure}_n", "d", get=count),
    ]
    if has_withheld:
        columns.append(Column(f"{measure}_withheld", get=reason))
    return columns


def figure_of(score: GroupScore, group: str) -> Figure:
    """A stored figure, for the group of this name."""
    return Figure(
        score.value,
        score.low,
        score.high,
        score.n,
        group,
        score.measure,
        score.method,
        score.arm,
    )


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
            math.nan if t.kept is None else t.kept,
        )
        for model in models
        for t in model.topics
    )
    return Rows(rows, TopicRow)


def topic_model_rows(models: Sequence[TopicModel]) -> Rows[TopicModel]:
    """The topic models of a run, a row for each."""
    columns = (
        Column("category"),
        Column("topics", "d", get=lambda model: len(model.topics)),
        Column(
            "statements", "d", get=lambda model: sum(a.topic_id is not None for a in model.about)
        ),
    )
    return Rows(models, columns)


def generation_rows(run: StoredRun) -> Rows[GenerationRow]:
    """All answers of a run with their provenance."""
    names = {group.id: group.name for group in run.groups}
    sentences = {t.id: t.sentence for t in run.triples()}
    generations = list(run.generations())
    answers = run.store.answers([g.answer_key for g in generations if g.answer_key])
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
    return Rows(rows, GenerationRow)


def probe_rows(run: StoredRun, model: str | None) -> Rows[ProbeRow]:
    """The probed statements of a run, under all models or one."""
    groups = {group.id: group for group in run.groups}
    triples = run.triples()
    counts = {(t.statement_id, t.group_id): t.count for t in triples}
    words = {t.statement_id: (t.predicate, t.object) for t in triples}
    rows = []
    for probing in run.find_all(ProbeRun):
        if not probing.model.goes_by(model):
            continue
        for edge in run.find_all(ProbedEdge, asking=probing):
            group = groups.get(edge.group_id)
            if group is None or edge.statement_id not in words:
                continue
            rows.append(
                ProbeRow(
                    probing.model.title,
                    group.category,
                    group.name,
                    *words[edge.statement_id],
                    edge.rank,
                    counts.get((edge.statement_id, edge.group_id), 0),
                    _perplexity(edge.statement_log_likelihood, edge.statement_tokens),
                    _perplexity(edge.log_likelihood, edge.tokens),
                    edge.log_likelihood,
                    edge.tokens,
                )
            )
    return Rows(rows, ProbeRow)


def _perplexity(log_likelihood: float, tokens: int) -> float:
    return math.exp(-log_likelihood / tokens) if tokens else math.nan


def summary_columns(summary_of: Callable[[Any], RunSummary]) -> list[Column]:
    """The columns of runs, of which `summary_of` gives the counts; their own `status` is that of
    now."""

    def column(name: str, get: Callable[[RunSummary], Any], form: str = "") -> Column:
        return Column(name, form, get=lambda run: get(summary_of(run)))

    return [
        column("name", attrgetter("run.name")),
        column("model", attrgetter("run.model.title")),
        column("revision", attrgetter("run.model.revision")),
        column("kind", attrgetter("run.kind")),
        column("language", lambda summary: _prompt_language(summary.run.config)),
        Column("status"),
        column("created", attrgetter("run.created")),
        column("groups", lambda summary: [group.name for group in summary.run.groups]),
        column("categories", lambda summary: sorted({g.category for g in summary.run.groups})),
        *(column(name, attrgetter(name), "d") for name in _SUMMARY_COUNTS),
        column("seconds", attrgetter("seconds"), ".1f"),
        column("series", lambda summary: summary.run.config.get("series", "")),
    ]


def _prompt_language(config: Mapping[str, Any]) -> str:
    """What was collected elsewhere does not say in which language."""
    return run_language(config) if "pack" in config else ""


_SUMMARY_COUNTS = (
    "triples",
    "statements",
    "generations",
    "refused",
    "invalid",
    "echoes",
    "nonsense",
    "failed",
    "resampled",
    "prompt_tokens",
    "completion_tokens",
)


def agreement_rows(agreements: "Sequence[ScorerAgreement]") -> Rows["ScorerAgreement"]:
    """The agreement of scorers, with intervals."""
    columns = (
        Column("measure"),
        Column("first"),
        Column("second"),
        Column("n", "d"),
        Column("same", ".0%", get=attrgetter("same.value")),
        Column("kappa", ".2f", interval=True),
        Column("rho", ".2f", interval=True),
        Column("moved", get=_list_moves),
    )
    return Rows(agreements, columns)


def _list_moves(agreement: "ScorerAgreement") -> tuple[tuple[str, float, float], ...]:
    """Each group that the scorers put in another place, with both places."""
    return tuple((moved.group, moved.first, moved.second) for moved in agreement.moved)


TOTAL_ROW = "all"  # the last row


@dataclass(frozen=True, slots=True)
class GroupCost:
    """The cost of the answers about a group.

    Attributes:
        group: its name, or "all".
        answers: how many answers were read for it, each counted once, repeated attempts included.
        prompt_tokens, completion_tokens: their tokens, as counted by the model or server.
        cost: the money at the given prices; None without prices.
        seconds: how long asking took over all calls; only in the last row, since groups are asked
            together. None if unknown.
        retries: how many of the answers were asked for again because a prompt was refused.
        retry_tokens: the tokens of these, of prompts and answers.
        retry_cost: what these cost; None without prices.
    """

    group: str
    answers: int
    prompt_tokens: int
    completion_tokens: int
    cost: float | None
    seconds: float | None = None
    retries: int = 0
    retry_tokens: int = 0
    retry_cost: float | None = None


def cost_rows(run: StoredRun, prices: "Prices | None") -> Rows[GroupCost]:
    """The cost of a run's answers, by group and in all."""
    from kgbias.compare.refusals import list_retries

    keys: dict[str, set[str]] = {group.name: set() for group in run.groups}
    names = {group.id: group.name for group in run.groups}
    generations = list(run.generations())
    for generation in generations:
        if generation.answer_key and generation.group_id in names:
            keys[names[generation.group_id]].add(generation.answer_key)
    answers = run.store.answers(sorted(set().union(*keys.values())))
    repeated = {generation.answer_key for generation in list_retries(generations)}

    def total_cost(kept_answers: Sequence[Answer]) -> float | None:
        return None if prices is None else sum(_cost(answer, prices) for answer in kept_answers)

    def row(name: str, group_answers: Iterable[Answer]) -> GroupCost:
        kept_answers = list(group_answers)
        repeated_answers = [answer for answer in kept_answers if answer.key in repeated]
        read = sum(answer.prompt_tokens for answer in kept_answers)
        written = sum(answer.completion_tokens for answer in kept_answers)
        tokens = sum(answer.prompt_tokens + answer.completion_tokens for answer in repeated_answers)
        return GroupCost(
            name,
            len(kept_answers),
            read,
            written,
            total_cost(kept_answers),
            None,
            len(repeated_answers),
            tokens,
            total_cost(repeated_answers),
        )

    rows = [
        row(name, (answers[k] for k in sorted(own) if k in answers)) for name, own in keys.items()
    ]
    total = replace(row(TOTAL_ROW, answers.values()), seconds=run.summary().seconds)
    return Rows((*rows, total), GroupCost)


def _cost(answer: Answer, prices: "Prices") -> float:
    """What an answer cost, at batch prices if it came in a batch, else at direct ones."""
    # The text first: to parse the details of every answer takes long, and few are of a batch.
    batch = '"batch"' in answer.details and "batch" in json.loads(answer.details)
    at = prices if batch or prices.directly is None else prices.directly
    return at.cost_of(answer.prompt_tokens, answer.completion_tokens)
