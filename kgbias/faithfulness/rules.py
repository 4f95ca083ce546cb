"""Whether one sentence says what another says, by rules: the same words, negated alike.

No rule understands a sentence. These catch the mistakes of a parser or a careless writer: a word
that the source does not have, a lost negation, a cut-off clause that reversed the meaning, a view
that the source attributed to others. They miss paraphrases; see `kgbias.faithfulness.judges` for
judges that do not.
"""

import re
from dataclasses import dataclass
from typing import Literal

from kgbias.language.words import is_negated, is_negation, split_words

Reason = Literal["", "words", "negation", "cut", "attributed", "unfinished"]

_FUNCTION = frozenset(
    """a an the and or of to in on at for from by with as is are was were be been being am do does
    did have has had it its they them their this that these those there who which what so very more
    most too also just often always usually generally still even some many all any can could may
    might will would shall should must if than then when while about into over such own same other
    he she his her him we us our you your i my me""".split()
)
# Words after a statement that take it back, or make it conditional.
_TURNS = re.compile(
    r"^[\s,;:.!?–—-]*(?:but|however|yet|although|though|except|unless|nevertheless|nonetheless|"
    r"which is (?:not|un\w+|false|wrong)|or so (?:some|many|they|people)|if|only (?:if|when)|"
    r"(?:this|that|it)(?: is|'s|’s) (?:not|a (?:myth|stereotype|lie)|false|wrong|untrue)|"
    r"not (?:true|really)|is (?:a|an) (?:myth|stereotype|lie))\b",
    re.IGNORECASE,
)
# Words before a statement that attribute it to others, or deny it.
_ATTRIBUTED = re.compile(
    r"\b(?:(?:it is|it's|that is) (?:not true|wrong|false|untrue|unfair|a myth|a stereotype)|"
    r"(?:some|many|most|few) (?:people )?(?:say|think|believe|claim|assume)|"
    r"(?:the )?(?:myth|stereotype|prejudice|belief|claim|notion|idea) (?:that|is)|"
    r"(?:don't|do not) (?:say|think|believe)|people (?:say|think|believe|claim))\b",
    re.IGNORECASE,
)
_DANGLING = frozenset("a an the and or but of than because whose".split())


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a statement is borne out, and if not, why: it has "words" that the source lacks, its
    "negation" differs, it was "cut" before a clause that reverses it, the source "attributed" it to
    others, or it is "unfinished"."""

    supported: bool
    reason: Reason = ""


def content(text: str) -> list[str]:
    """The stems of the words that carry a text's meaning, in order, without negations."""
    return [stem(w) for w in split_words(text) if w not in _FUNCTION and not is_negation(w)]


def says(source: str, statement: str) -> Verdict:
    """Whether one sentence of a source says what a statement says: it has all words that carry the
    statement's meaning, and both or neither of the two are negated."""
    own = content(statement)
    there = content(source)
    if not own or not set(own) <= set(there):
        return Verdict(False, "words")
    if is_negated(source) != is_negated(statement):
        return Verdict(False, "negation")
    first = _place(source, own)
    if _ATTRIBUTED.search(source[:first]) and not _ATTRIBUTED.search(statement):
        return Verdict(False, "attributed")
    return Verdict(True)


def kept(answer: str, subject: str, predicate: str, object: str) -> Verdict:
    """Whether a triple that was read from an answer says what the answer said.

    `answer` is the whole sentence, including its beginning from the prompt.
    """
    span = _span(answer, subject, predicate, object)
    if span is None:
        return Verdict(False, "words")
    start, end = span
    said = f"{subject} {predicate} {object}"
    if is_negated(answer[start:end]) != is_negated(said):
        return Verdict(False, "negation")
    if _ATTRIBUTED.search(answer[:start]):
        return Verdict(False, "attributed")
    if _TURNS.match(answer[end:].split("\n")[0]):
        return Verdict(False, "cut")
    last = split_words(object)[-1:]
    if last and last[0] in _DANGLING and len(split_words(object)) > 1:
        return Verdict(False, "unfinished")
    return Verdict(True)


def _span(text: str, subject: str, predicate: str, object: str) -> tuple[int, int] | None:
    """The span of the statement in a text: from the subject to its last word, with the words in
    order; None if one is missing. Of several possible beginnings, the last complete one is taken,
    so a remark before the sentence does not count."""
    wanted = split_words(f"{predicate} {object}")
    found = None
    for begin in re.finditer(rf"(?<!\w){re.escape(subject)}(?!\w)", text, re.IGNORECASE):
        place = begin.end()
        for word in wanted:
            spelt = re.escape(word).replace("'", "['’]")
            match = re.compile(rf"(?<!\w){spelt}(?!\w)", re.IGNORECASE).search(text, place)
            if match is None:
                break
            place = match.end()
        else:
            found = begin.start(), place
    return found


def _place(text: str, own: list[str]) -> int:
    """Where the first of these words stands."""
    for match in re.finditer(r"[^\W_]+(?:['’-][^\W_]+)*", text):
        if stem(match[0].lower()) in own:
            return match.start()
    return 0


_ENDINGS = ("ingly", "edly", "ings", "ing", "ies", "ers", "er", "ed", "es", "ly", "s")


def stem(word: str) -> str:
    """A word without its inflection and derivation, roughly: "working", "works" and "worker" give
    "work". A claim may turn a verb into a noun and say the same."""
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            word = word.removesuffix(ending)
            break
    return word.removesuffix("e") if len(word) > 3 else word
