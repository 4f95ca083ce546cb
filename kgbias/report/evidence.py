"""What was said, believed and embedded, side by side: the report's first section, and the exhibit
of how often each statement was said about a group against how much likelier it is for it."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from kgbias.evidence import picture
from kgbias.evidence.added_columns import describe_cells
from kgbias.evidence.evidence_table import (
    BELIEVED_VERDICTS,
    NOT_PROBED,
    ONLY_SAID,
    ORDERS,
    REFUSED_GROUP_BUT_BELIEVED,
    VERDICTS,
    Evidence,
    EvidenceTable,
    count_sentences,
    drop_recut_sentences,
    select_top_rows,
)
from kgbias.evidence.names import MIN_NAMES
from kgbias.evidence.probe_tables import NameTable
from kgbias.graph.types import BelievedEdge, node_id, statement_id
from kgbias.io import pages
from kgbias.io.columns import Column
from kgbias.io.drawing import (
    COLUMN_INCHES,
    INK_COLOR,
    LINE_COLOR,
    NEUTRAL_COLOR,
    POSITIVE_COLOR,
    figure_style,
    make_subplots,
)
from kgbias.io.text import format_number, spoken_name
from kgbias.io.wording import pluralise
from kgbias.measure.scorer_agreement import MIN_KAPPA_STATEMENTS, ScorerAgreement
from kgbias.probe.belief import BELIEVED, MIN_LIFT_BITS
from kgbias.probe.result import Statement
from kgbias.report import cards
from kgbias.report.run_data import ArmData, RunData
from kgbias.report.style import Section, read_template_file
from kgbias.report.tables import (
    COUNT_COLUMN,
    GROUP_COLUMN,
    LIFT_COLUMN,
    SAID_COLUMN,
    STATEMENT_COLUMN,
    VERDICT_COLUMN,
    Exhibit,
    Table,
    as_sentence,
)
from kgbias.stats.estimate import Estimate, nan_to_none
from kgbias.stats.inference import Values, bootstrap_clusters


def scorer_agreement_exhibits(data: RunData, place: str) -> Iterator[Exhibit]:
    """A row for every two scorers of a measure that judged the run's statements."""
    if not data.agreements:
        return
    rows = [
        [
            spoken_name(a.measure),
            a.first,
            a.second,
            a.n,
            a.same,
            a.kappa,
            a.rho,
            rank_change_words(a) or "none",
        ]
        for a in data.agreements
    ]
    key = f"{place}-scorers"
    yield Exhibit(
        key,
        "",
        "Agreement of scorers",
        "",
        None,
        Table(
            key,
            "Scorers of the same measure on the statements that both judged.",
            (
                Column("Measure"),
                Column("counts"),
                Column("other"),
                COUNT_COLUMN,
                Column("same label", ".0%"),
                Column("kappa", ".2f", interval=True),
                Column("rho", ".2f", interval=True),
                Column("groups in another place"),
            ),
            rows,
            "The figures of this report are by the scorer that counts. Kappa: Cohen's, of labels; "
            f"0 is chance; with an interval from {MIN_KAPPA_STATEMENTS} statements on. Rho: "
            "Spearman's, of values. Places are by the bare means in a category, "
            "1 the most hurtful; whether the means differ is not tested here.",
        ),
    )


def rank_change_words(agreement: ScorerAgreement) -> str:
    """The groups that change rank, in words: "Men 1 to 2, Women 2 to 1"."""
    return ", ".join(f"{m.group} {m.first:g} to {m.second:g}" for m in agreement.moved)


MAX_DRAWN_ROWS = 4_000  # in the picture: all beliefs, then what was said most often
MAX_TELLING_STATEMENTS = 10
MAX_STORY_ROWS = 25  # in the table of statements that stories make


