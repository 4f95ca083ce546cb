"""Links from figures and sentences to statements: in the report, and in the explorer beside it."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlencode

STATEMENTS = "#statements?"
"""What a link to statements of the report begins with; `templates/app.js` reads the rest."""


def statements(**filters: str) -> str:
    """A link to the report's table of statements with these filters set: `group` (a name), `label`
    (of regard), `verdict`, `arm`, `words`."""
    return STATEMENTS + _query(filters)


def explored(explorer: str, **state: str) -> str:
    """A link into the explorer at that address, "" where there is none. `state` is what its
    `page/state.js` reads: `view`, `source`, `group`, `with` ..."""
    return f"{explorer}#{_query(state)}" if explorer else ""


def linked(artist: Any, group: str) -> None:
    """Let a matplotlib artist, drawn into a page, lead to the statements about a group."""
    artist.set_url(statements(group=group))


def in_arm(figure: Any, arm: str) -> None:
    """Let the links of a figure lead to the statements of one arm."""
    for artist in figure.findobj(lambda a: a.get_url() is not None):
        artist.set_url(f"{artist.get_url()}&{_query({'arm': arm})}")


def unlinked(figure: Any) -> None:
    """Take out the links of a figure: they lead nowhere from a file of its own."""
    for artist in figure.findobj(lambda a: a.get_url() is not None):
        artist.set_url(None)


def _query(filters: Mapping[str, str]) -> str:
    return urlencode({k: v for k, v in filters.items() if v}, quote_via=quote)
