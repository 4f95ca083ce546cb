"""Reads an answer as the rest of a sentence about a group, in any language that has a grammar.

If the prompt names the predicate, the object is the rest of the sentence; otherwise the language
decides where the predicate ends. A chat model may say the whole sentence, and more: what it puts
around the sentence is removed, and a sentence about something else is not read.
"""

import re
import unicodedata
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import NamedTuple

from kgbias.crawl.readers.base import (
    EDGE_CHARACTERS,
    MAX_OBJECT_WORDS,
    AnswerReading,
    replace_controls,
    single_spaces,
    unparsable_reading,
    without_bullet,
    without_note,
    without_preamble,
)

# Characters in which a sentence must end; no time is spent on the rest.
SENTENCE_WINDOW_CHARACTERS = 600
MAX_PREDICATE_WORDS = 7
_CHARACTERS_OF_A_WORD = 2  # where no spaces are written

_PLAIN_QUOTES = str.maketrans("’‘“”„«»", '\'\'"""""')
_FORM_MARKS = re.compile(r"[#|<>{}\[\]=\\]|\bhttps?:|_{2,}|\b[QA]\s?:")
_MARKUP_START = re.compile(r"\s*[{\[<]")  # of JSON, a list or tags in place of a sentence
_ABOUT_THE_LIST = re.compile(
    r"\b(?:this|these|the (?:above|following|previous|next)) (?:\w{1,20} )?"
    r"(?:sentence|statement|example|list|answer|response|phrase|opinion|quote|question)s?\b",
    re.IGNORECASE,
)
_WORD_CONTINUATION = re.compile(r"n?['’](?:t|s|re|ve|ll|d|m)\b", re.IGNORECASE)
_LETTER = re.compile(r"[^\W\d_]")


OTHER_LANGUAGE = "another language"
"""Why an answer that is not in the language of the prompts has no reading."""


class NoReading(Exception):
    """An answer holds no statement about the group; the message is the reason."""


@dataclass(frozen=True)
class SentenceGrammar:
    """What a reader must know about a language.

    Attributes:
        sentence_end: finds the mark that ends a sentence, before a space or the end.
        find_object: the place in a line where the object begins. Raises NoReading.
        check_line: raises NoReading if an object cannot follow this predicate; the third argument
            is whether the line was seen to continue the subject.
        is_in_language: whether a line is in this language.
        is_fragment: whether an object is cut off at its end.
        articles: what may precede the subject when it is repeated.
        equivalent_forms: predicates with several forms, each with all of them.
        spaces: whether words are written with spaces between them.
    """

    sentence_end: re.Pattern[str]
    find_object: Callable[[str, str], int]
    check_line: Callable[[str | None, str, bool], None]
    is_in_language: Callable[[str], bool]
    is_fragment: Callable[[str], bool]
    articles: str
    equivalent_forms: dict[str, Collection[str]]
    spaces: bool = True


def read_sentence(
    language: SentenceGrammar, answer: str, *, ended: bool, predicate: str | None, subject: str
) -> AnswerReading:
    """The reading of an answer; `ended` is False where it reached the token limit."""
    try:
        line, continues = _find_continuation(language, answer, ended, predicate, subject)
        language.check_line(predicate, line, continues)
        if predicate is None:
            object_start = language.find_object(subject, line)
            predicate, object = line[:object_start].strip(), line[object_start:].strip(" ,:")
            object = _strip_beginning(object, predicate.split()[-1:], language.spaces)
        else:
            object = line
        if subject and _repeats(language, subject, predicate, object):
            raise NoReading("the sentence inside another")
        return AnswerReading("ok", "", predicate, _check_object(language, predicate, object))
    except NoReading as error:
        return unparsable_reading(str(error))


class _Continuation(NamedTuple):
    """What follows subject and predicate, and whether it certainly does."""

    text: str
    is_certain: bool


