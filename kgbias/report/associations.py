"""Association tests as files: a LaTeX table and a figure for a paper, and CSV."""

import csv
import io
import math
from collections.abc import Callable, Sequence
from pathlib import Path

from kgbias.associate.compare import Row, agreements, distinct_methods
from kgbias.errors import MissingExtra, UsageError
from kgbias.io.files import whole_file, write_text
from kgbias.io.text import defused, latex

COLUMNS = (
    "test", "method", "model", "model_revision", "effect_size", "low", "high", "p_value",
    "p_permutation", "p_holm", "p_bh", "tails", "p_method", "partitions", "n_x", "n_y", "n_a",
    "n_b", "few_stimuli", "unequal", "missing", "settings", "id",
)  # fmt: skip


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
        writer.writerow({name: defused(value) for name, value in flat.items()})
    return file.getvalue()


def to_latex(rows: Sequence[Row], alpha: float = 0.05) -> str:
    """A booktabs table: tests and models down, methods across, effect sizes with * where the
    Holm-corrected p is at most `alpha`; then the correlations of the methods."""
    rows = distinct_methods(rows)
    methods = list(dict.fromkeys(row["method"] for row in rows))
    cells = {(row["model"], row["test"], row["method"]): row for row in rows}
    lines = [
        f"% {len(rows)} results; * Holm-corrected p <= {alpha}",
        rf"\begin{{tabular}}{{ll{'r' * len(methods)}}}",
        r"\toprule",
        " & ".join(["Model", "Test", *map(latex, methods)]) + r" \\",
        r"\midrule",
    ]
    for model, test in dict.fromkeys((row["model"], row["test"]) for row in rows):
        line = [latex(model), latex(test)]
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
            pair = f"{latex(a.methods[0])} $|$ {latex(a.methods[1])}"
            which = f"Holm $p \\leq {alpha:g}$" if a.significant else "all"
            lines.append(
                f"{latex(a.model)} & {pair} & {which} & {a.n} & {_figure(a.pearson)} & "
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
    rows = distinct_methods(rows)
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
        with whole_file(path) as partial:
            figure.savefig(partial)
    except ValueError as error:  # no such format
        raise UsageError(f"cannot write the figure {path}: {error}") from error


def write(rows: Sequence[Row], path: Path) -> None:
    """Write the comparison as the file's extension says: .tex, .csv, or a figure."""
    forms: dict[str, Callable[[Sequence[Row]], str]] = {".tex": to_latex, ".csv": to_csv}
    if path.suffix.lower() not in forms:
        draw(rows, path)
        return
    write_text(path, forms[path.suffix.lower()](rows))


def _figure(value: float, star: bool = False) -> str:
    return "n/a" if math.isnan(value) else f"${value:.2f}$" + ("*" if star else "")
