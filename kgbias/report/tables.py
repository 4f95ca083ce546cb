"""Exhibits, and their tables of text for a page, a paper and a spreadsheet. Model text is escaped:
in LaTeX it can neither run a command nor break a row."""

import csv
import io
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from kgbias.io.columns import Column
from kgbias.io.text import LATEX_SCRIPT, display_width, escape_formula
from kgbias.io.text import latex as escape

GROUP_COLUMN = Column("Group")
COUNT_COLUMN = Column("n", ".0f")
STATEMENT_COLUMN = Column("statement")
SAID_COLUMN = Column("said", ".0f")
LIFT_COLUMN = Column("lift", "+.2f", interval=True)
VERDICT_COLUMN = Column("verdict")
Cell = Any
"""Of a table: a text, a number, an `Estimate`, a tuple of numbers, a `CellWithForm`, or None."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table of a report or a paper. `label` is an ASCII name; `note` follows the caption. Rows
    hold values: their columns say how they are written. `opens` says for each row which pair of
    group and statement it opens in a report, if any (`pair_key`)."""

    label: str
    caption: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell]]
    note: str = ""
    opens: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Exhibit:
    """Something to show of one category: a figure, a table or both. `key` is a safe file name;
    `paper` says which figures and tables of the paper it corresponds to; `arm` is the arm that it
    describes, "" in a run of one arm and where arms are compared; `in_tables` says whether the
    report shows the table or only copies it."""

    key: str
    category: str
    title: str
    paper: str
    draw: Callable[[], Any] | None
    table: Table
    arm: str = ""
    in_tables: bool = True

    @property
    def empty(self) -> bool:
        """Whether there is neither a figure nor a row: the caption and the note say it all, and a
        page shows them as a sentence."""
        return self.draw is None and not self.table.rows


def pair_key(group: int, statement: str) -> str:
    """The pair that a row opens: the place of a group in the run, and the id of a statement."""
    return f"{group} {statement}"


def minus_signs(cell: str) -> str:
    """A cell of numbers with hyphens turned into minus signs."""
    return re.sub(r"(?<!\w)-(?=[\d.])", "\N{MINUS SIGN}", cell)


