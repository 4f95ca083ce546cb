"""A command's output: lines, tables, JSON for programs, and the error that ends it.

Text from models and strangers' files is made safe for a terminal here, and nowhere else in the
command line.
"""

import io
import json
import os
import shutil
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

import click

from kgbias.errors import UsageError
from kgbias.io.files import is_special
from kgbias.io.text import for_file, format_number, printable, shorten
from kgbias.stats.estimate import nan_to_none

_MAX_ERROR_CHARACTERS = 2_000  # characters of an error: a screenful, whatever a file contains
_COLUMN_GAP = 2  # between columns
_MIN_FOLDED_WIDTH = 24  # the narrowest column of text in a terminal


def say(*lines: object, err: bool = False, nl: bool = True) -> None:
    """Print each argument as one line, or an empty line without arguments; on stderr with `err`."""
    for line in lines or ("",):
        click.echo(printable(str(line)), err=err, nl=nl)


def say_where(path: Path) -> None:
    """Print where a file is that was written, unless it went to a device or an open file: that may
    be where this line would go."""
    if not is_special(path):
        say(path.resolve())


def print_table(
    headings: Sequence[str], rows: Iterable[Sequence[object]], *, indent: int = 0
) -> None:
    """Print rows under their headings; a heading that begins with ">" right-aligns its column, as
    for numbers. Headings that are all empty are left out.

    In a file or a pipe nothing is cut or folded. In a terminal long texts are folded; a table that
    is still too wide runs over the edge."""
    from rich.cells import cell_len
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    names = [name.removeprefix(">") for name in headings]
    cells = [[printable(str(cell)) for cell in row] for row in rows]
    if not cells and not any(names):
        return
    widths = [max(map(cell_len, column)) for column in zip(names, *cells, strict=True)]
    grid = Table(box=None, pad_edge=False, header_style="", show_header=any(names))
    grid.padding = (0, _COLUMN_GAP, 0, 0)
    total_width, min_width = 0, 0
    for name, declared, width in zip(names, headings, widths, strict=True):
        is_right = declared.startswith(">")
        total_width += width + _COLUMN_GAP
        min_width += (width if is_right else min(width, _MIN_FOLDED_WIDTH)) + _COLUMN_GAP
        grid.add_column(
            Text(name), justify="right" if is_right else "left", no_wrap=is_right, overflow="fold"
        )
    for row in cells:
        grid.add_row(*map(Text, row))
    if sys.stdout.isatty():
        terminal_width = shutil.get_terminal_size().columns - indent
        total_width = max(min_width, min(total_width, terminal_width))
    console = Console(width=total_width, color_system=None)
    with console.capture() as captured:
        console.print(grid)
    for line in captured.get().splitlines():
        click.echo(" " * indent + line.rstrip())


def format_figure(value: float | None, form: str) -> str:
    """The formatted number, or "-" for None and NaN."""
    return "-" if value is None or value != value else format_number(value, form)


def print_json(value: Any) -> None:
    """Print a value as JSON, with null for NaN."""
    print_block(json.dumps(nan_to_none(value), ensure_ascii=False, indent=2, default=str) + "\n")


def pluralise(number: int, singular: str, plural: str = "") -> str:
    """So many of a thing: "1 request", "2 requests"."""
    return f"{number} {singular if number == 1 else plural or singular + 's'}"


def print_block(text: str, *, err: bool = False) -> None:
    """Print multi-line text as it is; in a terminal, with each line made safe."""
    stream = sys.stderr if err else sys.stdout
    click.echo(for_file(text, stream), nl=False, color=True, err=err)


def confirm(question: str) -> None:
    """Ask on stderr; raise click.Abort unless the answer is yes."""
    click.confirm(printable(question), abort=True, err=True)


def prompt(question: str, default: str) -> str:
    """Ask for a text, with a default."""
    return str(click.prompt(question, default=printable(default) or None))


def prepare_streams() -> None:
    """Write output as UTF-8 whatever the locale, escaping what no encoding can represent. Raises
    UsageError for an argument that is not UTF-8, which no store could keep."""
    for descriptor, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        if getattr(sys, name) is None:  # closed, as by `>&-`
            _open_on_null(descriptor, name, mode)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            encoding = stream.encoding if stream.isatty() else "utf-8"
            stream.reconfigure(encoding=encoding, errors="backslashreplace")
    for place, argument in enumerate(sys.argv[1:], 1):
        try:
            sys.argv[place] = os.fsencode(argument).decode()  # whatever the locale took it for
        except UnicodeDecodeError:
            raise UsageError(f"an argument is not UTF-8 text: {argument!r}") from None


def _open_on_null(number: int, name: str, mode: str) -> None:
    """Open a closed stream on /dev/null, under its own number if that is free. Otherwise a file
    opened later would get the number, and what is printed would be written into it."""
    nothing = os.open(os.devnull, os.O_RDWR)
    try:
        os.fstat(number)
    except OSError:
        os.dup2(nothing, number)
    setattr(sys, name, os.fdopen(nothing, mode, encoding="utf-8"))


def fail(message: str, code: int) -> NoReturn:
    """Print an error in one line, and exit."""
    _print_error(f"kgbias: {_one_line(message)}")
    end_process(code)


def fail_usage(error: click.ClickException) -> NoReturn:
    """Print the usage and the error, or the help of a command called without arguments; exit."""
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        _print_error(error.message)
        end_process(error.exit_code)
    context = getattr(error, "ctx", None)
    if context is not None:
        _print_error(f"{context.get_usage()}\nTry '{context.command_path} --help' for help.\n")
    _print_error(f"Error: {_one_line(error.format_message())}")
    end_process(error.exit_code)


def end_process(code: int) -> NoReturn:
    """Exit, without retrying output that nobody reads any more."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            with suppress(OSError, ValueError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    sys.exit(code)


def _print_error(text: str) -> None:
    with suppress(OSError):
        click.echo(text, err=True)


def _one_line(message: str) -> str:
    """The message made safe for a terminal: one line, no control characters."""
    return shorten(printable(" ".join(message.split())), _MAX_ERROR_CHARACTERS)
