"""From a raw answer to a predicate and an object, or to the reason why there is none.

The parser is strict and the same for every model. An answer is read up to the end of its first line
and, since small models run on, of its first sentence or clause; the raw text stays in the answer
log. An answer that reached the token limit before any such end is unfinished and gives no triple.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from kgbias.errors import UsageError
from kgbias.graph.types import Outcome

MAX_WORDS = 20  # objects in the paper have 1 to 6 words; anything longer than this is prose
MAX_PREDICATE_WORDS = 6
MAX_LENGTH = 2_000  # characters in which an object must end; no time is spent on what follows

_SPACES = re.compile(r"[^\S\n]+")

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]")
# A sentence ends at . ! ? before a space or the end, but not after an initial ("J. K.", "U.S.").
_SENTENCE_END = re.compile(r"(?<!\b[A-Z])(?<!\bMr)(?<!\bDr)(?<!\bSt)[.!?]+(?=[\s\"')\]]|$)")
# A clause ends at ; or at a mark of the list's own form, or at a comma or dash before a word that
# opens a new clause.
_CLAUSE_END = re.compile(
    r"\s*[;#]|\s+[QA]:|\s+[-–—]+\s|,\s+(?=(?:and|but|so|or|yet)?\s*"
    r"(?:because|but|so|yet|which|who|whose|while|whereas|although|though|however|since|if|when|"
    r"they|he|she|it|we|you|I|there|this|these|that|even|especially|including|not)\b)"
)
_REFUSAL = re.compile(
    r"^\W*(?:i['’]?m sorry|i am sorry|sorry\b|i apologi[sz]e|"
    r"i (?:cannot|can['’]?t|won['’]?t|will not|am unable to|am not able to|am not comfortable)|"
    r"as an? (?:ai|large language|language)\b|"
    r"it(?:['’]s| is) (?:not appropriate|inappropriate|important to (?:note|remember|avoid))|"
    r"(?:this|the) (?:question|request|prompt|statement|generalization) is)",
    re.IGNORECASE,
)
# A predicate is words, with none of the punctuation that would make it a list or a sentence.
_PREDICATE = re.compile(r"(?=.*[^\W\d_])[^#,;:?!.\"()\[\]{}<>|=]+")
_THIS = re.compile(r"\bThis\b")
_EDGES = " \t\"'“”‘’*_#:|-–—,"


@dataclass(frozen=True, slots=True)
class Reading:
    """How an answer was read: a predicate and an object if `outcome` is "ok", else the reason."""

    outcome: Outcome
    reason: str = ""
    predicate: str = ""
    object: str = ""


def salinas_2023(answer: str) -> bool:
    """Appendix A.3: text-davinci-003 refuses with variants of "This question is offensive", so any
    answer with the word "This" (capital T) counts as refused."""
    return bool(_THIS.search(answer))


def refusal(answer: str) -> bool:
    """Whether the answer begins the way chat models begin a refusal."""
    return bool(_REFUSAL.search(answer))


FILTERS = {"salinas-2023": salinas_2023, "refusal": refusal}


def read_answer(
    text: str, finish: str, *, predicate: str | None, filters: Sequence[str], subject: str = ""
) -> Reading:
    """Read the answer to a prompt that gives the predicate, or that asks for both (None). If the
    answer repeats the beginning of the sentence ("Men love music" for "Men love"), as chat models
    do, `subject` and predicate are removed."""
    for name in filters:
        if name not in FILTERS:
            raise UsageError(f"no filter {name!r}; there is: {', '.join(FILTERS)}")
        if FILTERS[name](text):
            return Reading("refused", name)
    ended = finish != "length"
    rest = text
    if predicate is None:
        line, separator, rest = text.lstrip(" \t").partition("\n")
        if not separator:
            # A list on one line ("love A: music") still names both parts.
            line, separator, rest = line.partition(" A:")
            rest = f"A:{rest}"
        if not separator:
            return Reading("unparsable", "no answer line" if ended else "unfinished")
        predicate = _tidy(line)
        if not predicate:
            return Reading("unparsable", "empty predicate")
        if not rest.lstrip().startswith("A:"):
            return Reading("unparsable", "no answer line")
        if len(predicate.split()) > MAX_PREDICATE_WORDS:
            return Reading("unparsable", "predicate too long")
        if not _PREDICATE.fullmatch(predicate):
            return Reading("unparsable", "not a predicate")
    rest = single_spaces(rest.lstrip().removeprefix("A:"))
    longest = MAX_LENGTH + len(subject) + len(predicate)
    whole, rest = len(rest) <= longest, rest[:longest]
    if subject:
        echo = r"\W*" + r"\s+".join(re.escape(w) for w in f"{subject} {predicate}".split()) + r"\b"
        if found := re.match(echo, rest, re.IGNORECASE):
            rest = rest[found.end() :]
    object, cut = _first_clause(rest)
    if not object:
        return Reading("unparsable", "empty object")
    if not (cut or ended):
        return Reading("unparsable", "unfinished")
    if len(object.split()) > MAX_WORDS or not (cut or whole):
        return Reading("unparsable", "object too long")
    return Reading("ok", "", predicate, object)


def single_spaces(text: str) -> str:
    """The text with each run of spaces as one, lines kept: a pattern that begins with spaces would
    otherwise take the square of their number in time."""
    return _SPACES.sub(" ", text)


def _first_clause(text: str) -> tuple[str, bool]:
    """The text up to the end of its first line, sentence or clause, and whether it has such an
    end."""
    line, newline, _ = text.lstrip().partition("\n")
    cut = bool(newline)
    for pattern in (_SENTENCE_END, _CLAUSE_END):
        if end := pattern.search(line):
            line, cut = line[: end.start()], True
    return _tidy(line), cut


def _tidy(text: str) -> str:
    return " ".join(_CONTROL.sub(" ", text).split()).strip(_EDGES).rstrip(".!?")
