"""The progress of long work, and how it is shown.

Library code reports to a `Progress`. `show_progress` chooses how it is shown: rich's bars in a
terminal and in a notebook, plain lines elsewhere, or not at all.
"""

import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Protocol

from kgbias.errors import Interrupted
from kgbias.io.caller_state import restore_state

_PRINT_SECONDS = 10.0  # seconds between plain lines
_DRAW_SECONDS = 0.2  # seconds between redraws of a notebook's bars


class Progress(Protocol):
    """One stage at a time, with a total and named counts."""

    def stage(self, name: str, total: int) -> None:
        """Begin a stage of `total` steps; the previous one is over."""
        ...

    def advance(self, steps: int = 1, **counts: float) -> None:
        """Report finished steps, and counts by name (refused=1, cached=3 ...)."""
        ...

    def grow(self, steps: int) -> None:
        """Raise the stage's total by this many steps, because more turned out to be needed, such as
        answers to ask for again. Finished steps stay finished: progress never runs backwards."""
        ...

    def note(self, text: str) -> None:
        """Show one line, such as that a server asks to wait."""
        ...


class SilentProgress:
    """Shows nothing."""

    def stage(self, name: str, total: int) -> None: ...

    def advance(self, steps: int = 1, **counts: float) -> None: ...

    def grow(self, steps: int) -> None: ...

    def note(self, text: str) -> None: ...

    def finish(self) -> None: ...


class ProgressLines:
    """A line on stderr every ten seconds, and one when a stage ends."""

    def __init__(self) -> None:
        self._name = ""
        self._total = self._done = 0
        self._counts: dict[str, float] = {}
        self._start_time = self._last_print = time.monotonic()

    def stage(self, name: str, total: int) -> None:
        self.finish()
        self._name, self._total, self._done = name, total, 0
        self._counts.clear()
        self._start_time = self._last_print = time.monotonic()

    def advance(self, steps: int = 1, **counts: float) -> None:
        self._done += steps
        _add_counts(self._counts, counts)
        if time.monotonic() - self._last_print > _PRINT_SECONDS and self._done < self._total:
            self._print_line()

    def grow(self, steps: int) -> None:
        self._total += steps

    def note(self, text: str) -> None:
        if self._done >= self._total:
            self.finish()
        print(text, file=sys.stderr, flush=True)

    def finish(self) -> None:
        if self._name and self._total:
            self._print_line()
        self._name = ""

    def _print_line(self) -> None:
        self._last_print = time.monotonic()
        seconds = self._last_print - self._start_time
        time_left = ""
        if 0.05 * self._total <= self._done < self._total:  # with less, a guess would be wild
            time_left = f", about {seconds / self._done * (self._total - self._done):.0f} s left"
        print(
            f"{self._name}: {self._done}/{self._total}{_describe_counts(self._counts)} "
            f"({seconds:.0f} s{time_left})",
            file=sys.stderr,
            flush=True,
        )


class ProgressBars:
    """A bar for each stage in a terminal, with counts and the time left."""

    def __init__(self) -> None:
        self._bars = _make_bars(sys.stderr)
        self._counts: dict[str, float] = {}
        self._start()

    def stage(self, name: str, total: int) -> None:
        self._counts.clear()
        self._total = total
        self._task = self._bars.add_task(name, total=total, counts="")

    def advance(self, steps: int = 1, **counts: float) -> None:
        _add_counts(self._counts, counts)
        self._bars.update(self._task, advance=steps, counts=_describe_counts(self._counts))

    def grow(self, steps: int) -> None:
        self._total += steps
        self._bars.update(self._task, total=self._total)

    def note(self, text: str) -> None:
        self._bars.console.print(text, style="dim", markup=False, highlight=False)

    def finish(self) -> None:
        self._bars.stop()

    def _start(self) -> None:
        self._bars.start()


