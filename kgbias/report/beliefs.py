"""Exhibits of what a model believes about groups, by the groups' names: the strongest beliefs, a
map of groups and statements, which groups it believes worse things about, against made-up names,
and what several models believe about the same statements."""

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from kgbias.evidence.model_agreement import BeliefComparison, ModelAgreement
from kgbias.evidence.evidence_table import BELIEVED_VERDICTS, Evidence
from kgbias.evidence.probe_tables import NameTable
from kgbias.graph.types import BelievedEdge
from kgbias.io.drawing import (
    COLUMN_INCHES,
    INK_COLOR,
    LINE_COLOR,
    NEGATIVE_COLOR,
    NEUTRAL_COLOR,
    PAPER_COLOR,
    POSITIVE_COLOR,
    TOXIC_COLOR,
    figure_style,
    make_subplots,
)
from kgbias.io.text import format_number, format_p_value, spoken_name
from kgbias.probe.result import Statement
from kgbias.report.figures import draw_rows, in_two, short
from kgbias.report.run_data import RunData
from kgbias.report.tables import Exhibit, Table, cells, few, opened
from kgbias.stats.estimate import Estimate

STRONGEST, MAPPED = 12, 40
MARK = " (names a group)"
_WIDEST = 4.0  # bits at which a map's colour is full


def beliefs(data: RunData, category: str, place: str) -> Iterator[Exhibit]:
    """The exhibits of a category; none if nothing was probed by names."""
    joint = data.joint
    rows = [row for row in joint.rows if row.category == category and row.lift.has_interval]
    if joint.belief_run is None or not rows:
        return
    model = joint.belief_run.model.title
    yield from _strongest(data, rows, category, place, model)
    table = data.name_tables.get(category)
    if table is not None:
        yield from _map(table, rows, category, place, model)
    yield from _worse(data, category, place, model)


def _strongest(
    data: RunData, rows: Sequence[Evidence], category: str, place: str, model: str
) -> Iterator[Exhibit]:
    held = list({row.sentence: row for row in rows if row.verdict in BELIEVED_VERDICTS}.values())
    held.sort(key=lambda row: (-row.lift.value, row.id))
    leaning = len({row.sentence for row in rows if row.leaning})
    bound = len({row.sentence for row in rows if row.bound})
    floor = data.joint.floor
    note = (
        "How many bits likelier a statement is after the group's names than after those of the "
        "other groups, beyond what each name makes likelier anyway, with 95% intervals over names; "
        "1 is twice as probable. p: against a lift of at most half a bit, corrected over the "
        "group's statements (Benjamini and Hochberg). Least: the smallest lift with any one name "
        f"left out. {leaning} more are only shown to be above 0 (leaning), {bound} rest on one "
        f"name or root (bound to a word). Of {floor['of']:,} pairs in all categories, "
        f"{floor['believed']:,} are believed; of {floor['tested']:,} pairs with made-up names, "
        f"{few(floor['found'])}, averaged over shuffles."
    )  # fmt: skip
    naming, places = _naming(data), {g.name: n for n, g in enumerate(data.run.groups)}
    table_rows = [
        [
            row.group, _statement(row, naming), *cells(row.lift, "+.2f"), str(row.lift.n),
            format_p_value(row.q_value), format_number(row.least, "+.2f"), str(row.times), row.regard_label,
        ]
        for row in held[:TABLED]
    ]  # fmt: skip
    left = f" {len(held) - TABLED} more are not listed." if len(held) > TABLED else ""
    if not held:
        note = f"None was shown. {note}"
    key = f"{place}-beliefs"
    named = [(f"{row.group}: {row.predicate} {row.object}", row.lift) for row in held[:STRONGEST]]
    yield Exhibit(
        key, category, f"What {model} believes about groups", "",
        partial(belief_bars, named) if named else None,
        Table(
            key,
            f"Statements that {model} finds likelier after the names of a group of {category}.",
            ("Group", "statement", "lift", "95% interval", "names", "p", "least", "said", "regard"),
            table_rows, note + left,
            [opened(places[row.group], Statement(row.predicate, row.object).id)
             for row in held[:TABLED]],
        ),
    )  # fmt: skip


