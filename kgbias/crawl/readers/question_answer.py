"""The reader of the published form, lists of questions and answers ("Q: Men # love", "A: music").

It is strict and knows no language. An answer is read up to the end of its first line and, since
small models run on, of its first sentence or clause.
"""

import re
from typing import NamedTuple

from kgbias.crawl.readers.base import (
    MAX_OBJECT_WORDS,
    AnswerReading,
    replace_controls,
    single_spaces,
    unparsable_reading,
    without_bullet,
    without_note,
    without_preamble,
)

MAX_PREDICATE_WORDS = 6
MAX_OBJECT_CHARACTERS = (
    2_000  # characters in which an object must end; no time is spent on the rest
)

# A sentence ends at . ! ? before a space or the end, but not after an initial ("J. K.", "U.S.").
_SENTENCE_END = re.compile(r"(?<!\b[A-Z])(?<!\bMr)(?<!\bDr)(?<!\bSt)[.!?]+(?=[\s\"')\]]|$)")
# A clause ends at ; or at a mark of the list's own form, or at a comma or dash before a word that
# opens a new clause.
_CLAUSE_END = re.compile(
    r"\s*[;#]|\s+[QA]:|\s+[-–—]+\s|,\s+(?=(?:and|but|so|or|yet)?\s*"
    r"(?:because|but|so|yet|which|who|whose|while|whereas|although|though|however|since|if|when|"
    r"they|he|she|it|we|you|I|there|this|these|that|even|especially|including|not)\b)"
)
# A predicate is words, with none of the punctuation that would make it a list or a sentence.
_PREDICATE_SHAPE = re.compile(r"(?=.*[^\W\d_])[^#,;:?!.\"()\[\]{}<>|=]+")
# What no object begins with: chat models answer "can't" with "are very hard-working".
_LEADING_VERB = re.compile(
    r"(?:is|are|am|isn['’]t|aren['’]t|can['’]t|cannot|won['’]t|don['’]t|doesn['’]t)\b",
    re.IGNORECASE,
)
# A sentence about something else, whole: "It's a stereotype", "I'd love to continue".
_OWN_SENTENCE = re.compile(
    r"(?:I|You|He|She|It|We|They|This|These|Those|There)"
    r"(?:['’](?:m|s|re|d|ll|ve)| (?:am|is|are|was|were|can|will|would|have|has|do))\b"
)
_EDGES = " \t\"'“”‘’*_#:|-–—,"


def read_question_answer(
    answer: str, *, ended: bool, predicate: str | None, subject: str
) -> AnswerReading:
    """The reading of an answer; `ended` is False if it reached the token limit."""
    remainder = text = without_preamble(answer)
    is_predicate_given = predicate is not None
    if predicate is None:
        line, separator, remainder = text.lstrip(" \t").partition("\n")
        if not separator:
            # A list on one line ("love A: music") still names both parts.
            line, separator, remainder = line.partition(" A:")
            remainder = f"A:{remainder}"
        if not separator:
            return unparsable_reading("no answer line" if ended else "unfinished")
        predicate = _tidy(without_bullet(line))
        if not predicate:
            return unparsable_reading("empty predicate")
        if not remainder.lstrip().startswith("A:"):
            return unparsable_reading("no answer line")
        if len(predicate.split()) > MAX_PREDICATE_WORDS:
            return unparsable_reading("predicate too long")
        if not _PREDICATE_SHAPE.fullmatch(predicate):
            return unparsable_reading("not a predicate")
    remainder = single_spaces(remainder.lstrip().removeprefix("A:"))
    # The answer may repeat the sentence's beginning, which does not count.
    max_length = MAX_OBJECT_CHARACTERS + len(subject) + len(predicate)
    is_whole, remainder = len(remainder) <= max_length, without_bullet(remainder[:max_length])
    if subject:
        repeated = _text_after(f"{subject} {predicate}", remainder)
        remainder = remainder if repeated is None else repeated
        # "Women love | love dinners" loses its second "love"; "Sikhs love | love" is a statement.
        repeated = _text_after(predicate, remainder)
        remainder = repeated if repeated and _tidy(repeated) else remainder
    object, is_cut = _first_clause(without_note(remainder))
    if not object:
        return unparsable_reading("empty object")
    if is_predicate_given and (_LEADING_VERB.match(object) or _OWN_SENTENCE.match(object)):
        return unparsable_reading("another sentence")
    if (
        is_predicate_given
        and subject
        and _LEADING_VERB.match((_text_after(subject, object) or "").lstrip())
    ):
        return unparsable_reading("another sentence")
    if not (is_cut or ended):
        return unparsable_reading("unfinished")
    if len(object.split()) > MAX_OBJECT_WORDS or not (is_cut or is_whole):
        return unparsable_reading("object too long")
    return AnswerReading("ok", "", predicate, object)


def _text_after(beginning: str, text: str) -> str | None:
    """What follows a beginning that the text repeats; None if it does not."""
    words = r"\s+".join(re.escape(word) for word in beginning.split()).replace("'", "['’]")
    match = re.match(rf"\W*(?:the )?{words}\b", text, re.IGNORECASE)
    return text[match.end() :] if match else None


class _FirstClause(NamedTuple):
    """The text up to the end of a clause, and whether there is one."""

    text: str
    has_end: bool


def _first_clause(text: str) -> _FirstClause:
    """The text up to the end of its first line, sentence or clause, and whether it has such an
    end."""
    line, newline, _ = text.lstrip().partition("\n")
    is_cut = bool(newline)
    for pattern in (_SENTENCE_END, _CLAUSE_END):
        if end := pattern.search(line):
            line, is_cut = line[: end.start()], True
    return _FirstClause(_tidy(line), is_cut)


def _tidy(text: str) -> str:
    return " ".join(replace_controls(text).split()).strip(_EDGES).rstrip(".!?")
