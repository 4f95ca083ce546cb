"""A command's output: lines, tables, JSON for programs, and the error that ends it.

Text from models and strangers' files is made safe for a terminal here, and nowhere else in the
command line.
"""

import io
import json
import os
import shutil
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, is_dataclass
from pathlib import Path
from typing import Any, NoReturn

import click

from kgbias.errors import UsageError
from kgbias.io.columns import Column
from kgbias.io.rows import Result, Rows
from kgbias.io.text import printable, printable_if_terminal, shorten
from kgbias.stats.estimate import nan_to_none

_INTERVAL_HEADING = "95% interval"
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
    from kgbias.io.files import is_special  # not for `kgbias --help`

    if not is_special(path):
        say(path.resolve())


def print_rows(rows: Rows[Any], *names: str, indent: int = 0) -> None:
    """Print the columns of these names of a result (default: all), as it writes them."""
    columns = list(rows.layout)
    if names:
        by_name = {column.name: column for column in columns}
        columns = [by_name[name] for name in names]
    print_table(columns, ([column.read(row) for column in columns] for row in rows), indent=indent)


def print_table(
    columns: Sequence[Column | str], rows: Iterable[Sequence[object]], *, indent: int = 0
) -> None:
    """Print rows under the headings of their columns; a name stands for a column of text. Numbers
    are right-aligned, and an interval is a column beside its figure; a number that is missing is
    "-". Headings that are all empty are left out.

    In a file or a pipe nothing is cut or folded. In a terminal long texts are folded; a table that
    is still too wide runs over the edge."""
    from rich.cells import cell_len
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    typed_columns = [
        column if isinstance(column, Column) else Column(column, title=column) for column in columns
    ]
    names, right_aligned = [], []
    for column in typed_columns:
        names.append(column.heading)
        right_aligned.append(column.is_numeric)
        if column.interval:
            names.append(_INTERVAL_HEADING if column.heading else "")
            right_aligned.append(True)
    cells = [_format_row(typed_columns, row) for row in rows]
    if not cells and not any(names):
        return
    widths = [max(map(cell_len, column)) for column in zip(names, *cells, strict=True)]
    grid = Table(box=None, pad_edge=False, header_style="", show_header=any(names))
    grid.padding = (0, _COLUMN_GAP, 0, 0)
    total_width, min_width = 0, 0
    for name, is_right, width in zip(names, right_aligned, widths, strict=True):
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


def _format_row(columns: Sequence[Column], row: Sequence[object]) -> list[str]:
    """The cells of a row as texts, each interval after its figure."""
    texts = []
    for column, cell in zip(columns, row, strict=True):
        text = column.text(cell)
        texts.append(printable(text or "-" if column.is_numeric else text))
        if column.interval:
            texts.append(column.interval_text(cell) or "-")
    return texts


@dataclass(frozen=True, slots=True)
class Output:
    """What a command shows: `data` for programs, which may be a result, and `print_text`, which
    prints it for people. `code`, the exit code, is decided after that, and may say why on
    stderr."""

    data: Any
    print_text: Callable[[], None]
    code: Callable[[], int] = int


def print_output(output: Output, *, as_json: bool) -> int:
    """Print what a command shows, as JSON or for people; returns the exit code."""
    if as_json:
        print_json(plain(output.data))
    else:
        output.print_text()
    return output.code()


def plain(value: Any) -> Any:
    """A result as JSON can hold it: the records of rows, what a result says of itself, the fields
    of a record."""
    if hasattr(value, "as_dict"):
        return value.as_dict()
    if isinstance(value, Rows | Result):
        return value.records()
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    if isinstance(value, Mapping):
        return {name: plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    return value


def print_json(value: Any) -> None:
    """Print a value as JSON, with null for NaN."""
    print_block(json.dumps(nan_to_none(value), ensure_ascii=False, indent=2, default=str) + "\n")


def print_block(text: str, *, err: bool = False) -> None:
    """Print multi-line text as it is; in a terminal, with each line made safe."""
    stream = sys.stderr if err else sys.stdout
    click.echo(printable_if_terminal(text, stream), nl=False, color=True, err=err)


def confirm(question: str) -> None:
    """Ask on stderr; raise click.Abort unless the answer is yes."""
    click.confirm(printable(question), abort=True, err=True)


def prompt(question: str, default: str) -> str:
    """Ask for a text, with a default."""
    return str(click.prompt(question, default=printable(default) or None))


def prepare_streams() -> None:
    """Write output as UTF-8 whatever the locale, escaping what no encoding can represent. Raises
    UsageError where stdout is closed, and for an argument that is not UTF-8, which no store could
    keep."""
    is_stdout_closed = sys.stdout is None
    for descriptor, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        if getattr(sys, name) is None:  # closed, as by `>&-`
            _open_on_null(descriptor, name, mode)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            encoding = stream.encoding if stream.isatty() else "utf-8"
            stream.reconfigure(encoding=encoding, errors="backslashreplace")
    if is_stdout_closed:  # an export would be lost, and a crawl paid for without its summary
        raise UsageError(
            "stdout is closed, so what is printed would be lost: send it to a file or to /dev/null"
        )
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
