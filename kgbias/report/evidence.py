"""What was said, believed and embedded, side by side: the report's first section, and the exhibit
of how often each statement was said about a group against how much likelier it is for it."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np

from kgbias.evidence import picture
from kgbias.evidence.evidence_table import (
    BELIEVED_VERDICTS,
    NOT_PROBED,
    ONLY_SAID,
    ORDERS,
    REFUSED_BUT_BELIEVED,
    VERDICTS,
    Evidence,
    EvidenceTable,
    drop_recut_sentences,
    count_sentences,
    select_top_rows,
)
from kgbias.evidence.names import MIN_NAMES
from kgbias.evidence.probe_tables import NameTable
from kgbias.graph.stereotypes import KNOWN
from kgbias.graph.types import BelievedEdge, node_id, statement_id
from kgbias.io import pages
from kgbias.io.drawing import COLUMN_INCHES, INK_COLOR, LINE_COLOR, NEUTRAL_COLOR, POSITIVE_COLOR, figure_style, make_subplots
from kgbias.io.text import format_number, spoken_name
from kgbias.measure.scorer_agreement import ScorerAgreement
from kgbias.probe.belief import BELIEVED, MIN_LIFT_BITS
from kgbias.probe.result import Statement
from kgbias.report import cards
from kgbias.report.run_data import ArmData, RunData
from kgbias.report.style import Section, template
from kgbias.report.tables import Exhibit, Table, cells, sentence
from kgbias.stats.estimate import Estimate, nan_to_none
from kgbias.stats.inference import Values, bootstrap_clusters


def scorer_agreement(data: RunData, place: str) -> Iterator[Exhibit]:
    """A row for every two scorers of a measure that judged the run's statements."""
    if not data.agreements:
        return
    rows = [
        [
            spoken_name(a.measure), a.first, a.second, str(a.n), f"{a.same.value:.0%}",
            *cells(a.kappa, ".2f"), *cells(a.rho, ".2f"), moved(a) or "none",
        ]
        for a in data.agreements
    ]  # fmt: skip
    key = f"{place}-scorers"
    yield Exhibit(
        key, "", "Agreement of scorers", "", None,
        Table(
            key, "Scorers of the same measure on the statements that both judged.",
            ("Measure", "counts", "other", "n", "same label", "kappa", "95% interval", "rho",
             "95% interval", "groups in another place"), rows,
            "The figures of this report are by the scorer that counts. Kappa: Cohen's, of labels; "
            "0 is chance. Rho: Spearman's, of values. Places are by the bare means in a category, "
            "1 the most hurtful; whether the means differ is not tested here.",
        ),
    )  # fmt: skip


def moved(agreement: ScorerAgreement) -> str:
    """The groups that change rank, in words: "Men 1 to 2, Women 2 to 1"."""
    return ", ".join(f"{m.group} {m.first:g} to {m.second:g}" for m in agreement.moved)


MAX_POINTS = 4_000  # in the picture: all beliefs, then what was said most often
TELLING = 10
TABLED = 25  # statements that stories make


def evidence_section(data: RunData, tables: Sequence[Table] = ()) -> Section:
    """The section as HTML, ending with these `tables`; the page draws its picture from
    `evidence_data`."""
    found = data.joint
    drawn = points(found)
    places = {(row.arm, row.pair): n for n, row in enumerate(drawn)}
    lists = []
    for name, meaning in VERDICTS.items():
        rows = found.by_verdict.get(name, [])
        known = [row for row in drawn if row.verdict == name]
        told = [(places[row.arm, row.pair], row) for row in select_top_rows(known, TELLING)]
        lists.append((name, meaning, ORDERS.get(name, ""), count_sentences(rows), told))
    html = pages.fill_template(
        template("evidence.html"),
        probed=found.belief_run is not None and bool(found.agreement),
        missing=" ".join(found.missing_columns) or "no category has two groups with statements",
        remarks=[line for line in (found.note, *found.missing_columns) if line],
        stands=sorted({row.stands for row in found.rows if row.stands}),
        model=found.belief_run.model.title if found.belief_run else "",
        margin=MIN_LIFT_BITS,
        floor=found.floor,
        categories=_categories(found),
        arms=found.statements.has_several_arms,
        refused=REFUSED_BUT_BELIEVED in found.by_verdict,
        drawn=_drawn(found),
        lists=lists,
        cells=_cells,
        in_stories=any(row.told.has_interval for row in found.rows),
        vectors=next((row.vectors.partition(" ")[0] for row in found.rows if row.vectors), ""),
        tables=cards.render([cards.group("", (), tables)], folded=False),
    )
    return Section("Said, believed, embedded", html, "evidence")


