"""`kgbias review`: restore or reject a run's answers by hand."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

import kgbias
from kgbias.cli import show
from kgbias.cli.command import Command
from kgbias.cli.options import json_option, run_argument, store_option
from kgbias.errors import UsageError
from kgbias.graph.decisions import Decision
from kgbias.study.review import Review, ReviewedAnswer

_KEYS = {
    "r": "restore as read",
    "e": "edit and restore",
    "x": "reject",
    "s": "skip",
    "b": "back",
    "q": "quit",
}
_QUIT = "\x03\x04"  # Ctrl-C and Ctrl-D, if they arrive as keys


@click.command(cls=Command, examples=("kgbias review smollm2 --reason refused --csv refused.csv",))
@run_argument
@store_option
@click.option(
    "--reason",
    multiple=True,
    metavar="NAME",
    help="Only answers with this outcome or reason, such as refused (repeatable).",
)
@click.option("--group", multiple=True, metavar="NAME", help="Only this group (repeatable).")
@click.option("--search", metavar="TEXT", help="Only answers that contain this text.")
@click.option("--accepted", is_flag=True, help="Instead, show answers that count as statements.")
@click.option("--decided", is_flag=True, help="Also show answers already decided.")
@click.option("--by", metavar="NAME", help="Who decides (default: your user name).")
@click.option(
    "--csv",
    "sheet",
    type=click.Path(path_type=Path),
    help="Instead, write the answers to a spreadsheet file.",
)
@click.option(
    "--from",
    "filled",
    type=click.Path(path_type=Path),
    help="Read decisions from a filled-in spreadsheet file.",
)
@click.option("--undo", is_flag=True, help="Take back the decisions about the answers.")
@json_option
def review(
    run_name: str | None,
    store_url: str,
    by: str | None,
    sheet: Path | None,
    filled: Path | None,
    undo: bool,
    as_json: bool,
    **which: Any,
) -> None:
    """Review the rejected answers of a run: restore statements, confirm the rest as rejected.

    In a terminal, one key decides; identical answers are shown once. Decisions are kept when you
    quit. Each is stored with its author and time and is part of exports; --undo takes it back. The
    crawl's own outcome stays. Run kgbias measure again afterwards.
    """
    if sum((sheet is not None, filled is not None, undo, as_json)) > 1:
        raise UsageError("choose one of --csv, --from, --undo and --json")
    if filled is not None and any(which.values()):
        raise UsageError("--from reads the whole file: leave out options that select answers")
    with kgbias.open(store_url, progress=True) as study:
        run = study.run(run_name)
        with run.review(by=by) as made:
            if filled is not None:
                return _say(run, made.read_sheet(filled))
            if undo:
                which |= {"decided": True}
                of_all = [which | {"accepted": a} for a in (False, True)]
                return _say(run, made.undo([a for w in of_all for a in made.answers(**w)]))
            answers = made.answers(**which)
            if as_json:
                return show.data(answers.records())
            if sheet is not None:
                count = made.write_sheet(sheet, answers)
                show.say(
                    f"{count} answers to {sheet}: fill in decision (restore, reject or undo), then "
                    f"kgbias review {run.name} --from {sheet}",
                    err=True,
                )
                return
            if not answers:
                show.say(f"nothing to review in run {run.name}", err=True)
                return
            if not sys.stdin.isatty():
                raise UsageError(
                    "keys need a terminal: --csv FILE writes a spreadsheet, --json prints"
                )
            _say(run, _Session(made, answers).decisions())


class _Session:
    """A person at a terminal, deciding about answers one key at a time."""

    def __init__(self, review: Review, answers: Sequence[ReviewedAnswer]) -> None:
        self._review = review
        alike: dict[tuple[str, ...], list[ReviewedAnswer]] = {}
        for a in answers:
            said = (a.predicate, a.object) if a.accepted else (a.asked, a.answer)
            alike.setdefault((a.outcome, a.reason, a.group, *said), []).append(a)
        self._items = list(alike.values())
        self._made: dict[int, list[Decision]] = {}
        self._typed = ""

    def decisions(self) -> list[Decision]:
        """Show answers until none are left or the person quits; the decisions made."""
        place = 0
        while 0 <= place < len(self._items):
            self._show(place)
            try:
                step = self._step(place)
            except (click.Abort, KeyboardInterrupt, EOFError):
                step = None
            if step is None:
                show.say()
                break
            place = max(0, place + step)
        return [d for made in self._made.values() for d in made]

    def _show(self, place: int) -> None:
        alike = self._items[place]
        a = alike[0]
        ended = f"{a.outcome}: {a.reason}" if a.reason else a.outcome
        times = f"  ({len(alike)} times)" if len(alike) > 1 else ""
        read = f"{a.predicate} | {a.object}" if a.object else "no statement found"
        show.say("", f"{place + 1} of {len(self._items)}  {ended}  {a.group}")
        show.say(f"  asked  {a.asked}")
        for line in (a.answer.strip() or "(nothing)").splitlines():
            show.say(f"  said   {line}{times}")
            times = ""
        show.say(f"  {'counts' if a.accepted else 'read'} as  {read}")
        if a.decision:
            show.say(f"  {a.decision} by {a.reviewer}, {a.decided[:16]}")

    def _step(self, place: int) -> int | None:
        """Take one key; the number of places to move, or None to quit."""
        alike = self._items[place]
        first = alike[0]
        keys = {k: v for k, v in _KEYS.items() if k != "r" or (first.object and not first.accepted)}
        show.say("  " + ", ".join(f"[{k}] {v}" for k, v in keys.items()) + " ", nl=False)
        while (key := self._key()) not in keys:
            if key in _QUIT:
                return None
        show.say(key)
        if key == "q":
            return None
        if key == "b":
            if made := self._made.pop(max(0, place - 1), []):
                self._review.undo([d.generation_id for d in made])
            return -1
        if key == "r":
            self._made[place] = list(self._review.decide(alike, "restore"))
        if key == "e":
            predicate = show.prompt("  predicate", first.predicate)
            object = show.prompt("  object", first.object)
            self._made[place] = list(self._review.decide(alike, "restore", predicate, object))
        if key == "x":
            self._made[place] = list(self._review.decide(alike, "reject"))
        return 1

    def _key(self) -> str:
        """The next key. Keys typed ahead come one by one; arrows and the like are ignored."""
        while not self._typed:
            typed = click.getchar()
            self._typed = "" if typed.startswith("\x1b") else typed.casefold()
        key, self._typed = self._typed[0], self._typed[1:]
        return key


def _say(run: kgbias.Run, made: Sequence[Decision]) -> None:
    names = {"restore": "restored", "reject": "rejected", "undo": "taken back"}
    counts = [
        f"{n} {names[verdict]}"
        for verdict in names
        if (n := sum(d.verdict == verdict for d in made))
    ]
    show.say(
        f"run {run.name}: {', '.join(counts) or 'nothing was decided'}"
        + (f"; kgbias measure {run.name} brings its figures up to date" if made else "")
    )
