"""Fill in a model card: the text is the template's, Python gives the figures."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import jinja2

Rows = Sequence[Sequence[object]]
"""Of a table, whose head is the template's: its cells, in rows."""


def fill(template: Path, fields: Mapping[str, object]) -> str:
    """The card, in Markdown. The filter `rows` writes rows of a table."""
    environment = jinja2.Environment(undefined=jinja2.StrictUndefined, keep_trailing_newline=True)
    environment.filters["rows"] = _rows
    return environment.from_string(template.read_text(encoding="utf-8")).render(fields)


def _rows(rows: Rows) -> str:
    return "\n".join(f"| {' | '.join(map(str, row))} |" for row in rows)
