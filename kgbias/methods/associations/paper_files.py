"""Association tests as files: a LaTeX table and a figure for a paper, and CSV; and the tables and
figures of "Mind Your Bias" (2022) from a grid of them, as a folder of files."""

import csv
import io
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from kgbias.errors import MissingExtra, UsageError
from kgbias.io.files import replace_file, write_text
from kgbias.io.text import escape_formula, latex
from kgbias.io.wording import pluralise
from kgbias.methods.associations.grid import ENCODINGS, WORD_CHOICES
from kgbias.methods.associations.method_agreement import (
    RecordRow,
    measure_agreements,
    name_distinct_methods,
    pearson,
    spearman,
)

CSV_COLUMNS = (
    "test",
    "method",
    "model",
    "model_revision",
    "effect_size",
    "low",
    "high",
    "p_value",
    "p_permutation",
    "p_holm",
    "p_bh",
    "tails",
    "p_method",
    "partitions",
    "n_x",
    "n_y",
    "n_a",
    "n_b",
    "few_stimuli",
    "unequal",
    "missing",
    "settings",
    "id",
)


def to_csv(rows: Sequence[RecordRow]) -> str:
    """One line per result; what a spreadsheet would read as a formula gets an apostrophe."""
    file = io.StringIO()
    writer = csv.DictWriter(file, CSV_COLUMNS, lineterminator="\n")
    writer.writeheader()
    for row in rows:
        flat = {name: row.get(name, "") for name in CSV_COLUMNS}
        flat |= {f"n_{role}": n for role, n in row["n"].items()}
        flat["missing"] = " ".join(f"{k}:{'|'.join(v)}" for k, v in row["missing"].items() if v)
        flat["settings"] = " ".join(f"{k}={v}" for k, v in row["settings"].items())
        writer.writerow({name: escape_formula(value) for name, value in flat.items()})
    return file.getvalue()


def to_latex(rows: Sequence[RecordRow], alpha: float = 0.05) -> str:
    """A booktabs table: tests and models down, methods across, effect sizes with * where the
    Holm-corrected p is at most `alpha`; then the correlations of the methods."""
    rows = name_distinct_methods(rows)
    methods = list(dict.fromkeys(row["method"] for row in rows))
    cells = {(row["model"], row["test"], row["method"]): row for row in rows}
    lines = [
        f"% {pluralise(len(rows), 'result')}; * Holm-corrected p <= {alpha}",
        rf"\begin{{tabular}}{{ll{'r' * len(methods)}}}",
        r"\toprule",
        " & ".join(["Model", "Test", *map(latex, methods)]) + r" \\",
        r"\midrule",
    ]
    for model, test in dict.fromkeys((row["model"], row["test"]) for row in rows):
        line = [latex(model), latex(test)]
        for method in methods:
            cell = cells.get((model, test, method))
            line.append(
                _latex_number(cell["effect_size"], cell["p_holm"] <= alpha) if cell else "n/a"
            )
        lines.append(" & ".join(line) + r" \\")
    lines += [r"\bottomrule", r"\end{tabular}", ""]
    if len(methods) > 1:
        lines += [
            r"\begin{tabular}{lllrrr}",
            r"\toprule",
            r"Model & Methods & Tests & $n$ & Pearson & Spearman \\",
            r"\midrule",
        ]
        for agreement in measure_agreements(rows, alpha):
            pair = f"{latex(agreement.methods[0])} $|$ {latex(agreement.methods[1])}"
            scope = f"Holm $p \\leq {alpha:g}$" if agreement.significant else "all"
            lines.append(
                f"{latex(agreement.model)} & {pair} & {scope} & {agreement.n} & "
                f"{_latex_number(agreement.pearson)} & "
                rf"{_latex_number(agreement.spearman)} \\"
            )
        lines += [r"\bottomrule", r"\end{tabular}", ""]
    return "\n".join(lines)


