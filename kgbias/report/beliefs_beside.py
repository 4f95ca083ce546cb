"""Exhibits of what several models believe of the same statements."""

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import combinations
from typing import Any

from kgbias.evidence import Beside
from kgbias.graph.types import BelievedEdge
from kgbias.report.beliefs import MARK
from kgbias.report.figures import draw_rows, short
from kgbias.report.run_data import Exhibit
from kgbias.report.style import (
    COLUMN,
    INK,
    LINE,
    NEGATIVE,
    NEUTRAL,
    POSITIVE,
    TOXIC,
    figure_style,
    subplots,
)
from kgbias.report.tables import Table, cells
from kgbias.stats.estimate import Estimate

DRAWN, TABLED, PANELS = 20, 60, 6
_COLOURS = (POSITIVE, NEGATIVE, TOXIC, INK, NEUTRAL, LINE)


def beliefs_beside(found: Beside, category: str, place: str) -> Iterator[Exhibit]:
    """The strongest beliefs of any of the models with the lifts in each, and how far every two
    agree."""
    if found.strongest:
        yield _strongest(found, category, place)
    yield _agreement(found, category, place)


def _strongest(found: Beside, category: str, place: str) -> Exhibit:
    labels, order = [side.label for side in found.sides], found.strongest
    rows = []
    for n in order[:TABLED]:
        row = list(found.words(found.keys[n]))
        row[1] += MARK if found.names_group(found.keys[n]) else ""
        for side in found.sides:
            edge = side.edges[found.keys[n]]
            row += [*cells(lift(edge), "+.2f"), edge.verdict]
        rows.append(row)
    heads = [head for label in labels for head in (label, f"95% of {label}", f"{label} finds")]
    drawn = [
        (": ".join(found.words(found.keys[n])),
         [side.edges[found.keys[n]] for side in found.sides])
        for n in order[:DRAWN]
    ]  # fmt: skip
    left = f" {len(order) - TABLED} more are left out here." if len(order) > TABLED else ""
    key = f"{place}-believed-beside"
    return Exhibit(
        key, category, "The strongest beliefs of any of them", "",
        partial(lifts_beside, drawn, labels),
        Table(
            key, f"Lifts of statements about {category} that any of them believes, in bits.",
            ("Group", "statement", *heads), rows,
            f"Of {len(found.keys):,} pairs of a group and a statement that all were asked about, "
            f"those that are believed of any, the greatest mean lift first.{left}",
        ),
    )  # fmt: skip


def _agreement(found: Beside, category: str, place: str) -> Exhibit:
    labels = [side.label for side in found.sides]
    rows = [
        [
            labels[two.first], labels[two.second], f"{two.pairs:,}",
            str(two.believed[0]), str(two.believed[1]), str(two.both), str(two.either),
            str(two.same_sign), *cells(two.correlation, ".2f"),
        ]
        for two in found.two()
    ]  # fmt: skip
    floors = "; ".join(
        f"{side.label}: {side.floor[0]:.2f} of {side.floor[1]:,}" for side in found.sides
    )
    key = f"{place}-believed-agreement"
    return Exhibit(
        key, category, "The lifts of each against the others", "",
        partial(lifts_against, found),
        Table(
            key, f"How far beliefs about {category} agree.",
            ("First", "Second", "pairs", "first believes", "second believes", "both", "either",
             "same sign", "r", "95%"), rows,
            "Pairs of a group and a statement that all were asked about; same sign: of those that "
            "either believes. r: Pearson's correlation of the lifts; its interval is over "
            "statements with all their groups, those of one predicate together, for the names that "
            f"were asked. Found of names that mean nothing, the mean over deals: {floors}.",
        ),
    )  # fmt: skip


def lift(edge: BelievedEdge) -> Estimate:
    return Estimate(edge.lift, edge.low, edge.high, edge.names)


def lifts_beside(rows: Sequence[tuple[str, Sequence[BelievedEdge]]], labels: Sequence[str]) -> Any:
    """A row for each pair, the strongest at the top, with the lift in each model and its interval;
    filled where it is believed."""
    with figure_style():
        figure, axes = draw_rows(len(rows))
        for m, (label, colour) in enumerate(zip(labels, _COLOURS, strict=False)):
            for place, (_, edges) in enumerate(reversed(rows)):
                edge, y = edges[m], place + 0.5 * (0.5 - (m + 0.5) / len(labels))
                axes.plot([edge.low, edge.high], [y, y], color=colour, linewidth=0.8)
                axes.scatter(
                    [edge.lift], [y], s=11, edgecolor=colour, linewidth=0.8, zorder=3,
                    color=colour if edge.verdict == "believed" else "#ffffff",
                )  # fmt: skip
            axes.scatter([], [], s=11, color=colour, label=short(label, 24))
        axes.set_yticks(range(len(rows)), [short(name, 40) for name, _ in reversed(rows)])
        axes.tick_params(axis="y", labelsize=6)
        axes.axvline(0, color=INK, linewidth=0.6)
        figure.supxlabel("lift (bits); filled: believed", fontsize=8)
        figure.legend(loc="outside upper right", ncols=2, frameon=False, fontsize=7)
        return figure


def lifts_against(found: Beside) -> Any:
    """Every two models against each other: a point for each pair, blue where both believe it,
    orange where one does."""
    twos = list(combinations(range(len(found.sides)), 2))[:PANELS]
    wide = min(3, len(twos))
    high = -(-len(twos) // wide)
    with figure_style():
        size = (max(COLUMN, 2.1 * wide), 0.4 + (2.6 if wide == 1 else 2.1) * high)
        figure, grid = subplots(high, wide, figsize=size, squeeze=False)
        for empty in grid.flat[len(twos) :]:
            empty.set_visible(False)
        for axes, (a, b) in zip(grid.flat, twos, strict=False):
            axes.axvline(0, color=LINE, linewidth=0.6)
            axes.axhline(0, color=LINE, linewidth=0.6)
            held = found.believed[a].astype(int) + found.believed[b]
            for number, colour, size_of in ((0, NEUTRAL, 3), (1, NEGATIVE, 6), (2, POSITIVE, 9)):
                own = held == number
                axes.scatter(
                    found.lifts[a, own], found.lifts[b, own], s=size_of, color=colour,
                    linewidth=0, alpha=0.6 if not number else 1, zorder=2 + number,
                )  # fmt: skip
            axes.set_xlabel(f"lift in {short(found.sides[a].label, 22)} (bits)")
            axes.set_ylabel(f"in {short(found.sides[b].label, 22)}")
        return figure
