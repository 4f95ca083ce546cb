"""Exhibits, and their tables of text for a page, a paper and a spreadsheet. Model text is escaped:
in LaTeX it can neither run a command nor break a row."""

import csv
import io
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any

from kgbias.io.text import escape_formula, format_number
from kgbias.io.text import latex as escape
from kgbias.stats.inference import Estimate

_ONE = r"[<+-]?[\d.,]+(?:e[+-]?\d+)?%?"
_NUMBER = re.compile(rf"(?:{_ONE})?(?:(?: to |, ){_ONE})?(?: ?\[{_ONE}, {_ONE}\])?")
_INTERVAL = re.compile(r"95%")


@dataclass(frozen=True, slots=True)
class Table:
    """A table of text, ready to print. `label` is an ASCII name; `note` follows the caption. A
    column whose heading begins with "95%" is the interval of the column before it. `opens` says for
    each row which pair of group and statement it opens in a report, if any (`opened`)."""

    label: str
    caption: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str = ""
    opens: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Exhibit:
    """Something to show of one category: a figure, a table or both. `key` is a safe file name;
    `paper` says which figures and tables of the paper it corresponds to; `arm` is the arm that it
    describes, "" in a run of one arm and where arms are compared; `tabled` says whether the report
    shows the table or only copies it."""

    key: str
    category: str
    title: str
    paper: str
    draw: Callable[[], Any] | None
    table: Table
    arm: str = ""
    tabled: bool = True

    @property
    def empty(self) -> bool:
        """Whether there is neither a figure nor a row: the caption and the note say it all, and a
        page shows them as a sentence."""
        return self.draw is None and not self.table.rows


def opened(group: int, statement: str) -> str:
    """The pair that a row opens: the place of a group in the run, and the id of a statement."""
    return f"{group} {statement}"


def numeric_columns(table: Table) -> list[bool]:
    """For each column, whether every cell is a number, an interval or empty."""
    return [
        all(_NUMBER.fullmatch(row[n]) or row[n] == "-" for row in table.rows)
        for n in range(len(table.columns))
    ]


def intervals(table: Table) -> list[bool]:
    """For each column, whether it is the interval of the one before it."""
    return [n > 0 and bool(_INTERVAL.match(name)) for n, name in enumerate(table.columns)]


def joined(table: Table) -> Table:
    """The table with each interval in the cell of its figure: "+0.12 [+0.03, +0.20]"."""
    own = intervals(table)
    kept = [n for n, is_interval in enumerate(own) if not is_interval]

    def cell(row: Sequence[str], n: int) -> str:
        if n + 1 < len(own) and own[n + 1] and row[n + 1] not in ("", "-"):
            return f"{row[n]} [{row[n + 1].replace(' to ', ', ')}]"
        return row[n]

    return replace(
        table,
        columns=[table.columns[n] for n in kept],
        rows=[[cell(row, n) for n in kept] for row in table.rows],
        note=f"{table.note} In brackets: 95% intervals.".strip() if any(own) else table.note,
    )


def minus(cell: str) -> str:
    """A cell of numbers with hyphens turned into minus signs."""
    return re.sub(r"(?<!\w)-(?=[\d.])", "\N{MINUS SIGN}", cell)


def as_csv(table: Table) -> str:
    """The table as comma-separated values (RFC 4180), with a line of headings; the two ends of an
    interval have columns of their own. Anything that a spreadsheet would read as a formula gets an
    apostrophe in front; numbers stay numbers."""
    own, numeric = intervals(table), numeric_columns(table)
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\r\n")
    heads: list[str] = []
    for name, is_interval in zip(table.columns, own, strict=True):
        heads += [f"{heads[-1]}, 95% low", f"{heads[-1]}, 95% high"] if is_interval else [name]
    writer.writerow([escape_formula(name) for name in heads])
    for row in table.rows:
        line: list[str] = []
        for cell, is_interval, numerical in zip(row, own, numeric, strict=True):
            if is_interval:
                low, _, high = cell.partition(" to ")
                line += [low, high] if high else ["", ""]
            else:
                line.append(cell if numerical else escape_formula(cell))
        writer.writerow(line)
    return file.getvalue()


def cells(e: Estimate, form: str) -> list[str]:
    """A figure and its interval as two cells."""
    return [format_number(e.value, form), e.interval(form)]


_NEEDS = (
    "needs \\usepackage{booktabs,graphicx} and \\usepackage[T1]{fontenc}, in pdfLaTeX or LuaLaTeX"
)
_LONG = 34  # characters; a column with longer cells is set as paragraphs
_COLUMN = 44  # characters of \footnotesize that a column of a two-column paper holds
_GAP = 2  # characters that allow for the space between columns
_SHARE = 0.62  # of the line, for all columns of paragraphs together


def latex(table: Table, warning: str, run: str = "") -> str:
    """A booktabs table, with `warning` above it as a comment. A table too wide for one column of a
    two-column paper spans both, and shrinks if it is still too wide. The name of its `run` goes
    into its label, so that one paper can hold tables of several runs."""
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
    """The prefix of the labels of a run's tables: its name, plus a distinguishing suffix if that
    holds anything but letters, digits and hyphens."""
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
    """A cell of numbers, its hyphens as minus signs."""
    return "$-$".join(map(escape, minus(cell).split("\N{MINUS SIGN}")))


def _prose(text: str) -> str:
    """A note, in which a hyphen before a lone number is a minus sign."""
    return "$-$".join(map(escape, re.split(r"(?<![\w-])-(?=\d)", text)))


def sentence(line: str) -> str:
    """A line as a sentence, with its capital and full stop; "" stays empty."""
    return f"{line[:1].upper()}{line[1:]}." if line else ""


def few(mean: float) -> str:
    """A mean count to one decimal, without printing a small one as 0."""
    return "fewer than 0.1" if 0 < mean < 0.1 else f"{mean:.1f}"
