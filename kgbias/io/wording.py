"""Words of messages: how many of a thing; and what is to be done, in the words of who reads it, a
call in Python, or a command where the command line runs."""

from collections.abc import Iterator
from contextlib import contextmanager

_in_commands = False


def how(call: str, command: str) -> str:
    """The call; on the command line, the command that does the same."""
    return command if _in_commands else call


def pluralise(number: float, singular: str, plural: str = "", *, spec: str = "") -> str:
    """So many of a thing: "1 request", "2 requests". `spec` formats the number, as "," does."""
    noun = singular if number == 1 else plural or f"{singular}s"
    return f"{number:{spec}} {noun}"


@contextmanager
def in_commands() -> Iterator[None]:
    """Inside this context, messages name commands and their options."""
    global _in_commands
    before, _in_commands = _in_commands, True
    try:
        yield
    finally:
        _in_commands = before
