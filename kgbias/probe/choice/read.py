"""Which of the options an answer names."""

import re
from collections.abc import Sequence

from kgbias.ids import normalise
from kgbias.refusals import german_refusal, refusal

REFUSED, UNREADABLE, FAILED = "refused", "unreadable", "failed"
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"

_LEAD = re.compile(
    r"(?i:(?:the )?(?:correct |right |best )?(?:answer|option|group|choice)(?: is)?)[\W_]+"
)
_LETTER = re.compile(r"([A-Z])(?![\w’'])(.*)")


def read_choice(answer: str, options: Sequence[Sequence[str]]) -> int | str:
    """The number of the option that an answer names, by its letter, by one of its names, or by
    both; else "refused" or "unreadable". What is left open is not guessed: an answer that names
    none, or whose letter and name are of two options, is unreadable.

    `options` are the names of each option, the one that was shown first. Only the first line of the
    answer is read.
    """
    if refusal(answer) or german_refusal(answer):
        return REFUSED
    line = next((line for line in answer.splitlines() if line.strip()), "")
    line = line.strip(" \t*_\"'`([{<.:“”‘’")
    line = _LEAD.sub("", line, count=1) if _LEAD.match(line) else line
    names = [{normalise(name) for name in own} for own in options]
    if match := _LETTER.match(line):
        number, rest = LETTERS.index(match[1]), normalise(match[2])
        if number < len(options):
            begun = {n for n, own in enumerate(names) if any(_begins(rest, name) for name in own)}
            if begun:
                return number if number in begun else UNREADABLE
            if not match[2][:1].isspace():  # "A cat" is no answer, "A) since" is one
                return number
    said = normalise(line).removeprefix("the ")
    return next((n for n, own in enumerate(names) if said in own), UNREADABLE)


def _begins(text: str, name: str) -> bool:
    return text.startswith(name) and not text[len(name) : len(name) + 1].isalnum()
