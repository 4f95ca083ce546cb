"""The page of a benchmark, self-contained HTML without scripts, and its tables."""

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from markupsafe import Markup

from kgbias.benchmark import Board, Outcome, Standing
from kgbias.benchmark.board import CRAWL, EVERYONE
from kgbias.graph.types import CONTENT_WARNING
from kgbias.io import pages
from kgbias.io.drawing import COLUMN_INCHES, INK_COLOR, NEUTRAL_COLOR, POSITIVE_COLOR, figure_style, make_subplots
from kgbias.io.files import write_text
from kgbias.io.text import format_p_value, spoken_name
from kgbias.probe.benchmarks import DomainFigure
from kgbias.report.cards import Shown
from kgbias.report.figures import draw_rows, short
from kgbias.report.style import inline_svg, template
from kgbias.report.tables import Table
from kgbias.stats.estimate import Estimate, nan_to_none

METHODS = {"holm": "Holm", "bh": "Benjamini-Hochberg"}


def tables(board: Board) -> Iterator[Table]:
    """Every table: standings, categories, differences, agreement, cost."""
    for s in board.standings:
        form = s.figure.form
        ranks = [f"P(rank {n + 1})" for n in range(len(s.models))]
        beside = [_cells(e, ".1f") for e in s.beside] or [[]] * len(s.models)
        yield Table(
            f"standing-{_slug(s.name)}", f"{s.name}, nearest to no bias first.",
            ("Model", spoken_name(s.figure.name), "95% interval",
             *((s.figure.beside, "95% interval") if s.beside else ()), *ranks),
            [
                [model, *_cells(value, form), *other, *(f"{p:.2f}" for p in shares)]
                for model, value, other, shares in zip(
                    s.models, s.values, beside, s.probabilities, strict=True)
            ],
            f"{s.figure.title}: {s.figure.help}. P: share of resamples of the {s.n} {s.unit}.",
        )  # fmt: skip
    for title, rows in by_benchmark(board).items():
        only = {figure for (_, figure), _ in rows}
        several = len(only) > 1
        yield Table(
            f"figures-{_slug(title)}", f"{title} by category.",
            ("Category", *(["Figure"] if several else []), *(o.model.title for o in rows[0][1])),
            [
                [spoken_name(domain), *([figure] if several else []),
                 *(_of(o, domain, figure) for o in own)]
                for (domain, figure), own in rows
            ],
            "With 95% intervals." if several else f"{only.pop()}, with 95% intervals.",
        )  # fmt: skip
    if board.tests:
        yield _differences(board)
    if board.agreements:
        yield _agreement(board)
    if board.outcomes:
        yield _asked(board)
        yield _models(board)
        yield _cost(board)


def _differences(board: Board) -> Table:
    """Differences between models, with their tests."""
    return Table(
        "differences", "Differences between models.",
        ("Benchmark", "Figure", "First", "Second", "n", "difference", "95% interval", "p",
         "p corrected"),
        [
            [CRAWL if t.group == EVERYONE else t.group, spoken_name(t.measure),
             t.first, t.second, str(min(t.n)), *_cells(t.difference, "+.3g"),
             _p(t.p), _p(t.p_adjusted)]
            for t in board.tests
        ],
        "First minus second, of the figure itself, not of its distance from no bias. A "
        "difference is shown where the corrected p is at most 0.05 and the interval leaves out "
        "0. "
        f"p by permutation, corrected over all {len(board.tests)} tests by "
        f"{METHODS[board.tests[0].correction]}.",
    )  # fmt: skip


def _agreement(board: Board) -> Table:
    """How far the benchmarks agree on which model is less biased."""
    n = max(a.n for a in board.agreements)  # of all models: some figures have fewer
    alike = [a for a in board.agreements if a.n == n]
    names = list(dict.fromkeys(name for a in alike for name in (a.first, a.second)))
    tau = {(a.first, a.second): a.tau for a in alike}
    tau |= {(second, first): value for (first, second), value in tau.items()}
    return Table(
        "agreement", "Agreement of the orders of models, Kendall's tau.",
        ("", *(str(k + 1) for k in range(len(names)))),
        [[f"{k + 1} {a}", *("1" if a == b else _tau(tau.get((a, b))) for b in names)]
         for k, a in enumerate(names)],
        f"{n} models: no order of so few can have a p-value below {2 / math.factorial(n):.2g}.",
    )  # fmt: skip


