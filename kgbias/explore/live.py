"""A crawl that is still running, as a served page shows it.

The server looks at the store again and again: cheaply (`Store.change_token`), and at the runs only if
something was written. New statements come when a round of the crawl is complete, because a crawl
writes a round as a whole; until then, only the number of answers in the log grows.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from kgbias.crawl.config import read_crawl_config
from kgbias.errors import DataError, UsageError
from kgbias.graph.store import StoredRun
from kgbias.graph.types import ChangeToken, RunSummary
from kgbias.io.text import format_duration, printable

EVERY = 2.0  # seconds between two looks, at least
_SHARE = 10  # a look may take a tenth of the time
_QUIET = 60.0  # seconds without a new answer after which a crawl may have been stopped


@dataclass(slots=True)
class Live:
    """What changes in some runs while they are looked at. `look` says whether they must be read
    again, until `been_read` is told that they were; `lines` are the crawls still running, a line
    each."""

    runs: Sequence[StoredRun]
    _pulse: ChangeToken | None = None
    _moved: float = 0.0  # when the pulse was last seen to differ, on the monotonic clock
    _next: float = 0.0
    _due: bool = False  # something changed that has not been read
    _running: dict[str, RunSummary] = field(default_factory=dict)
    _answers: dict[str, int] = field(default_factory=dict)  # in the log when a round was complete

    def look(self) -> bool:
        """Whether the runs hold something else than was read. At the first look, and soon after
        another, False."""
        began = time.monotonic()
        if began < self._next:
            return False
        self._next = began + EVERY  # also if the store cannot be read now
        pulse, old = self.runs[0].store.change_token(), self._pulse
        if pulse != old:
            before, running = self._running, self._summaries()
            counts, then = ({id: s.generations for id, s in r.items()} for r in (running, before))
            for run_id in running:
                if counts[run_id] != then.get(run_id):
                    self._answers[run_id] = pulse.answers
            self._pulse, self._moved, self._running = pulse, began, running
            # While a crawl runs, most writes are answers that no statement comes from yet.
            if old is not None:
                self._due |= not counts or counts != then or pulse.answers == old.answers
        self._wait(time.monotonic() - began)
        return self._due

    def been_read(self, seconds: float) -> None:
        """The runs were read again since the last look, which took so many seconds."""
        self._due = False
        self._wait(seconds)

    def _wait(self, seconds: float) -> None:
        """Look again only after a time that makes work of this many seconds a small part."""
        self._next = time.monotonic() + max(EVERY, _SHARE * seconds)

    @property
    def lines(self) -> list[str]:
        """The crawls still running, how far each is, and what it took so far."""
        return [self._line(s) for s in self._running.values()] if self._pulse else []

    def _summaries(self) -> dict[str, RunSummary]:
        found = {}
        for run in self.runs:
            if StoredRun.find(run.store, run.name).status == "running":
                found[run.id] = run.summary()
        return found

    def _line(self, s: RunSummary) -> str:
        assert self._pulse is not None
        done = s.generations - s.resampled
        new = self._pulse.answers - self._answers[s.run.id]
        said = f", with {s.triples:,} different statements" if s.triples else ""
        parts = [f"{printable(s.run.name)} is running: {done:,}{_of(s)} prompts answered{said}"]
        if new > 0:  # in the whole store: the log does not say whose they are
            parts.append(f"{new:,} more answers in the store, read once their round is complete")
        if tokens := s.prompt_tokens + s.completion_tokens:
            seconds = f", {format_duration(s.seconds)} of asking" if s.seconds else ""
            parts.append(
                f"{tokens:,} tokens ({s.prompt_tokens:,} in, {s.completion_tokens:,} out){seconds}"
            )
        if (quiet := time.monotonic() - self._moved) > _QUIET:
            parts.append(
                f"nothing new for {format_duration(quiet)}: if the crawl was stopped, the same command "
                "continues it"
            )
        return "; ".join(parts)


def _of(s: RunSummary) -> str:
    """How many prompts the crawl asks, if it is one of this version's."""
    try:
        config = read_crawl_config(s.run.config, s.run.categories)
    except (DataError, UsageError):
        return ""
    most = "at most " if config.until_coverage or config.until_width else ""
    return f" of {most}{config.count_places(len(s.run.groups)):,}"
