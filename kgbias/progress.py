"""How long work reports its progress: library code calls this, only the command line draws it."""

from typing import Protocol


class Progress(Protocol):
    """One stage at a time, with a total and named counts."""

    def stage(self, name: str, total: int) -> None:
        """Begin a stage of `total` steps; the one before it is over."""
        ...

    def advance(self, steps: int = 1, **counts: int) -> None:
        """Steps done, and what they were (refused=1, cached=3 ...)."""
        ...

    def note(self, text: str) -> None:
        """Say one line, for example that a server asks to wait."""
        ...


class Silent:
    """No progress at all."""

    def stage(self, name: str, total: int) -> None: ...

    def advance(self, steps: int = 1, **counts: int) -> None: ...

    def note(self, text: str) -> None: ...