def agreement(data: RunData, place: str) -> Iterator[Exhibit]:
    """How far what is said, believed and embedded agree, a row for each group and arm."""
    found = data.joint
    if not found.agreement:
        return
    arm = ["Arm"] if found.statements.has_several_arms else []
    rows = []
    for row in found.agreement:
        pairs = (row.said_believed, row.said_embedded, row.believed_embedded)
        rows.append(
            [row.group, *([row.arm] if arm else []), str(row.said_believed.n)]
            + [x for e in pairs for x in (cells(e, "+.2f") if e.value == e.value else ["-", "-"])]
        )
    key = f"{place}-agreement"
    yield Exhibit(
        key, "", "How far they agree", "", None,
        Table(
            key, "Agreement of what is said, believed and embedded (Kendall's tau-b).",
            ("Group", *arm, "statements", "said, believed", "95%", "said, embedded", "95%",
             "believed, embedded", "95%"),
            rows, "0 is chance, 1 the same order.",
        ),
    )  # fmt: skip


def in_stories(data: RunData, place: str) -> Iterator[Exhibit]:
    """What the same model's stories say of the groups, of the statements in the joint view."""
    found = drop_recut_sentences(row for row in data.joint.rows if row.told.has_interval)
    if not found:
        return
    found.sort(key=lambda row: (-row.told.value, -row.times, row.group, row.predicate, row.object))
    arm = ["Arm"] if data.joint.statements.has_several_arms else []
    rows = [
        [row.group, *([row.arm or "-"] if arm else []), f"{row.predicate} {row.object}".strip(),
         str(row.times), *cells(row.told, ".0%"), str(row.told.n)]
        for row in found[:TABLED]
    ]  # fmt: skip
    left = f" {len(found) - TABLED} more are not listed." if len(found) > TABLED else ""
    key = f"{place}-in-stories"
    yield Exhibit(
        key, "", "Told in stories too", "", None,
        Table(
            key, f"Statements of this run that the same model's stories ({found[0].teller}) make "
            "of the same group.",
            ("Group", *arm, "statement", "said", "in stories", "95% interval", "prompts"), rows,
            "In stories: of the prompts for stories about the group, the share whose character was "
            "read as making the same claim, with its Wilson interval; greatest first. Words alone "
            "decide, and much of what stories say is not read, so a statement that is not listed "
            f"may be told too. Other groups' stories may say the same as often.{left}",
        ),
    )  # fmt: skip


def points(found: EvidenceTable) -> list[Evidence]:
    """The points of the picture, each a row for what an arm said of a group: those that were
    probed, beliefs first."""
    rows = _said_of(found)
    if len(rows) <= MAX_POINTS:
        return rows
    order = sorted(rows, key=lambda row: (row.verdict == ONLY_SAID, -row.times))
    kept = {id(row) for row in order[:MAX_POINTS]}
    return [row for row in rows if id(row) in kept]


def _said_of(found: EvidenceTable) -> list[Evidence]:
    """The rows of which something is said, as their groups have enough names."""
    return drop_recut_sentences(row for row in found.rows if row.lift.has_interval and row.verdict in VERDICTS)


