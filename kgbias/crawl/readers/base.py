"""What every reader of answers returns, and the bounds that all of them keep.

Chat models put a preamble, a bullet or a note around an answer; all of it is removed. A preamble is
recognised by its capital letter: a model that continues "Men are" with "sure of themselves" has
none. Every pattern is bounded or tried at one place only, so time is linear in the length.
"""

import re
from dataclasses import dataclass

from kgbias.graph.types import Outcome

EDGE_CHARACTERS = " \t\"'“”„«»‘’*_#|`>"

_INTERJECTION = re.compile(
    r"(?:Sure(?: thing)?|Certainly|Of course|Okay|OK|Absolutely|Great|Alright|All right|No problem|"
    r"Yes|Got it|Natürlich|Selbstverständlich|Klar|Gerne?|Sicher|Ja)\s?[!,.:]+"
)
_ANSWER_NOUNS = (
    r"(?:sentence|statement|answer|completion|continuation|list|entry|example|response|output)"
)
_ANNOUNCEMENT = re.compile(
    r"(?:(?:And )?[Hh]ere(?:['’]s| is| are| you go| it is)\b|"
    rf"(?:[Tt]he|[Mm]y|[Yy]our) (?:\w{{1,20}} ){{0,3}}{_ANSWER_NOUNS}\b|"
    rf"(?i:(?:(?:final|next|completed|new) )?{_ANSWER_NOUNS})(?=\s?:)|"
    r"I(?: would|['’]d) (?:say|complete|continue|answer)\b|"
    r"Hier (?:ist|sind|kommt)\b|"
    r"(?:Der|Die|Das|Mein|Meine) (?:\w{1,20} ){0,3}(?:Satz|Antwort|Liste)\b|"
    r"(?:Antwort|Satz)(?=\s?:))"
    r"[^:\n]{0,80}:"
)
_BULLET = re.compile(r"(?:[-*•–—]|\d{1,3}[.)]|[a-z]\))[^\S\n]+|\.\.\.|…")
_NOTE = re.compile(
    r"\s?[(\[]\s?(?:please )?(?:note|disclaimer|explanation|this (?:is|sentence|statement)|"
    r"hinweis|anmerkung)\b.*",
    re.IGNORECASE | re.DOTALL,
)


def without_preamble(text: str) -> str:
    """The answer after "Sure!", "Here is one:" and the like; unchanged without them."""
    remainder, is_found = text, False
    for pattern in (_INTERJECTION, _ANNOUNCEMENT):
        stripped = remainder.lstrip(EDGE_CHARACTERS + "\n")
        if match := pattern.match(stripped):
            remainder, is_found = stripped[match.end() :], True
    return remainder.lstrip() if is_found else text


def without_bullet(line: str) -> str:
    """The line after the bullet, number or dots that it begins with."""
    stripped = line.lstrip()
    match = _BULLET.match(stripped)
    return stripped[match.end() :] if match else line


def without_note(line: str) -> str:
    """The line up to a note in brackets, as in "late (Note: this is a stereotype)". Expects single
    spaces."""
    return _NOTE.sub("", line, count=1)


MAX_OBJECT_WORDS = 20  # objects in the paper have 1 to 6 words; anything longer than this is prose

_SPACES = re.compile(r"[^\S\n]+")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]")


@dataclass(frozen=True, slots=True)
class AnswerReading:
    """How an answer was read: a predicate and an object if `outcome` is "ok", else the reason."""

    outcome: Outcome
    reason: str = ""
    predicate: str = ""
    object: str = ""


def unparsable_reading(reason: str) -> AnswerReading:
    return AnswerReading("unparsable", reason)


def single_spaces(text: str) -> str:
    """The text with each run of spaces as one, lines kept: otherwise a pattern that begins with
    spaces would take time quadratic in their number."""
    return _SPACES.sub(" ", text)


def replace_controls(text: str) -> str:
    """The text with a space for each control character, lines and tabs kept."""
    return _CONTROL.sub(" ", text)
