"""The page of a benchmark, self-contained HTML without scripts, and its tables."""

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from markupsafe import Markup

from kgbias.graph.types import CONTENT_WARNING
from kgbias.io import pages
from kgbias.io.columns import CellWithForm, Column
from kgbias.io.drawing import (
    COLUMN_INCHES,
    INK_COLOR,
    NEUTRAL_COLOR,
    POSITIVE_COLOR,
    figure_style,
    make_subplots,
)
from kgbias.io.files import write_text
from kgbias.io.text import format_p_value, spoken_name
from kgbias.io.wording import pluralise
from kgbias.methods.benchmarks.base import DomainFigure
from kgbias.methods.benchmarks.board import (
    ALL_GROUPS,
    CRAWL_BENCHMARK,
    BenchmarkOutcome,
    Board,
    Standing,
)
from kgbias.report.cards import TableCard
from kgbias.report.figures import make_row_figure, shorten_name
from kgbias.report.style import inline_svg, read_template_file
from kgbias.report.tables import COUNT_COLUMN, Table
from kgbias.stats.estimate import nan_to_none

CORRECTION_NAMES = {"holm": "Holm", "bh": "Benjamini-Hochberg"}


MODEL_COLUMN = Column("Model")
BENCHMARK_COLUMN = Column("Benchmark")
SIZE_COLUMN = Column("parameters", ",.0f", missing="-")


def benchmark_tables(board: Board) -> Iterator[Table]:
    """Every table: standings, categories, differences, agreement, cost."""
    for standing in board.standings:
        columns = [
            MODEL_COLUMN,
            Column(standing.figure.name, standing.figure.form, interval=True, missing="-"),
        ]
        if standing.beside:
            columns.append(Column(standing.figure.beside, ".1f", interval=True, missing="-"))
        columns += [Column(f"P(rank {n + 1})", ".2f") for n in range(len(standing.models))]
        cells = []
        for n, model in enumerate(standing.models):
            beside = standing.beside[n : n + 1]
            cells.append([model, standing.values[n], *beside, *standing.probabilities[n]])
        yield Table(
            f"standing-{_slug(standing.name)}",
            f"{standing.name}, nearest to no bias first.",
            columns,
            cells,
            f"{standing.figure.title}: {standing.figure.help}. P: share of resamples of the "
            f"{standing.n} {standing.unit}.",
        )
    for title, rows in group_by_benchmark(board).items():
        only = {row.figure for row in rows}
        has_several = len(only) > 1
        yield Table(
            f"figures-{_slug(title)}",
            f"{title} by category.",
            (
                Column("Category"),
                *([Column("Figure")] if has_several else []),
                *(
                    Column(o.model.title, ".3f", interval=True, title=o.model.title, missing="-")
                    for o in rows[0].outcomes
                ),
            ),
            [
                [
                    spoken_name(row.domain),
                    *([row.figure] if has_several else []),
                    *(_figure_cell(o, row.domain, row.figure) for o in row.outcomes),
                ]
                for row in rows
            ],
            "With 95% intervals." if has_several else f"{only.pop()}, with 95% intervals.",
        )
    if board.tests:
        yield _difference_table(board)
    if board.agreements:
        yield _agreement_table(board)
    if board.outcomes:
        yield _asked_table(board)
        yield _model_table(board)
        yield _cost_table(board)


def _difference_table(board: Board) -> Table:
    """Differences between models, with their tests."""
    return Table(
        "differences",
        "Differences between models.",
        (
            BENCHMARK_COLUMN,
            Column("Figure"),
            Column("First"),
            Column("Second"),
            COUNT_COLUMN,
            Column("difference", "+.3g", interval=True, missing="-"),
            Column("p", format_p_value, missing="-"),
            Column("p corrected", format_p_value, missing="-"),
        ),
        [
            [
                CRAWL_BENCHMARK if t.group == ALL_GROUPS else t.group,
                spoken_name(t.measure),
                t.first,
                t.second,
                min(t.n),
                t.difference,
                t.p,
                t.p_adjusted,
            ]
            for t in board.tests
        ],
        "First minus second, of the figure itself, not of its distance from no bias. A "
        "difference is shown where the corrected p is at most 0.05 and the interval leaves out "
        "0. "
        f"p by permutation, corrected over all {len(board.tests)} tests by "
        f"{CORRECTION_NAMES[board.tests[0].correction]}.",
    )


