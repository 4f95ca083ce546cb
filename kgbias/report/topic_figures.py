"""Figures of topics, of warmth and competence, and of augmentation arms."""

from collections.abc import Mapping, Sequence
from typing import Any

from kgbias.graph.types import Topic
from kgbias.report.figures import (
    draw_crosses,
    draw_intervals,
    draw_rows,
    extremes,
    label_rows,
    place_labels,
    short,
)
from kgbias.report.style import COLUMN, INK, NEGATIVE, POSITIVE, TOXIC, figure_style, subplots
from kgbias.stats.inference import Estimate, Sample

Named = Sequence[tuple[str, Estimate]]


def topic_bars(topic: Topic, shares: Named) -> Any:
    """The share of one topic in each group's statements, with 95% intervals (figure 3)."""
    return share_bars(shares, f"share of topic {topic.number}\n{short(called(topic), 44)}")


def called(topic: Topic) -> str:
    """A topic by its given name, else by its five best words."""
    return topic.given or ", ".join(topic.words[:5])


def share_bars(shares: Named, label: str, *, chance: float | None = None) -> Any:
    """A share of each group, in percent, with 95% intervals; dashed, what it is by chance."""
    with figure_style():
        figure, axes = _bars(extremes(shares, _value), POSITIVE)
        axes.set_xlim(0, None)
        if chance is not None:
            axes.axvline(chance, color=INK, linewidth=0.6, linestyle="--")
        axes.xaxis.set_major_formatter(lambda x, _: f"{100 * x:g}%")
        figure.supxlabel(label, fontsize=8)
        return figure


def mean_bars(means: Named, label: str) -> Any:
    """A mean of each group with its 95% interval, on the scale of the values."""
    with figure_style():
        figure, axes = _bars(extremes(means, _value), POSITIVE)
        axes.axvline(0, color=INK, linewidth=0.6)
        axes.set_xlabel(label)
        return figure


def entropy_bars(entropies: Named, *, published: bool = False) -> Any:
    """Relative entropy of each group's topics against the mean group, in bits, with 95% intervals;
    or, as it was `published`, Eq. 1 in nats, at most 0 (figure 9)."""
    with figure_style():
        figure, axes = _bars(extremes(entropies, _value), TOXIC)
        axes.set_xlim(*((None, 0) if published else (0, None)))
        axes.set_xlabel("H(p), Eq. 1 (nats)" if published else "relative entropy of topics (bits)")
        return figure


def _value(named: tuple[str, Estimate]) -> float:
    return named[1].value


def _bars(named: Named, colour: str) -> tuple[Any, Any]:
    figure, axes = draw_rows(len(named))
    places = range(len(named))
    bars = axes.barh(places, [e.value for _, e in named], color=colour, height=0.62)
    draw_intervals(axes, [e for _, e in named])
    label_rows(axes, [name for name, _ in named], bars)
    return figure, axes


def axes_scatter(groups: Sequence[tuple[str, Estimate, Estimate]]) -> Any:
    """Mean warmth and competence of each group's statements, with 95% intervals as crosses."""
    groups = extremes(groups, lambda g: g[1].value)
    with figure_style():
        figure, axes = subplots(figsize=(COLUMN, 2.9))
        axes.grid(True)
        axes.set_axisbelow(True)
        draw_crosses(axes, [(w, c) for _, w, c in groups])
        axes.scatter(
            [w.value for _, w, _ in groups],
            [c.value for _, _, c in groups],
            s=18,
            color=POSITIVE,
            zorder=3,
        )
        axes.set_xlabel("warmth")
        axes.set_ylabel("competence")
        axes.margins(x=0.22, y=0.14)
        axes.locator_params(nbins=5)
        place_labels(figure, axes, [(n, w.value, c.value) for n, w, c in groups])
        return figure


def arm_boxes(arms: Mapping[str, Sample]) -> Any:
    """The distribution of toxicity under each augmentation arm: violins with median and quartiles
    (figure 5)."""
    with figure_style():
        figure, axes = draw_rows(1.6 * len(arms))
        names = list(arms)[::-1]
        for place, name in enumerate(names):
            values = arms[name].outline()
            colour = POSITIVE if name == "none" else NEGATIVE
            if len(values) > 1 and values.min() < values.max():
                drawn = axes.violinplot(
                    [values], [place], orientation="horizontal", widths=0.8, showextrema=False
                )
                for body in drawn["bodies"]:
                    body.set(facecolor=colour, edgecolor=colour, alpha=0.35)
            axes.boxplot(
                [values],
                positions=[place],
                orientation="horizontal",
                widths=0.18,
                showfliers=False,
                patch_artist=True,
                boxprops={"facecolor": colour, "edgecolor": INK, "linewidth": 0.6},
                medianprops={"color": INK, "linewidth": 1.2},
                whiskerprops={"color": INK, "linewidth": 0.6},
                capprops={"linewidth": 0},
            )
        axes.set_yticks(range(len(names)), [f"{short(n)} (n = {arms[n].n})" for n in names])
        axes.set_ylim(-0.7, len(names) - 0.3)
        axes.set_xlim(-0.02, 1.02)
        axes.set_xlabel("toxicity (probability)")
        return figure
