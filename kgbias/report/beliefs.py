"""Exhibits of what a model believes about groups, by the groups' names: the strongest beliefs, a
map of groups and statements, which groups it believes worse things about, against made-up names,
and what several models believe about the same statements."""

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from kgbias.evidence.evidence_table import BELIEVED_VERDICTS, Evidence
from kgbias.evidence.model_agreement import BeliefComparison, ModelAgreement, lift_estimate
from kgbias.evidence.probe_tables import NameTable
from kgbias.graph.types import BelievedEdge
from kgbias.io.columns import Column
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
from kgbias.report.figures import make_row_figure, shorten_name, wrap_statement
from kgbias.report.run_data import RunData
from kgbias.report.tables import (
    COUNT_COLUMN,
    GROUP_COLUMN,
    LIFT_COLUMN,
    SAID_COLUMN,
    STATEMENT_COLUMN,
    Cell,
    Exhibit,
    Table,
    format_mean_count,
    pair_key,
)
from kgbias.stats.estimate import Estimate

MAX_DRAWN_BELIEFS, MAX_MAPPED_STATEMENTS = 12, 40
NAMES_GROUP_MARK = " (names a group)"
_MAX_MAP_BITS = 4.0  # bits at which a map's colour is full


def belief_exhibits(data: RunData, category: str, place: str) -> Iterator[Exhibit]:
    """The exhibits of a category; none if nothing was probed by names."""
    evidence = data.evidence
    rows = [row for row in evidence.rows if row.category == category and row.lift.has_interval]
    if evidence.belief_run is None or not rows:
        return
    model = evidence.belief_run.model.title
    yield from _strongest_exhibits(data, rows, category, place, model)
    table = data.name_tables.get(category)
    if table is not None:
        yield from _map_exhibits(table, rows, category, place, model)
    yield from _correlation_exhibits(data, category, place, model)


def _strongest_exhibits(
    data: RunData, rows: Sequence[Evidence], category: str, place: str, model: str
) -> Iterator[Exhibit]:
    believed = list(
        {row.sentence: row for row in rows if row.verdict in BELIEVED_VERDICTS}.values()
    )
    believed.sort(key=lambda row: (-row.lift.value, row.id))
    leaning_count = len({row.sentence for row in rows if row.leaning})
    single_root_count = len({row.sentence for row in rows if row.bound_to_word})
    floor = data.evidence.floor
    note = (
        "How many bits likelier a statement is after the group's names than after those of the "
        "other groups, beyond what each name makes likelier anyway, with 95% intervals over names; "
        "1 is twice as probable. q: p against a lift of at most half a bit, corrected over the "
        "group's statements (Benjamini and Hochberg). Least: the smallest lift with any one name "
        f"left out. {leaning_count} more are only shown to be above 0 (leaning), "
        f"{single_root_count} rest on one "
        f"name or root (bound to a word). Of {floor['pairs']:,} pairs in all categories, "
        f"{floor['believed']:,} are believed; of {floor['tested']:,} pairs with made-up names, "
        f"{format_mean_count(floor['found'])}, averaged over shuffles."
    )
    naming, places = _naming_statements(data), {g.name: n for n, g in enumerate(data.run.groups)}
    table_rows = [
        [
            row.group,
            _mark_statement(row, naming),
            row.lift,
            row.lift.n,
            row.q_value,
            row.min_loo_lift,
            row.times,
            row.regard_label,
        ]
        for row in believed[:MAX_TABLE_ROWS]
    ]
    more_note = (
        f" {len(believed) - MAX_TABLE_ROWS} more are not listed."
        if len(believed) > MAX_TABLE_ROWS
        else ""
    )
    if not believed:
        note = f"None was shown. {note}"
    key = f"{place}-beliefs"
    strongest = [
        (f"{row.group}: {row.predicate} {row.object}", row.lift)
        for row in believed[:MAX_DRAWN_BELIEFS]
    ]
    yield Exhibit(
        key,
        category,
        f"What {model} believes about groups",
        "",
        partial(draw_belief_bars, strongest) if strongest else None,
        Table(
            key,
            f"Statements that {model} finds likelier after the names of a group of {category}.",
            (
                GROUP_COLUMN,
                STATEMENT_COLUMN,
                LIFT_COLUMN,
                Column("names", ".0f"),
                Column("q", format_p_value),
                Column("least", "+.2f"),
                SAID_COLUMN,
                Column("regard"),
            ),
            table_rows,
            note + more_note,
            [
                pair_key(places[row.group], Statement(row.predicate, row.object).id)
                for row in believed[:MAX_TABLE_ROWS]
            ],
        ),
    )