def _agreement_table(board: Board) -> Table:
    """How far the benchmarks agree on which model is less biased."""
    # Of all models: some figures have fewer.
    model_count = max(a.model_count for a in board.agreements)
    of_all_models = [a for a in board.agreements if a.model_count == model_count]
    names = list(dict.fromkeys(name for a in of_all_models for name in (a.first, a.second)))
    tau = {(a.first, a.second): a.tau for a in of_all_models}
    tau |= {(second, first): value for (first, second), value in tau.items()}
    return Table(
        "agreement",
        "Agreement of the orders of models, Kendall's tau.",
        (Column(""), *(Column(str(k + 1), ".2f", missing="-") for k in range(len(names)))),
        [
            [f"{k + 1} {a}", *("1" if a == b else tau.get((a, b)) for b in names)]
            for k, a in enumerate(names)
        ],
        f"{pluralise(model_count, 'model')}: no order of so few can have a p-value below "
        f"{2 / math.factorial(model_count):.2g}.",
    )


_MAX_CATEGORIES = 20  # categories listed of one benchmark


def _asked_table(board: Board) -> Table:
    """What was asked: table 5 of Marchiori Manerba et al. 2023."""
    rows = []
    for outcome in {outcome.title: outcome for outcome in board.outcomes}.values():
        categories = {
            **outcome.counts_by_category,
            "all": tuple(map(sum, zip(*outcome.counts_by_category.values(), strict=True))),
        }
        if len(outcome.counts_by_category) > _MAX_CATEGORIES:
            categories = {f"all {len(outcome.counts_by_category)} categories": categories["all"]}
        elif len(outcome.counts_by_category) == 1:
            del categories["all"]
        rows += [
            [outcome.title, spoken_name(domain), items, texts]
            for domain, (items, texts) in categories.items()
        ]
    return Table(
        "asked",
        "What was asked.",
        (BENCHMARK_COLUMN, Column("Category"), Column("items", ",.0f"), Column("texts", ",.0f")),
        rows,
        "Items: what one answer is taken from (a pair, a question, a statement with every group). "
        "Texts: what is scored for them.",
    )


def _model_table(board: Board) -> Table:
    """The models: table 6 of the same paper."""
    # Backwards, so that of several outcomes of a model the first is kept.
    first_outcomes = {o.model.name: o for o in reversed(board.outcomes)}
    return Table(
        "models",
        "The models.",
        (MODEL_COLUMN, Column("kind"), SIZE_COLUMN, Column("dtype"), Column("revision")),
        [
            [
                name,
                dict(first_outcomes[name].settings).get("kind", "-"),
                first_outcomes[name].parameters,
                dict(first_outcomes[name].settings).get("dtype", "-"),
                first_outcomes[name].model.revision or "-",
            ]
            for name in board.models
            if name in first_outcomes
        ],
    )


def _cost_table(board: Board) -> Table:
    """What each model took."""
    return Table(
        "cost",
        "What it took.",
        (
            MODEL_COLUMN,
            SIZE_COLUMN,
            BENCHMARK_COLUMN,
            Column("items", ",.0f"),
            Column("tokens", ",.0f", missing="-"),
            Column("seconds", ".1f", missing="-"),
            Column("tokens/s", ",.0f", missing="-"),
        ),
        [
            [
                o.model.title,
                o.parameters,
                o.title,
                o.items,
                o.tokens or None,
                o.seconds,
                o.tokens / o.seconds if o.seconds > 0 else None,
            ]
            for o in board.outcomes
        ],
    )


class FigureRow(NamedTuple):
    """A figure of a domain, and the models that were scored on its benchmark."""

    domain: str
    figure: str
    outcomes: list[BenchmarkOutcome]