_MOST = 20  # categories listed of one benchmark


def _asked(board: Board) -> Table:
    """What was asked: table 5 of Marchiori Manerba et al. 2023."""
    rows = []
    for o in {o.title: o for o in board.outcomes}.values():
        found = {**o.parts, "all": tuple(map(sum, zip(*o.parts.values(), strict=True)))}
        if len(o.parts) > _MOST:
            found = {f"all {len(o.parts)} categories": found["all"]}
        elif len(o.parts) == 1:
            del found["all"]
        rows += [
            [o.title, spoken_name(domain), f"{items:,}", f"{texts:,}"]
            for domain, (items, texts) in found.items()
        ]
    return Table(
        "asked", "What was asked.", ("Benchmark", "Category", "items", "texts"), rows,
        "Items: what one answer is taken from (a pair, a question, a statement with every group). "
        "Texts: what is scored for them.",
    )  # fmt: skip


def _models(board: Board) -> Table:
    """The models: table 6 of the same paper."""
    first = {o.model.name: o for o in reversed(board.outcomes)}
    return Table(
        "models", "The models.", ("Model", "kind", "parameters", "dtype", "revision"),
        [
            [name, dict(first[name].settings).get("kind", "-"),
             "-" if first[name].parameters is None else f"{first[name].parameters:,}",
             dict(first[name].settings).get("dtype", "-"), first[name].model.revision or "-"]
            for name in board.models if name in first
        ],
    )  # fmt: skip


def _cost(board: Board) -> Table:
    """What each model took."""
    return Table(
        "cost", "What it took.",
        ("Model", "parameters", "Benchmark", "items", "tokens", "seconds", "tokens/s"),
        [
            [o.model.title, "-" if o.parameters is None else f"{o.parameters:,}", o.title,
             f"{o.items:,}", f"{o.tokens:,}" if o.tokens else "-",
             "-" if math.isnan(o.seconds) else f"{o.seconds:.1f}",
             f"{o.tokens / o.seconds:,.0f}" if o.seconds > 0 else "-"]
            for o in board.outcomes
        ],
    )  # fmt: skip


Rows = list[tuple[tuple[str, str], list[Outcome]]]


def by_benchmark(board: Board) -> dict[str, Rows]:
    """The domains and figures of each benchmark, with the models scored on it."""
    found: dict[str, Rows] = {}
    for title in dict.fromkeys(o.title for o in board.outcomes):
        own = [o for o in board.outcomes if o.title == title]
        keys = dict.fromkeys((m.domain, m.figure) for o in own for m in o.measured)
        found[title] = [(key, own) for key in keys]
    return found


def measured(o: Outcome, domain: str, figure: str) -> DomainFigure | None:
    """That figure of the model, or None."""
    return next((m for m in o.measured if (m.domain, m.figure) == (domain, figure)), None)


def _of(o: Outcome, domain: str, figure: str) -> str:
    m = measured(o, domain, figure)
    if m is None or math.isnan(m.estimate.value):
        return "-"
    form = next(f.form for f in o.info if f.name == figure)
    value, interval = _cells(m.estimate, form)
    return value if interval == "-" else f"{value} [{interval.replace(' to ', ', ')}]"


def _cells(e: Estimate, form: str) -> list[str]:
    return (
        ["-", "-"] if math.isnan(e.value) else [f"{e.value:{form}}", e.interval(form.lstrip("+"))]
    )


def _p(p: float) -> str:
    return "-" if math.isnan(p) else format_p_value(p)


def _tau(value: float | None) -> str:
    return "-" if value is None or math.isnan(value) else f"{value:.2f}"


def _slug(text: str) -> str:
    words = "".join(c if c.isascii() and c.isalnum() else " " for c in text.lower()).split()
    return "-".join(words)


def records(board: Board) -> dict[str, list[dict[str, Any]]]:
    """The same as rows of plain numbers, by file name."""
    data = board.as_dict()
    return {
        "figures": [
            {"model": o.model.title, "revision": o.model.revision, "benchmark": o.benchmark,
             "category": m.domain, "figure": m.figure, **m.estimate.as_dict(), "unit": o.unit}
            for o in board.outcomes for m in o.measured
        ],
        "ranks": [
            {"benchmark": s.benchmark, "figure": s.figure.name, "model": model, "rank": rank,
             "probability": p}
            for s in board.standings
            for model, shares in zip(s.models, s.probabilities, strict=True)
            for rank, p in enumerate(shares, 1)
        ],
        "differences": data["contrasts"],
        "agreement": data["agreement"],
        "asked": [
            {"benchmark": o.benchmark, "category": category, "items": items, "texts": texts}
            for o in {o.benchmark: o for o in board.outcomes}.values()
            for category, (items, texts) in o.parts.items()
        ],
        "cost": [
            {"model": o.model.title, "parameters": o.parameters, "benchmark": o.benchmark,
             "items": o.items, "tokens": o.tokens, "seconds": nan_to_none(round(o.seconds, 3))}
            for o in board.outcomes
        ],
    }  # fmt: skip


