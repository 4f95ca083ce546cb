"""The English reader: where the predicate of a sentence about a group ends.

The predicate is the verb group: auxiliaries, negation, the adverbs among them, the main verb, and
what the verb needs to take its object:

1. a particle or the preposition that follows the verb at once: "complain about", "look down on",
   "are seen as", "put up with";
2. after a verb that merely introduces another verb, the "to": "tend to | be late", "know how to |
   cook", "are able to | swim". Verbs of liking have a meaning of their own and end there: "love |
   to cook";
3. after be, an adjective of a fixed list with its preposition: "are good at", "are afraid of";
4. a fixed phrase of a light verb with its preposition: "have a problem with", "take care of".

The object is the rest, to the end of the sentence. Where nothing is left, the last verb becomes
the object: "can't | swim", "tend to | complain"; a bare verb ("Men work.") has no object and no
reading.
The words in the rules are in english.toml; a table of English verbs, or spaCy's small English
model, tells what kind of word each one is.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from kgbias.crawl.readers import lexicon, sentences
from kgbias.crawl.readers.base import Reading
from kgbias.crawl.readers.lexicon import Kind, Word, table
from kgbias.crawl.readers.sentences import Language, NoReading
from kgbias.models import english as spacys

_KINDS: dict[str, Kind] = {
    **dict.fromkeys(("VB", "VBP", "VBZ", "VBD", "MD"), "verb"),
    "VBG": "-ing",
    "VBN": "participle",
    **dict.fromkeys(("RB", "RBR", "RBS"), "adverb"),
    **dict.fromkeys(("RP", "IN", "TO"), "preposition"),
    **dict.fromkeys(("JJ", "JJR", "JJS"), "adjective"),
}
_FINITE = frozenset(("VBP", "VBZ", "VBD", "MD"))


def tagger() -> Any:
    """spaCy's tagger. Raises as `kgbias.models.english.load_english`."""
    return spacys.load_english("tagger")


def _tagged(subject: str, line: str) -> list[Word]:
    """The words of the line that continues the subject, tagged in their context."""
    words = table("english")
    ahead = f"{subject} "
    tags = {token.idx - len(ahead): token.tag_ for token in tagger()(f"{ahead}{line}.")}
    by_table = lexicon.tag(line)
    tagged: list[Word] = []
    for word in by_table:
        kind = _KINDS.get(tags.get(word.start, ""), "other")
        if word.low in words["modals"] | words["be"] | words["auxiliaries"]:
            kind = "verb"
        elif kind in ("verb", "-ing", "participle") and lexicon.lemma(word.low) is None:
            kind = "other"  # a word not in the table of English verbs cannot be a verb
        elif kind == "participle" and word.plain and not word.low.endswith(("ed", "en")):
            kind = "verb"
        tagged.append(word._replace(kind=kind))
    for i, word in enumerate(tagged):
        # An adjective or a participle: a "by" or "as" decides.
        follows = tagged[i + 1].low if i + 1 < len(tagged) else ""
        if (word.kind, by_table[i].kind) == ("adjective", "participle") and follows in ("by", "as"):
            tagged[i] = word._replace(kind="participle")
    # Short statements mislead the tagger ("Women love shoes": two nouns). If it finds no finite
    # verb at all and the first word can be one, that is the verb.
    if not any(tags.get(word.start) in _FINITE for word in tagged):
        at = lexicon.first(by_table)
        verbal = ("verb", "-ing", "participle")
        if at is not None and by_table[at].kind == "verb" and tagged[at].kind not in verbal:
            tagged[at] = by_table[at]
    return tagged


_SENTENCE_END = re.compile(
    r"(?<!\b[A-Z])(?<!\bMr)(?<!\bMrs)(?<!\bMs)(?<!\bDr)(?<!\bSt)(?<!\bvs)(?<!\be\.g)(?<!\bi\.e)"
    r"[.!?…]+(?=[\s\"')\]*_]|$)"
)
_VERBAL = ("verb", "-ing", "participle")
_OWN_SUBJECTS = frozenset("i we they he she".split())
_MAYBE_SUBJECTS = frozenset("this these those that it you there".split())
# In a sentence, a verb after one of these belongs to a clause: "The way they are".
_OPENERS = frozenset(
    ", who which that what when how where why because if they he she you we i than as".split()
)
_PLURALS = frozenset("people men women children everyone".split())


def read(answer: str, *, ended: bool, predicate: str | None, subject: str) -> Reading:
    """The reading of an English sentence, with words tagged by a table of verbs."""
    return sentences.read(_ENGLISH, answer, ended=ended, predicate=predicate, subject=subject)


def read_with_spacy(answer: str, *, ended: bool, predicate: str | None, subject: str) -> Reading:
    """The reading of an English sentence, with words tagged by spaCy's model.

    Raises MissingExtra if that is not installed."""
    return sentences.read(_BY_SPACY, answer, ended=ended, predicate=predicate, subject=subject)


def _cut(subject: str, line: str) -> int:
    return _object_start(line, lexicon.tag(line))