def evidence_section(data: RunData, tables: Sequence[Table] = ()) -> Section:
    """The section as HTML, ending with these `tables`; the page draws its picture from
    `evidence_data`."""
    evidence = data.evidence
    drawn_rows = select_drawn_rows(evidence)
    places = {(row.arm, row.pair): n for n, row in enumerate(drawn_rows)}
    lists = []
    for name, meaning in VERDICTS.items():
        rows = evidence.by_verdict.get(name, [])
        verdict_rows = [row for row in drawn_rows if row.verdict == name]
        telling_rows = [
            (places[row.arm, row.pair], row)
            for row in select_top_rows(verdict_rows, MAX_TELLING_STATEMENTS)
        ]
        lists.append((name, meaning, ORDERS.get(name, ""), count_sentences(rows), telling_rows))
    html = pages.fill_template(
        read_template_file("evidence.html"),
        probed=evidence.belief_run is not None and bool(evidence.agreement),
        missing=" ".join(evidence.missing_columns) or "no category has two groups with statements",
        remarks=[line for line in (evidence.note, *evidence.missing_columns) if line],
        vector_terms=sorted({row.vector_terms for row in evidence.rows if row.vector_terms}),
        model=evidence.belief_run.model.title if evidence.belief_run else "",
        margin=MIN_LIFT_BITS,
        floor=evidence.floor,
        categories=_categories(evidence),
        arms=evidence.statements.has_several_arms,
        refused=REFUSED_GROUP_BUT_BELIEVED in evidence.by_verdict,
        drawn=_drawn_note(evidence),
        lists=lists,
        cells=_figure_words,
        in_stories=any(row.story_share.has_interval for row in evidence.rows),
        vectors=next((row.vectors.partition(" ")[0] for row in evidence.rows if row.vectors), ""),
        tables=cards.render_groups([cards.build_group("", (), tables)], folded=False),
    )
    return Section("Said, believed, embedded", html, "evidence")


def evidence_agreement_exhibits(data: RunData, place: str) -> Iterator[Exhibit]:
    """How far what is said, believed and embedded agree, a row for each group and arm."""
    evidence = data.evidence
    if not evidence.agreement:
        return
    arm = [Column("Arm")] if evidence.statements.has_several_arms else []
    rows = []
    for row in evidence.agreement:
        arm_cells = [row.arm] if arm else []
        taus = (row.said_believed, row.said_embedded, row.believed_embedded)
        rows.append([row.group, *arm_cells, row.said_believed.n, *taus])
    tau_columns = [
        Column(title, "+.2f", interval=True, missing="-")
        for title in ("said, believed", "said, embedded", "believed, embedded")
    ]
    key = f"{place}-agreement"
    yield Exhibit(
        key,
        "",
        "How far they agree",
        "",
        None,
        Table(
            key,
            "Agreement of what is said, believed and embedded (Kendall's tau-b).",
            (GROUP_COLUMN, *arm, Column("statements", ".0f"), *tau_columns),
            rows,
            "0 is chance, 1 the same order.",
        ),
    )


def told_in_stories_exhibits(data: RunData, place: str) -> Iterator[Exhibit]:
    """What the same model's stories say of the groups, of the statements in the joint view."""
    story_rows = drop_recut_sentences(
        row for row in data.evidence.rows if row.story_share.has_interval
    )
    if not story_rows:
        return
    story_rows.sort(
        key=lambda row: (-row.story_share.value, -row.times, row.group, row.predicate, row.object)
    )
    arm = [Column("Arm")] if data.evidence.statements.has_several_arms else []
    rows = [
        [
            row.group,
            *([row.arm or "-"] if arm else []),
            f"{row.predicate} {row.object}".strip(),
            row.times,
            row.story_share,
            row.story_share.n,
        ]
        for row in story_rows[:MAX_STORY_ROWS]
    ]
    more_note = (
        f" {len(story_rows) - MAX_STORY_ROWS} more are not listed."
        if len(story_rows) > MAX_STORY_ROWS
        else ""
    )
    key = f"{place}-in-stories"
    yield Exhibit(
        key,
        "",
        "Told in stories too",
        "",
        None,
        Table(
            key,
            f"Statements of this run that the same model's stories ({story_rows[0].story_run}) "
            "make of the same group.",
            (
                GROUP_COLUMN,
                *arm,
                STATEMENT_COLUMN,
                SAID_COLUMN,
                Column("in stories", ".0%", interval=True),
                Column("prompts", ".0f"),
            ),
            rows,
            "In stories: of the prompts for stories about the group, the share whose character was "
            "read as making the same claim, with its Wilson interval; greatest first. Words alone "
            "decide, and much of what stories say is not read, so a statement that is not listed "
            f"may be told too. Other groups' stories may say the same as often.{more_note}",
        ),
    )


def select_drawn_rows(evidence: EvidenceTable) -> list[Evidence]:
    """The rows that the picture has points for: those with a verdict; of more than it has room
    for, the beliefs, then what was said most often."""
    rows = _rows_with_verdict(evidence)
    if len(rows) <= MAX_DRAWN_ROWS:
        return rows
    order = sorted(rows, key=lambda row: (row.verdict == ONLY_SAID, -row.times))
    kept_ids = {id(row) for row in order[:MAX_DRAWN_ROWS]}
    return [row for row in rows if id(row) in kept_ids]