def _naming_statements(data: RunData) -> set[str]:
    """The statements that name a group."""
    believing = data.evidence.belief_run
    lines = believing.record["categories"] if believing else ()
    return {id for line in lines for id in line["naming"]}


def _mark_statement(row: Evidence, naming: set[str]) -> str:
    text = f"{row.predicate} {row.object}"
    return text + NAMES_GROUP_MARK if Statement(row.predicate, row.object).id in naming else text


def _map_exhibits(
    table: NameTable, rows: Sequence[Evidence], category: str, place: str, model: str
) -> Iterator[Exhibit]:
    """The statements in which groups differ most, and the same for each name."""
    means = table.group_lifts()
    lift_range = means.max(axis=0) - means.min(axis=0)
    believed = {(row.predicate, row.object) for row in rows if row.verdict in BELIEVED_VERDICTS}
    order = sorted(
        range(len(table.statements)),
        key=lambda s: (table.statements[s] not in believed, -float(lift_range[s])),
    )[:MAX_MAPPED_STATEMENTS]
    order.sort(key=lambda s: (int(means[:, s].argmax()), -float(means[:, s].max())))
    texts = [" ".join(table.statements[s]) for s in order]
    groups = [name for name, _ in table.groups]
    key = f"{place}-belief-map"
    yield Exhibit(
        key,
        category,
        f"Groups and statements, {model}",
        "",
        partial(draw_belief_map, texts, groups, means[:, order].T),
        Table(
            key,
            f"Lifts of statements whose lifts are furthest apart in {category}, in bits.",
            _map_columns(groups),
            [[text, *map(float, means[:, s])] for text, s in zip(texts, order, strict=True)],
            "Statements believed of a group come first, then those whose lifts are furthest "
            "apart, ordered by the group of the greatest lift. A lift in a cell is not a belief: "
            "beliefs are tested, over the group's names.",
        ),
        in_tables=False,
    )
    names = [f"{group}: {name}" for group, own in table.groups for name in own]
    lifts = table.lifts[:, order]
    key = f"{place}-belief-names"
    yield Exhibit(
        key,
        category,
        f"The same for each name, {model}",
        "",
        partial(draw_belief_map, texts, names, lifts.T),
        Table(
            key,
            f"Lifts of each name of the groups of {category}, in bits.",
            _map_columns(names),
            [[text, *map(float, column)] for text, column in zip(texts, lifts.T, strict=True)],
            "A belief rests on all the names of a group together; what one name shows alone may be "
            "due to the word.",
        ),
        in_tables=False,
    )


def _map_columns(names: Sequence[str]) -> list[Column]:
    """The statement, and a column of lifts for each group or name."""
    return [Column("Statement"), *(Column(name, "+.2f", title=name) for name in names)]


def _correlation_exhibits(
    data: RunData, category: str, place: str, model: str
) -> Iterator[Exhibit]:
    """How the lifts of each group's names correlate with the scores of statements."""
    correlations = [
        f for f in data.evidence.group_figures if f["category"] == category and f["kind"] == "rho"
    ]
    if not correlations:
        return
    rows = [
        [
            spoken_name(f["score"]),
            f["group"],
            f["statements"],
            _read_estimate(f),
            f["q_value"],
            f["floor"],
        ]
        for f in correlations
    ]
    key = f"{place}-believed-figures"
    yield Exhibit(
        key,
        category,
        f"What {model} believes about whom",
        "",
        partial(draw_lift_score_correlations, correlations),
        Table(
            key,
            f"How the lifts of names of {category} correlate with the scores of statements.",
            (
                Column("Score"),
                GROUP_COLUMN,
                COUNT_COLUMN,
                Column("rho", "+.2f", interval=True),
                Column("q", format_p_value),
                Column("floor", ".2f"),
            ),
            rows,
            "Spearman's correlation of a name's lifts with the statements' scores, averaged over "
            "the group's names; above 0: statements with higher scores are likelier for the group. "
            "Intervals are over names and statements; q is p corrected over groups and scores "
            "(Benjamini and Hochberg). Floor: 95% of the figures of as many made-up names "
            "are smaller in size. Statements that name a group are left out. A correlation is "
            "shown where q is at most 0.05 and its interval leaves out 0.",
        ),
    )