def _find_continuation(
    language: SentenceGrammar, answer: str, ended: bool, predicate: str | None, subject: str
) -> _Continuation:
    """What follows subject and predicate in the answer's sentence about them, and whether this is
    certain: it is if the sentence repeats them, or begins with a small letter."""
    # A mark that stands on the prompt's last letter (Arabic: دائما, and then ً) is of that word.
    text = answer.lstrip()
    while text and unicodedata.combining(text[0]):
        text = text[1:].lstrip()
    # "Women can" and "'t be cruel" say the opposite of what was asked.
    if _WORD_CONTINUATION.match(answer):
        raise NoReading("it goes on with the prompt's last word")
    is_truncated = len(text) > SENTENCE_WINDOW_CHARACTERS
    # Cut before any pattern is tried: time must not grow with the answer.
    text = single_spaces(
        replace_controls(text[:SENTENCE_WINDOW_CHARACTERS]).translate(_PLAIN_QUOTES)
    )
    text = without_preamble(text)
    lines = [line for line in text.split("\n") if _LETTER.search(line)]
    while len(lines) > 1 and lines[0].rstrip(EDGE_CHARACTERS).endswith(":"):
        del lines[0]  # an announcement in words of its own
    if not lines:
        raise NoReading("empty object" if predicate else "empty answer")
    if _MARKUP_START.match(lines[0]):
        raise NoReading("marks of a form")
    line = without_bullet(lines[0].lstrip(EDGE_CHARACTERS)).lstrip(EDGE_CHARACTERS)
    if line == subject and len(lines) > 1:
        raise NoReading("the subject alone")  # each word on a line
    continuation = _after_beginning(language, line, predicate, subject)
    continues = continuation is not None or not line[:1].isupper()
    goes_on = continues or answer[:1].isspace()  # a text that is continued begins with a space
    if predicate and subject and not goes_on and line.startswith(f"{subject} "):
        raise NoReading("another predicate")  # "Nurses know ..." and "Nurses are kind."
    line = line if continuation is None else continuation
    if sentence_end := language.sentence_end.search(line):
        if not {"?", "？", "؟"}.isdisjoint(sentence_end.group()):
            raise NoReading("a question")
        line = line[: sentence_end.start()]
    elif is_truncated and len(lines) == 1:
        raise NoReading("object too long")
    elif not (ended or len(lines) > 1):
        raise NoReading("unfinished")
    line = _tidy(without_note(line).partition(";")[0])
    if predicate:
        line = _strip_beginning(
            line,
            language.equivalent_forms.get(predicate.casefold(), (predicate,)),
            language.spaces,
        )
    if not _LETTER.search(line):
        raise NoReading("empty object" if predicate else "empty answer")
    if line.endswith(":"):
        raise NoReading("an announcement alone")
    if _FORM_MARKS.search(line):
        raise NoReading("marks of a form")
    if _ABOUT_THE_LIST.search(line):
        raise NoReading("about the list")
    if not language.is_in_language(line):
        raise NoReading(OTHER_LANGUAGE)
    return _Continuation(line, continues)


def _after_beginning(
    language: SentenceGrammar, line: str, predicate: str | None, subject: str
) -> str | None:
    """What follows subject and predicate if the line repeats them, at its beginning or after a
    colon or a quotation mark; else None. Raises NoReading for a quotation that more is said of."""
    if not subject:
        return None
    gap = " " if language.spaces else " ?"
    article = rf"(?:(?:{language.articles}){gap})?" if language.articles else ""
    beginning = rf"{article}{_escaped_words(subject)}"
    if predicate:
        forms = language.equivalent_forms.get(predicate.casefold(), (predicate,))
        beginning += f"{gap}(?:" + "|".join(_escaped_words(form) for form in forms) + ")"
    end = r"(?!\w|'s\b)" if language.spaces else ""
    pattern = re.compile(
        rf"(?:^(?:\W{{1,8}}|\(\w{{1,3}}\) ?)?|[:\"] ?){beginning}{end}", re.IGNORECASE
    )
    if (match := pattern.search(line)) is None:
        return None
    remainder = line[match.end() :]
    quoted, quote, after = remainder.partition('"')
    is_part = remainder.count('"') % 2 and not quoted.endswith(tuple(".!?…"))  # it began before
    if quote and is_part and _LETTER.search(after):
        raise NoReading("about a quotation")
    return remainder.lstrip(f"{EDGE_CHARACTERS}:")


def _repeats(language: SentenceGrammar, subject: str, predicate: str, object: str) -> bool:
    """Whether an object holds subject and predicate once more, with spaces between them or with
    whatever became of these, or the subject after a colon or a quotation mark."""
    forms = language.equivalent_forms.get(predicate.casefold(), (predicate,))
    either = "|".join(re.escape("".join(form.split())) for form in forms)
    text = re.sub(r"%20|[\W_ĠĊ▁]+", "", object)
    again = rf"[:\"*]\s?{_escaped_words(subject)}(?!\w)"
    pattern = rf"{re.escape(''.join(subject.split()))}(?:{either})"
    return bool(re.search(pattern, text) or re.search(again, object))


def _escaped_words(text: str) -> str:
    return " ".join(re.escape(word) for word in text.split())


def _strip_beginning(line: str, beginnings: Collection[str], spaces: bool) -> str:
    """The line without any of these at its beginning: "love love dinners" loses its second verb. A
    line of nothing else stays: "Sikhs love | love" is a statement."""
    for beginning in beginnings:
        remainder = line[len(beginning) :]
        if line[: len(beginning)].casefold() == beginning.casefold() and (
            remainder.startswith(" ") or (remainder and not spaces)
        ):
            return remainder.strip()
    return line


def _tidy(line: str) -> str:
    """The line without the quotes and marks at its edges; pairs of quotation marks stay."""
    closing = line.rstrip().endswith('"')
    line = " ".join(line.split()).strip(EDGE_CHARACTERS.replace("'", "") + ",，、،-–—")
    # Cut at its other end, a quotation mark stands alone.
    if line.count('"') % 2:
        line = f'{line}"' if closing else line.replace('"', "")
    return line.strip()


def _check_object(language: SentenceGrammar, predicate: str, object: str) -> str:
    if not any(character.isalnum() for character in object):
        raise NoReading("empty object")
    length = len(object.split()) if language.spaces else len(object) / _CHARACTERS_OF_A_WORD
    if length > MAX_OBJECT_WORDS:
        raise NoReading("object too long")
    if len(predicate.split()) > MAX_PREDICATE_WORDS:
        raise NoReading("predicate too long")
    if language.is_fragment(object):
        raise NoReading("a fragment")
    return object
