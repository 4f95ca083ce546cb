"""One look for every figure: as wide as a paper's column, colour-blind safe, text kept as text."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from kgbias.errors import MissingExtra

COLUMN = 3.3  # inches: one column of a two-column paper
INK, SOFT, LINE, PAPER = "#1d2733", "#4f5b67", "#c9d1d9", "#ffffff"
# Blue and orange stay apart for every kind of colour vision, and in grey.
POSITIVE, NEUTRAL, NEGATIVE = "#2f6fb3", "#9aa5b1", "#cf6a1f"
TOXIC = "#7a4a9c"


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
        "axes.edgecolor": INK,
        "axes.labelcolor": INK,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.linewidth": 0.6,
        "grid.color": LINE,
        "grid.linewidth": 0.5,
        "text.color": INK,
        "text.parse_math": False,
        "xtick.color": INK,
        "ytick.color": INK,
        "xtick.major.width": 0.6,
        "ytick.major.size": 0,
        "svg.fonttype": "none",
        "svg.hashsalt": "kgbias",
        "pdf.fonttype": 42,
    }
    with mpl.rc_context(), warnings.catch_warnings():
        mpl.rcdefaults()  # a matplotlibrc in the current folder could have LaTeX read the labels
        mpl.rcParams.update(settings)
        # Where matplotlib's font has no glyph, the reader's font draws it.
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        yield


def subplots(
    rows: int = 1, columns: int = 1, *, figsize: tuple[float, float], **shared: Any
) -> tuple[Any, Any]:
    """A figure and its axes, as from `matplotlib.pyplot.subplots`. Pyplot is left alone: it shows
    the user's own figures in a notebook, through a backend of which a process has only one."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=figsize, layout="constrained")
    FigureCanvasAgg(figure)  # the one that can measure text
    return figure, figure.subplots(rows, columns, **shared)
