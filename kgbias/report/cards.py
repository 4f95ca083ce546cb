"""Exhibits in a page: a figure or a table, with buttons to copy it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from kgbias.crawl.seeds import CUSTOM_CATEGORY
from kgbias.graph.types import CONTENT_WARNING
from kgbias.io import pages
from kgbias.io.columns import Column
from kgbias.report.style import inline_svg, read_template_file, remove_links, restrict_links
from kgbias.report.tables import (
    Cell,
    Exhibit,
    Table,
    as_csv,
    minus_signs,
    table_latex,
)


@dataclass(frozen=True, slots=True)
class FigureCard:
    """An exhibit with its picture."""

    exhibit: Exhibit
    svg: Markup

    @property
    def category(self) -> str:
        """The category that it is of; "" for groups that were given without one."""
        return "" if self.exhibit.category == CUSTOM_CATEGORY else self.exhibit.category

    @property
    def caption(self) -> str:
        """Its title, and how many statements each row rests on."""
        return "; ".join(filter(None, (self.exhibit.title, sample_size_words(self.exhibit.table))))


@dataclass(frozen=True, slots=True)
class TableColumn:
    """A column as the page shows it: its heading, whether it holds numbers, and whether its cells
    have intervals below them."""

    name: str
    numeric: bool
    interval: bool


@dataclass(frozen=True, slots=True)
class TableCell:
    text: str
    numeric: bool
    interval: str


class TableCard:
    """A table as the page shows it: each interval below its figure, to keep columns narrow."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self.columns = [
            TableColumn(column.heading, column.is_numeric, column.interval)
            for column in table.columns
        ]
        self.opens = list(table.opens) or [""] * len(table.rows)
        self.rows = [list(map(_show_cell, table.columns, row)) for row in table.rows]


def _show_cell(column: Column, cell: Cell) -> TableCell:
    """The cell as the page shows it, with minus signs for hyphens."""
    text, interval = column.text(cell), column.interval_text(cell)
    numeric = column.is_numeric
    return TableCell(minus_signs(text) if numeric else text, numeric, minus_signs(interval))


@dataclass(frozen=True, slots=True)
class CardGroup:
    """Exhibits under one heading."""

    heading: str
    figures: Sequence[FigureCard]
    tables: Sequence[TableCard]

    @property
    def lead(self) -> FigureCard | None:
        """The figure that stands for the group while the rest is folded."""
        return self.figures[0] if self.figures else None


def heading_of(category: str, categories: Iterable[str]) -> str:
    """What stands over the exhibits of a category of a run: nothing if its groups were given
    without one, and there is no other to tell them from."""
    return "" if [*categories] == [CUSTOM_CATEGORY] else category


def build_group(
    heading: str, figures: Iterable[Exhibit], tables: Iterable[Table], *, linked: bool = True
) -> CardGroup:
    """Exhibits under a heading: these figures, then these tables. `linked`: whether the page has
    statements for figures to link to."""
    return CardGroup(
        heading,
        [FigureCard(e, render_figure(e, linked=linked)) for e in figures if e.draw is not None],
        [TableCard(table) for table in tables],
    )


def sample_size_words(table: Table) -> str:
    """How many statements the rows of a table rest on: "n = 85 to 97"; "" if it does not say."""
    headings = [column.heading for column in table.columns]
    if "n" not in headings:
        return ""
    place = headings.index("n")
    texts = [table.columns[place].text(row[place]) for row in table.rows]
    counts = sorted(int(text) for text in texts if text.isdecimal())
    if not counts:
        return ""
    return f"n = {counts[0]}" if counts[0] == counts[-1] else f"n = {counts[0]} to {counts[-1]}"


def render_figure(exhibit: Exhibit, *, linked: bool = True) -> Markup:
    """The figure of an exhibit, inline."""
    assert exhibit.draw is not None
    described = f"{exhibit.title}, {exhibit.category}" if exhibit.category else exhibit.title
    about = "Its numbers are in the tables of the report; the buttons below copy them."
    figure = exhibit.draw()
    if not linked:
        remove_links(figure)
    elif exhibit.arm:
        restrict_links(figure, exhibit.arm)
    return Markup(inline_svg(figure, f"x{exhibit.key}", described, about))


MAX_LEADS = 2  # groups whose first figure is in sight before anything is unfolded


def render_groups(groups: Sequence[CardGroup], *, folded: bool = True) -> Markup:
    """The groups as HTML. `folded`: the first figures of the first two are in sight, and all else
    under one fold."""
    leads = (
        [(g.heading, g.lead) for g in groups[:MAX_LEADS] if g.lead is not None] if folded else []
    )
    figures, tables = (
        sum(len(part) for part in parts)
        for parts in (
            [g.figures for g in groups],
            [[table for table in g.tables if table.rows] for g in groups],
        )
    )
    folded_counts = [
        _count_words(figures - len(leads), "more figure" if leads else "figure"),
        _count_words(tables, "table"),
    ]
    return Markup(
        pages.fill_template(
            read_template_file("card.html"),
            groups=groups,
            leads=leads,
            shown=[lead for _, lead in leads],
            rest=" and ".join(filter(None, folded_counts)) if folded else "",
            folded=folded,
        )
    )


def render_folded(title: str, groups: Sequence[CardGroup]) -> Markup:
    """The groups under a fold of their own."""
    return Markup('<details class="fold"><summary>{}</summary>{}</details>').format(
        title, render_groups(groups, folded=False)
    )


def _count_words(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}" if count else ""


def copy_texts(tables: Iterable[Table], run: str) -> dict[str, Any]:
    """The text that the page's buttons copy for each table, by its label."""
    return {
        table.label: {"latex": table_latex(table, CONTENT_WARNING, run), "csv": as_csv(table)}
        for table in tables
    }