def _rows_with_verdict(evidence: EvidenceTable) -> list[Evidence]:
    """The rows that were probed by enough names for a verdict, said or not."""
    return drop_recut_sentences(
        row for row in evidence.rows if row.lift.has_interval and row.verdict in VERDICTS
    )


def evidence_data(data: RunData, places: Mapping[tuple[str, str], int]) -> dict[str, Any]:
    """The data that the page draws the picture from: the names of verdicts, what stood before the
    names of groups, the cut of each category in bits (null if nothing is believed), and the points,
    each with its triples in the page, of which `places` has the place by arm and id."""
    evidence = data.evidence
    groups = {group.name: n for n, group in enumerate(data.run.groups)}
    arms = list(evidence.statements.arms)
    verdicts = list(VERDICTS)
    of_names = _name_lifts(data.name_tables.values())
    cuts: dict[tuple[str, tuple[str, str]], list[int]] = defaultdict(list)
    for row in evidence.rows:
        if (place := places.get((row.arm, row.id))) is not None:
            cuts[row.arm, row.pair].append(place)
    said_of: dict[str, list[str]] = defaultdict(list)  # of what is given, nobody
    for t in evidence.statements.triples:
        said_of[_statement(t.predicate, t.object)].append(t.group)
    return {
        "verdicts": verdicts,
        "carriers": evidence.belief_run.record.get("carriers", []) if evidence.belief_run else [],
        "cuts": {
            name: _lowest_believed_lift(evidence.rows, name) for name in _categories(evidence)
        },
        "points": [
            {
                "triples": cuts.get((row.arm, row.pair), []),
                "group": groups[row.group],
                "category": row.category,
                "predicate": row.predicate[:2000],
                "object": row.object[:2000],
                "statement": _statement(row.predicate, row.object),
                "arm": arms.index(row.arm) if row.arm in arms else -1,
                "count": row.times,
                "verdict": verdicts.index(row.verdict),
                "regard": row.regard_label or "neutral",
                "lift": _round_estimate(row.lift),
                "q": nan_to_none(round(row.q_value, 4)),
                "names": row.lift.n,
                "of_names": of_names.get((row.group, row.predicate, row.object), [])
                if row.verdict in BELIEVED_VERDICTS or row.bound_to_word
                else [],
                "association": _round_estimate(row.association),
                "others": []
                if row.times
                else list(dict.fromkeys(said_of[_statement(row.predicate, row.object)]))[:20],
            }
            for row in select_drawn_rows(evidence)
        ],
    }


class NameLift(NamedTuple):
    """What one name of a group does for a statement, in bits, as the page reads it: a list of
    four."""

    name: str
    lift: float
    by_carrier: list[float]
    log2_p: float


def _name_lifts(tables: Iterable[NameTable]) -> dict[tuple[str, str, str], list[NameLift]]:
    """By group and statement, what each name of the group does for it."""
    lifts_by_statement = {}
    for table in tables:
        lifts, after, bits = (t.round(1) for t in (table.lifts, table.lift_bits, table.bits))
        start = 0
        for group, names in table.groups:
            name_places = range(start, start := start + len(names))
            for s, statement in enumerate(table.statements):
                lifts_by_statement[group, *statement] = [
                    NameLift(name, float(lifts[n, s]), after[:, n, s].tolist(), float(bits[n, s]))
                    for name, n in zip(names, name_places, strict=True)
                ]
    return lifts_by_statement


def _categories(evidence: EvidenceTable) -> list[str]:
    return list(dict.fromkeys(row.category for row in evidence.agreement))


def _lowest_believed_lift(rows: Sequence[Evidence], category: str) -> float | None:
    """The smallest lift that is believed in a category; None if nothing is."""
    lifts = [
        row.lift.value
        for row in rows
        if row.category == category and row.verdict not in (ONLY_SAID, NOT_PROBED)
    ]
    return min(lifts, default=None)


def _round_estimate(estimate: Estimate) -> list[float | None]:
    return [nan_to_none(round(x, 3)) for x in (estimate.value, estimate.low, estimate.high)]


def _statement(predicate: str, object: str) -> str:
    return statement_id(node_id("predicate", predicate), node_id("object", object))


def _figure_words(row: Evidence) -> str:
    """A row's figures, for a list."""
    cells = [f"{row.times}×"] if row.times else []
    cells += [f"lift {row.lift.value:+z.1f} bits ({row.lift.format_interval('+z.1f')})"]
    if not math.isnan(row.association.value):
        cells.append(f"association {row.association.value:+z.1f}")
    if not math.isnan(row.regard):
        cells.append(f"regard {row.regard:+z.2f}")
    if row.story_share.has_interval:
        cells.append(
            f"in stories {row.story_share.value:.0%} ({row.story_share.format_interval('.0%')})"
        )
    return ", ".join([*cells, *describe_cells(row.added)])


