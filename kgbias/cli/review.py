"""`kgbias review`: restore or reject a run's answers by hand."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

import kgbias
from kgbias.cli import show
from kgbias.cli.command import Command
from kgbias.cli.options import json_flag, run_name_argument, store_option
from kgbias.errors import UsageError
from kgbias.graph.decisions import Decision
from kgbias.io.wording import pluralise
from kgbias.study.review import Review, ReviewedAnswer

_KEY_MEANINGS = {
    "r": "restore as read",
    "e": "edit and restore",
    "x": "reject",
    "s": "skip",
    "b": "back",
    "q": "quit",
}
_QUIT_KEYS = "\x03\x04"  # Ctrl-C and Ctrl-D, if they arrive as keys


@click.command(
    cls=Command,
    section="Check",
    short_help="Restore or reject a run's answers by hand.",
    examples=("kgbias review smollm2 --reason refused --csv refused.csv",),
)
@run_name_argument
@store_option
@click.option(
    "--reason",
    multiple=True,
    metavar="NAME",
    help="Only answers with this outcome or reason, such as refused (repeatable).",
)
@click.option(
    "--only", "group", multiple=True, metavar="NAME", help="Only this group (repeatable)."
)
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
@json_flag
def review(
    run_name: str | None,
    store_url: str,
    by: str | None,
    sheet: Path | None,
    filled: Path | None,
    undo: bool,
    as_json: bool,
    **filters: Any,
) -> None:
    """Review the rejected answers of a run: restore statements, confirm the rest as rejected.

    In a terminal, one key decides; identical answers are shown once. Decisions are kept when you
    quit. Each is stored with its author and time and is part of exports; --undo takes it back. The
    crawl's own outcome stays. Run kgbias measure again afterwards.
    """
    if sum((sheet is not None, filled is not None, undo, as_json)) > 1:
        raise UsageError("choose one of --csv, --from, --undo and --json")
    if filled is not None and any(filters.values()):
        raise UsageError("--from reads the whole file: leave out options that select answers")
    with kgbias.open(store_url, progress=True) as study:
        run = study.run(run_name)
        with run.review(by=by) as review_made:
            if filled is not None:
                return _print_decisions(run, review_made.read_sheet(filled))
            if undo:
                filters |= {"decided": True}
                answers_to_undo: list[ReviewedAnswer] = []
                for accepted in (False, True):
                    answers_to_undo += review_made.answers(**{**filters, "accepted": accepted})
                return _print_decisions(run, review_made.undo(answers_to_undo))
            answers = review_made.answers(**filters)
            if as_json:
                return show.print_json(answers.records())
            if sheet is not None:
                count = review_made.write_sheet(sheet, answers)
                show.say(
                    f"{pluralise(count, 'answer')} to {sheet}: fill in decision (restore, reject "
                    f"or undo), then "
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
            _print_decisions(run, _ReviewSession(review_made, answers).collect_decisions())


class _ReviewSession:
    """A person at a terminal, deciding about answers one key at a time."""

    def __init__(self, review: Review, answers: Sequence[ReviewedAnswer]) -> None:
        self._review = review
        answers_by_text: dict[tuple[str, ...], list[ReviewedAnswer]] = {}
        for answer in answers:
            text_key = (
                (answer.predicate, answer.object)
                if answer.accepted
                else (answer.asked, answer.answer)
            )
            answers_by_text.setdefault(
                (answer.outcome, answer.reason, answer.group, *text_key), []
            ).append(answer)
        self._answer_sets = list(answers_by_text.values())
        self._decisions_by_place: dict[int, list[Decision]] = {}
        self._typed_keys = ""

    def collect_decisions(self) -> list[Decision]:
        """Show answers until none are left or the person quits; the decisions made."""
        place = 0
        while 0 <= place < len(self._answer_sets):
            self._show_answers(place)
            try:
                step = self._take_key(place)
            except (click.Abort, KeyboardInterrupt, EOFError):
                step = None
            if step is None:
                show.say()
                break
            place = max(0, place + step)
        return [
            decision
            for place_decisions in self._decisions_by_place.values()
            for decision in place_decisions
        ]

    def _show_answers(self, place: int) -> None:
        same_answers = self._answer_sets[place]
        answer = same_answers[0]
        ended = f"{answer.outcome}: {answer.reason}" if answer.reason else answer.outcome
        times = f"  ({len(same_answers)} times)" if len(same_answers) > 1 else ""
        read = f"{answer.predicate} | {answer.object}" if answer.object else "no statement found"
        show.say("", f"{place + 1} of {len(self._answer_sets)}  {ended}  {answer.group}")
        show.say(f"  asked  {answer.asked}")
        for line in (answer.answer.strip() or "(nothing)").splitlines():
            show.say(f"  said   {line}{times}")
            times = ""
        show.say(f"  {'counts' if answer.accepted else 'read'} as  {read}")
        if answer.decision:
            show.say(f"  {answer.decision} by {answer.reviewer}, {answer.decided[:16]}")

    def _take_key(self, place: int) -> int | None:
        """Take one key; the number of places to move, or None to quit."""
        same_answers = self._answer_sets[place]
        first_answer = same_answers[0]
        keys = dict(_KEY_MEANINGS)
        if first_answer.accepted or not first_answer.object:
            del keys["r"]
        show.say("  " + ", ".join(f"[{k}] {v}" for k, v in keys.items()) + " ", nl=False)
        key = self._next_key()
        while key not in keys:
            if key in _QUIT_KEYS:
                return None
            key = self._next_key()
        show.say(key)
        if key == "q":
            return None
        if key == "b":
            decisions_before = self._decisions_by_place.pop(max(0, place - 1), [])
            if decisions_before:
                self._review.undo([d.generation_id for d in decisions_before])
            return -1
        if key == "r":
            self._decisions_by_place[place] = list(self._review.decide(same_answers, "restore"))
        if key == "e":
            predicate = show.prompt("  predicate", first_answer.predicate)
            object = show.prompt("  object", first_answer.object)
            self._decisions_by_place[place] = list(
                self._review.decide(same_answers, "restore", predicate, object)
            )
        if key == "x":
            self._decisions_by_place[place] = list(self._review.decide(same_answers, "reject"))
        return 1

    def _next_key(self) -> str:
        """The next key. Keys typed ahead come one by one; arrows and the like are ignored."""
        while not self._typed_keys:
            typed = click.getchar()
            self._typed_keys = "" if typed.startswith("\x1b") else typed.casefold()
        key, self._typed_keys = self._typed_keys[0], self._typed_keys[1:]
        return key


def _print_decisions(run: kgbias.Run, decisions: Sequence[Decision]) -> None:
    names = {"restore": "restored", "reject": "rejected", "undo": "taken back"}
    counts = []
    for verdict, name in names.items():
        count = sum(decision.verdict == verdict for decision in decisions)
        if count:
            counts.append(f"{count} {name}")
    show.say(
        f"run {run.name}: {', '.join(counts) or 'nothing was decided'}"
        + (f"; kgbias measure {run.name} brings its figures up to date" if decisions else "")
    )
