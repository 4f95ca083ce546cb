"""Tests x methods x models side by side, and how far the methods agree (tables 3 to 5 of "Mind Your
Bias")."""

import csv
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from kgbias.associate.effect import Array
from kgbias.errors import DataError, MissingExtra, UsageError
from kgbias.statistics import ranks

Row = dict[str, Any]

COLUMNS = (
    "test", "method", "model", "model_revision", "effect_size", "low", "high", "p_value",
    "p_permutation", "p_holm", "p_bh", "tails", "p_method", "partitions", "n_x", "n_y", "n_a",
    "n_b", "few_stimuli", "unequal", "missing", "settings", "id",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Agreement:
    """How two methods agree on one model, over the `n` tests that both have; NaN below 3 tests or
    where one of them is constant. `significant` counts only tests that both find (Holm, 5%)."""

    model: str
    methods: tuple[str, str]
    significant: bool
    n: int
    pearson: float
    spearman: float


def agreements(rows: Sequence[Row], alpha: float = 0.05) -> list[Agreement]:
    """Pearson's and Spearman's correlation of the effect sizes of each pair of methods, by model,
    over all tests and over those where both are significant."""
    found = []
    for model in dict.fromkeys(row["model"] for row in rows):
        mine = {(r["method"], r["test"]): r for r in rows if r["model"] == model}
        methods = dict.fromkeys(method for method, _ in mine)
        for one, other in combinations(methods, 2):
            tests = [test for method, test in mine if method == one and (other, test) in mine]
            for significant in (False, True):
                pairs = [
                    (mine[one, test], mine[other, test])
                    for test in tests
                    if not significant
                    or max(mine[one, test]["p_holm"], mine[other, test]["p_holm"]) <= alpha
                ]
                x = np.array([a["effect_size"] for a, _ in pairs])
                y = np.array([b["effect_size"] for _, b in pairs])
                found.append(
                    Agreement(
                        model, (one, other), significant, len(pairs), pearson(x, y), spearman(x, y)
                    )
                )
    return found


def pearson(x: Array, y: Array) -> float:
    """Pearson's correlation in [-1, 1]; NaN below 3 pairs, or where a side is constant."""
    if len(x) < 3 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return float("nan")
    return float(np.corrcoef(x, y)[0, 1])


def spearman(x: Array, y: Array) -> float:
    """Spearman's rank correlation: Pearson's of the ranks, ties sharing their mean rank."""
    return pearson(ranks(x), ranks(y))


def to_csv(rows: Sequence[Row]) -> str:
    """One line a result; what would be a formula in a spreadsheet gets an apostrophe."""
    file = io.StringIO()
    writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
    writer.writeheader()
    for row in rows:
        flat = {name: row.get(name, "") for name in COLUMNS}
        flat |= {f"n_{role}": n for role, n in row["n"].items()}
        flat["missing"] = " ".join(f"{k}:{'|'.join(v)}" for k, v in row["missing"].items() if v)
        flat["settings"] = " ".join(f"{k}={v}" for k, v in row["settings"].items())
        writer.writerow({name: _defused(value) for name, value in flat.items()})
    return file.getvalue()


def to_latex(rows: Sequence[Row], alpha: float = 0.05) -> str:
    """A booktabs table: tests and models down, methods across, effect sizes with * where the
    Holm-corrected p is at most `alpha`; then the correlations of the methods."""
    methods = list(dict.fromkeys(row["method"] for row in rows))
    cells = {(row["model"], row["test"], row["method"]): row for row in rows}
    lines = [
        f"% {len(rows)} results; * Holm-corrected p <= {alpha}",
        rf"\begin{{tabular}}{{ll{'r' * len(methods)}}}",
        r"\toprule",
        " & ".join(["Model", "Test", *map(_tex, methods)]) + r" \\",
        r"\midrule",
    ]
    for model, test in dict.fromkeys((row["model"], row["test"]) for row in rows):
        line = [_tex(model), _tex(test)]
        for method in methods:
            cell = cells.get((model, test, method))
            line.append(_figure(cell["effect_size"], cell["p_holm"] <= alpha) if cell else "n/a")
        lines.append(" & ".join(line) + r" \\")
    lines += [r"\bottomrule", r"\end{tabular}", ""]
    if len(methods) > 1:
        lines += [
            r"\begin{tabular}{lllrrr}",
            r"\toprule",
            r"Model & Methods & Tests & $n$ & Pearson & Spearman \\",
            r"\midrule",
        ]
        for a in agreements(rows, alpha):
            pair = f"{_tex(a.methods[0])} $|$ {_tex(a.methods[1])}"
            which = "significant" if a.significant else "all"
            lines.append(
                f"{_tex(a.model)} & {pair} & {which} & {a.n} & {_figure(a.pearson)} & "
                rf"{_figure(a.spearman)} \\"
            )
        lines += [r"\bottomrule", r"\end{tabular}", ""]
    return "\n".join(lines)


def draw(rows: Sequence[Row], path: Path) -> None:
    """A figure: one panel a model, one row a test, one mark a method with its interval; filled
    where the Holm-corrected p is at most 0.05. The format follows from the file's extension."""
    try:
        from matplotlib.figure import Figure
    except ModuleNotFoundError as error:
        raise MissingExtra("matplotlib", extra="figures") from error
    models = list(dict.fromkeys(row["model"] for row in rows))
    methods = list(dict.fromkeys(row["method"] for row in rows))
    tests = list(dict.fromkeys(row["test"] for row in rows))
    figure = Figure(figsize=(4.5 * len(models), 1.2 + 0.45 * len(tests)), layout="constrained")
    panels = figure.subplots(1, len(models), sharey=True, squeeze=False)[0]
    for panel, model in zip(panels, models, strict=True):
        for row in (row for row in rows if row["model"] == model):
            number = methods.index(row["method"])
            y = tests.index(row["test"]) + (number - (len(methods) - 1) / 2) * 0.15
            color = f"C{number}"
            panel.plot([row["low"], row["high"]], [y, y], color=color, linewidth=1)
            filled = color if row["p_holm"] <= 0.05 else "white"
            panel.plot(row["effect_size"], y, "o", color=color, markerfacecolor=filled)
        panel.axvline(0, color="0.6", linewidth=0.8)
        panel.set_title(model.replace("$", r"\$"), fontsize=9)
        panel.set_xlabel("effect size d (filled: Holm p ≤ 0.05)")
        panel.set_yticks(range(len(tests)), [test.replace("$", r"\$") for test in tests])
        panel.set_ylim(len(tests) - 0.5, -0.5)
    for number, method in enumerate(methods):
        panels[0].plot([], [], "o", color=f"C{number}", label=method)
    panels[0].legend(fontsize=8)
    try:
        figure.savefig(path)
    except (OSError, ValueError) as error:
        raise UsageError(f"cannot write the figure {path}: {error}") from error


def write(rows: Sequence[Row], path: Path) -> None:
    """Write the comparison as the file's extension says: .tex, .csv, or a figure."""
    forms: dict[str, Callable[[Sequence[Row]], str]] = {".tex": to_latex, ".csv": to_csv}
    if path.suffix.lower() not in forms:
        draw(rows, path)
        return
    try:
        path.write_text(forms[path.suffix.lower()](rows), "utf-8")
    except OSError as error:
        raise DataError(f"cannot write {path}: {error.strerror}") from error


def _figure(value: float, star: bool = False) -> str:
    return "n/a" if np.isnan(value) else f"${value:.2f}$" + ("*" if star else "")


def _tex(text: str) -> str:
    special = {
        "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
        **{c: "\\" + c for c in "&%$#_{}"},
    }  # fmt: skip
    return "".join(special.get(c, c) for c in text)


def _defused(value: Any) -> Any:
    if isinstance(value, str) and value.startswith(("=", "+", "-", "@", "\t", "\r", "\n")):
        return "'" + value
    return value
