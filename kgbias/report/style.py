"""Figures in a page, and the links of a report."""

import io
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode

from markupsafe import Markup

from kgbias.io import pages
from kgbias.io.drawing import (
    INK_COLOR,
    LINE_COLOR,
    NEGATIVE_COLOR,
    NEUTRAL_COLOR,
    PAPER_COLOR,
    POSITIVE_COLOR,
    SOFT_COLOR,
    TOXIC_COLOR,
    figure_style,
)
from kgbias.io.text import html


@dataclass(frozen=True, slots=True)
class Section:
    """A section of a report. `html` is inserted unescaped: whoever builds it escapes the text in
    it."""

    title: str
    html: str
    anchor: str


def read_template_file(name: str) -> str:
    """The text of a file of `templates/`."""
    return pages.read_asset("kgbias.report", "templates", name)


def page_head(title: str, script: str) -> Markup:
    """The head of a page of the report's kind, which lets this script alone run."""
    head = pages.fill_template(
        read_template_file("head.html"),
        title=title,
        style=pages.page_style(read_template_file("style.css")),
        allowed=pages.script_policy(script),
    )
    return Markup(head)


STATEMENTS_URL = "#statements?"
"""The start of the address of statements in the report; `templates/app.js` reads the rest."""


def statements_url(**filters: str) -> str:
    """The address of the report's table of statements with these filters set: `group` (a name),
    `label` (of regard), `verdict`, `arm`, `words`."""
    return STATEMENTS_URL + _encode_query(filters)


def explorer_url(explorer: str, **state: str) -> str:
    """The address of a view of that explorer, "" if there is none. `state` is what its
    `page/state.js` reads: `view`, `source`, `group`, `with` ..."""
    return f"{explorer}#{_encode_query(state)}" if explorer else ""


def link_to_group(artist: Any, group: str) -> None:
    """Make a matplotlib artist in a page link to the statements about a group."""
    artist.set_url(statements_url(group=group))


def restrict_links(figure: Any, arm: str) -> None:
    """Make the links of a figure lead to the statements of one arm."""
    for artist in figure.findobj(lambda a: a.get_url() is not None):
        artist.set_url(f"{artist.get_url()}&{_encode_query({'arm': arm})}")


def remove_links(figure: Any) -> None:
    """Remove the links of a figure: in a file of its own they lead nowhere."""
    for artist in figure.findobj(lambda a: a.get_url() is not None):
        artist.set_url(None)


def _encode_query(filters: Mapping[str, str]) -> str:
    return urlencode({k: v for k, v in filters.items() if v}, quote_via=quote)


# The same in a page, whose style sheet defines them for light and dark.
_PAGE_COLOURS = {
    INK_COLOR: "currentColor",
    LINE_COLOR: "var(--line)",
    POSITIVE_COLOR: "var(--positive)",
    NEUTRAL_COLOR: "var(--neutral)",
    NEGATIVE_COLOR: "var(--negative)",
    TOXIC_COLOR: "var(--toxic)",
    SOFT_COLOR: "var(--soft)",
    PAPER_COLOR: "var(--card)",
}

_LINK = re.compile(r'(<a [^<>]*) target="_blank">(\s*<text\b)?')


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
    svg = re.sub(r"<[^<>]*>", lambda tag: _prefix_ids(tag[0], prefix), svg)
    svg = _LINK.sub(_rewrite_link, svg)
    for colour, name in _PAGE_COLOURS.items():
        svg = svg.replace(colour, name)
    label = (
        f'role="{"group" if "<a " in svg else "img"}" aria-labelledby="{prefix}-t {prefix}-d">'
        f'<title id="{prefix}-t">{html(title)}</title>'
        f'<desc id="{prefix}-d">{html(description)}</desc>'
    )
    head, _, body = svg.partition(">")
    return f"{head} {label}{body}"


def _rewrite_link(match: re.Match[str]) -> str:
    """A link that opens in the page itself; keyboards and screen readers meet it once, at its
    text."""
    text = match[2]
    return f"{match[1]}>{text}" if text else f'{match[1]} tabindex="-1" aria-hidden="true">'


def _prefix_ids(tag: str, prefix: str) -> str:
    """A tag with its ids, and references to them, made unique. Only tags are passed in: text
    outside them may look just like an id."""
    tag = re.sub(r'\bid="', f'id="{prefix}-', tag)
    return re.sub(rf'(href="#|url\(#)(?!{STATEMENTS_URL[1:-1]}\?)', rf"\g<1>{prefix}-", tag)
