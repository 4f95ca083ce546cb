"""A crawl that is still running, as a served page shows it.

The server looks at the store again and again: cheaply (`Store.change_token`), and at the runs only
if something was written. New statements come when a round of the crawl is complete, because a crawl
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
from kgbias.io.wording import pluralise

MIN_LOOK_SECONDS = 2.0  # seconds between two looks, at least
_LOOK_TIME_FACTOR = 10  # a look may take a tenth of the time
_QUIET_SECONDS = 60.0  # seconds without a new answer after which a crawl may have been stopped


@dataclass(slots=True)
class StoreWatch:
    """What changes in some runs while they are looked at. `has_changed` says whether they must be
    read again, until `mark_read` is told that they were; `running_lines` are the crawls still
    running, a line each."""

    runs: Sequence[StoredRun]
    _pulse: ChangeToken | None = None
    _changed_at: float = 0.0  # when the pulse was last seen to differ, on the monotonic clock
    _next_look: float = 0.0
    _is_due: bool = False  # something changed that has not been read
    _running: dict[str, RunSummary] = field(default_factory=dict)
    _answers: dict[str, int] = field(default_factory=dict)  # in the log when a round was complete

    def has_changed(self) -> bool:
        """Whether the runs hold something else than was read. At the first look, and soon after
        another, False."""
        start = time.monotonic()
        if start < self._next_look:
            return False
        self._next_look = start + MIN_LOOK_SECONDS  # also if the store cannot be read now
        pulse, earlier_pulse = self.runs[0].store.change_token(), self._pulse
        if pulse != earlier_pulse:
            running_before, running = self._running, self._running_summaries()
            counts = {id: summary.generations for id, summary in running.items()}
            counts_before = {id: s.generations for id, s in running_before.items()}
            for run_id in running:
                if counts[run_id] != counts_before.get(run_id):
                    self._answers[run_id] = pulse.answers
            self._pulse, self._changed_at, self._running = pulse, start, running
            # While a crawl runs, most writes are answers that no statement comes from yet.
            if earlier_pulse is not None:
                self._is_due |= (
                    not counts or counts != counts_before or pulse.answers == earlier_pulse.answers
                )
        self._schedule_look(time.monotonic() - start)
        return self._is_due

    def mark_read(self, seconds: float) -> None:
        """The runs were read again since the last look, which took so many seconds."""
        self._is_due = False
        self._schedule_look(seconds)

    def _schedule_look(self, seconds: float) -> None:
        """Look again only after a time that makes work of this many seconds a small part."""
        self._next_look = time.monotonic() + max(MIN_LOOK_SECONDS, _LOOK_TIME_FACTOR * seconds)

    @property
    def running_lines(self) -> list[str]:
        """The crawls still running, how far each is, and what it took so far."""
        return [self._describe_run(s) for s in self._running.values()] if self._pulse else []

    def _running_summaries(self) -> dict[str, RunSummary]:
        running = {}
        for run in self.runs:
            if StoredRun.find(run.store, run.name).status == "running":
                running[run.id] = run.summary()
        return running

    def _describe_run(self, summary: RunSummary) -> str:
        assert self._pulse is not None
        prompt_count = summary.generations - summary.resampled
        new_answers = self._pulse.answers - self._answers[summary.run.id]
        statement_note = (
            f", with {pluralise(summary.triples, 'different statement', spec=',')}"
            if summary.triples
            else ""
        )
        text_parts = [
            f"{printable(summary.run.name)} is running: "
            f"{prompt_count:,}{_prompt_total_note(summary)} prompts answered{statement_note}"
        ]
        if new_answers > 0:  # in the whole store: the log does not say whose they are
            text_parts.append(
                f"{pluralise(new_answers, 'more answer', spec=',')} in the store, read once "
                f"their round is complete"
            )
        tokens = summary.prompt_tokens + summary.completion_tokens
        if tokens:
            seconds = f", {format_duration(summary.seconds)} of asking" if summary.seconds else ""
            text_parts.append(
                f"{pluralise(tokens, 'token', spec=',')} ({summary.prompt_tokens:,} in, "
                f"{summary.completion_tokens:,} "
                f"out){seconds}"
            )
        quiet_seconds = time.monotonic() - self._changed_at
        if quiet_seconds > _QUIET_SECONDS:
            text_parts.append(
                f"nothing new for {format_duration(quiet_seconds)}: if the crawl was stopped, the "
                f"same command "
                "continues it"
            )
        return "; ".join(text_parts)


def _prompt_total_note(summary: RunSummary) -> str:
    """How many prompts the crawl asks, if it is one of this version's."""
    try:
        config = read_crawl_config(summary.run.config, summary.run.categories)
    except (DataError, UsageError):
        return ""
    bound = "at most " if config.stop_rule else ""
    return f" of {bound}{config.count_places(len(summary.run.groups)):,}"