def draw_comparison(rows: Sequence[RecordRow], path: Path) -> None:
    """A figure with a panel per model, a row per test and a mark per method with its interval,
    filled if the Holm-corrected p is at most 0.05. The file's extension sets the format."""
    try:
        from matplotlib.figure import Figure
    except ModuleNotFoundError as error:
        raise MissingExtra("matplotlib", extra="figures") from error
    rows = name_distinct_methods(rows)
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
            face_colour = color if row["p_holm"] <= 0.05 else "white"
            panel.plot(row["effect_size"], y, "o", color=color, markerfacecolor=face_colour)
        panel.axvline(0, color="0.6", linewidth=0.8)
        # a lone dollar sign could begin a formula
        panel.set_title(model.replace("$", r"\$"), fontsize=9)
        panel.set_xlabel("effect size d (filled: Holm p ≤ 0.05)")
        panel.set_yticks(range(len(tests)), [test.replace("$", r"\$") for test in tests])
        panel.set_ylim(len(tests) - 0.5, -0.5)
    for number, method in enumerate(methods):
        panels[0].plot([], [], "o", color=f"C{number}", label=method)
    panels[0].legend(fontsize=8)
    try:
        with replace_file(path) as partial:
            figure.savefig(partial)
    except ValueError as error:  # no such format
        raise UsageError(f"cannot write the figure {path}: {error}") from error


def write_comparison(rows: Sequence[RecordRow], path: Path) -> None:
    """Write the comparison in the format of the file's extension: .tex, .csv, or a figure."""
    forms: dict[str, Callable[[Sequence[RecordRow]], str]] = {".tex": to_latex, ".csv": to_csv}
    if path.suffix.lower() not in forms:
        draw_comparison(rows, path)
        return
    write_text(path, forms[path.suffix.lower()](rows))


def _latex_number(value: float, star: bool = False) -> str:
    return "n/a" if math.isnan(value) else f"${value:.2f}$" + ("*" if star else "")


SIGNIFICANCE_LEVEL = 0.05
# Of the columns of each axis.
_FORMS = {"nouns": "nouns", "simplified": "adjectives"}  # of attributes, in table 6
_ORDER = (
    "names",
    "terms",
    "templates",
    "corpus",
    *ENCODINGS,
    *reversed(WORD_CHOICES),
    "adjectives",
)
METHODS = {
    "s-seat": "s-SEAT",
    "w-seat": "w-SEAT",
    "ceat": "CEAT",
    "lpbs": "LPBS",
    "ceat-lpbs": "CEAT over LPBS",
}


@dataclass(frozen=True, slots=True)
class GridTable:
    """A table: `name` names its file, `title` says what it compares and which table of the paper it
    is; `rows` holds the cells, numbers as numbers (NaN: no such cell)."""

    name: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    significant: frozenset[tuple[int, int]] = frozenset()

    def as_csv(self) -> str:
        file = io.StringIO()
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([*self.columns])
        for number, row in enumerate(self.rows):
            cells = []
            for place, value in enumerate(row):
                if not isinstance(value, float):
                    cells.append(escape_formula(value))
                elif math.isnan(value):
                    cells.append("")
                else:
                    star = "*" if (number, place) in self.significant else ""
                    cells.append(f"{value:.4f}{star}")
            writer.writerow(cells)
        return file.getvalue()

    def as_latex(self) -> str:
        """A booktabs table; * where the p-value, corrected by Holm over the grid, is at most 5%."""
        words = sum(isinstance(value, str) for value in self.rows[0]) if self.rows else 1
        lines = [
            f"% {self.title}",
            r"% needs \usepackage{booktabs,graphicx}",
            r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%",
            rf"\begin{{tabular}}{{{'l' * words}{'r' * (len(self.columns) - words)}}}",
            r"\toprule",
            " & ".join(map(latex, self.columns)) + r" \\",
            r"\midrule",
        ]
        for number, row in enumerate(self.rows):
            cells = [
                self._cell(value, (number, place) in self.significant)
                for place, value in enumerate(row)
            ]
            lines.append(" & ".join(cells) + r" \\")
        return "\n".join([*lines, r"\bottomrule", r"\end{tabular}}", ""])

    @staticmethod
    def _cell(value: Any, star: bool) -> str:
        if isinstance(value, float):
            return "n/a" if math.isnan(value) else f"${value:.2f}$" + ("*" if star else "")
        return latex(str(value))


Axis = Callable[[RecordRow], str]