def _drawn_note(evidence: EvidenceTable) -> str:
    total, drawn_count = len(_rows_with_verdict(evidence)), len(select_drawn_rows(evidence))
    if drawn_count < total:
        return f"{drawn_count:,} of {total:,} pairs of a group and a statement are drawn."
    return f"{pluralise(total, 'pair', spec=',')} of a group and a statement, of all categories."


# Groups of a category, the most talked about, among which the closest two are sought.
_MAX_CANDIDATE_GROUPS = 12


def find_closest_groups(data: RunData, category: str) -> picture.PicturePair | None:
    """The two groups of a category that share most of the objects said of them, as a picture shows
    them; None if no two share any."""
    arm = data.plain_arm
    if arm is None:
        return None
    objects_by_group = {
        g.id: {node_id("object", t.object) for t in arm.by_group.get(g.id, ())}
        for g in data.groups(category)
    }
    most_said = sorted(data.groups(category), key=lambda g: -len(objects_by_group[g.id]))[
        :_MAX_CANDIDATE_GROUPS
    ]
    closest = max(
        combinations(most_said, 2),
        key=lambda p: len(objects_by_group[p[0].id] & objects_by_group[p[1].id]),
        default=None,
    )
    if closest is None or not objects_by_group[closest[0].id] & objects_by_group[closest[1].id]:
        return None
    groups = [(g.id, g.name) for g in closest]
    return picture.PicturePair.of_groups(groups, arm.triples, arm.triples, data.picture_beliefs)


def closest_groups_exhibits(data: RunData, category: str, place: str) -> Iterator[Exhibit]:
    """The exhibit of what is said of two groups of a category."""
    pair = find_closest_groups(data, category)
    if pair is None or data.plain_arm is None:
        return
    first_name, second_name = pair.names
    ids = {g.id for g in data.groups(category) if g.name in pair.names}
    left_out_note = data.plain_arm.counted.restrict_to_groups(ids).note
    rows = []
    for triple in pair.triples:
        edge = data.picture_beliefs.find_edge(triple)
        lift = Estimate(edge.lift, edge.low, edge.high, edge.names) if edge else None
        score = triple.scores.get("regard")
        rows.append(
            [
                triple.group,
                f"{triple.predicate} {triple.object}",
                triple.count,
                lift,
                edge.verdict if edge else "",
                score.label if score else "",
            ]
        )
    key = f"{place}-pair"
    yield Exhibit(
        key,
        category,
        f"Said of {first_name}, of {second_name}, and of both",
        "",
        lambda: picture.draw_figure(picture.lay_out_pair(pair, COLUMN_INCHES)),
        Table(
            key,
            f"Statements about {first_name} and {second_name}, as drawn.",
            (
                GROUP_COLUMN,
                STATEMENT_COLUMN,
                SAID_COLUMN,
                LIFT_COLUMN,
                VERDICT_COLUMN,
                Column("regard"),
            ),
            rows,
            " ".join(
                filter(None, (pair.caption, data.picture_beliefs.note, as_sentence(left_out_note)))
            ),
        ),
        in_tables=False,
    )


# Half the height that points of one count spread over, so that none hides another.
_LANE_HALF_HEIGHT = 0.36


@dataclass(frozen=True, slots=True)
class GroupStatement:
    """A group and a statement that the model was asked about, and how often it was said."""

    group: str
    predicate: str
    object: str
    said: int
    edge: BelievedEdge

    @property
    def is_believed(self) -> bool:
        return self.edge.verdict == BELIEVED


def said_believed_exhibits(data: ArmData, category: str, place: str) -> Iterator[Exhibit]:
    """The exhibit of a category; none if nothing was probed by names."""
    statements = group_statements(data, category)
    if data.run_data.beliefs is None or not statements:
        return
    model = data.run_data.beliefs.belief_run.model.title
    listed = sorted(
        (p for p in statements if p.said or p.is_believed),
        key=lambda p: (-p.said, -p.edge.lift, p.group, p.predicate, p.object),
    )
    key = f"{place}-said-believed"
    yield Exhibit(
        key,
        category,
        f"Said, and believed by {model}",
        "",
        partial(draw_said_against_lift, statements),
        Table(
            key,
            f"How often statements about {category} were said, and their lifts.",
            (GROUP_COLUMN, STATEMENT_COLUMN, SAID_COLUMN, LIFT_COLUMN, VERDICT_COLUMN),
            [
                [
                    p.group,
                    f"{p.predicate} {p.object}",
                    p.said,
                    Estimate(p.edge.lift, p.edge.low, p.edge.high, p.edge.names),
                    p.edge.verdict,
                ]
                for p in listed
            ],
            f"Lifts in bits, with 95% intervals over names. "
            f"{_scatter_note(statements, len(listed))}",
        ),
        in_tables=False,
    )


