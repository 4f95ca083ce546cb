"""Figures of several runs: small multiples, ranks, overlap and differences."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from kgbias.compare.models import Contrast
from kgbias.report.figures import short
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
from kgbias.statistics import Estimate

PAGE = 2 * COLUMN + 0.3  # inches: both columns of a two-column paper
_ROW = 0.2
Row = tuple[str, Sequence[Estimate | None]]


def beside(rows: Sequence[Row], runs: Sequence[str], label: str, *, scale: float = 1.0) -> Any:
    """A panel for each run, the groups in the same order and on the same scale, with 95% intervals.
    All have one colour: that a level differs from 0 is not tested."""
    with figure_style():
        figure, panels = subplots(
            1, len(runs), sharex=True, sharey=True, squeeze=False,
            figsize=(COLUMN if len(runs) < 3 else PAGE, 0.85 + _ROW * max(2, len(rows))),
        )  # fmt: skip
        for axes, run, n in zip(panels[0], runs, range(len(runs)), strict=True):
            axes.grid(True, axis="x")
            axes.set_axisbelow(True)
            axes.spines["left"].set_visible(False)
            axes.axvline(0, color=INK, linewidth=0.6)
            for place, (_, found) in enumerate(rows):
                if (e := found[n]) is not None:
                    if e.has_interval:
                        axes.plot([scale * e.low, scale * e.high], [place] * 2, color=INK,
                                  linewidth=1.2)  # fmt: skip
                    axes.plot(scale * e.value, place, "o", color=INK, markersize=3.5)
            axes.set_title(short(run, 22), fontsize=8)
        panels[0][0].set_yticks(range(len(rows)), [short(name, 24) for name, _ in rows])
        panels[0][0].set_ylim(-0.6, max(2, len(rows)) - 0.4)
        figure.supxlabel(label, fontsize=8)
        return figure


def rank_lines(
    names: Sequence[str], ranks: Sequence[Sequence[Estimate]], runs: Sequence[str], label: str
) -> Any:
    """A line for each group through its rank in each run, 1 at the top; upright lines are 95% of
    resamples. All have one colour: that a rank changes is not tested. `ranks` is
    [groups][runs]."""
    with figure_style():
        figure, axes = subplots(
            figsize=(COLUMN if len(runs) < 4 else PAGE, 0.8 + 0.28 * max(3, len(names)))
        )
        places = np.arange(len(runs))
        for n, (name, own) in enumerate(zip(names, ranks, strict=True)):
            at = places + 0.06 * (n / max(1, len(names) - 1) - 0.5)
            axes.plot(at, [e.value for e in own], color=NEUTRAL, linewidth=1.6)
            axes.vlines(
                at, [e.low for e in own], [e.high for e in own], color=INK, linewidth=0.7,
                alpha=0.5,
            )  # fmt: skip
            axes.plot(at, [e.value for e in own], "o", color=INK, markersize=4)
            for x, e, side in ((at[0] - 0.08, own[0], "right"), (at[-1] + 0.08, own[-1], "left")):
                tied = [
                    m
                    for m, row in enumerate(ranks)
                    if row[0 if side == "right" else -1].value == e.value
                ]
                y = e.value + 0.34 * (tied.index(n) - (len(tied) - 1) / 2)
                axes.text(x, y, short(name, 22), ha=side, va="center", fontsize=7)
        axes.set_xticks(places, [short(run, 18) for run in runs])
        axes.set_xlim(-0.95 * max(1, len(runs) / 3), len(runs) - 1 + 0.95 * max(1, len(runs) / 3))
        axes.set_ylim(len(names) + 0.5, 0.5)
        axes.set_yticks([])
        axes.spines["left"].set_visible(False)
        axes.set_xlabel(label)
        return figure


def overlap_matrix(shares: Sequence[Sequence[float]], runs: Sequence[str]) -> Any:
    """The share of each run's statements (rows) that each other one has, in percent."""
    with figure_style():
        from matplotlib.patches import Rectangle

        size = 0.9 + 0.5 * len(runs)
        figure, axes = subplots(figsize=(max(COLUMN, size + 1.2), max(1.5, size)))
        for y, row in enumerate(shares):
            for x, share in enumerate(row):
                if x == y:
                    continue
                shade = 0.08 + 0.6 * min(1.0, share)
                corner = (x - 0.47, y - 0.47)
                axes.add_patch(Rectangle(corner, 0.94, 0.94, color=TOXIC, linewidth=0, alpha=shade))
                axes.text(x, y, f"{100 * share:.0f}%", ha="center", va="center", fontsize=9)
        names = [short(run, 18) for run in runs]
        axes.set_xticks(range(len(runs)), names)
        axes.set_yticks(range(len(runs)), names)
        axes.set_xlim(-0.5, len(runs) - 0.5)
        axes.set_ylim(len(runs) - 0.5, -0.5)
        axes.tick_params(length=0)
        for spine in axes.spines.values():
            spine.set_visible(False)
        axes.set_xlabel("… are also said by")
        axes.set_ylabel("of the statements of")
        return figure


def forest(
    tests: Sequence[Contrast], label: str, *, scale: float = 1.0, signed: bool = True
) -> Any:
    """Differences with their 95% intervals, the largest at the top; grey where none was shown
    (`Contrast.differs`), else coloured by its sign where the values are `signed`."""
    with figure_style():
        figure, axes = subplots(figsize=(COLUMN, 0.7 + _ROW * max(2, len(tests))))
        axes.grid(True, axis="x")
        axes.set_axisbelow(True)
        axes.spines["left"].set_visible(False)
        axes.axvline(0, color=INK, linewidth=0.6)
        pairs = {(t.first, t.second) for t in tests}
        for place, t in enumerate(reversed(tests)):
            d = t.difference
            own = TOXIC if not signed else POSITIVE if d.value > 0 else NEGATIVE
            colour = own if t.differs else NEUTRAL
            if d.has_interval:
                axes.plot([scale * d.low, scale * d.high], [place] * 2, color=colour, linewidth=1.2)
            axes.plot(scale * d.value, place, "o", color=colour, markersize=3.5)
        names = [
            short(t.group, 24) if len(pairs) == 1
            else f"{short(t.group, 18)}: {short(t.first, 10)} − {short(t.second, 10)}"
            for t in reversed(tests)
        ]  # fmt: skip
        axes.set_yticks(range(len(tests)), names)
        axes.set_ylim(-0.6, max(2, len(tests)) - 0.4)
        axes.set_xlabel(label)
        axes.tick_params(axis="y", color=LINE)
        return figure