def write_benchmark(board: Board, path: Path) -> None:
    """Write the page, whole or not at all."""
    write_text(path, render(board))


def render(board: Board) -> str:
    """The page as text."""
    specs, board = board.models, board.labelled()
    called = [(name, spec) for name, spec in zip(board.models, specs, strict=True) if name != spec]
    made = {table.label: table for table in tables(board)}
    timed = [o for o in board.outcomes if not math.isnan(o.seconds)]
    return pages.fill_template(
        template("benchmark.html"),
        board=board,
        called=called,
        style=pages.page_style(template("style.css")),
        warning=CONTENT_WARNING,
        standings=[
            (s, table, _picture(s, number))
            for number, (s, table) in enumerate(zip(board.standings, made.values(), strict=False))
        ],
        categories=[t for label, t in made.items() if label.startswith("figures-")],
        differences=made.get("differences"),
        told=[t for t in board.tests if t.differs],
        same=[t for t in board.tests if t.is_equivalent],
        agreement=made.get("agreement"),
        asked=[made[label] for label in ("models", "asked") if label in made],
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
    """One model per row, lowest first: its figure with its 95% interval, and the value for no
    bias."""
    with figure_style():
        rows = list(reversed(list(zip(s.models, s.values, strict=True))))
        figure, axes = draw_rows(len(rows))
        for place, (_, e) in enumerate(rows):
            if e.has_interval:
                axes.plot([e.low, e.high], [place, place], color=INK_COLOR, linewidth=0.9)
            axes.plot([e.value], [place], "o", color=POSITIVE_COLOR, markersize=4.5)
        if s.figure.unbiased is not None:
            axes.axvline(s.figure.unbiased, color=NEUTRAL_COLOR, linewidth=1.2, zorder=1)
        axes.set_yticks(range(len(rows)), [short(name) for name, _ in rows])
        axes.set_ylim(-0.6, max(len(rows), 2) - 0.4)
        axes.set_xlabel(f"{s.figure.title}")
        return figure


def _sizes(board: Board) -> list[tuple[str, Markup]]:
    """A scatter plot against model size of each figure that three or more models of known size
    have."""
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


_BESIDE = 0.2  # decades of size within which the labels of two points could overlap
Point = tuple[int, float, float, float, str]


def size_scatter(points: Sequence[Point], label: str, unbiased: float | None) -> Any:
    """A figure against the number of parameters, with intervals."""
    with figure_style():
        figure, axes = make_subplots(figsize=(COLUMN_INCHES, 2.6))
        axes.grid(True)
        axes.set_axisbelow(True)
        if unbiased is not None:
            axes.axhline(unbiased, color=NEUTRAL_COLOR, linewidth=1.2)
        axes.set_xscale("log")
        for size, value, low, high, name in points:
            above = any(value < v and abs(math.log10(size / s)) < _BESIDE for s, v, *_ in points)
            if not math.isnan(low):
                axes.plot([size, size], [low, high], color=INK_COLOR, linewidth=0.9)
            axes.plot([size], [value], "o", color=POSITIVE_COLOR, markersize=4.5)
            axes.annotate(short(name, 20), (size, value), xytext=(5, -9 if above else 3),
                          textcoords="offset points", fontsize=7)  # fmt: skip
        axes.margins(x=0.25)
        axes.xaxis.set_major_formatter(lambda size, _: _size(size))
        axes.xaxis.set_minor_formatter(lambda *_: "")
        axes.set_xlabel("parameters")
        axes.set_ylabel(label)
        return figure


def _size(parameters: float) -> str:
    """A size as people write it: 135M, 7B."""
    for unit, name in ((1e9, "B"), (1e6, "M"), (1e3, "k")):
        if parameters >= unit:
            return f"{parameters / unit:g}{name}"
    return f"{parameters:g}"
