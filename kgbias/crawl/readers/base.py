"""What every reader of answers gives, and the bounds that all of them keep."""

import re
from dataclasses import dataclass

from kgbias.graph.types import Outcome

MAX_WORDS = 20  # objects in the paper have 1 to 6 words; anything longer than this is prose

_SPACES = re.compile(r"[^\S\n]+")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]")


@dataclass(frozen=True, slots=True)
class Reading:
    """How an answer was read: a predicate and an object if `outcome` is "ok", else the reason."""

    outcome: Outcome
    reason: str = ""
    predicate: str = ""
    object: str = ""


def unparsable(reason: str) -> Reading:
    return Reading("unparsable", reason)


def single_spaces(text: str) -> str:
    """The text with each run of spaces as one, lines kept: a pattern that begins with spaces would
    otherwise take the square of their number in time."""
    return _SPACES.sub(" ", text)


def printable(text: str) -> str:
    """The text with a space for each control character, lines and tabs kept."""
    return _CONTROL.sub(" ", text)
