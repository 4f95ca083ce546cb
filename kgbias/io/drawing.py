"""One look for every figure: as wide as a paper's column, colour-blind safe, text kept as text."""

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, Protocol

from kgbias.errors import MissingExtra, UsageError
from kgbias.io.text import type_with_article

COLUMN_INCHES = 3.3  # inches: one column of a two-column paper
INK_COLOR, SOFT_COLOR, LINE_COLOR, PAPER_COLOR = "#1d2733", "#4f5b67", "#c9d1d9", "#ffffff"
# Blue and orange stay apart for every kind of colour vision, and in grey.
POSITIVE_COLOR, NEUTRAL_COLOR, NEGATIVE_COLOR = "#2f6fb3", "#9aa5b1", "#cf6a1f"
TOXIC_COLOR = "#7a4a9c"


@contextmanager
def figure_style() -> Iterator[None]:
    """matplotlib under kgbias's settings. Text is never parsed as mathematics: labels are model
    text."""
    try:
        import matplotlib as mpl
    except ModuleNotFoundError as error:
        raise MissingExtra("matplotlib", extra="figures") from error
    settings: Any = {
        "font.family": "sans-serif",
        "font.size": 8,
        "figure.dpi": 72,  # so that a pixel of the layout is a point
        "axes.edgecolor": INK_COLOR,
        "axes.labelcolor": INK_COLOR,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.linewidth": 0.6,
        "grid.color": LINE_COLOR,
        "grid.linewidth": 0.5,
        "text.color": INK_COLOR,
        "text.parse_math": False,
        "xtick.color": INK_COLOR,
        "ytick.color": INK_COLOR,
        "xtick.major.width": 0.6,
        "ytick.major.size": 0,
        "svg.fonttype": "none",  # text stays text, which can be searched and copied
        "svg.hashsalt": "kgbias",  # the same figure has the same ids, and so the same bytes
        "pdf.fonttype": 42,  # TrueType: conferences refuse Type 3 fonts, matplotlib's default
    }
    with mpl.rc_context(), warnings.catch_warnings():
        mpl.rcdefaults()  # a matplotlibrc in the current folder could have LaTeX read the labels
        mpl.rcParams.update(settings)
        # Where matplotlib's font has no glyph, the reader's font draws it.
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        yield


def draw_estimates(
    estimates: Sequence[tuple[str, "EstimateLike"]], label: str, axes: Any = None
) -> Any:
    """Draw named figures with their intervals as rows, the first at the top, into axes of
    matplotlib, or in a figure of their own if there are none. Returns the axes."""
    if axes is None:
        with figure_style():
            _, own_axes = make_subplots(
                figsize=(COLUMN_INCHES, 0.62 + 0.2 * max(len(estimates), 2))
            )
            return draw_estimates(estimates, label, own_axes)
    if not hasattr(axes, "plot"):
        raise UsageError(f"`ax` takes one of matplotlib's axes, not {type_with_article(axes)}")
    heights = range(len(estimates) - 1, -1, -1)
    for height, (_, estimate) in zip(heights, estimates, strict=True):
        if (
            estimate.low == estimate.low and estimate.high == estimate.high
        ):  # NaN without an interval
            axes.plot(
                [estimate.low, estimate.high], [height, height], color=INK_COLOR, linewidth=0.9
            )
        axes.plot([estimate.value], [height], "o", color=POSITIVE_COLOR, markersize=4)
    # Axes of the caller may still parse mathematics between dollars.
    axes.set_yticks(list(heights), [name.replace("$", r"\$") for name, _ in estimates])
    axes.set_ylim(-0.6, max(len(estimates), 2) - 0.4)
    axes.set_xlabel(label)
    return axes


class EstimateLike(Protocol):
    """What is drawn of an estimate: its value and the ends of its interval, NaN without one."""

    @property
    def value(self) -> float: ...
    @property
    def low(self) -> float: ...
    @property
    def high(self) -> float: ...


class Subplots(NamedTuple):
    """A figure and its axes."""

    figure: Any
    axes: Any


def make_subplots(
    rows: int = 1, columns: int = 1, *, figsize: tuple[float, float], **shared: Any
) -> Subplots:
    """A figure and its axes, as from `matplotlib.pyplot.subplots`. Pyplot is left alone: it
    shows the user's own figures in a notebook, through a backend of which a process has only
    one."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=figsize, layout="constrained")
    FigureCanvasAgg(figure)  # the one that can measure text
    return Subplots(figure, figure.subplots(rows, columns, **shared))