def grid_tables(rows: Sequence[RecordRow]) -> list[GridTable]:
    """Tables 3 to 8 and 11 to 14, the numbers behind figure 2, how far models agree, and the counts
    of significant tests. A table whose axis the grid did not vary has a single column for it."""
    as_nouns = {_concept(row) for row in rows if _words(row) == "nouns"}
    return [
        _pivot_table("table-3-scores", "Scores by method and model (table 3)", rows, _model, {}),
        _pivot_table(
            "table-4-lpbs-words",
            "LPBS by word sets (table 4)",
            _rows_of_methods(rows, "lpbs"),
            _words,
            {"words": ...},
            only=lambda r: _words(r) != "nouns",
        ),
        _correlation_table(rows),
        _pivot_table(
            "table-6-nouns",
            "LPBS with attributes as nouns and as adjectives (table 6)",
            _rows_of_methods(rows, "lpbs"),
            lambda r: _FORMS[_words(r)],
            {"words": ...},
            only=lambda r: _words(r) in _FORMS and _concept(r) in as_nouns,
        ),
        _runtime_table(7, "C1", rows),
        _runtime_table(8, "C6", rows),
        _size_table(rows),
        _model_agreement_table(rows),
        _pivot_table(
            "table-11-targets",
            "Names against terms (table 11)",
            rows,
            _targets,
            {"targets": ...},
            only=lambda r: bool(_targets(r)),
        ),
        _pivot_table(
            "table-12-contexts",
            "Templates against a corpus (table 12)",
            rows,
            _contexts,
            {"contexts": ...},
        ),
        _pivot_table(
            "table-13-encodings",
            "Sentence against word encodings (table 13)",
            _rows_of_methods(rows, "s-seat", "w-seat", "ceat"),
            _encoding,
            {"encoding": ...},
            method=lambda r: "CEAT" if r["method"] == "ceat" else "SEAT",
        ),
        _pivot_table(
            "table-14-metrics",
            "Cosine against probability in CEAT, by word sets (table 14)",
            _rows_of_methods(rows, "ceat", "ceat-lpbs"),
            _words,
            {"words": ...},
            method=lambda r: "cosine" if r["method"] == "ceat" else "probability",
        ),
        _count_table(rows),
        _settings_table(rows),
    ]


def write_grid(rows: Sequence[RecordRow], folder: Path) -> list[Path]:
    """Write every table (.tex, .csv) and figure (.svg) that the grid has data for, and return the
    paths."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for table in (table for table in grid_tables(rows) if table.rows):
        for suffix, text in ((".tex", table.as_latex()), (".csv", table.as_csv())):
            path = folder / f"{table.name}{suffix}"
            write_text(path, text)
            paths.append(path)
    for name, draw in grid_figures(rows):
        path = folder / f"{name}.svg"
        _save_drawing(path, draw)
        paths.append(path)
    return paths


def base_rows(rows: Sequence[RecordRow], **free: Any) -> list[RecordRow]:
    """The rows in the setting that tables hold fixed: templates, full word sets, names, words
    averaged, except what is `free`."""
    return [row for row in rows if _is_base(row, free)]


def _is_base(row: RecordRow, free: Mapping[str, Any]) -> bool:
    cell = row["cell"]
    fixed_values = {
        "contexts": ("templates",),
        "words": ("full",),
        "encoding": ("word-average",) if row["method"] in ("w-seat", "ceat") else ("sentence", ""),
        "apart": (0, 18),  # 0: not of pairs in a corpus; 18: as in the paper
    }
    is_fixed = all(
        cell[name] in values for name, values in fixed_values.items() if name not in free
    )
    return is_fixed and ("targets" in free or _targets(row) != "terms")


def _targets(row: RecordRow) -> str:
    return {"-name": "names", "-term": "terms"}.get(row["cell"]["test"][-5:], "")


def _concept(row: RecordRow) -> str:
    return str(row["cell"]["test"]).removesuffix("-name").removesuffix("-term")


def _model(row: RecordRow) -> str:
    return str(row["cell"]["model"])


def _contexts(row: RecordRow) -> str:
    return str(row["cell"]["contexts"])


def _words(row: RecordRow) -> str:
    return str(row["cell"]["words"])


def _encoding(row: RecordRow) -> str:
    return str(row["cell"]["encoding"])


def _rows_of_methods(rows: Sequence[RecordRow], *methods: str) -> list[RecordRow]:
    return [row for row in rows if row["method"] in methods]


def _pivot_table(
    name: str,
    title: str,
    rows: Sequence[RecordRow],
    across: Axis,
    free: Mapping[str, Any],
    *,
    method: Axis = lambda row: METHODS[row["method"]],
    only: Axis | Callable[[RecordRow], bool] = lambda row: True,
) -> GridTable:
    """Tests and methods down; models and the axis across."""
    shown_rows = [row for row in base_rows(rows, **free) if only(row)]
    by_model = across is _model
    models = list(dict.fromkeys(_model(row) for row in shown_rows))
    columns: list[tuple[str, ...]] = [(name,) for name in models]
    if not by_model:
        columns = sorted(
            {(_model(row), across(row)) for row in shown_rows},
            key=lambda column: (models.index(column[0]), _ORDER.index(column[1])),
        )
    lines = dict.fromkeys((_concept(row), method(row)) for row in shown_rows)
    cells: dict[tuple[str, str, tuple[str, ...]], RecordRow] = {
        (_concept(r), method(r), (across(r),) if by_model else (_model(r), across(r))): r
        for r in shown_rows
    }
    table, significant = [], set()
    for number, line in enumerate(sorted(lines)):
        values: list[Any] = [*line]
        for place, column in enumerate(columns, len(line)):
            row = cells.get((*line, column))
            values.append(float("nan") if row is None else float(row["effect_size"]))
            if row is not None and row["p_holm"] <= SIGNIFICANCE_LEVEL:
                significant.add((number, place))
        table.append(tuple(values))
    heads = (" ".join(column) for column in columns)
    return GridTable(name, title, ("test", "method", *heads), tuple(table), frozenset(significant))


def _correlation_table(rows: Sequence[RecordRow]) -> GridTable:
    """Table 5: Pearson's correlation of each pair of methods over tests, all and significant."""
    fixed_rows = base_rows(rows)
    table = []
    for model in dict.fromkeys(map(_model, fixed_rows)):
        by_method = {
            (row["method"], _concept(row)): row for row in fixed_rows if _model(row) == model
        }
        for first, second in combinations(dict.fromkeys(method for method, _ in by_method), 2):
            pairs = [
                (by_method[first, test], by_method[second, test])
                for method, test in by_method
                if method == first and (second, test) in by_method
            ]
            significant_pairs = [
                p for p in pairs if max(row["p_holm"] for row in p) <= SIGNIFICANCE_LEVEL
            ]
            table.append(
                (
                    model,
                    f"{METHODS[first]} | {METHODS[second]}",
                    _pearson(pairs),
                    len(pairs),
                    _pearson(significant_pairs),
                    len(significant_pairs),
                )
            )
    columns = ("model", "methods", "all", "n", "Holm p <= 5%", "n of these")
    return GridTable("table-5-methods", "Correlation of methods (table 5)", columns, tuple(table))