def group_by_benchmark(board: Board) -> dict[str, list[FigureRow]]:
    """The domains and figures of each benchmark, with the models scored on it."""
    rows: dict[str, list[FigureRow]] = {}
    for title in dict.fromkeys(o.title for o in board.outcomes):
        outcomes = [o for o in board.outcomes if o.title == title]
        keys = dict.fromkeys((m.domain, m.figure) for o in outcomes for m in o.figures)
        rows[title] = [FigureRow(domain, figure, outcomes) for domain, figure in keys]
    return rows


def find_figure(outcome: BenchmarkOutcome, domain: str, figure: str) -> DomainFigure | None:
    """That figure of the model, or None."""
    return next((m for m in outcome.figures if (m.domain, m.figure) == (domain, figure)), None)


def _figure_cell(outcome: BenchmarkOutcome, domain: str, figure: str) -> CellWithForm | None:
    figure_found = find_figure(outcome, domain, figure)
    if figure_found is None:
        return None
    form = next(f.form for f in outcome.figure_info if f.name == figure)
    return CellWithForm(figure_found.estimate, form)


def _slug(text: str) -> str:
    words = "".join(c if c.isascii() and c.isalnum() else " " for c in text.lower()).split()
    return "-".join(words)


def plain_records(board: Board) -> dict[str, list[dict[str, Any]]]:
    """The same as rows of plain numbers, by file name."""
    data = board.as_dict()
    return {
        "figures": [
            {
                "model": o.model.title,
                "revision": o.model.revision,
                "benchmark": o.benchmark,
                "category": m.domain,
                "figure": m.figure,
                **m.estimate.as_dict(),
                "unit": o.unit,
            }
            for o in board.outcomes
            for m in o.figures
        ],
        "ranks": [
            {
                "benchmark": s.benchmark,
                "figure": s.figure.name,
                "model": model,
                "rank": rank,
                "probability": p,
            }
            for s in board.standings
            for model, shares in zip(s.models, s.probabilities, strict=True)
            for rank, p in enumerate(shares, 1)
        ],
        "differences": data["contrasts"],
        "agreement": data["agreement"],
        "asked": [
            {"benchmark": o.benchmark, "category": category, "items": items, "texts": texts}
            for o in {o.benchmark: o for o in board.outcomes}.values()
            for category, (items, texts) in o.counts_by_category.items()
        ],
        "cost": [
            {
                "model": o.model.title,
                "parameters": o.parameters,
                "benchmark": o.benchmark,
                "items": o.items,
                "tokens": o.tokens,
                "seconds": nan_to_none(round(o.seconds, 3)),
            }
            for o in board.outcomes
        ],
    }


def write_benchmark(board: Board, path: Path) -> None:
    """Write the page, whole or not at all."""
    write_text(path, render_benchmark(board))


def render_benchmark(board: Board) -> str:
    """The page as text."""
    specs, board = board.models, board.with_short_names()
    renamed = [(name, spec) for name, spec in zip(board.models, specs, strict=True) if name != spec]
    by_label = {table.label: table for table in benchmark_tables(board)}
    timed_outcomes = [o for o in board.outcomes if not math.isnan(o.seconds)]
    return pages.fill_template(
        pages.read_asset("kgbias.methods.benchmarks", "page.html"),
        board=board,
        called=renamed,
        style=pages.page_style(read_template_file("style.css")),
        warning=CONTENT_WARNING,
        standings=[
            (s, table, _standing_svg(s, number))
            for number, (s, table) in enumerate(
                zip(board.standings, by_label.values(), strict=False)
            )
        ],
        categories=[t for label, t in by_label.items() if label.startswith("figures-")],
        differences=by_label.get("differences"),
        told=[t for t in board.tests if t.differs],
        same=[t for t in board.tests if t.is_equivalent],
        agreement=by_label.get("agreement"),
        asked=[by_label[label] for label in ("models", "asked") if label in by_label],
        fewest=max((a.model_count for a in board.agreements), default=0),
        least_p=min((a.min_p_value for a in board.agreements), default=math.nan),
        cost=by_label.get("cost"),
        sizes=_size_plots(board),
        remarks=board.remarks,
        sources=list(dict.fromkeys((o.title, o.source) for o in board.outcomes)),
        shown=TableCard,
        methods=CORRECTION_NAMES,
        seconds=sum(o.seconds for o in timed_outcomes),
        tokens=sum(o.tokens for o in timed_outcomes),
    )


