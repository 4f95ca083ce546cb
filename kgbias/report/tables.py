"""Tables of texts, as a page, a paper and a spreadsheet have them."""

import csv
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from kgbias.io.text import defused, number
from kgbias.stats.inference import Estimate

_ONE = r"[<+-]?[\d.,]+(?:e[+-]?\d+)?%?"
_NUMBER = re.compile(rf"(?:{_ONE})?(?:(?: to |, ){_ONE})?(?: ?\[{_ONE}, {_ONE}\])?")
_INTERVAL = re.compile(r"95%")


@dataclass(frozen=True, slots=True)
class Table:
    """A table of texts, ready to print. `label` is an ASCII name; `note` follows the caption. A
    column whose heading begins with "95%" is the interval of the column before it. `opens` says for
    each row which pair of group and statement it opens in a report, if any (`opened`)."""

    label: str
    caption: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str = ""
    opens: Sequence[str] = ()


def opened(group: int, statement: str) -> str:
    """What a row opens: the place of a group in the run, and the id of a statement."""
    return f"{group} {statement}"


def numeric_columns(table: Table) -> list[bool]:
    """For each column, whether all its cells are numbers, intervals or empty."""
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
    """A cell of numbers with minus signs for hyphens."""
    return re.sub(r"(?<!\w)-(?=[\d.])", "\N{MINUS SIGN}", cell)


def as_csv(table: Table) -> str:
    """The table as comma-separated values (RFC 4180), with a line of headings; the two ends of an
    interval are columns of their own. What a spreadsheet would read as a formula gets an apostrophe
    in front; numbers stay numbers."""
    own, numeric = intervals(table), numeric_columns(table)
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\r\n")
    heads: list[str] = []
    for name, is_interval in zip(table.columns, own, strict=True):
        heads += [f"{heads[-1]}, 95% low", f"{heads[-1]}, 95% high"] if is_interval else [name]
    writer.writerow([defused(name) for name in heads])
    for row in table.rows:
        line: list[str] = []
        for cell, is_interval, numerical in zip(row, own, numeric, strict=True):
            if is_interval:
                low, _, high = cell.partition(" to ")
                line += [low, high] if high else ["", ""]
            else:
                line.append(cell if numerical else defused(cell))
        writer.writerow(line)
    return file.getvalue()


def cells(e: Estimate, form: str) -> list[str]:
    """A figure and its interval as two cells."""
    return [number(e.value, form), e.interval(form)]
