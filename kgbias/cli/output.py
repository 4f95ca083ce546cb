"""The edge to the terminal: what may leave on stdout and stderr, and what if it cannot."""

import io
import os
import sys
from contextlib import suppress
from typing import NoReturn

import click

from kgbias.errors import UsageError
from kgbias.io.text import printable, shortened

_LONGEST = 2_000  # characters of an error: a screen, whatever a file holds


def prepare() -> None:
    """Data leaves as UTF-8, whatever the locale is; what no encoding can hold leaves escaped.
    Raises UsageError for an argument that is not UTF-8: no store could keep it."""
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        if getattr(sys, name) is None:  # closed, as by `>&-`
            _opened_nowhere(number, name, mode)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            encoding = stream.encoding if stream.isatty() else "utf-8"
            stream.reconfigure(encoding=encoding, errors="backslashreplace")
    for argument in sys.argv[1:]:
        try:
            argument.encode()
        except UnicodeEncodeError:
            raise UsageError(f"an argument is not UTF-8 text: {argument!r}") from None


def _opened_nowhere(number: int, name: str, mode: str) -> None:
    """Open a stream that was closed on nothing, under its own number where that is free: a file
    that is opened later would get it, and what is printed would be written to it."""
    nothing = os.open(os.devnull, os.O_RDWR)
    try:
        os.fstat(number)
    except OSError:
        os.dup2(nothing, number)
    setattr(sys, name, os.fdopen(nothing, mode, encoding="utf-8"))


def fail(message: str, code: int) -> NoReturn:
    """Say an error in one line, and exit."""
    _say(f"kgbias: {_line(message)}")
    end(code)


def fail_usage(error: click.ClickException) -> NoReturn:
    """Say how a command is used, and what was wrong; a command that was given nothing, its help."""
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        _say(error.message)
        end(error.exit_code)
    context = getattr(error, "ctx", None)
    if context is not None:
        _say(f"{context.get_usage()}\nTry '{context.command_path} --help' for help.\n")
    _say(f"Error: {_line(error.format_message())}")
    end(error.exit_code)


def end(code: int) -> NoReturn:
    """Exit; output that nobody can take any more is not tried again."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            with suppress(OSError, ValueError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    sys.exit(code)


def _say(text: str) -> None:
    with suppress(OSError):
        click.echo(text, err=True)


def _line(message: str) -> str:
    """A message as a terminal may be shown it: on one line, without control characters."""
    return shortened(printable(" ".join(message.split())), _LONGEST)
