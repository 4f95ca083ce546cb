"""The figures of Social Bias Probing (Marchiori Manerba et al. 2023), for any models and probes."""

from collections.abc import Mapping, Sequence
from typing import Any

from kgbias.report.figures import draw_intervals, draw_rows, short
from kgbias.report.style import COLUMN, INK, LINE, NEGATIVE, POSITIVE, TOXIC, figure_style, subplots
from kgbias.statistics import Estimate

_COLOURS = (POSITIVE, NEGATIVE, TOXIC, "#3d8a6f", "#b8912f", "#8c8c8c")
_ROW = 0.2  # inches a row
_NAME = 28  # characters of a name

Scores = Mapping[str, Mapping[str, Estimate]]


def sofa_bars(scores: Mapping[str, Estimate]) -> Any:
    """The score of each model with its 95% interval, the highest on top (table 1)."""
    with figure_style():
        figure, axes = draw_rows(len(scores))
        estimates = list(scores.values())[::-1]
        axes.barh(range(len(estimates)), [e.value for e in estimates], color=POSITIVE, height=0.62)
        draw_intervals(axes, estimates)
        _models(axes, list(scores)[::-1])
        axes.set_xlim(0, None)
        axes.set_xlabel("SoFa score (variance of PPL*)")
        return figure


def stacked_bars(scores: Scores) -> Any:
    """The scores of each model by category, stacked (figure 9)."""
    with figure_style():
        figure, axes = draw_rows(len(scores) + 1)
        names = list(scores)[::-1]
        lefts = [0.0] * len(names)
        for number, category in enumerate(scores[names[0]]):
            values = [scores[name][category].value for name in names]
            axes.barh(
                range(len(names)), values, left=lefts, height=0.62, label=short(category, _NAME),
                color=_COLOURS[number % len(_COLOURS)], edgecolor="white", linewidth=0.4,
            )  # fmt: skip
            lefts = [left + value for left, value in zip(lefts, values, strict=True)]
        _models(axes, names)
        axes.set_xlabel("SoFa score, categories added up")
        figure.legend(loc="outside upper center", ncols=3, frameon=False, fontsize=7)
        return figure


def violins(quantiles: Mapping[str, Mapping[str, Sequence[float]]]) -> Any:
    """The distribution of PPL*, by category and model: median and middle half as lines (figure
    7). `quantiles` are 101, at each percent."""
    with figure_style():
        rows = max(map(len, quantiles.values()))
        height = len(quantiles) * (0.3 + 1.7 * _ROW * rows) + 0.4
        figure, panels = subplots(
            len(quantiles), 1, figsize=(COLUMN, height), sharex=True, squeeze=False
        )  # fmt: skip
        for axes, (category, by_model) in zip(panels[:, 0], quantiles.items(), strict=True):
            names = list(by_model)[::-1]
            for place, name in enumerate(names):
                _violin(axes, by_model[name], place)
            _models(axes, names)
            axes.set_title(short(category, _NAME), fontsize=8, loc="left")
        panels[-1, 0].set_xlabel("PPL* (log10 of normalised perplexity)")
        return figure