def _pearson(pairs: Sequence[tuple[RecordRow, RecordRow]]) -> float:
    x, y = (np.array([pair[side]["effect_size"] for pair in pairs]) for side in (0, 1))
    return pearson(x, y)


def _settings_table(rows: Sequence[RecordRow]) -> GridTable:
    """How far the settings of one method agree: for each pair of values on an axis, all else equal,
    the correlations of the effect sizes, how often the signs agree, and the mean change."""
    axes: dict[str, Axis] = {
        "targets": _targets,
        "contexts": _contexts,
        "encoding": _encoding,
        "words": _words,
    }
    table = []
    for axis, value in axes.items():
        by_rest: dict[tuple[str, ...], dict[str, RecordRow]] = {}
        for row in (row for row in rows if row["cell"]["apart"] in (0, 18) and value(row)):
            other_settings = tuple(f(row) for name, f in axes.items() if name != axis)
            key = (_model(row), row["method"], _concept(row), *other_settings)
            by_rest.setdefault(key, {})[value(row)] = row
        keys = dict.fromkeys((key[0], key[1]) for key in by_rest)
        for model, method in keys:
            same_method = [values for key, values in by_rest.items() if key[:2] == (model, method)]
            names = dict.fromkeys(name for values in same_method for name in values)
            for first, second in combinations(names, 2):
                pairs = [(v[first], v[second]) for v in same_method if first in v and second in v]
                if pairs:
                    table.append(
                        (
                            model,
                            METHODS[method],
                            axis,
                            f"{first} | {second}",
                            *_agreement_figures(pairs),
                        )
                    )
    columns = (
        "model",
        "method",
        "axis",
        "settings",
        "pearson",
        "spearman",
        "same sign",
        "mean change",
        "n",
    )
    return GridTable("settings", "Agreement of settings", columns, tuple(table))


class _EffectAgreement(NamedTuple):
    """How far two sets of effect sizes agree, and over how many tests."""

    pearson: float
    spearman: float
    same_sign: float
    mean_change: float
    n: int


