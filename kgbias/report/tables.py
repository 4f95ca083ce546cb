"""Exhibits, and their tables of text for a page, a paper and a spreadsheet. Model text is escaped:
in LaTeX it can neither run a command nor break a row."""

import csv
import io
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any

from kgbias.io.text import LATEX_SCRIPT, display_width, escape_formula, format_number
from kgbias.io.text import latex as escape
from kgbias.stats.inference import Estimate

_NUMBER_PATTERN = r"[<+-]?[\d.,]+(?:e[+-]?\d+)?%?"
_NUMBER = re.compile(
    rf"(?:{_NUMBER_PATTERN})?(?:(?: to |, ){_NUMBER_PATTERN})?(?: ?\[{_NUMBER_PATTERN}, "
    rf"{_NUMBER_PATTERN}\])?"
)
_INTERVAL = re.compile(r"95%")


@dataclass(frozen=True, slots=True)
class Table:
    """A table of text, ready to print. `label` is an ASCII name; `note` follows the caption. A
    column whose heading begins with "95%" is the interval of the column before it. `opens` says for
    each row which pair of group and statement it opens in a report, if any (`pair_key`)."""

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


def numeric_columns(table: Table) -> list[bool]:
    """For each column, whether every cell is a number, an interval or empty."""
    return [
        all(_NUMBER.fullmatch(row[n]) or row[n] == "-" for row in table.rows)
        for n in range(len(table.columns))
    ]


def interval_columns(table: Table) -> list[bool]:
    """For each column, whether it is the interval of the one before it."""
    return [n > 0 and bool(_INTERVAL.match(name)) for n, name in enumerate(table.columns)]


def merge_intervals(table: Table) -> Table:
    """The table with each interval in the cell of its figure: "+0.12 [+0.03, +0.20]"."""
    is_interval_column = interval_columns(table)
    kept_columns = [n for n, is_interval in enumerate(is_interval_column) if not is_interval]

    def cell(row: Sequence[str], column: int) -> str:
        if (
            column + 1 < len(is_interval_column)
            and is_interval_column[column + 1]
            and row[column + 1] not in ("", "-")
        ):
            return f"{row[column]} [{row[column + 1].replace(' to ', ', ')}]"
        return row[column]

    return replace(
        table,
        columns=[table.columns[n] for n in kept_columns],
        rows=[[cell(row, n) for n in kept_columns] for row in table.rows],
        note=f"{table.note} In brackets: 95% intervals.".strip()
        if any(is_interval_column)
        else table.note,
    )


def minus_signs(cell: str) -> str:
    """A cell of numbers with hyphens turned into minus signs."""
    return re.sub(r"(?<!\w)-(?=[\d.])", "\N{MINUS SIGN}", cell)


def as_csv(table: Table) -> str:
    """The table as comma-separated values (RFC 4180), with a line of headings; the two ends of an
    interval have columns of their own. Anything that a spreadsheet would read as a formula gets an
    apostrophe in front; numbers stay numbers."""
    is_interval_column, numeric = interval_columns(table), numeric_columns(table)
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\r\n")
    heads: list[str] = []
    for name, is_interval in zip(table.columns, is_interval_column, strict=True):
        heads += [f"{heads[-1]}, 95% low", f"{heads[-1]}, 95% high"] if is_interval else [name]
    writer.writerow([escape_formula(name) for name in heads])
    for row in table.rows:
        line: list[str] = []
        for cell, is_interval, numerical in zip(row, is_interval_column, numeric, strict=True):
            if is_interval:
                low, _, high = cell.partition(" to ")
                line += [low, high] if high else ["", ""]
            else:
                line.append(cell if numerical else escape_formula(cell))
        writer.writerow(line)
    return file.getvalue()


def estimate_cells(estimate: Estimate, form: str) -> list[str]:
    """A figure and its interval as two cells."""
    return [format_number(estimate.value, form), estimate.interval(form)]


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
    table = merge_intervals(table)
    numeric = numeric_columns(table)
    widths = [
        max((display_width(row[n]) for row in (table.columns, *table.rows)), default=0)
        for n in range(len(table.columns))
    ]
    long_columns = [
        not number and width > _MAX_NARROW_CHARS
        for number, width in zip(numeric, widths, strict=True)
    ]
    paragraph = f"p{{{_SHARE / max(1, sum(long_columns)):.2f}\\linewidth}}"
    forms = [
        "r" if number else paragraph if is_long else "l"
        for number, is_long in zip(numeric, long_columns, strict=True)
    ]
    is_wide = any(long_columns) or sum(widths) + _COLUMN_GAP_CHARS * len(widths) > _MAX_TABLE_CHARS
    place = "table*" if is_wide else "table"
    lines = [
        *(f"% {line}" for line in (warning, _PACKAGES_NOTE)),
        f"\\begin{{{place}}}",
        r"  \centering\footnotesize\setlength{\tabcolsep}{4pt}",
        r"  \resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%",
        f"  \\begin{{tabular}}{{@{{}}{''.join(forms)}@{{}}}}",
        r"    \toprule",
        "    " + _latex_row(table.columns, [False] * len(numeric)),
        r"    \midrule",
        *("    " + _latex_row(row, numeric) for row in table.rows),
        r"    \bottomrule",
        r"  \end{tabular}}",
        f"  \\caption{{{escape(table.caption)} {_prose(table.note)}}}".replace(" }", "}"),
        f"  \\label{{tab:{run_label(run)}{table.label}}}",
        f"\\end{{{place}}}",
    ]
    if any("\\kgbiasscript" in line for line in lines):
        lines.insert(2, LATEX_SCRIPT)
    return "\n".join(lines) + "\n"


def run_label(run: str) -> str:
    """The prefix of the labels of a run's tables: its name, plus a distinguishing suffix if that
    holds anything but letters, digits and hyphens."""
    name = re.sub("[^A-Za-z0-9]+", "-", run).strip("-")
    if name == run:
        return f"{name}-" if name else ""
    return f"{name[:40]}-{sha256(run.encode()).hexdigest()[:6]}-"


def _latex_row(cells: Sequence[str], numeric: Sequence[bool]) -> str:
    return (
        " & ".join(
            _number(cell) if number else escape(cell)
            for cell, number in zip(cells, numeric, strict=True)
        )
        + r" \\"
    )


def _number(cell: str) -> str:
    """A cell of numbers, its hyphens as minus signs."""
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
