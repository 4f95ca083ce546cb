"""The tables of a benchmark, for the page and for papers."""

import math
from collections.abc import Iterator
from typing import Any

from kgbias.benchmark import Board, Outcome
from kgbias.benchmark.board import CRAWL, EVERYONE
from kgbias.io.text import p_value
from kgbias.probe.benchmarks import Measured
from kgbias.report.tables import Table
from kgbias.stats.estimate import Estimate, finite

METHODS = {"holm": "Holm", "bh": "Benjamini-Hochberg"}


def tables(board: Board) -> Iterator[Table]:
    """Every table: standings, categories, differences, agreement, cost."""
    for s in board.standings:
        form = s.figure.form
        ranks = [f"P(rank {n + 1})" for n in range(len(s.models))]
        beside = [_cells(e, ".1f") for e in s.beside] or [[]] * len(s.models)
        yield Table(
            f"standing-{_slug(s.name)}", f"{s.name}, the nearest to no bias first.",
            ("Model", s.figure.name.replace("_", " "), "95% interval",
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
            ("Category", *(["Figure"] if several else []), *(o.model.name for o in rows[0][1])),
            [
                [domain.replace("_", " "), *([figure] if several else []),
                 *(_of(o, domain, figure) for o in own)]
                for (domain, figure), own in rows
            ],
            "With 95% intervals." if several else f"{only.pop()}, with 95% intervals.",
        )  # fmt: skip
    if board.tests:
        yield Table(
            "differences", "Differences between models.",
            ("Benchmark", "Figure", "First", "Second", "n", "difference", "95% interval", "p",
             "p corrected"),
            [
                [CRAWL if t.group == EVERYONE else t.group, t.measure.replace("_", " "),
                 t.first, t.second, str(min(t.n)), *_cells(t.difference, "+.3g"),
                 _p(t.p), _p(t.p_adjusted)]
                for t in board.tests
            ],
            "First minus second, of the figure itself, which is no distance from no bias. A "
            "difference is shown where the corrected p is at most 0.05 and the interval leaves out "
            "0. "
            f"p by permutation; corrected over all {len(board.tests)} tests by "
            f"{METHODS[board.tests[0].correction]}.",
        )  # fmt: skip
    if board.agreements:
        n = max(a.n for a in board.agreements)  # of all models, where some figures have fewer
        alike = [a for a in board.agreements if a.n == n]
        names = list(dict.fromkeys(name for a in alike for name in (a.first, a.second)))
        tau = {(a.first, a.second): a.tau for a in alike}
        tau |= {(second, first): value for (first, second), value in tau.items()}
        yield Table(
            "agreement", "Agreement of the orders of models, Kendall's tau.",
            ("", *(str(k + 1) for k in range(len(names)))),
            [[f"{k + 1} {a}", *("1" if a == b else _tau(tau.get((a, b))) for b in names)]
             for k, a in enumerate(names)],
            f"{n} models: no order of so few has a p-value below {2 / math.factorial(n):.2g}.",
        )  # fmt: skip
    if board.outcomes:
        yield Table(
            "cost", "What it took.",
            ("Model", "parameters", "Benchmark", "items", "tokens", "seconds", "tokens/s"),
            [
                [o.model.name, "-" if o.parameters is None else f"{o.parameters:,}", o.title,
                 f"{o.items:,}", f"{o.tokens:,}" if o.tokens else "-",
                 "-" if math.isnan(o.seconds) else f"{o.seconds:.1f}",
                 f"{o.tokens / o.seconds:,.0f}" if o.seconds > 0 else "-"]
                for o in board.outcomes
            ],
        )  # fmt: skip


Rows = list[tuple[tuple[str, str], list[Outcome]]]


def by_benchmark(board: Board) -> dict[str, Rows]:
    """Of each benchmark its domains and figures, with the models that were scored on it."""
    found: dict[str, Rows] = {}
    for title in dict.fromkeys(o.title for o in board.outcomes):
        own = [o for o in board.outcomes if o.title == title]
        keys = dict.fromkeys((m.domain, m.figure) for o in own for m in o.measured)
        found[title] = [(key, own) for key in keys]
    return found


def measured(o: Outcome, domain: str, figure: str) -> Measured | None:
    """That figure of the model; None where it has none."""
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
    return "-" if math.isnan(p) else p_value(p)


def _tau(value: float | None) -> str:
    return "-" if value is None or math.isnan(value) else f"{value:.2f}"


def _slug(text: str) -> str:
    words = "".join(c if c.isascii() and c.isalnum() else " " for c in text.lower()).split()
    return "-".join(words)


def records(board: Board) -> dict[str, list[dict[str, Any]]]:
    """The same as rows of plain numbers, by the name of a file."""
    data = board.as_dict()
    return {
        "figures": [
            {"model": o.model.name, "revision": o.model.revision, "benchmark": o.benchmark,
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
        "cost": [
            {"model": o.model.name, "parameters": o.parameters, "benchmark": o.benchmark,
             "items": o.items, "tokens": o.tokens, "seconds": finite(round(o.seconds, 3))}
            for o in board.outcomes
        ],
    }  # fmt: skip
