"""The edge to the terminal: what may leave on stdout and stderr, and what if it cannot."""

import io
import os
import sys
from contextlib import suppress
from typing import NoReturn

import click

from kgbias.errors import UsageError
from kgbias.text import printable, shortened

_LONGEST = 2_000  # characters of an error: a screen, whatever a file holds


def prepare() -> None:
    """Data leaves as UTF-8, whatever the locale is; what no encoding can hold leaves escaped.
    Raises UsageError for an argument that is not UTF-8: no store could keep it."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            encoding = stream.encoding if stream.isatty() else "utf-8"
            stream.reconfigure(encoding=encoding, errors="backslashreplace")
    for argument in sys.argv[1:]:
        try:
            argument.encode()
        except UnicodeEncodeError:
            raise UsageError(f"an argument is not UTF-8 text: {argument!r}") from None


def fail(message: str, code: int) -> NoReturn:
    """Say an error in one line, and exit."""
    _say(f"kgbias: {_line(message)}")
    end(code)


def fail_usage(error: click.ClickException) -> NoReturn:
    """Say how a command is used, and what was wrong."""
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