def _agreement_figures(pairs: Sequence[tuple[RecordRow, RecordRow]]) -> _EffectAgreement:
    x, y = (np.array([pair[side]["effect_size"] for pair in pairs]) for side in (0, 1))
    return _EffectAgreement(
        pearson(x, y),
        spearman(x, y),
        float(np.mean(np.sign(x) == np.sign(y))),
        float(np.mean(np.abs(x - y))),
        len(pairs),
    )


def _runtime_table(number: int, test: str, rows: Sequence[RecordRow]) -> GridTable:
    """Tables 7 and 8: seconds by method and model; NaN for cells stored before they were timed."""
    fixed_rows = [row for row in base_rows(rows) if _concept(row) == test]
    models = tuple(dict.fromkeys(map(_model, fixed_rows)))
    seconds = {
        (row["method"], _model(row)): float(row.get("seconds", math.nan)) for row in fixed_rows
    }
    return GridTable(
        f"table-{number}-runtimes",
        f"Seconds for {test}, embeddings not counted (table {number})",
        ("method", *models),
        tuple(
            (METHODS[method], *(seconds.get((method, model), math.nan) for model in models))
            for method in METHODS
            if any((method, model) in seconds for model in models)
        ),
    )


class _SetSizes(NamedTuple):
    """How many words a test has in all four sets, full and reduced to a model's vocabulary; NaN if
    a reduced set has no word left."""

    test: str
    model: str
    full: float
    reduced: float


def _count_set_words(rows: Sequence[RecordRow]) -> list[_SetSizes]:
    """The sizes of the sets of each test, by LPBS, or by w-SEAT."""
    size_rows = _rows_of_methods(rows, "lpbs") or _rows_of_methods(rows, "w-seat")
    sizes: dict[tuple[str, str], dict[str, float]] = {}
    for row in base_rows(size_rows, words=..., targets=...):
        if _words(row) in ("full", "reduced"):
            by_words = sizes.setdefault((str(row["cell"]["test"]), _model(row)), {})
            by_words[_words(row)] = float(sum(row["n"].values()))
    return [
        _SetSizes(test, model, counts.get("full", math.nan), counts.get("reduced", math.nan))
        for (test, model), counts in sorted(sizes.items())
    ]


def _size_table(rows: Sequence[RecordRow]) -> GridTable:
    """The numbers behind figure 2."""
    table = [(*size, 100 * (1 - size.reduced / size.full)) for size in _count_set_words(rows)]
    columns = ("test", "model", "full", "reduced", "percent lost")
    return GridTable("figure-2-sizes", "Words of the four sets (figure 2)", columns, tuple(table))


def _model_agreement_table(rows: Sequence[RecordRow]) -> GridTable:
    """How far models agree: for each pair and method, over all cells that both have."""
    by_cell: dict[tuple[Any, ...], dict[str, RecordRow]] = {}
    for row in rows:
        settings = tuple(value for name, value in row["cell"].items() if name != "model")
        by_cell.setdefault((row["method"], *settings), {})[_model(row)] = row
    table = []
    models = list(dict.fromkeys(map(_model, rows)))
    for method, (first, second) in product(METHODS, combinations(models, 2)):
        pairs = [
            (v[first], v[second])
            for key, v in by_cell.items()
            if key[0] == method and first in v and second in v
        ]
        if pairs:
            table.append((METHODS[method], f"{first} | {second}", *_agreement_figures(pairs)))
    columns = ("method", "models", "pearson", "spearman", "same sign", "mean change", "n")
    return GridTable("models", "Agreement of models", columns, tuple(table))


def _count_table(rows: Sequence[RecordRow]) -> GridTable:
    """Significant cells, corrected and uncorrected side by side."""
    table = []
    for model, method in dict.fromkeys((_model(row), row["method"]) for row in rows):
        model_rows = [row for row in rows if (_model(row), row["method"]) == (model, method)]
        counts = [
            sum(row[key] <= SIGNIFICANCE_LEVEL for row in model_rows)
            for key in ("p_value", "p_test", "p_bh", "p_holm")
        ]
        table.append((model, METHODS[method], len(model_rows), *counts))
    columns = ("model", "method", "tests", "p as published", "permutation p", "BH", "Holm")
    return GridTable(
        "significant",
        "Tests with p of at most 5%, by correction over the grid",
        columns,
        tuple(table),
    )


DrawFunction = Callable[[Any], None]


