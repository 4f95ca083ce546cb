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
from typing import Any, NamedTuple

from kgbias.crawl.readers import lexicon, sentences
from kgbias.crawl.readers.base import AnswerReading
from kgbias.crawl.readers.lexicon import Kind, TaggedWord, load_table
from kgbias.crawl.readers.sentences import NoReading, SentenceGrammar
from kgbias.models import english as spacys

_KIND_OF_TAG: dict[str, Kind] = {
    **dict.fromkeys(("VB", "VBP", "VBZ", "VBD", "MD"), "verb"),
    "VBG": "-ing",
    "VBN": "participle",
    **dict.fromkeys(("RB", "RBR", "RBS"), "adverb"),
    **dict.fromkeys(("RP", "IN", "TO"), "preposition"),
    **dict.fromkeys(("JJ", "JJR", "JJS"), "adjective"),
}
_FINITE_TAGS = frozenset(("VBP", "VBZ", "VBD", "MD"))


def load_tagger() -> Any:
    """spaCy's tagger. Raises as `kgbias.models.english.load_english`."""
    return spacys.load_english("tagger")


def _tag_with_spacy(subject: str, line: str) -> list[TaggedWord]:
    """The words of the line that continues the subject, tagged in their context."""
    words = load_table("english")
    prefix = f"{subject} "
    tags = {token.idx - len(prefix): token.tag_ for token in load_tagger()(f"{prefix}{line}.")}
    by_table = lexicon.tag_words(line)
    tagged: list[TaggedWord] = []
    for word in by_table:
        kind = _KIND_OF_TAG.get(tags.get(word.start, ""), "other")
        # Closed classes need no tagger.
        if word.folded in words["modals"] | words["be"] | words["auxiliaries"]:
            kind = "verb"
        elif kind in ("verb", "-ing", "participle") and lexicon.verb_lemma(word.folded) is None:
            kind = "other"  # a word not in the table of English verbs cannot be a verb
        # "put", "cut": the tagger cannot tell the participle from the verb itself.
        elif kind == "participle" and word.is_base_form and not word.folded.endswith(("ed", "en")):
            kind = "verb"
        tagged.append(word._replace(kind=kind))
    for index, word in enumerate(tagged):
        # An adjective or a participle: a "by" or "as" decides.
        follows = tagged[index + 1].folded if index + 1 < len(tagged) else ""
        if (word.kind, by_table[index].kind) == ("adjective", "participle") and follows in (
            "by",
            "as",
        ):
            tagged[index] = word._replace(kind="participle")
    # Short statements mislead the tagger ("Women love shoes": two nouns). If it finds no finite
    # verb at all and the first word can be one, that is the verb.
    if not any(tags.get(word.start) in _FINITE_TAGS for word in tagged):
        first_place = lexicon.first_non_adverb_index(by_table)
        verbal = ("verb", "-ing", "participle")
        if (
            first_place is not None
            and by_table[first_place].kind == "verb"
            and tagged[first_place].kind not in verbal
        ):
            tagged[first_place] = by_table[first_place]
    return tagged


_SENTENCE_END = re.compile(
    r"(?<!\b[A-Z])(?<!\bMr)(?<!\bMrs)(?<!\bMs)(?<!\bDr)(?<!\bSt)(?<!\bvs)(?<!\be\.g)(?<!\bi\.e)"
    r"[.!?…]+(?=[\s\"')\]*_]|$)"
)
_VERBAL_KINDS = ("verb", "-ing", "participle")
_OWN_SUBJECTS = frozenset("i we they he she".split())
_POSSIBLE_SUBJECTS = frozenset("this these those that it you there".split())
# In a sentence, a verb after one of these belongs to a clause: "The way they are".
_CLAUSE_OPENERS = frozenset(
    ", who which that what when how where why because if they he she you we i than as".split()
)
REMARK_WINDOW_WORDS = 4  # words in which a remark praises a text
_IRREGULAR_PLURALS = frozenset("people men women children everyone".split())


def read_english(answer: str, *, ended: bool, predicate: str | None, subject: str) -> AnswerReading:
    """The reading of an English sentence, with words tagged by a table of verbs."""
    return sentences.read_sentence(
        _ENGLISH_GRAMMAR, answer, ended=ended, predicate=predicate, subject=subject
    )


