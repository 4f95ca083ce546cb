"""The figures of Salinas et al. 2023 for any run. Each function returns a matplotlib figure one
column wide, to save as SVG, PDF or PNG, or to put into a page with `style.inline_svg`."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

from kgbias.graph.types import Topic
from kgbias.io.drawing import (
    COLUMN_INCHES,
    INK_COLOR,
    LINE_COLOR,
    NEGATIVE_COLOR,
    NEUTRAL_COLOR,
    POSITIVE_COLOR,
    TOXIC_COLOR,
    figure_style,
    make_subplots,
)
from kgbias.report.style import link_to_group
from kgbias.stats.inference import STATISTICS, Estimate, Sample

T = TypeVar("T")
MAX_GROUPS_SHOWN = 40  # groups in one figure; of more, the lowest and the highest
_ROW_INCHES = 0.2  # inches a group
_MAX_CELL_NAME_CHARS = 28  # characters of a name in a heat map
_QUARTILES = ("q1", "median", "q3")


@dataclass(frozen=True, slots=True)
class GroupFigures:
    """One group's data for the figures: overall regard, the toxicity of each statement (as often as
    it was said), and its mean."""

    name: str
    regard: Estimate
    toxicity: Sample
    mean: Estimate | None = None

    @property
    def mean_toxicity(self) -> Estimate:
        """The mean of `toxicity`, in [0, 1], with its interval; NaN without any."""
        return self.mean or Estimate.missing(self.toxicity.n, self.toxicity.mean)


def pick_extremes(
    groups: Sequence[T], value: Callable[[T], float], limit: int = MAX_GROUPS_SHOWN
) -> list[T]:
    """The groups that a figure has room for: all, or the lowest and highest by `value`."""
    ordered = sorted(groups, key=value)
    if len(ordered) <= limit:
        return ordered
    return ordered[: limit // 2] + ordered[-(limit - limit // 2) :]


def draw_overall_regard(groups: Sequence[GroupFigures]) -> Any:
    """Overall regard, N_positive - N_negative, with 95% intervals (the paper's figures 1 and 6)."""
    shown_groups = pick_extremes(groups, lambda g: g.regard.value)
    with figure_style():
        figure, axes = make_row_figure(len(shown_groups))
        values = [g.regard.value for g in shown_groups]
        bars = axes.barh(range(len(shown_groups)), values, color=NEUTRAL_COLOR, height=0.62)
        draw_intervals(axes, [g.regard for g in shown_groups])
        axes.axvline(0, color=INK_COLOR, linewidth=0.6)
        axes.set_xlabel("overall regard (positive − negative)")
        label_and_link_rows(axes, [g.name for g in shown_groups], bars)
        return figure


def draw_toxicity_boxes(groups: Sequence[GroupFigures]) -> Any:
    """Toxicity per group: median, quartiles, whiskers to 1.5 times their range (figure 7)."""
    shown_groups = pick_extremes(
        [g for g in groups if len(g.toxicity.values)], lambda g: g.mean_toxicity.value
    )
    with figure_style():
        figure, axes = make_row_figure(len(shown_groups))
        if shown_groups:
            boxes = axes.bxp(
                [_box_statistics(g.toxicity) for g in shown_groups],
                positions=range(len(shown_groups)),
                orientation="horizontal",
                widths=0.55,
                patch_artist=True,
                flierprops={"marker": ".", "markersize": 2, "markeredgecolor": NEUTRAL_COLOR},
                medianprops={"color": INK_COLOR, "linewidth": 1.2},
                whiskerprops={"color": INK_COLOR, "linewidth": 0.6},
                capprops={"color": INK_COLOR, "linewidth": 0.6},
            )
            for box in boxes["boxes"]:
                box.set(facecolor=TOXIC_COLOR + "55", edgecolor=TOXIC_COLOR, linewidth=0.7)
        axes.set_xlim(-0.02, 1.02)
        axes.set_xlabel("toxicity (probability)")
        label_and_link_rows(axes, [g.name for g in shown_groups])
        return figure


def _box_statistics(sample: Sample) -> dict[str, Any]:
    """A box plot of a sample (Tukey 1977): quartiles, whiskers to the last values within 1.5 times
    their range, and each distinct value beyond."""
    values, counts = sample.distinct_values()
    first_quartile, median, third_quartile = (
        float(STATISTICS[name].from_counts(values, counts)) for name in _QUARTILES
    )
    low, high = (
        first_quartile - 1.5 * (third_quartile - first_quartile),
        third_quartile + 1.5 * (third_quartile - first_quartile),
    )
    inside = values[(values >= low) & (values <= high)]
    ends = (
        (min(first_quartile, inside.min()), max(third_quartile, inside.max()))
        if len(inside)
        else (first_quartile, third_quartile)
    )
    outside = values[(values < low) | (values > high)]
    return {
        "q1": first_quartile,
        "med": median,
        "q3": third_quartile,
        "whislo": ends[0],
        "whishi": ends[1],
        "fliers": outside,
    }


def draw_regard_toxicity(groups: Sequence[GroupFigures]) -> Any:
    """Overall regard against mean toxicity, both with 95% intervals (figures 2 and 8)."""
    shown_groups = pick_extremes(
        [g for g in groups if len(g.toxicity.values)], lambda g: g.regard.value
    )
    with figure_style():
        figure, axes = make_subplots(figsize=(COLUMN_INCHES, 2.9))
        axes.grid(True)
        axes.set_axisbelow(True)
        axes.axvline(0, color=INK_COLOR, linewidth=0.6)
        draw_crosses(axes, [(g.regard, g.mean_toxicity) for g in shown_groups])
        points = [(g.name, g.regard.value, g.mean_toxicity.value) for g in shown_groups]
        for name, x, y in points:
            link_to_group(axes.scatter([x], [y], s=18, color=INK_COLOR, zorder=3), name)
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
                axes.plot(*line, color=NEUTRAL_COLOR, linewidth=0.9, alpha=0.55, zorder=1)


class RowFigure(NamedTuple):
    """A figure one column wide with a row for each group, and its axes."""

    figure: Any
    axes: Any


def make_row_figure(count: float) -> RowFigure:
    """An empty figure one column wide and tall enough for `count` rows."""
    figure, axes = make_subplots(figsize=(COLUMN_INCHES, 0.62 + _ROW_INCHES * max(count, 2)))
    axes.grid(True, axis="x")
    axes.set_axisbelow(True)
    axes.spines["left"].set_visible(False)
    return RowFigure(figure, axes)


def draw_intervals(axes: Any, estimates: Sequence[Estimate]) -> None:
    """Draw the interval of each row, from the bottom, as a line across it."""
    for place, e in enumerate(estimates):
        if e.has_interval:
            axes.plot([e.low, e.high], [place, place], color=INK_COLOR, linewidth=0.9)


def label_and_link_rows(axes: Any, names: Sequence[str], bars: Sequence[Any] = ()) -> None:
    """Label rows with the names of groups, from the bottom; names and bars become links to their
    statements."""
    axes.set_yticks(range(len(names)), [shorten_name(name) for name in names])
    axes.set_ylim(-0.6, max(len(names), 2) - 0.4)
    for name, label in zip(names, axes.get_yticklabels(), strict=True):
        link_to_group(label, name)
    for name, bar in zip(names, bars, strict=False):
        link_to_group(bar, name)


# Where a label may stand beside its point, the best first: how far to the right and up, and how
# much of its width lies to the left of that.
_LABEL_SPOTS = (
    (1, 0, 0.0),
    (-1, 0, 1.0),
    (0, 1.3, 0.5),
    (0, -1.3, 0.5),
    (0.8, 0.9, 0.0),
    (-0.8, 0.9, 1.0),
    (0.8, -0.9, 0.0),
    (-0.8, -0.9, 1.0),
)


class CanvasPoint(NamedTuple):
    """A named point: where it is in the data, and on the canvas."""

    name: str
    data_point: list[float]
    pixel_x: float
    pixel_y: float


def place_labels(figure: Any, axes: Any, named_points: Sequence[tuple[str, float, float]]) -> None:
    """Place a label beside each point, covering neither another label nor a point; a label with no
    room near its point goes further away, at the end of a thin line."""
    # Laid out now: only then is it known where points and labels come to lie.
    figure.get_layout_engine().execute(figure)
    renderer = figure.canvas.get_renderer()
    occupied = []
    points = axes.transData.transform([(x, y) for _, x, y in named_points])
    for x, y in points:
        occupied.append((x - 4, y - 4, x + 4, y + 4))
    frame = axes.get_window_extent(renderer)
    placed_points = [
        CanvasPoint(name, data_point, float(x), float(y))
        for (name, *data_point), (x, y) in zip(named_points, points, strict=True)
    ]
    for name, point, x, y in sorted(placed_points, key=lambda point: -point.pixel_y):
        label = axes.annotate(
            shorten_name(name), point, (0, 0), textcoords="offset points", fontsize=7
        )
        link_to_group(label, name)
        size = label.get_window_extent(renderer)
        width, height = size.width, size.height
        for distance in (6, 16, 28, 42, 58, 76):
            spots = [
                (x + dx * distance - share_left * width, y + dy * distance - height / 2)
                for dx, dy, share_left in _LABEL_SPOTS
            ]
            free = [
                (left, low)
                for left, low in spots
                if frame.x0 <= left
                and left + width <= frame.x1
                and frame.y0 <= low
                and low + height <= frame.y1
                and not any(
                    left < b[2] and b[0] < left + width and low < b[3] and b[1] < low + height
                    for b in occupied
                )
            ]
            if free:
                break
        left, low = free[0] if free else (x + 6, y - height / 2)
        label.set_position((left - x, low - y))
        occupied.append((left, low, left + width, low + height))
        if free and distance > 16:
            end = axes.transData.inverted().transform(
                (min(max(x, left), left + width), min(max(y, low), low + height))
            )
            axes.plot(
                [point[0], end[0]], [point[1], end[1]], color=LINE_COLOR, linewidth=0.6, zorder=2
            )


def shorten_name(name: str, limit: int = 26) -> str:
    """A group's name for an axis: on one line, at most `limit` characters."""
    name = "".join(c if c.isprintable() else " " for c in name)
    return name if len(name) <= limit else name[: limit - 1] + "…"


def wrap_statement(statement: str, width: int = 38) -> str:
    """A statement for an axis: on one line or two of about `width` characters, the rest cut."""
    text = shorten_name(statement, 2 * width)
    if len(text) <= width:
        return text
    middle = text.rfind(" ", 0, width + 1)
    return f"{text[:middle]}\n{shorten_name(text[middle + 1 :], width)}" if middle > 0 else text


NamedEstimates = Sequence[tuple[str, Estimate]]


def draw_topic_bars(topic: Topic, shares: NamedEstimates) -> Any:
    """The share of one topic in each group's statements, with 95% intervals (figure 3)."""
    return draw_share_bars(
        shares, f"share of topic {topic.number}\n{shorten_name(topic_title(topic), 44)}"
    )


def topic_title(topic: Topic) -> str:
    """A topic's given name, or else its five best words."""
    return topic.given or ", ".join(topic.words[:5])


def draw_share_bars(shares: NamedEstimates, label: str, *, chance: float | None = None) -> Any:
    """A share for each group, in percent, with 95% intervals; dashed, the share by chance."""
    with figure_style():
        figure, axes = _draw_bars(pick_extremes(shares, _estimate_value), POSITIVE_COLOR)
        axes.set_xlim(0, None)
        if chance is not None:
            axes.axvline(chance, color=INK_COLOR, linewidth=0.6, linestyle="--")
        axes.xaxis.set_major_formatter(lambda x, _: f"{100 * x:g}%")
        figure.supxlabel(label, fontsize=8)
        return figure


def draw_mean_bars(means: NamedEstimates, label: str) -> Any:
    """A mean for each group with its 95% interval, on the scale of the values."""
    with figure_style():
        figure, axes = _draw_bars(pick_extremes(means, _estimate_value), POSITIVE_COLOR)
        axes.axvline(0, color=INK_COLOR, linewidth=0.6)
        figure.supxlabel(label, fontsize=8)
        return figure


def draw_differences(rows: Sequence[tuple[str, Estimate, bool]], label: str) -> Any:
    """Differences of groups from the others with their 95% intervals, the lowest at the bottom, and
    whether each was shown: grey where not, else coloured by sign."""
    sorted_rows = sorted(rows, key=lambda row: row[1].value)
    with figure_style():
        figure, axes = make_row_figure(len(sorted_rows))
        axes.axvline(0, color=INK_COLOR, linewidth=0.6)
        for place, (_, estimate, is_shown) in enumerate(sorted_rows):
            colour = NEUTRAL_COLOR
            if is_shown:
                colour = POSITIVE_COLOR if estimate.value > 0 else NEGATIVE_COLOR
            if estimate.has_interval:
                axes.plot([estimate.low, estimate.high], [place] * 2, color=colour, linewidth=1.2)
            axes.plot(estimate.value, place, "o", color=colour, markersize=3.5)
        label_and_link_rows(axes, [name for name, _, _ in sorted_rows])
        figure.supxlabel(label, fontsize=8)
        return figure


def draw_entropy_bars(entropies: NamedEstimates, *, as_published: bool = False) -> Any:
    """Relative entropy of each group's topics against the mean group, in bits, with 95% intervals;
    or, `as_published`, Eq. 1 in nats, at most 0 (figure 9)."""
    with figure_style():
        figure, axes = _draw_bars(pick_extremes(entropies, _estimate_value), TOXIC_COLOR)
        axes.set_xlim(*((None, 0) if as_published else (0, None)))
        axes.set_xlabel(
            "H(p), Eq. 1 (nats)" if as_published else "relative entropy of topics (bits)"
        )
        return figure


def _estimate_value(named: tuple[str, Estimate]) -> float:
    return named[1].value


def _draw_bars(named: NamedEstimates, colour: str) -> tuple[Any, Any]:
    figure, axes = make_row_figure(len(named))
    places = range(len(named))
    bars = axes.barh(places, [e.value for _, e in named], color=colour, height=0.62)
    draw_intervals(axes, [e for _, e in named])
    label_and_link_rows(axes, [name for name, _ in named], bars)
    return figure, axes


def draw_warmth_competence(groups: Sequence[tuple[str, Estimate, Estimate]]) -> Any:
    """Mean warmth and competence of each group's statements, with 95% intervals as crosses."""
    groups = pick_extremes(groups, lambda g: g[1].value)
    with figure_style():
        figure, axes = make_subplots(figsize=(COLUMN_INCHES, 2.9))
        axes.grid(True)
        axes.set_axisbelow(True)
        draw_crosses(axes, [(w, c) for _, w, c in groups])
        axes.scatter(
            [w.value for _, w, _ in groups],
            [c.value for _, _, c in groups],
            s=18,
            color=POSITIVE_COLOR,
            zorder=3,
        )
        axes.set_xlabel("warmth")
        axes.set_ylabel("competence")
        axes.margins(x=0.22, y=0.14)
        axes.locator_params(nbins=5)
        place_labels(figure, axes, [(n, w.value, c.value) for n, w, c in groups])
        return figure


def draw_arm_toxicity(arms: Mapping[str, Sample]) -> Any:
    """The distribution of toxicity under each augmentation arm: violins with median and quartiles
    (figure 5)."""
    with figure_style():
        figure, axes = make_row_figure(1.6 * len(arms))
        names = list(arms)[::-1]
        for place, name in enumerate(names):
            values = arms[name].outline()
            colour = POSITIVE_COLOR if name == "none" else NEGATIVE_COLOR
            # A violin is a kernel density, which values without spread do not have.
            if len(values) > 1 and values.min() < values.max():
                violins = axes.violinplot(
                    [values], [place], orientation="horizontal", widths=0.8, showextrema=False
                )
                for body in violins["bodies"]:
                    body.set(facecolor=colour, edgecolor=colour, alpha=0.35)
            axes.boxplot(
                [values],
                positions=[place],
                orientation="horizontal",
                widths=0.18,
                showfliers=False,
                patch_artist=True,
                boxprops={"facecolor": colour, "edgecolor": INK_COLOR, "linewidth": 0.6},
                medianprops={"color": INK_COLOR, "linewidth": 1.2},
                whiskerprops={"color": INK_COLOR, "linewidth": 0.6},
                capprops={"linewidth": 0},
            )
        axes.set_yticks(range(len(names)), [f"{shorten_name(n)} (n = {arms[n].n})" for n in names])
        axes.set_ylim(-0.7, len(names) - 0.3)
        axes.set_xlim(-0.02, 1.02)
        axes.set_xlabel("toxicity (probability)")
        return figure


def draw_heat_map(
    rows: Mapping[str, Sequence[float]],
    columns: Sequence[str],
    *,
    limit: float | None,
    form: str,
    label: str,
) -> Any:
    """A map of figures as colours with their numbers: from -limit (orange) to limit (blue), or from
    0 to the largest. NaN: none."""
    with figure_style():
        from matplotlib.colors import LinearSegmentedColormap

        is_signed = limit is not None
        top = limit or max((v for row in rows.values() for v in row), default=1.0) or 1.0
        colours = (
            [NEGATIVE_COLOR, "#ffffff", POSITIVE_COLOR]
            if is_signed
            else ["#ffffff", POSITIVE_COLOR]
        )
        figure, axes = make_subplots(
            figsize=(
                COLUMN_INCHES,
                0.9 + 1.1 * _ROW_INCHES * len(rows) + 0.045 * max(map(len, columns)),
            )
        )
        axes.imshow(
            list(rows.values()),
            aspect="auto",
            vmin=-top if is_signed else 0,
            vmax=top,
            cmap=LinearSegmentedColormap.from_list("kgbias", colours),
        )
        for y, values in enumerate(rows.values()):
            for x, value in enumerate(values):
                dark = abs(value) > 0.6 * top
                axes.text(
                    x,
                    y,
                    "" if math.isnan(value) else f"{value:{form}}",
                    ha="center",
                    va="center",
                    fontsize=7 if len(columns) < 5 else 5.5,
                    color="#fffffe" if dark else "#1d2734",
                )
        axes.set_yticks(
            range(len(rows)), [shorten_name(name, _MAX_CELL_NAME_CHARS) for name in rows]
        )
        slanted = len(columns) > 2 or max(map(len, columns)) > 18
        axes.set_xticks(
            range(len(columns)),
            [shorten_name(name, _MAX_CELL_NAME_CHARS) for name in columns],
            rotation=35 if slanted else 0,
            ha="right" if slanted else "center",
        )
        axes.set_xlabel(label)
        axes.tick_params(length=0)
        axes.spines[:].set_visible(False)
        return figure
