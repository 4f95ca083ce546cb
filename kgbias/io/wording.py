"""What a message says is to be done, in the words of who reads it: a call in Python, or a command
where the command line runs."""

from collections.abc import Iterator
from contextlib import contextmanager

_in_commands = False


def how(call: str, command: str) -> str:
    """The call; on the command line, the command that does the same."""
    return command if _in_commands else call


@contextmanager
def in_commands() -> Iterator[None]:
    """Inside this context, messages name commands and their options."""
    global _in_commands
    before, _in_commands = _in_commands, True
    try:
        yield
    finally:
        _in_commands = before