def _cut_by_spacy(subject: str, line: str) -> int:
    return _object_start(line, _tagged(subject, line))


def _object_start(line: str, words: Sequence[Word]) -> int:
    end, short = _Clause(words).predicate()
    if end >= len(words):
        end = short
    if not end or end >= len(words):
        raise NoReading("no object")
    return words[end].start


class _Clause:
    """The words of a sentence after its subject, read from left to right."""

    def __init__(self, words: Sequence[Word]) -> None:
        self.words = words
        self.low = [word.low for word in words]

    def predicate(self) -> tuple[int, int]:
        """The number of words in the predicate, and the number without its last verb."""
        english = table("english")
        first = self._after_adverbs(0)
        if first >= len(self.words):
            raise NoReading("no verb")
        if self.low[first] in english["subjects"] | {"and", "or", ","}:
            raise NoReading("about others")
        main, copula = self._after_auxiliaries(first)
        passive = copula and self._participle(main)
        if copula and not passive:
            return self._copula(main)
        if main >= len(self.words):
            return main, main
        verb = self.words[main]
        if verb.kind not in _VERBAL or verb.low in english["prepositions"] - {"like"}:
            raise NoReading("no verb after the " + ("auxiliary" if main > first else "group"))
        if main == first and (verb.kind == "-ing" or verb.low in english["participles_only"]):
            raise NoReading("no finite verb")
        nominal = english["nominal"] & {*self.low[main + 1 : main + 2]}
        if main == first and nominal and verb.lemma in english["transitive"]:
            raise NoReading("no verb after the group")
        return self._complement(main, passive) or (self._particles(main + 1), main)

    def _at(self, i: int) -> Word | None:
        return self.words[i] if i < len(self.words) else None

    def _after_adverbs(self, i: int) -> int:
        english = table("english")
        while word := self._at(i):
            if self.low[i : i + 2] == ["no", "longer"]:
                i += 2
            elif word.low in english["adverbs"] | english["negations"] or (
                word.kind == "adverb" and word.low.endswith("ly")
            ):
                i += 1
            else:
                break
        return i

    def _after_auxiliaries(self, i: int) -> tuple[int, bool]:
        """The place of the main verb (if that is be, of what follows it), and whether the last
        auxiliary is be."""
        english = table("english")
        copula = False
        while word := self._at(i):
            ahead = self._after_adverbs(i + 1)
            follows = self._at(ahead)
            if word.low in english["modals"] or self._supports(i, follows):
                i, copula = ahead, False
                inflected = follows and follows.kind in _VERBAL and not follows.plain
                if follows and inflected and follows.low not in table("verbs")["verbs"]:
                    raise NoReading("no verb after the auxiliary")
            elif word.low in english["be"]:
                i, copula = ahead, True
                if not (follows and follows.low in ("being", "been")):
                    break
            elif self._passes_on(word, ahead):
                i = ahead
            else:
                break
        return i, copula

    def _passes_on(self, word: Word, ahead: int) -> bool:
        """Whether a "have" or "get" stands before a participle: "have been", "get paid"."""
        follows = self._at(ahead)
        if word.low in ("get", "gets", "got"):
            return self._participle(ahead)
        perfect = follows is not None and (follows.kind == "participle" or follows.low == "been")
        return perfect and word.low in table("english")["auxiliaries"]

    def _supports(self, i: int, follows: Word | None) -> bool:
        """Whether the word is a "do" that supports another verb: "don't like", "do eat"."""
        low = self.low[i]
        return low.removesuffix("n't") in ("do", "does", "did") and (
            low.endswith("n't")
            or self.low[i + 1 : i + 2] == ["not"]
            or (follows is not None and follows.kind == "verb" and follows.plain)
        )

    def _participle(self, i: int) -> bool:
        """Whether the word after be is the main verb, which a tagger may take for a past tense, and
        not an adjective, which is followed by nothing, "and", or its preposition."""
        word, follows = self._at(i), self._at(i + 1)
        if word is None or follows is None:
            return False
        english = table("english")
        past = word.kind == "verb" and not word.plain and not word.low.endswith("s")
        verbal = word.kind in ("-ing", "participle") or past
        adjective = (
            follows.low in (",", "and", "or", "but")
            or word.low in english["adjectives_with"].get(follows.low, ())
            or word.low in english["adjectives_in_ing"]
        )
        return verbal and not adjective

    def _copula(self, i: int) -> tuple[int, int]:
        """Be as the main verb: "are | kind", "are not | kind", "are good at | maths"."""
        english, low = table("english"), self.low
        end = i  # adverbs of degree go to the object
        while end and (
            low[end - 1] in english["degree"]
            or (low[end - 1].endswith("ly") and low[end - 1] not in english["adverbs"])
        ):
            end -= 1
        if i + 2 < len(low):
            after = self.words[i + 2]
            verb = lexicon.lemma(after.low) or after.kind == "adverb"
            if verb and low[i + 1] == "to" and low[i] in english["to_adjectives"]:
                return i + 2, end
            if low[i] in english["adjectives_with"].get(low[i + 1], ()):
                return i + 2, end
        return end, end

    def _complement(self, main: int, passive: bool) -> tuple[int, int] | None:
        """Rules 2 and 4: the predicate ends after a "to", or after a light verb's preposition."""
        english, low, verb = table("english"), self.low, self.words[main]
        i = main + 1
        if low[i : i + 1] and low[i] in english["negations"]:
            i = self._after_adverbs(i)
        leads = (passive and low[i - 1] in english["to_adjectives"]) or (
            (not passive or verb.kind == "-ing") and verb.lemma in english["catenatives"]
        )
        after = self._at(i + 1)
        verbal = after and (after.kind in ("verb", "adverb") or lexicon.lemma(after.low))
        if leads and verbal and low[i] == "to":
            return i + 1, i + 1
        if low[i : i + 2] == ["how", "to"] and verb.lemma in english["know_how"]:
            return i + 2, i + 2
        if verb.lemma in english["light_verbs"]:
            for noun in range(i, min(i + 3, len(low) - 2)):
                if low[noun] in english["light_nouns"].get(low[noun + 1], ()):
                    return noun + 2, main
        return None

    def _particles(self, i: int) -> int:
        """Rule 1: up to two particles or prepositions."""
        english, low = table("english"), self.low
        words = english["prepositions"] - {"than"}
        if not low[i : i + 1] or low[i] not in words:
            return i
        after = self._at(i + 1)
        if low[i] == "to" and after and after.kind == "verb" and after.plain:
            return i
        second = after and after.low in words
        twice = low[i] in english["particles"] or (after and after.low in ("by", "as"))
        return i + 2 if second and twice else i + 1