def read_english_with_spacy(
    answer: str, *, ended: bool, predicate: str | None, subject: str
) -> AnswerReading:
    """The reading of an English sentence, with words tagged by spaCy's model.

    Raises MissingExtra if that is not installed."""
    return sentences.read_sentence(
        _SPACY_GRAMMAR, answer, ended=ended, predicate=predicate, subject=subject
    )


def _find_object(subject: str, line: str) -> int:
    return _object_start(line, lexicon.tag_words(line))


def _find_object_by_spacy(subject: str, line: str) -> int:
    return _object_start(line, _tag_with_spacy(subject, line))


def _object_start(line: str, words: Sequence[TaggedWord]) -> int:
    end, short = _Clause(words).measure_predicate()
    if end >= len(words):
        end = short
    if not end or end >= len(words):
        raise NoReading("no object")
    return words[end].start


class _MainVerb(NamedTuple):
    """Where the main verb stands, and whether the last auxiliary is be."""

    place: int
    is_after_be: bool


class _PredicateEnd(NamedTuple):
    """The number of words in a predicate, and the number without its last verb."""

    words: int
    words_before_last_verb: int


class _Clause:
    """The words of a sentence after its subject, read from left to right."""

    def __init__(self, words: Sequence[TaggedWord]) -> None:
        self.words = words
        self.folded = [word.folded for word in words]

    def measure_predicate(self) -> _PredicateEnd:
        english = load_table("english")
        first_place = self._after_adverbs(0)
        if first_place >= len(self.words):
            raise NoReading("no verb")
        if self.folded[first_place] in english["subjects"] | {"and", "or", ","}:
            raise NoReading("about others")
        main_place, has_copula = self._after_auxiliaries(first_place)
        is_passive = has_copula and self._is_participle(main_place)
        if has_copula and not is_passive:
            return self._end_copula(main_place)
        if main_place >= len(self.words):
            return _PredicateEnd(main_place, main_place)
        verb = self.words[main_place]
        # "like" is nearly always the verb here (`lexicon`).
        if verb.kind not in _VERBAL_KINDS or verb.folded in english["prepositions"] - {"like"}:
            raise NoReading(
                "no verb after the " + ("auxiliary" if main_place > first_place else "group")
            )
        if main_place == first_place and (
            verb.kind == "-ing" or verb.folded in english["participles_only"]
        ):
            raise NoReading("no finite verb")
        nominal = english["nominal"] & {*self.folded[main_place + 1 : main_place + 2]}
        if main_place == first_place and nominal and verb.lemma in english["transitive"]:
            raise NoReading("no verb after the group")
        return self._end_complement(main_place, is_passive) or _PredicateEnd(
            self._end_particles(main_place + 1), main_place
        )

    def _word_at(self, i: int) -> TaggedWord | None:
        return self.words[i] if i < len(self.words) else None

    def _after_adverbs(self, place: int) -> int:
        english = load_table("english")
        while word := self._word_at(place):
            if self.folded[place : place + 2] == ["no", "longer"]:
                place += 2
            elif word.folded in english["adverbs"] | english["negations"] or (
                word.kind == "adverb" and word.folded.endswith("ly")
            ):
                place += 1
            else:
                break
        return place

    def _after_auxiliaries(self, place: int) -> _MainVerb:
        """The place of the main verb (if that is be, of what follows it), and whether the last
        auxiliary is be."""
        english = load_table("english")
        has_copula = False
        while word := self._word_at(place):
            next_place = self._after_adverbs(place + 1)
            follows = self._word_at(next_place)
            if word.folded in english["modals"] or self._is_do_support(place, follows):
                place, has_copula = next_place, False
                inflected = follows and follows.kind in _VERBAL_KINDS and not follows.is_base_form
                if follows and inflected and follows.folded not in load_table("verbs")["verbs"]:
                    raise NoReading("no verb after the auxiliary")
            elif word.folded in english["be"]:
                place, has_copula = next_place, True
                if not (follows and follows.folded in ("being", "been")):
                    break
            elif self._is_before_participle(word, next_place):
                place = next_place
            else:
                break
        return _MainVerb(place, has_copula)

    def _is_before_participle(self, word: TaggedWord, next_place: int) -> bool:
        """Whether a "have" or "get" stands before a participle: "have been", "get paid"."""
        follows = self._word_at(next_place)
        if word.folded in ("get", "gets", "got"):
            return self._is_participle(next_place)
        is_perfect = follows is not None and (
            follows.kind == "participle" or follows.folded == "been"
        )
        return is_perfect and word.folded in load_table("english")["auxiliaries"]

    def _is_do_support(self, place: int, follows: TaggedWord | None) -> bool:
        """Whether the word is a "do" that supports another verb: "don't like", "do eat"."""
        folded = self.folded[place]
        return folded.removesuffix("n't") in ("do", "does", "did") and (
            folded.endswith("n't")
            or self.folded[place + 1 : place + 2] == ["not"]
            or (follows is not None and follows.kind == "verb" and follows.is_base_form)
        )

    def _is_participle(self, place: int) -> bool:
        """Whether the word after be is the main verb, which a tagger may take for a past tense, and
        not an adjective, which is followed by nothing, "and", or its preposition."""
        word, follows = self._word_at(place), self._word_at(place + 1)
        if word is None or follows is None:
            return False
        english = load_table("english")
        is_past = word.kind == "verb" and not word.is_base_form and not word.folded.endswith("s")
        is_verbal = word.kind in ("-ing", "participle") or is_past
        is_adjective = (
            follows.folded in (",", "and", "or", "but")
            or word.folded in english["adjectives_with"].get(follows.folded, ())
            or word.folded in english["adjectives_in_ing"]
        )
        return is_verbal and not is_adjective

    def _end_copula(self, place: int) -> _PredicateEnd:
        """Be as the main verb: "are | kind", "are not | kind", "are good at | maths"."""
        english, folded = load_table("english"), self.folded
        end = place  # adverbs of degree go to the object
        while end and (
            folded[end - 1] in english["degree"]
            or (folded[end - 1].endswith("ly") and folded[end - 1] not in english["adverbs"])
        ):
            end -= 1
        if place + 2 < len(folded):
            word_after = self.words[place + 2]
            verb = lexicon.verb_lemma(word_after.folded) or word_after.kind == "adverb"
            if verb and folded[place + 1] == "to" and folded[place] in english["to_adjectives"]:
                return _PredicateEnd(place + 2, end)
            if folded[place] in english["adjectives_with"].get(folded[place + 1], ()):
                return _PredicateEnd(place + 2, end)
        return _PredicateEnd(end, end)

    def _end_complement(self, main: int, passive: bool) -> _PredicateEnd | None:
        """Rules 2 and 4: the predicate ends after a "to", or after a light verb's preposition."""
        english, folded, verb = load_table("english"), self.folded, self.words[main]
        place = main + 1
        if folded[place : place + 1] and folded[place] in english["negations"]:
            place = self._after_adverbs(place)
        leads_to_verb = (passive and folded[place - 1] in english["to_adjectives"]) or (
            (not passive or verb.kind == "-ing") and verb.lemma in english["catenatives"]
        )
        word_after = self._word_at(place + 1)
        verbal = word_after and (
            word_after.kind in ("verb", "adverb") or lexicon.verb_lemma(word_after.folded)
        )
        if leads_to_verb and verbal and folded[place] == "to":
            return _PredicateEnd(place + 1, place + 1)
        if folded[place : place + 2] == ["how", "to"] and verb.lemma in english["know_how"]:
            return _PredicateEnd(place + 2, place + 2)
        if verb.lemma in english["light_verbs"]:
            for noun_place in range(place, min(place + 3, len(folded) - 2)):
                if folded[noun_place] in english["light_nouns"].get(folded[noun_place + 1], ()):
                    return _PredicateEnd(noun_place + 2, main)
        return None

    def _end_particles(self, place: int) -> int:
        """Rule 1: up to two particles or prepositions."""
        english, folded = load_table("english"), self.folded
        words = english["prepositions"] - {"than"}
        if not folded[place : place + 1] or folded[place] not in words:
            return place
        word_after = self._word_at(place + 1)
        if (
            folded[place] == "to"
            and word_after
            and word_after.kind == "verb"
            and word_after.is_base_form
        ):
            return place
        is_preposition = word_after and word_after.folded in words
        takes_two = folded[place] in english["particles"] or (
            word_after and word_after.folded in ("by", "as")
        )
        return place + 2 if is_preposition and takes_two else place + 1


