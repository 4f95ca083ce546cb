"""Whether one sentence says what another says, by rules: the same words, negated alike.

No rule understands a sentence. These catch the mistakes of a parser or a careless writer: a word
that the source does not have, a lost negation, a cut-off clause that reversed the meaning, a view
that the source attributed to others. They miss paraphrases; see `kgbias.methods.rag.judges` for
judges that do not.
"""

import re
from dataclasses import dataclass
from typing import Literal

from kgbias.language.words import is_negated, is_negation, split_words

VerdictReason = Literal["", "words", "negation", "cut", "attributed", "unfinished"]

_FUNCTION_WORDS = frozenset(
    """a an the and or of to in on at for from by with as is are was were be been being am do does
    did have has had it its they them their this that these those there who which what so very more
    most too also just often always usually generally still even some many all any can could may
    might will would shall should must if than then when while about into over such own same other
    he she his her him we us our you your i my me""".split()
)
# Words after a statement that take it back, or make it conditional.
_REVERSALS = re.compile(
    r"^[\s,;:.!?–—-]*(?:but|however|yet|although|though|except|unless|nevertheless|nonetheless|"
    r"which is (?:not|un\w+|false|wrong)|or so (?:some|many|they|people)|if|only (?:if|when)|"
    r"(?:this|that|it)(?: is|'s|’s) (?:not|a (?:myth|stereotype|lie)|false|wrong|untrue)|"
    r"not (?:true|really)|is (?:a|an) (?:myth|stereotype|lie))\b",
    re.IGNORECASE,
)
# Words before a statement that attribute it to others, or deny it.
_ATTRIBUTIONS = re.compile(
    r"\b(?:(?:it is|it's|that is) (?:not true|wrong|false|untrue|unfair|a myth|a stereotype)|"
    r"(?:some|many|most|few) (?:people )?(?:say|think|believe|claim|assume)|"
    r"(?:the )?(?:myth|stereotype|prejudice|belief|claim|notion|idea) (?:that|is)|"
    r"(?:don't|do not) (?:say|think|believe)|people (?:say|think|believe|claim))\b",
    re.IGNORECASE,
)
_DANGLING_WORDS = frozenset("a an the and or but of than because whose".split())


@dataclass(frozen=True, slots=True)
class RuleVerdict:
    """Whether a statement is borne out, and if not, why: it has "words" that the source lacks, its
    "negation" differs, it was "cut" before a clause that reverses it, the source "attributed" it to
    others, or it is "unfinished"."""

    supported: bool
    reason: VerdictReason = ""


def content_stems(text: str) -> list[str]:
    """The stems of the words that carry a text's meaning, in order, without negations."""
    return [
        stem_word(word)
        for word in split_words(text)
        if word not in _FUNCTION_WORDS and not is_negation(word)
    ]


def check_statement(source: str, statement: str) -> RuleVerdict:
    """Whether one sentence of a source says what a statement says: it has all words that carry the
    statement's meaning, and both or neither of the two are negated."""
    statement_stems = content_stems(statement)
    source_stems = content_stems(source)
    if not statement_stems or not set(statement_stems) <= set(source_stems):
        return RuleVerdict(False, "words")
    if is_negated(source) != is_negated(statement):
        return RuleVerdict(False, "negation")
    position = _find_stem(source, statement_stems)
    if _ATTRIBUTIONS.search(source[:position]) and not _ATTRIBUTIONS.search(statement):
        return RuleVerdict(False, "attributed")
    return RuleVerdict(True)


def check_triple(answer: str, subject: str, predicate: str, object: str) -> RuleVerdict:
    """Whether a triple that was read from an answer says what the answer said.

    `answer` is the whole sentence, including its beginning from the prompt.
    """
    span = _find_span(answer, subject, predicate, object)
    if span is None:
        return RuleVerdict(False, "words")
    start, end = span
    triple_text = f"{subject} {predicate} {object}"
    if is_negated(answer[start:end]) != is_negated(triple_text):
        return RuleVerdict(False, "negation")
    if _ATTRIBUTIONS.search(answer[:start]):
        return RuleVerdict(False, "attributed")
    if _REVERSALS.match(answer[end:].split("\n")[0]):
        return RuleVerdict(False, "cut")
    last_word = split_words(object)[-1:]
    if last_word and last_word[0] in _DANGLING_WORDS and len(split_words(object)) > 1:
        return RuleVerdict(False, "unfinished")
    return RuleVerdict(True)


def _find_span(text: str, subject: str, predicate: str, object: str) -> tuple[int, int] | None:
    """The span of the statement in a text: from the subject to its last word, with the words in
    order; None if one is missing. Of several possible beginnings, the last complete one is taken,
    so a remark before the sentence does not count."""
    wanted_words = split_words(f"{predicate} {object}")
    span = None
    for subject_match in re.finditer(rf"(?<!\w){re.escape(subject)}(?!\w)", text, re.IGNORECASE):
        position = subject_match.end()
        for word in wanted_words:
            pattern = re.escape(word).replace("'", "['’]")
            match = re.compile(rf"(?<!\w){pattern}(?!\w)", re.IGNORECASE).search(text, position)
            if match is None:
                break
            position = match.end()
        else:
            span = subject_match.start(), position
    return span


def _find_stem(text: str, stems: list[str]) -> int:
    """Where the first of these words stands."""
    for match in re.finditer(r"[^\W_]+(?:['’-][^\W_]+)*", text):
        if stem_word(match[0].lower()) in stems:
            return match.start()
    return 0


_WORD_ENDINGS = ("ingly", "edly", "ings", "ing", "ies", "ers", "er", "ed", "es", "ly", "s")


def stem_word(word: str) -> str:
    """A word without its inflection and derivation, roughly: "working", "works" and "worker" give
    "work". A claim may turn a verb into a noun and say the same."""
    for ending in _WORD_ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            word = word.removesuffix(ending)
            break
    return word.removesuffix("e") if len(word) > 3 else word
