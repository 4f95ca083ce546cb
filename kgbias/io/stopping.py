"""Whether Ctrl-C is ending this command. What would wait for long on the way out asks here."""

_is_stopping = False


def note_stop() -> None:
    """Note that the command is ending."""
    global _is_stopping
    _is_stopping = True


def is_stopping() -> bool:
    """Whether the command is ending; in a program that calls kgbias, never."""
    return _is_stopping
