"""What a command shows: lines, tables, and JSON for programs.

Whatever a model or a stranger's file says is made safe for a terminal here, and nowhere else in the
command line.
"""

import json
import shutil
import sys
from collections.abc import Iterable, Sequence
from typing import Any

import click

from kgbias.io.text import number, printable, shown
from kgbias.stats.estimate import finite

_GAP = 2  # between columns
_FOLDED = 24  # no narrower does a terminal make a column of texts


def say(*lines: object, err: bool = False, nl: bool = True) -> None:
    """Print each of these as one line, an empty one where there is none; on stderr with `err`."""
    for line in lines or ("",):
        click.echo(printable(str(line)), err=err, nl=nl)


def table(head: Sequence[str], rows: Iterable[Sequence[object]], *, indent: int = 0) -> None:
    """Print rows under their headings; a heading that begins with ">" has its column on the right,
    as numbers have it. Headings that are all empty are left out.

    In a file or a pipe nothing is cut or folded. In a terminal long texts are folded; a table that
    is too wide even so runs over the edge."""
    from rich.cells import cell_len
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    names = [name.removeprefix(">") for name in head]
    cells = [[printable(str(cell)) for cell in row] for row in rows]
    if not cells and not any(names):
        return
    widths = [max(map(cell_len, column)) for column in zip(names, *cells, strict=True)]
    grid = Table(box=None, pad_edge=False, header_style="", show_header=any(names))
    grid.padding = (0, _GAP, 0, 0)
    room, least = 0, 0
    for name, declared, width in zip(names, head, widths, strict=True):
        right = declared.startswith(">")
        room += width + _GAP
        least += (width if right else min(width, _FOLDED)) + _GAP
        grid.add_column(
            Text(name), justify="right" if right else "left", no_wrap=right, overflow="fold"
        )
    for row in cells:
        grid.add_row(*map(Text, row))
    if sys.stdout.isatty():
        edge = shutil.get_terminal_size().columns - indent
        room = max(least, min(room, edge))
    console = Console(width=room, color_system=None)
    with console.capture() as captured:
        console.print(grid)
    for line in captured.get().splitlines():
        click.echo(" " * indent + line.rstrip())


def figure(value: float | None, form: str) -> str:
    """A number in its format, "-" where there is none."""
    return "-" if value is None or value != value else number(value, form)


def data(value: Any) -> None:
    """Print a value as JSON, null for NaN."""
    block(json.dumps(finite(value), ensure_ascii=False, indent=2, default=str) + "\n")


def block(text: str, *, err: bool = False) -> None:
    """Print text of several lines as it is; to a person at a terminal, each line made safe."""
    stream = sys.stderr if err else sys.stdout
    click.echo(shown(text, stream), nl=False, color=True, err=err)


def confirm(question: str) -> None:
    """Ask on stderr; raise click.Abort unless the answer is yes."""
    click.confirm(printable(question), abort=True, err=True)


def prompt(question: str, default: str) -> str:
    """Ask for a text, with this one to fall back to."""
    return str(click.prompt(question, default=printable(default) or None))