def evidence_data(data: RunData, places: Mapping[tuple[str, str], int]) -> dict[str, Any]:
    """The data that the page draws the picture from: the names of verdicts, what stood before the
    names of groups, the cut of each category in bits (null if nothing is believed), and the points,
    each with its triples in the page, of which `places` has the place by arm and id."""
    found = data.joint
    groups = {group.name: n for n, group in enumerate(data.run.groups)}
    arms = list(found.statements.arms)
    verdicts = list(VERDICTS)
    of_names = _of_names(data.name_tables.values())
    cuts: dict[tuple[str, tuple[str, str]], list[int]] = defaultdict(list)
    for row in found.rows:
        if (place := places.get((row.arm, row.id))) is not None:
            cuts[row.arm, row.pair].append(place)
    said_of: dict[str, list[str]] = defaultdict(list)  # of what is given, nobody
    for t in found.statements.triples:
        said_of[_statement(t.predicate, t.object)].append(t.group)
    return {
        "verdicts": verdicts,
        "carriers": found.belief_run.record.get("carriers", []) if found.belief_run else [],
        "cuts": {name: _cut(found.rows, name) for name in _categories(found)},
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
                "lift": _numbers(row.lift),
                "q": nan_to_none(round(row.q_value, 4)),
                "names": row.lift.n,
                "of_names": of_names.get((row.group, row.predicate, row.object), [])
                if row.verdict in BELIEVED_VERDICTS or row.bound
                else [],
                "association": _numbers(row.association),
                "others": []
                if row.times
                else list(dict.fromkeys(said_of[_statement(row.predicate, row.object)]))[:20],
            }
            for row in points(found)
        ],
    }


def _of_names(tables: Iterable[NameTable]) -> dict[tuple[str, str, str], list[list[Any]]]:
    """By group and statement, for each name of the group [the name, its lift, its lift after each
    carrier, log2 p of the statement]."""
    found = {}
    for table in tables:
        lifts, after, bits = (t.round(1) for t in (table.lifts, table.lift_bits, table.bits))
        start = 0
        for group, names in table.groups:
            own = range(start, start := start + len(names))
            for s, statement in enumerate(table.statements):
                found[group, *statement] = [
                    [name, float(lifts[n, s]), after[:, n, s].tolist(), float(bits[n, s])]
                    for name, n in zip(names, own, strict=True)
                ]
    return found


def _categories(found: EvidenceTable) -> list[str]:
    return list(dict.fromkeys(row.category for row in found.agreement))


def _cut(rows: Sequence[Evidence], category: str) -> float | None:
    """The smallest lift that is believed in a category; None if nothing is."""
    lifts = [
        row.lift.value
        for row in rows
        if row.category == category and row.verdict not in (ONLY_SAID, NOT_PROBED)
    ]
    return min(lifts, default=None)


def _numbers(e: Estimate) -> list[float | None]:
    return [nan_to_none(round(x, 3)) for x in (e.value, e.low, e.high)]


def _statement(predicate: str, object: str) -> str:
    return statement_id(node_id("predicate", predicate), node_id("object", object))


def _cells(row: Evidence) -> str:
    """A row's figures, for a list."""
    cells = [f"{row.times}×"] if row.times else []
    cells += [f"lift {row.lift.value:+z.1f} bits ({row.lift.interval('+z.1f')})"]
    if row.association.value == row.association.value:
        cells.append(f"association {row.association.value:+z.1f}")
    if row.regard == row.regard:
        cells.append(f"regard {row.regard:+z.2f}")
    if row.told.has_interval:
        cells.append(f"in stories {row.told.value:.0%} ({row.told.interval('.0%')})")
    if row.recorded == KNOWN:
        cells.append(f"recorded in {row.recorded_source}: {row.recorded_as}")
    return ", ".join(cells)


