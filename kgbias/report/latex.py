"""Tables as LaTeX. Model text is escaped: it can neither run a command nor break a row."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from kgbias.statistics import Estimate
from kgbias.text import latex as escape

_NUMBER = re.compile(r"[<+-]?[\d.,]+(?:e[+-]?\d+)?%?(?: to [+-]?[\d.,]+%?)?")

_NEEDS = "needs \\usepackage{booktabs} and \\usepackage[T1]{fontenc}, in pdfLaTeX or LuaLaTeX"
_WIDE = 44  # characters; longer cells are set as paragraphs


@dataclass(frozen=True, slots=True)
class Table:
    """A table of texts, ready to print. `label` is an ASCII name; `note` follows the caption."""

    label: str
    caption: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str = ""


def numeric_columns(table: Table) -> list[bool]:
    """For each column, whether all its cells are numbers, intervals or empty."""
    return [
        all(_NUMBER.fullmatch(row[n]) or row[n] in ("", "-") for row in table.rows)
        for n in range(len(table.columns))
    ]


def latex(table: Table, warning: str) -> str:
    """A booktabs table; `warning` stands above it as a comment."""
    numeric = numeric_columns(table)
    wide = [any(len(row[n]) > _WIDE for row in table.rows) for n in range(len(table.columns))]
    forms = [
        "r" if number else r"p{.55\linewidth}" if long else "l"
        for number, long in zip(numeric, wide, strict=True)
    ]
    lines = [
        *(f"% {line}" for line in (warning, _NEEDS)),
        r"\begin{table}",
        r"  \centering\small",
        f"  \\begin{{tabular}}{{{''.join(forms)}}}",
        r"    \toprule",
        "    " + _row(table.columns),
        r"    \midrule",
        *("    " + _row(row) for row in table.rows),
        r"    \bottomrule",
        r"  \end{tabular}",
        f"  \\caption{{{escape(table.caption)} {escape(table.note)}}}".replace(" }", "}"),
        f"  \\label{{tab:{table.label}}}",
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def _row(cells: Sequence[str]) -> str:
    return " & ".join(escape(cell) for cell in cells) + r" \\"


def p_text(p: float) -> str:
    return "<0.0001" if p < 1e-4 else f"{p:.4f}"


def cells(e: Estimate, form: str) -> list[str]:
    """A figure and its interval as two cells."""
    return [f"{e.value:{form}}", e.interval(form)]
