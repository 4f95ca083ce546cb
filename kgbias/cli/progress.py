"""Progress on stderr: a bar on a terminal, plain lines elsewhere."""

import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import click

_LINE_EVERY = 10.0  # seconds between plain lines


class PlainProgress:
    """A line when a stage begins and ends, and every few seconds between."""

    def __init__(self) -> None:
        self._name = ""
        self._total = self._done = 0
        self._counts: Counter[str] = Counter()
        self._began = self._said = time.monotonic()

    def stage(self, name: str, total: int) -> None:
        self.finish()
        self._name, self._total, self._done = name, total, 0
        self._counts.clear()
        self._began = self._said = time.monotonic()

    def advance(self, steps: int = 1, **counts: int) -> None:
        self._done += steps
        self._counts.update(counts)
        if time.monotonic() - self._said > _LINE_EVERY and self._done < self._total:
            self._say()

    def note(self, text: str) -> None:
        if self._done >= self._total:
            self.finish()
        click.echo(text, err=True)

    def finish(self) -> None:
        if self._name and self._total:
            self._say()
        self._name = ""

    def _say(self) -> None:
        self._said = time.monotonic()
        seconds = self._said - self._began
        left = ""
        if 0 < self._done < self._total:
            left = f", about {seconds / self._done * (self._total - self._done):.0f} s left"
        click.echo(
            f"{self._name}: {self._done}/{self._total}{described(self._counts)} "
            f"({seconds:.0f} s{left})",
            err=True,
        )


class BarProgress:
    """A bar a stage, with counts and the time left."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as RichProgress

        self._bars = RichProgress(
            TextColumn("{task.description:16}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TimeRemainingColumn(elapsed_when_finished=True),
            TextColumn("{task.fields[counts]}", style="dim"),
            console=Console(stderr=True),
        )
        self._counts: Counter[str] = Counter()
        self._bars.start()

    def stage(self, name: str, total: int) -> None:
        self._counts.clear()
        self._task = self._bars.add_task(name, total=total, counts="")

    def advance(self, steps: int = 1, **counts: int) -> None:
        self._counts.update(counts)
        self._bars.update(self._task, advance=steps, counts=described(self._counts))

    def note(self, text: str) -> None:
        self._bars.console.print(text, style="dim", markup=False, highlight=False)

    def finish(self) -> None:
        self._bars.stop()


def described(counts: Counter[str]) -> str:
    """For example ", 12 tokens, 3 refused"."""
    return "".join(f", {number} {name}" for name, number in sorted(counts.items()) if number)


@contextmanager
def shown_progress() -> Iterator[PlainProgress | BarProgress]:
    progress = BarProgress() if sys.stderr.isatty() else PlainProgress()
    try:
        yield progress
    finally:
        progress.finish()