def _drawn(found: EvidenceTable) -> str:
    total, drawn = len(_said_of(found)), len(points(found))
    if drawn < total:
        return f"{drawn:,} of {total:,} pairs of a group and a statement are drawn."
    return f"{total:,} pairs of a group and a statement, of all categories."


_LIKELY = 12  # groups of a category, the most talked about, of which two are drawn


def pair_of(data: RunData, category: str) -> picture.PicturePair | None:
    """The two groups of a category that share most of the objects said of them, as a picture shows
    them; None if no two share any."""
    arm = data.plain
    if arm is None:
        return None
    said = {
        g.id: {node_id("object", t.object) for t in arm.by_group.get(g.id, ())}
        for g in data.groups(category)
    }
    likely = sorted(data.groups(category), key=lambda g: -len(said[g.id]))[:_LIKELY]
    two = max(
        combinations(likely, 2), key=lambda p: len(said[p[0].id] & said[p[1].id]), default=None
    )
    if two is None or not said[two[0].id] & said[two[1].id]:
        return None
    groups = [(g.id, g.name) for g in two]
    return picture.PicturePair.of_groups(groups, arm.triples, arm.triples, data.pictured)


def said_of_two(data: RunData, category: str, place: str) -> Iterator[Exhibit]:
    """The exhibit of what is said of two groups of a category."""
    pair = pair_of(data, category)
    if pair is None or data.plain is None:
        return
    a, b = pair.names
    ids = {g.id for g in data.groups(category) if g.name in pair.names}
    left = data.plain.counted.restrict_to_groups(ids).note
    rows = []
    for t in pair.triples:
        edge = data.pictured.find_edge(t)
        lift = Estimate(edge.lift, edge.low, edge.high, edge.names) if edge else None
        score = t.scores.get("regard")
        rows.append(
            [
                t.group, f"{t.predicate} {t.object}", str(t.count),
                *(cells(lift, "+.2f") if lift else ["", ""]), edge.verdict if edge else "",
                score.label if score else "",
            ]
        )  # fmt: skip
    key = f"{place}-pair"
    yield Exhibit(
        key, category, f"Said of {a}, of {b}, and of both", "",
        lambda: picture.draw_figure(picture.lay_out_pair(pair, COLUMN_INCHES)),
        Table(
            key, f"Statements about {a} and {b}, as drawn.",
            ("Group", "statement", "said", "lift", "95% interval", "verdict", "regard"), rows,
            " ".join(filter(None, (pair.caption, data.pictured.note, sentence(left)))),
        ),
        tabled=False,
    )  # fmt: skip


_LANE = 0.36  # half the height that points of one count spread over, so that none hides another


@dataclass(frozen=True, slots=True)
class Pair:
    """A group and a statement that the model was asked about, and how often it was said."""

    group: str
    predicate: str
    object: str
    said: int
    edge: BelievedEdge

    @property
    def believed(self) -> bool:
        return self.edge.verdict == BELIEVED


def said_believed(data: ArmData, category: str, place: str) -> Iterator[Exhibit]:
    """The exhibit of a category; none if nothing was probed by names."""
    found = pairs(data, category)
    if data.whole.beliefs is None or not found:
        return
    model = data.whole.beliefs[0].model.title
    shown = sorted(
        (p for p in found if p.said or p.believed),
        key=lambda p: (-p.said, -p.edge.lift, p.group, p.predicate, p.object),
    )
    key = f"{place}-said-believed"
    yield Exhibit(
        key, category, f"Said, and believed by {model}", "", partial(scatter, found),
        Table(
            key, f"How often statements about {category} were said, and their lifts.",
            ("Group", "statement", "said", "lift", "95% interval", "verdict"),
            [
                [
                    p.group, f"{p.predicate} {p.object}", str(p.said),
                    *cells(Estimate(p.edge.lift, p.edge.low, p.edge.high, p.edge.names), "+.2f"),
                    p.edge.verdict,
                ]
                for p in shown
            ],
            f"Lifts in bits, with 95% intervals over names. {_note(found, len(shown))}",
        ),
        tabled=False,
    )  # fmt: skip