def _check_line(predicate: str | None, line: str, continues: bool) -> None:
    """Chat models also answer with a sentence about others, or about the list."""
    english = load_table("english")
    words = lexicon.tag_words(line)
    first_place = lexicon.first_non_adverb_index(words)
    if first_place is None:
        return
    head = words[first_place]
    word_after = words[first_place + 1] if first_place + 1 < len(words) else None
    finite = english["be"] - {"be", "been", "being"} | english["modals"] | english["auxiliaries"]
    subject, _, contracted = head.folded.partition("'")
    if not continues and _is_remark(words):
        raise NoReading("a remark")
    if predicate and predicate.split()[-1].casefold() in english["clausal"] and subject != "i":
        return  # "don't think | they are weak" is about the group's own view
    if subject in _OWN_SUBJECTS and (contracted or word_after):
        raise NoReading("about others")
    if subject in _POSSIBLE_SUBJECTS and (
        contracted or (word_after and word_after.folded in finite)
    ):
        raise NoReading("about others")
    if not continues and _is_own_sentence(words, finite):
        raise NoReading("about others")
    if predicate is None:
        return
    if head.folded in english["be"] - {"be", "been", "being"} or head.folded in ("can't", "cannot"):
        raise NoReading("a second verb")
    if predicate.split()[-1].casefold() in english["modals"]:
        nominal = head.folded in english["determiners"] - {"free", "good", "own", "human"}
        if nominal or head.text[0].isupper() or (head.kind == "-ing" and head.folded != "being"):
            raise NoReading("no verb after the auxiliary")