def as_csv(table: Table) -> str:
    """The table as comma-separated values (RFC 4180), with a line of headings; the two ends of an
    interval have columns of their own. Anything that a spreadsheet would read as a formula gets an
    apostrophe in front; numbers stay numbers."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\r\n")
    heads: list[str] = []
    for column in table.columns:
        heads.append(column.heading)
        if column.interval:
            heads += [f"{column.heading}, 95% low", f"{column.heading}, 95% high"]
    writer.writerow([escape_formula(name) for name in heads])
    for row in table.rows:
        line: list[str] = []
        for column, cell in zip(table.columns, row, strict=True):
            text = column.text(cell)
            line.append(text if column.is_numeric else escape_formula(text))
            if column.interval:
                low, _, high = column.interval_text(cell).partition(" to ")
                line += [low, high] if high else ["", ""]
        writer.writerow(line)
    return file.getvalue()


_PACKAGES_NOTE = (
    "needs \\usepackage{booktabs,graphicx} and \\usepackage[T1]{fontenc}, in pdfLaTeX or LuaLaTeX"
)
_MAX_NARROW_CHARS = 34  # characters; a column with longer cells is set as paragraphs
_MAX_TABLE_CHARS = 44  # characters of \footnotesize that a column of a two-column paper holds
_COLUMN_GAP_CHARS = 2  # characters that allow for the space between columns
_SHARE = 0.62  # of the line, for all columns of paragraphs together


def table_latex(table: Table, warning: str, run: str = "") -> str:
    """A booktabs table, with `warning` above it as a comment. A table too wide for one column of a
    two-column paper spans both, and shrinks if it is still too wide. The name of its `run` goes
    into its label, so that one paper can hold tables of several runs."""
    columns = table.columns
    headings = [column.heading for column in columns]
    rows = [list(map(_merge_interval, columns, row)) for row in table.rows]
    note = table.note
    if any(column.interval for column in columns):
        note = f"{note} In brackets: 95% intervals.".strip()
    numeric = [column.is_numeric for column in columns]
    widths = [max(map(display_width, texts)) for texts in zip(headings, *rows, strict=True)]
    long_columns = [
        not is_numeric and width > _MAX_NARROW_CHARS
        for is_numeric, width in zip(numeric, widths, strict=True)
    ]
    paragraph = f"p{{{_SHARE / max(1, sum(long_columns)):.2f}\\linewidth}}"
    text_forms = [paragraph if is_long else "l" for is_long in long_columns]
    forms = [
        "r" if is_numeric else form for is_numeric, form in zip(numeric, text_forms, strict=True)
    ]
    is_wide = any(long_columns) or sum(widths) + _COLUMN_GAP_CHARS * len(widths) > _MAX_TABLE_CHARS
    place = "table*" if is_wide else "table"
    lines = [
        *(f"% {line}" for line in (warning, _PACKAGES_NOTE)),
        f"\\begin{{{place}}}",
        r"  \centering\footnotesize\setlength{\tabcolsep}{4pt}",
        # A table that is too wide is made smaller, and no other is made larger.
        r"  \resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%",
        f"  \\begin{{tabular}}{{@{{}}{''.join(forms)}@{{}}}}",
        r"    \toprule",
        "    " + _latex_row(headings, [False] * len(numeric)),
        r"    \midrule",
        *("    " + _latex_row(row, numeric) for row in rows),
        r"    \bottomrule",
        r"  \end{tabular}}",
        f"  \\caption{{{escape(table.caption)} {_prose(note)}}}".replace(" }", "}"),
        f"  \\label{{tab:{latex_label_prefix(run)}{table.label}}}",
        f"\\end{{{place}}}",
    ]
    if any("\\kgbiasscript" in line for line in lines):
        lines.insert(2, LATEX_SCRIPT)
    return "\n".join(lines) + "\n"


def _merge_interval(column: Column, cell: Cell) -> str:
    """The cell with its interval: "+0.12 [+0.03, +0.20]"."""
    text, interval = column.text(cell), column.interval_text(cell, ", ")
    return text if interval in ("", "-") else f"{text} [{interval}]"


def latex_label_prefix(run: str) -> str:
    """The prefix of a run's labels in LaTeX: its name, plus a distinguishing suffix if that holds
    anything but letters, digits and hyphens."""
    name = re.sub("[^A-Za-z0-9]+", "-", run).strip("-")
    if name == run:
        return f"{name}-" if name else ""
    return f"{name[:40]}-{sha256(run.encode()).hexdigest()[:6]}-"


def _latex_row(cells: Sequence[str], numeric: Sequence[bool]) -> str:
    return (
        " & ".join(
            _latex_number(cell) if number else escape(cell)
            for cell, number in zip(cells, numeric, strict=True)
        )
        + r" \\"
    )


def _latex_number(cell: str) -> str:
    """A cell of numbers as LaTeX, its hyphens as minus signs."""
    return "$-$".join(map(escape, minus_signs(cell).split("\N{MINUS SIGN}")))


def _prose(text: str) -> str:
    """A note, in which a hyphen before a lone number is a minus sign."""
    return "$-$".join(map(escape, re.split(r"(?<![\w-])-(?=\d)", text)))


def as_sentence(line: str) -> str:
    """A line as a sentence, with its capital and full stop; "" stays empty."""
    return f"{line[:1].upper()}{line[1:]}." if line else ""


def format_mean_count(mean: float) -> str:
    """A mean count to one decimal, without printing a small one as 0."""
    return "fewer than 0.1" if 0 < mean < 0.1 else f"{mean:.1f}"