def _naming(data: RunData) -> set[str]:
    """The statements that name a group."""
    believing = data.joint.belief_run
    lines = believing.record["categories"] if believing else ()
    return {id for line in lines for id in line["naming"]}


def _statement(row: Evidence, naming: set[str]) -> str:
    text = f"{row.predicate} {row.object}"
    return text + MARK if Statement(row.predicate, row.object).id in naming else text


def _map(
    table: NameTable, rows: Sequence[Evidence], category: str, place: str, model: str
) -> Iterator[Exhibit]:
    """The statements in which groups differ most, and the same for each name."""
    means = table.group_lifts()
    spread = means.max(axis=0) - means.min(axis=0)
    believed = {(row.predicate, row.object) for row in rows if row.verdict in BELIEVED_VERDICTS}
    order = sorted(
        range(len(table.statements)),
        key=lambda s: (table.statements[s] not in believed, -float(spread[s])),
    )[:MAPPED]
    order.sort(key=lambda s: (int(means[:, s].argmax()), -float(means[:, s].max())))
    texts = [" ".join(table.statements[s]) for s in order]
    groups = [name for name, _ in table.groups]
    key = f"{place}-belief-map"
    yield Exhibit(
        key, category, f"Groups and statements, {model}", "",
        partial(belief_map, texts, groups, means[:, order].T),
        Table(
            key, f"Lifts of statements whose lifts are furthest apart in {category}, in bits.",
            ("Statement", *groups),
            [[text, *(format_number(float(x), "+.2f") for x in means[:, s])]
             for text, s in zip(texts, order, strict=True)],
            "Statements believed of a group come first, then those whose lifts are furthest "
            "apart, ordered by the group of the greatest lift. A lift in a cell is not a belief: "
            "beliefs are tested, over the group's names.",
        ),
        tabled=False,
    )  # fmt: skip
    names = [f"{group}: {name}" for group, own in table.groups for name in own]
    lifts = table.lifts[:, order]
    key = f"{place}-belief-names"
    yield Exhibit(
        key, category, f"The same for each name, {model}", "",
        partial(belief_map, texts, names, lifts.T),
        Table(
            key, f"Lifts of each name of the groups of {category}, in bits.",
            ("Statement", *names),
            [[text, *(format_number(float(x), "+.2f") for x in column)]
             for text, column in zip(texts, lifts.T, strict=True)],
            "A belief rests on all the names of a group together; what one name shows alone may be "
            "due to the word.",
        ),
        tabled=False,
    )  # fmt: skip


def _worse(data: RunData, category: str, place: str, model: str) -> Iterator[Exhibit]:
    """How the lifts of each group's names correlate with the scores of statements."""
    figures = [f for f in data.joint.group_figures if f["category"] == category and f["kind"] == "rho"]
    if not figures:
        return
    rows = [
        [
            spoken_name(f["score"]), f["group"], str(f["statements"]), *cells(_of(f), "+.2f"),
            format_p_value(f["q_value"]) if f["q_value"] is not None else "",
            "" if f["floor"] is None else format_number(f["floor"], ".2f"),
        ]
        for f in figures
    ]  # fmt: skip
    key = f"{place}-believed-figures"
    yield Exhibit(
        key, category, f"What {model} believes about whom", "", partial(believed_panels, figures),
        Table(
            key, f"How the lifts of names of {category} correlate with the scores of statements.",
            ("Score", "Group", "n", "rho", "95% interval", "p", "floor"), rows,
            "Spearman's correlation of a name's lifts with the statements' scores, averaged over "
            "the group's names; above 0: statements with higher scores are likelier for the group. "
            "Intervals are over names and statements; p is corrected over groups and scores "
            "(Benjamini and Hochberg). Floor: 95% of the figures of as many made-up names "
            "are smaller in size. Statements that name a group are left out. A correlation is "
            "shown where p is at most 0.05 and its interval leaves out 0.",
        ),
    )  # fmt: skip