class _MatchedRows(NamedTuple):
    """Pairs of rows that differ in one axis alone, and what its two values are called."""

    first_label: str
    second_label: str
    pairs: list[tuple[RecordRow, RecordRow]]


def grid_figures(rows: Sequence[RecordRow]) -> Iterator[tuple[str, DrawFunction]]:
    """Figures 1 to 5, as functions that draw into a matplotlib figure."""
    target_rows = [row for row in base_rows(rows, targets=...) if _targets(row)]
    axis_pairs = [
        _MatchedRows("names", "terms", _match_rows(target_rows, _targets, "names", "terms")),
        _MatchedRows(
            "templates",
            "corpus",
            _match_rows(base_rows(rows, contexts=...), _contexts, "templates", "corpus"),
        ),
    ]
    if any(matched.pairs for matched in axis_pairs):
        yield "figure-1-targets-and-contexts", lambda figure: _draw_pairs(figure, axis_pairs)
    sizes = [size for size in _count_set_words(rows) if not math.isnan(size.full)]
    if any(not math.isnan(size.reduced) for size in sizes):
        yield "figure-2-sizes", lambda figure: _draw_sizes(figure, sizes)
    shapes = [
        row
        for row in base_rows(rows, words=...)
        if row["cell"]["test"] == "C1" and "quantiles" in row
    ]
    if shapes:
        yield "figure-3-word-sets", lambda figure: _draw_distributions(figure, shapes)
    windows = [r for r in base_rows(rows, contexts=..., apart=...) if r["cell"]["apart"]]
    if windows:
        yield "figure-4-windows", lambda figure: _draw_windows(figure, windows)
    methods = [m for m in METHODS if any(row["method"] == m for row in base_rows(rows))]
    if len(methods) > 1:
        method_pairs = [
            _MatchedRows(
                METHODS[one],
                METHODS[other],
                _match_rows(base_rows(rows), lambda row: row["method"], one, other),
            )
            for one, other in combinations(methods, 2)
        ]
        yield "figure-5-methods", lambda figure: _draw_pairs(figure, method_pairs)


def _match_rows(
    rows: Sequence[RecordRow], axis: Axis, first_value: str, second_value: str
) -> list[tuple[RecordRow, RecordRow]]:
    """Pairs of rows that differ only in the axis: the same model and test, and the same method
    unless that is the axis."""
    by_key: dict[tuple[str, ...], dict[str, RecordRow]] = {}
    for row in rows:
        method = "" if row["method"] == axis(row) else row["method"]
        key = (_model(row), method, _concept(row))
        by_key.setdefault(key, {})[axis(row)] = row
    return [
        (v[first_value], v[second_value])
        for v in by_key.values()
        if first_value in v and second_value in v
    ]


def _draw_pairs(figure: Any, pair_sets: Sequence[_MatchedRows]) -> None:
    """Scatter plots of effect sizes, filled where both are significant, a colour for each model."""
    filled_sets = [matched for matched in pair_sets if matched.pairs]
    columns = min(3, len(filled_sets))
    panel_rows = math.ceil(len(filled_sets) / columns)
    figure.set_size_inches(3.6 * columns, 3.4 * panel_rows)
    # Both rows of a pair are of one model.
    models = dict.fromkeys(_model(first) for matched in filled_sets for first, _ in matched.pairs)
    colors = {model: f"C{number}" for number, model in enumerate(models)}
    panels = figure.subplots(panel_rows, columns, squeeze=False).ravel()
    for panel, (first_label, second_label, pairs) in zip(panels, filled_sets, strict=False):
        for first, second in pairs:
            color = colors[_model(first)]
            is_significant = max(first["p_holm"], second["p_holm"]) <= SIGNIFICANCE_LEVEL
            panel.plot(
                first["effect_size"],
                second["effect_size"],
                "o",
                color=color,
                markersize=5,
                markerfacecolor=color if is_significant else "white",
            )
        panel.axline((0, 0), slope=1, color="0.8", linewidth=0.8)
        panel.axhline(0, color="0.8", linewidth=0.8)
        panel.axvline(0, color="0.8", linewidth=0.8)
        panel.set(
            xlabel=f"d, {first_label}",
            ylabel=f"d, {second_label}",
            xlim=(-2.1, 2.1),
            ylim=(-2.1, 2.1),
        )
    for panel in panels[len(filled_sets) :]:
        panel.axis("off")
    for model, color in colors.items():
        panels[0].plot([], [], "o", color=color, label=model.replace("$", r"\$"))
    panels[0].legend(fontsize=7)