def pairs(data: ArmData, category: str) -> list[Pair]:
    """All pairs of a group and a statement that the model was asked about, of groups that
    something can be said of."""
    if data.whole.beliefs is None:
        return []
    believing, edges = data.whole.beliefs
    groups = {g.id: g.name for g in data.groups(category)}
    given = [Statement(*words) for words in believing.record.get("given", {}).values()]
    stated = [Statement(t.predicate, t.object) for t in data.whole.triples]
    texts = {s.key: s for s in (*given, *stated)}
    said: Counter[tuple[str, str]] = Counter()
    for t in data.triples:
        said[t.group_id, Statement(t.predicate, t.object).words] += t.count
    return [
        Pair(
            groups[e.group_id], texts[key].predicate, texts[key].object,
            said[e.group_id, texts[key].words], e,
        )
        for e in edges
        if e.group_id in groups
        and e.names >= MIN_NAMES
        and (key := (e.predicate_id, e.object_id)) in texts
    ]  # fmt: skip


def difference(found: Sequence[Pair]) -> Estimate:
    """How many bits higher the mean lift is for what was said about a group than for what was said
    only about others, with its interval over statements, those of one predicate drawn together."""
    lifts = np.array([p.edge.lift for p in found])
    said = np.array([p.said > 0 for p in found], dtype=np.float64)

    def above(weights: Values) -> Values:
        with np.errstate(invalid="ignore", divide="ignore"):
            own, rest = ((weights * part) @ lifts / (weights @ part) for part in (said, 1.0 - said))
        return np.asarray(own - rest)

    return bootstrap_clusters([p.edge.predicate_id for p in found], above)


def _note(found: Sequence[Pair], shown: int) -> str:
    left = len(found) - shown
    text = (
        f"The figure has {left:,} more pairs of a group and a statement, which were said only "
        "about other groups and are not believed of this one."
    )
    apart = difference(found)
    if apart.has_interval:
        text += (
            " The mean lift of what was said about a group is "
            f"{format_number(apart.value, '+.2f')} bits [{apart.interval('+.2f').replace(' to ', ', ')}] "
            "above that of what was said only about others (resampled over statements, those of "
            "one predicate together)."
        )
    return text


def scatter(found: Sequence[Pair]) -> Any:
    """Lifts in bits along x, and how often each pair was said along y; filled if believed."""
    counts = np.array([p.said for p in found])
    lifts = np.array([p.edge.lift for p in found])
    believed = np.array([p.believed for p in found], dtype=bool)
    # A fixed place for each number that leaves no gaps (the golden ratio).
    apart = (np.arange(len(found)) * 0.6180339887 % 1.0 - 0.5) * 2 * _LANE
    lanes = np.where(counts > 0, np.log2(np.maximum(counts, 1)) + 1, 0.0)
    with figure_style():
        figure, axes = make_subplots(figsize=(COLUMN_INCHES, 0.9 + 0.42 * (2 + float(lanes.max()))))
        axes.axvline(0, color=INK_COLOR, linewidth=0.6)
        axes.axhline(0.5, color=LINE_COLOR, linewidth=0.6)
        for own, colour, face, size in (
            (~believed, NEUTRAL_COLOR, "none", 5), (believed, POSITIVE_COLOR, POSITIVE_COLOR, 9)
        ):  # fmt: skip
            axes.scatter(
                lifts[own], (lanes + apart)[own], s=size, facecolor=face, edgecolor=colour,
                linewidth=0.5, zorder=3 if colour == POSITIVE_COLOR else 2,
            )  # fmt: skip
        ticks = range(int(lanes.max()) + 1)
        axes.set_yticks(ticks, ["never", *(f"{2**n}×" for n in ticks[:-1])])
        axes.set_ylabel("said of the group")
        axes.set_xlabel("lift (bits); filled: believed")
        return figure