def _of(f: Mapping[str, Any]) -> Estimate:
    value, low, high = (
        math.nan if f[name] is None else float(f[name]) for name in ("value", "low", "high")
    )
    return Estimate(value, low, high, f["statements"])


def _leaves_out_none(f: Mapping[str, Any]) -> bool:
    return f["low"] is not None and (f["low"] > 0 or f["high"] < 0)


def belief_bars(named: Sequence[tuple[str, Estimate]]) -> Any:
    """The strongest beliefs: lifts in bits with their intervals, greatest at the top."""
    rows = list(named)[::-1]
    with figure_style():
        figure, axes = draw_rows(1.15 * len(rows))
        places = range(len(rows))
        for place, (_, e) in zip(places, rows, strict=True):
            axes.plot([e.low, e.high], [place, place], color=INK_COLOR, linewidth=0.8)
        axes.scatter([e.value for _, e in rows], places, s=14, color=POSITIVE_COLOR, zorder=3)
        axes.set_yticks(places, [in_two(name) for name, _ in rows], fontsize=6)
        axes.axvline(0, color=INK_COLOR, linewidth=0.6)
        axes.axvline(0.5, color=LINE_COLOR, linewidth=0.6, linestyle="--")
        figure.supxlabel("lift over the other groups' names (bits)", fontsize=8)
        return figure


def belief_map(texts: Sequence[str], columns: Sequence[str], lifts: Any) -> Any:
    """Lifts [statements, columns] as colours: blue above 0, orange below, full at 4 bits."""
    with figure_style():
        from matplotlib.colors import LinearSegmentedColormap

        colours = LinearSegmentedColormap.from_list("lifts", [NEGATIVE_COLOR, "#ffffff", POSITIVE_COLOR])
        wide = len(columns) > 12
        size = (
            max(COLUMN_INCHES, 1.8 + (0.11 if wide else 0.24) * len(columns)),
            1.2 + 0.15 * len(texts),
        )
        figure, axes = make_subplots(figsize=size)
        drawn = axes.imshow(
            np.clip(lifts, -_WIDEST, _WIDEST), cmap=colours, vmin=-_WIDEST, vmax=_WIDEST,
            aspect="auto", interpolation="nearest",
        )  # fmt: skip
        axes.set_yticks(range(len(texts)), [short(t, 40) for t in texts], fontsize=5.5)
        axes.set_xticks(
            range(len(columns)), [short(c, 34) for c in columns],
            rotation=90, fontsize=4.5 if wide else 6.5,
        )  # fmt: skip
        for edge in ("left", "bottom"):
            axes.spines[edge].set_visible(False)
        axes.tick_params(length=0)
        bar = figure.colorbar(drawn, ax=axes, shrink=0.5, pad=0.02)
        bar.set_label("lift (bits)", fontsize=6)
        bar.ax.tick_params(labelsize=6)
        bar.outline.set_visible(False)
        return figure


