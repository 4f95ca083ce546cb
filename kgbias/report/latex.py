"""Tables as LaTeX. Model text is escaped: it can neither run a command nor break a row."""

import re
from collections.abc import Sequence
from hashlib import sha256

from kgbias.io.text import latex as escape
from kgbias.report.tables import Table, joined, minus, numeric_columns

_NEEDS = (
    "needs \\usepackage{booktabs,graphicx} and \\usepackage[T1]{fontenc}, in pdfLaTeX or LuaLaTeX"
)
_LONG = 34  # characters; a column with longer cells is set as paragraphs
_COLUMN = 44  # characters of \footnotesize that a column of a two-column paper holds
_GAP = 2  # characters that stand for the space between columns
_SHARE = 0.62  # of the line, for all columns of paragraphs together


def latex(table: Table, warning: str, run: str = "") -> str:
    """A booktabs table; `warning` stands above it as a comment. A table that one column of a
    two-column paper cannot hold runs over both, and is made smaller where it is still too wide.
    The name of its `run` goes into its label, so that tables of several runs can stand in one
    paper."""
    table = joined(table)
    numeric = numeric_columns(table)
    widths = [
        max((len(row[n]) for row in (table.columns, *table.rows)), default=0)
        for n in range(len(table.columns))
    ]
    long = [not number and width > _LONG for number, width in zip(numeric, widths, strict=True)]
    paragraph = f"p{{{_SHARE / max(1, sum(long)):.2f}\\linewidth}}"
    forms = [
        "r" if number else paragraph if is_long else "l"
        for number, is_long in zip(numeric, long, strict=True)
    ]
    wide = any(long) or sum(widths) + _GAP * len(widths) > _COLUMN
    place = "table*" if wide else "table"
    lines = [
        *(f"% {line}" for line in (warning, _NEEDS)),
        f"\\begin{{{place}}}",
        r"  \centering\footnotesize\setlength{\tabcolsep}{4pt}",
        r"  \resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%",
        f"  \\begin{{tabular}}{{@{{}}{''.join(forms)}@{{}}}}",
        r"    \toprule",
        "    " + _row(table.columns, [False] * len(numeric)),
        r"    \midrule",
        *("    " + _row(row, numeric) for row in table.rows),
        r"    \bottomrule",
        r"  \end{tabular}}",
        f"  \\caption{{{escape(table.caption)} {_prose(table.note)}}}".replace(" }", "}"),
        f"  \\label{{tab:{label_of(run)}{table.label}}}",
        f"\\end{{{place}}}",
    ]
    return "\n".join(lines) + "\n"


def label_of(run: str) -> str:
    """What the labels of a run's tables begin with: its name, and where that holds more than
    letters, digits and hyphens, what tells it from others."""
    name = re.sub("[^A-Za-z0-9]+", "-", run).strip("-")
    if name == run:
        return f"{name}-" if name else ""
    return f"{name[:40]}-{sha256(run.encode()).hexdigest()[:6]}-"


def _row(cells: Sequence[str], numeric: Sequence[bool]) -> str:
    return " & ".join(
        _number(cell) if number else escape(cell)
        for cell, number in zip(cells, numeric, strict=True)
    ) + r" \\"  # fmt: skip


def _number(cell: str) -> str:
    """A cell of numbers: a minus is no hyphen."""
    return "$-$".join(map(escape, minus(cell).split("\N{MINUS SIGN}")))


def _prose(text: str) -> str:
    """A note, in which a hyphen before a number that stands alone is a minus."""
    return "$-$".join(map(escape, re.split(r"(?<![\w-])-(?=\d)", text)))
