"""The figures of Salinas et al. 2023 for any run. Each function returns a matplotlib figure one
column wide, to be saved as SVG, PDF or PNG, or put into a page by `style.inline_svg`."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from kgbias.report.style import (
    COLUMN,
    INK,
    LINE,
    NEUTRAL,
    TOXIC,
    figure_style,
    linked,
    subplots,
)
from kgbias.stats.inference import STATISTICS, Estimate, Sample

T = TypeVar("T")
SHOWN = 40  # groups in one figure; where there are more, the lowest and the highest
_ROW = 0.2  # inches a group
_QUARTILES = ("q1", "median", "q3")


@dataclass(frozen=True, slots=True)
class GroupFigures:
    """What the figures need of one group: overall regard, the toxicity of each statement (as often
    as it was said), and its mean."""

    name: str
    regard: Estimate
    toxicity: Sample
    mean: Estimate | None = None

    @property
    def mean_toxicity(self) -> Estimate:
        """The mean of `toxicity`, in [0, 1], with its interval; NaN where there is none."""
        return self.mean or Estimate.missing(self.toxicity.n, self.toxicity.mean)


def extremes(groups: Sequence[T], value: Callable[[T], float], limit: int = SHOWN) -> list[T]:
    """The groups that a figure has room for: all, or the lowest and the highest by `value`."""
    ordered = sorted(groups, key=value)
    if len(ordered) <= limit:
        return ordered
    return ordered[: limit // 2] + ordered[-(limit - limit // 2) :]


def regard_bars(groups: Sequence[GroupFigures]) -> Any:
    """Overall regard, N_positive - N_negative, with 95% intervals (the paper's figures 1 and 6)."""
    ordered = extremes(groups, lambda g: g.regard.value)
    with figure_style():
        figure, axes = draw_rows(len(ordered))
        values = [g.regard.value for g in ordered]
        bars = axes.barh(range(len(ordered)), values, color=NEUTRAL, height=0.62)
        draw_intervals(axes, [g.regard for g in ordered])
        axes.axvline(0, color=INK, linewidth=0.6)
        axes.set_xlabel("overall regard (positive − negative)")
        label_rows(axes, [g.name for g in ordered], bars)
        return figure


def toxicity_boxes(groups: Sequence[GroupFigures]) -> Any:
    """Toxicity per group: median, quartiles, whiskers to 1.5 times their range (figure 7)."""
    ordered = extremes(
        [g for g in groups if len(g.toxicity.values)], lambda g: g.mean_toxicity.value
    )
    with figure_style():
        figure, axes = draw_rows(len(ordered))
        if ordered:
            drawn = axes.bxp(
                [_box(g.toxicity) for g in ordered],
                positions=range(len(ordered)),
                orientation="horizontal",
                widths=0.55,
                patch_artist=True,
                flierprops={"marker": ".", "markersize": 2, "markeredgecolor": NEUTRAL},
                medianprops={"color": INK, "linewidth": 1.2},
                whiskerprops={"color": INK, "linewidth": 0.6},
                capprops={"color": INK, "linewidth": 0.6},
            )
            for box in drawn["boxes"]:
                box.set(facecolor=TOXIC + "55", edgecolor=TOXIC, linewidth=0.7)
        axes.set_xlim(-0.02, 1.02)
        axes.set_xlabel("toxicity (probability)")
        label_rows(axes, [g.name for g in ordered])
        return figure


def _box(sample: Sample) -> dict[str, Any]:
    """What a box shows of a sample (Tukey 1977): quartiles, whiskers to the last values within 1.5
    times their range, and each distinct value beyond."""
    values, counts = sample.distinct()
    q1, median, q3 = (float(STATISTICS[name].counted(values, counts)) for name in _QUARTILES)
    low, high = q1 - 1.5 * (q3 - q1), q3 + 1.5 * (q3 - q1)
    inside = values[(values >= low) & (values <= high)]
    ends = (min(q1, inside.min()), max(q3, inside.max())) if len(inside) else (q1, q3)
    outside = values[(values < low) | (values > high)]
    return {
        "q1": q1, "med": median, "q3": q3, "whislo": ends[0], "whishi": ends[1], "fliers": outside,
    }  # fmt: skip


def regard_toxicity_scatter(groups: Sequence[GroupFigures]) -> Any:
    """Overall regard against mean toxicity, both with 95% intervals (figures 2 and 8)."""
    shown = extremes([g for g in groups if len(g.toxicity.values)], lambda g: g.regard.value)
    with figure_style():
        figure, axes = subplots(figsize=(COLUMN, 2.9))
        axes.grid(True)
        axes.set_axisbelow(True)
        axes.axvline(0, color=INK, linewidth=0.6)
        draw_crosses(axes, [(g.regard, g.mean_toxicity) for g in shown])
        points = [(g.name, g.regard.value, g.mean_toxicity.value) for g in shown]
        for name, x, y in points:
            linked(axes.scatter([x], [y], s=18, color=INK, zorder=3), name)
        axes.set_xlabel("overall regard (positive − negative)")
        axes.set_ylabel("mean toxicity")
        axes.margins(x=0.22, y=0.14)
        axes.set_ylim(bottom=0)
        place_labels(figure, axes, points)
        return figure


def draw_crosses(axes: Any, points: Sequence[tuple[Estimate, Estimate]]) -> None:
    """The intervals of points in a plane, along both axes."""
    for x, y in points:
        for along, e in (("x", x), ("y", y)):
            if e.has_interval:
                ends, other = [e.low, e.high], [y.value if along == "x" else x.value] * 2
                line = (ends, other) if along == "x" else (other, ends)
                axes.plot(*line, color=NEUTRAL, linewidth=0.9, alpha=0.55, zorder=1)


def draw_rows(count: float) -> tuple[Any, Any]:
    """A figure one column wide, and as high as `count` rows need."""
    figure, axes = subplots(figsize=(COLUMN, 0.62 + _ROW * max(count, 2)))
    axes.grid(True, axis="x")
    axes.set_axisbelow(True)
    axes.spines["left"].set_visible(False)
    return figure, axes


def draw_intervals(axes: Any, estimates: Sequence[Estimate]) -> None:
    """The interval of each row, from the bottom, as a line across it."""
    for place, e in enumerate(estimates):
        if e.has_interval:
            axes.plot([e.low, e.high], [place, place], color=INK, linewidth=0.9)


def label_rows(axes: Any, names: Sequence[str], bars: Sequence[Any] = ()) -> None:
    """The names of groups beside their rows, from the bottom; they and the bars are links."""
    axes.set_yticks(range(len(names)), [short(name) for name in names])
    axes.set_ylim(-0.6, max(len(names), 2) - 0.4)
    for name, label in zip(names, axes.get_yticklabels(), strict=True):
        linked(label, name)
    for name, bar in zip(names, bars, strict=False):
        linked(bar, name)


def place_labels(figure: Any, axes: Any, named: Sequence[tuple[str, float, float]]) -> None:
    """A label beside each point, where it covers neither another label nor a point; a label that
    finds no room near its point stands further away, at the end of a thin line."""
    figure.get_layout_engine().execute(figure)
    renderer = figure.canvas.get_renderer()
    taken = []
    points = axes.transData.transform([(x, y) for _, x, y in named])
    for x, y in points:
        taken.append((x - 4, y - 4, x + 4, y + 4))
    frame = axes.get_window_extent(renderer)
    for (name, *at), (x, y) in sorted(
        zip(named, points, strict=True), key=lambda pair: -pair[1][1]
    ):
        label = axes.annotate(short(name), at, (0, 0), textcoords="offset points", fontsize=7)
        linked(label, name)
        size = label.get_window_extent(renderer)
        width, height = size.width, size.height
        for distance in (6, 16, 28, 42, 58, 76):
            spots = [
                (x + dx * distance - (0 if dx > 0 else width if dx < 0 else width / 2),
                 y + dy * distance - height / 2)
                for dx, dy in ((1, 0), (-1, 0), (0, 1.3), (0, -1.3), (0.8, 0.9), (-0.8, 0.9),
                               (0.8, -0.9), (-0.8, -0.9))
            ]  # fmt: skip
            free = [
                (left, low)
                for left, low in spots
                if frame.x0 <= left and left + width <= frame.x1
                and frame.y0 <= low and low + height <= frame.y1
                and not any(
                    left < b[2] and b[0] < left + width and low < b[3] and b[1] < low + height
                    for b in taken
                )
            ]  # fmt: skip
            if free:
                break
        left, low = free[0] if free else (x + 6, y - height / 2)
        label.set_position((left - x, low - y))
        taken.append((left, low, left + width, low + height))
        if free and distance > 16:
            end = axes.transData.inverted().transform(
                (min(max(x, left), left + width), min(max(y, low), low + height))
            )
            axes.plot([at[0], end[0]], [at[1], end[1]], color=LINE, linewidth=0.6, zorder=2)


def short(name: str, limit: int = 26) -> str:
    """A group's name as an axis shows it: on one line, at most `limit` characters."""
    name = "".join(c if c.isprintable() else " " for c in name)
    return name if len(name) <= limit else name[: limit - 1] + "…"