def _standing_svg(standing: Standing, number: int) -> Markup:
    title = f"{standing.name}, 95% intervals"
    return Markup(
        inline_svg(
            draw_standing_dots(standing), f"s{number}", title, "The numbers are in the table."
        )
    )


def draw_standing_dots(standing: Standing) -> Any:
    """One model per row, lowest first: its figure with its 95% interval, and the value for no
    bias."""
    with figure_style():
        rows = list(reversed(list(zip(standing.models, standing.values, strict=True))))
        figure, axes = make_row_figure(len(rows))
        for place, (_, estimate) in enumerate(rows):
            if estimate.is_shown:
                axes.plot(
                    [estimate.low, estimate.high], [place, place], color=INK_COLOR, linewidth=0.9
                )
            axes.plot([estimate.value], [place], "o", color=POSITIVE_COLOR, markersize=4.5)
        if standing.figure.unbiased is not None:
            axes.axvline(standing.figure.unbiased, color=NEUTRAL_COLOR, linewidth=1.2, zorder=1)
        axes.set_yticks(range(len(rows)), [shorten_name(name) for name, _ in rows])
        axes.set_ylim(-0.6, max(len(rows), 2) - 0.4)
        axes.set_xlabel(f"{standing.figure.title}")
        return figure


def _size_plots(board: Board) -> list[tuple[str, Markup]]:
    """A scatter plot against model size of each figure that three or more models of known size
    have."""
    parameter_counts = {o.model.name: o.parameters for o in board.outcomes if o.parameters}
    plots = []
    for number, standing in enumerate(board.standings):
        points = [
            SizePoint(parameter_counts[m], e.value, e.low, e.high, m)
            for m, e in zip(standing.models, standing.values, strict=True)
            if m in parameter_counts and not math.isnan(e.value)
        ]
        if len(points) > 2:
            svg = inline_svg(
                draw_size_scatter(points, standing.figure.title, standing.figure.unbiased),
                f"z{number}",
                f"{standing.name} against model size",
                "Sizes are in the table of costs.",
            )
            plots.append((standing.name, Markup(svg)))
    return plots


_LABEL_OVERLAP_DECADES = 0.2  # decades of size within which the labels of two points could overlap


class SizePoint(NamedTuple):
    """A model in the scatter: the number of its parameters, its figure with the ends of the
    interval, and its name."""

    parameters: int
    value: float
    low: float
    high: float
    name: str


def draw_size_scatter(points: Sequence[SizePoint], label: str, unbiased: float | None) -> Any:
    """A figure against the number of parameters, with intervals."""
    with figure_style():
        figure, axes = make_subplots(figsize=(COLUMN_INCHES, 2.6))
        axes.grid(True)
        axes.set_axisbelow(True)
        if unbiased is not None:
            axes.axhline(unbiased, color=NEUTRAL_COLOR, linewidth=1.2)
        axes.set_xscale("log")
        for size, value, low, high, name in points:
            # The lower of two labels that would overlap goes below its point.
            is_below = any(
                value < other.value
                and abs(math.log10(size / other.parameters)) < _LABEL_OVERLAP_DECADES
                for other in points
            )
            if not math.isnan(low):
                axes.plot([size, size], [low, high], color=INK_COLOR, linewidth=0.9)
            axes.plot([size], [value], "o", color=POSITIVE_COLOR, markersize=4.5)
            axes.annotate(
                shorten_name(name, 20),
                (size, value),
                xytext=(5, -9 if is_below else 3),
                textcoords="offset points",
                fontsize=7,
            )
        axes.margins(x=0.25)
        axes.xaxis.set_major_formatter(lambda size, _: _format_size(size))
        axes.xaxis.set_minor_formatter(lambda *_: "")
        axes.set_xlabel("parameters")
        axes.set_ylabel(label)
        return figure


def _format_size(parameters: float) -> str:
    """A size as people write it: 135M, 7B."""
    for unit, name in ((1e9, "B"), (1e6, "M"), (1e3, "k")):
        if parameters >= unit:
            return f"{parameters / unit:g}{name}"
    return f"{parameters:g}"