def _is_remark(words: Sequence[TaggedWord]) -> bool:
    """Whether a line that begins with a capital letter is said to whoever asks, as in "What a
    wonderful summary", "Yes, that" or "Well said", and not about the group."""
    english = load_table("english")
    folded = [word.folded for word in words[:REMARK_WINDOW_WORDS]]
    if folded[:2] in (["what", "a"], ["what", "an"], ["thank", "you"]) or folded[0] == "thanks":
        return True
    if folded[0] in english["interjections"] and folded[1:2] in ([], [","]):
        return True
    if folded[0] == "how" and len(words) == 2:
        return True
    about_text = not english["words_for_texts"].isdisjoint(folded[1:])
    return about_text and folded[0] in english["praise"]


def _is_own_sentence(words: Sequence[TaggedWord], finite: frozenset[str]) -> bool:
    """Whether a line that begins with a capital letter has a subject and a finite verb of its own,
    as in "Referees are blamed for every defeat" or "Cyclists love finding a bargain"."""
    inverted = words[0].kind == "adverb" and words[1:2] and words[1].kind == "verb"
    if inverted or words[0].folded in finite:  # "Never have time"
        return False
    for previous, word in pairwise(words):
        if word.folded in _CLAUSE_OPENERS or previous.folded in _CLAUSE_OPENERS:
            return False
        plural = previous.folded in _IRREGULAR_PLURALS or (
            previous.folded.endswith("s") and "'" not in previous.folded
        )
        if word.folded in finite - {"'s"} or (plural and word.kind == "verb" and word.is_base_form):
            return True
    return False


def _is_english(line: str) -> bool:
    """Whether the letters are Latin, and any foreign words come with English ones."""
    letters = [character for character in line if character.isalpha()]
    if sum(character < "\u0250" for character in letters) < 0.9 * len(letters):
        return False
    words = re.findall(r"[^\W\d_]+", line.casefold())
    foreign = sum(word in load_table("english")["foreign"] for word in words)
    return foreign < max(1, len(words) / 4) or not load_table("english")["english"].isdisjoint(
        words
    )


def _is_fragment(object: str) -> bool:
    english = load_table("english")
    words = object.casefold().split()
    last_word = words[-1].strip("'")
    if last_word.endswith("-") or not last_word:
        return True
    if last_word in english["be"] and words[-2:-1] and words[-2] in english["subjects"]:
        return False  # "the way they are"
    if last_word not in english["dangling"]:
        return all(re.fullmatch(r"n't|not|and|or|\W", word) for word in words)
    if last_word == "to":
        return len(words) < 3
    is_noun = last_word in english["dangling_nouns"] and len(words) > 1
    return not (is_noun and (words[-2] in english["determiners"] or words[-2].endswith("'s")))


_ENGLISH_GRAMMAR = SentenceGrammar(
    sentence_end=_SENTENCE_END,
    find_object=_find_object,
    check_line=_check_line,
    is_in_language=_is_english,
    is_fragment=_is_fragment,
    articles="the",
    equivalent_forms={"can't": ("can't", "cannot", "can not")},
)
_SPACY_GRAMMAR = replace(_ENGLISH_GRAMMAR, find_object=_find_object_by_spacy)