def _draw_sizes(figure: Any, sizes: Sequence[_SetSizes]) -> None:
    """The words of each test: the full sets in grey, what each model's vocabulary leaves of them in
    colour."""
    tests = list(dict.fromkeys(size.test for size in sizes))
    models = list(dict.fromkeys(size.model for size in sizes))
    figure.set_size_inches(5, 1 + 0.2 * len(tests) * (len(models) + 1))
    panel = figure.subplots()
    full = {size.test: size.full for size in sizes}
    step = 0.8 / (len(models) + 1)
    top = [n - 0.4 + step / 2 for n in range(len(tests))]
    panel.barh(top, [full[test] for test in tests], step, color="0.75", label="full")
    for number, model in enumerate(models, 1):
        reduced = {
            size.test: size.reduced
            for size in sizes
            if size.model == model and not math.isnan(size.reduced)
        }
        places = [top[n] + number * step for n, test in enumerate(tests) if test in reduced]
        bars = panel.barh(
            places,
            [reduced[test] for test in tests if test in reduced],
            step,
            color=f"C{number - 1}",
            label=f"one token of {model}".replace("$", r"\$"),
        )
        panel.bar_label(bars, fontsize=6, padding=2)
    panel.set_yticks(range(len(tests)), tests)
    panel.set_ylim(len(tests) - 0.5, -0.5)
    panel.set_xlabel("words in the four sets; no bar: a set has no word left")
    figure.legend(loc="outside upper center", ncols=2, fontsize=7, frameon=False)


def _draw_distributions(figure: Any, rows: Sequence[RecordRow]) -> None:
    """The draws of each word set, by method and model: the middle half, 95% and the median."""
    groups = dict.fromkeys((_model(row), row["method"]) for row in rows)
    figure.set_size_inches(3.6 * len(groups), 3)
    panels = figure.subplots(1, len(groups), squeeze=False, sharey=True)[0]
    for panel, (model, method) in zip(panels, groups, strict=True):
        model_rows = [row for row in rows if (_model(row), row["method"]) == (model, method)]
        for place, row in enumerate(model_rows):
            quantiles = row["quantiles"]  # 41 of them, 2.5% apart (`draw_quantiles`)
            panel.plot([place, place], [quantiles[1], quantiles[-2]], color="C0", linewidth=1)
            panel.plot([place, place], [quantiles[10], quantiles[30]], color="C0", linewidth=7)
            panel.plot(place, quantiles[20], "o", color="white", markersize=3)
        panel.axhline(0, color="0.8", linewidth=0.8)
        panel.set_xticks(range(len(model_rows)), [_words(row) for row in model_rows])
        panel.set_title(f"{METHODS[method]}, {model}".replace("$", r"\$"), fontsize=9)
    panels[0].set_ylabel("d of a draw (C1)")


def _draw_windows(figure: Any, rows: Sequence[RecordRow]) -> None:
    """LPBS in a corpus by the number of words between the stimuli."""
    groups = dict.fromkeys((_model(row), row["method"]) for row in rows)
    figure.set_size_inches(3.8 * len(groups), 3.2)
    panels = figure.subplots(1, len(groups), squeeze=False, sharey=True)[0]
    for panel, (model, method) in zip(panels, groups, strict=True):
        model_rows = [row for row in rows if (_model(row), row["method"]) == (model, method)]
        for test in dict.fromkeys(map(_concept, model_rows)):
            line = sorted(
                (r["cell"]["apart"], r["effect_size"]) for r in model_rows if _concept(r) == test
            )
            panel.plot([x for x, _ in line], [y for _, y in line], "o-", label=test, linewidth=1)
        panel.axhline(0, color="0.8", linewidth=0.8)
        panel.set_title(f"{METHODS[method]}, {model}".replace("$", r"\$"), fontsize=9)
        panel.set_xlabel("words between the stimuli, at most")
    panels[0].set_ylabel("d")
    panels[0].legend(fontsize=7)


def _save_drawing(path: Path, draw: DrawFunction) -> None:
    try:
        from matplotlib.figure import Figure
    except ModuleNotFoundError as error:
        raise MissingExtra("matplotlib", extra="figures") from error
    figure = Figure(layout="constrained")
    draw(figure)
    with replace_file(path) as partial:
        figure.savefig(partial)