def group_statements(data: ArmData, category: str) -> list[GroupStatement]:
    """All pairs of a group and a statement that the model was asked about, of groups that
    something can be said of."""
    if data.run_data.beliefs is None:
        return []
    believing, edges = data.run_data.beliefs
    groups = {g.id: g.name for g in data.groups(category)}
    given_statements = [Statement(*words) for words in believing.record.get("given", {}).values()]
    said_statements = [
        Statement(triple.predicate, triple.object) for triple in data.run_data.triples
    ]
    texts = {s.key: s for s in (*given_statements, *said_statements)}
    counts: Counter[tuple[str, str]] = Counter()
    for triple in data.triples:
        counts[triple.group_id, Statement(triple.predicate, triple.object).words] += triple.count
    group_statements = []
    for edge in edges:
        statement = texts.get((edge.predicate_id, edge.object_id))
        if edge.group_id in groups and edge.names >= MIN_NAMES and statement is not None:
            group_statements.append(
                GroupStatement(
                    groups[edge.group_id],
                    statement.predicate,
                    statement.object,
                    counts[edge.group_id, statement.words],
                    edge,
                )
            )
    return group_statements


def lift_difference(statements: Sequence[GroupStatement]) -> Estimate:
    """How many bits higher the mean lift is for what was said about a group than for what was said
    only about others, with its interval over statements, those of one predicate drawn together."""
    lifts = np.array([p.edge.lift for p in statements])
    is_said = np.array([p.said > 0 for p in statements], dtype=np.float64)

    def lift_gap(weights: Values) -> Values:
        with np.errstate(invalid="ignore", divide="ignore"):
            said_mean, other_mean = (
                (weights * part) @ lifts / (weights @ part) for part in (is_said, 1.0 - is_said)
            )
        return np.asarray(said_mean - other_mean)

    return bootstrap_clusters([p.edge.predicate_id for p in statements], lift_gap)


def _scatter_note(statements: Sequence[GroupStatement], listed_count: int) -> str:
    more_count = len(statements) - listed_count
    text = (
        f"The figure has {more_count:,} more pairs of a group and a statement, which were said "
        f"only "
        "about other groups and are not believed of this one."
    )
    gap = lift_difference(statements)
    if gap.is_shown:
        text += (
            " The mean lift of what was said about a group is "
            f"{format_number(gap.value, '+.2f')} bits "
            f"[{gap.format_interval('+.2f').replace(' to ', ', ')}] "
            "above that of what was said only about others (resampled over statements, those of "
            "one predicate together)."
        )
    return text


def draw_said_against_lift(statements: Sequence[GroupStatement]) -> Any:
    """Lifts in bits along x, and how often each pair was said along y; filled if believed."""
    counts = np.array([p.said for p in statements])
    lifts = np.array([p.edge.lift for p in statements])
    believed = np.array([p.is_believed for p in statements], dtype=bool)
    # A fixed place for each number that leaves no gaps (the golden ratio).
    offsets = (np.arange(len(statements)) * 0.6180339887 % 1.0 - 0.5) * 2 * _LANE_HALF_HEIGHT
    lanes = np.where(counts > 0, np.log2(np.maximum(counts, 1)) + 1, 0.0)
    with figure_style():
        figure, axes = make_subplots(figsize=(COLUMN_INCHES, 0.9 + 0.42 * (2 + float(lanes.max()))))
        axes.axvline(0, color=INK_COLOR, linewidth=0.6)
        axes.axhline(0.5, color=LINE_COLOR, linewidth=0.6)
        for mask, colour, face, size in (
            (~believed, NEUTRAL_COLOR, "none", 5),
            (believed, POSITIVE_COLOR, POSITIVE_COLOR, 9),
        ):
            axes.scatter(
                lifts[mask],
                (lanes + offsets)[mask],
                s=size,
                facecolor=face,
                edgecolor=colour,
                linewidth=0.5,
                zorder=3 if colour == POSITIVE_COLOR else 2,
            )
        ticks = range(int(lanes.max()) + 1)
        axes.set_yticks(ticks, ["never", *(f"{2**n}×" for n in ticks[:-1])])
        axes.set_ylabel("said of the group")
        axes.set_xlabel("lift (bits); filled: believed")
        return figure
