"""One look for every figure: as wide as a paper's column, colour-blind safe, text kept as text."""

import io
import re
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode

from kgbias.errors import MissingExtra
from kgbias.io import pages
from kgbias.io.text import html


@dataclass(frozen=True, slots=True)
class Section:
    """A section of a report. `html` is inserted unescaped: whoever builds it escapes the text in
    it."""

    title: str
    html: str
    anchor: str


def template(name: str) -> str:
    """The text of a file of `templates/`."""
    return pages.read("kgbias.report", "templates", name)


STATEMENTS = "#statements?"
"""The start of a link to statements of the report; `templates/app.js` reads the rest."""


def statements(**filters: str) -> str:
    """A link to the report's table of statements with these filters set: `group` (a name), `label`
    (of regard), `verdict`, `arm`, `words`."""
    return STATEMENTS + _query(filters)


def explored(explorer: str, **state: str) -> str:
    """A link into the explorer at that address, "" if there is none. `state` is what its
    `page/state.js` reads: `view`, `source`, `group`, `with` ..."""
    return f"{explorer}#{_query(state)}" if explorer else ""


def linked(artist: Any, group: str) -> None:
    """Make a matplotlib artist in a page link to the statements about a group."""
    artist.set_url(statements(group=group))


def in_arm(figure: Any, arm: str) -> None:
    """Make the links of a figure lead to the statements of one arm."""
    for artist in figure.findobj(lambda a: a.get_url() is not None):
        artist.set_url(f"{artist.get_url()}&{_query({'arm': arm})}")


def unlinked(figure: Any) -> None:
    """Remove the links of a figure: in a file of its own they lead nowhere."""
    for artist in figure.findobj(lambda a: a.get_url() is not None):
        artist.set_url(None)


def _query(filters: Mapping[str, str]) -> str:
    return urlencode({k: v for k, v in filters.items() if v}, quote_via=quote)


COLUMN = 3.3  # inches: one column of a two-column paper
INK, LINE = "#1d2733", "#c9d1d9"
# Blue and orange stay apart for every kind of colour vision, and in grey.
POSITIVE, NEUTRAL, NEGATIVE = "#2f6fb3", "#9aa5b1", "#cf6a1f"
TOXIC = "#7a4a9c"
# The same in a page, whose style sheet defines them for light and dark.
_IN_PAGES = {
    INK: "currentColor", LINE: "var(--line)", POSITIVE: "var(--positive)",
    NEUTRAL: "var(--neutral)", NEGATIVE: "var(--negative)", TOXIC: "var(--toxic)",
}  # fmt: skip

_LINK = re.compile(r'(<a [^<>]*) target="_blank">(\s*<text\b)?')


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


def inline_svg(figure: Any, prefix: str, title: str, description: str) -> str:
    """The figure as an SVG element for a page: its ids start with `prefix`, its ink follows the
    page's text colour, and it has a title and a description for screen readers."""
    buffer = io.StringIO()
    with figure_style():
        figure.savefig(buffer, format="svg", metadata={"Date": None}, transparent=True)
    svg = buffer.getvalue()
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r"<!--.*?-->", "", svg, flags=re.DOTALL)  # matplotlib repeats each text in one
    svg = re.sub(r"<[^<>]*>", lambda tag: _prefixed(tag[0], prefix), svg)
    svg = _LINK.sub(_link, svg)
    for colour, name in _IN_PAGES.items():
        svg = svg.replace(colour, name)
    label = (
        f'role="{"group" if "<a " in svg else "img"}" aria-labelledby="{prefix}-t {prefix}-d">'
        f'<title id="{prefix}-t">{html(title)}</title>'
        f'<desc id="{prefix}-d">{html(description)}</desc>'
    )
    head, _, body = svg.partition(">")
    return f"{head} {label}{body}"


def _link(found: re.Match[str]) -> str:
    """A link that opens in the page itself; keyboards and screen readers meet it once, at its
    text."""
    text = found[2]
    return f"{found[1]}>{text}" if text else f'{found[1]} tabindex="-1" aria-hidden="true">'


def _prefixed(tag: str, prefix: str) -> str:
    """A tag with its ids, and references to them, made unique. Only tags are passed in: text
    outside them may look just like an id."""
    tag = re.sub(r'\bid="', f'id="{prefix}-', tag)
    return re.sub(rf'(href="#|url\(#)(?!{STATEMENTS[1:-1]}\?)', rf"\g<1>{prefix}-", tag)