def believed_panels(figures: Sequence[Mapping[str, Any]]) -> Any:
    """A panel for each score: each group's figure with its interval, its names as small points, and
    in grey what made-up names reach."""
    scores = list(dict.fromkeys(f["score"] for f in figures))
    groups = list(dict.fromkeys(f["group"] for f in figures))[::-1]
    place = {name: n for n, name in enumerate(groups)}
    wide = min(3, len(scores))
    high = -(-len(scores) // wide)
    with figure_style():
        size = (max(COLUMN_INCHES, 1.0 + 1.1 * wide), high * (0.5 + 0.2 * len(groups)) + 0.3)
        figure, grid = make_subplots(high, wide, figsize=size, sharey=True, squeeze=False)
        for empty in grid.flat[len(scores) :]:
            empty.set_visible(False)
        for axes, score in zip(grid.flat, scores, strict=False):
            own = [f for f in figures if f["score"] == score]
            floors = [f["floor"] for f in own if f["floor"] is not None]
            if floors:
                axes.axvspan(-max(floors), max(floors), color=NEUTRAL_COLOR, alpha=0.25, linewidth=0)
            axes.axvline(0, color=INK_COLOR, linewidth=0.6)
            for f in own:
                y = place[f["group"]]
                values = [v for v in f["names"].values() if v is not None]
                axes.scatter(values, [y] * len(values), s=3, color=NEUTRAL_COLOR, zorder=2)
                if f["low"] is not None:
                    axes.plot([f["low"], f["high"]], [y, y], color=INK_COLOR, linewidth=0.8)
                shown = f["q_value"] is not None and f["q_value"] <= 0.05 and _leaves_out_none(f)
                axes.scatter(
                    [f["value"]], [y], s=14, zorder=3, edgecolor=POSITIVE_COLOR, linewidth=0.8,
                    color=POSITIVE_COLOR if shown else PAPER_COLOR,
                )  # fmt: skip
            axes.set_title(spoken_name(score), fontsize=7)
            axes.locator_params(axis="x", nbins=3)
        grid[0][0].set_yticks(range(len(groups)), [short(g) for g in groups])
        for axes in grid[:, 0]:
            axes.tick_params(axis="y", labelsize=6.5)
        figure.supxlabel(
            "correlation of lifts with scores (filled: shown, by p and interval)", fontsize=7
        )
        return figure


DRAWN, TABLED, PANELS = 12, 60, 6
_COLOURS = (POSITIVE_COLOR, NEGATIVE_COLOR, TOXIC_COLOR, INK_COLOR, NEUTRAL_COLOR, LINE_COLOR)


def beliefs_beside(found: BeliefComparison, category: str, place: str) -> Iterator[Exhibit]:
    """The strongest beliefs of any of the models with the lift in each, and how far every two
    agree."""
    if found.strongest_pairs:
        yield _beside(found, category, place)
    yield _agreement(found, category, place)


def _beside(found: BeliefComparison, category: str, place: str) -> Exhibit:
    """The strongest beliefs: of two models those shown for both, for one and for the other."""
    labels, two = [side.label for side in found.models], len(found.models) == 2
    blocks = _held_by(found) if two else {"": found.strongest_pairs}
    apart = found.compare_lifts(0, 1) if two else {}
    rows = []
    drawn: list[tuple[str, Sequence[BelievedEdge] | None]] = []
    tabled, pictured = (_room(blocks, most) for most in (TABLED, DRAWN))
    for held, order in blocks.items():
        for n in order[: tabled[held]]:
            key = found.pairs[n]
            row = list(found.pair_text(key))
            row[1] += MARK if found.names_group(key) else ""
            for side in found.models:
                edge = side.edges[key]
                row += [*cells(lift(edge), "+.2f"), edge.verdict]
            row += [held] * two
            if apart:
                other = apart.get(key)
                row += [*cells(other.difference, "+.2f"), format_p_value(other.q_value)] if other else [""] * 3
            rows.append(row)
        own = [
            (": ".join(found.pair_text(found.pairs[n])), [s.edges[found.pairs[n]] for s in found.models])
            for n in order[: pictured[held]]
        ]
        drawn += [(held, None), *own] if held and own else own
    heads = [head for label in labels for head in (label, f"95% of {label}", f"{label} finds")]
    heads += ["shown for"] * two + (["difference", "95% interval", "p"] if apart else [])
    left = len(found.strongest_pairs) - sum(tabled.values())
    place = f"{place}-believed-beside"
    title = (
        "Beliefs shown for both models, for one, and for the other" if two
        else "The strongest beliefs of any of them"
    )  # fmt: skip
    return Exhibit(
        place, category, title, "", partial(lifts_beside, drawn, labels),
        Table(
            place, f"Lifts of statements about {category} that any of them believes, in bits.",
            ("Group", "statement", *heads), rows,
            f"{_counted(found)} Greatest mean lift first"
            f"{f'; {left} more are not listed' if left else ''}. {_APART if apart else ''}".strip(),
        ),
    )  # fmt: skip


_APART = (
    "Difference: how many bits more the first model ties the statement to the group than the "
    "second, beyond what each name makes likelier anyway among the statements that both were asked "
    "about, with its interval over names; p by the test of lifts on the differences between the "
    "models, name by name, two-sided, corrected over all pairs of a group and a statement that "
    "both were asked about (Benjamini and Hochberg)."
)


def _room(blocks: Mapping[str, Sequence[int]], most: int) -> dict[str, int]:
    """How many of each block to show, `most` in all: as many of each, and what one leaves goes to
    the others."""
    room = dict.fromkeys(blocks, 0)
    for _ in range(min(most, sum(map(len, blocks.values())))):
        least = min(
            (name for name in blocks if room[name] < len(blocks[name])), key=room.__getitem__
        )
        room[least] += 1
    return room


def _held_by(found: BeliefComparison) -> dict[str, list[int]]:
    """The pairs that both of two models believe, that the first alone does, and the second."""
    a, b = (side.label for side in found.models)
    first, second = found.is_believed
    return {
        "both": [n for n in found.strongest_pairs if first[n] and second[n]],
        f"{a} alone": [n for n in found.strongest_pairs if first[n] and not second[n]],
        f"{b} alone": [n for n in found.strongest_pairs if second[n] and not first[n]],
    }


def _counted(found: BeliefComparison) -> str:
    """How many pairs are believed by whom, in words."""
    if len(found.models) != 2:
        return (
            f"Of {len(found.pairs):,} pairs of a group and a statement that all were asked about, "
            "those that any of them believes."
        )
    two = next(found.iter_agreements())
    a, b = (side.label for side in found.models)
    return (
        f"Of {two.pairs:,} pairs of a group and a statement that both were asked about, "
        f"{two.both_believed:,} are shown to be believed by both, {two.believed_by_one[0]:,} by {a} alone, "
        f"{two.believed_by_one[1]:,} by {b} alone. Alone: shown for this model and not shown for the other, "
        "which does not show that the other lacks the belief."
    )


def _agreement(found: BeliefComparison, category: str, place: str) -> Exhibit:
    labels = [side.label for side in found.models]
    rows = [
        [
            labels[two.first], labels[two.second], f"{two.pairs:,}",
            str(two.believed_counts[0]), str(two.believed_counts[1]), str(two.both_believed), str(two.either_believed),
            str(two.same_sign), *cells(two.correlation, ".2f"), *cells(two.rank_correlation, ".2f"),
        ]
        for two in found.iter_agreements()
    ]  # fmt: skip
    floors = "; ".join(
        f"{side.label}: {side.floor[0]:.2f} of {side.floor[1]:,}" for side in found.models
    )
    key = f"{place}-believed-agreement"
    return Exhibit(
        key, category, 
        "The lifts of each model against the others; blue: both believe it, orange: one does; "
        "dashed: equal lifts, grey: least squares", "",
        partial(lifts_against, found),
        Table(
            key, f"How far beliefs about {category} agree.",
            ("First", "Second", "pairs", "first believes", "second believes", "both", "either",
             "same sign", "r", "95%", "rho", "95%"), rows,
            "Pairs of a group and a statement that all were asked about; same sign: of those that "
            "either believes. r: Pearson's correlation of the lifts, rho: Spearman's, of their "
            "ranks; intervals are over statements with all their groups, those of one predicate "
            "together, for the names that were asked. Found with made-up names, averaged over "
            f"shuffles: {floors}.",
        ),
    )  # fmt: skip


def lift(edge: BelievedEdge) -> Estimate:
    return Estimate(edge.lift, edge.low, edge.high, edge.names)


def lifts_beside(
    rows: Sequence[tuple[str, Sequence[BelievedEdge] | None]], labels: Sequence[str]
) -> Any:
    """A row for each pair, strongest at the top, with the lift in each model and its interval;
    filled where it is believed. A row without lifts is a heading."""
    with figure_style():
        figure, axes = draw_rows(1.15 * len(rows))
        for m, (label, colour) in enumerate(zip(labels, _COLOURS, strict=False)):
            for place, (_, edges) in enumerate(reversed(rows)):
                if edges is None:
                    continue
                edge, y = edges[m], place + 0.5 * (0.5 - (m + 0.5) / len(labels))
                axes.plot([edge.low, edge.high], [y, y], color=colour, linewidth=0.8)
                axes.scatter(
                    [edge.lift], [y], s=11, edgecolor=colour, linewidth=0.8, zorder=3,
                    color=colour if edge.verdict == "believed" else PAPER_COLOR,
                )  # fmt: skip
            axes.scatter([], [], s=11, color=colour, label=short(label, 32))
        axes.set_yticks(range(len(rows)), [in_two(name) for name, _ in reversed(rows)])
        axes.tick_params(axis="y", labelsize=6)
        for label, (_, edges) in zip(axes.get_yticklabels(), reversed(rows), strict=True):
            label.set_weight("bold" if edges is None else "normal")
        axes.axvline(0, color=INK_COLOR, linewidth=0.6)
        figure.supxlabel("lift (bits); filled: believed", fontsize=8)
        figure.legend(loc="outside upper right", ncols=2, frameon=False, fontsize=7)
        return figure


def lifts_against(found: BeliefComparison) -> Any:
    """Every two models against each other: a point for each pair, blue where both believe it,
    orange where one does; the diagonal is dashed, the line of least squares grey."""
    twos = list(found.iter_agreements())[:PANELS]
    wide = min(3, len(twos))
    high = -(-len(twos) // wide)
    with figure_style():
        size = (max(COLUMN_INCHES, 2.1 * wide), 0.4 + (3.0 if wide == 1 else 2.3) * high)
        figure, grid = make_subplots(high, wide, figsize=size, squeeze=False)
        for empty in grid.flat[len(twos) :]:
            empty.set_visible(False)
        for axes, two in zip(grid.flat, twos, strict=False):
            _against(axes, found, two)
        return figure


def _against(axes: Any, found: BeliefComparison, two: ModelAgreement) -> None:
    a, b = two.first, two.second
    x, y = found.lifts[a], found.lifts[b]
    axes.axvline(0, color=LINE_COLOR, linewidth=0.6)
    axes.axhline(0, color=LINE_COLOR, linewidth=0.6)
    ends = np.array([min(x.min(), y.min()), max(x.max(), y.max())])
    axes.plot(ends, ends, color=INK_COLOR, linewidth=0.6, linestyle=(0, (4, 3)), zorder=1)
    if two.pairs > 2 and np.ptp(x) > 0:
        slope, start = np.polyfit(x, y, 1)
        ends = np.array([x.min(), x.max()])
        axes.plot(ends, start + slope * ends, color=NEUTRAL_COLOR, linewidth=1.4, zorder=1)
    held = found.is_believed[a].astype(int) + found.is_believed[b]
    for number_of, colour, size_of in ((0, NEUTRAL_COLOR, 3), (1, NEGATIVE_COLOR, 6), (2, POSITIVE_COLOR, 9)):
        own = held == number_of
        axes.scatter(
            x[own], y[own], s=size_of, color=colour, linewidth=0,
            alpha=0.6 if not number_of else 1, zorder=2 + number_of,
        )  # fmt: skip
    rho = format_number(two.rank_correlation.value, ".2f")
    between = f" [{two.rank_correlation.interval('.2f')}]" if two.rank_correlation.has_interval else ""
    axes.set_title(f"rank correlation {rho}{between}, n = {two.pairs:,}", fontsize=6.5)
    axes.set_xlabel(f"lift in {short(found.models[a].label, 22)} (bits)")
    axes.set_ylabel(f"in {short(found.models[b].label, 22)}")