class NotebookBars(ProgressBars):
    """The same bars in a notebook, redrawn in place under the cell. (rich's own display needs
    ipywidgets, whose output is lost when the notebook is saved.)"""

    def stage(self, name: str, total: int) -> None:
        super().stage(name, total)
        self._draw()

    def advance(self, steps: int = 1, **counts: float) -> None:
        super().advance(steps, **counts)
        if time.monotonic() - self._last_draw > _DRAW_SECONDS:
            self._draw()

    def note(self, text: str) -> None:
        self._notes.append(text)
        self._draw()

    def finish(self) -> None:
        self._draw()

    def _start(self) -> None:
        self._notes: list[str] = []
        self._display: Any = None
        self._last_draw = 0.0

    def _draw(self) -> None:
        from IPython.display import display
        from rich.console import Group
        from rich.text import Text

        self._last_draw = time.monotonic()
        notes = [Text(note, style="dim") for note in self._notes]
        output = _NotebookOutput(Group(self._bars.get_renderable(), *notes))
        if self._display is None:
            self._display = display(output, display_id=True)  # type: ignore[no-untyped-call]
        else:
            self._display.update(output)


class _NotebookOutput:
    """A rich renderable as text and HTML."""

    def __init__(self, content: Any) -> None:
        import io

        from rich.console import Console

        console = Console(record=True, width=100, file=io.StringIO(), force_jupyter=False)
        console.print(content)
        self._html = console.export_html(
            inline_styles=True, code_format="<pre>{code}</pre>", clear=False
        )
        self._text = console.export_text()

    def _repr_html_(self) -> str:
        return self._html

    def __repr__(self) -> str:
        return self._text.rstrip()


def _make_bars(file: Any) -> Any:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as RichProgress

    return RichProgress(
        TextColumn("{task.description:16}"),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TimeRemainingColumn(elapsed_when_finished=True),
        TextColumn("{task.fields[counts]}", style="dim"),
        console=Console(file=file, force_jupyter=False),
    )


def _add_counts(counts: dict[str, float], new_counts: Mapping[str, float]) -> None:
    for name, number in new_counts.items():
        counts[name] = counts.get(name, 0) + number


def _describe_counts(counts: Mapping[str, float]) -> str:
    """For example ", 12 tokens, 3 refused"."""
    return "".join(
        f", {_format_count_or_cost(value)} {name}"
        for name, value in sorted(counts.items())
        if value
    )


def _format_count_or_cost(value: float) -> str:
    """A count as it is; money with two decimals."""
    return f"{value:.2f}" if isinstance(value, float) else str(value)


def in_notebook() -> bool:
    """Whether this process is the kernel of a notebook."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return hasattr(shell, "kernel")


@contextmanager
def show_progress(
    progress: Progress | bool | None = None, *, all_or_nothing: bool = False
) -> Iterator[Progress]:
    """Show the progress of the work done inside.

    `progress` is None to show it if stderr is a terminal or this is a notebook; True to show it
    always, as plain lines elsewhere; False to show nothing; or a `Progress` to report to. Ctrl-C
    raises Interrupted, which says what becomes of the work: with `all_or_nothing`, it is written at
    the end or not at all; otherwise what was finished is kept. The caller's random states,
    environment and filters of warnings are put back afterwards (`kgbias.io.caller_state`).
    """
    if not isinstance(progress, bool | None):
        reporter: Any = progress
    elif progress is False:
        reporter = SilentProgress()
    elif in_notebook():
        reporter = NotebookBars()
    elif sys.stderr.isatty():
        reporter = ProgressBars()
    else:
        reporter = ProgressLines() if progress else SilentProgress()
    try:
        with restore_state():
            yield reporter
    except KeyboardInterrupt:
        kept_note = "what was finished is kept, and running this again continues from there"
        raise Interrupted(
            f"stopped: {'nothing was written' if all_or_nothing else kept_note}"
        ) from None
    finally:
        if isinstance(reporter, ProgressBars | ProgressLines):
            reporter.finish()