def _violin(axes: Any, values: Sequence[float], place: int) -> None:
    if min(values) < max(values):
        drawn = axes.violinplot(
            [values], [place], orientation="horizontal", widths=0.85, showextrema=False
        )
        for body in drawn["bodies"]:
            body.set(facecolor=POSITIVE, edgecolor=POSITIVE, alpha=0.4)
    quarter = (len(values) - 1) // 4
    axes.plot([values[quarter], values[-1 - quarter]], [place, place], color=INK, linewidth=2)
    axes.plot(values[(len(values) - 1) // 2], place, "o", color="white", markersize=2.5)


def length_row(correlations: Mapping[str, Estimate]) -> Any:
    """The correlation of PPL* and the length of a statement, of each model (figure 8)."""
    rows = {name: [e.value] for name, e in correlations.items()}
    return heat_map(rows, ["words"], limit=1.0, form="+.2f", label="correlation with PPL*")


def first_map(shares: Mapping[str, Sequence[float]], models: Sequence[str]) -> Any:
    """How often each group comes first, under each model (figure 2)."""
    return heat_map(shares, models, limit=None, form=".0%", label="share of statements")


def heat_map(
    rows: Mapping[str, Sequence[float]],
    columns: Sequence[str],
    *,
    limit: float | None,
    form: str,
    label: str,
) -> Any:
    """Rows of figures as colours with their numbers: from -limit (orange) to limit (blue), or from
    0 to the largest."""
    with figure_style():
        from matplotlib.colors import LinearSegmentedColormap

        both = limit is not None
        top = limit or max((v for row in rows.values() for v in row), default=1.0) or 1.0
        colours = [NEGATIVE, "#ffffff", POSITIVE] if both else ["#ffffff", POSITIVE]
        figure, axes = subplots(
            figsize=(COLUMN, 0.9 + 1.1 * _ROW * len(rows) + 0.045 * max(map(len, columns)))
        )
        axes.imshow(
            list(rows.values()), aspect="auto", vmin=-top if both else 0, vmax=top,
            cmap=LinearSegmentedColormap.from_list("kgbias", colours),
        )  # fmt: skip
        for y, values in enumerate(rows.values()):
            for x, value in enumerate(values):
                dark = abs(value) > 0.6 * top
                axes.text(
                    x, y, f"{value:{form}}", ha="center", va="center", fontsize=7,
                    color="#fffffe" if dark else "#1d2734",
                )  # fmt: skip
        axes.set_yticks(range(len(rows)), [short(name, _NAME) for name in rows])
        slanted = len(columns) > 2 or max(map(len, columns)) > 18
        axes.set_xticks(
            range(len(columns)), [short(name, _NAME) for name in columns],
            rotation=35 if slanted else 0, ha="right" if slanted else "center",
        )  # fmt: skip
        axes.set_xlabel(label)
        axes.tick_params(length=0)
        axes.spines[:].set_visible(False)
        return figure


def shared_bars(rows: Sequence[tuple[str, str, float]]) -> Any:
    """The statements of the lowest DDS under each model, as (model, statement, DDS) (figure 3)."""
    models = list(dict.fromkeys(model for model, _, _ in rows))
    with figure_style():
        figure, axes = draw_rows(1.1 * len(rows) + 0.6 * len(models))
        places, gap = [], 0.0
        for number, (model, _, _) in enumerate(rows):
            gap += 0.8 if number and rows[number - 1][0] != model else 0.0
            places.append(-number - gap)
        colours = [_COLOURS[models.index(model) % len(_COLOURS)] for model, _, _ in rows]
        axes.barh(places, [dds for _, _, dds in rows], color=colours, height=0.62)
        axes.set_yticks(places, [short(statement, 34) for _, statement, _ in rows])
        for number, model in enumerate(models):
            axes.barh([0], [0], color=_COLOURS[number % len(_COLOURS)], label=short(model, _NAME))
        axes.set_xlim(0, None)
        # Centred below the figure: long statements leave its axes less room than this takes.
        figure.supxlabel("DDS (highest minus lowest PPL*)", fontsize=axes.xaxis.label.get_size())
        figure.legend(loc="outside upper center", ncols=2, frameon=False, fontsize=7)
        return figure


def count_bars(counts: Sequence[tuple[str, int]], label: str) -> Any:
    """A bar with its number for each name, the first on top (figure 5)."""
    with figure_style():
        figure, axes = draw_rows(len(counts))
        ordered = list(counts)[::-1]
        bars = axes.barh(range(len(ordered)), [n for _, n in ordered], color=POSITIVE, height=0.62)
        axes.bar_label(bars, fontsize=7, padding=2)
        axes.set_yticks(range(len(ordered)), [short(name, 40) for name, _ in ordered])
        axes.margins(x=0.12)
        axes.set_xlabel(label)
        return figure


def hate_bars(counts: Mapping[str, tuple[int, int]]) -> Any:
    """Statements that are hate and that are not, by category (figure 6)."""
    with figure_style():
        figure, axes = draw_rows(2 * len(counts) + 1)
        names = list(counts)[::-1]
        for side, (label, colour) in enumerate((("hate", NEGATIVE), ("no hate", POSITIVE))):
            places = [n + (0.2, -0.2)[side] for n in range(len(names))]
            bars = axes.barh(
                places, [counts[name][side] for name in names], height=0.38, color=colour,
                label=label,
            )  # fmt: skip
            axes.bar_label(bars, fontsize=7, padding=2)
        axes.set_yticks(range(len(names)), [short(name, _NAME) for name in names])
        axes.margins(x=0.12)
        axes.set_xlabel("statements")
        figure.legend(loc="outside upper center", ncols=2, frameon=False, fontsize=7)
        return figure


def _models(axes: Any, names: Sequence[str]) -> None:
    axes.set_yticks(range(len(names)), [short(name, _NAME) for name in names])
    axes.set_ylim(-0.6, max(len(names), 2) - 0.4)
    axes.grid(True, axis="x", color=LINE)
    axes.set_axisbelow(True)
