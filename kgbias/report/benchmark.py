"""The page of a benchmark: self-contained HTML, without a script."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from markupsafe import Markup

from kgbias.benchmark import Board, Standing
from kgbias.graph.types import CONTENT_WARNING
from kgbias.io import pages
from kgbias.io.files import write_text
from kgbias.report.benchmark_tables import METHODS, tables
from kgbias.report.cards import Shown
from kgbias.report.figures import draw_rows, short
from kgbias.report.style import (
    COLUMN,
    INK,
    NEUTRAL,
    POSITIVE,
    figure_style,
    inline_svg,
    subplots,
    template,
)


def write_benchmark(board: Board, path: Path) -> None:
    """Write the page, whole or not at all."""
    write_text(path, render(board))


def render(board: Board) -> str:
    """The page as text."""
    specs, board = board.models, board.labelled()
    called = [(name, spec) for name, spec in zip(board.models, specs, strict=True) if name != spec]
    made = {table.label: table for table in tables(board)}
    timed = [o for o in board.outcomes if not math.isnan(o.seconds)]
    return pages.filled(
        template("benchmark.html"),
        board=board,
        called=called,
        style=pages.style(template("style.css")),
        warning=CONTENT_WARNING,
        standings=[
            (s, table, _picture(s, number))
            for number, (s, table) in enumerate(zip(board.standings, made.values(), strict=False))
        ],
        categories=[t for label, t in made.items() if label.startswith("figures-")],
        differences=made.get("differences"),
        told=[t for t in board.tests if t.differs],
        same=[t for t in board.tests if t.same],
        agreement=made.get("agreement"),
        fewest=max((a.n for a in board.agreements), default=0),
        least_p=min((a.least_p for a in board.agreements), default=math.nan),
        cost=made.get("cost"),
        sizes=_sizes(board),
        remarks=board.remarks,
        sources=list(dict.fromkeys((o.title, o.source) for o in board.outcomes)),
        shown=Shown,
        methods=METHODS,
        seconds=sum(o.seconds for o in timed),
        tokens=sum(o.tokens for o in timed),
    )


def _picture(s: Standing, number: int) -> Markup:
    title = f"{s.name}, 95% intervals"
    return Markup(
        inline_svg(standing_dots(s), f"s{number}", title, "The numbers are in the table.")
    )


def standing_dots(s: Standing) -> Any:
    """A model a row, the least first: its figure with its 95% interval, and where no bias is."""
    with figure_style():
        rows = list(reversed(list(zip(s.models, s.values, strict=True))))
        figure, axes = draw_rows(len(rows))
        for place, (_, e) in enumerate(rows):
            if e.has_interval:
                axes.plot([e.low, e.high], [place, place], color=INK, linewidth=0.9)
            axes.plot([e.value], [place], "o", color=POSITIVE, markersize=4.5)
        if s.figure.unbiased is not None:
            axes.axvline(s.figure.unbiased, color=NEUTRAL, linewidth=1.2, zorder=1)
        axes.set_yticks(range(len(rows)), [short(name) for name, _ in rows])
        axes.set_ylim(-0.6, max(len(rows), 2) - 0.4)
        axes.set_xlabel(f"{s.figure.title}")
        return figure


def _sizes(board: Board) -> list[tuple[str, Markup]]:
    """A scatter against model size for each figure that three or more models of known size have."""
    known = {o.model.name: o.parameters for o in board.outcomes if o.parameters}
    found = []
    for number, s in enumerate(board.standings):
        points = [
            (known[m], e.value, e.low, e.high, m)
            for m, e in zip(s.models, s.values, strict=True)
            if m in known and not math.isnan(e.value)
        ]
        if len(points) > 2:
            drawn = inline_svg(
                size_scatter(points, s.figure.title, s.figure.unbiased), f"z{number}",
                f"{s.name} against model size", "Sizes are in the table of costs.",
            )  # fmt: skip
            found.append((s.name, Markup(drawn)))
    return found


_BESIDE = 0.2  # decades of size within which the labels of two points could meet
Point = tuple[int, float, float, float, str]


def size_scatter(points: Sequence[Point], label: str, unbiased: float | None) -> Any:
    """A figure against the number of parameters, with intervals."""
    with figure_style():
        figure, axes = subplots(figsize=(COLUMN, 2.6))
        axes.grid(True)
        axes.set_axisbelow(True)
        if unbiased is not None:
            axes.axhline(unbiased, color=NEUTRAL, linewidth=1.2)
        axes.set_xscale("log")
        for size, value, low, high, name in points:
            above = any(value < v and abs(math.log10(size / s)) < _BESIDE for s, v, *_ in points)
            if not math.isnan(low):
                axes.plot([size, size], [low, high], color=INK, linewidth=0.9)
            axes.plot([size], [value], "o", color=POSITIVE, markersize=4.5)
            axes.annotate(short(name, 20), (size, value), xytext=(5, -9 if above else 3),
                          textcoords="offset points", fontsize=7)  # fmt: skip
        axes.margins(x=0.25)
        axes.xaxis.set_major_formatter(lambda size, _: _size(size))
        axes.xaxis.set_minor_formatter(lambda *_: "")
        axes.set_xlabel("parameters")
        axes.set_ylabel(label)
        return figure


def _size(parameters: float) -> str:
    """As people write it: 135M, 7B."""
    for unit, name in ((1e9, "B"), (1e6, "M"), (1e3, "k")):
        if parameters >= unit:
            return f"{parameters / unit:g}{name}"
    return f"{parameters:g}"