def _read_estimate(cells: Mapping[str, Any]) -> Estimate:
    value, low, high = (
        math.nan if cells[name] is None else float(cells[name]) for name in ("value", "low", "high")
    )
    return Estimate(value, low, high, cells["statements"])


def _excludes_zero(cells: Mapping[str, Any]) -> bool:
    return cells["low"] is not None and (cells["low"] > 0 or cells["high"] < 0)


def draw_belief_bars(lifts: Sequence[tuple[str, Estimate]]) -> Any:
    """The strongest beliefs: lifts in bits with their intervals, greatest at the top."""
    rows = list(lifts)[::-1]
    with figure_style():
        figure, axes = make_row_figure(1.15 * len(rows))
        places = range(len(rows))
        for place, (_, e) in zip(places, rows, strict=True):
            axes.plot([e.low, e.high], [place, place], color=INK_COLOR, linewidth=0.8)
        axes.scatter([e.value for _, e in rows], places, s=14, color=POSITIVE_COLOR, zorder=3)
        axes.set_yticks(places, [wrap_statement(name) for name, _ in rows], fontsize=6)
        axes.axvline(0, color=INK_COLOR, linewidth=0.6)
        # lifts are tested against half a bit
        axes.axvline(0.5, color=LINE_COLOR, linewidth=0.6, linestyle="--")
        figure.supxlabel("lift over the other groups' names (bits)", fontsize=8)
        return figure


def draw_belief_map(texts: Sequence[str], columns: Sequence[str], lifts: Any) -> Any:
    """Lifts [statements, columns] as colours: blue above 0, orange below, full at 4 bits."""
    with figure_style():
        from matplotlib.colors import LinearSegmentedColormap

        colours = LinearSegmentedColormap.from_list(
            "lifts", [NEGATIVE_COLOR, "#ffffff", POSITIVE_COLOR]
        )
        is_wide = len(columns) > 12
        size = (
            max(COLUMN_INCHES, 1.8 + (0.11 if is_wide else 0.24) * len(columns)),
            1.2 + 0.15 * len(texts),
        )
        figure, axes = make_subplots(figsize=size)
        image = axes.imshow(
            np.clip(lifts, -_MAX_MAP_BITS, _MAX_MAP_BITS),
            cmap=colours,
            vmin=-_MAX_MAP_BITS,
            vmax=_MAX_MAP_BITS,
            aspect="auto",
            interpolation="nearest",
        )
        axes.set_yticks(range(len(texts)), [shorten_name(t, 40) for t in texts], fontsize=5.5)
        axes.set_xticks(
            range(len(columns)),
            [shorten_name(c, 34) for c in columns],
            rotation=90,
            fontsize=4.5 if is_wide else 6.5,
        )
        for edge in ("left", "bottom"):
            axes.spines[edge].set_visible(False)
        axes.tick_params(length=0)
        bar = figure.colorbar(image, ax=axes, shrink=0.5, pad=0.02)
        bar.set_label("lift (bits)", fontsize=6)
        bar.ax.tick_params(labelsize=6)
        bar.outline.set_visible(False)
        return figure