def _check(predicate: str | None, line: str, continues: bool) -> None:
    """Chat models also answer with a sentence about others, or about the list."""
    english = table("english")
    words = lexicon.tag(line)
    at = lexicon.first(words)
    if at is None:
        return
    head, after = words[at], words[at + 1] if at + 1 < len(words) else None
    finite = english["be"] - {"be", "been", "being"} | english["modals"] | english["auxiliaries"]
    subject, _, contracted = head.low.partition("'")
    if predicate and predicate.split()[-1].casefold() in english["clausal"] and subject != "i":
        return  # "don't think | they are weak" is about the group's own view
    if subject in _OWN_SUBJECTS and (contracted or after):
        raise NoReading("about others")
    if subject in _MAYBE_SUBJECTS and (contracted or (after and after.low in finite)):
        raise NoReading("about others")
    if not continues and _own_sentence(words, finite):
        raise NoReading("about others")
    if predicate is None:
        return
    if head.low in english["be"] - {"be", "been", "being"} or head.low in ("can't", "cannot"):
        raise NoReading("a second verb")
    if predicate.split()[-1].casefold() in english["modals"]:
        nominal = head.low in english["determiners"] - {"free", "good", "own", "human"}
        if nominal or head.text[0].isupper() or (head.kind == "-ing" and head.low != "being"):
            raise NoReading("no verb after the auxiliary")


def _own_sentence(words: Sequence[Word], finite: frozenset[str]) -> bool:
    """Whether a line that begins with a capital letter has a subject and a finite verb of its own,
    as in "Referees are blamed for every defeat" or "Cyclists love finding a bargain"."""
    inverted = words[0].kind == "adverb" and words[1:2] and words[1].kind == "verb"
    if inverted or words[0].low in finite:  # "Never have time"
        return False
    for before, word in pairwise(words):
        if word.low in _OPENERS or before.low in _OPENERS:
            return False
        plural = before.low in _PLURALS or (before.low.endswith("s") and "'" not in before.low)
        if word.low in finite - {"'s"} or (plural and word.kind == "verb" and word.plain):
            return True
    return False


def _belongs(line: str) -> bool:
    """Whether the letters are Latin, and any foreign words come with English ones."""
    letters = [c for c in line if c.isalpha()]
    if sum(c < "\u0250" for c in letters) < 0.9 * len(letters):
        return False
    found = re.findall(r"[^\W\d_]+", line.casefold())
    foreign = sum(word in table("english")["foreign"] for word in found)
    return foreign < max(1, len(found) / 4) or not table("english")["english"].isdisjoint(found)


def _fragment(object: str) -> bool:
    english = table("english")
    words = object.casefold().split()
    last = words[-1].strip("'")
    if last.endswith("-") or not last:
        return True
    if last in english["be"] and words[-2:-1] and words[-2] in english["subjects"]:
        return False  # "the way they are"
    if last not in english["dangling"]:
        return all(re.fullmatch(r"n't|not|and|or|\W", word) for word in words)
    if last == "to":
        return len(words) < 3
    noun = last in english["dangling_nouns"] and len(words) > 1
    return not (noun and (words[-2] in english["determiners"] or words[-2].endswith("'s")))


_ENGLISH = Language(
    sentence_end=_SENTENCE_END,
    cut=_cut,
    check=_check,
    belongs=_belongs,
    fragment=_fragment,
    articles="the",
    same={"can't": ("can't", "cannot", "can not")},
)
_BY_SPACY = replace(_ENGLISH, cut=_cut_by_spacy)