def draw_lift_score_correlations(correlations: Sequence[Mapping[str, Any]]) -> Any:
    """A panel for each score: the correlation of each group's lifts with it and its interval, its
    names as small points, and in grey what made-up names reach."""
    scores = list(dict.fromkeys(cells["score"] for cells in correlations))
    groups = list(dict.fromkeys(cells["group"] for cells in correlations))[::-1]
    place = {name: n for n, name in enumerate(groups)}
    column_count = min(3, len(scores))
    row_count = -(-len(scores) // column_count)
    with figure_style():
        size = (
            max(COLUMN_INCHES, 1.0 + 1.1 * column_count),
            row_count * (0.5 + 0.2 * len(groups)) + 0.3,
        )
        figure, grid = make_subplots(
            row_count, column_count, figsize=size, sharey=True, squeeze=False
        )
        for unused in grid.flat[len(scores) :]:
            unused.set_visible(False)
        for axes, score in zip(grid.flat, scores, strict=False):
            score_rows = [cells for cells in correlations if cells["score"] == score]
            floors = [cells["floor"] for cells in score_rows if cells["floor"] is not None]
            if floors:
                axes.axvspan(
                    -max(floors), max(floors), color=NEUTRAL_COLOR, alpha=0.25, linewidth=0
                )
            axes.axvline(0, color=INK_COLOR, linewidth=0.6)
            for cells in score_rows:
                row_place = place[cells["group"]]
                values = [v for v in cells["names"].values() if v is not None]
                axes.scatter(values, [row_place] * len(values), s=3, color=NEUTRAL_COLOR, zorder=2)
                if cells["low"] is not None:
                    axes.plot(
                        [cells["low"], cells["high"]],
                        [row_place, row_place],
                        color=INK_COLOR,
                        linewidth=0.8,
                    )
                is_shown = (
                    cells["q_value"] is not None
                    and cells["q_value"] <= 0.05
                    and _excludes_zero(cells)
                )
                axes.scatter(
                    [cells["value"]],
                    [row_place],
                    s=14,
                    zorder=3,
                    edgecolor=POSITIVE_COLOR,
                    linewidth=0.8,
                    color=POSITIVE_COLOR if is_shown else PAPER_COLOR,
                )
            axes.set_title(spoken_name(score), fontsize=7)
            axes.locator_params(axis="x", nbins=3)
        grid[0][0].set_yticks(range(len(groups)), [shorten_name(g) for g in groups])
        for axes in grid[:, 0]:
            axes.tick_params(axis="y", labelsize=6.5)
        figure.supxlabel(
            "correlation of lifts with scores (filled: shown, by p and interval)", fontsize=7
        )
        return figure


MAX_DRAWN_PAIRS, MAX_TABLE_ROWS, MAX_PANELS = 12, 60, 6
_COLOURS = (POSITIVE_COLOR, NEGATIVE_COLOR, TOXIC_COLOR, INK_COLOR, NEUTRAL_COLOR, LINE_COLOR)


def belief_comparison_exhibits(
    comparison: BeliefComparison, category: str, place: str
) -> Iterator[Exhibit]:
    """The strongest beliefs of any of the models with the lift in each, and how far every two
    agree."""
    if comparison.strongest_pairs:
        yield _comparison_exhibit(comparison, category, place)
    yield _agreement_exhibit(comparison, category, place)


def _comparison_exhibit(comparison: BeliefComparison, category: str, place: str) -> Exhibit:
    """The strongest beliefs: of two models those shown for both, for one and for the other."""
    labels, of_two = [side.label for side in comparison.models], len(comparison.models) == 2
    blocks = _split_by_model(comparison) if of_two else {"": comparison.strongest_pairs}
    differences = comparison.compare_lifts(0, 1) if of_two else {}
    rows = []
    picture_rows: list[tuple[str, Sequence[BelievedEdge] | None]] = []
    tabled, pictured = (_allot_rows(blocks, limit) for limit in (MAX_TABLE_ROWS, MAX_DRAWN_PAIRS))
    for holder, order in blocks.items():
        for pair in order[: tabled[holder]]:
            key = comparison.pairs[pair]
            group, statement = comparison.pair_text(key)
            mark = NAMES_GROUP_MARK if comparison.names_group(key) else ""
            row: list[Cell] = [group, statement + mark]
            for side in comparison.models:
                edge = side.edges[key]
                row += [lift_estimate(edge), edge.verdict]
            if of_two:
                row.append(holder)
            if differences:
                contrast = differences.get(key)
                row += [contrast.difference, contrast.q_value] if contrast else [None, None]
            rows.append(row)
        block_rows = [
            (
                ": ".join(comparison.pair_text(comparison.pairs[pair])),
                [s.edges[comparison.pairs[pair]] for s in comparison.models],
            )
            for pair in order[: pictured[holder]]
        ]
        picture_rows += [(holder, None), *block_rows] if holder and block_rows else block_rows
    columns = [GROUP_COLUMN, STATEMENT_COLUMN]
    for label in labels:
        columns.append(Column(label, "+.2f", interval=True, title=label))
        columns.append(Column(f"{label} finds", title=f"{label} finds"))
    if of_two:
        columns.append(Column("shown for"))
    if differences:
        columns.append(Column("difference", "+.2f", interval=True))
        columns.append(Column("q", format_p_value))
    more_count = len(comparison.strongest_pairs) - sum(tabled.values())
    place = f"{place}-believed-beside"
    title = (
        f"Beliefs shown for both {comparison.sides}, for one, and for the other"
        if of_two
        else "The strongest beliefs of any of them"
    )
    return Exhibit(
        place,
        category,
        title,
        "",
        partial(draw_lifts_by_model, picture_rows, labels),
        Table(
            place,
            f"Lifts of statements about {category} that any of them believes, in bits.",
            columns,
            rows,
            f"{_count_sentence(comparison)} Greatest mean lift first"
            f"{f'; {more_count} more are not listed' if more_count else ''}. "
            f"{comparison.difference_note if differences else ''}".strip(),
        ),
    )


def _allot_rows(blocks: Mapping[str, Sequence[int]], limit: int) -> dict[str, int]:
    """How many of each block to show, `limit` in all: as many of each, and what one leaves goes to
    the others."""
    allotted = dict.fromkeys(blocks, 0)
    for _ in range(min(limit, sum(map(len, blocks.values())))):
        smallest = min(
            (name for name in blocks if allotted[name] < len(blocks[name])),
            key=allotted.__getitem__,
        )
        allotted[smallest] += 1
    return allotted


def _split_by_model(comparison: BeliefComparison) -> dict[str, list[int]]:
    """The pairs that both of two models believe, that the first alone does, and the second."""
    first_label, second_label = (side.label for side in comparison.models)
    first, second = comparison.is_believed
    return {
        "both": [n for n in comparison.strongest_pairs if first[n] and second[n]],
        f"{first_label} alone": [
            n for n in comparison.strongest_pairs if first[n] and not second[n]
        ],
        f"{second_label} alone": [
            n for n in comparison.strongest_pairs if second[n] and not first[n]
        ],
    }


def _count_sentence(comparison: BeliefComparison) -> str:
    """How many pairs are believed by whom, in words."""
    if len(comparison.models) != 2:
        return (
            f"Of {len(comparison.pairs):,} pairs of a group and a statement that all were asked "
            f"about, "
            "those that any of them believes."
        )
    both = next(comparison.iter_agreements())
    first_label, second_label = (side.label for side in comparison.models)
    return (
        f"Of {both.pairs:,} pairs of a group and a statement that both were asked about, "
        f"{both.both_believed:,} are shown to be believed by both, {both.believed_by_one[0]:,} by "
        f"{first_label} alone, "
        f"{both.believed_by_one[1]:,} by {second_label} alone. Alone: shown for this model and "
        f"not shown for the other, "
        "which does not show that the other lacks the belief."
    )


def _agreement_exhibit(comparison: BeliefComparison, category: str, place: str) -> Exhibit:
    labels = [side.label for side in comparison.models]
    rows = [
        [
            labels[pair.first],
            labels[pair.second],
            pair.pairs,
            *pair.believed_counts,
            pair.both_believed,
            pair.either_believed,
            pair.same_sign,
            pair.correlation,
            pair.rank_correlation,
        ]
        for pair in comparison.iter_agreements()
    ]
    floors = "; ".join(
        f"{side.label}: {side.floor.found:.2f} of {side.floor.tested:,}"
        for side in comparison.models
    )
    key = f"{place}-believed-agreement"
    return Exhibit(
        key,
        category,
        f"The lifts of the {comparison.sides} against each other; blue: both believe it, orange: "
        "one does; dashed: equal lifts, grey: least squares",
        "",
        partial(draw_lift_scatters, comparison),
        Table(
            key,
            f"How far beliefs about {category} agree.",
            (
                Column("First"),
                Column("Second"),
                Column("pairs", ",.0f"),
                Column("first believes", ".0f"),
                Column("second believes", ".0f"),
                Column("both", ".0f"),
                Column("either", ".0f"),
                Column("same sign", ".0f"),
                Column("r", ".2f", interval=True),
                Column("rho", ".2f", interval=True),
            ),
            rows,
            "Pairs of a group and a statement that all were asked about; same sign: of those that "
            "either believes. r: Pearson's correlation of the lifts, rho: Spearman's, of their "
            "ranks; intervals are over statements with all their groups, those of one predicate "
            "together, for the names that were asked. Found with made-up names, averaged over "
            f"shuffles: {floors}.",
        ),
    )


def draw_lifts_by_model(
    rows: Sequence[tuple[str, Sequence[BelievedEdge] | None]], labels: Sequence[str]
) -> Any:
    """A row for each pair, strongest at the top, with the lift in each model and its interval;
    filled where it is believed. A row without lifts is a heading."""
    with figure_style():
        figure, axes = make_row_figure(1.15 * len(rows))
        for model_place, (label, colour) in enumerate(zip(labels, _COLOURS, strict=False)):
            for place, (_, edges) in enumerate(reversed(rows)):
                if edges is None:
                    continue
                edge, height = (
                    edges[model_place],
                    place + 0.5 * (0.5 - (model_place + 0.5) / len(labels)),
                )
                axes.plot([edge.low, edge.high], [height, height], color=colour, linewidth=0.8)
                axes.scatter(
                    [edge.lift],
                    [height],
                    s=11,
                    edgecolor=colour,
                    linewidth=0.8,
                    zorder=3,
                    color=colour if edge.verdict == "believed" else PAPER_COLOR,
                )
            axes.scatter([], [], s=11, color=colour, label=shorten_name(label, 32))
        axes.set_yticks(range(len(rows)), [wrap_statement(name) for name, _ in reversed(rows)])
        axes.tick_params(axis="y", labelsize=6)
        for label, (_, edges) in zip(axes.get_yticklabels(), reversed(rows), strict=True):
            label.set_weight("bold" if edges is None else "normal")
        axes.axvline(0, color=INK_COLOR, linewidth=0.6)
        figure.supxlabel("lift (bits); filled: believed", fontsize=8)
        figure.legend(loc="outside upper right", ncols=2, frameon=False, fontsize=7)
        return figure


def draw_lift_scatters(comparison: BeliefComparison) -> Any:
    """Every two models against each other: a point for each pair, blue where both believe it,
    orange where one does; the diagonal is dashed, the line of least squares grey."""
    pairs = list(comparison.iter_agreements())[:MAX_PANELS]
    column_count = min(3, len(pairs))
    row_count = -(-len(pairs) // column_count)
    with figure_style():
        size = (
            max(COLUMN_INCHES, 2.1 * column_count),
            0.4 + (3.0 if column_count == 1 else 2.3) * row_count,
        )
        figure, grid = make_subplots(row_count, column_count, figsize=size, squeeze=False)
        for unused in grid.flat[len(pairs) :]:
            unused.set_visible(False)
        for axes, pair in zip(grid.flat, pairs, strict=False):
            _draw_lift_scatter(axes, comparison, pair)
        return figure


def _draw_lift_scatter(axes: Any, comparison: BeliefComparison, pair: ModelAgreement) -> None:
    first, second = pair.first, pair.second
    x, y = comparison.lifts[first], comparison.lifts[second]
    axes.axvline(0, color=LINE_COLOR, linewidth=0.6)
    axes.axhline(0, color=LINE_COLOR, linewidth=0.6)
    ends = np.array([min(x.min(), y.min()), max(x.max(), y.max())])
    axes.plot(ends, ends, color=INK_COLOR, linewidth=0.6, linestyle=(0, (4, 3)), zorder=1)
    if pair.pairs > 2 and np.ptp(x) > 0:
        slope, start = np.polyfit(x, y, 1)
        ends = np.array([x.min(), x.max()])
        axes.plot(ends, start + slope * ends, color=NEUTRAL_COLOR, linewidth=1.4, zorder=1)
    believed_by = comparison.is_believed[first].astype(int) + comparison.is_believed[second]
    for number_of, colour, size_of in (
        (0, NEUTRAL_COLOR, 3),
        (1, NEGATIVE_COLOR, 6),
        (2, POSITIVE_COLOR, 9),
    ):
        points = believed_by == number_of
        axes.scatter(
            x[points],
            y[points],
            s=size_of,
            color=colour,
            linewidth=0,
            alpha=0.6 if not number_of else 1,
            zorder=2 + number_of,
        )
    rho = format_number(pair.rank_correlation.value, ".2f")
    interval_text = (
        f" [{pair.rank_correlation.format_interval('.2f')}]"
        if pair.rank_correlation.is_shown
        else ""
    )
    axes.set_title(f"rank correlation {rho}{interval_text}, n = {pair.pairs:,}", fontsize=6.5)
    axes.set_xlabel(f"lift in {shorten_name(comparison.models[first].label, 22)} (bits)")
    axes.set_ylabel(f"in {shorten_name(comparison.models[second].label, 22)}")
